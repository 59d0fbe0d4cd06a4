"""Stepwise EM over a stream of pairs (Liang, Klein: "Online EM for unsupervised models", 2009)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ssi_models.parallel import Workers
from ssi_models.topics.em import Block, Iteration, Scratch, State, expect, phis_of, set_mode

if TYPE_CHECKING:
    from ssi_models.topics.topic_model import TopicModel


class Stream:
    """State of stepwise EM: the parameters and the running expected counts per pair."""

    def __init__(self, state: State, fitted: bool) -> None:
        self.state, self.fitted = state, fitted
        self.scratch = Scratch(state)
        self.counts = [np.zeros(phi.shape) for phi in phis_of(state)]
        self.occurrences: Any = 0.0
        self.n_pairs = 0
        self.history: list[Iteration] = []

    def learn(self, block: Block, model: TopicModel, inner: int, workers: Workers) -> None:
        n, K = block.stop - block.start, model.n_topics
        theta = np.full((n, K), 1 / K, np.float32)
        multiplier = np.zeros((n, self.state.multiplier.shape[1]), np.float32)
        for number in range(inner):
            self.scratch.clear()
            projection = model._projection if number == inner - 1 else None
            objective, evaluations = expect(
                block, self.state, theta, multiplier, model._prior, projection, self.scratch,
                workers,
            )  # fmt: skip
        if self.fitted and not self.history:
            self._adopt_fitted(block)
        step = (len(self.history) + 2.0) ** -model.step_power
        self.n_pairs += n
        for phi, running, sums in zip(
            phis_of(self.state), self.counts, self.scratch.sums, strict=True
        ):
            running *= 1 - step
            running += (step / n) * (sums * phi)
            counts = running * self.n_pairs
            set_mode(counts, counts.sum(axis=0), phi, model._prior, workers)
        self.history.append(Iteration(len(self.history) + 1, objective / n, evaluations / n))

    def _adopt_fitted(self, block: Block) -> None:
        """Start the running counts as if the fitted phi came from pairs like the block's, with
        topics equally frequent."""
        sizes = [side.rows[2].sum(dtype=np.float64) for side in (block.queries, block.titles)]
        sizes = sizes if len(self.counts) == 2 else [sum(sizes)]
        for phi, running, size in zip(phis_of(self.state), self.counts, sizes, strict=True):
            running += phi * (size / (block.stop - block.start) / phi.shape[1])
