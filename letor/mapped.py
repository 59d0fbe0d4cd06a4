"""Memory-mapped arrays in temporary files, for data that would not fit into memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from math import prod
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ltr_base.machine import temporary_folder_named
from ltr_base.slices import slices

#: Number of rows copied at a time.
ROWS_AT_ONCE = 2**16
#: Size in bytes up to which arrays are kept in memory by default.
HELD = 2**26


def empty_array(
    shape: tuple[int, ...], dtype: DTypeLike = np.float32, *, memory: int | None = HELD
) -> NDArray[Any]:
    """An uninitialised array; one of more than ``memory`` bytes is mapped from a temporary file (in
    ``TMPDIR``), which is removed together with the array.

    Raises:
        OSError: the disk has no room for it; the error names the folder.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if memory is None or size <= memory:
        return np.empty(shape, dtype)
    with temporary_folder_named(), tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a full disk is an error now, not a crash later
            os.posix_fallocate(file.fileno(), 0, size)
        return np.memmap(file, dtype, "w+", shape=shape)


class GrowingArray:
    """A one-dimensional array that grows at its end; beyond ``memory`` bytes it is kept in a
    temporary file, like that of :func:`empty_array`.

    Args:
        dtype: type of the values. memory: limit in bytes.
    """

    def __init__(self, dtype: DTypeLike, *, memory: int = HELD) -> None:
        self._dtype, self._memory = np.dtype(dtype), memory
        self._clear()

    def _clear(self) -> None:
        self._file: IO[bytes] | None = None
        self._waiting: list[NDArray[Any]] = []
        self._n_waiting = self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, values: NDArray[Any]) -> None:
        """Append values.

        Raises:
            OSError: as :func:`empty_array`.
        """
        self._waiting.append(values.astype(self._dtype, copy=False))
        self._n_waiting += len(values)
        self._size += len(values)
        if self._n_waiting * self._dtype.itemsize > self._memory:
            self._write()

    def taken(self) -> NDArray[Any]:
        """Return all values and leave this object empty."""
        if self._file is None:
            values = np.concatenate([np.zeros(0, self._dtype), *self._waiting])
        else:
            self._write()
            # Kernels are compiled for plain arrays.
            values = np.asarray(np.memmap(self._file, self._dtype, "r+"))
            self._file.close()
        self._clear()
        return values

    def _write(self) -> None:
        with temporary_folder_named():
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  taken() closes it
            for values in self._waiting:
                self._file.write(np.ascontiguousarray(values).data)
            self._file.flush()
        self._waiting, self._n_waiting = [], 0


def take_rows(X: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """``X[rows]``, float32 [len(rows), p]; memory-mapped, from a new file, if X is."""
    return filled_like(X, (len(rows), X.shape[1]), lambda block: X[rows[block]])


def filled_like(
    X: NDArray[np.float32],
    shape: tuple[int, int],
    rows: Callable[[slice], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """A new float32 array of the given shape: ``rows(slice(None))`` or, if X is memory-mapped, a
    mapped temporary file that is filled with ``rows(block)`` for one block of rows at a time."""
    if not isinstance(X, np.memmap):
        return rows(slice(None))
    filled = empty_array(shape, memory=0)
    for block in slices(shape[0], ROWS_AT_ONCE):
        filled[block] = rows(block)
    return filled
