"""Value of groups of columns to a ranker: from rankers trained without a group or with a group
added, and from the loss when a group's values are shuffled within each query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.evaluation import evaluate
from letor.rankers.base import Ranker
from letor.trec import run_of
from ltr_features.studies.statistics.significance import TestSettings, compare, deciding_p


def retrained_value(
    per_query: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    groups: Sequence[str],
    kinds: Sequence[str],
    measure: str,
    settings: TestSettings,
    *,
    query_groups: Mapping[str, Hashable] | None = None,
    fits: Mapping[str, Sequence[pd.DataFrame]] | None = None,
) -> pd.DataFrame:
    """Differences that groups of columns make: in each pair, only the first system has the group.
    ``query_groups`` and ``fits`` are ``groups`` and ``fits`` of :func:`significance.compare`.

    Returns:
        ``group``, ``kind``, ``with`` and ``without`` (mean of the measure), ``value`` (their
        difference), ``low``, ``high``, ``p`` (see :func:`significance.deciding_p`),
        ``p_corrected`` (over these rows), ``significant``.
    """
    table = compare(per_query, pairs, [measure], settings, groups=query_groups, fits=fits)
    names = {"system_mean": "with", "baseline_mean": "without", "difference": "value"}
    found = table.rename(columns=names)
    found = found.assign(group=list(groups), kind=list(kinds), p=deciding_p(table))
    of_tests = ["low", "high", "p", "p_corrected", "significant"]
    return found[["group", "kind", *names.values(), *of_tests]]


def shuffled_value(
    rankers: Sequence[Ranker],
    parts: Sequence[RankingData],
    groups: Mapping[str, Callable[[str], bool]],
    qrels: pd.DataFrame,
    measure: str,
    *,
    seed: int,
    repeats: int = 3,
) -> dict[str, float]:
    """Loss in the measure if the values of a group's columns are shuffled among the rows of each
    query, in the same order for all of its columns; mean over ``repeats`` shuffles. The rankers
    are not trained anew, so correlated columns can stand in for each other here too.

    Args:
        rankers: one per fold. parts: the fold's test rows.
        groups: for each group, whether a column belongs to it.
    """

    def mean(changed: Callable[[RankingData], RankingData]) -> float:
        runs = []
        for ranker, part in zip(rankers, parts, strict=True):
            rows = part.select_columns(ranker.feature_names_)
            runs.append(run_of(rows, ranker.predict(changed(rows))))
        return float(evaluate(qrels, pd.concat(runs), [measure])[measure].mean())

    whole = mean(lambda rows: rows)
    losses = {}
    for number, (group, belongs) in enumerate(groups.items()):
        values = [
            mean(_shuffled(belongs, np.random.default_rng([seed, number, repeat])))
            for repeat in range(repeats)
        ]
        losses[group] = whole - float(np.mean(values))
    return losses


def _shuffled(
    belongs: Callable[[str], bool], rng: np.random.Generator
) -> Callable[[RankingData], RankingData]:
    def change(rows: RankingData) -> RankingData:
        columns = np.flatnonzero([belongs(name) for name in rows.column_names])
        X = rows.X.copy()
        # Rows sorted by query, in random order within it, take the values of rows sorted by query.
        target = np.lexsort((rng.random(len(rows)), rows.query_index))
        source = np.argsort(rows.query_index, kind="stable")
        X[np.ix_(target, columns)] = rows.X[np.ix_(source, columns)]
        return replace(rows, X=X)

    return change
