"""Sparse matrices in the form that kernels expect, and checks of what users pass in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ltr_base.arrays import read_only
from ssi_models.kernels.sparse import Csr

_MAX_SQUARE = 1.01  # largest squared length of a unit row, with a tolerance for rounding


def check_csr(name: str, matrix: sp.csr_matrix) -> sp.csr_matrix:
    """The matrix as CSR with float32 data, int32 column numbers (ascending within each row) and
    int64 row pointers; the given matrix is not changed.

    Raises:
        TypeError: not a sparse matrix.
        ValueError: a value is NaN or infinite (the message names the row), a column number is
            outside the matrix, row pointers descend, or too many columns.
    """
    if not sp.issparse(matrix):
        raise TypeError(f"{name} must be a scipy sparse matrix [n, words], got {type(matrix)}")
    matrix = sp.csr_matrix(matrix)
    # Scipy does not check these, by which kernels would read out of bounds.
    lowest, highest = matrix.indices.min(initial=0), matrix.indices.max(initial=-1)
    if lowest < 0 or highest >= matrix.shape[1] or (np.diff(matrix.indptr) < 0).any():
        raise ValueError(
            f"{name} is damaged: it has columns {lowest} to {highest} of {matrix.shape[1]}, or row "
            "pointers that descend"
        )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(f"{name} has {matrix.shape[1]} columns; at most 2^31 - 1 are possible")
    data = matrix.data.astype(np.float32, copy=False)
    if not np.isfinite(data).all():
        row, value = _first(~np.isfinite(data), matrix.indptr, data)
        raise ValueError(f"{name}: row {row} holds {value}; weights must be finite")
    return _typed(matrix.indptr, matrix.indices, data, matrix.shape)


def check_counts(name: str, matrix: sp.csr_matrix) -> sp.csr_matrix:
    """:func:`check_csr` for counts of words.

    Raises:
        TypeError, ValueError: as :func:`check_csr`; the latter also, naming the row, if an entry is
            negative (tf-idf rows are not detected).
    """
    matrix = check_csr(name, matrix)
    if (negative := matrix.data < 0).any():
        row, value = _first(negative, matrix.indptr, matrix.data)
        raise ValueError(f"{name}: row {row} holds {value}; counts must be 0 or more")
    return matrix


def _first(wrong: NDArray[np.bool_], indptr: Any, data: NDArray[Any]) -> tuple[int, Any]:
    """The row and the value of the first wrong entry of a CSR matrix."""
    at = int(np.argmax(wrong))
    return int(np.searchsorted(indptr, at, side="right")) - 1, data[at]


def check_has_words(D: sp.csr_matrix) -> sp.csr_matrix:
    """The documents of a fit. Raises ValueError if none of them has a word."""
    if not D.data.any():  # stored zeros are no words
        raise ValueError("D has no word in any row: there is nothing to learn from")
    return D


def check_unit_rows(name: str, matrix: sp.csr_matrix) -> sp.csr_matrix:
    """:func:`check_csr` for rows of length 1 or less: unit tf-idf rows, which are shorter where
    some words of the text are unknown.

    Raises:
        TypeError, ValueError: as :func:`check_csr`; the latter also, naming the row, if one is
            longer (say, counts).
    """
    matrix = check_csr(name, matrix)
    squares = np.concatenate([[0.0], np.cumsum(np.square(matrix.data, dtype=np.float64))])
    longer = squares[matrix.indptr[1:]] - squares[matrix.indptr[:-1]] > _MAX_SQUARE
    if longer.any():
        row = int(np.flatnonzero(longer)[0])
        length = np.sqrt(squares[matrix.indptr[row + 1]] - squares[matrix.indptr[row]])
        raise ValueError(
            f"{name}: row {row} has length {length:.3g}; unit rows are expected: weight and "
            "normalise counts by ssi_models.weighting.TfIdf().fit(D).transform"
        )
    return matrix


def _typed(indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    typed = sp.csr_matrix(shape, dtype=np.float32)
    # Set directly: the constructor would cast indptr and indices to one common type.
    typed.data = np.ascontiguousarray(data, np.float32)
    typed.indices = np.ascontiguousarray(indices, np.int32)
    typed.indptr = np.ascontiguousarray(indptr, np.int64)
    return typed


def arrays(X: sp.csr_matrix) -> Csr:
    """The arrays of a checked matrix, read-only: of one type for kernels, whether the matrix is or
    not."""
    return Csr(read_only(X.indptr), read_only(X.indices), read_only(X.data))


def kept_from_changes(X: sp.csr_matrix) -> sp.csr_matrix:
    """A matrix over the same arrays, which cannot be changed through it."""
    kept = sp.csr_matrix(X.shape, dtype=X.dtype)
    kept.indptr, kept.indices, kept.data = arrays(X)
    return kept


def lengths_of(counts: sp.csr_matrix) -> NDArray[np.float64]:
    """Number of words of each row of counts: float64 [n]."""
    return np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()


def as_tensors(name: str, X: sp.csr_matrix) -> dict[str, NDArray[Any]]:
    """The three arrays of a checked matrix, keyed by their names in a file, see
    :func:`ssi_models.stored_tensors.matrix`."""
    return {f"{name}_indptr": X.indptr, f"{name}_indices": X.indices, f"{name}_data": X.data}


def of_tensors(name: str, tensors: Mapping[str, NDArray[Any]], width: int) -> sp.csr_matrix:
    """The inverse of :func:`as_tensors`, for arrays that have been checked."""
    indptr, indices, data = (tensors[f"{name}_{part}"] for part in ("indptr", "indices", "data"))
    return _typed(indptr, indices, data, (len(indptr) - 1, width))


def take_rows(X: sp.csr_matrix, rows: NDArray[np.int64]) -> sp.csr_matrix:
    """The given rows of a checked matrix, as a checked matrix."""
    lengths = X.indptr[rows + 1] - X.indptr[rows]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.repeat(X.indptr[rows] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return _typed(indptr, X.indices[entries], X.data[entries], (len(rows), X.shape[1]))


def thin_rows(X: sp.csr_matrix, share: float, rng: np.random.Generator) -> sp.csr_matrix:
    """A checked matrix without a random share of its entries; the others are multiplied by
    1 / (1 - share), so that rows keep their expected values."""
    kept = rng.random(X.nnz, np.float32) >= share
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return _typed(indptr, X.indices[kept], X.data[kept] * np.float32(1 / (1 - share)), X.shape)


def take_columns(X: sp.csr_matrix, columns: NDArray[np.int64]) -> sp.csr_matrix:
    """The given columns (ascending) of a checked matrix, renumbered, as a checked matrix."""
    place = np.full(X.shape[1], -1, np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    renumbered = place[X.indices]
    kept = renumbered >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
    return _typed(indptr, renumbered[kept], X.data[kept], (X.shape[0], len(columns)))


def with_data(X: sp.csr_matrix, data: NDArray[np.float32]) -> sp.csr_matrix:
    """A checked matrix with new values for the same entries."""
    return _typed(X.indptr, X.indices, data, X.shape)


def side_by_side(matrices: Sequence[sp.csr_matrix]) -> sp.csr_matrix:
    """Checked matrices with the same rows, joined by columns."""
    joined = sp.hstack(matrices, format="csr")
    return _typed(joined.indptr, joined.indices, joined.data, joined.shape)


def check_rows(name: str, rows: ArrayLike, limit: int) -> NDArray[np.int64]:
    """Row numbers as int64, all within 0..limit - 1.

    Raises:
        ValueError: not whole numbers along one axis, or one is outside (the message names the
            first).
    """
    given = np.asarray(rows)
    if given.ndim != 1:
        raise ValueError(f"{name} must be a list of row numbers, its shape is {given.shape}")
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"{name} must be whole row numbers, got {given.dtype}")
    array = given.astype(np.int64, copy=False)
    outside = (array < 0) | (array >= limit)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise ValueError(f"{name}[{at}] is row {array[at]}, outside 0..{limit - 1}")
    return array


def check_width(name: str, matrix: sp.csr_matrix, width: int) -> sp.csr_matrix:
    """Return the matrix; raise ValueError unless it has the width that the model was fitted on."""
    if matrix.shape[1] != width:
        raise ValueError(
            f"{name} has {matrix.shape[1]} columns, the model was fitted on {width} words; "
            "analyse the text with the model's vocabulary"
        )
    return matrix


def check_rank(rank: int, usual: int, Q: sp.csr_matrix, D: sp.csr_matrix) -> None:
    """Raise ValueError if a rank above the usual one exceeds the numbers of words and documents:
    W = U'V has at most so many dimensions."""
    most = min(Q.shape[1], *D.shape)
    if rank > max(most, usual):
        raise ValueError(
            f"rank={rank:,} is more than {most:,}, the lowest of the numbers of words and "
            f"documents, beyond which more dimensions add nothing; give {most:,} or less"
        )


def largest(weights: NDArray[np.float64], n: int) -> list[tuple[int, float]]:
    """(Position, weight) of the n largest weights, descending, without those that are 0."""
    best = np.argsort(-weights, kind="stable")[:n]
    return [(int(t), float(weights[t])) for t in best if weights[t] != 0]
