"""Gains on hard queries, next to what selecting them does to any ranker.

The usual protocol (Ensan, Bagheri, Zouaq, Kouznetsov, CIKM 2017, section 3.2) calls a query hard
where the baseline itself scores below 0.5 in NDCG@20. Part of a low score is bad luck, which does
not repeat: on queries chosen so, a ranker of equal quality gains too (regression to the mean).
So the same gain is shown on queries chosen by an independent ranker, and net of a control system
that knows nothing more than the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from reports.significance import TestSettings, bootstrap_interval, fisher_randomisation

DEFINITIONS = {
    "hard": "queries on which the ranker named in 'chosen by' scores below the threshold, or at "
    "or below the quantile of its own scores (equal scores stay together)",
    "gain": "mean of system minus baseline over the hard queries",
    "control gain": "mean of control minus baseline over the same queries: what choosing them "
    "does to a ranker that knows no more than the baseline",
    "net gain": "gain minus control gain, that is the mean of system minus control",
    "interval": "percentile bootstrap of the net gain (of the gain where there is no control) "
    "over the hard queries",
    "p": "Fisher's randomisation test of the same difference, two-sided, not corrected",
}


def hard_by_threshold(values: pd.Series, threshold: float = 0.5) -> NDArray[np.bool_]:
    """bool [n]: queries whose value lies below the threshold (the paper's rule, with 0.5)."""
    return np.asarray(values.to_numpy(dtype=np.float64) < threshold)


def hard_by_quantile(values: pd.Series, quantile: float) -> NDArray[np.bool_]:
    """bool [n]: queries whose value is at or below the quantile; equal values stay together, so
    that more than the share ``quantile`` can be chosen.

    Raises:
        InputError: quantile outside (0, 1].
    """
    if not 0 < quantile <= 1:
        raise InputError(f"a quantile must lie above 0 and not above 1, not {quantile}")
    v = values.to_numpy(dtype=np.float64)
    return np.asarray(v <= np.quantile(v, quantile, method="inverted_cdf"))


def hard_query_table(
    baseline: pd.Series,
    systems: Mapping[str, pd.Series],
    *,
    selectors: Mapping[str, pd.Series] | None = None,
    control: pd.Series | None = None,
    thresholds: Sequence[float] = (0.5,),
    quantiles: Sequence[float] = (0.25,),
    settings: TestSettings | None = None,
) -> pd.DataFrame:
    """Gains of each system on hard queries, for each way to choose them.

    Queries without relevant documents are hard for everyone and dilute every gain alike; leave
    them out of all series to see the gain on the others.

    Args:
        baseline: values of one measure (the paper: NDCG@20), index = query ids.
        systems: the systems whose gain is wanted, same queries.
        selectors: rankers independent of the baseline, by name (another ranker, or the baseline
            refitted with another seed); each chooses its own hard queries. The baseline's own
            choice is always the first.
        control: values of a system that knows no more than the baseline (the baseline refitted
            with another seed or other folds) and that is not among the selectors.
        thresholds: rules "value below the threshold".
        quantiles: rules "value at or below this quantile of the chooser's values".
        settings: draws and levels of the interval and the test.

    Returns:
        One row per (rule, chooser, system): ``system``, ``rule`` (e.g. "value < 0.5"),
        ``chosen_by`` ("baseline" or the selector's name), ``independent`` (bool), ``n_queries``,
        ``baseline_mean``, ``system_mean``, ``gain``, ``relative_gain``, ``control_gain``,
        ``net_gain``, ``low``, ``high``, ``p``. The columns that need a control are NaN without
        one, except ``low``, ``high`` and ``p``, which then describe ``gain``. Rules that choose
        no query have NaN throughout.

    Raises:
        InputError: series on different queries, or NaN values.
    """
    settings = settings or TestSettings()
    choosers = {"baseline": baseline, **(selectors or {})}
    if len(choosers) != len(selectors or {}) + 1:
        raise InputError("no selector may be called 'baseline': that name is the baseline's own")
    everyone = {**choosers, **{f"system {k}": v for k, v in systems.items()}}
    if control is not None:
        everyone["control"] = control
    aligned = {name: _aligned(name, v, baseline.index) for name, v in everyone.items()}
    by_rule = {
        **{
            f"value < {t:g}": [hard_by_threshold(aligned[c], t) for c in choosers]
            for t in thresholds
        },
        **{
            f"lowest {q:.0%}": [hard_by_quantile(aligned[c], q) for c in choosers]
            for q in quantiles
        },
    }
    rows = []
    for rule, chosen in by_rule.items():
        for chooser, hard in zip(choosers, chosen, strict=True):
            for system in systems:
                row = {
                    "system": system,
                    "rule": rule,
                    "chosen_by": chooser,
                    "independent": chooser != "baseline",
                    "n_queries": int(hard.sum()),
                }
                values = {
                    "baseline": aligned["baseline"].to_numpy()[hard],
                    "system": aligned[f"system {system}"].to_numpy()[hard],
                }
                if control is not None:
                    values["control"] = aligned["control"].to_numpy()[hard]
                rows.append(row | _gains(values, settings))
    return pd.DataFrame(rows)


def _gains(values: Mapping[str, NDArray[np.float64]], settings: TestSettings) -> dict[str, float]:
    names = "baseline_mean system_mean gain relative_gain control_gain net_gain low high p"
    row = dict.fromkeys(names.split(), float("nan"))
    b, s, c = values["baseline"], values["system"], values.get("control")
    if len(b) == 0:
        return row
    row["baseline_mean"], row["system_mean"] = b.mean(), s.mean()
    row["gain"] = (s - b).mean()
    if b.mean() != 0:
        row["relative_gain"] = row["gain"] / b.mean()
    if c is not None:
        row["control_gain"] = (c - b).mean()
        row["net_gain"] = row["gain"] - row["control_gain"]
    difference = s - (b if c is None else c)
    row["low"], row["high"] = bootstrap_interval(
        difference,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )[0]
    row["p"] = fisher_randomisation(
        difference, n_permutations=settings.n_permutations, seed=settings.seed
    )[0]
    return row


def _aligned(name: str, values: pd.Series, queries: pd.Index) -> pd.Series:
    if not values.index.is_unique or set(values.index) != set(queries):
        raise InputError(
            f"{name}: values of {len(values)} queries, the baseline has {len(queries)}; all need "
            "a value for each of the same queries"
        )
    values = values.loc[queries]
    if values.isna().any():
        raise InputError(f"{name}: query {values.index[values.isna()][0]!r} has no value (NaN)")
    return values
