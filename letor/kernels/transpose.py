"""Columns to rows, in tiles that stay in the cache."""

from __future__ import annotations

import numba as nb

_TILE = 64


@nb.njit(cache=True, nogil=True)
def transpose(columns, rows):
    """rows[i, j] = columns[j, i]; float32 [p, n] and [n, p]."""
    p, n = columns.shape
    for start in range(0, n, _TILE):
        for i in range(start, min(start + _TILE, n)):
            for j in range(p):
                rows[i, j] = columns[j, i]
