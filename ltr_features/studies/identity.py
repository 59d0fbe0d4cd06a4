"""What a file is, wherever it lies: part of the keys of stages and of manifests."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.files import atomic_path, read_json

#: Bytes from which a digest is worth keeping for later runs.
LARGE = 1 << 26
#: Nanoseconds that a file must have rested: what changes it later than that changes its times too,
#: however coarse the file system's clock.
_REST = 2_000_000_000


class Digests:
    """SHA-256 of files, each read once while it does not change.

    A digest is remembered under the file's device, inode, size and both of its times, the one of
    which no program can set back; that of a file that was just written is computed again.

    Args:
        kept: JSON file where the digests of large files are kept for later runs; it is read now.
        folder: of outputs: not part of an input folder around it.
    """

    def __init__(self, kept: Path | None = None, folder: Path | None = None) -> None:
        self.kept, self.folder = kept, folder
        self._known = {} if kept is None else saved_json(kept)
        self._large: dict[str, str] = {}

    def sha256(self, path: Path) -> str:
        """The digest of a file's content, as hexadecimal digits.

        Raises:
            InputError: it cannot be read.
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
        """Name, size and digest of a file, or of all files of a folder; the name alone where there
        is neither. The folder above does not matter.

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

    def save(self) -> None:
        """Keep the digests of the large files that were asked for."""
        if self.kept is not None and self._large != saved_json(self.kept):
            with atomic_path(self.kept) as partial:
                partial.write_text(json.dumps(self._large, indent=1) + "\n", encoding="utf-8")

    def _outputs_within(self, path: Path) -> Path | None:
        """Where in a folder the outputs are; None if they are elsewhere."""
        if self.folder is None:
            return None
        around, inner = Path(os.path.realpath(path)), Path(os.path.realpath(self.folder))
        return inner.relative_to(around) if around in inner.parents else None


def _signature(status: os.stat_result) -> str:
    return (
        f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"
        f"-{status.st_ctime_ns}"
    )


def saved_json(path: Path) -> dict[str, Any]:
    """The table in a JSON file; an empty one where the file is not there or is damaged."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def files_within(inputs: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The identities in the inputs of a stage, each with its place: ``options.folder``.

    Args:
        inputs: JSON-compatible, identities of :meth:`Digests.identity` among it.
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
    """Bytes of a file or of all files of a folder, by its identity."""
    return sum(map(bytes_of, identity["files"])) if "files" in identity else identity["size"]


def size_text(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"


def size_of(path: Path) -> int:
    """Bytes of a file or of all files of a folder."""
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size
