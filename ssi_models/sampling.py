"""Seeded mini-batches of relevant pairs with a shared pool of uniformly drawn negatives."""

from __future__ import annotations

from collections.abc import Iterator
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
    """

    query: NDArray[np.int64]
    positive: NDArray[np.int64]
    grade: NDArray[np.float32]
    negatives: NDArray[np.int64]


@dataclass(frozen=True)
class PairStream:
    """All relevant pairs once per epoch in random order, with fresh uniform negatives per batch.

    The order depends on (seed, epoch) alone, so that training resumes at any epoch as if it had
    never stopped. Drawing K negatives per batch instead of one per pair means that one pass over a
    document's words serves B tuples; drawing them uniformly follows Bai et al., section 2.3.
    """

    preferences: Preferences
    candidates: NDArray[np.int64]
    batch_size: int
    n_negatives: int
    seed: int

    def epoch(self, number: int) -> Iterator[Batch]:
        """The batches of one epoch (numbered from 0)."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(len(self.preferences))
        size = min(self.n_negatives, len(self.candidates))
        for start in range(0, len(order), self.batch_size):
            pairs = order[start : start + self.batch_size]
            negatives = rng.choice(self.candidates, size=size, replace=False, shuffle=False)
            yield Batch(
                self.preferences.query[pairs],
                self.preferences.document[pairs],
                self.preferences.grade[pairs],
                negatives,
            )
