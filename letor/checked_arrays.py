"""Checks of arrays that come from files, before a compiled kernel trusts them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from letor.errors import InputError

_BLOCK = 2**22  # values looked at in one go: a mapped file is never in memory as a whole


def check_array(
    name: str,
    array: NDArray[Any],
    dtype: DTypeLike,
    shape: tuple[int | None, ...],
    *,
    least: float | None = None,
    most: float | None = None,
    ascending: bool = False,
) -> NDArray[Any]:
    """The array, if it is what it should be.

    Args:
        name: what the message calls it: file and tensor.
        shape: a length per axis; None = any.
        least, most: bounds of every value; NaN is outside of any.
        ascending: whether no value may be less than the one before (one axis).

    Raises:
        InputError: it is of another type or shape, or a value is out of bounds or order.
    """
    if array.dtype != np.dtype(dtype):
        raise InputError(f"{name}: holds {array.dtype}, must be {np.dtype(dtype)}; it is damaged")
    if len(array.shape) != len(shape) or any(
        wanted not in (None, found) for found, wanted in zip(array.shape, shape, strict=True)
    ):
        text = " x ".join("any" if length is None else str(length) for length in shape)
        raise InputError(f"{name}: has shape {array.shape}, must be {text}; it is damaged")
    if least is None and most is None and not ascending:
        return array
    before = None
    for start, values in _blocks(array.reshape(-1)):
        bad = np.zeros(len(values), bool)
        if least is not None:
            bad |= ~(values >= least)
        if most is not None:
            bad |= ~(values <= most)
        if ascending:
            bad[1:] |= values[1:] < values[:-1]
            bad[:1] |= before is not None and values[0] < before
            before = values[-1]
        if bad.any():
            at = int(np.argmax(bad))
            raise InputError(
                f"{name}: value {start + at} is {values[at]}, must be "
                f"{_described(least, most, ascending)}; it is damaged"
            )
    return array


def check_finite(
    name: str, array: NDArray[Any], dtype: DTypeLike, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """As :func:`check_array`, for floating-point values that must all be finite."""
    largest = float(np.finfo(np.dtype(dtype)).max)
    return check_array(name, array, dtype, shape, least=-largest, most=largest)


def check_rows_rise(name: str, array: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Raise InputError unless the numbers of each row of a sparse matrix rise.

    Args:
        array: the column numbers.
        ends: int64 [rows + 1], checked: row i is ``ends[i]:ends[i + 1]``.
    """
    for start in range(0, len(array) - 1, _BLOCK):
        values = array[start : start + _BLOCK + 1]
        falls = np.flatnonzero(values[1:] <= values[:-1]) + start + 1
        within = ends[np.searchsorted(ends, falls)] != falls
        if within.any():
            at = int(falls[np.argmax(within)])
            raise InputError(
                f"{name}: value {at} is {array[at]}, must be more than the one before in its row; "
                "it is damaged"
            )


def _blocks(values: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    for start in range(0, len(values), _BLOCK):
        yield start, values[start : start + _BLOCK]


def _described(least: float | None, most: float | None, ascending: bool) -> str:
    parts = [f"{least} or more"] if least is not None else []
    parts += [f"{most} or less"] if most is not None else []
    parts += ["no less than the one before"] if ascending else []
    return " and ".join(parts)
