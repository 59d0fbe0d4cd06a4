"""Trainable scorers of a batch: queries against their positives and negatives.

All that the training loop knows about a model is its scorer, which scores a batch and takes a
gradient step that raises sum_bk A_bk (f(q_b, d+_b) - f(q_b, d-_bk)), where A are the gradients of
the loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import take_columns
from ssi_models.parallel import Workers
from ssi_models.projections.cosine import through_unit_rows
from ssi_models.training.batches import Batch
from ssi_models.training.diagonal import DiagonalPart, Identity
from ssi_models.training.embedding_table import BatchView, EmbeddingTable, TextMatrix


class Scorer(Protocol):
    """The interface that training needs from a model."""

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        """The model's tensors by name, not copied."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that training changes, parameters and optimiser, not copied."""

    def scores(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """f(q_b, d+_b), float32 [B], and f(q_b, d-_bk), float32 [B, K + k], for the K negatives
        that all pairs share and the k own negatives of pair b."""

    def step(self, A: NDArray[np.float32]) -> None:
        """Take a step for the batch scored last, given gradients A [B, K + k], all >= 0."""

    def diagonal_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """The diagonal part of f, float32 [m, p]."""

    def learned_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32] | None:
        """The rest of f, float32 [m, p]."""


class Polynomial:
    """Documents as products of linear embeddings (Bai et al., "Polynomial semantic indexing").

    A document has degree - 1 embeddings E_1 = Vd, E_2 = Yd, ... Shared form:
    R(d) = E_1 * (1 + E_2 * (1 + E_3 * ...)), so that with R(q) = Uq
    f_k = (Uq) . (Vd) + (Uq) . (Vd * Yd) + ... ; for degree 2 it is E_1 alone.
    """

    def represent(self, E: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """R(d), float32 [B, N]."""
        R = E[-1]
        for e in reversed(E[:-1]):
            R = e * (1 + R)
        return R

    def gradients(
        self, E: Sequence[NDArray[np.float32]], G: NDArray[np.float32]
    ) -> list[NDArray[np.float32]]:
        """The gradient of sum R . G with respect to each embedding."""
        inner: list[NDArray[np.float32]] = [E[-1]]
        for e in reversed(E[:-1]):
            inner.insert(0, e * (1 + inner[0]))
        out = []
        for i, e in enumerate(E):
            out.append(G * (1 + inner[i + 1]) if i + 1 < len(E) else G)
            G = G * e
        return out


class SeparatePolynomial(Polynomial):
    """:class:`Polynomial` with separate embeddings for each degree: R(d) = [V2 d, V3 d * Y3 d,
    ...], where each block of R has N columns and degree t takes the next t - 1 embeddings."""

    def represent(self, E: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        return np.concatenate([np.prod(block, axis=0) for block in _blocks(E)], axis=1)

    def gradients(
        self, E: Sequence[NDArray[np.float32]], G: NDArray[np.float32]
    ) -> list[NDArray[np.float32]]:
        out = []
        width = E[0].shape[1]
        for i, block in enumerate(_blocks(E)):
            g = G[:, i * width : (i + 1) * width]
            for j in range(len(block)):
                rest = [e for h, e in enumerate(block) if h != j]
                out.append(np.ascontiguousarray(np.prod([g, *rest], axis=0)))
        return out


class UnitLength(Polynomial):
    """The representation R(d) of another polynomial, divided by its length; 0 if R(d) is 0."""

    def __init__(self, inner: Polynomial | None = None) -> None:
        self.inner = inner or Polynomial()

    def represent(self, E: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        return self._unit(E)[0]

    def gradients(
        self, E: Sequence[NDArray[np.float32]], G: NDArray[np.float32]
    ) -> list[NDArray[np.float32]]:
        return self.inner.gradients(E, through_unit_rows(G, *self._unit(E)))

    def _unit(
        self, E: Sequence[NDArray[np.float32]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The rows divided by their lengths, and 1 / length."""
        rows = self.inner.represent(E)
        lengths = np.linalg.norm(rows, axis=1)
        inverse = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 1e-30)
        return rows * inverse[:, None], inverse


def _blocks(E: Sequence[NDArray[np.float32]]) -> list[Sequence[NDArray[np.float32]]]:
    blocks, start, size = [], 0, 1
    while start < len(E):
        blocks.append(E[start : start + size])
        start, size = start + size, size + 1
    return blocks


class TowerScorer(DiagonalPart):
    """f(q, d) = (Uq) . R(d) + q'Dd: linear queries, (products of) linear documents.

    Args:
        Q, D: checked matrices.
        query: name and table of U. documents: names and tables of the documents' embeddings; a
            table may serve both sides (U'U).
        diagonal: the diagonal part, or None.
        words: int64, the words (columns) that have embeddings; None = all.
        dropout: share of words that a batch leaves out at random, by ``seed`` and its number.
    """

    def __init__(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: tuple[str, EmbeddingTable],
        documents: Sequence[tuple[str, EmbeddingTable]],
        diagonal: Identity | None,
        workers: Workers,
        *,
        polynomial: Polynomial | None = None,
        words: NDArray[np.int64] | None = None,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__(Q, D, diagonal, workers)
        self.dropout, self.seed = dropout, seed
        self.tables = dict([query, *documents])
        self.query_table = query[1]
        self.document_tables = [table for _, table in documents]
        self.polynomial = polynomial or Polynomial()
        self.embedded_Q, self.embedded_D = self.Q, self.D
        if words is not None:
            self.embedded_Q = TextMatrix(take_columns(Q, words))
            self.embedded_D = TextMatrix(take_columns(D, words))

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        tensors = {name: table.values for name, table in self.tables.items()}
        if self.diagonal is not None and not self.diagonal.fixed:
            tensors["diagonal"] = self.diagonal.state()["diagonal"]
        return tensors

    def state(self) -> dict[str, NDArray[Any]]:
        accumulators = {f"{n}_accumulator": t.accumulator for n, t in self.tables.items()}
        diagonal = {} if self.diagonal is None else self.diagonal.state()
        return self.parameters() | accumulators | diagonal

    def scores(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self._texts = texts = batch.texts
        self._close()
        rng = np.random.default_rng([self.seed, 7, batch.task, *batch.number])
        self._queries = self._rows(self.embedded_Q, texts.queries, rng)
        self._documents = self._rows(self.embedded_D, texts.documents, rng)
        self._Eq = self._queries.embedded(self.query_table, self.workers)
        self._Ed = [self._documents.embedded(t, self.workers) for t in self.document_tables]
        self._R = self.polynomial.represent(self._Ed)
        pairs = self._Eq[texts.pair_query], self._R[texts.pair_document]
        shared = self._Eq @ self._R[: texts.n_negatives].T
        positive, negative = texts.by_pair(np.einsum("bk,bk->b", *pairs), shared)
        if self.diagonal is not None:
            self._diagonal_queries, self._diagonal_documents = self._queries, self._documents
            if self.embedded_Q is not self.Q:
                self._diagonal_queries = self._rows(self.Q, texts.queries, rng)
                self._diagonal_documents = self._rows(self.D, texts.documents, rng)
            pair = (self._diagonal_queries, self._diagonal_documents)
            diagonal_positive, diagonal_negative = self.diagonal.scores(*pair, texts, self.workers)
            positive += diagonal_positive
            negative += diagonal_negative
        return positive, negative

    def magnify(self, factor: float) -> None:
        """Multiply the term of degree 2, (Uq) . (Vd), by a positive factor. If documents have unit
        length, all terms are multiplied by its root: models that start with less weight on the
        learned part learn more there."""
        query, document = self.query_table.values, self.document_tables[0].values
        root = np.float32(np.sqrt(factor))
        query *= root
        if document is not query:
            document *= root

    def _rows(
        self, space: TextMatrix, rows: NDArray[np.int64], rng: np.random.Generator
    ) -> BatchView:
        opened = space.thinned(rows, self.dropout, rng) if self.dropout else space.rows(rows)
        self._open.append(opened)
        return opened

    def step(self, A: NDArray[np.float32]) -> None:
        C = self._texts.gradients(A)
        # d/dU: sum_i q_i (sum_j C_ij R(d_j))';  d/dR(d_j): sum_i C_ij U q_i
        G_query = C @ self._R
        gradients = self.polynomial.gradients(self._Ed, C.T @ self._Eq)
        if self.diagonal is not None:
            self.diagonal.step(self._diagonal_queries, self._diagonal_documents, C, self.workers)
        self.query_table.step(self._queries, G_query, self.workers)
        for table, G in zip(self.document_tables, gradients, strict=True):
            table.step(self._documents, G, self.workers)
        self._close()

    def learned_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        q, d = self.embedded_Q.rows(queries), self.embedded_D.rows(documents)
        Eq = q.embedded(self.query_table, self.workers)
        Ed = [d.embedded(table, self.workers) for table in self.document_tables]
        return Eq @ self.polynomial.represent(Ed).T
