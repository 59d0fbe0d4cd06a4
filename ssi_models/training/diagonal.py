"""The diagonal part of a matching matrix, q'Dd: identity or learned weights, one per word."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.sparse import diagonal_gradient, lexical_products, pair_products
from ssi_models.matrices import arrays, take_rows, with_data
from ssi_models.parallel import Workers
from ssi_models.training.batches import Texts
from ssi_models.training.embedding_table import BatchRows, words_of_a_text


class Identity:
    """q . d."""

    fixed = True

    def weigh(self, Q: sp.csr_matrix) -> sp.csr_matrix:
        """The query rows, multiplied by the diagonal."""
        return Q

    def scores(
        self, queries: BatchRows, documents: BatchRows, texts: Texts, workers: Workers
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """q_b . D d of each pair: with its positive [B], with its negatives [B, K + k].

        ``queries`` and ``documents`` are the rows of the batch's distinct texts.
        """
        q = arrays(self.weigh(take_rows(queries.space.X, queries.rows)))
        K, place = texts.n_negatives, documents.space.place
        negative = np.zeros((len(queries.rows), K), np.float32)
        pairs = np.zeros(len(texts.pair_query))
        paired, d = documents.rows[texts.pair_document], documents.space.arrays
        words, starts, owner, value = documents.by_word
        matches = len(q[1]) * len(owner) / max(1, len(words))
        workers.split(
            lambda a, b: lexical_products(*q, place, starts, owner, value, K, negative, a, b),
            len(negative),
            cost=8 * matches,
        )
        workers.split(
            lambda a, b: pair_products(
                *q, *d, texts.pair_query, paired, np.zeros(len(place)), pairs, a, b
            ),
            len(pairs),
            cost=8 * len(paired) * words_of_a_text(documents.space.X),
        )
        return texts.by_pair(pairs.astype(np.float32), negative)

    def ascend(
        self, queries: BatchRows, documents: BatchRows, C: NDArray[np.float32], workers: Workers
    ) -> None:
        """Climb the sum of C_ij q_i . D d_j; the identity does not."""

    def state(self) -> dict[str, NDArray[Any]]:
        return {}


class Diagonal(Identity):
    """q'Dd with learned D (float32 [V], from 1 on) and an AdaGrad accumulator per word."""

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

    def ascend(
        self, queries: BatchRows, documents: BatchRows, C: NDArray[np.float32], workers: Workers
    ) -> None:
        q, d = queries.by_word, documents.by_word
        gradient = np.empty(len(q[0]))
        place = documents.space.place
        matches = len(q[2]) * len(d[2]) / max(1, len(d[0]))
        workers.split(
            lambda a, b: diagonal_gradient(*q, place, *d[1:], C, gradient, a, b),
            len(q[0]),
            cost=8 * matches,
        )
        words = q[0]
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
