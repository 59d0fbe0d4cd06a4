"""One training run: a model's scorer, its loss, its batches and its validation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ssi_models.hogwild import hogwild_steps, replica
from ssi_models.losses import PairwiseLoss
from ssi_models.parallel import Workers
from ssi_models.preferences import Preferences
from ssi_models.sampling import Batch, PairStream
from ssi_models.scorers import Scorer
from ssi_models.validation import Validation, best_scale


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a model is fitted on, checked.

    Attributes:
        Q, D: checked matrices. preferences: all of them.
        training, validating: those that are learned from, those that are held out.
        excluded: int64 [m] or None. candidates: int64, document rows that may be negatives.
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    preferences: Preferences
    training: Preferences
    validating: Preferences
    excluded: NDArray[np.int64] | None
    candidates: NDArray[np.int64]
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """``make()``, called once: several runs on the same data share its result."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


class Trained(Protocol):
    """What a run needs of a model: parameters of :class:`ssi_models.fitting.RankingModel`."""

    margin: float
    loss: str
    emphasis: str
    negatives: str
    shuffle: str
    scales: Sequence[float]
    batch_size: int
    n_negatives: int
    validation_measure: str
    validation_documents: int
    warm_start: bool
    hogwild: bool
    seed: int

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> Scorer: ...

    def fitted_parameters(self) -> dict[str, NDArray[np.float32]] | None: ...


class Run:
    """The state of one training run: what the training loop steps and validates."""

    def __init__(
        self,
        model: Trained,
        data: TrainingData,
        rate: float,
        workers: Workers,
        *,
        training: Preferences | None = None,
        validates: bool = True,
    ) -> None:
        self.model, self.data, self.workers = model, data, workers
        self.scorer = model.make_scorer(data, rate, workers)
        fitted = model.fitted_parameters() if model.warm_start else None
        if fitted is not None:
            for name, values in self.scorer.parameters().items():
                start_from(name, values, fitted[name])
        self.loss = PairwiseLoss(
            model.loss, model.emphasis, model.margin, model.negatives == "given"
        )
        self.stream = PairStream(
            data.training if training is None else training,
            data.candidates,
            model.batch_size,
            model.n_negatives,
            model.seed,
            model.negatives,
            shuffle=model.shuffle,
        )
        self.scale = np.ones(1, np.float32)
        self.slot = np.full(data.D.shape[0], -1, np.int32)
        self.judged = data.training.judged(data.excluded)
        if validates:
            self.validation = Validation(
                data.validating,
                data.training,
                data.excluded,
                model.validation_documents,
                model.seed,
            )
        self._lexical: NDArray[np.float32] | None = None

    def batches(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        return self.stream.epoch(number)

    def state(self) -> dict[str, NDArray[Any]]:
        return self.scorer.state() | {"scale": self.scale}

    def step(self, batch: Batch) -> tuple[float, int, int]:
        A, loss, violations, tuples = self.loss.slopes(
            batch, self.scorer.scores(batch), self.judged, self.slot, self.stream.pool, self.workers
        )
        self.scorer.ascend(A)
        return loss, violations, tuples

    def steps(self, batches: Iterator[Batch]) -> Iterator[tuple[float, int, int]]:
        """Step after step, or, with the model's ``hogwild``, several at a time."""
        if self.model.hogwild:
            return hogwild_steps([self.replica() for _ in range(self.workers.n_shares)], batches)
        return map(self.step, batches)

    def replica(self) -> Self:
        """A run of the same parameters with workspaces of its own, for one thread."""
        twin = copy.copy(self)
        twin.scorer, twin.workers = replica(self.scorer), Workers(1)
        twin.slot = self.slot.copy()
        return twin

    def validate(self) -> float:
        """The validation measure of the held-out queries, at the best of the scales."""
        rows = self.validation.queries, self.validation.documents
        if self._lexical is None or self.learns_lexical:
            self._lexical = self.scorer.lexical_matrix(*rows)
        value, scale = best_scale(
            self.model.scales,
            lambda scores: self.validation.measure(
                self.model.validation_measure, scores, self.workers
            ),
            self._lexical,
            self.scorer.learned_matrix(*rows),
        )
        self.scale[0] = scale
        return value

    @property
    def learns_lexical(self) -> bool:
        """Whether training changes the lexical part of the scores."""
        return "diagonal" in self.scorer.parameters()

    def training_loss(self, epochs: int) -> float:
        """Mean loss per tuple in the last of some epochs; infinite if training diverges."""
        mean = float("inf")
        quiet = np.errstate(over="ignore", invalid="ignore")
        with threadpool_limits(limits=1, user_api="blas"), quiet:
            for number in range(epochs):
                loss, tuples = 0.0, 0
                for batch in self.batches(number):
                    batch_loss, _, n = self.step(batch)
                    loss, tuples = loss + batch_loss, tuples + n
                if not np.isfinite(loss):
                    return float("inf")
                mean = loss / max(tuples, 1)
        return mean


def start_from(name: str, values: NDArray[np.float32], fitted: NDArray[np.float32]) -> None:
    """Copy fitted parameters into those that training starts from.

    Raises:
        ValueError: they have another shape.
    """
    if values.shape != fitted.shape:
        raise ValueError(
            f"warm_start: {name} was fitted with shape {fitted.shape}, the data and parameters "
            f"now give {values.shape}"
        )
    values[...] = fitted
