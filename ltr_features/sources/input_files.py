"""The files that an option names: files, folders of them, and patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from glob import glob, has_magic
from pathlib import Path
from typing import TypeAlias

from letor.errors import InputError
from letor.files import check_is_file

#: One or several files, folders or patterns, see :func:`files_of`. Options of a source that have
#: this annotation may be patterns in experiment files, too.
Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
#: How names begin of what programs note beside their files (``_SUCCESS``, ``.part-0.crc``).
_NOTES = (".", "_")


def each(paths: Paths) -> Sequence[str | os.PathLike[str]]:
    """One path or several, as a sequence."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else paths


def files_of(paths: Paths) -> list[Path]:
    """The given files; of given folders all files below them, and of patterns (``logs/2026-*.gz``;
    ``**`` is folders at any depth) what matches them. Names that begin with a dot or an underscore
    are passed over, with what is in such folders, unless they are given, or the part of the pattern
    for them begins so, too. The files of each folder and pattern are ordered by name.

    Raises:
        InputError: there is no such file, nothing matches a pattern, or a folder has no files, has
            a link to a folder, or cannot be read.
    """
    return [file for path in each(paths) for file in _files(Path(path))]


def _files(path: Path) -> Iterator[Path]:
    if is_pattern(path):
        found = matching(path)
        if not found:
            raise InputError(f"{path}: no file matches this pattern")
        for one in found:
            yield from _files(one)
    elif path.is_dir():
        inside = sorted(_inside(path))
        if not inside:
            raise InputError(f"{path}: a folder without files")
        for file in inside:
            yield from _files(file)
    else:
        check_is_file(path)
        yield path


def _inside(folder: Path) -> Iterator[Path]:
    """The files below a folder, but notes."""
    for at, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(_NOTES)]
        for link in filter(Path.is_symlink, (Path(at, name) for name in folders)):
            raise InputError(
                f"{link}: a link to a folder, which may hold the same files again: name the "
                f"folders to be read, or a pattern of them ({folder / '*'})"
            )
        yield from (Path(at, name) for name in files if not name.startswith(_NOTES))


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read ({error.strerror})")


def suffixes(path: Path) -> list[str]:
    """The suffixes of a file's name in lower case, as some programs write ITEMS.CSV."""
    return Path(path.name.lower()).suffixes


def is_pattern(path: str | os.PathLike[str], folder: Path = Path()) -> bool:
    """Whether a path, relative to a folder, is a pattern and not that of a file or folder."""
    return has_magic(os.fspath(path)) and not (folder / path).exists()


def matching(pattern: str | os.PathLike[str], folder: Path = Path()) -> list[Path]:
    """What matches a pattern that is relative to a folder, but notes, and what is in a folder that
    matches: paths relative to it, ordered."""
    found = set(map(Path, glob(os.fspath(pattern), root_dir=folder, recursive=True)))
    asked = [part for part in Path(pattern).parts if part.startswith(_NOTES)]
    for path in list(found):
        notes = (part for part in path.parts if part.startswith(_NOTES))
        if not all(any(fnmatchcase(note, part) for part in asked) for note in notes):
            found.remove(path)
    return sorted(path for path in found if found.isdisjoint(path.parents))
