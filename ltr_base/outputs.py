"""Outputs that get their final name only once they are complete."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from ltr_base.machine import is_running, process_of, temporary_paths, temporary_stem


@contextmanager
def replacement(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; rename it to ``target`` if the block succeeds.

    The caller creates a file or a folder there. On any exception (Ctrl-C included) whatever was
    written there is removed and ``target`` keeps its former content. What exists is replaced in one
    step, then removed; where the system cannot exchange folders, an existing folder is moved aside
    first. If ``target`` is a symbolic link, what it names is replaced, not the link. Its folder is
    made if it does not exist. What killed processes of this machine left half-written there is
    removed.

    Raises:
        OSError: it cannot be written; the error names ``target``, never the temporary path.
    """
    target = Path(target)
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    temporary, aside = temporary_paths(target)
    try:
        with named_after(temporary, target):
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(target)
            yield temporary
            folders = temporary.is_dir() and target.is_dir()
            if not (folders and _exchanged(temporary, target)):
                if folders:
                    os.replace(target, aside)
                os.replace(temporary, target)
    finally:
        if aside.exists() and not target.exists():  # interrupted between the two renames
            os.replace(aside, target)
        remove(aside)
        remove(temporary)


@contextmanager
def named_after(temporary: Path, target: Path) -> Iterator[None]:
    """Errors of the system name ``target`` in place of a temporary file or folder that becomes it:
    a full disk names no file, and the temporary name is no help."""
    try:
        yield
    except OSError as error:
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        if error.errno is not None and (
            not named or any(name.startswith(str(temporary)) for name in named)
        ):
            error.filename = str(target)
            del error.filename2  # None would be printed
            if "[errno" in str(error.strerror):  # Arrow's reason, which may name it, too
                error.strerror = os.strerror(error.errno)
        raise


def _exchanged(path: Path, other: Path) -> bool:
    """Exchange two folders in one step, if the system can (Linux); return whether it did. Whoever
    reads meanwhile finds one of them, and so does who comes after a killed process."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename is not None and (
        rename(here, os.fsencode(path), here, os.fsencode(other), exchange) == 0
    )


def _remove_abandoned(target: Path) -> None:
    """Remove half-written versions of a file or folder whose processes run no longer. Versions
    moved aside stay: one may be all that is left of the former content."""
    for path in target.parent.glob(f"{escape(temporary_stem(target))}.*.partial"):
        process = process_of(path.name)
        if process is not None and not is_running(process):
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):  # on a read-only file system, unlinking an absent file fails
        path.unlink(missing_ok=True)
