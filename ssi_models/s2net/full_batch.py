"""Training runs of S2Net: in mini-batches, and by L-BFGS over all training pairs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssi_models.kernels.projections import CosineLoss
from ssi_models.parallel import Executor
from ssi_models.s2net.lbfgs import LBFGS
from ssi_models.s2net.mini_batch import CosineScorer
from ssi_models.s2net.tuples import TupleObjective, draw_negatives
from ssi_models.training.batches import Batch, OwnNegatives
from ssi_models.training.preferences import Preferences
from ssi_models.training.run import TrainingRun

FEWEST_STEPS = 8  # per pass: with little data, large batches would leave too few steps


class ProjectionRun(TrainingRun):
    """A run in mini-batches that can also be validated by its loss."""

    scorer: CosineScorer  # type: ignore[assignment]  # learns from cosines, not from scores
    options: Any  # S2NetOptions
    losses: tuple[float, float]  # before and after training
    executor: Executor | None = None
    _parts: tuple[int, Iterator[Batch]] | None = None  # next epoch, and the batches from it on

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        n_pairs = len(self.stream.preferences)
        most = max(1, n_pairs // FEWEST_STEPS)
        self.stream = replace(self.stream, batch_size=min(self.stream.batch_size, most))
        self._pairs_per_epoch = min(n_pairs, self.options.pairs_per_epoch or n_pairs)

    def batches(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch: a whole pass over the pairs, or the next part of the passes."""
        self.scorer.begin_epoch()
        if self._pairs_per_epoch == len(self.stream.preferences):
            yield from super().batches(number)
            return
        if self._parts is None or self._parts[0] != number:
            passes: Iterator[Batch] = chain.from_iterable(self.stream.epoch(i) for i in count())
            self._parts = number, passes
            for _ in range(number):
                deque(self._part(passes), maxlen=0)
        following = self._parts[1]
        self._parts = number + 1, following
        yield from self._part(following)

    def _part(self, passes: Iterator[Batch]) -> Iterator[Batch]:
        n = 0
        while n < self._pairs_per_epoch:
            batch = next(passes)
            n += len(batch.query)
            yield batch

    @cached_property
    def training_tuples(self) -> TupleObjective:
        """The training pairs with random documents, and with documents from their lists."""
        training, own = self.data.training, self.stream.own
        tuples = self._tuples(training, own, self.loss.list_share, training.weight)
        tuples.executor = self.executor
        return tuples

    @cached_property
    def validation_tuples(self) -> TupleObjective:
        """The held-out pairs with random documents."""
        return self._tuples(self.data.validating)

    def mean_loss(self, tuples: TupleObjective) -> float:
        """Loss per tuple at the current parameters."""
        loss, _ = tuples.loss(self.scorer.query.result, self.scorer.document.result)
        return loss / max(1, tuples.n_tuples)

    def step(self, batch: Batch) -> tuple[float, int, int]:
        loss = CosineLoss(1 / self.options.margin, self.loss.list_share)
        return self.scorer.step(batch, loss, self.judged, self.slot)

    @property
    def n_held_out(self) -> int:
        by_loss = self.options.validation_measure == "loss"
        return min(1, super().n_held_out) if by_loss else super().n_held_out

    def held_out_values(self) -> NDArray[np.float64]:
        if self.options.validation_measure != "loss":
            return super().held_out_values()
        n = 0 if self.validation is None else 1
        # The loss depends on the cosines alone, whatever they are mixed with.
        loss = -self.mean_loss(self.validation_tuples) if n else 0.0
        return np.full((len(self.mixtures), n), loss)

    def _tuples(
        self,
        preferences: Preferences,
        own: OwnNegatives | None = None,
        share: float = 0.0,
        weight: NDArray[np.float32] | None = None,
    ) -> TupleObjective:
        data, n = self.data, self.options.negatives_per_pair
        documents = draw_negatives(
            preferences, data.candidates, n, self.seed, data.excluded, own, share
        )
        gamma = 1 / self.options.margin
        return TupleObjective(
            data.Q, data.D, preferences.query, documents, weight, gamma, self.workers
        )


class FullBatchRun(ProjectionRun):
    """A run whose epochs are iterations of L-BFGS over the training pairs; the executor, if there
    is one, computes the gradients."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        tables = self.scorer.tables.values()
        x = np.concatenate([table.values.ravel() for table in tables])
        start = 0
        for table in tables:
            size = table.values.size
            table.values = x[start : start + size].reshape(table.values.shape)
            start += size
        self._optimizer = LBFGS(x, self._mean_loss_and_gradient)

    def batches(self, number: int) -> Iterator[Batch]:
        """One batch that stands for all training pairs."""
        none = np.zeros(0, np.int64)
        yield Batch(none, none, np.zeros(0, np.float32), none)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | self._optimizer.state

    def step(self, batch: Batch) -> tuple[float, int, int]:
        mean, tuples = self._optimizer.iterate(), self.training_tuples
        return mean * tuples.n_tuples, self._wrong, int(tuples.n_tuples)

    def _mean_loss_and_gradient(self, x: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """Mean loss per tuple and its gradient, for all parameters in one vector."""
        A_q, A_d = self.scorer.query.values, self.scorer.document.values
        symmetric = self.scorer.query is self.scorer.document
        at_q, at_d = x[: A_q.size].reshape(A_q.shape), x[x.size - A_d.size :].reshape(A_d.shape)
        tuples = self.training_tuples
        loss, self._wrong, g_q, g_d = tuples.gradient(at_q, at_d)
        gradient = (g_q + g_d).ravel() if symmetric else np.concatenate([g_q.ravel(), g_d.ravel()])
        n = max(1, tuples.n_tuples)
        return loss / n, gradient / np.float32(n)
