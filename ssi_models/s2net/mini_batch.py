"""The trainable form of S2Net: cosines of a batch's texts and their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.pair_losses import Judged
from ssi_models.kernels.projections import (
    CosineLoss,
    PairGradients,
    QueryPairs,
    document_gradients,
    query_gradients,
)
from ssi_models.kernels.sparse import move_towards, row_squares
from ssi_models.parallel import Workers
from ssi_models.projections.cosine import unit_projections
from ssi_models.training.batches import Batch
from ssi_models.training.diagonal import DiagonalPart
from ssi_models.training.embedding_table import BatchView, EmbeddingTable, words_of_a_text

# Fixed, so that sums over queries do not depend on the number of threads.
BLOCK, BLOCKS = 32, 8  # queries in the smallest block, largest number of blocks in a batch
#: Weight of earlier batches in a word's mean square. Small, because the losses fall a hundredfold
#: in training, and old squares would only shorten the steps.
DECAY = 0.5
#: Steps from one sample of the average to the next; a sample costs a pass over all parameters.
SAMPLED = 4
#: Sample n enters the average with weight 4 / (n + 3), so that the first ones are forgotten.
RECENCY = 4


@dataclass(frozen=True, eq=False)
class BatchTexts:
    """The distinct texts of a batch, each embedded once.

    Attributes:
        queries: int64 [u] and documents: int64 [n], distinct rows, the K negatives first.
        order, starts: the batch's pairs, sorted by query and grade; query i owns
            ``order[starts[i]:starts[i + 1]]``.
        query_of: int64 [B], position of each pair's query among the queries.
        places: int64 [B, 1 + k], positions among the documents: of each pair's document, then of
            its own negatives; -1 for none.
        n_negatives: K.
    """

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    query_of: NDArray[np.int64]
    places: NDArray[np.int64]
    n_negatives: int

    @classmethod
    def of(cls, batch: Batch) -> BatchTexts:
        n_negatives = len(batch.negatives)
        queries, query_of = _distinct(batch.query)
        wanted = np.column_stack([batch.positive, batch.own])
        used = wanted >= 0
        documents, place = _distinct(np.concatenate([batch.negatives, wanted[used]]))
        places = np.full(wanted.shape, -1)
        places[used] = place[n_negatives:]
        by_grade = np.argsort(batch.grade, kind="stable")
        order, starts = _grouped(query_of, by_grade, len(queries))
        return cls(queries, documents, order, starts, query_of, places, n_negatives)

    @property
    def query_of_place(self) -> NDArray[np.int64]:
        """int64 [B (1 + k)], the query of each of the flattened places."""
        return np.repeat(self.query_of, self.places.shape[1])

    def pairs(self, batch: Batch, judged: Judged, slot: NDArray[np.int32]) -> QueryPairs:
        """The batch's pairs, as the kernels expect them."""
        return QueryPairs(
            self.order, self.starts, self.places, self.queries, batch.grade, batch.weights, slot,
            judged,
        )  # fmt: skip

    def empty_gradients(self) -> PairGradients:
        """Room for the gradients of the batch's pairs."""
        n = len(self.queries)
        return PairGradients(
            np.empty(self.places.shape, np.float32), np.empty(n), np.empty((n, 2), np.int64)
        )

    def by_query(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(order, starts) of the flattened places, grouped by query."""
        return _grouped(self.query_of_place, self._used, len(self.queries))

    def by_document(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(order, starts) of the flattened places, grouped by document."""
        return _grouped(self.places.ravel(), self._used, len(self.documents))

    @property
    def _used(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.places.ravel() >= 0)


def _distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(The distinct rows in order of first occurrence, the position of each row among them)."""
    distinct, first, place = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return distinct[order], np.argsort(order)[place]


def _grouped(
    place: NDArray[np.int64], sequence: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(order, starts): the elements of sequence grouped by place; place i < n owns
    ``order[starts[i]:starts[i + 1]]``, in the order of the sequence."""
    order = sequence[np.argsort(place[sequence], kind="stable")]
    return order, np.searchsorted(place[order], np.arange(n + 1))


class ProjectionTable(EmbeddingTable):
    """A table that S2Net trains by AdaGrad or SGD."""

    @property
    def result(self) -> NDArray[np.float32]:
        """float32 [V, N], the parameters that are validated and kept."""
        return self.values

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that training changes besides ``result``."""
        return {"accumulator": self.accumulator}

    def begin(self) -> None:
        """Called before an epoch's first step."""

    def next_weight(self) -> float:
        """Called once per step; the weight with which the values after the step enter ``result``,
        if that is an average."""
        return 0.0

    def average_own(self, weight: float, share: int, n_shares: int) -> None:
        """Add one thread's share of the values after a step to the average."""


class AveragedTable(ProjectionTable):
    """A table that is trained by RMSProp, and the average of its values.

    A step divides a word's gradient by the root of a running mean of its examples' squared
    gradients (Tieleman, Hinton: "Lecture 6.5: RMSProp", 2012; here one mean per word, over the
    batches in which it occurs). Such steps do not get shorter by themselves, so the result is not
    the last iterate but a polynomial-decay average of iterates (Shamir, Zhang: "Stochastic gradient
    descent for non-smooth optimization", ICML 2013, section 4).

    Attributes:
        average: float32 [V, N]. n_steps: int64 [1], steps done.
    """

    kept, added = DECAY, 1.0 - DECAY

    def __init__(self, values: NDArray[np.float32], learning_rate: float) -> None:
        super().__init__(values, learning_rate, 0.0)
        self.average, self.n_steps = values.copy(), np.zeros(1, np.int64)

    @property
    def result(self) -> NDArray[np.float32]:
        return self.average

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"values": self.values, "n_steps": self.n_steps}

    def begin(self) -> None:
        if not self.n_steps[0]:
            self.values[...] = self.average  # a warm start sets the result

    def next_weight(self) -> float:
        self.n_steps += 1
        n, rest = divmod(int(self.n_steps[0]), SAMPLED)
        return 0.0 if rest else RECENCY / (n + RECENCY - 1)

    def average_own(self, weight: float, share: int, n_shares: int) -> None:
        if weight:
            move_towards(self.values, self.average, np.float32(weight), share, n_shares)


class CosineScorer(DiagonalPart):
    """f(q, d) = cos(A_q'q, A_d'd), and gradient ascent on sums of it.

    Args:
        Q, D: checked matrices. query, document: the tables A_q and A_d, possibly the same.
    """

    def __init__(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: ProjectionTable,
        document: ProjectionTable,
        workers: Workers,
    ) -> None:
        super().__init__(Q, D, None, workers)
        self.query, self.document = query, document

    @property
    def tables(self) -> dict[str, ProjectionTable]:
        if self.query is self.document:
            return {"A_q": self.query}
        return {"A_q": self.query, "A_d": self.document}

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        return {name: table.result for name, table in self.tables.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = self.parameters()
        for name, table in self.tables.items():
            state |= {f"{name}_{part}": array for part, array in table.state().items()}
        return state

    def begin_epoch(self) -> None:
        """Called before an epoch's first step; the tables may have changed since the last epoch."""
        for table in self.tables.values():
            table.begin()

    def step(
        self, batch: Batch, loss: CosineLoss, judged: Judged, slot: NDArray[np.int32]
    ) -> tuple[float, int, int]:
        """Take a step that lowers the batch's losses, averaged over each kind of negatives, divided
        by gamma; returns (summed loss, tuples with a difference below 1 / gamma, tuples).

        ``judged`` is of all queries; ``slot``, int32 [n_documents], is -1 everywhere and marks the
        batch's negatives during the step.
        """
        texts = BatchTexts.of(batch)
        cost = self._cost(texts)
        sides = (
            (self.query, self.Q.rows(texts.queries)),
            (self.document, self.D.rows(texts.documents)),
        )
        (Hq, inverse_q), (Hd, inverse_d) = (
            unit_projections(rows.space.X, table.values, self.workers, rows.rows)
            for table, rows in sides
        )
        n, K, width = len(Hq), texts.n_negatives, Hq.shape[1]
        size = max(BLOCK, -(-n // BLOCKS))
        shares = np.empty((-(-n // size), K, width), np.float32)
        G_q, G_d, out = np.empty_like(Hq), np.empty_like(Hd), texts.empty_gradients()
        pairs = texts.pairs(batch, judged, slot)
        slot[batch.negatives] = np.arange(K, dtype=np.int32)
        self.workers.split(
            lambda first, last: query_gradients(
                Hq, inverse_q, Hd, pairs, loss, size, out, G_q, shares, first, last
            ),
            len(shares),
            cost,
        )
        slot[batch.negatives] = -1
        # Takes less time than waking another thread.
        document_gradients(
            Hq, Hd, inverse_d, *texts.by_document(), texts.query_of_place, out.pull.ravel(), shares,
            G_d, 0, len(Hd),
        )  # fmt: skip
        self._step_tables(sides, (G_q, G_d), cost)
        return out.sums()

    def _step_tables(
        self,
        sides: tuple[tuple[ProjectionTable, BatchView], ...],
        gradients: tuple[NDArray[np.float32], ...],
        cost: float,
    ) -> None:
        squares = [row_squares(G) for G in gradients]
        weights = [(table, table.next_weight()) for table in self.tables.values()]
        entries = [rows.by_term for _, rows in sides]

        def work(share: int, n_shares: int) -> None:
            for (table, _), of_words, G, square in zip(
                sides, entries, gradients, squares, strict=True
            ):
                table.step_share(of_words, G, square, share, n_shares)
            for table, weight in weights:
                table.average_own(weight, share, n_shares)

        self.workers.run(work, cost)
        for _, rows in sides:
            rows.close()

    def learned_scores(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """f of all given queries and documents: float32 [m, p]."""
        Hq, _ = unit_projections(self.Q.X, self.query.result, self.workers, queries)
        Hd, _ = unit_projections(self.D.X, self.document.result, self.workers, documents)
        return Hq @ Hd.T

    def _cost(self, texts: BatchTexts) -> float:
        """Approximate number of multiplications in each of a step's three parts."""
        n_products = len(texts.queries) * (texts.n_negatives + words_of_a_text(self.Q.X))
        n_products += len(texts.documents) * words_of_a_text(self.D.X)
        return n_products * self.query.values.shape[1] / 3
