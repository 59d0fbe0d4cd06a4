"""Cosines of linear projections: the common part of LSA, CL-LSA, OPCA and S2Net."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.projections import unit_rows
from ssi_models.matrices import arrays, check_csr
from ssi_models.parallel import Workers
from ssi_models.representation import Representation, joined, scaled
from ssi_models.training.preferences import Preferences

#: Whether column j of queries and of documents is the same word.
VOCABULARIES = ("shared", "separate")


class CosineOfProjections:
    """f(q, d) = w q . d + (1 - w) cos(A_q'q, A_d'd); the cosine is 0 where either vector is 0.

    Attributes:
        A_q_: float32 [V_q, k], row j is the projection of query word j. A_d_: float32 [V_d, k],
            the same for document words; ``A_q_`` itself if one matrix serves both sides.
    """

    threads: int | None
    A_q_: NDArray[np.float32]
    A_d_: NDArray[np.float32]

    @property
    def weight_of_words(self) -> float:
        """w, in [0, 1]."""
        return 0.0

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        w = self.weight_of_words
        dense = Representation(self._project(Q, self.A_q_))
        return joined(scaled(dense, 1 - w), scaled(Representation(sparse=Q), w)) if w else dense

    def document_representation(self, D: sp.csr_matrix) -> Representation:
        dense = Representation(self._project(D, self.A_d_))
        return joined(dense, Representation(sparse=D)) if self.weight_of_words else dense

    def _project(self, X: sp.csr_matrix, A: NDArray[np.float32]) -> NDArray[np.float32]:
        with Workers(self.threads) as workers:
            return unit_projections(X, A, workers)[0]


def unit_projections(
    X: sp.csr_matrix,
    A: NDArray[np.float32],
    workers: Workers,
    rows: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """u / |u| with u = A'x for the given rows x of a checked matrix, all by default,
    float32 [B, k], and 1 / |u|, float32 [B]; both are 0 where u is 0."""
    rows = np.arange(X.shape[0]) if rows is None else rows
    H, inverse = np.empty((len(rows), A.shape[1]), np.float32), np.empty(len(rows), np.float32)
    workers.split(lambda a, b: unit_rows(arrays(X), rows, A, H, inverse, a, b), len(rows))
    return H, inverse


def through_unit_rows(
    G: NDArray[np.float32], H: NDArray[np.float32], inverse: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The gradient by rows u, from the gradient G by rows h = u / |u|, and 1 / |u|."""
    along = np.einsum("ij,ij->i", G, H)
    return (G - along[:, None] * H) * inverse[:, None]


def transposed(X: sp.csr_matrix) -> sp.csr_matrix:
    """The transpose of a checked matrix, as a checked matrix."""
    return check_csr("transpose", X.T.tocsr())


def stacked(upper: sp.csr_matrix, lower: sp.csr_matrix, vocabularies: str) -> sp.csr_matrix:
    """Checked matrices one above the other; block-diagonal if the vocabularies are separate."""
    before = upper.shape[1] if vocabularies == "separate" else 0
    data = np.concatenate([upper.data, lower.data])
    indices = np.concatenate([upper.indices, lower.indices + np.int32(before)])
    indptr = np.concatenate([upper.indptr, upper.indptr[-1] + lower.indptr[1:]])
    shape = upper.shape[0] + lower.shape[0], before + lower.shape[1]
    return check_csr("texts", sp.csr_matrix((data, indices, indptr), shape=shape))


def pair_matrix(preferences: Preferences, sign: float) -> sp.csr_matrix:
    """P, checked CSR [n_pairs, n_queries + n_documents]: row i of P times the stacked queries and
    documents is q + sign d of relevant pair i."""
    n = len(preferences)
    columns = np.stack([preferences.query, preferences.n_queries + preferences.document], axis=1)
    values = np.tile(np.array([1, sign], np.float32), n)
    shape = (n, preferences.n_queries + preferences.n_documents)
    P = sp.csr_matrix((values, columns.ravel(), np.arange(0, 2 * n + 1, 2)), shape=shape)
    return check_csr("pairs", P)


def split_words(
    A: NDArray[np.float32], n_query_words: int, vocabularies: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(A_q, A_d) from a projection of stacked texts."""
    if vocabularies == "separate":
        return A[:n_query_words].copy(), A[n_query_words:].copy()
    return A, A
