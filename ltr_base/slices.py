"""Processing of rows a block at a time."""

from __future__ import annotations


def slices(n: int, size: int) -> list[slice]:
    """Split ``0:n`` into slices of ``size`` rows (at least 1); the last one may be shorter."""
    size = max(1, size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
