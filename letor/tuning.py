"""Tuning of a ranker's parameters on validation rows; test rows are never used.

Each trial fits on the training rows, stops early on the validation rows if the ranker supports
that, and is evaluated by one measure on the validation rows, with equal scores in random order; of
equal trials, the first wins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import Evaluator
from letor.measures import choosing_measure
from letor.rankers.base import Ranker
from letor.rankers.registry import get_ranker
from ltr_base.names import listed

Grid = Mapping[str, Sequence[Any]]

#: Small default grids, by the name of the ranker.
GRIDS: dict[str, dict[str, list[Any]]] = {
    "adarank": {"measure": ["map", "ndcg@10"]},
    "coordinate-ascent": {"measure": ["ndcg@10", "map"]},
    "lambdamart": {"num_leaves": [4, 8], "min_data_in_leaf": [20, 100]},
    "listnet": {"label_scale": [1.0, 3.0], "learning_rate": [0.003, 0.01]},
    "rankboost": {"n_thresholds": [10, 50, 255]},
    "ranknet": {"hidden": [0, 16], "normalise": ["minmax", "zscore"]},
    "xgboost": {"objective": ["rank:ndcg", "rank:pairwise"], "max_depth": [3, 5]},
}  # fmt: skip


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes:
        ranker: fitted with the best parameters.
        parameters: the best values of the searched parameters.
        trials: DataFrame with a column per searched parameter and ``value``, the measure on the
            validation rows, in the order of the trials.
    """

    ranker: Ranker
    parameters: dict[str, Any]
    trials: pd.DataFrame


def tune(
    name: str,
    train: RankingData,
    valid: RankingData,
    *,
    grid: Grid | None = None,
    measure: str = "ndcg@10",
    fixed: Mapping[str, Any] | None = None,
) -> Tuned:
    """Try every combination of a grid.

    Args:
        name: name of the ranker, as in ``letor.rankers.registry``.
        train: rows to fit on.
        valid: rows to choose by.
        grid: values of each parameter; ``GRIDS[name]`` by default. An empty grid gives one trial.
        measure: a name that ``letor.measures.choosing_measure`` knows.
        fixed: further arguments of the ranker (such as its own ``measure``), which are removed
            from the default grid.

    Raises:
        InputError: the ranker, a parameter, the measure or the rows cannot be used, a parameter
            has no values or is in ``grid`` and in ``fixed``, or the ranker has no default grid.
    """
    if grid is None:
        if name not in GRIDS:
            raise InputError(
                f"ranker {name!r} has no default grid: give grid={{parameter: values}}"
            )
        grid = {p: values for p, values in GRIDS[name].items() if p not in (fixed or {})}
    for parameter, values in grid.items():
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise InputError(
                f"grid of {name!r}: {parameter} must be a list of values, such as [{values!r}]"
            )
    if twice := [parameter for parameter in grid if parameter in (fixed or {})]:
        raise InputError(f"{listed(twice, 5)} in grid and in fixed: leave out one of the two")
    empty = [parameter for parameter, values in grid.items() if len(values) == 0]
    if empty:
        raise InputError(f"grid of {name!r}: {empty[0]} has no values")
    search = _Search(name, train, valid, measure, fixed)
    for values in product(*grid.values()):
        search.attempt(dict(zip(grid, values, strict=True)))
    return search.result()


def tune_by_optuna(
    name: str,
    train: RankingData,
    valid: RankingData,
    suggest: Callable[[Any], dict[str, Any]],
    *,
    n_trials: int,
    measure: str = "ndcg@10",
    seed: int = 0,
    fixed: Mapping[str, Any] | None = None,
) -> Tuned:
    """Let Optuna's TPE sampler propose parameters (``pip install 'ltr-features[tune]'``).

    Args:
        suggest: returns the parameters for an ``optuna.Trial``, by its ``suggest_...`` methods.
        n_trials: number of trials. seed: seed of the sampler. fixed: further ranker arguments.

    Raises:
        InputError: Optuna is not installed, or as in :func:`tune`.
    """
    try:
        import optuna
    except ImportError:
        raise InputError(
            "Optuna is not installed: pip install 'ltr-features[tune]', or use tune with a grid"
        ) from None
    search = _Search(name, train, valid, measure, fixed)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    for _ in range(n_trials):
        trial = study.ask()
        study.tell(trial, search.attempt(suggest(trial)))
    return search.result()


class _Search:
    """Fits and evaluates parameter settings, and keeps the best."""

    def __init__(
        self,
        name: str,
        train: RankingData,
        valid: RankingData,
        measure: str,
        fixed: Mapping[str, Any] | None,
    ) -> None:
        self._kind, self._fixed = get_ranker(name), dict(fixed or {})
        self._train, self._valid = train, valid
        self._evaluator = Evaluator(choosing_measure(measure), valid)
        self._trials: list[dict[str, Any]] = []
        self._best: tuple[float, Ranker, dict[str, Any]] | None = None

    def attempt(self, parameters: dict[str, Any]) -> float:
        ranker = self._kind().set_params(**{**self._fixed, **parameters})
        value = self._evaluator.mean(ranker.fit(self._train, self._valid).predict(self._valid))
        self._trials.append({**parameters, "value": value})
        if self._best is None or value > self._best[0]:
            self._best = (value, ranker, parameters)
        return value

    def result(self) -> Tuned:
        if self._best is None:
            raise InputError("nothing was tried: give at least one trial")
        _, ranker, parameters = self._best
        return Tuned(ranker, parameters, pd.DataFrame(self._trials))
