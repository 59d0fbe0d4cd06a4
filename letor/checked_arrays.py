"""Checks of arrays that are read from files or given, before compiled kernels rely on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from letor.errors import InputError
from letor.string_array import StringArray
from ltr_base.slices import slices

_BLOCK = 2**22  # values checked at a time, so that a mapped file is never in memory as a whole


def as_array(name: str, given: Any, dtype: DTypeLike) -> Any:
    """A given list or series as an array of a type, as rows are found by position; arrays of that
    type, string arrays and None are returned as they are.

    Raises:
        InputError: integers are wanted, and others given.
    """
    if given is None or isinstance(given, StringArray):
        return given
    array = given if isinstance(given, np.ndarray) else np.asarray(given)
    if np.dtype(dtype).kind == "i" and array.dtype.kind not in "iu":
        raise InputError(f"{name} must be an array of integers, got {array.dtype}")
    if array.dtype.kind in "mM":  # a missing time would become the lowest number
        return np.where(np.isnat(array), np.nan, array.astype(dtype)).astype(dtype)
    return array.astype(dtype, copy=False)


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
    """Return the array if its type, shape and values are as expected.

    Args:
        name: file and tensor, for the message.
        shape: expected length of each axis; None = any.
        least, most: inclusive bounds of all values; NaN violates either.
        ascending: whether values must not decrease (for arrays with one axis).

    Raises:
        InputError: the type or shape differs, or a value is out of bounds or out of order.
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
    flat, before = array.reshape(-1), None
    for block in slices(array.size, _BLOCK):
        values = flat[block]
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
            first = int(np.argmax(bad))
            raise InputError(
                f"{name}: value {block.start + first} is {values[first]}, must be "
                f"{_described(least, most, ascending)}; it is damaged"
            )
    return array


def check_finite(
    name: str, array: NDArray[Any], dtype: DTypeLike, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """Like :func:`check_array`, for floating-point values that must all be finite."""
    largest = float(np.finfo(np.dtype(dtype)).max)
    return check_array(name, array, dtype, shape, least=-largest, most=largest)


def check_rows_rise(name: str, array: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Raise InputError unless column numbers increase within each row of a sparse matrix.

    Args:
        array: the column numbers of all rows.
        ends: int64 [rows + 1], already checked; row i is ``ends[i]:ends[i + 1]``.
    """
    for start in range(0, len(array) - 1, _BLOCK):
        values = array[start : start + _BLOCK + 1]
        falls = np.flatnonzero(values[1:] <= values[:-1]) + start + 1
        within = ends[np.searchsorted(ends, falls)] != falls
        if within.any():
            first = int(falls[np.argmax(within)])
            raise InputError(
                f"{name}: value {first} is {array[first]}, must be greater than the one before it "
                "in its row; it is damaged"
            )


def _described(least: float | None, most: float | None, ascending: bool) -> str:
    parts = [f"{least} or more"] if least is not None else []
    parts += [f"{most} or less"] if most is not None else []
    parts += ["no less than the one before"] if ascending else []
    return " and ".join(parts)
