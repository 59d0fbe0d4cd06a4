"""Compare systems as one family: differences, tests, intervals, effects, Holm's correction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.errors import InputError
from ltr_features.studies.statistics.paired_tests import (
    EXACT_PATTERNS,
    bootstrap_interval,
    detectable,
    fisher_randomisation,
    group_error,
    group_labels,
    group_sums,
    paired_t,
    smallest_p,
    t_test,
)
from ltr_features.studies.statistics.refits import Refits, over_fits

TIE = 1e-9
"""Differences up to this size count as ties (rounding errors are about 1e-16)."""

#: Methods of ``statsmodels.stats.multitest.multipletests``, and what they are called in prose.
CORRECTIONS = {
    "holm": "Holm",
    "bonferroni": "Bonferroni",
    "sidak": "Šidák",
    "holm-sidak": "Holm-Šidák",
    "simes-hochberg": "Simes-Hochberg",
    "hommel": "Hommel",
    "fdr_bh": "Benjamini-Hochberg",
    "fdr_by": "Benjamini-Yekutieli",
    "fdr_tsbh": "two-stage Benjamini-Hochberg",
    "fdr_tsbky": "two-stage Benjamini-Krieger-Yekutieli",
}


@dataclass(frozen=True)
class TestSettings:
    """How a family of comparisons is tested.

    Attributes:
        alpha: level of the corrected p-value below which a difference is called significant.
        n_permutations: sign patterns drawn by the randomisation test.
        n_resamples: bootstrap samples of the queries.
        confidence: level of the bootstrap interval.
        correction: name of a method of ``statsmodels.stats.multitest.multipletests``.
        seed: seed of all draws.
    """

    __test__ = False  # not a test class, whatever its name suggests to pytest

    alpha: float = 0.05
    n_permutations: int = 10_000
    n_resamples: int = 10_000
    confidence: float = 0.95
    correction: str = "holm"
    seed: int = 0

    @property
    def correction_name(self) -> str:
        """The correction as it is written in prose."""
        return CORRECTIONS.get(self.correction, self.correction)

    @property
    def description(self) -> str:
        """One sentence per number in the tables."""
        return (
            f"p: Fisher's randomisation test on the paired per-query values, two-sided, "
            f"{self.n_permutations:,} random sign patterns (all patterns where there are no more "
            f"than that or {EXACT_PATTERNS:,}), (b + 1)/(m + 1), seed {self.seed}. "
            f"p (refits): of systems that were fitted several times, whose per-query values are "
            f"means over their fits: t-test with the variance of the mean over queries plus that "
            f"of the mean over fits (spread squared / number of fits), degrees of freedom by Welch "
            f"and Satterthwaite. Spread: standard deviation over fits of the mean difference. "
            f"Corrected p: the larger of p and p (refits), {self.correction_name} over all "
            f"comparisons and measures of the table; significant: below {self.alpha:g}, so a "
            f"verdict holds over queries and over fits. p (t): paired t-test, two-sided. "
            f"Interval: {self.confidence:.0%} percentile bootstrap of the mean difference over "
            f"queries, {self.n_resamples:,} samples, seed {self.seed}; of systems that were fitted "
            f"several times stretched as that t-test's interval is by the variance over fits. "
            f"Groups: queries that belong together change their sign together, are drawn together, "
            f"and count as one in the t-tests and in what is detectable; p (t) is that of the "
            f"groups' means, each counting once, so it asks about the mean group where all else "
            f"asks about the mean query; with few groups the interval is too narrow. "
            f"Design effect: variance of the mean difference with groups / without them; "
            f"queries / design effect: as many independent queries would tell as much. "
            f"Effect: mean difference / standard deviation of the differences (Cohen's d, paired). "
            f"Won, tied, lost: queries above, equal to, below the baseline. "
            f"Detectable: the difference that a t-test at level {self.alpha:g} (before "
            f"correction) would find in 80 % of such samples."
        )


def gain_row(
    system: NDArray[np.float64],
    baseline: NDArray[np.float64],
    settings: TestSettings,
    groups: Sequence[Hashable] | None = None,
) -> dict[str, float]:
    """The gain of one system over one baseline on some queries, float64 [n] each, in a table's
    row: ``n_queries``, ``n_groups``, ``baseline_mean``, ``system_mean``, ``gain``, ``low``,
    ``high`` (percentile bootstrap), ``p`` (randomisation test)."""
    difference = system - baseline
    low, high = bootstrap_interval(
        difference,
        groups=groups,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )[0]
    p = fisher_randomisation(
        difference, groups=groups, n_permutations=settings.n_permutations, seed=settings.seed
    )[0]
    return {
        "n_queries": len(difference),
        "n_groups": len(difference) if groups is None else len(set(groups)),
        "baseline_mean": baseline.mean(),
        "system_mean": system.mean(),
        "gain": difference.mean(),
        "low": low,
        "high": high,
        "p": p,
    }


def compare(
    per_query: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
    settings: TestSettings | None = None,
    *,
    groups: Mapping[str, Hashable] | None = None,
    fits: Mapping[str, Sequence[pd.DataFrame]] | None = None,
) -> pd.DataFrame:
    """Test every (system, baseline) pair on every measure, as one family.

    Args:
        per_query: for each system, a frame indexed by query id with one column per measure; all
            systems must have the same queries (in any order).
        pairs: (system, baseline) by name: the declared comparisons.
        measures: columns to test.
        settings: ``TestSettings()`` if not given.
        groups: group of each query; queries of one group are tested together.
        fits: of trained systems the values of each fit, whose mean their ``per_query`` is; fits
            of the same number are paired. Systems without an entry are the same in every fit.

    Returns:
        One row per (pair, measure), in that order, with the columns ``system``, ``baseline``,
        ``measure``, ``n_queries``, ``n_groups``, ``system_mean``, ``baseline_mean``,
        ``difference``, ``relative`` (difference / baseline mean; NaN where that is 0), ``low`` and
        ``high`` (interval of the difference), ``n_fits``, ``spread`` (standard deviation of the
        mean difference over fits; NaN for one fit), ``p``, ``p_refits`` (NaN for one fit),
        ``p_corrected``, ``p_t``, ``effect`` (NaN for constant differences), ``design_effect`` (NaN
        for these, and for a single group), ``won``, ``tied``, ``lost`` (queries), ``differing``
        (groups whose sums are not 0), ``smallest_p`` (that the randomisation test could have given
        with these), ``detectable``, ``significant``; see :attr:`TestSettings.description`.

    Raises:
        InputError: unknown system or measure, no pair, systems on different queries, or a query
            without a group.
    """
    settings = settings or TestSettings()
    rows, d = _differences(per_query, pairs, measures)
    queries = next(iter(per_query.values())).index
    labels = group_labels(queries, groups)
    table = pd.DataFrame(rows)
    table["n_groups"] = len(queries) if labels is None else len(set(labels))
    table["difference"] = d.mean(axis=0)
    table["relative"] = table["difference"] / table["baseline_mean"].where(
        table["baseline_mean"] != 0
    )
    refits = over_fits(per_query, fits or {}, pairs, measures)
    _test(table, d, labels, refits, settings)
    _describe(table, d, labels, settings)
    table["significant"] = table["p_corrected"] < settings.alpha
    return table


def _test(
    table: pd.DataFrame,
    d: NDArray[np.float64],
    labels: Sequence[Hashable] | None,
    refits: Refits,
    settings: TestSettings,
) -> None:
    """Add the columns from ``low`` to ``p_t``, and ``detectable``."""
    interval = bootstrap_interval(
        d,
        groups=labels,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )
    means = d.mean(axis=0)
    over_queries = group_error(d, labels)
    wide = refits.widened(means, interval, *over_queries, settings.confidence)
    table["low"], table["high"] = wide.T
    table["n_fits"], table["spread"] = refits.n_fits, refits.spread
    table["p"] = fisher_randomisation(
        d, groups=labels, n_permutations=settings.n_permutations, seed=settings.seed
    )
    error, freedom = refits.total_error(*over_queries)
    table["p_refits"] = np.where(refits.n_fits > 1, t_test(means, error, freedom), np.nan)
    table["p_corrected"] = corrected(table[["p", "p_refits"]].max(axis=1), settings.correction)
    table["p_t"] = paired_t(d, groups=labels)
    table["detectable"] = detectable(error, freedom, settings.alpha)


def _describe(
    table: pd.DataFrame,
    d: NDArray[np.float64],
    labels: Sequence[Hashable] | None,
    settings: TestSettings,
) -> None:
    """Add the columns from ``effect`` to ``smallest_p``."""
    spread = d.std(axis=0, ddof=1) if len(d) > 1 else np.full(d.shape[1], np.nan)
    spread = np.where(spread > TIE, spread, np.nan)
    table["effect"] = table["difference"] / spread
    table["design_effect"] = (group_error(d, labels)[0] / (spread / np.sqrt(len(d)))) ** 2
    table["won"] = (d > TIE).sum(axis=0)
    table["tied"] = (np.abs(d) <= TIE).sum(axis=0)
    table["lost"] = (d < -TIE).sum(axis=0)
    sums, _ = group_sums(d, labels)
    table["differing"] = (np.abs(sums) > TIE).sum(axis=0)
    table["smallest_p"] = [
        smallest_p(int(differing), len(sums), settings.n_permutations)
        for differing in table["differing"]
    ]


def corrected(p_values: ArrayLike, method: str = "holm") -> NDArray[np.float64]:
    """p-values corrected for multiple testing by ``statsmodels``, float64 [k].

    Raises:
        InputError: statsmodels knows no such method.
    """
    from statsmodels.stats.multitest import multipletests

    p = np.asarray(p_values, dtype=np.float64)
    try:
        return np.asarray(multipletests(p, method=method)[1])
    except ValueError as error:
        raise InputError(f"correction {method!r}: {error}; use for example 'holm'") from error


def _differences(
    per_query: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
) -> tuple[list[dict[str, object]], NDArray[np.float64]]:
    """Identifying columns of each row of the comparison table, and its per-query differences."""
    if not pairs or not measures:
        raise InputError("nothing to compare: name at least one (system, baseline) and a measure")
    queries = next(iter(per_query.values())).index
    for name, values in per_query.items():
        if not values.index.is_unique or set(values.index) != set(queries):
            raise InputError(
                f"system {name!r} has {len(values)} queries, others {len(queries)}; comparisons "
                "are paired by query: all systems need a value for each of the same queries"
            )
    rows, differences = [], []
    for pair in pairs:
        unknown = [name for name in pair if name not in per_query]
        if unknown:
            raise InputError(f"unknown system {unknown[0]!r}; known are {', '.join(per_query)}")
        system, baseline = (per_query[name].loc[queries] for name in pair)
        for measure in measures:
            lacking = [name for name in pair if measure not in per_query[name]]
            if lacking:
                raise InputError(f"system {lacking[0]!r} has no values of the measure {measure!r}")
            a = system[measure].to_numpy(dtype=np.float64)
            b = baseline[measure].to_numpy(dtype=np.float64)
            rows.append(
                {
                    "system": pair[0],
                    "baseline": pair[1],
                    "measure": measure,
                    "n_queries": len(queries),
                    "system_mean": a.mean(),
                    "baseline_mean": b.mean(),
                }
            )
            differences.append(a - b)
    return rows, np.column_stack(differences)
