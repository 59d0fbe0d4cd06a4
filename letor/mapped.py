"""Matrices in temporary files that are mapped into memory, for rows that would not fit in it."""

from __future__ import annotations

import os
import tempfile

import numpy as np
from numpy.typing import NDArray

#: Rows that are copied at a time.
_BLOCK = 2**16


def empty_matrix(shape: tuple[int, int], memory: int | None) -> NDArray[np.float32]:
    """An empty float32 matrix; one of more than ``memory`` bytes lies in a temporary file (in
    ``TMPDIR``), which is gone when the matrix is.

    Raises:
        OSError: the disk has no room for it.
    """
    if memory is None or 4 * shape[0] * shape[1] <= memory:
        return np.empty(shape, np.float32)
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a crash later
            os.posix_fallocate(file.fileno(), 0, 4 * shape[0] * shape[1])
        return np.memmap(file, np.float32, "w+", shape=shape)


def take_rows(X: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """``X[rows]``, float32 [len(rows), p], in a file of its own where X lies in one."""
    if not isinstance(X, np.memmap):
        return X[rows]
    taken = empty_matrix((len(rows), X.shape[1]), 0)
    for first in range(0, len(rows), _BLOCK):
        taken[first : first + _BLOCK] = X[rows[first : first + _BLOCK]]
    return taken
