"""Training runs: a model's scorer, its loss, its batches and its validation; and joint runs, which
agree on when to stop."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from threading import Lock
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ssi_models.kernels.pair_losses import Judged
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch, OwnNegatives, PairStream, own_negatives
from ssi_models.training.data import TrainingData
from ssi_models.training.embedding_table import TextMatrix
from ssi_models.training.held_out import ERRORS, Validation, exceeds_noise, mean_value
from ssi_models.training.losses import PairwiseLoss
from ssi_models.training.options import RATES, TrainingOptions
from ssi_models.training.preferences import Preferences
from ssi_models.training.towers import Scorer, TowerScorer

T = TypeVar("T")


class TrainingRun:
    """The state of one training run, which the training loop updates and validates.

    Args:
        scorer: the trainable form of the model, made for ``data``.
        options: how to train. margin: the margin to use, in place of ``options.margin``.
        seed: seed of the batches and of the documents drawn for validation.
        mixtures: (factor of the diagonal part, factor of the learned part) of scores to compare.
        training: the pairs to learn from; by default those of ``data``.
        validates: whether to validate on the held-out pairs.

    Attributes:
        loss: :class:`ssi_models.training.losses.PairwiseLoss`. stream:
            :class:`ssi_models.training.batches.PairStream`. Either may be replaced by another.
    """

    def __init__(
        self,
        scorer: Scorer,
        data: TrainingData,
        options: TrainingOptions,
        workers: Workers,
        *,
        margin: float,
        seed: int,
        mixtures: Sequence[tuple[float, float]] = ((1.0, 1.0),),
        training: Preferences | None = None,
        validates: bool = True,
    ) -> None:
        self.scorer, self.data, self.workers = scorer, data, workers
        self.options = replace(options, margin=margin)
        self.seed, self.mixtures = seed, mixtures
        # From all preferences: held-out documents are relevant too, and must not be negatives.
        own, share = own_negatives(
            options.negatives,
            options.list_share,
            data.candidate_lists,
            data.preferences,
            data.excluded,
        )
        self.loss = PairwiseLoss(options.loss, options.rank_weight, margin, share)
        self.stream = self.pair_stream(data.training if training is None else training, own)
        self.mixture = np.array(mixtures[0], np.float32)
        self.slot = np.full(data.D.shape[0], -1, np.int32)
        self.judged = data.training.judged(data.excluded)
        self.validation: Validation | None = None
        if validates and len(data.validating):
            self.validation = Validation(
                data.validating, data.training, data.excluded, options.validation_documents, seed,
                data.n_validated,
            )  # fmt: skip
        self._diagonal: NDArray[np.float32] | None = None
        self.finite = True  # whether the scores that were validated last are

    def pair_stream(
        self, preferences: Preferences, own: OwnNegatives | None, task: int = 0
    ) -> PairStream:
        """A stream of batches of the given preferences."""
        options = self.options
        return PairStream(
            preferences,
            self.data.candidates,
            options.batch_size,
            options.n_negatives,
            self.seed,
            options.negatives,
            task=task,
            shuffle=options.shuffle,
            own=own,
            n_own=options.n_list_negatives,
        )

    def batches(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        return self.stream.epoch(number)

    def state(self) -> dict[str, NDArray[Any]]:
        return self.scorer.state() | {"mixture": self.mixture}

    def step(self, batch: Batch) -> tuple[float, int, int]:
        return self._step(batch, self.scorer, self.judged, self.stream.pool)

    def _step(
        self, batch: Batch, scorer: Scorer, judged: Judged, pool: int
    ) -> tuple[float, int, int]:
        A, loss, violations, tuples = self.loss.gradients(
            batch, scorer.scores(batch), judged, self.slot, pool, self.workers
        )
        scorer.step(A)
        return loss, violations, tuples

    def epoch(self, number: int) -> Iterator[tuple[float, int, int]]:
        """The steps of an epoch, one after the other or, with ``hogwild``, several at a time."""
        batches = self.batches(number)
        if self.options.hogwild:
            return hogwild_steps([self.replica() for _ in range(self.workers.n_shares)], batches)
        return map(self.step, batches)

    def replica(self) -> Self:
        """A run that shares the parameters but has its own workspaces, for one thread."""
        twin = copy.copy(self)
        twin.scorer, twin.workers = replica(self.scorer), Workers(1)
        twin.slot = self.slot.copy()
        return twin

    @property
    def n_held_out(self) -> int:
        """Number of values that :meth:`held_out_values` returns for each mixture."""
        return 0 if self.validation is None else len(self.validation.queries)

    def held_out_values(self) -> NDArray[np.float64]:
        """The validation measure of each held-out query under each of the model's mixtures of the
        diagonal and the learned part: float64 [n_mixtures, m]."""
        validation = self.validation
        if validation is None:
            return np.zeros((len(self.mixtures), 0))
        rows = validation.queries, validation.documents
        if self._diagonal is None or "diagonal" in self.scorer.parameters():  # it is learned
            self._diagonal = self.scorer.diagonal_scores(*rows)
        learned = self.scorer.learned_scores(*rows)
        self.finite = learned is None or bool(np.isfinite(learned).all())
        name = self.options.validation_measure
        return validation.mixture_values(name, self.mixtures, self._diagonal, learned, self.workers)

    def training_loss(self, epochs: int) -> float:
        """Train for some epochs: the mean loss per tuple in the last, or infinity on divergence."""
        mean = float("inf")
        with np.errstate(over="ignore", invalid="ignore"):
            for number in range(epochs):
                loss, tuples = 0.0, 0
                for batch in self.batches(number):
                    batch_loss, _, n = self.step(batch)
                    loss, tuples = loss + batch_loss, tuples + n
                if not np.isfinite(loss):
                    return float("inf")
                mean = loss / max(tuples, 1)
        return mean


def replica(scorer: Any) -> Any:
    """A scorer that shares the parameters but has its own workspaces, for one thread."""
    twin = copy.copy(scorer)
    twin.workers = Workers(1)
    spaces: dict[int, TextMatrix] = {}
    for name, value in vars(scorer).items():
        if isinstance(value, TextMatrix):
            setattr(twin, name, spaces.setdefault(id(value), TextMatrix(value.X)))
    return twin


def hogwild_steps(
    runs: Sequence[TrainingRun], batches: Iterable[Batch]
) -> Iterator[tuple[float, int, int]]:
    """The results of all steps (see ``TrainingRun.step``). Each run has its own thread and takes
    its own batches, and all of them update the shared parameters without locks.

    Steps read and write the parameters concurrently, so updates of the same word may be lost and
    results differ from run to run (Niu, Recht, Re, Wright, "Hogwild!", NIPS 2011).
    """
    waiting, lock = iter(batches), Lock()

    def work(run: TrainingRun) -> list[tuple[float, int, int]]:
        results: list[tuple[float, int, int]] = []
        while True:
            with lock:
                batch = next(waiting, None)
            if batch is None:
                return results
            results.append(run.step(batch))

    with ThreadPoolExecutor(len(runs)) as pool:
        for results in pool.map(work, runs):
            yield from results


class JointRun:
    """Runs of one model on several parts of the data, which are trained in parallel, validated
    together, and keep the same epoch and the same mixture of their diagonal and learned parts:
    those that are best over the held-out queries of all runs.

    The models that score a fold's training rows out of fold and the one that scores its other rows
    must be trained alike, or a column would mean one thing in training and another in testing.
    """

    def __init__(self, runs: Sequence[TrainingRun], workers: Workers) -> None:
        self.runs, self.workers = runs, workers
        n_held_out = sum(run.n_held_out for run in runs)
        # Values of the held-out queries at the start, and at the last validation.
        self._start = np.zeros(n_held_out)
        self._values = self._start

    @classmethod
    def of(
        cls,
        models: Sequence[Any],
        data: Sequence[TrainingData],
        chosen: Mapping[str, Any],
        workers: Workers,
        stack: ExitStack,
    ) -> Self:
        """Create a run for each trainable model, with the ``chosen`` values of its parameters,
        among them ``learning_rate``.

        Runs are trained in parallel, with the threads divided among them; with Hogwild, which needs
        all threads for its own steps, they are trained one after the other.
        """
        hogwild = models[0].training.hogwild
        across_runs = stack.enter_context(Workers(1)) if hogwild else workers
        shares = max(1, workers.n_shares // (1 if hogwild else len(models)))
        within_runs = [stack.enter_context(Workers(shares)) for _ in models]
        runs = [
            model.make_run(part, chosen["learning_rate"], threads, chosen=chosen)
            for model, part, threads in zip(models, data, within_runs, strict=True)
        ]
        return cls(runs, across_runs)

    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that training changes, parameters and optimisers, not copied."""
        states = [run.state() for run in self.runs]
        named = {f"{i}.{name}": a for i, state in enumerate(states) for name, a in state.items()}
        return named | {"start": self._start}

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        every = [run.scorer.parameters() for run in self.runs]
        return {f"{i}.{name}": a for i, named in enumerate(every) for name, a in named.items()}

    def epoch(self, number: int) -> Iterator[tuple[float, int, int]]:
        """The steps of an epoch: (summed loss, violating tuples, tuples) of each."""
        if len(self.runs) == 1:
            return self.runs[0].epoch(number)
        return chain.from_iterable(self._of_each(lambda run: list(run.epoch(number))))

    def validate(self) -> float:
        """The mean of the validation measure over all held-out queries, at the best mixture."""
        values = np.concatenate(self._of_each(lambda run: run.held_out_values()), axis=1)
        means = [mean_value(row) for row in values]
        best = int(np.argmax(means))
        for run in self.runs:
            run.mixture[:] = run.mixtures[best]
        self._values = np.nan_to_num(values[best])
        return means[best]

    @property
    def finite(self) -> bool:
        """Whether all scores of the last validation are finite: those of products of embeddings
        may not be where every parameter is."""
        return all(run.finite for run in self.runs)

    def begin(self) -> None:
        """Record the held-out queries' values at the start, which has just been validated."""
        self._start[:] = self._values

    def beats_start(self) -> bool:
        """Whether the last validation was better than the start, by more than chance explains."""
        return exceeds_noise(self._values, self._start)

    def is_better_than(self, other: JointRun, errors: float = ERRORS) -> bool:
        """Whether it ranks held-out queries better than another run, both in their current state,
        by more than so many standard errors."""
        for run in (self, other):
            run.validate()
        return exceeds_noise(self._values, other._values, errors)

    def _of_each(self, work: Callable[[TrainingRun], T]) -> list[T]:
        """``work(run)`` for each run, in parallel."""
        results: dict[int, T] = {}
        waiting = iter(range(len(self.runs)))

        def work_on_runs(_share: int, _n_shares: int) -> None:
            # Threads do not inherit NumPy's error state.
            with np.errstate(over="ignore", invalid="ignore"):
                for i in waiting:
                    results[i] = work(self.runs[i])

        self.workers.run(work_on_runs)
        return [results[i] for i in range(len(self.runs))]


def best_rate(model: Any, data: TrainingData, workers: Workers) -> float:
    """The rate of ``RATES`` with which a trainable model has the lowest training loss on a
    twentieth of the pairs."""
    training = data.training
    n = min(len(training), max(len(training) // 20, 20 * model.training.batch_size))
    chosen = np.random.default_rng([model.seed, 5]).permutation(len(training))[:n]
    sample = training.pairs(np.sort(chosen))
    losses = []
    for rate in RATES:
        run = model.make_run(data, rate, workers, training=sample, validates=False)
        losses.append(run.training_loss(epochs=2))
    return RATES[int(np.nanargmin(losses))] if np.isfinite(losses).any() else RATES[0]


def begin_at_best_scale(run: JointRun) -> None:
    """Multiply embeddings that start from the texts by the factor that is best for the held-out
    queries, so that training continues from there and not from an arbitrary mixture.

    They are left as they are where the held-out queries are best ranked without them (factor 0).
    """
    run.validate()
    for part in run.runs:
        scale = float(part.mixture[1])
        if scale not in (0.0, 1.0):
            scorer: TowerScorer = part.scorer  # type: ignore[assignment]
            scorer.magnify(scale)


def start_from(name: str, values: NDArray[np.float32], fitted: NDArray[np.float32] | None) -> None:
    """Copy a fitted parameter, if there is one, into the one that training starts from.

    Raises:
        ValueError: there is none, or it has another shape.
    """
    if fitted is None or values.shape != fitted.shape:
        raise ValueError(
            f"warm_start: {name} was fitted with shape {None if fitted is None else fitted.shape}, "
            f"the data and parameters now give {values.shape}"
        )
    values[...] = fitted
