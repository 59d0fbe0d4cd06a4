"""What is in files and folders, when it was written, and whether two runs left the same."""

from __future__ import annotations

from pathlib import Path


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of each file, by its path within the folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in written(folder)}


def different(one: Path, other: Path) -> set[str]:
    """Paths within the folders of the files that only one has, or that have other bytes."""
    a, b = contents(one), contents(other)
    return {name for name in {**a, **b} if a.get(name) != b.get(name)}


def unwrapped(path: Path) -> str:
    """The text of a file without line ends."""
    return " ".join(path.read_text(encoding="utf-8").split())


def written(folder: Path, pattern: str = "*") -> dict[Path, int]:
    """When each file whose name fits the pattern was written."""
    files = (path for path in folder.rglob(pattern) if path.is_file())
    return {path: path.stat().st_mtime_ns for path in files}
