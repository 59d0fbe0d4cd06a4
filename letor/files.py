"""Files: JSON, arrays, and outputs that get their final name only once they are complete."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.machine import is_running, is_temporary, process_of, temporary_paths

#: Note in a folder that names the run that holds it, removed when the run ends, see
#: :mod:`letor.lock`. The lock itself is on a second file, which stays in a folder, because a locked
#: file cannot be read on some systems.
LOCK, LOCKED = ".lock", ".locked"
T = TypeVar("T")


def read_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON in UTF-8, or is nested too deeply for Python.
    """
    return parse_json(path.read_bytes())


def parse_json(content: bytes) -> Any:
    """Parse the content of a JSON file, see :func:`read_json`."""
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_json(path: Path, content: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Write a JSON file in UTF-8, indented; ``default`` makes other objects JSON-compatible."""
    text = json.dumps(content, indent=1, ensure_ascii=False, default=default)
    path.write_text(text + "\n", encoding="utf-8")


def saved_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file is missing or damaged."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write a ``.npy`` file.

    Raises:
        OSError: the file cannot be written; unlike numpy's, the error names file and reason.
    """
    with _named(path), path.open("wb") as file:
        np.save(file, array)


def append_array(path: Path, array: NDArray[Any]) -> None:
    """Append the bytes of an array to a file.

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
        reason = error.strerror or f"it cannot be written fully ({error}); is the disk full?"
        raise OSError(error.errno or errno.ENOSPC, reason, str(path)) from None


@contextmanager
def atomic_path(
    target: str | os.PathLike[str], *, kind: Literal["file", "folder"] = "file"
) -> Iterator[Path]:
    """Yield a temporary path beside ``target``; rename it to ``target`` if the block succeeds.

    The caller creates a file (or, by ``kind``, a folder) at the yielded path. On any exception
    (Ctrl-C included) whatever was written there is removed and ``target`` keeps its former
    content. What exists is replaced in one step, then removed; where the system cannot exchange
    folders, an existing folder is moved aside first. If ``target`` is a symbolic link, what it
    names is replaced, not the link. What killed processes of this machine left half-written there
    is removed.

    Raises:
        InputError: see :func:`check_output`.
        OSError: the parent folder cannot be created or written.
    """
    check_output(target, kind=kind)
    target = Path(target)
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary, aside = temporary_paths(target)
    _remove_abandoned(target)
    try:
        yield temporary
        if not (target.is_dir() and _exchanged(temporary, target)):
            if target.is_dir():
                os.replace(target, aside)
            os.replace(temporary, target)
    except OSError as error:  # a full disk names no file, and the temporary name is no help
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        if error.errno is not None and (
            not named or any(name.startswith(str(temporary)) for name in named)
        ):
            error.filename = str(target)
            del error.filename2  # None would be printed
            if str(temporary) in str(error.strerror):  # Arrow's reason names it, too
                error.strerror = os.strerror(error.errno)
        raise
    finally:
        if aside.exists() and not target.exists():  # interrupted between the two renames
            os.replace(aside, target)
        _remove(aside)
        _remove(temporary)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder in ``target``, whose files move into ``target``, over their
    namesakes, if the block succeeds; else they are removed. Other files there stay.

    For files that belong together, in a folder that has more than these. The caller holds the
    folder, see :func:`letor.lock.locked`: what a killed process left there is removed.
    """
    remove_temporary(target, "new")
    staged, _ = temporary_paths(target / "new")
    staged.mkdir(parents=True)
    try:
        yield staged
        for path in sorted(staged.rglob("*")):
            moved = target / path.relative_to(staged)
            if path.is_dir():
                moved.mkdir(exist_ok=True)
            else:
                os.replace(path, moved)
    finally:
        _remove(staged)


def check_output(
    target: str | os.PathLike[str],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    kind: Literal["file", "folder"] = "file",
) -> None:
    """Check that a file or folder can be written at a path; call it before expensive work.

    Args:
        inputs: files that are read, which the output must not replace.

    Raises:
        InputError: ``target`` is one of the inputs, or a folder that holds one; a folder although a
            file is to be written, or vice versa; a device, a pipe or a circle of links; or it lies
            below a file.
    """
    target, real = Path(target), Path(os.path.realpath(target))
    for path in inputs:
        read = Path(os.path.realpath(path))
        if read == real:
            raise InputError(f"{target} is the input itself; name another file")
        if real in read.parents and kind == "folder":
            raise InputError(f"{target} holds the input {path}; name another folder")
    if target.exists() and target.is_dir() != (kind == "folder"):
        found = "a folder" if target.is_dir() else "a file"
        raise InputError(f"{target} is {found}; a {kind} is to be written: name another path")
    if real.is_symlink() or (target.exists() and not (target.is_file() or target.is_dir())):
        raise InputError(
            f"{target} is a device, a pipe or a circle of links, and would be replaced; name a "
            f"{kind}"
        )
    above = next(path for path in real.parents if path.exists())
    if not above.is_dir():
        raise InputError(f"{target}: {above} is a file, not a folder; name another path")


def check_replaced(folder: Path, mark: str, what: str) -> None:
    """Raise InputError for a folder with something else than what is to be replaced there.

    Args:
        mark: the file or folder in it that tells ``what`` it holds.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / mark).exists():
        raise InputError(f"{folder} is not empty and holds no {what}; name another folder")


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


def read_at_once(folder: Path, read: Callable[[], T]) -> T:
    """What ``read`` makes of the files of a folder; it is called again if another version took the
    folder's place meanwhile, so that files of two versions are never taken for one."""
    while True:
        before = _version(folder)
        try:
            found = read()
        except (OSError, ValueError):
            if _version(folder) == before:
                raise
        else:
            if _version(folder) == before:
                return found


def _version(folder: Path) -> tuple[int, int] | None:
    """Identifies a folder among those that have its path one after the other."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove_temporary(folder: Path, target: str = "*") -> None:
    """Remove the temporary files and folders that were to become ``target`` in a folder. Whoever
    calls it holds the folder, so that no running process still writes them."""
    for path in folder.glob(f".{target}.*"):
        if is_temporary(path.name):
            _remove(path)


def _remove_abandoned(target: Path) -> None:
    """Remove half-written versions of a file or folder whose processes run no longer. Versions
    moved aside stay: one may be all that is left of the former content."""
    for path in target.parent.glob(f".{escape(target.name)}.*.partial"):
        process = process_of(path.name)
        if process is not None and not is_running(process):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):  # on a read-only file system, unlinking an absent file fails
        path.unlink(missing_ok=True)
