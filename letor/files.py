"""Outputs appear under their final name only when they are complete; JSON from files."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.machine import temporary_paths


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no JSON in UTF-8, or is nested more deeply than Python reads it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write a ``.npy`` file.

    Raises:
        OSError: it cannot be written; it names the file and the reason, as numpy's does not.
    """
    with _named(path), path.open("wb") as file:
        np.save(file, array)


def append_array(path: Path, array: NDArray[Any]) -> None:
    """Write the bytes of an array behind those that a file has.

    Raises:
        OSError: as :func:`save_array`.
    """
    with _named(path), path.open("ab") as file:
        array.tofile(file)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        said = error.strerror or f"it cannot be written whole ({error}); is the disk full?"
        raise OSError(error.errno or errno.ENOSPC, said, str(path)) from None


@contextmanager
def atomic_path(
    target: str | os.PathLike[str], *, kind: Literal["file", "folder"] = "file"
) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; rename it to ``target`` if the block succeeds.

    The caller creates a file (or, by ``kind``, a folder) at the yielded path. On any exception
    (Ctrl-C included) whatever was written there is removed and ``target`` keeps its former
    content. An existing file is replaced in one step; an existing folder is moved aside first,
    then removed.

    Raises:
        InputError: a folder stands where a file is to be written, or the other way round.
        OSError: the parent folder cannot be created or written.
    """
    target = Path(target)
    if target.exists() and target.is_dir() != (kind == "folder"):
        found = "a folder" if target.is_dir() else "a file"
        raise InputError(f"{target} is {found}; a {kind} is to be written: name another path")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, aside = temporary_paths(target)
    try:
        yield temporary
        if target.is_dir():
            os.replace(target, aside)
            os.replace(temporary, target)
        else:
            os.replace(temporary, target)
    except OSError as error:  # a full disk names no file, and the temporary one helps nobody
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        if error.errno is not None and (
            not named or any(name.startswith(str(temporary)) for name in named)
        ):
            error.filename, error.filename2 = str(target), None
        raise
    finally:
        if aside.exists() and not target.exists():  # interrupted between the two renames
            os.replace(aside, target)
        _remove(aside)
        _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):  # a read-only file system refuses to remove what is not there
        path.unlink(missing_ok=True)
