"""Gains on hard queries, next to what selecting them does to any ranker.

The usual protocol (Ensan et al., CIKM 2017, section 3.2) calls a query hard
where the baseline itself scores below 0.5 in NDCG@20. Part of a low score is bad luck, which does
not repeat: on queries chosen so, a ranker of equal quality gains too (regression to the mean).
The same gain is therefore shown

- on queries chosen by the mean of system and baseline: under the randomisation test's null
  hypothesis (either could have produced either value) the two are interchangeable there too, so
  the expected gain is 0 and the test remains valid;
- on queries chosen by other rankers;
- net of a control system that knows nothing more than the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from reports.significance import TestSettings, bootstrap_interval, fisher_randomisation

BASELINE = "baseline"
BOTH = "mean of both"

DEFINITIONS = {
    "hard": "a query on which the value of whoever chooses lies below the threshold, or at or "
    "below the quantile of its own values (equal values stay together)",
    "chosen by the baseline itself": "the papers' rule. Biased: part of a low value is bad luck "
    "that does not repeat, so any other ranker gains on such queries",
    "chosen by the mean of both": "by the mean of system and baseline, query by query. Not biased "
    "towards either: if the two were interchangeable, the expected gain would be 0",
    "chosen by another ranker": "not biased so far as that ranker's luck is no more like the "
    "baseline's than like the system's (one that differs from the baseline by its seed only is)",
    "gain": "mean of system minus baseline over the hard queries",
    "control gain": "mean of control minus baseline over the same queries: what choosing them "
    "does to a ranker that knows no more than the baseline",
    "net gain": "gain minus control gain, that is the mean of system minus control. It is free of "
    "the selection effect only so far as the control differs from the baseline as freely as the "
    "system does; compare their spreads",
    "spread": "standard deviation over all queries of the per-query difference from the baseline",
    "interval": "percentile bootstrap over the hard queries of the net gain, or of the gain where "
    "no net gain is given",
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
        selectors: rankers other than baseline and systems, by name; each chooses its own hard
            queries, after the baseline and the mean of both.
        control: values of a system that knows no more than the baseline (the baseline refitted
            on other folds or with another seed) and that is not among the selectors.
        thresholds: rules "value below the threshold".
        quantiles: rules "value at or below this quantile of the chooser's values".
        settings: draws and levels of the interval and the test.

    Returns:
        One row per (rule, chooser, system): ``system``, ``rule`` (e.g. "value < 0.5"),
        ``chosen_by`` (``BASELINE``, ``BOTH`` or the selector's name), ``biased`` (True where the
        baseline chose), ``n_queries``, ``baseline_mean``, ``system_mean``, ``gain``,
        ``relative_gain``, ``control_gain``, ``net_gain``, ``low``, ``high``, ``p``,
        ``system_spread``, ``control_spread``; see ``DEFINITIONS``. Control and net gain are NaN
        without a control and where the mean of both chose (the control had no say in that);
        ``low``, ``high`` and ``p`` then describe the gain. Rules that choose no query have NaN.

    Raises:
        InputError: series on different queries, NaN values, or a selector with a reserved name
            or with the values of the control.
    """
    settings = settings or TestSettings()
    others = dict(selectors or {})
    if {BASELINE, BOTH} & set(others):
        raise InputError(f"selectors may not be called {BASELINE!r} or {BOTH!r}: both are taken")
    if control is not None and any(control.equals(values) for values in others.values()):
        raise InputError("the control chooses no queries: take it out of the selectors")
    queries = baseline.index
    b = _aligned("baseline", baseline, queries)
    c = None if control is None else _aligned("control", control, queries)
    others = {name: _aligned(f"selector {name}", v, queries) for name, v in others.items()}
    ranked = {name: _aligned(f"system {name}", v, queries) for name, v in systems.items()}
    rules = [(f"value < {t:g}", t, False) for t in thresholds]
    rules += [(f"lowest {q:.0%}", q, True) for q in quantiles]
    rows = []
    for rule, parameter, is_quantile in rules:
        for chooser in (BASELINE, BOTH, *others):
            for system, s in ranked.items():
                chosen = {BASELINE: b, BOTH: (b + s) / 2, **others}[chooser]
                choose = hard_by_quantile if is_quantile else hard_by_threshold
                hard = choose(chosen, parameter)
                row: dict[str, object] = {"system": system, "rule": rule, "chosen_by": chooser}
                row |= {"biased": chooser == BASELINE, "n_queries": int(hard.sum())}
                compared = None if c is None or chooser == BOTH else c[hard].to_numpy()
                row |= _gains(b[hard].to_numpy(), s[hard].to_numpy(), compared, settings)
                row["system_spread"] = (s - b).std()
                row["control_spread"] = np.nan if c is None else (c - b).std()
                rows.append(row)
    return pd.DataFrame(rows)


def _gains(
    b: NDArray[np.float64],
    s: NDArray[np.float64],
    c: NDArray[np.float64] | None,
    settings: TestSettings,
) -> dict[str, float]:
    """Gains of the system's values over the baseline's, net of the control's if there is one."""
    names = "baseline_mean system_mean gain relative_gain control_gain net_gain low high p"
    row = dict.fromkeys(names.split(), float("nan"))
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
    values = values.loc[queries].astype(np.float64)
    if values.isna().any():
        raise InputError(f"{name}: query {values.index[values.isna()][0]!r} has no value (NaN)")
    return values
