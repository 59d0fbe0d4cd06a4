"""Compare systems as one family: differences, tests, intervals, effects, Holm's correction."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.errors import InputError
from ltr_features.parameters import check_range
from ltr_features.studies.statistics.paired_tests import (
    EXACT_PATTERNS,
    TIE,
    bootstrap_interval,
    check_queries,
    detectable,
    fisher_randomisation,
    group_error,
    group_labels,
    group_sums,
    paired_t,
    smallest_p,
    t_test,
    tries_all,
)
from ltr_features.studies.statistics.refits import Refits, over_fits

#: Methods of ``statsmodels.stats.multitest.multipletests``, and their names in prose.
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

    Raises:
        InputError: a value is out of range.
    """

    __test__ = False  # not a test class, whatever its name suggests to pytest

    alpha: float = 0.05
    n_permutations: int = 10_000
    n_resamples: int = 10_000
    confidence: float = 0.95
    correction: str = "holm"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, share in (("alpha", self.alpha), ("confidence", self.confidence)):
            if not 0 < share < 1:
                raise InputError(f"{name} must lie between 0 and 1, got {share}")
        check_range("n_permutations", self.n_permutations, 1)
        check_range("n_resamples", self.n_resamples, 1)
        check_range("seed", self.seed, 0)

    @property
    def correction_name(self) -> str:
        """Name of the correction in prose."""
        return CORRECTIONS.get(self.correction, self.correction)

    @property
    def confidence_text(self) -> str:
        """Level of the bootstrap interval in prose: "95%", or "99.5%"."""
        return f"{100 * self.confidence:g}%"

    def corrected(self, p_values: ArrayLike) -> NDArray[np.float64]:
        """p-values of a family, corrected for this level, float64 [k]; see :func:`corrected`."""
        return corrected(p_values, self.correction, self.alpha)

    def patterns(self, n_groups: int) -> str:
        """The sign patterns that the randomisation test tries for so many groups, in words."""
        if tries_all(n_groups, self.n_permutations):
            return f"all {2**n_groups:,} sign patterns"
        return f"{self.n_permutations:,} random sign patterns, seed {self.seed}"

    @property
    def description(self) -> str:
        """Definition of each number in the tables, in sentences."""
        return (
            f"p: Fisher's randomisation test on the paired per-query values, two-sided, "
            f"{self.n_permutations:,} random sign patterns (all patterns if there are at most "
            f"{max(self.n_permutations, EXACT_PATTERNS):,}), (b + 1)/(m + 1), seed {self.seed}. "
            f"p (refits): for systems that were fitted several times, whose per-query values are "
            f"means over their fits: t-test with the variance of the mean over queries plus that "
            f"of the mean over fits (spread squared / number of fits), degrees of freedom by Welch "
            f"and Satterthwaite. Spread: standard deviation of the mean difference over fits. "
            f"Corrected p: the larger of p and p (refits), corrected ({self.correction_name}) over "
            f"all comparisons and measures of the table; significant if below {self.alpha:g}, so "
            f"that a verdict holds over queries and over fits. p (t): paired t-test, two-sided. "
            f"Interval: {self.confidence_text} percentile bootstrap of the mean difference over "
            f"queries, {self.n_resamples:,} samples, seed {self.seed}, expanded as a t-interval is "
            f"against a normal one; for systems fitted several "
            f"times, stretched by as much as the variance over fits widens that t-test's "
            f"interval. Groups: queries that belong together change their sign together, are drawn "
            f"together, and count as one in the t-tests and in the detectable difference; p (t) "
            f"tests the groups' means, each counting once, and so concerns the mean group, while "
            f"everything else concerns the mean query; with few groups the interval may be too "
            f"narrow. Design effect: variance of the mean difference with groups / without them; "
            f"queries / design effect: number of independent queries that would be as informative. "
            f"Effect: mean difference / standard deviation of the differences (Cohen's d, paired). "
            f"Won, tied, lost: queries above, equal to, below the baseline. "
            f"Detectable: the difference that a t-test at level {self.alpha:g} (before "
            f"correction) would find in 80 % of such samples."
        )


#: The settings of tests that nobody sets otherwise.
USUAL = TestSettings()


def compare(
    per_query: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
    settings: TestSettings = USUAL,
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
        groups: group of each query; queries of one group are tested together.
        fits: values of each fit of the trained systems, whose ``per_query`` is their mean; fits
            with the same number are paired. Systems without an entry are the same in every fit.

    Returns:
        One row per (pair, measure), in that order, with the columns ``system``, ``baseline``,
        ``measure``, ``n_queries``, ``n_groups``, ``system_mean``, ``baseline_mean``,
        ``difference``, ``relative`` (difference / baseline mean; NaN where that is 0), ``low`` and
        ``high`` (interval of the difference), ``n_fits``, ``spread`` (standard deviation of the
        mean difference over fits; NaN for one fit), ``p``, ``p_refits`` (NaN for one fit),
        ``p_corrected``, ``p_t``, ``effect`` (NaN for constant differences), ``design_effect`` (NaN
        for constant differences or a single group), ``won``, ``tied``, ``lost`` (queries),
        ``differing`` (groups whose sums are not 0), ``smallest_p`` (that the randomisation test
        can give with these), ``detectable`` (NaN for constant differences), ``significant``;
        see :attr:`TestSettings.description`.

    Raises:
        InputError: unknown system or measure, no pair, systems on different queries, a query
            without a group, or fits whose mean is not ``per_query``.
    """
    values = _values(per_query, pairs, measures)
    queries = next(iter(per_query.values())).index
    named = [(*pair, measure) for pair in pairs for measure in measures]
    means = pd.DataFrame(named, columns=["system", "baseline", "measure"])
    means["n_queries"] = len(queries)
    means["system_mean"], means["baseline_mean"] = values.mean(axis=1)
    d, labels = _differences(*values), group_labels(queries, groups)
    refits = over_fits(per_query, fits or {}, pairs, measures)
    found, error, freedom = _over_queries_and_fits(d, labels, refits, settings)
    table = means.assign(
        n_groups=len(queries) if labels is None else len(set(labels)),
        difference=d.mean(axis=0),
        relative=lambda t: t["difference"] / t["baseline_mean"].where(t["baseline_mean"] != 0),
        **found,
        p_corrected=settings.corrected(deciding_p(found)),
        p_t=paired_t(d, groups=labels),
        # The spread of constant differences says nothing about that of other queries.
        detectable=np.where(error > 0, detectable(error, freedom, settings.alpha), np.nan),
        **_sizes(d, labels, settings),
    )
    table["significant"] = table["p_corrected"] < settings.alpha
    return table


def _values(
    per_query: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
) -> NDArray[np.float64]:
    """float64 [2, queries, comparisons]: values of the systems and of their baselines for every
    pair and measure, with the queries in the order of the first system."""
    if not pairs or not measures:
        raise InputError("nothing to compare: name at least one (system, baseline) and a measure")
    for name, frame in per_query.items():
        if not isinstance(frame, pd.DataFrame):
            raise InputError(
                f"system {name!r}: give a frame with a row per query and a column per measure, as "
                f"`evaluate` returns it, not a {type(frame).__name__}"
            )
    queries = next(iter(per_query.values())).index
    for name, frame in per_query.items():
        check_queries(f"system {name!r}", frame.index, queries)
    arrays = {}
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        if name not in per_query:
            raise InputError(f"unknown system {name!r}; known are {', '.join(per_query)}")
        for measure in measures:
            if measure not in per_query[name]:
                raise InputError(f"system {name!r} has no values of the measure {measure!r}")
        arrays[name] = per_query[name].loc[queries, list(measures)].to_numpy(np.float64)
    return np.stack([np.hstack([arrays[pair[side]] for pair in pairs]) for side in (0, 1)])


def gain_row(
    system: NDArray[np.float64],
    baseline: NDArray[np.float64],
    settings: TestSettings,
    groups: Sequence[Hashable] | None = None,
) -> dict[str, float]:
    """The gain of one system over one baseline as a table row.

    Args:
        system, baseline: per-query values, float64 [n], or [n, r] for r fits.

    Returns:
        ``n_queries``, ``n_groups``, ``baseline_mean``, ``system_mean``, ``gain``, ``low``,
        ``high`` (percentile bootstrap, which includes the variance over fits), ``p`` (the larger
        of the randomisation test's and, for several fits, that of the t-test over queries and
        fits); see :attr:`TestSettings.description`.
    """
    s, b = (np.reshape(values, (len(values), -1)) for values in (system, baseline))
    n_fits = min((v.shape[1] for v in (s, b) if v.shape[1] > 1), default=1)
    by_fit = (s[:, :n_fits] - b[:, :n_fits]).mean(axis=0)
    spread = by_fit.std(ddof=1) if n_fits > 1 else np.nan
    refits = Refits(np.array([n_fits]), np.array([spread]))
    difference = _differences(s.mean(axis=1), b.mean(axis=1))[:, None]
    found, _, _ = _over_queries_and_fits(difference, groups, refits, settings)
    return {
        "n_queries": len(difference),
        "n_groups": len(difference) if groups is None else len(set(groups)),
        "baseline_mean": b.mean(),
        "system_mean": s.mean(),
        "gain": difference.mean(),
        "low": found["low"][0],
        "high": found["high"][0],
        "p": deciding_p(found)[0],
    }


def deciding_p(found: Any) -> Any:
    """The p-value that decides, of a table or dictionary with ``p`` and ``p_refits``: the larger of
    the two, so that a verdict holds over queries and over fits."""
    return np.fmax(found["p"], found["p_refits"])


def corrected(
    p_values: ArrayLike, method: str = "holm", alpha: float = 0.05
) -> NDArray[np.float64]:
    """p-values corrected for multiple testing, float64 [k], to be compared with ``alpha``.

    Two-stage methods (``fdr_tsbh``, ``fdr_tsbky``) count at that level how many null hypotheses are
    likely true, so that their values hold for it alone; they may be below the uncorrected ones.

    Raises:
        InputError: neither "holm" nor a method of ``statsmodels``.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if method == "holm":  # statsmodels collects garbage after it, for a tenth of a second and more
        order = np.argsort(p, kind="stable")
        raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
        return np.minimum(raised, 1)[np.argsort(order, kind="stable")]
    from statsmodels.stats.multitest import multipletests

    try:
        return np.asarray(multipletests(p, alpha, method)[1])
    except ValueError as error:
        raise InputError(f"correction {method!r}: {error}; use for example 'holm'") from error


def _differences(system: NDArray[np.float64], baseline: NDArray[np.float64]) -> NDArray[np.float64]:
    """System minus baseline; ties are 0, so that no test finds rounding errors significant."""
    d = system - baseline
    return np.where(np.abs(d) <= TIE, 0.0, d)


def _over_queries_and_fits(
    d: NDArray[np.float64],
    labels: Sequence[Hashable] | None,
    refits: Refits,
    settings: TestSettings,
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64], NDArray[np.float64]]:
    """``low``, ``high``, ``n_fits``, ``spread``, ``p`` and ``p_refits`` of differences [n, k]; the
    standard error of their means over queries and fits, and its degrees of freedom."""
    interval = bootstrap_interval(
        d,
        groups=labels,
        confidence=settings.confidence,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
    )
    p = fisher_randomisation(
        d, groups=labels, n_permutations=settings.n_permutations, seed=settings.seed
    )
    means, over_queries = d.mean(axis=0), group_error(d, labels)
    low, high = refits.widened(means, interval, *over_queries, settings.confidence).T
    error, freedom = refits.total_error(*over_queries)
    columns = {
        "low": low,
        "high": high,
        "n_fits": refits.n_fits,
        "spread": refits.spread,
        "p": p,
        "p_refits": np.where(refits.n_fits > 1, t_test(means, error, freedom), np.nan),
    }
    return columns, error, freedom


def _sizes(
    d: NDArray[np.float64], labels: Sequence[Hashable] | None, settings: TestSettings
) -> dict[str, NDArray[np.float64]]:
    """The columns from ``effect`` to ``smallest_p``."""
    spread = d.std(axis=0, ddof=1) if len(d) > 1 else np.full(d.shape[1], np.nan)
    spread = np.where(spread > TIE, spread, np.nan)
    sums, _ = group_sums(d, labels)
    differing = (np.abs(sums) > TIE).sum(axis=0)
    at_best = [smallest_p(n, len(sums), settings.n_permutations) for n in differing]
    return {
        "effect": d.mean(axis=0) / spread,
        "design_effect": (group_error(d, labels)[0] / (spread / np.sqrt(len(d)))) ** 2,
        "won": (d > TIE).sum(axis=0),
        "tied": (np.abs(d) <= TIE).sum(axis=0),
        "lost": (d < -TIE).sum(axis=0),
        "differing": differing,
        "smallest_p": np.array(at_best),
    }
