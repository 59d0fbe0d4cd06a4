"""Tests and intervals of mean paired differences, by groups of queries if there are any.

All functions take per-query differences (system minus baseline), one column per comparison. Queries
that belong together (made from one article, say) are not independent: if ``groups`` is given, whole
groups change their sign, are drawn, and count as observations. Without groups every query is a
group of its own. Random draws come from a generator seeded by the caller and are the same for every
column, so a p-value depends only on its own differences and their order (with another one it may
differ by as much as with another seed), the groups, the seed and the number of draws, but not on
other comparisons or the number of threads.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.errors import InputError

TIE = 1e-9
"""Differences up to this size count as ties: they may be rounding errors, which are about 1e-16."""
EXACT_PATTERNS = 1 << 16
"""All sign patterns are tried if there are at most this many."""
PATTERNS_AT_ONCE = 2048
RESAMPLES_AT_ONCE = 256


def fisher_randomisation(
    differences: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    n_permutations: int = 10_000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Two-sided p-values of Fisher's randomisation test (R. A. Fisher, The Design of Experiments,
    1935; for retrieval: Smucker, Allan, Carterette, CIKM 2007).

    Under the null hypothesis the sign of each group's differences is arbitrary. p is the share of
    sign patterns whose mean is at least as far from 0 as the observed one: over all 2^G patterns
    of G groups when there are at most ``n_permutations`` or ``EXACT_PATTERNS``, otherwise
    (b + 1)/(m + 1) over m random patterns. Sums are exact: differences are rounded to integer
    multiples of 2^-50 (or coarser for more than 2^11 queries) of the largest one; patterns within
    the rounding error of the observed value count as equal to it.

    Args:
        differences: float64 [n] or [n, k].
        groups: [n], a label per query; without it each query is a group.
        n_permutations: number m of random patterns, at least 1.
        seed: seed of the patterns.

    Returns:
        float64 [k].

    Raises:
        InputError: no queries, NaN or infinite differences, no permutations, or a group missing.
    """
    d = _columns(differences)
    if n_permutations < 1:
        raise InputError(f"n_permutations must be 1 or more, not {n_permutations}")
    code = _codes(groups, len(d))
    n = int(code.max()) + 1
    integers = np.zeros((-(-n // 64) * 64, d.shape[1]), dtype=np.int64)
    np.add.at(integers, code, _as_integers(d))
    # Each value may be off by half a unit, in both the observed and the permuted sum.
    threshold = np.maximum(np.abs(integers.sum(axis=0)) - len(d), 0)
    if tries_all(n, n_permutations):
        patterns = np.arange(2**n, dtype=np.uint64).reshape(-1, 1)
        return count_extreme(integers, patterns, threshold) / 2.0**n
    rng = np.random.default_rng([seed, 0])
    count = np.zeros(d.shape[1], dtype=np.int64)
    for start in range(0, n_permutations, PATTERNS_AT_ONCE):
        size = (min(PATTERNS_AT_ONCE, n_permutations - start), len(integers) // 64)
        patterns = rng.integers(0, 2**64, size=size, dtype=np.uint64)
        count += count_extreme(integers, patterns, threshold)
    return (count + 1) / (n_permutations + 1)


def paired_t(
    differences: ArrayLike, *, groups: Sequence[Hashable] | None = None
) -> NDArray[np.float64]:
    """Two-sided p-values of the paired t-test, float64 [k]. With groups, the test is of their means
    (each group counts once, however many queries it has). NaN for a single query or group, 1 if
    all differences are 0.

    Raises:
        InputError: no queries, NaN or infinite differences, or a group missing.
    """
    d = _columns(differences)
    sums, sizes = group_sums(d, groups)
    error, freedom = group_error(sums / sizes[:, None])
    return t_test((sums / sizes[:, None]).mean(axis=0), error, freedom)


def bootstrap_interval(
    differences: ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Bootstrap interval of each mean difference over queries, float64 [k, 2]; groups are drawn
    whole. NaN where there are too few, up to four at level .95.

    Plain percentiles cover too rarely where there are few groups (a normal mean of ten in 90 % of
    samples, at level .95), so percentiles further out are taken, by as much as a t-interval is
    wider than a normal one (expanded percentile interval; T. C. Hesterberg, The American
    Statistician 69, 2015). There are too few groups where these lie beyond the rarest resample,
    that of one group alone: the interval would end at the smallest and largest mean of a group,
    and cover the true mean too rarely (in 7 of 8 normal samples of four, 3 of 4 of three).

    Raises:
        InputError: no queries, NaN or infinite differences, a group missing, confidence outside
            (0, 1), or no resamples.
    """
    from scipy.sparse import csr_matrix
    from scipy.stats import norm, t

    d = _columns(differences)
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, not {confidence}")
    if n_resamples < 1:
        raise InputError(f"n_resamples must be 1 or more, not {n_resamples}")
    sums, sizes = group_sums(d, groups)
    n = len(sizes)
    tail = norm.sf(np.sqrt(n / (n - 1)) * t.ppf((1 + confidence) / 2, n - 1)) if n > 1 else 0
    if tail < float(n) ** -n:
        return np.full((d.shape[1], 2), np.nan)
    values = np.column_stack([sums, sizes])
    rng = np.random.default_rng([seed, 1])
    means = np.empty((n_resamples, d.shape[1]))
    for start in range(0, n_resamples, RESAMPLES_AT_ONCE):
        stop = min(start + RESAMPLES_AT_ONCE, n_resamples)
        rows = rng.integers(0, n, size=(stop - start, n), dtype=np.int64)
        ends = np.arange(0, rows.size + 1, n)
        drawn = csr_matrix((np.ones(rows.size), rows.ravel(), ends), (len(rows), n)) @ values
        means[start:stop] = drawn[:, :-1] / drawn[:, -1:]
    return np.quantile(means, [tail, 1 - tail], axis=0).T


def check_queries(name: str, queries: pd.Index, wanted: pd.Index) -> None:
    """Raise InputError unless both have the same queries, each once, in any order."""
    if not queries.is_unique or set(queries) != set(wanted):
        raise InputError(
            f"{name}: values of {len(queries)} queries, others have {len(wanted)}; comparisons are "
            "paired by query: all need a value for each of the same queries"
        )


def group_labels(
    queries: Iterable[Hashable], groups: Mapping[str, Hashable] | None
) -> list[Hashable] | None:
    """The group of each query; None without groups.

    Raises:
        InputError: a query has no group.
    """
    if groups is None:
        return None
    missing = [str(query) for query in queries if str(query) not in groups]
    if missing:
        raise InputError(
            f"{len(missing):,} queries have no group, the first is {missing[0]!r}; give each query "
            "one, and a group of its own to each that belongs with no other"
        )
    return [groups[str(query)] for query in queries]


def group_sums(
    values: NDArray[np.float64], groups: Sequence[Hashable] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum of the rows of each group, float64 [G, k], and its number of rows, int64 [G].

    Raises:
        InputError: there is not exactly one group per row.
    """
    code = _codes(groups, len(values))
    sizes = np.bincount(code)
    sums = np.zeros((len(sizes), values.shape[1]))
    np.add.at(sums, code, values)
    return sums, sizes


def group_error(
    differences: ArrayLike, groups: Sequence[Hashable] | None = None
) -> tuple[NDArray[np.float64], float]:
    """Standard error of each mean over queries, with groups as sampling units (the mean as a ratio
    of sums, linearised), float64 [k], and its degrees of freedom; 0 where it is but a rounding
    error, NaN and 1 for a single group."""
    d = _columns(differences)
    sums, sizes = group_sums(d - d.mean(axis=0), groups)
    n = len(sizes)
    if n < 2:
        return np.full(d.shape[1], np.nan), 1.0
    error = np.sqrt(n / (n - 1) * (sums**2).sum(axis=0)) / len(d)
    return np.where(error > TIE, error, 0.0), n - 1.0


def t_test(
    mean: NDArray[np.float64], error: NDArray[np.float64], freedom: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Two-sided p-values of a t-test; where the error is 0, 1 if the mean is 0, else 0."""
    from scipy.stats import t

    without = np.where(np.isnan(error), np.nan, np.where(mean == 0, 0.0, np.inf))
    return np.asarray(
        2 * t.sf(np.abs(np.divide(mean, error, out=without, where=error > 0)), freedom)
    )


def detectable(
    error: NDArray[np.float64], freedom: float | NDArray[np.float64], alpha: float
) -> NDArray[np.float64]:
    """Differences that a two-sided t-test at level ``alpha`` finds in 80 % of samples."""
    from scipy.stats import t

    return np.asarray((t.ppf(1 - alpha / 2, freedom) + t.ppf(0.8, freedom)) * error)


def smallest_p(differing: int, n_groups: int, n_permutations: int) -> float:
    """The smallest p-value that the randomisation test can give with ``differing`` groups."""
    exact = 2.0 ** (1 - differing) if differing else 1.0
    return exact if tries_all(n_groups, n_permutations) else max(exact, 1 / (n_permutations + 1))


def tries_all(n_groups: int, n_permutations: int) -> bool:
    """Whether the randomisation test tries all sign patterns of so many groups."""
    return n_groups < 63 and 2**n_groups <= max(EXACT_PATTERNS, n_permutations)


def _codes(groups: Sequence[Hashable] | None, n: int) -> NDArray[np.int64]:
    """int64 [n]: number of each query's group, from 0 in order of appearance."""
    if groups is None:
        return np.arange(n)
    if len(groups) != n:
        raise InputError(f"{len(groups)} groups for {n} queries; give one for each")
    code, _ = pd.factorize(np.asarray(groups, dtype=object))
    if (code < 0).any():
        raise InputError(f"query number {int(np.argmin(code)) + 1} has no group")
    return np.asarray(code, dtype=np.int64)


def _columns(differences: ArrayLike) -> NDArray[np.float64]:
    d = np.ascontiguousarray(differences, dtype=np.float64)
    d = d.reshape(-1, 1) if d.ndim == 1 else d
    if d.ndim != 2 or len(d) == 0:
        raise InputError(f"per-query differences must be [n] or [n, k], n > 0, not {d.shape}")
    if not np.isfinite(d).all():
        bad = int(np.flatnonzero(~np.isfinite(d).all(axis=1))[0])
        raise InputError(f"the difference of query number {bad + 1} is not a finite number")
    return d


def count_extreme(
    values: NDArray[np.int64], words: NDArray[np.uint64], threshold: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64 [k]: for each column, how many sign patterns have a sum of at least ``threshold`` in
    absolute value.

    ``values`` int64 [64 w, k] (padded with zeros), ``words`` uint64 [m, w]: bit b of word j is set
    where value 64 j + b keeps its sign, ``threshold`` int64 [k].
    A pattern's sum is 2 * (sum of the values that keep their sign) - (sum of all). For every eight
    values the 256 partial sums are tabulated once and looked up for every pattern.
    """
    keeps = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
    kept = np.zeros((len(words), values.shape[1]), np.int64)
    for byte, looked_up in enumerate(words.view(np.uint8).T):
        kept += (keeps @ values[8 * byte : 8 * byte + 8])[looked_up]
    return (np.abs(2 * kept - values.sum(axis=0)) >= threshold).sum(axis=0)


def _as_integers(d: NDArray[np.float64]) -> NDArray[np.int64]:
    """Columns scaled by a power of two so that n of the largest value still fit in int64."""
    bits = min(50, 61 - len(d).bit_length())
    _, exponent = np.frexp(np.abs(d).max(axis=0))
    return np.rint(np.ldexp(d, bits - exponent)).astype(np.int64)
