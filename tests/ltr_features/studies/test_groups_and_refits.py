"""Queries that belong together, and systems that were fitted several times: against enumeration,
scipy, textbook formulas and simulations with a known answer."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from letor.errors import InputError
from ltr_features.clicks.times import span_text
from ltr_features.sources.query_files import read_query_groups, read_query_times
from ltr_features.studies.statistics.paired_tests import (
    bootstrap_interval,
    detectable,
    fisher_randomisation,
    group_error,
    group_labels,
    paired_t,
    smallest_p,
    t_test,
)
from ltr_features.studies.statistics.refits import Refits, fits_note, mean_values
from ltr_features.studies.statistics.significance import TestSettings, compare, gain_row

QUICK = TestSettings(n_permutations=999, n_resamples=500)


def unequal_groups(n_groups: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Differences and groups of one to four queries, the queries of a group not side by side."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_groups), 1 + np.arange(n_groups) % 4)
    d = np.round(rng.normal(0.1, 0.3, len(labels)) + rng.normal(0, 0.3, n_groups)[labels], 2)
    order = rng.permutation(len(labels))
    return d[order], [f"g{label}" for label in labels[order]]


def frames(*columns: np.ndarray) -> list[pd.DataFrame]:
    return [pd.DataFrame({"m": v}, index=[f"q{i}" for i in range(len(v))]) for v in columns]


@pytest.mark.parametrize("n_groups", [1, 2, 5, 10])
def test_exact_by_group_as_enumerated(n_groups: int) -> None:
    d, groups = unequal_groups(n_groups, seed=n_groups)
    names = sorted(set(groups))
    means = []
    for signs in product((-1, 1), repeat=n_groups):
        sign = dict(zip(names, signs, strict=True))
        means.append(abs(sum(sign[g] * x for g, x in zip(groups, d, strict=True))))
    expected = np.mean(np.array(means) >= abs(d.sum()) - 1e-9)
    assert fisher_randomisation(d, groups=groups)[0] == expected


def test_query_times_in_several_units(tmp_path: Path) -> None:
    path = tmp_path / "times.tsv"
    path.write_text("a\t2026-06-01T00:00:00Z\nb\t1780272000\nc\t1780272000000\n")
    assert read_query_times(path) == {"a": 1780272000.0, "b": 1780272000.0, "c": 1780272000.0}
    path.write_text("a\t1780272000\nb\t500000000\n")  # seconds of 2026 and of 1985
    assert read_query_times(path) == {"a": 1780272000.0, "b": 500000000.0}


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ([1780272000.0, 1767225600.0], "2026-01-01 to 2026-06-01"),
        ([0.0, 1780272000.0], "1970-01-01 to 2026-06-01"),
        ([3.0, 1.0], "1 to 3"),
        ([4.0, 4.0], "4"),
        ([-1e15, 1780272000.0], "-1e+15 to 1780272000"),  # no date of the calendar
    ],
)
def test_first_and_last_time_in_words(times: list[float], told: str) -> None:
    assert span_text(np.array(times)) == told


@pytest.mark.parametrize("plain", ["0", "20260705", "2026"])
@pytest.mark.parametrize("other", ["2026-06-01", "1780272000000"])
def test_plain_numbers_among_dates_are_refused(tmp_path: Path, plain: str, other: str) -> None:
    """They would count as earlier than every date."""
    path = tmp_path / "times.tsv"
    for first, then, line in ((plain, other, 1), (other, plain, 2)):
        path.write_text(f"a\t{first}\nb\t{then}\n")
        with pytest.raises(InputError, match=rf"line {line}: '{plain}' is a plain number"):
            read_query_times(path)


def test_all_patterns_of_sixteen_groups_are_tried_however_few_permutations_are_asked_for() -> None:
    d, groups = unequal_groups(16, seed=0)
    sums = pd.Series(d).groupby(groups).sum().to_numpy()
    signs = np.array(list(product((-1, 1), repeat=16)))
    expected = np.mean(np.abs(signs @ sums) >= abs(sums.sum()) - 1e-9)
    assert fisher_randomisation(d, groups=groups, n_permutations=10)[0] == expected
    more, more_groups = unequal_groups(17, seed=0)
    p = fisher_randomisation(more, groups=more_groups, n_permutations=10)[0]
    assert round(p * 11) / 11 == pytest.approx(p)  # (b + 1) / (10 + 1)


def test_sampled_by_group_agrees_with_scipy_on_the_groups_sums() -> None:
    rng = np.random.default_rng(3)
    d, labels = rng.normal(0.03, 0.2, 400), rng.integers(0, 60, 400)
    sums = pd.Series(d).groupby(labels).sum().to_numpy()
    expected = stats.permutation_test(
        (sums,), np.sum, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=1
    ).pvalue
    p = fisher_randomisation(d, groups=labels.tolist(), n_permutations=20_000, seed=5)[0]
    assert p == pytest.approx(expected, abs=5 * np.sqrt(2 * expected / 20_000))


def test_groups_of_one_query_change_nothing() -> None:
    d = np.random.default_rng(4).normal(0.02, 0.2, (90, 2))
    alone = [f"q{i}" for i in range(90)]
    for test in (fisher_randomisation, paired_t, bootstrap_interval):
        np.testing.assert_array_equal(test(d, groups=alone), test(d))
    np.testing.assert_allclose(group_error(d)[0], stats.sem(d))


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter_where_all_patterns_are_tried() -> (
    None
):
    d, groups = unequal_groups(9, seed=1)
    order = np.random.default_rng(0).permutation(len(d))
    renamed = [groups[i].replace("g", "article ") for i in order]
    assert fisher_randomisation(d, groups=groups) == fisher_randomisation(d[order], groups=renamed)


def test_t_test_of_the_groups_means_is_scipy_s() -> None:
    d, groups = unequal_groups(12, seed=2)
    means = pd.Series(d).groupby(groups).mean()
    assert paired_t(d, groups=groups)[0] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)
    assert np.isnan(paired_t(d, groups=["all"] * len(d))[0])


def test_bootstrap_draws_whole_groups_and_keeps_the_mean_over_queries() -> None:
    """As a slow twin draws them; two groups of one and of nine queries have three means only."""
    d, groups = np.array([0.4] + [0.1] * 9), ["a"] + ["b"] * 9
    middle = bootstrap_interval(d, groups=groups, confidence=0.2)[0]
    assert middle == pytest.approx([0.13, 0.13])  # bb .1, ab and ba .13, aa .4
    d, groups = unequal_groups(40, seed=3)
    of = [d[np.array(groups) == g] for g in sorted(set(groups))]
    rng = np.random.default_rng(0)
    drawn = [np.concatenate([of[i] for i in rng.integers(0, 40, 40)]).mean() for _ in range(4000)]
    interval = bootstrap_interval(d, groups=groups)[0]
    assert interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)
    assert np.isnan(bootstrap_interval(d, groups=["all"] * len(d))).all()


def test_error_of_equal_groups_is_that_of_their_means() -> None:
    d = np.random.default_rng(5).normal(0, 1, (30, 6)) + np.linspace(-1, 1, 30)[:, None]
    error, freedom = group_error(d.ravel(), np.repeat(np.arange(30), 6).tolist())
    assert error[0] == pytest.approx(stats.sem(d.mean(axis=1)))
    assert freedom == 29


def test_design_effect_of_equal_groups_is_kish_s() -> None:
    """1 + (size - 1) * correlation within groups; planted with correlation .5 and size 5."""
    rng = np.random.default_rng(6)
    shared, own = rng.normal(size=2000), rng.normal(size=(2000, 5))
    a, b = frames((shared[:, None] + own).ravel(), np.zeros(10_000))
    groups = {f"q{i}": i // 5 for i in range(10_000)}
    row = compare({"a": a, "b": b}, [("a", "b")], ["m"], QUICK, groups=groups).iloc[0]
    assert row["design_effect"] == pytest.approx(3, abs=0.15)
    assert row["n_groups"] == 2000
    assert compare({"a": a, "b": b}, [("a", "b")], ["m"], QUICK)["design_effect"][0] == 1


def test_effects_of_clusters_alone_fool_the_test_by_query_and_not_the_one_by_group() -> None:
    """Planted: no difference between the systems, but each group of 10 queries has luck of its
    own. At level .05 the test by query finds a difference in far more than 5 % of the samples."""
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(30), 10)
    luck = rng.normal(0, 1, (30, 400))[groups] + rng.normal(0, 1, (300, 400))
    by_query = fisher_randomisation(luck, n_permutations=999)
    by_group = fisher_randomisation(luck, groups=groups.tolist(), n_permutations=999)
    assert (by_query <= 0.05).mean() > 0.3
    assert (by_group <= 0.05).mean() == pytest.approx(0.05, abs=0.03)
    assert (paired_t(luck) <= 0.05).mean() > 0.3
    assert (paired_t(luck, groups=groups.tolist()) <= 0.05).mean() == pytest.approx(0.05, abs=0.03)
    for labels, low, high in ((None, 0.3, 0.8), (groups.tolist(), 0.88, 0.98)):
        interval = bootstrap_interval(luck, groups=labels, n_resamples=500)
        covered = (interval[:, 0] <= 0) & (interval[:, 1] >= 0)
        assert low < covered.mean() < high


def test_detectable_difference_by_group_has_eighty_percent_power() -> None:
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(40), 5).tolist()

    def luck(k: int) -> np.ndarray:
        return rng.normal(0, 1, (40, k)).repeat(5, axis=0) + rng.normal(0, 1, (200, k))

    found = np.mean([detectable(*group_error(luck(50), groups), 0.05).mean() for _ in range(4)])
    power = (paired_t(luck(4000) + found, groups=groups) < 0.05).mean()
    assert power == pytest.approx(0.8, abs=0.03)


def test_smallest_p_is_what_the_test_gives_at_best() -> None:
    for differing in (1, 4, 12):
        d = np.zeros(15)
        d[:differing] = 0.1 + np.arange(differing) / 100
        assert smallest_p(differing, 15, 999) == fisher_randomisation(d)[0]
    assert smallest_p(0, 15, 999) == 1
    assert smallest_p(40, 60, 999) == 1 / 1000


def test_gain_row_by_hand() -> None:
    system, baseline = np.array([0.3, 0.5, 0.2]), np.array([0.1, 0.2, 0.2])
    row = gain_row(system, baseline, QUICK, ["a", "a", "b"])
    assert (row["n_queries"], row["n_groups"], row["p"]) == (3, 2, 1.0)  # b's sign changes nothing
    assert row["gain"] == pytest.approx(0.5 / 3)
    assert gain_row(system, baseline, QUICK)["p"] == 0.5  # of 4 patterns of two that differ


def test_correction_stays_over_all_pairs_and_measures() -> None:
    rng = np.random.default_rng(9)
    base = rng.random((60, 2))
    index = [f"q{i}" for i in range(60)]
    systems = {
        name: pd.DataFrame(base + gain + rng.normal(0, 0.1, (60, 2)), index, ["x", "y"])
        for name, gain in (("b", 0.0), ("s", 0.05), ("t", 0.01))
    }
    groups = {query: i // 4 for i, query in enumerate(index)}
    table = compare(systems, [("s", "b"), ("t", "b")], ["x", "y"], QUICK, groups=groups)
    ordered = np.sort(table["p"].to_numpy())
    holm = np.minimum(np.maximum.accumulate(ordered * [4, 3, 2, 1]), 1)
    np.testing.assert_allclose(np.sort(table["p_corrected"]), holm)


def test_spread_over_fits_and_the_p_value_that_includes_it() -> None:
    """Against the formulas of Welch and Satterthwaite, written out."""
    rng = np.random.default_rng(10)
    own = rng.normal(0.05, 0.1, 50)
    fits = [own + shift for shift in (0.0, 0.02, 0.04)]
    values = {"s": frames(*fits), "b": frames(np.zeros(50))}
    per_query = {"s": mean_values(values["s"]), "b": values["b"][0]}
    row = compare(per_query, [("s", "b")], ["m"], QUICK, fits={"s": values["s"]}).iloc[0]
    plain = compare(per_query, [("s", "b")], ["m"], QUICK).iloc[0]
    assert row["spread"] == pytest.approx(0.02)
    assert row["n_fits"] == 3
    over_queries, over_fits = own.var(ddof=1) / 50, 0.02**2 / 3
    total = over_queries + over_fits
    freedom = total**2 / (over_queries**2 / 49 + over_fits**2 / 2)
    expected = 2 * stats.t.sf((own.mean() + 0.02) / np.sqrt(total), freedom)
    assert row["p_refits"] == pytest.approx(expected)
    assert row["p_corrected"] == max(row["p"], row["p_refits"]) == row["p_refits"]
    stretch = stats.t.ppf(0.975, freedom) * np.sqrt(total)
    stretch /= stats.t.ppf(0.975, 49) * np.sqrt(over_queries)
    for end in ("low", "high"):
        width = (plain[end] - plain["difference"]) * stretch
        assert row[end] - row["difference"] == pytest.approx(width)
    assert (np.isnan(plain["spread"]), np.isnan(plain["p_refits"])) == (True, True)
    assert row["p"] == plain["p"] == plain["p_corrected"]
    assert row["detectable"] > plain["detectable"]
    for pair, sign in ((("s", "b"), 1), (("b", "s"), -1)):  # a system fitted once, whichever it is
        uneven = compare(per_query, [pair], ["m"], QUICK, fits=values).iloc[0]
        found = {name: uneven[name] for name in ("n_fits", "spread", "p", "p_refits")}
        assert found == pytest.approx({name: row[name] for name in found})
        assert uneven["difference"] == pytest.approx(sign * row["difference"])


def test_level_of_the_test_with_training_noise() -> None:
    """Simulated with luck of queries and of three fits of equal variance: about .05, where the test
    that knows nothing of the fits is wrong three times as often."""
    rng = np.random.default_rng(14)
    k, n = 4000, 40
    luck = rng.normal(0, 1, (n, k))
    shifts = rng.normal(0, np.sqrt(3 / n), (3, k))
    d = luck + shifts.mean(axis=0)
    error, freedom = group_error(d)
    refits = Refits(np.full(k, 3), shifts.std(axis=0, ddof=1))
    p = t_test(d.mean(axis=0), *refits.total_error(error, freedom))
    assert (p < 0.05).mean() == pytest.approx(0.058, abs=0.012)
    assert (paired_t(d) < 0.05).mean() == pytest.approx(0.16, abs=0.02)
    # the t-interval, stretched, covers as often as the test does not reject
    plain = d.mean(axis=0)[:, None] + np.outer(error, [-1, 1]) * stats.t.ppf(0.975, freedom)
    wide = refits.widened(d.mean(axis=0), plain, error, freedom, 0.95)
    np.testing.assert_array_equal((wide[:, 0] > 0) | (wide[:, 1] < 0), p < 0.05)


def test_training_noise_never_narrows_an_interval() -> None:
    """Of five queries, little noise lowers the quantile of t by more than it adds to the error."""
    noise = np.array([0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 1.0])
    refits, k = Refits(np.full(len(noise), 3), noise), len(noise)
    plain = np.tile([-0.05, 0.05], (k, 1))
    wide = refits.widened(np.zeros(k), plain, np.full(k, 0.018), 4.0, 0.95)
    assert (np.diff(wide[:, 1]) >= 0).all()
    assert wide[0, 1] == 0.05 < wide[-1, 1]


def test_constant_differences_have_an_interval_of_training_noise_alone() -> None:
    refits = Refits(np.array([3, 3, 1]), np.array([0.3, 0.0, np.nan]))
    mean, none = np.full(3, 0.5), np.zeros(3)
    wide = refits.widened(mean, np.full((3, 2), 0.5), none, 9.0, 0.95)
    half = stats.t.ppf(0.975, 2) * 0.3 / np.sqrt(3)
    np.testing.assert_allclose(wide, [[0.5 - half, 0.5 + half], [0.5, 0.5], [0.5, 0.5]])


def test_differences_that_fits_share_are_no_training_noise() -> None:
    """Fits of the same number are paired: what moves both systems alike moves no difference."""
    base = np.random.default_rng(11).random(30) / 2
    shifts = (0.0, 0.1, 0.2)
    fits = {
        "s": frames(*(base + 0.1 + s for s in shifts)),
        "b": frames(*(base + s for s in shifts)),
    }
    per_query = {name: mean_values(of) for name, of in fits.items()}
    row = compare(per_query, [("s", "b")], ["m"], QUICK, fits=fits).iloc[0]
    assert row["spread"] == pytest.approx(0, abs=1e-12)
    crossed = {"s": fits["s"], "b": fits["b"][::-1]}
    assert compare(per_query, [("s", "b")], ["m"], QUICK, fits=crossed)["spread"][0] == (
        pytest.approx(0.2)
    )


def test_luck_of_training_alone_is_not_significant_with_refits() -> None:
    """Planted: the systems are equal, but every fit shifts all queries alike. By one fit the test
    over queries is fooled most of the time; with three fits the level holds."""
    rng = np.random.default_rng(12)
    shifts = rng.normal(0, 0.05, (400, 3))
    fits = {f"s{i}": frames(*(rng.normal(s, 0.1, 100) for s in of)) for i, of in enumerate(shifts)}
    pairs, base = [(name, "b") for name in fits], {"b": frames(np.zeros(100))[0]}
    one = compare({n: of[0] for n, of in fits.items()} | base, pairs, ["m"], QUICK)
    means = {n: mean_values(of) for n, of in fits.items()} | base
    many = compare(means, pairs, ["m"], QUICK, fits=fits)
    assert (one["p"] < 0.05).mean() > 0.5
    assert (many[["p", "p_refits"]].max(axis=1) < 0.05).mean() == pytest.approx(0.06, abs=0.03)
    zero = (many["low"] <= 0) & (many["high"] >= 0)
    assert zero.mean() == pytest.approx(0.93, abs=0.03)


def test_what_is_told_of_fits() -> None:
    one, three = frames(np.zeros(2)), frames(*np.zeros((3, 2)))
    assert "fitted once" in fits_note({"a": one, "b": one})
    assert "fitted 3 times, each time with different folds" in fits_note({"a": three, "b": three})
    assert "with the same folds and" in fits_note({"a": three}, same_folds=True)
    assert "fitted 3 times (“c”: once)" in fits_note({"a": three, "b": three, "c": one})


def test_files_of_groups(tmp_path) -> None:
    path = tmp_path / "groups.tsv"
    path.write_text("q1\tThe River\nq2\tThe River\n\nq3\tSea\n", encoding="utf-8")
    assert read_query_groups(path) == {"q1": "The River", "q2": "The River", "q3": "Sea"}
    with pytest.raises(InputError, match=r"groups.tsv: no group of 1 query, e.g. 'q4'"):
        read_query_groups(path, ["q1", "q4"])
    path.write_text("17.0\tSea\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"of 1 query, e.g. '17'; there is '17.0': write ids alike"
    ):
        read_query_groups(path, ["17"])
    for text, message in (
        ("q1 River\n", "line 1: expected query id, tab, group"),
        ("q1\tRiver\nq2\t\n", "line 2: expected"),
        ("q1\tRiver\nq1\tSea\n", "line 2: query 'q1' has the group 'Sea' here, but 'River' before"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            read_query_groups(path)


def test_bad_groups_and_fits() -> None:
    with pytest.raises(InputError, match="2 groups for 3 queries"):
        fisher_randomisation([0.1, 0.2, 0.3], groups=["a", "b"])
    with pytest.raises(InputError, match="query number 2 has no group"):
        paired_t([0.1, 0.2, 0.3], groups=["a", None, "b"])
    with pytest.raises(InputError, match="2 queries have no group, the first is 'q1'"):
        group_labels(["q0", "q1", "q2"], {"q0": "a"})
    a, b = frames(np.zeros(3), np.ones(3))
    with pytest.raises(InputError, match=r"a fit of system 'a': values of .* queries, others have"):
        compare({"a": a, "b": b}, [("a", "b")], ["m"], QUICK, fits={"a": [a, a.iloc[:2]]})
    for fits, message in [
        ({"c": [a]}, "fits of an unknown system 'c'; known are a, b"),
        ({"a": a}, "fits of system 'a' must be a list with a frame for each fit"),
        ({"a": [a, b]}, "the values of system 'a' must be the means over its fits by query"),
    ]:
        with pytest.raises(InputError, match=message):
            compare({"a": a, "b": b}, [("a", "b")], ["m"], QUICK, fits=fits)
