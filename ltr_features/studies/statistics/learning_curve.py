"""Quality of systems trained on fewer queries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import TestSettings, compare, deciding_p

#: A number of training queries, and the per-query values of each system's fits.
Point = tuple[float, Mapping[str, Sequence[pd.DataFrame]]]


def learning_curve(
    points: Sequence[Point],
    pairs: Sequence[tuple[str, str]],
    measure: str,
    settings: TestSettings,
    *,
    untrained: Mapping[str, pd.DataFrame],
    groups: Mapping[str, Hashable] | None = None,
) -> pd.DataFrame:
    """The comparisons at each number of training queries.

    Args:
        points: values of systems trained on more and more queries and tested on the same ones.
        untrained: values of systems in ``pairs`` that learn from no query.
        pairs, groups: as in :func:`significance.compare`.

    Returns:
        A row per point and pair: ``queries`` (the number), ``system``, ``baseline``,
        ``system_mean``, ``baseline_mean``, ``difference``, ``low``, ``high``, ``p`` (see
        :func:`significance.deciding_p`; not corrected for the number of rows).
    """
    names = ["system", "baseline", "system_mean", "baseline_mean", "difference", "low", "high", "p"]
    tables = []
    for queries, fits in points:
        means = {name: mean_values(frames) for name, frames in fits.items()}
        per_query = {**untrained, **means}
        table = compare(per_query, pairs, [measure], settings, groups=groups, fits=fits)
        tables.append(table[names].assign(queries=queries, p=deciding_p(table)))
    return pd.concat(tables, ignore_index=True)[["queries", *names]]
