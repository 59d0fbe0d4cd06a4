"""Seeded mini-batches of relevant pairs with negatives that the pairs of a batch share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ssi_models.preferences import Preferences


@dataclass(frozen=True)
class Batch:
    """B relevant pairs and K documents that serve as negatives to all of them.

    Attributes:
        query, positive: int64 [B]. grade: float32 [B], grade of each relevant pair.
        negatives: int64 [K], distinct document rows.
        task: which of a run's tasks the batch belongs to.
        number: (epoch, number within the epoch), from 0 on.
    """

    query: NDArray[np.int64]
    positive: NDArray[np.int64]
    grade: NDArray[np.float32]
    negatives: NDArray[np.int64]
    task: int = 0
    number: tuple[int, int] = (0, 0)

    @cached_property
    def texts(self) -> Texts:
        """The distinct texts of the batch."""
        return Texts(self)


class Texts:
    """The distinct texts of a batch: what has to be embedded, and learns.

    Attributes:
        n_negatives: K.
        queries: int64 [u], distinct query rows; query_of: int64 [B], the place of each pair's.
        documents: int64 [K + p], the negatives, then the distinct positives; positive_of: int64
            [B], the place of each pair's positive among the documents.
    """

    def __init__(self, batch: Batch) -> None:
        self.n_negatives = len(batch.negatives)
        self.queries, self.query_of = np.unique(batch.query, return_inverse=True)
        positives, place = np.unique(batch.positive, return_inverse=True)
        self.documents = np.concatenate([batch.negatives, positives])
        self.positive_of = self.n_negatives + place

    def slopes(self, A: NDArray[np.float32]) -> NDArray[np.float32]:
        """C float32 [u, K + p], so that the sum over pairs b and negatives k of
        A_bk (f(q_b, d+_b) - f(q_b, d-_k)) is the sum of C_ij f(query i, document j)."""
        C = np.zeros((len(self.queries), len(self.documents)), np.float32)
        order = np.argsort(self.query_of, kind="stable")
        starts = np.searchsorted(self.query_of[order], np.arange(len(self.queries)))
        np.negative(np.add.reduceat(A[order], starts, axis=0), out=C[:, : self.n_negatives])
        np.add.at(C, (self.query_of, self.positive_of), A.sum(axis=1))
        return C


#: Where the negatives of a batch come from.
NEGATIVES = ("uniform", "in-batch", "given")
#: What an epoch puts in random order.
SHUFFLES = ("pairs", "queries")


@dataclass(frozen=True)
class PairStream:
    """All relevant pairs once per epoch in random order, with fresh negatives per batch.

    With ``shuffle="pairs"`` a batch is B random pairs; with "queries" it is random queries with
    all their pairs, about B of them: a query is then embedded once for all of its pairs.

    The order depends on (seed, epoch) alone, so that training resumes at any epoch as if it had
    never stopped. Sharing K negatives in a batch instead of drawing one per pair means that one
    pass over a document's words serves B tuples.

    Attributes:
        negatives: "uniform": K documents drawn uniformly from the candidates (Bai et al., section
            2.3); "in-batch": the relevant documents of the batch, which draws documents by their
            number of queries and needs no further document; "given": documents that the labels
            put below a relevant document of the batch's queries, at most K of them.
    """

    preferences: Preferences
    candidates: NDArray[np.int64]
    batch_size: int
    n_negatives: int
    seed: int
    negatives: str = "uniform"
    task: int = 0
    shuffle: str = "pairs"

    @property
    def pool(self) -> int:
        """Number of documents that a sample of negatives stands for."""
        return len(self.candidates)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch (numbered from 0)."""
        rng = np.random.default_rng([self.seed, number])
        for place, pairs in enumerate(self._parts(rng)):
            yield Batch(
                self.preferences.query[pairs],
                self.preferences.document[pairs],
                self.preferences.grade[pairs],
                self._draw(pairs, rng),
                self.task,
                (number, place),
            )

    def _parts(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """The pairs of each batch of an epoch."""
        if self.shuffle == "pairs":
            order = rng.permutation(len(self.preferences))
            return np.split(order, np.arange(self.batch_size, len(order), self.batch_size))
        offsets = self.preferences.offsets
        queries = rng.permutation(self.preferences.queries)
        before = np.cumsum(offsets[queries + 1] - offsets[queries])
        number = np.concatenate([[0], before[:-1]]) // self.batch_size
        groups = np.split(queries, np.flatnonzero(np.diff(number)) + 1)
        return [
            np.concatenate([np.arange(offsets[q], offsets[q + 1]) for q in group])
            for group in groups
        ]

    def _draw(self, pairs: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        if self.negatives == "in-batch":
            return np.unique(self.preferences.document[pairs])
        candidates = self.candidates
        if self.negatives == "given":
            candidates = self.preferences.judged_documents(np.unique(self.preferences.query[pairs]))
        size = min(self.n_negatives, len(candidates))
        return rng.choice(candidates, size=size, replace=False, shuffle=False)


def alternate(
    first: Callable[[int], Iterator[Batch]], second: Callable[[int], Iterator[Batch]]
) -> Callable[[int], Iterator[Batch]]:
    """A batch of the second stream after each of the first, started anew when it ends."""

    def epoch(number: int) -> Iterator[Batch]:
        round_number = number
        others = second(round_number)
        for batch in first(number):
            yield batch
            other = next(others, None)
            if other is None:
                round_number += 1_000_003
                others = second(round_number)
                other = next(others)
            yield other

    return epoch
