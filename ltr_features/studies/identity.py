"""Identities of files, independent of their location, for the keys of stages and for manifests."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.files import atomic_path, saved_json, write_json

#: Size in bytes from which a file's digest is worth keeping for later runs.
LARGE = 1 << 26
#: Nanoseconds for which a file must have been unchanged before its digest is remembered: any later
#: change then also changes its times, however coarse the file system's clock.
_REST = 2_000_000_000


class Digests:
    """SHA-256 digests of files; each file is read once as long as it does not change.

    A digest is remembered under the file's device, inode, size and times of modification and of
    change; no program can set the latter back. A file just written is digested again next time.

    Args:
        kept: JSON file where the digests of large files are kept for later runs; it is read now.
        folder: output folder, left out of the identity of an input folder that contains it.
    """

    def __init__(self, kept: Path | None = None, folder: Path | None = None) -> None:
        self.kept, self.folder = kept, folder
        self._known = {} if kept is None else saved_json(kept)
        self._large: dict[str, str] = {}

    def sha256(self, path: Path) -> str:
        """The digest of a file's content, as hexadecimal digits.

        Raises:
            InputError: the file cannot be read.
        """
        try:
            with path.open("rb") as file:
                status, now = os.fstat(file.fileno()), time.time_ns()
                state = _signature(status)
                digest = self._known.get(state) or hashlib.file_digest(file, "sha256").hexdigest()
                unchanged = _signature(os.fstat(file.fileno())) == state
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        if unchanged and now - max(status.st_mtime_ns, status.st_ctime_ns) > _REST:
            self._known[state] = digest
            if status.st_size >= LARGE:
                self._large[state] = digest
        return digest

    def identity(self, path: Path) -> dict[str, Any]:
        """Name, size and digest of a file, or of all files in a folder; only the name if the path
        does not exist. The parent folder does not matter.

        Raises:
            InputError: a file cannot be read.
        """
        name = Path(os.path.abspath(path)).name
        if path.is_dir():
            inside = {p.relative_to(path): p for p in sorted(path.rglob("*")) if p.is_file()}
            outputs = self._outputs_within(path)
            files = [
                {**self.identity(p), "name": place.as_posix()}
                for place, p in inside.items()
                if outputs is None or outputs not in place.parents
            ]
            return {"name": name, "files": files}
        if not path.is_file():
            return {"name": name}
        return {"name": name, "size": path.stat().st_size, "sha256": self.sha256(path)}

    def identities(self, files: Sequence[Path]) -> list[dict[str, Any]]:
        """Name, size and digest of each file; names are relative to the nearest folder that holds
        all files, as those of parts in the folders of days (``2026-06-01/part-0.parquet``) repeat.

        Raises:
            InputError: a file cannot be read.
        """
        paths = [Path(os.path.abspath(file)) for file in files]
        shared = set.intersection(*(set(path.parents) for path in paths))
        above = max(shared, key=lambda folder: len(folder.parts), default=None)
        return [
            self.identity(path)
            if above is None  # on several drives
            else {**self.identity(path), "name": path.relative_to(above).as_posix()}
            for path in paths
        ]

    def save(self) -> None:
        """Save the digests of the large files that were requested."""
        if self.kept is not None and self._large != saved_json(self.kept):
            with atomic_path(self.kept) as partial:
                write_json(partial, self._large)

    def _outputs_within(self, path: Path) -> Path | None:
        """Path of the output folder within a folder; None if it is elsewhere."""
        if self.folder is None:
            return None
        around, inner = Path(os.path.realpath(path)), Path(os.path.realpath(self.folder))
        return inner.relative_to(around) if around in inner.parents else None


def _signature(status: os.stat_result) -> str:
    return (
        f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"
        f"-{status.st_ctime_ns}"
    )


def files_within(inputs: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The identities in the inputs of a stage, each with its place, e.g. ``options.folder``.

    Args:
        inputs: JSON-compatible; may contain identities made by :meth:`Digests.identity`.
    """
    if isinstance(inputs, Mapping):
        if "sha256" in inputs or ("name" in inputs and "files" in inputs):
            yield place, dict(inputs)
            return
        for key, value in inputs.items():
            yield from files_within(value, f"{place}.{key}" if place else str(key))
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        for number, value in enumerate(inputs, start=1):
            yield from files_within(value, f"{place}.{number}")


def bytes_of(identity: Mapping[str, Any]) -> int:
    """Size in bytes of a file, or of all files in a folder, from its identity."""
    return sum(map(bytes_of, identity["files"])) if "files" in identity else identity["size"]


def size_text(size: float) -> str:
    """A human-readable number of bytes."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def size_of(folder: Path) -> int:
    """Size in bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
