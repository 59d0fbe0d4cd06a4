"""A lock that lets only one run at a time write to a folder or file."""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from letor.errors import InputError
from letor.files import LOCK, LOCKED, atomic_path, saved_json


@contextmanager
def locked(target: Path) -> Iterator[str]:
    """Hold a folder while the block runs, or a file, whose lock is then beside it.

    The operating system releases its lock on a file when the process ends. So the note of a killed
    process is never mistaken for that of a running one, even if its process number is in use again.

    Yields:
        A message if the lock of a dead process was taken over, else "".

    Raises:
        InputError: another process holds it, or one on another host may hold it.
    """
    inside = target.is_dir()
    note, path = (
        target / name if inside else target.with_name(f".{target.name}{name}")
        for name in (LOCK, LOCKED)
    )
    lock = _acquired(target, path, note)
    try:
        message = _taken_over(target, note)
        try:
            yield message
        finally:
            note.unlink(missing_ok=True)
    finally:
        if not inside:  # beside a file it would be litter; who has it open is refused all the same
            with suppress(OSError):
                path.unlink()
        lock.release()


def _acquired(target: Path, path: Path, note: Path) -> BaseFileLock:
    for file in (path, note):
        if file.is_symlink() or file.is_dir():
            raise InputError(
                f"{file}: cannot be opened to keep other runs out; remove it: it is a link or a "
                "folder"
            )
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        holder = _holder(note)
        raise InputError(
            f"{target}: a run is going on there (process {holder.get('process', '?')} on "
            f"{holder.get('host', 'this machine')}); wait until it has ended, or write elsewhere"
        ) from None
    except OSError as error:
        denied = error.errno in (errno.EACCES, errno.EPERM) and not path.exists()
        if denied or error.errno == errno.EROFS:
            raise InputError(f"{target}: cannot be written ({error.strerror})") from None
        raise InputError(
            f"{path}: cannot be opened to keep other runs out ({error.strerror}); if it is another "
            "user's, write elsewhere"
        ) from None
    return lock


def _taken_over(target: Path, note: Path) -> str:
    """Write the present holder into the note; return a message about the former one, if any."""
    former, host = _holder(note), socket.gethostname()
    if former.get("host", host) != host:
        raise InputError(
            f"{target}: a run of another machine, process {former['process']} on "
            f"{former['host']}, is going on there; if it has ended, remove {note}"
        )
    with atomic_path(note) as partial:
        text = json.dumps({"process": os.getpid(), "host": host})
        partial.write_text(f"{text}\n", encoding="utf-8", newline="\n")
    if not former:
        return ""
    return f"{target}: process {former['process']} ended without finishing; continuing from there"


def _holder(note: Path) -> dict[str, Any]:
    """The holder named in the note; empty if there is no valid note."""
    found = saved_json(note)
    return found if {"process", "host"} <= set(found) else {}
