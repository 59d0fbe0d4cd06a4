"""Seeded mini-batches of relevant pairs with negatives that the pairs of a batch share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

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
    """

    query: NDArray[np.int64]
    positive: NDArray[np.int64]
    grade: NDArray[np.float32]
    negatives: NDArray[np.int64]
    task: int = 0


#: Where the negatives of a batch come from.
NEGATIVES = ("uniform", "in-batch", "given")


@dataclass(frozen=True)
class PairStream:
    """All relevant pairs once per epoch in random order, with fresh negatives per batch.

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

    @property
    def pool(self) -> int:
        """Number of documents that a sample of negatives stands for."""
        return len(self.candidates)

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch (numbered from 0)."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(len(self.preferences))
        for start in range(0, len(order), self.batch_size):
            pairs = order[start : start + self.batch_size]
            yield Batch(
                self.preferences.query[pairs],
                self.preferences.document[pairs],
                self.preferences.grade[pairs],
                self._draw(pairs, rng),
                self.task,
            )

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
