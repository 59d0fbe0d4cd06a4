"""The objective of S2Net over a fixed set of (query, relevant document, negatives)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.projections import tuple_losses
from ssi_models.matrices import check_csr, take_rows
from ssi_models.parallel import Workers
from ssi_models.projections.cosine import transposed, unit_projections
from ssi_models.training.candidate_lists import OwnNegatives
from ssi_models.training.embedding_table import embed
from ssi_models.training.preferences import Preferences


class TupleObjective:
    """L(A_q, A_d) = sum over (q, d+, d-) of log(1 + exp(-gamma (cos(q, d+) - cos(q, d-)))), the
    cosines being those of A_q'q and A_d'd (Gao, Toutanova, Yih, SIGIR 2011, eq. 21).

    Each relevant pair gets ``n_negatives`` random documents of the candidates, once, or, with own
    negatives, of its query's list where a draw of probability ``list_share`` says so; documents
    judged for the query at least as high as the relevant one are left out.

    Attributes:
        n_tuples: number of (q, d+, d-).
    """

    def __init__(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
        n_negatives: int,
        gamma: float,
        seed: int,
        workers: Workers,
        excluded: NDArray[np.int64] | None = None,
        own: OwnNegatives | None = None,
        list_share: float = 0.0,
    ) -> None:
        self.gamma, self.workers = float(gamma), workers
        documents = draw_negatives(
            preferences, candidates, n_negatives, seed, excluded, own, list_share
        )
        asked, self.query = np.unique(preferences.query, return_inverse=True)
        shown, places = np.unique(documents, return_inverse=True)
        self.documents = places.reshape(documents.shape)
        if len(shown) and shown[0] < 0:
            shown, self.documents = shown[1:], self.documents - 1
        self.Q, self.D = take_rows(Q, asked), take_rows(D, shown)
        self.n_tuples = int((self.documents[:, 1:] >= 0).sum())

    def loss(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]) -> tuple[float, int]:
        """(summed loss, tuples ordered wrongly or tied)."""
        losses, wrong, _ = self._losses(*(self._unit(*side)[0] for side in self._sides(A_q, A_d)))
        return losses, wrong

    def gradient(
        self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]
    ) -> tuple[float, int, NDArray[np.float32], NDArray[np.float32]]:
        """(summed loss, wrong tuples, dL/dA_q, dL/dA_d); never a word-by-word product.

        With u = A_q'q, h = u / |u| and g the gradient by h, that by u is (g - (g . h) h) / |u|
        (appendix B of the paper), 0 where u is 0.
        """
        sides = self._sides(A_q, A_d)
        (Hq, inverse_q), (Hd, inverse_d) = (self._unit(*side) for side in sides)
        loss, wrong, slopes = self._losses(Hq, Hd)
        C, Ct = self._by_query(slopes)
        gradients = []
        for (X, _), H, inverse, M, other in (
            (sides[0], Hq, inverse_q, C, Hd),
            (sides[1], Hd, inverse_d, Ct, Hq),
        ):
            G = through_unit_rows(self._times(M, other), H, inverse)
            gradients.append(-self._times(transposed(X), G))
        return loss, wrong, gradients[0], gradients[1]

    def _sides(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]):  # type: ignore[no-untyped-def]
        return (self.Q, A_q), (self.D, A_d)

    def _times(self, X: sp.csr_matrix, M: NDArray[np.float32]) -> NDArray[np.float32]:
        return embed(X, np.arange(X.shape[0]), M, self.workers)

    def _unit(
        self, X: sp.csr_matrix, A: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return unit_projections(X, np.arange(X.shape[0]), A, self.workers)

    def _losses(
        self, Hq: NDArray[np.float32], Hd: NDArray[np.float32]
    ) -> tuple[float, int, NDArray[np.float32]]:
        n = len(self.query)
        slopes = np.empty(self.documents.shape, np.float32)
        losses, counts = np.empty(n), np.empty((n, 2), np.int64)
        self.workers.split(
            lambda a, b: tuple_losses(
                Hq, Hd, self.query, self.documents, self.gamma, slopes, losses, counts, a, b
            ),
            n,
        )
        return float(losses.sum()), int(counts[:, 0].sum()), slopes

    def _by_query(self, slopes: NDArray[np.float32]) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """The slopes as a matrix of queries by documents, and its transpose."""
        used = self.documents >= 0
        query = np.broadcast_to(self.query[:, None], used.shape)[used]
        shape = self.Q.shape[0], self.D.shape[0]
        C = sp.coo_matrix((slopes[used], (query, self.documents[used])), shape=shape)
        return check_csr("slopes", C.tocsr()), check_csr("slopes", C.T.tocsr())


def through_unit_rows(
    G: NDArray[np.float32], H: NDArray[np.float32], inverse: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The gradient by rows u, from the gradient G by h = u / |u|, and 1 / |u|."""
    along = np.einsum("ij,ij->i", G, H)
    return (G - along[:, None] * H) * inverse[:, None]


def draw_negatives(
    preferences: Preferences,
    candidates: NDArray[np.int64],
    n_negatives: int,
    seed: int,
    excluded: NDArray[np.int64] | None,
    own: OwnNegatives | None = None,
    list_share: float = 0.0,
) -> NDArray[np.int64]:
    """int64 [n_pairs, 1 + n_negatives]: each pair's document and its random negatives; -1 where
    the one drawn is judged at least as high, or excluded."""
    rng = np.random.default_rng([seed, 8])
    n = len(preferences)
    documents = np.empty((n, 1 + n_negatives), np.int64)
    documents[:, 0] = preferences.document
    drawn = candidates[rng.integers(len(candidates), size=(n, n_negatives))]
    # Pairs are sorted by query and document, so that their keys ascend.
    width = preferences.n_documents
    keys = preferences.query * width + preferences.document
    wanted = preferences.query[:, None] * width + drawn
    at = np.minimum(np.searchsorted(keys, wanted), n - 1)
    barred = (keys[at] == wanted) & (preferences.grade[at] >= preferences.grade[:, None])
    if excluded is not None:
        barred |= drawn == excluded[preferences.query][:, None]
    documents[:, 1:] = np.where(barred, -1, drawn)
    if own is not None:
        listed = own.draw(preferences.query, preferences.grade, n_negatives, rng)
        chosen = (rng.random(listed.shape) < list_share) & (own.sizes(preferences.query) > 0)[
            :, None
        ]
        documents[:, 1:] = np.where(chosen, listed, documents[:, 1:])
    return documents
