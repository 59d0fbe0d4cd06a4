"""Choice of parameters by held-out queries: train with several values, and keep the best."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ssi_models.checkpoint import checkpoint_of
from ssi_models.parameters import AUTO
from ssi_models.training.loop import History
from ssi_models.training.options import TrainingOptions
from ssi_models.training.run import JointRun

#: Training whose best epoch is not later than this is repeated with smaller steps.
EARLY = 5

#: Standard errors by which smaller steps must rank held-out queries better than the start: more
#: than ``held_out.ERRORS``, as each further attempt may find by luck what is not there.
ERRORS_AGAIN = 2.5

#: The values to try for each parameter, the usual one first.
Choices: TypeAlias = Mapping[str, Sequence[Any]]


class Trained(NamedTuple):
    """A finished training, and the parameter values that it was given."""

    run: JointRun
    history: History
    chosen: Mapping[str, Any]

    @property
    def learned(self) -> bool:
        """Whether it is better than its start."""
        return self.history.best_epoch > 0

    @property
    def ended_early(self) -> bool:
        """Whether it was best in one of the first epochs, and went on in vain or diverged."""
        went_on = self.history.stopped in ("patience", "diverged")
        return went_on and self.history.best_epoch <= EARLY


def choose(
    choices: Choices,
    files: Sequence[Path | None],
    train: Callable[[Mapping[str, Any], Path | None], tuple[JointRun, History]],
    *,
    thorough: bool,
) -> Trained:
    """Train with the values that are best for held-out queries, trying those of one parameter after
    the other while the others keep their best values so far; values must beat the usual one by
    more than chance would explain. The margin comes last, and the one with the best measure wins.

    If nothing was learned with any of them, the comparison says nothing, and is repeated with each
    further margin. All of this is repeated with the next learning rate while the best training
    ended early: steps that are too long spoil a good start before they can be judged. Unless it is
    to be thorough, this is only done if the usual rate teaches nothing, and further margins are
    tried only with rates that teach nothing with the usual one: such attempts take a few epochs.

    Args:
        choices: the values to try, of ``learning_rate`` and ``margin`` among others.
        files: checkpoint files, see :func:`checkpoints`.
        train: trains with a value for each parameter, and a file for its checkpoint.
        thorough: whether to compare margins, and to try smaller steps after an early best epoch,
            where the usual values teach the model something.
    """
    unused = iter(files)
    forms = dict(choices)
    rates, margins = forms.pop("learning_rate"), forms.pop("margin")

    def trained(chosen: Mapping[str, Any]) -> Trained:
        return Trained(*train(chosen, next(unused)), chosen)

    def best_with(rate: float, margin: float) -> Trained:
        best = trained({**usual(choices), "learning_rate": rate, "margin": margin})
        for name, values in forms.items():
            for other in [trained({**best.chosen, name: value}) for value in values[1:]]:
                best = other if other.run.is_better_than(best.run) else best
        return best

    def best_at(rate: float) -> Trained:
        best = best_with(rate, margins[0])
        for margin in margins[1:]:
            if not best.learned:
                best = better(best, best_with(rate, margin))
            elif thorough:
                best = better(best, trained({**best.chosen, "margin": margin}))
        return best

    best = found = best_at(rates[0])
    if best.learned and not thorough:
        return best
    for rate in rates[1:]:
        if not found.ended_early:
            break
        found = best_at(rate)
        if best.learned:
            best = better(best, found)
        elif found.run.is_better_than(best.run, ERRORS_AGAIN):
            best = found
    return best


def better(found: Trained, other: Trained) -> Trained:
    """The one whose held-out queries are ranked better; the first if equally well."""
    return other if other.history.best_validation > found.history.best_validation else found


def usual(choices: Choices) -> dict[str, Any]:
    """The first value of each parameter."""
    return {name: values[0] for name, values in choices.items()}


def checkpoints(path: str | os.PathLike[str] | None, choices: Choices) -> list[Path | None]:
    """A checkpoint file for each training that :func:`choose` may run: the given path for the
    first, paths next to it for the others; all None if no path is given."""
    first = None if path is None else Path(path)
    others = range(1, prod(map(len, choices.values())))
    return [first, *(checkpoint_of(path, str(number)) for number in others)]


class ChoosesParameters:
    """The part of a trainable model that says which values its parameters are chosen from."""

    training: TrainingOptions
    warm_start: bool
    learning_rate_: float

    #: Whether it trains so quickly that margins and steps are compared with many queries, too.
    always_thorough: ClassVar[bool] = False

    def choices(self) -> dict[str, Sequence[Any]]:
        """The values of each parameter that held-out queries choose from, the usual one first. The
        chosen value becomes the attribute of the same name with a trailing ``_``."""
        found = {**self.forms(), **self.training.choices()}
        if len(self.training.rates) > 1 and self._continues_with("learning_rate"):
            found["learning_rate"] = (self.learning_rate_,)
        return found

    def forms(self) -> Choices:
        """The choices for the parameters that decide the model's form."""
        return {}

    def _continues_with(self, name: str) -> bool:
        """Whether a warm start keeps the fitted value of a parameter that is chosen."""
        return self.warm_start and hasattr(self, "n_words_") and hasattr(self, f"{name}_")

    def _among(self, name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The choices for a parameter that is one of ``values`` or "auto"; a warm start keeps the
        fitted value."""
        asked = getattr(self, name)
        if asked != AUTO:
            return (type(values[0])(asked),)
        if self._continues_with(name):
            return (getattr(self, f"{name}_"),)
        return values

    def _take(self, chosen: Mapping[str, Any]) -> None:
        """Store chosen values as attributes."""
        for name, value in chosen.items():
            setattr(self, f"{name}_", value)
