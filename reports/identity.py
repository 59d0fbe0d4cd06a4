"""What a file is, wherever it lies: part of the keys of stages and of manifests."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from letor.errors import InputError

_LARGE = 1 << 26


def identity(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file or of all files of a folder; of files above 64 MB the time
    of change, not the digest. The folder above does not matter."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        return {
            "name": path.name,
            "files": [{**identity(p), "name": p.relative_to(path).as_posix()} for p in files],
        }
    if not path.is_file():
        return {"name": path.name}
    status = path.stat()
    if status.st_size > _LARGE:
        return {"name": path.name, "size": status.st_size, "changed": status.st_mtime_ns}
    return content(path)


def content(path: Path) -> dict[str, Any]:
    """Name, size and digest of a file, however large.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}


def size_text(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def size_of(path: Path) -> int:
    """Bytes of a file or of all files of a folder."""
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size
