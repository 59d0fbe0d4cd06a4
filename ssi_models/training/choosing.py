"""Choice of parameters by held-out queries: train with several values, and keep the best."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ssi_models.persistence import checkpoint_of
from ssi_models.training.loop import History
from ssi_models.training.run import JointRun

#: The values to try for each parameter, the usual one first.
Choices: TypeAlias = Mapping[str, Sequence[Any]]


class Trained(NamedTuple):
    """A finished training, and the parameter values that it was given."""

    run: JointRun
    history: History
    chosen: Mapping[str, Any]


def choose(
    choices: Choices,
    files: Sequence[Path | None],
    train: Callable[[Mapping[str, Any], Path | None], tuple[JointRun, History]],
) -> Trained:
    """Train with the values that are best for held-out queries, trying those of one parameter after
    the other while the others keep their best values so far. The margin comes last, and the one
    with the best measure wins; values of other parameters must beat the usual one by more than
    chance would explain. If nothing was learned with any of them, the comparison says nothing, and
    is repeated with the next margin.

    Args:
        choices: the values to try, the margin last.
        files: checkpoint files, see :func:`checkpoints`.
        train: trains with a value for each parameter, and a file for its checkpoint.
    """
    unused = iter(files)

    def trained(chosen: Mapping[str, Any]) -> Trained:
        return Trained(*train(chosen, next(unused)), chosen)

    def best_with(margin: Any) -> Trained:
        best = trained({**usual(choices), "margin": margin})
        for name in [name for name in choices if name != "margin"]:
            for other in [trained({**best.chosen, name: value}) for value in choices[name][1:]]:
                best = other if other.run.is_better_than(best.run) else best
        return best

    first, *margins = choices["margin"]
    best = best_with(first)
    for margin in margins:
        learned = best.history.best_epoch > 0
        other = trained({**best.chosen, "margin": margin}) if learned else best_with(margin)
        better = other.history.best_validation > best.history.best_validation
        best = other if better else best
    return best


def usual(choices: Choices) -> dict[str, Any]:
    """The first value of each parameter."""
    return {name: values[0] for name, values in choices.items()}


def checkpoints(path: str | os.PathLike[str] | None, choices: Choices) -> list[Path | None]:
    """A checkpoint file for each training that :func:`choose` may run: the given path for the
    first, paths next to it for the others; all None if no path is given."""
    first = None if path is None else Path(path)
    others = range(1, prod(map(len, choices.values())))
    return [first, *(checkpoint_of(path, str(number)) for number in others)]
