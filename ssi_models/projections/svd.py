"""The leading right singular vectors of a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ltr_base.blas import one_blas_thread
from ltr_base.slices import slices
from ssi_models.parallel import Workers
from ssi_models.projections.cosine import transposed
from ssi_models.training.embedding_table import embed

#: Directions beyond those requested, and passes over the matrix and its transpose.
OVERSAMPLING, PASSES = 20, 5
_SMALLEST = 1e-6  # singular values below this share of the largest count as 0
_ROWS = 2**16  # documents can be many: float64 copies are made of so many at a time


def right_singular_vectors(
    factors: Sequence[sp.csr_matrix], rank: int, seed: int, workers: Workers
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """V_k and the singular values of X ~ U_k S_k V_k', X being a product of sparse matrices.

    Randomised subspace iteration on the shorter side with dynamic shifts (Feng, Yu, Xie, Tang:
    "Algorithm 1043: Faster randomized SVD with dynamic shifts", ACM TOMS 50(2), 2024): exact if
    the rank plus the oversampling reaches the rank of X. The sign of each vector is such that its
    entry of the largest magnitude (the first of equal ones) is positive.

    Args:
        factors: checked matrices whose product (never formed) is X [n, V].
        rank: number of vectors; fewer are returned if X has a lower rank.

    Returns:
        float32 [V, r], orthonormal columns; float64 [r], descending. The same bytes for any
        number of threads.
    """
    shape = factors[0].shape[0], factors[-1].shape[1]
    turned = shape[0] > shape[1]
    transposes = [transposed(X) for X in reversed(factors)]
    short, long = (transposes, factors) if turned else (factors, transposes)
    width = min(rank + OVERSAMPLING, *shape)
    rng = np.random.default_rng([seed, 7])
    Y: NDArray[np.floating] = rng.standard_normal((min(shape), width), np.float32)
    # One thread: sums of a multi-threaded BLAS depend on the number of threads.
    with one_blas_thread():
        (basis, _), shift = orthonormal(Y), np.float32(0)
        for _ in range(PASSES):
            Y = _times(short, _times(long, basis, workers), workers) - shift * basis
            basis, smallest = orthonormal(Y)
            # The eigenvalues are 0 or more: subtracting a shift of at most half the smallest one
            # wanted increases their ratios.
            shift = max(shift, (shift + smallest) / 2)
        B = _times(long, basis, workers)
        values, W = np.linalg.eigh(
            sum(B[rows].T.astype(np.float64) @ B[rows] for rows in slices(len(B), _ROWS))
        )
        s = np.sqrt(np.maximum(values[::-1][:rank], 0))
        kept = s > _SMALLEST * max(s[0], np.finfo(np.float32).tiny)
        s, W = s[kept], W[:, ::-1][:, :rank][:, kept]
        V = basis @ W if turned else (B @ W) / s
    return with_signs(V), s


def singular_start(
    factors: Sequence[sp.csr_matrix], rank: int, seed: int, workers: Workers, scale: float = 1.0
) -> NDArray[np.float32]:
    """Initial embeddings, float32 [V, r]: the :func:`right_singular_vectors`, multiplied so that
    their rows have the root mean square length ``scale``."""
    A, _ = right_singular_vectors(factors, rank, seed, workers)
    return A * np.float32(scale * np.sqrt(len(A) / max(1, A.shape[1])))


def orthonormal(Y: NDArray[np.floating]) -> tuple[NDArray[np.float32], np.float32]:
    """(A basis of the columns of Y [n, k], the smallest of their singular values).

    Uses the eigenvectors of Y'Y, which takes a fraction of the time of a QR decomposition if n is
    much larger than k (eigSVD of the paper above). Directions with a negligible singular value are
    left out, so there may be fewer than k.
    """
    Y64 = Y.astype(np.float64)
    values, W = np.linalg.eigh(Y64.T @ Y64)
    values = np.maximum(values, np.finfo(np.float64).tiny)
    kept = values >= _SMALLEST**2 * values[-1]
    basis = Y64 @ (W[:, kept] / np.sqrt(values[kept]))
    return basis.astype(np.float32), np.float32(np.sqrt(values[0]))


def with_signs(V: NDArray[np.floating]) -> NDArray[np.float32]:
    """Columns whose entry of the largest magnitude (the first of equal ones) is positive."""
    if not V.size:
        return np.ascontiguousarray(V, np.float32)
    largest = V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])]
    return np.ascontiguousarray(V * np.where(largest < 0, -1, 1), np.float32)


def _times(
    factors: Sequence[sp.csr_matrix], M: NDArray[np.floating], workers: Workers
) -> NDArray[np.float32]:
    M = np.ascontiguousarray(M, np.float32)
    for X in reversed(factors):
        M = embed(X, M, workers)
    return M
