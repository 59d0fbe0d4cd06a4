"""Tests against scipy, exact enumeration by hand, slow twins, and invariances."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from inspect import signature
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test, ttest_rel
from statsmodels.stats.multitest import multipletests

from letor.errors import InputError
from ltr_features.studies.statistics.paired_tests import (
    bootstrap_interval,
    count_extreme,
    fisher_randomisation,
    group_error,
    paired_t,
)
from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import (
    TestSettings,
    compare,
    corrected,
    gain_row,
)


def enumerated(d: np.ndarray) -> float:
    """All sign patterns, one by one; sums that differ by rounding count as equal."""
    observed = abs(sum(d)) - 1e-9
    sums = [
        abs(sum(s * x for s, x in zip(signs, d, strict=True)))
        for signs in product((-1, 1), repeat=len(d))
    ]
    return sum(total >= observed for total in sums) / len(sums)


def test_exact_for_few_queries_as_enumerated() -> None:
    # 2 of the 8 patterns reach |sum| = 6 (all plus, all minus)
    assert fisher_randomisation([1.0, 2.0, 3.0])[0] == 2 / 8
    # 0.1 + 0.2 - 0.3 = 0 up to rounding: a tie, which exact sums alone would miss
    assert fisher_randomisation([0.1, 0.2, -0.3])[0] == 1.0
    assert fisher_randomisation([0.5])[0] == 1.0
    rng = np.random.default_rng(1)
    for n in (2, 5, 9):
        d = np.round(rng.normal(0.2, 1, n), 1)
        assert fisher_randomisation(d)[0] == enumerated(d)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_exact_equals_enumeration(tenths: list[int]) -> None:
    d = np.array(tenths) / 10
    p = fisher_randomisation(d, n_permutations=256)[0]
    assert p == enumerated(d)
    assert p == fisher_randomisation(-d, n_permutations=256)[0]


def test_exact_equals_scipy() -> None:
    d = np.random.default_rng(2).normal(0.3, 1, 12)
    expected = permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf, rng=0
    ).pvalue
    assert fisher_randomisation(d)[0] == pytest.approx(expected, abs=1e-12)


def test_sampled_agrees_with_scipy_within_sampling_error() -> None:
    rng = np.random.default_rng(3)
    d = rng.normal([0.0, 0.02, 0.04], 0.2, (150, 3))
    p = fisher_randomisation(d, n_permutations=20_000, seed=5)
    for j in range(3):
        expected = permutation_test(
            (d[:, j],),
            lambda x, axis: x.mean(axis=axis),
            permutation_type="samples",
            n_resamples=20_000,
            vectorized=True,
            rng=1,
        ).pvalue
        error = np.sqrt(2 * expected * (1 - expected) / 20_000)
        assert abs(p[j] - expected) < 5 * error + 1e-4


def test_smallest_p_is_one_over_m_plus_one() -> None:
    assert fisher_randomisation(np.full(100, 0.1), n_permutations=999)[0] == 1 / 1000
    assert fisher_randomisation(np.zeros(100), n_permutations=999)[0] == 1.0


def test_sums_over_many_queries_do_not_overflow() -> None:
    """2^15 ones of 2^49 each would add up to 0 in 64 bits."""
    n = 2**15
    assert fisher_randomisation(np.ones(n), n_permutations=99) == pytest.approx(0.01)
    balanced = np.tile([1.0, -1.0], n // 2)
    assert fisher_randomisation(balanced, n_permutations=99) == pytest.approx(1.0)


def test_p_depends_on_seed_and_own_column_only() -> None:
    d = np.random.default_rng(4).normal(0.02, 0.2, (100, 4))
    p = fisher_randomisation(d, seed=1)
    np.testing.assert_array_equal(p, fisher_randomisation(d, seed=1))
    assert p[2] == fisher_randomisation(d[:, 2], seed=1)[0]
    assert (p != fisher_randomisation(d, seed=2)).any()
    # scale does not matter, however extreme
    np.testing.assert_array_equal(p, fisher_randomisation(d * 2.0**-300, seed=1))


def test_count_extreme_equals_its_slow_twin() -> None:
    rng = np.random.default_rng(6)
    values = rng.integers(-50, 50, (128, 3))
    words = rng.integers(0, 2**64, (40, 2), dtype=np.uint64)
    threshold = np.array([100, 300, 500])
    count = np.zeros(3, dtype=int)
    for row in words:
        signs = [1 if (int(row[i // 64]) >> (i % 64)) & 1 else -1 for i in range(128)]
        count += np.abs(np.array(signs) @ values) >= threshold
    np.testing.assert_array_equal(count_extreme(values, words, threshold), count)
    assert 0 < count.min() < 40


def test_paired_t_equals_scipy() -> None:
    rng = np.random.default_rng(8)
    for a, b in (rng.random((2, 30, 3)), np.array([[0.9, 0.4], [0.2, 0.1]])):
        np.testing.assert_allclose(paired_t(a - b), ttest_rel(a, b).pvalue)
    assert paired_t(np.zeros(5))[0] == 1.0
    assert np.isnan(paired_t([0.3])[0])


def test_bootstrap_interval_is_close_to_the_normal_one_and_seeded() -> None:
    d = np.random.default_rng(9).normal(0.05, 0.2, 400)
    low, high = bootstrap_interval(d, seed=3)[0]
    error = d.std(ddof=1) / 20
    assert low == pytest.approx(d.mean() - 1.96 * error, abs=0.1 * error)
    assert high == pytest.approx(d.mean() + 1.96 * error, abs=0.1 * error)
    assert (low, high) == tuple(bootstrap_interval(d, seed=3)[0])
    wide = bootstrap_interval(d, confidence=0.99, seed=3)[0]
    assert wide[0] < low < high < wide[1]


@pytest.mark.parametrize("n", [8, 20])
def test_intervals_over_few_queries_cover_as_often_as_they_say(n: int) -> None:
    """Plain percentiles cover in 89 % (8 queries) and 92 % (20) of samples."""
    d = np.random.default_rng(n).normal(0, 1, (n, 4000))
    low, high = bootstrap_interval(d, n_resamples=2000).T
    assert ((low <= 0) & (high >= 0)).mean() == pytest.approx(0.945, abs=0.012)


@pytest.mark.parametrize(("n", "enough"), [(1, False), (2, False), (4, False), (5, True)])
def test_of_too_few_queries_there_is_no_interval(n: int, enough: bool) -> None:
    """From the smallest to the largest of four is no interval of level .95: two in sixteen means
    lie outside."""
    interval = bootstrap_interval(np.random.default_rng(n).normal(0, 1, n))
    assert np.isfinite(interval).all() == enough


def test_holm_by_hand() -> None:
    np.testing.assert_allclose(corrected([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    p = np.random.default_rng(0).integers(1, 60, 40) / 100  # many of them equal
    for some in (p, p / 50, p[:1], p[:0]):
        np.testing.assert_array_equal(corrected(some), multipletests(some, method="holm")[1])
    with pytest.raises(InputError, match="holm"):
        corrected([0.1, 0.2], "nonsense")


@pytest.mark.parametrize("method", ["fdr_tsbh", "fdr_tsbky"])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_two_stage_corrections_are_made_for_the_level_they_are_compared_with(
    method: str, alpha: float
) -> None:
    """Benjamini, Krieger, Yekutieli, Biometrika 93, 2006, definitions 6 and 7: null hypotheses are
    counted by a first Benjamini-Hochberg procedure at ``first``; the second has m / m0 of it."""
    p = np.array([0.001, 0.008, 0.012, 0.02, 0.03, 0.2, 0.6])
    first = alpha / (1 + alpha) if method == "fdr_tsbky" else alpha

    def rejected(level: float) -> np.ndarray:
        below = np.flatnonzero(p <= level * np.arange(1, 8) / 7)
        return np.arange(7) <= below.max(initial=-1)

    n_null = 7 - rejected(first).sum()
    expected = rejected(first * 7 / n_null) if 0 < n_null < 7 else np.full(7, n_null == 0)
    found = TestSettings(alpha=alpha, correction=method).corrected(p) < alpha
    np.testing.assert_array_equal(found, expected)


def systems(n: int = 60) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(10)
    base = rng.random((n, 2)) * 0.5
    ids = [f"q{i}" for i in range(n)]
    better = (
        base + np.clip(rng.normal(0.1, 0.1, (n, 2)), -0.2, 0.4) * (np.arange(n) % 4 > 0)[:, None]
    )
    return {
        name: pd.DataFrame(v, index=ids, columns=["NDCG@10", "MAP"])
        for name, v in {"base": base, "same": base.copy(), "better": better}.items()
    }


def test_compare_table() -> None:
    per_query = systems()
    table = compare(
        {**per_query, "better": per_query["better"].sample(frac=1, random_state=1)},
        [("better", "base"), ("same", "base")],
        ["NDCG@10", "MAP"],
    )
    assert table[["system", "measure"]].to_numpy().tolist() == [
        ["better", "NDCG@10"], ["better", "MAP"], ["same", "NDCG@10"], ["same", "MAP"],
    ]  # fmt: skip
    d = per_query["better"]["NDCG@10"] - per_query["base"]["NDCG@10"]
    row = table.iloc[0]
    assert row["difference"] == pytest.approx(d.mean())
    assert row["relative"] == pytest.approx(d.mean() / per_query["base"]["NDCG@10"].mean())
    assert row["effect"] == pytest.approx(d.mean() / d.std())
    assert (row["won"], row["tied"], row["lost"]) == ((d > 0).sum(), 15, (d < 0).sum())
    assert row["low"] < row["difference"] < row["high"]
    # a family of four, Holm: the smallest p-value times 4, the next times 3
    smallest, next_one = sorted(table["p"][:2])
    assert table["p_corrected"].min() == pytest.approx(4 * smallest)
    assert table["p_corrected"][:2].max() == pytest.approx(max(4 * smallest, 3 * next_one))
    assert table["p_corrected"].tolist()[2:] == [1.0, 1.0]
    assert table["significant"].tolist() == [True, True, False, False]
    assert table["tied"].tolist()[2:] == [60, 60]
    assert table["differing"].tolist()[0] == (d != 0).sum()
    assert table["differing"].tolist()[2:] == [0, 0]
    assert np.isnan(table["effect"].iloc[2])


def test_detectable_difference_has_eighty_percent_power() -> None:
    rng = np.random.default_rng(11)
    d = rng.normal(0, 1, (50, 1))
    frame = {"a": pd.DataFrame({"m": d[:, 0]}), "b": pd.DataFrame({"m": np.zeros(50)})}
    detectable = compare(frame, [("a", "b")], ["m"])["detectable"].iloc[0]
    samples = rng.normal(detectable / d.std(ddof=1), 1, (50, 4000))
    assert (paired_t(samples) < 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_bad_comparisons() -> None:
    per_query = systems()
    with pytest.raises(InputError, match="unknown system 'bset'; known are base, same, better"):
        compare(per_query, [("bset", "base")], ["MAP"])
    with pytest.raises(InputError, match="'better' has no values of the measure 'P@10'"):
        compare(per_query, [("better", "base")], ["P@10"])
    for values in ([0.1, 0.2], per_query["better"]["MAP"]):
        with pytest.raises(InputError, match=r"system 'better': give a frame .*, not a "):
            compare({**per_query, "better": values}, [("better", "base")], ["MAP"])
    with pytest.raises(InputError, match="paired by query"):
        compare({**per_query, "short": per_query["base"].iloc[:9]}, [("short", "base")], ["MAP"])
    with pytest.raises(InputError, match="nothing to compare"):
        compare(per_query, [], ["MAP"])
    with pytest.raises(InputError, match="query number 2 is not a finite"):
        fisher_randomisation([0.1, np.nan])
    with pytest.raises(InputError, match="n > 0"):
        fisher_randomisation([])
    with pytest.raises(InputError, match="n_permutations"):
        fisher_randomisation([0.1], n_permutations=0)
    with pytest.raises(InputError, match="n_resamples must be 1 or more, not 0"):
        bootstrap_interval([0.1, 0.2], n_resamples=0)
    with pytest.raises(InputError, match="confidence"):
        bootstrap_interval([0.1], confidence=95)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0}, "alpha must lie between 0 and 1, got 0"),
        ({"alpha": float("nan")}, "alpha must lie between 0 and 1, got nan"),
        ({"confidence": 95}, "confidence must lie between 0 and 1, got 95"),
        ({"n_permutations": 0}, "n_permutations must be 1 or more, got 0"),
        ({"n_resamples": -1}, "n_resamples must be 1 or more, got -1"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
    ],
)
def test_settings_out_of_range_are_refused(given: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TestSettings(**given)  # type: ignore[arg-type]


def test_settings_describe_every_number_of_the_table() -> None:
    text = TestSettings(n_permutations=5000, seed=7, correction="fdr_bh").description
    for part in (
        "5,000",
        "seed 7",
        "Benjamini-Hochberg",
        "two-sided",
        "bootstrap",
        "Cohen",
        "paired t-test",
    ):
        assert part in text


def test_differences_of_a_billionth_are_ties_and_no_spread_has_no_effect() -> None:
    base = pd.DataFrame({"MAP": np.full(6, 0.0)}, index=list("abcdef"))
    just = base.assign(MAP=[1e-9, -1e-9, 2e-9, 0.5, -0.5, 0.0])
    shifted = base + 0.25
    table = compare(
        {"base": base, "just": just, "shifted": shifted},
        [("just", "base"), ("shifted", "base")],
        ["MAP"],
    )
    assert table[["won", "tied", "lost"]].to_numpy().tolist() == [[2, 3, 1], [6, 0, 0]]
    assert np.isnan(table["effect"][1])  # the difference is the same everywhere
    assert np.isnan(table["relative"]).all()  # of a mean of 0


def test_rounding_errors_are_no_differences_and_what_is_constant_tells_of_no_detectable_one() -> (
    None
):
    """A ranking fitted several times, alike each time, and the same one fitted once."""
    fits = np.random.default_rng(3).random(400).round(4)
    once = pd.DataFrame({"MAP": fits})
    several = mean_values([once] * 6)
    assert (several["MAP"] != fits).any()
    found = compare({"one": once, "six": several}, [("six", "one")], ["MAP"]).iloc[0]
    assert (found["difference"], found["p"], found["low"], found["high"]) == (0, 1, 0, 0)
    assert gain_row(several["MAP"].to_numpy(), fits, TestSettings())["p"] == 1
    assert np.isnan(found["detectable"])


def test_defaults_are_those_that_the_documentation_states() -> None:
    settings = TestSettings()
    drawn = (settings.n_permutations, settings.n_resamples, settings.confidence, settings.alpha)
    assert drawn == (10_000, 10_000, 0.95, 0.05)
    for function, name in ((fisher_randomisation, "n_permutations"),
                           (bootstrap_interval, "n_resamples")):  # fmt: skip
        assert signature(function).parameters[name].default == 10_000
    with pytest.raises(FrozenInstanceError):
        settings.seed = 1  # type: ignore[misc]


def test_numbers_at_their_limits() -> None:
    d = [0.1, 0.3]
    assert fisher_randomisation(d, n_permutations=1)[0] == 0.5  # exact, for two queries
    assert np.isfinite(bootstrap_interval([0.1, 0.3] * 3, n_resamples=1)).all()
    for confidence in (-0.1, 0, 1):
        with pytest.raises(InputError, match="confidence must lie between 0 and 1"):
            bootstrap_interval(d, confidence=confidence)
    error, freedom = group_error(d, ["one", "one"])
    assert np.isnan(error).all()
    assert freedom == 1


def test_the_same_seed_draws_the_same_patterns_and_queries_in_every_release() -> None:
    d = np.random.default_rng(11).normal(0.03, 0.1, 40)
    assert fisher_randomisation(d, n_permutations=999, seed=5)[0] == 0.12
    low, high = bootstrap_interval(d, n_resamples=200, seed=5)[0]
    assert (low, high) == pytest.approx((-0.010543450937, 0.049784744796), abs=1e-9)
