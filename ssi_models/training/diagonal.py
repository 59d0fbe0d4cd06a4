"""The diagonal part of a matching matrix, q'Dd: identity or learned weights, one per word."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.sparse import diagonal_gradient, diagonal_products, pair_products
from ssi_models.matrices import arrays, take_rows, with_data
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch, Texts
from ssi_models.training.embedding_table import BatchView, TextMatrix, words_of_a_text


class Identity:
    """q . d."""

    fixed = True

    def weigh(self, Q: sp.csr_matrix) -> sp.csr_matrix:
        """The query rows, multiplied by the diagonal."""
        return Q

    def scores(
        self, queries: BatchView, documents: BatchView, texts: Texts, workers: Workers
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """q_b . D d of each pair b with its positive [B] and with its negatives [B, K + k].

        ``queries`` and ``documents`` are the rows of the batch's distinct texts.
        """
        q = arrays(self.weigh(take_rows(queries.space.X, queries.rows)))
        K, place = texts.n_negatives, documents.space.place
        negative = np.zeros((len(queries.rows), K), np.float32)
        pairs = np.zeros(len(texts.pair_query))
        paired, d = documents.rows[texts.pair_document], documents.space.arrays
        by_term = documents.by_term
        matches = len(q.indices) * len(by_term.owner) / max(1, len(by_term.words))
        workers.split(
            lambda a, b: diagonal_products(q, by_term, place, K, negative, a, b),
            len(negative),
            cost=8 * matches,
        )
        workers.split(
            lambda a, b: pair_products(
                q, d, texts.pair_query, paired, np.zeros(len(place)), pairs, a, b
            ),
            len(pairs),
            cost=8 * len(paired) * words_of_a_text(documents.space.X),
        )
        return texts.by_pair(pairs.astype(np.float32), negative)

    def step(
        self, queries: BatchView, documents: BatchView, C: NDArray[np.float32], workers: Workers
    ) -> None:
        """Take a gradient step that raises the sum of C_ij q_i . D d_j; the identity takes none."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {}


class Diagonal(Identity):
    """q'Dd with learned D (float32 [V], initially 1) and an AdaGrad accumulator per word."""

    fixed = False

    def __init__(
        self, values: NDArray[np.float32], learning_rate: float, accumulator_start: float | None
    ) -> None:
        self.values = values
        self.learning_rate = learning_rate
        self.adaptive = accumulator_start is not None
        n = len(values) if self.adaptive else 0
        self.accumulator = np.full(n, accumulator_start or 0.0)

    def weigh(self, Q: sp.csr_matrix) -> sp.csr_matrix:
        return weigh(Q, self.values)

    def step(
        self, queries: BatchView, documents: BatchView, C: NDArray[np.float32], workers: Workers
    ) -> None:
        q, d = queries.by_term, documents.by_term
        words, place = q.words, documents.space.place
        gradient = np.empty(len(words))
        matches = len(q.owner) * len(d.owner) / max(1, len(d.words))
        workers.split(
            lambda a, b: diagonal_gradient(q, d, place, C, gradient, a, b),
            len(words),
            cost=8 * matches,
        )
        step = np.full(len(words), self.learning_rate)
        if self.adaptive:
            self.accumulator[words] += gradient**2
            step /= np.sqrt(self.accumulator[words])
        self.values[words] += (step * gradient).astype(np.float32)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"diagonal": self.values, "diagonal_accumulator": self.accumulator}


def weigh(Q: sp.csr_matrix, diagonal: NDArray[np.float32]) -> sp.csr_matrix:
    """The rows of a checked matrix, multiplied by a diagonal matrix."""
    return with_data(Q, Q.data * diagonal[Q.indices])


class DiagonalPart:
    """Base class of scorers that may have a diagonal part q'Dd.

    Args:
        Q, D: checked matrices. diagonal: the diagonal, or None. workers: threads.
    """

    diagonal: Identity | None

    def __init__(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, diagonal: Identity | None, workers: Workers
    ) -> None:
        self.Q, self.D = TextMatrix(Q), TextMatrix(D)
        self.diagonal, self.workers = diagonal, workers
        self._open: list[BatchView] = []  # of the batch scored last, until its step

    def _close(self) -> None:
        for rows in self._open:
            rows.close()
        self._open = []

    def diagonal_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """q'Dd of all given queries and documents: float32 [m, p]; None without a diagonal part."""
        if self.diagonal is None:
            return None
        q = arrays(self.diagonal.weigh(take_rows(self.Q.X, queries)))
        out = np.zeros((len(queries), len(documents)), np.float32)
        rows: BatchView = self.D.rows(documents)
        by_term, place, n = rows.by_term, self.D.place, len(documents)
        self.workers.split(
            lambda a, b: diagonal_products(q, by_term, place, n, out, a, b),
            len(queries),
        )
        rows.close()
        return out


class DiagonalScorer(DiagonalPart):
    """f(q, d) = q'Dd."""

    diagonal: Identity

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        return {"diagonal": self.diagonal.state()["diagonal"]}

    def state(self) -> dict[str, NDArray[Any]]:
        return self.diagonal.state()

    def scores(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self._texts = texts = batch.texts
        self._close()
        self._open = [self.Q.rows(texts.queries), self.D.rows(texts.documents)]
        queries, documents = self._open
        return self.diagonal.scores(queries, documents, texts, self.workers)

    def step(self, A: NDArray[np.float32]) -> None:
        queries, documents = self._open
        self.diagonal.step(queries, documents, self._texts.gradients(A), self.workers)
        self._close()

    def learned_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        return None
