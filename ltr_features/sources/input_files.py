"""The files that an option names: files, folders of them, and patterns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
    """The given files; of given folders all files below them, but those within or of a name that
    begins with a dot or an underscore; of patterns (``logs/2026-*.gz``; ``**`` is folders at any
    depth) what matches them. Those of each folder and pattern are ordered by name.

    Raises:
        InputError: there is no such file, nothing matches a pattern, or a folder has no files.
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
        inside = sorted(p for p in path.rglob("*") if p.is_file() and not _is_note(p, path))
        if not inside:
            raise InputError(f"{path}: a folder without files")
        yield from inside
    else:
        check_is_file(path)
        yield path


def _is_note(file: Path, folder: Path) -> bool:
    return any(name.startswith(_NOTES) for name in file.relative_to(folder).parts)


def suffixes(path: Path) -> list[str]:
    """The suffixes of a file's name in lower case, as some programs write ITEMS.CSV."""
    return Path(path.name.lower()).suffixes


def is_pattern(path: str | os.PathLike[str], folder: Path = Path()) -> bool:
    """Whether a path, relative to a folder, is a pattern and not that of a file or folder."""
    return has_magic(os.fspath(path)) and not (folder / path).exists()


def matching(pattern: str | os.PathLike[str], folder: Path = Path()) -> list[Path]:
    """What matches a pattern that is relative to a folder: paths relative to it, ordered."""
    return sorted(map(Path, glob(os.fspath(pattern), root_dir=folder, recursive=True)))
