"""Trainable word embeddings and the rows of a matrix that a batch touches."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.sparse import ByTerm, embed_rows, row_squares, step_words, transpose_rows
from ssi_models.matrices import arrays, take_rows, thin_rows
from ssi_models.parallel import Workers


class TextMatrix:
    """A CSR matrix of texts, with the workspace to index some of its rows by term."""

    def __init__(self, X: sp.csr_matrix, place: NDArray[np.int32] | None = None) -> None:
        self.X = X
        self.arrays = arrays(X)
        self.place = np.full(X.shape[1], -1, np.int32) if place is None else place

    def rows(self, rows: NDArray[np.int64]) -> BatchView:
        return BatchView(self, rows)

    def thinned(
        self, rows: NDArray[np.int64], dropout: float, rng: np.random.Generator
    ) -> BatchView:
        """The rows without a random share of their words, the rest scaled by 1 / (1 - dropout)."""
        X = thin_rows(take_rows(self.X, rows), dropout, rng)
        return BatchView(TextMatrix(X, self.place), np.arange(len(rows)))


class BatchView:
    """Some rows of a :class:`TextMatrix`, by row and by word (``by_term``, made on first use).

    Must be closed after use: the workspace of the matrix holds the slots of one view at a time.
    """

    def __init__(self, space: TextMatrix, rows: NDArray[np.int64]) -> None:
        self.space, self.rows = space, rows
        self._by_term: ByTerm | None = None

    @property
    def by_term(self) -> ByTerm:
        """The entries of the rows, see ``transpose_rows``; not first asked for by several threads
        at once."""
        if self._by_term is None:
            self._by_term = _by_word(self.space, self.rows)
        return self._by_term

    def embedded(self, table: EmbeddingTable, workers: Workers) -> NDArray[np.float32]:
        """The weighted sum of the embeddings of each row's words: float32 [B, N]."""
        return embed(self.space.X, table.values, workers, self.rows)

    def close(self) -> None:
        if self._by_term is not None:
            self.space.place[self._by_term[0]] = -1
            self._by_term = None


class EmbeddingTable:
    """An embedding per word, float32 [V, N], and its optimiser.

    Args:
        values: float32 [V, N], changed in place.
        learning_rate: step size.
        accumulator_start: initial AdaGrad accumulator of every word; None = fixed rate (SGD).
    """

    kept, added = 1.0, 1.0  # factors of a word's accumulator and its new square: AdaGrad

    def __init__(
        self, values: NDArray[np.float32], learning_rate: float, accumulator_start: float | None
    ) -> None:
        self.values = values
        self.learning_rate = float(learning_rate)
        self.adaptive = accumulator_start is not None
        n = len(values) if self.adaptive else 0
        self.accumulator = np.full(n, accumulator_start or 0.0)

    def step(self, batch: BatchView, G: NDArray[np.float32], workers: Workers) -> None:
        """Gradient ascent of sum_b embedding_b . G_b."""
        entries, squares = batch.by_term, row_squares(G)
        workers.run(
            lambda share, n_shares: self.step_share(entries, G, squares, share, n_shares),
            cost=len(entries.owner) * G.shape[1],
        )

    def step_share(
        self,
        entries: ByTerm,
        G: NDArray[np.float32],
        squares: NDArray[np.float64],
        share: int,
        n_shares: int,
    ) -> None:
        """One thread's part of ``step``; ``squares`` float64 [B] is |G_b|^2 / N."""
        step_words(
            entries, G, squares, self.values, self.accumulator, self.learning_rate,
            self.adaptive, self.kept, self.added, share, n_shares,
        )  # fmt: skip


def _by_word(space: TextMatrix, rows: NDArray[np.int64]) -> ByTerm:
    """Call ``transpose_rows``; its arrays are allocated here, which numba would have to compile."""
    indptr = space.arrays[0]
    n = int((indptr[rows + 1] - indptr[rows]).sum())
    words, owner = np.empty((2, n), np.int32)
    found = ByTerm(words, np.zeros(n + 1, np.int64), owner, np.empty(n, np.float32))
    n_words = transpose_rows(space.arrays, rows, space.place, found, np.empty(n, np.int64))
    return found._replace(words=words[:n_words], starts=found.starts[: n_words + 1])


def words_of_a_text(X: sp.csr_matrix) -> float:
    """Mean number of words per text."""
    return float(X.nnz / max(1, X.shape[0]))


def embed(
    X: sp.csr_matrix,
    M: NDArray[np.float32],
    workers: Workers,
    rows: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """sum_j x_j M[j] of the given rows x of a checked matrix, all by default: float32 [B, N]."""
    rows = np.arange(X.shape[0]) if rows is None else rows
    out = np.empty((len(rows), M.shape[1]), np.float32)
    cost = len(rows) * words_of_a_text(X) * M.shape[1]
    workers.split(lambda a, b: embed_rows(arrays(X), rows, M, out, a, b), len(rows), cost)
    return out


def embedded(X: sp.csr_matrix, M: NDArray[np.float32], threads: int | None) -> NDArray[np.float32]:
    """:func:`embed` for all rows, with worker threads that end with the call."""
    with Workers(threads) as workers:
        return embed(X, M, workers)
