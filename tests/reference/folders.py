"""Whether two runs left the same."""

from __future__ import annotations

from pathlib import Path


def different(one: Path, other: Path) -> set[str]:
    """Paths within the folders of the files that only one has, or that have other bytes."""
    files = {
        path.relative_to(folder).as_posix()
        for folder in (one, other)
        for path in folder.rglob("*")
        if path.is_file()
    }

    def content(path: Path) -> bytes | None:
        return path.read_bytes() if path.is_file() else None

    return {file for file in files if content(one / file) != content(other / file)}
