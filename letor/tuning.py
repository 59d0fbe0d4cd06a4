"""Tuning of a ranker's parameters on validation rows; test rows are never used.

Each trial fits on the training rows, stops early on the validation rows if the ranker supports
that, and is evaluated by one measure on the validation rows; of equal trials, the first wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import Evaluator
from letor.measures import parse_measure
from letor.rankers.base import Ranker
from letor.rankers.registry import get_ranker

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
        measure: a name that ``letor.measures.parse_measure`` knows.
        fixed: further arguments of the ranker (such as its own ``measure``), which are removed
            from the default grid.

    Raises:
        InputError: the ranker, a parameter, the measure or the rows cannot be used, a parameter
            has no values, or the ranker has no default grid.
    """
    if grid is None:
        if name not in GRIDS:
            raise InputError(
                f"ranker {name!r} has no default grid: give grid={{parameter: values}}"
            )
        grid = {p: values for p, values in GRIDS[name].items() if p not in (fixed or {})}
    empty = [parameter for parameter, values in grid.items() if len(values) == 0]
    if empty:
        raise InputError(f"grid of {name!r}: {empty[0]} has no values")
    kind, evaluator = get_ranker(name), Evaluator(parse_measure(measure), valid)
    trials: list[dict[str, Any]] = []
    best: tuple[float, Ranker, dict[str, Any]] | None = None
    for values in product(*grid.values()):
        parameters = dict(zip(grid, values, strict=True))
        ranker = kind().set_params(**{**(fixed or {}), **parameters})
        value = evaluator.mean(ranker.fit(train, valid).predict(valid))
        trials.append({**parameters, "value": value})
        if best is None or value > best[0]:
            best = (value, ranker, parameters)
    assert best is not None  # even an empty grid gives one trial
    return Tuned(*best[1:], pd.DataFrame(trials))
