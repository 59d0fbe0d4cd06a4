"""Expected form of the arrays in a model file, checked on reading, before kernels rely on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MORE = " + 1"


class Tensor(NamedTuple):
    """The expected form of an array of a model.

    Attributes:
        shape: a size per axis: a number, or a name, which stands for the same size in all arrays
            of the model. ``words`` and ``query_words`` are the widths of its matrices.
            "words + 1" is one more, "words?" may also be 0.
        dtype: type of the values; floating-point values must be finite.
        below: for arrays of indices: the size that every value must be less than.
        least: for arrays of indices: the smallest value allowed.
        ascending: whether no value may be less than the one before it.
        ends: for the row pointers of a sparse matrix: the size that they rise to from 0.
    """

    shape: tuple[str | int, ...]
    dtype: str = "float32"
    below: str = ""
    least: int = 0
    ascending: bool = False
    ends: str = ""


def matrix(name: str, n_rows: str, n_columns: str) -> dict[str, Tensor]:
    """The three arrays of a sparse matrix in CSR format."""
    return {
        f"{name}_data": Tensor((f"{name} entries",)),
        f"{name}_indices": Tensor((f"{name} entries",), "int32", below=n_columns),
        f"{name}_indptr": Tensor((f"{n_rows} + 1",), "int64", ends=f"{name} entries"),
    }


def check_tensors(
    arrays: Mapping[str, NDArray[Any]], expected: Mapping[str, Tensor], **sizes: int
) -> None:
    """Raise ValueError naming an array that is missing or not as expected.

    Args:
        sizes: sizes that are known beforehand, by name.
    """
    for name, tensor in expected.items():
        if name not in arrays:
            raise ValueError(f"array {name} is missing")
        array = arrays[name]
        if array.dtype != tensor.dtype or array.ndim != len(tensor.shape):
            raise ValueError(
                f"array {name} holds {array.dtype} with {array.ndim} axes, must hold "
                f"{tensor.dtype} with {len(tensor.shape)}"
            )
        for length, wanted in zip(array.shape, tensor.shape, strict=True):
            _check_size(name, length, wanted, sizes)
    for name, tensor in expected.items():
        _check_values(name, arrays[name], tensor, sizes)


def _check_size(name: str, length: int, wanted: str | int, sizes: dict[str, int]) -> None:
    if isinstance(wanted, str):
        if wanted.endswith("?"):
            if length == 0:
                return
            wanted = wanted[:-1]
        sizes.setdefault(wanted.removesuffix(_MORE), length - wanted.endswith(_MORE))
        wanted = _size(wanted, sizes)
    if length != wanted:
        raise ValueError(f"array {name} has length {length}, must have {wanted}")


def _size(name: str, sizes: Mapping[str, int]) -> int:
    return sizes[name.removesuffix(_MORE)] + name.endswith(_MORE)


def _check_values(name: str, array: NDArray[Any], tensor: Tensor, sizes: Mapping[str, int]) -> None:
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError(f"array {name} holds a value that is not finite")
        return
    limit = tensor.below or tensor.ends
    if limit and array.size:
        most = _size(limit, sizes) - (not tensor.ends)
        if array.min() < tensor.least or array.max() > most:
            raise ValueError(
                f"array {name} holds {array.min()} to {array.max()}, must be {tensor.least} to "
                f"{most}"
            )
    if (tensor.ascending or tensor.ends) and (array[1:] < array[:-1]).any():
        raise ValueError(f"array {name} is not ascending")
    if tensor.ends and (array[0], array[-1]) != (0, sizes[tensor.ends]):
        raise ValueError(f"array {name} must rise from 0 to {sizes[tensor.ends]}")
