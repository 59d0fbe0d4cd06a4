"""Scorers with one weight per pair of words, which a hash function may share among pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ltr_base.slices import slices
from ssi_models.kernels.pair_weights import gather_weights, step_weights
from ssi_models.matrices import arrays, take_columns, take_rows
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch
from ssi_models.training.diagonal import DiagonalPart, Identity


class PairWeights:
    """One weight per pair of words, w[h(s, t)], h(s, t) = (s P + t) mod H, and the optimiser.

    H = rows x columns with P = columns gives every pair its own weight (the unconstrained W).
    """

    def __init__(
        self,
        values: NDArray[np.float32],
        factor: int,
        learning_rate: float,
        accumulator_start: float | None,
    ) -> None:
        self.values, self.factor = values, factor
        self.learning_rate = float(learning_rate)
        n = 0 if accumulator_start is None else len(values)
        self.accumulator = np.full(n, accumulator_start or 0.0, np.float32)
        self.active = np.zeros(0, np.bool_)

    def expand(
        self, Q: sp.csr_matrix, words: NDArray[np.int64], workers: Workers
    ) -> NDArray[np.float32]:
        """sum_s q_s w[h(s, t)] of each query for each of the words t: float32 [B, n_words]."""
        order, offsets = self._offsets(words)
        out = np.empty((Q.shape[0], len(words)), np.float32)
        q = arrays(Q)
        workers.split(
            lambda a, b: gather_weights(q, self.values, self.factor, offsets, out, a, b),
            Q.shape[0],
        )
        expanded = np.empty_like(out)
        expanded[:, order] = out
        return expanded

    def step(
        self,
        Q: sp.csr_matrix,
        words: NDArray[np.int64],
        R: NDArray[np.float32],
        workers: Workers,
    ) -> None:
        """Take a gradient step that raises sum_b q_bs R_bt w[h(s, t)]; R float32 [B, n_words]."""
        order, offsets = self._offsets(words)
        R = np.ascontiguousarray(R[:, order])
        q, H = arrays(Q), len(self.values)
        workers.run(
            lambda share, n: step_weights(
                q, R, self.values, self.accumulator, self.active, self.learning_rate,
                self.factor, offsets, H * share // n, H * (share + 1) // n,
            )
        )  # fmt: skip

    def _offsets(self, words: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        offsets = words % max(1, len(self.values))  # none if no training query has a word
        order = np.argsort(offsets, kind="stable")
        return order, offsets[order]


class PairWeightScorer(DiagonalPart):
    """f(q, d) = sum_(s, t) w[h(s, t)] q_s d_t (+ q . d).

    Args:
        Q, D: checked matrices; ``weighted_Q``, ``weighted_D``: the same texts over the columns
            that have weights (the unconstrained W leaves out words that occur in no text).
    """

    def __init__(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        weights: PairWeights,
        diagonal: Identity | None,
        workers: Workers,
        *,
        weighted_Q: sp.csr_matrix | None = None,
        weighted_D: sp.csr_matrix | None = None,
    ) -> None:
        super().__init__(Q, D, diagonal, workers)
        self.weighted_Q = Q if weighted_Q is None else weighted_Q
        self.weighted_D = D if weighted_D is None else weighted_D
        self.weights = weights

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        return {"w": self.weights.values}

    def state(self) -> dict[str, NDArray[Any]]:
        state = {"w": self.weights.values, "w_accumulator": self.weights.accumulator}
        return state | ({"active": self.weights.active} if len(self.weights.active) else {})

    def scores(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self._texts = texts = batch.texts
        K = texts.n_negatives
        self._queries = take_rows(self.weighted_Q, texts.queries)
        taken = take_rows(self.weighted_D, texts.documents)
        self._words = np.unique(taken.indices).astype(np.int64)
        self._documents = take_columns(taken, self._words)
        expanded = self.weights.expand(self._queries, self._words, self.workers)
        shared = np.ascontiguousarray((self._documents[:K] @ expanded.T).T)
        products = self._documents[texts.pair_document].multiply(expanded[texts.pair_query])
        pairs = np.asarray(products.sum(axis=1), np.float32).ravel()
        positive, negative = texts.by_pair(pairs, shared)
        if self.diagonal is not None:
            queries, documents = self.Q.rows(texts.queries), self.D.rows(texts.documents)
            diagonal = self.diagonal.scores(queries, documents, texts, self.workers)
            positive += diagonal[0]
            negative += diagonal[1]
            documents.close()
        return positive, negative

    def step(self, A: NDArray[np.float32]) -> None:
        # d/dw[h(s, t)] = sum_i q_is (sum_j C_ij d_jt)
        C = self._texts.gradients(A)
        R = np.ascontiguousarray((self._documents.T @ C.T).T, np.float32)
        self.weights.step(self._queries, self._words, R, self.workers)

    def learned_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        taken = take_rows(self.weighted_D, documents)
        words = np.unique(taken.indices).astype(np.int64)
        taken = take_columns(taken, words)
        out = np.empty((len(queries), len(documents)), np.float32)
        for rows in slices(len(queries), 64):
            part = take_rows(self.weighted_Q, queries[rows])
            expanded = self.weights.expand(part, words, self.workers)
            out[rows] = (taken @ expanded.T).T
        return out
