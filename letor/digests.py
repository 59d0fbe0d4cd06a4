"""Digests of the files of a folder, written on saving and compared on request."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from letor.errors import InputError, reading
from letor.files import LOCK, LOCKED, atomic_path, check_is_file, read_json, write_json

#: Holds the SHA-256 of every other file of its folder, by relative path, except its lock.
DIGESTS = "digests.json"


def write_digests(folder: Path) -> None:
    """Write the digests of all files of a folder into it."""
    digests = _digests(folder)
    with atomic_path(folder / DIGESTS) as path:
        write_json(path, digests)


def changed_files(folder: Path) -> list[str]:
    """Files of a folder that are missing, new or changed since it was written, one line each.

    Raises:
        InputError: the folder has no digests, or they cannot be read.
    """
    if not (folder / DIGESTS).is_file():
        raise InputError(
            f"{folder}: has no {DIGESTS}, so it is not an index, knowledge base, ranker or "
            "pipeline of this program, or it is one of an earlier version"
        )
    written, found = written_digests(folder), _digests(folder)
    lines = [f"{name}: missing" for name in sorted(written.keys() - found.keys())]
    lines += [f"{name}: new" for name in sorted(found.keys() - written.keys())]
    both = sorted(written.keys() & found.keys())
    return [*lines, *(f"{name}: changed" for name in both if written[name] != found[name])]


def check_files(folder: Path, pattern: str) -> None:
    """Check the files of a folder whose names match a pattern. The folder of an earlier version
    without digests is left to its reader.

    Raises:
        InputError: a file is missing or is not as it was written.
    """
    written = written_digests(folder)
    for name in fnmatch.filter(written, pattern):
        path = folder / name
        with reading(path, "restore it, or save the whole again"):
            if path.exists():
                check_is_file(path)  # a device, which the digests may name, has no end
            with path.open("rb") as file:
                check_content(file, written[name])


def check_content(file: BufferedReader, digest: str) -> None:
    """Raise InputError if an open file has another digest."""
    if hashlib.file_digest(file, "sha256").hexdigest() != digest:
        raise InputError(
            f"{file.name} is damaged: it is not the file that was saved; restore it, or save the "
            "whole again"
        )


def written_digests(folder: Path) -> dict[str, str]:
    """The digests that were written into a folder, by relative path; none in the folder of an
    earlier version.

    Raises:
        InputError: they cannot be read.
    """
    path = folder / DIGESTS
    if not path.is_file():
        return {}
    with reading(path, "the digests are damaged"):
        return {name: str(digest) for name, digest in read_json(path).items()}


def check_part(folder: Path, part: str) -> None:
    """Check that a folder and one within it, which has digests of its own, were saved together.
    Files that only one of them knows, and those in the part's own folder, may change later.

    Raises:
        InputError: the part is that of another folder.
    """
    digests = [folder / DIGESTS, folder / part / DIGESTS]
    if not all(path.is_file() for path in digests):
        return
    with reading(folder, "the digests are damaged"):
        whole, own = map(read_json, digests)
        deep = [name for name in own if "/" in name and f"{part}/{name}" in whole]
        other = [name for name in deep if own[name] != whole[f"{part}/{name}"]]
    if other:
        raise InputError(
            f"{folder / part} is not what was saved with the rest of {folder}: {other[0]} is that "
            "of another; restore it, or save the whole again"
        )


def folder_digest(folder: str) -> str:
    """Digest of a folder's file of digests, or of a file; "there" for a folder without such a file,
    "missing" if the path does not exist."""
    path = Path(folder)
    file = path if path.is_file() else path / DIGESTS
    if not file.is_file():
        return "there" if path.is_dir() else "missing"
    return file_digest(file)[:16]


def named_files(value: Any) -> set[str]:
    """The files, and folders with digests, that are named anywhere in (nested) settings."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return set().union(*map(named_files, value))
    if isinstance(value, (str, Path)) and (
        Path(value).is_file() or (Path(value) / DIGESTS).is_file()
    ):
        return {str(value)}
    return set()


def _digests(folder: Path) -> dict[str, str]:
    found, others = {}, [folder / name for name in (DIGESTS, LOCK, LOCKED)]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in others:
            found[path.relative_to(folder).as_posix()] = file_digest(path)
    return found


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
