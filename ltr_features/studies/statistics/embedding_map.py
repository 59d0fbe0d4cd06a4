"""Words or documents of an embedding on a plane spanned by the two directions in which their
vectors differ most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ltr_base.blas import one_blas_thread

NEAREST = 6


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """Words or documents and their positions.

    Attributes:
        name: of the embedding. of: what is on the map.
        labels: the words, or titles of the documents; the most important first.
        points: float64 [n, 2], the first two principal components of the unit vectors.
        variance: share of the variance that these components explain, 0 to 1.
        dimension: of the vectors.
        nearest: int64 [n, k], numbers of those with the largest cosine in all dimensions.
    """

    name: str
    of: Literal["words", "documents"]
    labels: Sequence[str]
    points: NDArray[np.float64]
    variance: float
    dimension: int
    nearest: NDArray[np.int64]


def embedding_map(
    name: str,
    of: Literal["words", "documents"],
    labels: Sequence[str],
    vectors: NDArray[np.float32],
) -> EmbeddingMap | None:
    """Compute the map; None for fewer than three non-zero vectors or a single dimension.

    Args:
        labels: the most important first. vectors: float32 [n, N]; zero rows are left out.
    """
    X = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(X, axis=1)
    has = np.flatnonzero(length > 0).tolist()
    if len(has) < 3 or X.shape[1] < 2:
        return None
    units = X[has] / length[has, None]
    with one_blas_thread():  # the same bits on any number of cores
        U, s, Vt = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
        cosines = units @ units.T
    # The sign of a component is arbitrary: its largest weight is made positive.
    signs = np.sign(Vt[np.arange(2), np.abs(Vt[:2]).argmax(axis=1)])
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, : min(NEAREST, len(has) - 1)]
    total = float((s**2).sum())
    return EmbeddingMap(
        name,
        of,
        [labels[i] for i in has],
        U[:, :2] * s[:2] * signs,
        float((s[:2] ** 2).sum() / total) if total > 0 else 0.0,
        X.shape[1],
        nearest,
    )
