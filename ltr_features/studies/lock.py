"""One run at a time in a folder."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from letor.errors import InputError

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Hold a folder while the block runs.

    The file ``.lock`` inside names the process and its host. The operating system's lock on that
    file ends with the process, so that what a killed one left is told from what a running one
    holds, whatever the number of the process is now.

    Yields:
        What is worth saying: that the lock of a dead process was taken over; else nothing.

    Raises:
        InputError: another process holds the folder, or one of another host may hold it.
    """
    path = folder / LOCK
    descriptor = _opened(path)
    try:
        said = _taken_over(path, descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    try:
        yield said
    finally:
        path.unlink(missing_ok=True)  # while it is still held: nobody takes a file that goes
        os.close(descriptor)


def _opened(path: Path) -> int:
    """The file, held by this process and by nobody else."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be opened to hold the folder ({error.strerror}); remove it if it "
                "is a link or a folder"
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(path)
            os.close(descriptor)
            raise InputError(
                f"{path.parent}: a run is going on there (process {holder.get('process', '?')} on "
                f"{holder.get('host', 'this machine')}); wait for it, or name another output folder"
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        os.close(descriptor)  # its holder ended, and removed it, between our two steps


def _taken_over(path: Path, descriptor: int) -> str:
    """Write who holds the file now; what is to be said of the former holder."""
    former, host = _holder(path), socket.gethostname()
    if former.get("host", host) != host:
        raise InputError(
            f"{path.parent}: a run of another machine, process {former['process']} on "
            f"{former['host']}, holds this folder; if it has ended, remove {path}"
        )
    text = json.dumps({"process": os.getpid(), "host": host}) + "\n"
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
    if not former:
        return ""
    return (
        f"{path.parent}: process {former['process']} ended without finishing; going on from there"
    )


def _holder(path: Path) -> dict[str, Any]:
    """What the file says; nothing where it says nothing."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and {"process", "host"} <= set(found) else {}
