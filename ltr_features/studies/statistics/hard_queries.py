"""Gains on hard queries, and what selecting them does to any ranker.

The usual protocol (Ensan et al., CIKM 2017, section 3.2) calls a query hard if the baseline
itself scores below 0.5 in NDCG@20. Part of a low score is bad luck, which does not repeat: on
queries chosen in this way, a ranker of equal quality gains too (regression to the mean).

The estimate here is therefore the gain on queries that a third ranking finds hard, one that is
neither the baseline nor a judged system. A third ranking that is related to one of the two more, as
BM25 is to a ranker of word-counting columns, shares some of its luck. Each estimate therefore comes
with the gain on the other queries, with the correlations of the third ranking's values with those
of baseline and system, and with a test of whether the difference depends on them; where it does,
the gain on queries chosen by the mean of both, which are interchangeable under the null hypothesis,
tells how much of it remains.

Other ways to choose the queries are computed as well, to show how much the choice matters; none of
them is the estimate, see ``DEFINITIONS``. With a control (the baseline refitted), the choice by the
baseline itself also has the gain net of what it gives the control, which shares columns, and so
luck, with the baseline: if it differs less from the baseline than the system does, part of the
effect of the choice remains.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.studies.statistics.paired_tests import (
    check_queries,
    fisher_randomisation,
    group_labels,
)
from ltr_features.studies.statistics.significance import USUAL, TestSettings, gain_row

BASELINE = "baseline"
BOTH = "mean of both"
#: Per-query values; a column per fit of what was fitted several times.
Values: TypeAlias = pd.Series | pd.DataFrame
_UNRELATED: dict[str, object] = {
    "baseline_correlation": np.nan,
    "system_correlation": np.nan,
    "p_related": np.nan,
    "related": False,
}

DEFINITIONS = {
    "estimate": "the mean of system minus baseline over the queries that are hard for a third "
    "ranking, neither the baseline nor a compared system. It describes queries that are hard for "
    "that ranking",
    "related to one of the two": "a third ranking may share the luck of the baseline, if it uses "
    "what the baseline uses; the system then gains on the queries that it chooses and loses on the "
    "others, without being better. If it shares the system's luck, it is the other way round. "
    "Tested by Fisher's randomisation test of the covariance of the third ranking's values with "
    "the differences, two-sided, by group. If it is significant, the gain on queries chosen by the "
    "mean of both is reported as well",
    "hard": "a query whose value in the choosing ranking lies below the threshold, or at or below "
    "the quantile of that ranking's values (equal values stay together)",
    "chosen by the baseline itself": "the papers' rule, not the estimate: part of a low value is "
    "bad luck that does not repeat, so any other ranker gains on such queries",
    "chosen by the mean of both": "by the mean of system and baseline, query by query; not the "
    "estimate, as the compared systems influence the choice. If the two were interchangeable, the "
    "expected gain would be 0",
    "control gain": "mean of control minus baseline over the same queries: the effect of choosing "
    "them on a ranker that knows no more than the baseline",
    "net gain": "gain minus control gain. It is free of the effect of the choice only as far as "
    "the control varies about the baseline as much as the system does; if the control's spread is "
    "smaller, part of that effect remains",
    "spread": "standard deviation over all queries of the per-query difference from the baseline",
    "interval": "percentile bootstrap over the hard queries, by group, of the gain, or of the net "
    "gain if there is one; widened by the variance over fits if systems were fitted several times",
    "p": "Fisher's randomisation test of the same difference, two-sided, by group; the larger of "
    "this and the t-test over queries and fits for systems that were fitted several times; "
    "corrected over the compared systems for the estimate, else uncorrected",
}


def hard_by_threshold(values: pd.Series, threshold: float = 0.5) -> NDArray[np.bool_]:
    """bool [n]: queries whose value lies below the threshold (the paper's rule, with 0.5)."""
    return np.asarray(values.to_numpy(dtype=np.float64) < threshold)


def hard_by_quantile(values: pd.Series, quantile: float) -> NDArray[np.bool_]:
    """bool [n]: queries whose value is at or below the quantile; equal values stay together, so
    more than the share ``quantile`` may be chosen.

    Raises:
        InputError: quantile outside (0, 1].
    """
    if not 0 < quantile <= 1:
        raise InputError(f"a quantile must lie above 0 and not above 1, not {quantile}")
    v = values.to_numpy(dtype=np.float64)
    return np.asarray(v <= np.quantile(v, quantile, method="inverted_cdf"))


def hard_query_table(
    baseline: Values,
    systems: Mapping[str, Values],
    *,
    selectors: Mapping[str, Values] | None = None,
    control: Values | None = None,
    thresholds: Sequence[float] = (0.5,),
    quantiles: Sequence[float] = (0.25,),
    settings: TestSettings = USUAL,
    groups: Mapping[str, Hashable] | None = None,
) -> pd.DataFrame:
    """Gains of each system on hard queries, for each way to choose them.

    Queries without relevant documents are hard for everyone and dilute every gain alike; leave
    them out of all series to see the gain on the others.

    Args:
        baseline: values of one measure (the paper: NDCG@20), index = query ids; here and below a
            frame with a column per fit for what was fitted several times.
        systems: values of the systems whose gain is wanted, on the same queries.
        selectors: values of rankings other than baseline and systems, by name; the first one
            chooses the queries of the estimate.
        control: values of a system that knows no more than the baseline (the baseline refitted
            on other folds or with another seed) and that is not among the selectors.
        thresholds: rules "value below the threshold".
        quantiles: rules "value at or below this quantile of the chooser's values". The estimate
            uses the first rule, thresholds before quantiles.
        settings: draws and levels of the interval and the test.
        groups: group of each query; queries are tested by group.

    Returns:
        One row per (rule, chooser, system): ``system``, ``rule`` (e.g. "value < 0.5"),
        ``chosen_by`` (the selector's name, ``BASELINE`` or ``BOTH``, in this order), ``estimate``
        (True for the first rule and selector), ``n_queries``, ``n_groups``, ``baseline_mean``,
        ``system_mean``, ``gain``, ``relative_gain``, ``control_gain``, ``net_gain``, ``low``,
        ``high``, ``p``, ``p_corrected`` and ``significant`` (of estimates), ``n_zero`` (chosen
        queries on which chooser, baseline and system are all 0), ``other_gain`` (on the queries not
        chosen), ``baseline_correlation`` and ``system_correlation`` (Pearson's, of the selector's
        values with those of baseline and system over all queries), ``p_related`` (of the test
        whether the difference depends on the selector's values), ``related`` (whether it does so
        significantly), ``system_spread``, ``control_spread``; see
        ``DEFINITIONS``. Control gain and net gain exist where the baseline chose and there is a
        control; ``low``, ``high`` and ``p`` then describe the net gain. Missing numbers, and all
        numbers of a rule that chooses no query, are NaN.

    Raises:
        InputError: series on different queries, NaN values, a selector that has a reserved name,
            is judged or is the control, or a query without a group.
    """
    queries = baseline.index
    b = _aligned("baseline", baseline, queries)
    c = None if control is None else _aligned("control", control, queries)
    others = {n: _aligned(f"selector {n}", v, queries) for n, v in (selectors or {}).items()}
    ranked = {name: _aligned(f"system {name}", v, queries) for name, v in systems.items()}
    _check_selectors(others, {BASELINE: b, **ranked}, c)
    rules: list[tuple[str, Callable[[pd.Series], NDArray[np.bool_]]]] = [
        (f"value < {t:g}", partial(hard_by_threshold, threshold=t)) for t in thresholds
    ]
    rules += [(f"lowest {100 * q:g}%", partial(hard_by_quantile, quantile=q)) for q in quantiles]
    estimate = (rules[0][0], next(iter(others))) if rules and others else None
    relations = {
        (chooser, system): _relation(v, b, s, settings, group_labels(queries, groups))
        for chooser, v in others.items()
        for system, s in ranked.items()
    }
    rows = []
    for rule, is_hard in rules:
        for chooser in (*others, BASELINE, BOTH):
            for system, s in ranked.items():
                difference, both = _mean(s) - _mean(b), (_mean(b) + _mean(s)) / 2
                values = both if chooser == BOTH else _mean({**others, BASELINE: b}[chooser])
                hard = is_hard(values)
                row: dict[str, object] = {"system": system, "rule": rule, "chosen_by": chooser}
                row |= {"estimate": (rule, chooser) == estimate}
                compared = None if c is None or chooser != BASELINE else c[hard].to_numpy()
                labels = group_labels(queries[hard], groups)
                row |= _gains(b[hard].to_numpy(), s[hard].to_numpy(), compared, settings, labels)
                row["n_zero"] = int((hard & (both == 0) & (values == 0)).sum())
                row["other_gain"] = difference[~hard].mean()
                row |= relations.get((chooser, system), _UNRELATED)
                row["system_spread"] = difference.std()
                row["control_spread"] = np.nan if c is None else (_mean(c) - _mean(b)).std()
                rows.append(row)
    table = pd.DataFrame(rows)
    if len(table):
        shown = table["estimate"] & table["p"].notna()
        if shown.any():
            table.loc[shown, "p_corrected"] = settings.corrected(table.loc[shown, "p"])
        table["significant"] = table["p_corrected"] < settings.alpha
    return table


def _check_selectors(
    selectors: Mapping[str, pd.DataFrame],
    judged: Mapping[str, pd.DataFrame],
    control: pd.DataFrame | None,
) -> None:
    if {BASELINE, BOTH} & set(selectors):
        raise InputError(f"selectors may not be called {BASELINE!r} or {BOTH!r}: both are taken")
    for number, (name, values) in enumerate(selectors.items()):
        same = number == 0 and any(_mean(values).equals(_mean(other)) for other in judged.values())
        if name in judged or same:
            raise InputError(
                f"selector {name!r} is judged itself; hard queries are chosen by another ranking"
            )
        if control is not None and _mean(control).equals(_mean(values)):
            raise InputError("the control chooses no queries: take it out of the selectors")


def _relation(
    selector: pd.DataFrame,
    baseline: pd.DataFrame,
    system: pd.DataFrame,
    settings: TestSettings,
    groups: Sequence[Hashable] | None,
) -> dict[str, object]:
    """Whether the selector's values go with those of baseline or system rather than with those of
    the other: then their covariance with the differences, system minus baseline, is not 0."""
    v, b, s = map(_mean, (selector, baseline, system))
    products = (v - v.mean()) * ((s - b) - (s - b).mean())
    p = fisher_randomisation(
        products, groups=groups, n_permutations=settings.n_permutations, seed=settings.seed
    )[0]
    return {
        "baseline_correlation": _correlation(v, b),
        "system_correlation": _correlation(v, s),
        "p_related": p,
        "related": bool(p < settings.alpha),
    }


def _correlation(x: pd.Series, y: pd.Series) -> float:
    return float(x.corr(y)) if x.nunique() > 1 and y.nunique() > 1 else float("nan")


def _gains(
    b: NDArray[np.float64],
    s: NDArray[np.float64],
    c: NDArray[np.float64] | None,
    settings: TestSettings,
    groups: Sequence[Hashable] | None,
) -> dict[str, float]:
    """Gains of the system over the baseline, and net of the control's gain if there is one."""
    names = "n_queries n_groups baseline_mean system_mean gain relative_gain control_gain net_gain"
    names += " low high p p_corrected significant"
    row = dict.fromkeys(names.split(), float("nan"))
    if len(b) == 0:
        return row | {"n_queries": 0, "n_groups": 0}
    row |= gain_row(s, b, settings, groups)
    if b.mean() != 0:
        row["relative_gain"] = row["gain"] / b.mean()
    if c is not None:
        net = gain_row(s, c, settings, groups)
        row |= {"control_gain": c.mean() - b.mean(), "net_gain": net["gain"]}
        row |= {name: net[name] for name in ("low", "high", "p")}
    return row


def _aligned(name: str, values: Values, queries: pd.Index) -> pd.DataFrame:
    """The values as a frame with a column per fit."""
    check_queries(name, values.index, queries)
    frame = pd.DataFrame(values).loc[queries].astype(np.float64)
    if (lost := frame.isna().any(axis=1)).any():
        raise InputError(f"{name}: query {frame.index[lost][0]!r} has no value (NaN)")
    return frame


def _mean(values: pd.DataFrame) -> pd.Series:
    """Per-query means over the fits."""
    return values.mean(axis=1)
