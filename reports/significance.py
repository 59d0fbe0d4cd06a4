"""Paired comparison of systems: randomisation test, t-test, bootstrap interval, effect, Holm.

All take per-query differences (system minus baseline), one column per comparison. Random draws
come from a generator seeded by the caller and are the same for every column, so a p-value depends
on its own differences, the seed and the number of draws only: not on the other comparisons, not
on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.errors import InputError
from reports.kernels.significance import count_extreme, resampled_sums

PATTERNS_AT_ONCE = 2048
RESAMPLES_AT_ONCE = 256
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
            f"than that), (b + 1)/(m + 1), seed {self.seed}. "
            f"Corrected p: {self.correction_name} over all "
            f"comparisons and measures of the table. p (t): paired t-test, two-sided. "
            f"Interval: {self.confidence:.0%} percentile bootstrap of the mean difference over "
            f"queries, {self.n_resamples:,} samples, seed {self.seed}. "
            f"Effect: mean difference / standard deviation of the differences (Cohen's d, paired). "
            f"Won, tied, lost: queries above, equal to, below the baseline. "
            f"Detectable: the difference that a paired t-test at level {self.alpha:g} (before "
            f"correction) would find in 80 % of such samples of queries."
        )


def fisher_randomisation(
    differences: ArrayLike, *, n_permutations: int = 10_000, seed: int = 0
) -> NDArray[np.float64]:
    """Two-sided p-values of Fisher's randomisation test (R. A. Fisher, The Design of Experiments,
    1935; for retrieval: Smucker, Allan, Carterette, CIKM 2007).

    Under the null hypothesis the sign of each query's difference is arbitrary. p is the share of
    sign patterns whose mean is at least as far from 0 as the observed one: over all 2^n patterns
    when there are at most ``n_permutations``, otherwise (b + 1)/(m + 1) over m random patterns.
    Sums are exact: differences are rounded to integer multiples of 2^-50 (or coarser for more than
    2^11 queries) of the largest one; patterns within the rounding error of the observed value
    count as equal to it.

    Args:
        differences: float64 [n] or [n, k].
        n_permutations: number m of random patterns, at least 1.
        seed: seed of the patterns.

    Returns:
        float64 [k].

    Raises:
        InputError: no queries, NaN or infinite differences, or no permutations.
    """
    d = _columns(differences)
    if n_permutations < 1:
        raise InputError(f"n_permutations must be 1 or more, not {n_permutations}")
    n = len(d)
    integers = np.zeros((-(-n // 64) * 64, d.shape[1]), dtype=np.int64)
    integers[:n] = _as_integers(d)
    # Each of the n values may be off by half a unit, in the observed and in the permuted sum.
    threshold = np.maximum(np.abs(integers.sum(axis=0)) - n, 0)
    if n < 63 and 2**n <= n_permutations:
        patterns = np.arange(2**n, dtype=np.uint64).reshape(-1, 1)
        return count_extreme(integers, patterns, threshold) / 2.0**n
    rng = np.random.default_rng([seed, 0])
    count = np.zeros(d.shape[1], dtype=np.int64)
    for start in range(0, n_permutations, PATTERNS_AT_ONCE):
        size = (min(PATTERNS_AT_ONCE, n_permutations - start), len(integers) // 64)
        patterns = rng.integers(0, 2**64, size=size, dtype=np.uint64)
        count += count_extreme(integers, patterns, threshold)
    return (count + 1) / (n_permutations + 1)


def paired_t(differences: ArrayLike) -> NDArray[np.float64]:
    """Two-sided p-values of the paired t-test, float64 [k]; NaN for a single query, 1 where all
    differences are 0.

    Raises:
        InputError: no queries, NaN or infinite differences.
    """
    from scipy.stats import t

    d = _columns(differences)
    if len(d) < 2:
        return np.full(d.shape[1], np.nan)
    mean, error = d.mean(axis=0), d.std(axis=0, ddof=1) / np.sqrt(len(d))
    statistic = np.divide(mean, error, out=np.where(mean == 0, 0.0, np.inf), where=error > 0)
    return np.asarray(2 * t.sf(np.abs(statistic), len(d) - 1))


def bootstrap_interval(
    differences: ArrayLike, *, confidence: float = 0.95, n_resamples: int = 10_000, seed: int = 0
) -> NDArray[np.float64]:
    """Percentile bootstrap interval of each mean difference, float64 [k, 2].

    Raises:
        InputError: no queries, NaN or infinite differences, confidence outside (0, 1), or no
            resamples.
    """
    d = _columns(differences)
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}")
    if n_resamples < 1:
        raise InputError(f"n_resamples must be 1 or more, not {n_resamples}")
    n = len(d)
    rng = np.random.default_rng([seed, 1])
    means = np.empty((n_resamples, d.shape[1]))
    for start in range(0, n_resamples, RESAMPLES_AT_ONCE):
        stop = min(start + RESAMPLES_AT_ONCE, n_resamples)
        rows = rng.integers(0, n, size=(stop - start, n), dtype=np.int64)
        means[start:stop] = resampled_sums(d, rows) / n
    tail = (1 - confidence) / 2
    return np.quantile(means, [tail, 1 - tail], axis=0).T


def compare(
    per_query: Mapping[str, pd.DataFrame],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
    settings: TestSettings | None = None,
) -> pd.DataFrame:
    """Test every (system, baseline) pair on every measure, as one family.

    Args:
        per_query: for each system, a frame indexed by query id with one column per measure; all
            systems must have the same queries (in any order).
        pairs: (system, baseline) by name: the declared comparisons.
        measures: columns to test.
        settings: ``TestSettings()`` if not given.

    Returns:
        One row per (pair, measure), in that order, with the columns ``system``, ``baseline``,
        ``measure``, ``n_queries``, ``system_mean``, ``baseline_mean``, ``difference``,
        ``relative`` (difference / baseline mean; NaN where that is 0), ``low`` and ``high``
        (bootstrap interval of the difference), ``p``, ``p_corrected``, ``p_t``, ``effect`` (NaN
        for constant differences), ``won``, ``tied``, ``lost``, ``detectable``, ``significant``.

    Raises:
        InputError: unknown system or measure, no pair, or systems on different queries.
    """
    settings = settings or TestSettings()
    rows, differences = _differences(per_query, pairs, measures)
    d = np.column_stack(differences)
    interval = bootstrap_interval(
        d, confidence=settings.confidence, n_resamples=settings.n_resamples, seed=settings.seed
    )
    table = pd.DataFrame(rows)
    table["difference"] = d.mean(axis=0)
    table["relative"] = table["difference"] / table["baseline_mean"].where(
        table["baseline_mean"] != 0
    )
    table["low"], table["high"] = interval[:, 0], interval[:, 1]
    table["p"] = fisher_randomisation(d, n_permutations=settings.n_permutations, seed=settings.seed)
    table["p_corrected"] = corrected(table["p"], settings.correction)
    table["p_t"] = paired_t(d)
    spread = d.std(axis=0, ddof=1) if len(d) > 1 else np.full(d.shape[1], np.nan)
    table["effect"] = table["difference"] / np.where(spread > TIE, spread, np.nan)
    table["won"] = (d > TIE).sum(axis=0)
    table["tied"] = (np.abs(d) <= TIE).sum(axis=0)
    table["lost"] = (d < -TIE).sum(axis=0)
    table["detectable"] = _detectable(spread, len(d), settings.alpha)
    table["significant"] = table["p_corrected"] < settings.alpha
    return table


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
) -> tuple[list[dict[str, object]], list[NDArray[np.float64]]]:
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
    return rows, differences


def _columns(differences: ArrayLike) -> NDArray[np.float64]:
    d = np.ascontiguousarray(differences, dtype=np.float64)
    d = d.reshape(-1, 1) if d.ndim == 1 else d
    if d.ndim != 2 or len(d) == 0:
        raise InputError(f"per-query differences must be [n] or [n, k], n > 0, not {d.shape}")
    if not np.isfinite(d).all():
        bad = int(np.flatnonzero(~np.isfinite(d).all(axis=1))[0])
        raise InputError(f"the difference of query number {bad + 1} is not a finite number")
    return d


def _as_integers(d: NDArray[np.float64]) -> NDArray[np.int64]:
    """Columns scaled by a power of two so that n of the largest value still fit in int64."""
    bits = min(50, 61 - len(d).bit_length())
    _, exponent = np.frexp(np.abs(d).max(axis=0))
    return np.rint(np.ldexp(d, bits - exponent)).astype(np.int64)


def _detectable(spread: NDArray[np.float64], n: int, alpha: float) -> NDArray[np.float64]:
    from scipy.stats import norm

    return np.asarray((norm.ppf(1 - alpha / 2) + norm.ppf(0.8)) * spread / np.sqrt(n))
