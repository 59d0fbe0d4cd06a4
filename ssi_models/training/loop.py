"""The training loop: seeded batches, early stopping, divergence check, checkpoints, resuming."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr_base.user_warning import warn_user
from ssi_models.checkpoint import Checkpoint
from ssi_models.persistence import count, load_tensors, numbers
from ssi_models.training.options import TrainingOptions
from ssi_models.training.run import JointRun


class DivergenceWarning(UserWarning):
    """Training diverged to non-finite numbers; the best parameters so far were kept."""


_in_remarks: ContextVar[bool] = ContextVar("divergence is told in remarks", default=False)


@contextmanager
def divergence_in_remarks() -> Iterator[None]:
    """Fits of the calling thread do not warn of divergence in this block: the model's remarks tell
    whoever asked for it. Filters of warnings would change for the whole process."""
    token = _in_remarks.set(True)
    try:
        yield
    finally:
        _in_remarks.reset(token)


@dataclass(frozen=True)
class Epoch:
    """One line of the training history.

    Attributes:
        number: epochs done (0 = the initial parameters).
        loss: mean loss per tuple in the epoch (NaN for number 0).
        violations: share of tuples inside the margin (NaN for number 0).
        validation: value of the validation measure after the epoch.
    """

    number: int
    loss: float
    violations: float
    validation: float


@dataclass
class History:
    """Training history and the epoch whose parameters were kept.

    Attributes:
        epochs: from number 0 on. best_epoch: number of the epoch that was kept.
        stopped: why training ended: "patience", "max_epochs", "max_seconds", or "diverged".
    """

    epochs: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    stopped: str = ""

    def header(self) -> dict[str, Any]:
        """The history as a part of a model file's header."""
        epochs = [list(vars(epoch).values()) for epoch in self.epochs]
        return {"epochs": epochs, "best_epoch": self.best_epoch, "stopped": self.stopped}

    @classmethod
    def from_header(cls, found: Mapping[str, Any]) -> History:
        """The inverse of :meth:`header`.

        Raises:
            KeyError, ValueError, IndexError: not a history, or its best epoch is missing.
        """
        epochs = [Epoch(*numbers(values)) for values in found["epochs"]]
        best = count(found, "best_epoch")
        if best >= len(epochs):
            raise IndexError(f"best_epoch is {best} of {len(epochs)} epochs")
        return cls(epochs, best, found.get("stopped", ""))

    @property
    def best_validation(self) -> float:
        return self.epochs[self.best_epoch].validation if self.epochs else float("nan")


@dataclass(frozen=True)
class Settings:
    """How long to train and where to keep the state.

    Attributes:
        options: with the limits on epochs and on time, which counts from ``began``.
        fingerprint: identifies data and parameters, so that a stale checkpoint is not resumed.
        callback: called with each finished :class:`Epoch`.
        learning_rate: reported if training diverges.
        checkpoint: file for the state, see :class:`Checkpoint`; a file left by a killed run of the
            same ``fingerprint`` is resumed, and the resumed run ends with the same bytes. The file
            is kept after training, as a further part of the same fit may follow.
        resumes: whether to resume from an existing checkpoint.
        began: value of ``time.perf_counter``.
    """

    options: TrainingOptions
    fingerprint: str = ""
    callback: Callable[[Epoch], None] | None = None
    learning_rate: float = float("nan")
    checkpoint: Path | None = None
    resumes: bool = True
    began: float = field(default_factory=time.perf_counter)


def train(model: JointRun, settings: Settings) -> History:
    """Train until the validation measure stops rising; leave the best parameters in the model.

    The initial parameters are validated too, and an epoch replaces them only if it is better by
    more than chance would explain, so a model that training cannot improve stays as it began.
    """
    state = model.state()
    history, checkpoint = History(), Checkpoint(settings.checkpoint)
    best: dict[str, NDArray[Any]] = {}
    # Divergence has a warning of its own.
    with np.errstate(over="ignore", invalid="ignore"):
        if not _resume(settings, state, best, history):
            history.epochs.append(Epoch(0, float("nan"), float("nan"), model.validate()))
            model.begin()
            best.update({name: array.copy() for name, array in state.items()})
            _report(settings, history)
        while not (reason := _reason_to_stop(history, settings)):
            epoch = _run_epoch(model, len(history.epochs))
            if epoch is None:
                _warn_of_divergence(history, settings.learning_rate)
                reason = "diverged"
                break
            history.epochs.append(epoch)
            better = epoch.validation > history.best_validation
            if better and (history.best_epoch or model.beats_start()):
                history.best_epoch = epoch.number
                for name, array in state.items():
                    best[name][...] = array
            tensors = {f"state.{name}": array for name, array in state.items()}
            tensors |= {f"best.{name}": array for name, array in best.items()}
            checkpoint.save({"fingerprint": settings.fingerprint, **history.header()}, tensors)
            _report(settings, history)
    history.stopped = reason
    for name, array in state.items():
        array[...] = best[name]
    return history


def _run_epoch(model: JointRun, number: int) -> Epoch | None:
    """One epoch; None if the loss, a parameter or a score stopped being finite."""
    loss, violations, tuples = 0.0, 0, 0
    for batch_loss, batch_violations, batch_tuples in model.epoch(number - 1):
        loss += batch_loss
        violations += batch_violations
        tuples += batch_tuples
        if not np.isfinite(loss):
            return None
    if not all(np.isfinite(array).all() for array in model.state().values()):
        return None
    tuples, validation = max(tuples, 1), model.validate()
    return Epoch(number, loss / tuples, violations / tuples, validation) if model.finite else None


def _warn_of_divergence(history: History, learning_rate: float) -> None:
    if not _in_remarks.get():
        warn_user(
            f"training diverged in epoch {len(history.epochs)}: a parameter, a score or the loss "
            f"is not finite. The parameters of epoch {history.best_epoch} were kept; the learning "
            f"rate was {learning_rate:g}, try {learning_rate / 10:g}",
            DivergenceWarning,
        )


def _reason_to_stop(history: History, settings: Settings) -> str:
    """Why training stops; "" if it goes on."""
    # Gains count even while the start is still kept: added up, they may yet beat it.
    options, peak = settings.options, history.epochs[0]
    for epoch in history.epochs:
        if epoch.validation > peak.validation + options.least_gain * abs(peak.validation):
            peak = epoch
    if history.epochs[-1].number - peak.number >= options.patience:
        return "patience"
    if len(history.epochs) > options.max_epochs:
        return "max_epochs"
    limit = math.inf if options.max_seconds is None else options.max_seconds
    return "max_seconds" if time.perf_counter() - settings.began >= limit else ""


def _report(settings: Settings, history: History) -> None:
    if settings.callback is not None:
        settings.callback(history.epochs[-1])


def _resume(
    settings: Settings,
    state: dict[str, NDArray[Any]],
    best: dict[str, NDArray[Any]],
    history: History,
) -> bool:
    """Load a checkpoint of the same run into state, best and history; False if there is none, or
    if it is damaged."""
    if settings.checkpoint is None or not settings.resumes or not settings.checkpoint.exists():
        return False
    try:
        header, tensors = load_tensors(settings.checkpoint)
    except ValueError:
        return False
    if header.get("fingerprint") != settings.fingerprint:
        return False
    for name, array in state.items():
        array[...] = tensors[f"state.{name}"]
        best[name] = tensors[f"best.{name}"].copy()
    vars(history).update(vars(History.from_header(header)))
    return True
