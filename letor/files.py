"""Outputs appear under their final name only when they are complete; JSON from files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

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
        if error.errno is not None and str(error.filename or temporary).startswith(str(temporary)):
            error.filename = str(target)
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
