"""Files: JSON, arrays, and outputs that get their final name only once they are complete."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.machine import is_temporary, temporary_paths
from ltr_base.outputs import named_after, remove, replacement

#: Note in a folder that names the run that holds it, removed when the run ends, see
#: :mod:`letor.lock`. The lock itself is on a second file, which stays in a folder, because a locked
#: file cannot be read on some systems.
LOCK, LOCKED = ".lock", ".locked"
T = TypeVar("T")


def check_is_file(path: Path) -> None:
    """Raise InputError, which says what there is instead, if a path is not that of a file."""
    if not path.is_file():
        found = "a folder, not a file" if path.is_dir() else "no such file"
        if path.exists() and not path.is_dir():
            found = "a pipe or a device, not a file: files are read more than once; save it as one"
        raise InputError(f"{path}: {found}")


def read_json(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not JSON in UTF-8, or is nested too deeply for Python; the error names it.
    """
    return parse_json(path.read_bytes(), path.name)


def parse_json(content: bytes, name: str) -> Any:
    """Parse the content of a JSON file of that name, see :func:`read_json`."""
    try:
        return json.loads(content.decode("utf-8"))
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{name} is not JSON in UTF-8: {error}") from None


def write_json(path: Path, content: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Write a JSON file in UTF-8, indented; ``default`` makes other objects JSON-compatible."""
    text = json.dumps(content, indent=1, ensure_ascii=False, default=default)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


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
    """Yield a temporary path beside ``target``; rename it to ``target`` if the block succeeds, see
    :func:`ltr_base.outputs.replacement`.

    The caller creates a file (or, by ``kind``, a folder) at the yielded path.

    Raises:
        InputError: see :func:`check_output`; or the folder is the current one, or above it.
        OSError: the parent folder cannot be created or written.
    """
    check_output(target, kind=kind)
    if kind == "folder":
        _check_not_current(Path(target))
    with replacement(target) as temporary:
        yield temporary


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder in ``target``, whose files move into ``target``, over their
    namesakes, if the block succeeds; else they are removed. Other files there stay.

    For files that belong together, in a folder that has more than these. The caller holds the
    folder, see :func:`letor.lock.locked`: what a killed process left there is removed.
    """
    remove_temporary(target)
    staged, _ = temporary_paths(target / "new")
    staged.mkdir(parents=True)
    try:
        with named_after(staged, target):
            yield staged
            for path in sorted(staged.rglob("*")):
                moved = target / path.relative_to(staged)
                if path.is_dir():
                    moved.mkdir(exist_ok=True)
                else:
                    os.replace(path, moved)
    finally:
        remove(staged)


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
            below a file, or where nothing can be written.
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
    if not os.access(above, os.W_OK | os.X_OK):
        raise InputError(
            f"{target}: nothing can be written in {above} (no permission, or a read-only file "
            "system); name another path"
        )


def check_replaced(folder: Path, mark: str, what: str) -> None:
    """Raise InputError for a folder with something else than what is to be replaced there, and for
    the current folder, which cannot be replaced.

    Args:
        mark: the file or folder in it that tells ``what`` it holds.
    """
    _check_not_current(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / mark).exists():
        raise InputError(f"{folder} is not empty and holds no {what}; name another folder")


def _check_not_current(folder: Path) -> None:
    """Raise InputError for the current folder or one above it: who stands there would be nowhere
    after another folder took its place."""
    if folder.is_dir() and Path.cwd().is_relative_to(folder.resolve()):
        raise InputError(
            f"{folder} is the current folder, or one above it, and would be replaced as a whole: "
            "name another folder"
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


def remove_temporary(folder: Path) -> None:
    """Remove the temporary files and folders in a folder. Whoever calls it holds the folder, so
    that no running process still writes them."""
    for path in folder.glob(".*"):
        if is_temporary(path.name):
            remove(path)
