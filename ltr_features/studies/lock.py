"""A lock that lets only one run at a time use an output folder."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.studies.identity import saved_json

#: Note that names the holder of the folder; removed when the run ends. The lock itself is on a
#: second file, which stays, because a locked file cannot be read on some systems.
LOCK = ".lock"
LOCKED = ".locked"


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Hold a folder while the block runs.

    The operating system releases its lock on a file when the process ends. So the note of a killed
    process is never mistaken for that of a running one, even if its process number is in use again.

    Yields:
        A message if the lock of a dead process was taken over, else "".

    Raises:
        InputError: another process holds the folder, or one on another host may hold it.
    """
    note = folder / LOCK
    lock = _acquired(folder / LOCKED, note)
    try:
        message = _taken_over(note)
        try:
            yield message
        finally:
            note.unlink(missing_ok=True)
    finally:
        lock.release()


def _acquired(path: Path, note: Path) -> BaseFileLock:
    for file in (path, note):
        if file.is_symlink() or file.is_dir():
            raise InputError(_not_opened(file, "is a link or a folder"))
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        holder = _holder(note)
        raise InputError(
            f"{path.parent}: a run is going on there (process {holder.get('process', '?')} on "
            f"{holder.get('host', 'this machine')}); wait for it, or name another output folder"
        ) from None
    except OSError as error:
        raise InputError(_not_opened(path, str(error.strerror))) from None
    return lock


def _not_opened(path: Path, reason: str) -> str:
    return (
        f"{path}: cannot be opened to hold the folder ({reason}); remove it if it is a link or a "
        "folder"
    )


def _taken_over(note: Path) -> str:
    """Write the present holder into the note; return a message about the former one, if any."""
    former, host = _holder(note), socket.gethostname()
    if former.get("host", host) != host:
        raise InputError(
            f"{note.parent}: a run of another machine, process {former['process']} on "
            f"{former['host']}, holds this folder; if it has ended, remove {note}"
        )
    with atomic_path(note) as partial:
        text = json.dumps({"process": os.getpid(), "host": host})
        partial.write_text(f"{text}\n", encoding="utf-8")
    if not former:
        return ""
    return (
        f"{note.parent}: process {former['process']} ended without finishing; continuing from there"
    )


def _holder(note: Path) -> dict[str, Any]:
    """The holder named in the note; empty if there is no valid note."""
    found = saved_json(note)
    return found if {"process", "host"} <= set(found) else {}
