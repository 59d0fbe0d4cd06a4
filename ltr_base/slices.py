"""Rows, some at a time."""

from __future__ import annotations


def slices(n: int, size: int) -> list[slice]:
    """``0:n`` in slices of ``size`` rows, 1 or more; the last one may be shorter."""
    size = max(1, size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
