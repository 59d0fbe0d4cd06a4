"""The selection effect is visible, and the control takes it out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from letor.errors import InputError
from ltr_features.studies.statistics.hard_queries import (
    BOTH,
    hard_by_quantile,
    hard_by_threshold,
    hard_query_table,
)
from ltr_features.studies.statistics.significance import TestSettings

QUICK = TestSettings(n_permutations=999, n_resamples=500)


def ndcg(labels: np.ndarray, scores: np.ndarray, k: int = 20) -> float:
    discount = 1 / np.log2(np.arange(2, len(labels) + 2))
    gain = 2.0**labels - 1
    ideal = (np.sort(gain)[::-1] * discount)[:k].sum()
    return (gain[np.argsort(-scores)] * discount)[:k].sum() / ideal if ideal else 0.0


def simulated(noise: dict[str, float], n_queries: int = 1500) -> dict[str, pd.Series]:
    """Rankers that see a document's true relevance through independent noise."""
    rng = np.random.default_rng(0)
    values: dict[str, list[float]] = {name: [] for name in noise}
    for _ in range(n_queries):
        n = int(rng.choice([8, 15, 30, 60]))
        truth = rng.normal(size=n)
        labels = np.digitize(truth + 0.5 * rng.normal(size=n), [1.0, 1.7]).astype(float)
        labels *= rng.random() > 0.28
        for name, level in noise.items():
            values[name].append(ndcg(labels, truth + level * rng.normal(size=n)))
    return {name: pd.Series(v, index=[f"q{i}" for i in range(n_queries)]) for name, v in
            values.items()}  # fmt: skip


def test_equal_quality_gains_only_where_the_baseline_chose_the_queries() -> None:
    v = simulated({"baseline": 1.3, "equal": 1.3, "better": 0.8, "control": 1.3, "selector": 1.3})
    table = hard_query_table(
        v["baseline"],
        {"equal": v["equal"], "better": v["better"]},
        selectors={"other seed": v["selector"]},
        control=v["control"],
        settings=QUICK,
    ).set_index(["system", "rule", "chosen_by"])
    for rule in ("value < 0.5", "lowest 25%"):
        own = table.loc[("equal", rule, "baseline")]
        if rule == "value < 0.5":
            assert own["relative_gain"] > 0.25  # what the papers' protocol would report
            assert own["gain"] > 0.04
        assert abs(own["net_gain"]) < 0.02
        assert own["low"] <= 0 <= own["high"]
        both = table.loc[("equal", rule, BOTH)]
        assert abs(both["gain"]) < 0.02
        assert both["low"] <= 0 <= both["high"]
        other = table.loc[("equal", rule, "other seed")]
        assert abs(other["gain"]) < 0.02
        assert other["low"] <= 0 <= other["high"]
    assert table.index[table["estimate"]].tolist() == [
        ("equal", "value < 0.5", "other seed"), ("better", "value < 0.5", "other seed"),
    ]  # fmt: skip
    better = table.loc[("better", "value < 0.5", "other seed")]
    assert better["gain"] > 0.02
    assert better["p_corrected"] == pytest.approx(2 * better["p"])  # Holm over the two systems
    assert better["p_corrected"] < 0.01


def test_a_control_that_hardly_varies_hides_the_effect_but_the_mean_of_both_does_not() -> None:
    rng = np.random.default_rng(1)
    truth = rng.random(4000)
    noise = rng.normal(0, 0.2, (3, 4000))
    base = pd.Series(truth + noise[0])
    system = pd.Series(truth + noise[1])  # no better than the baseline
    control = base + 0.05 * noise[2]  # the baseline with another seed
    table = hard_query_table(
        base, {"s": system}, control=control, quantiles=(), settings=QUICK
    ).set_index("chosen_by")
    assert table.loc["baseline", "net_gain"] > 0.03
    assert table.loc["baseline", "p"] < 0.01
    assert table.loc["baseline", "control_spread"] < 0.1 * table.loc["baseline", "system_spread"]
    assert abs(table.loc[BOTH, "gain"]) < 0.015
    assert table.loc[BOTH, "p"] > 0.05
    assert np.isnan(table.loc[BOTH, "net_gain"])


def test_table_by_hand() -> None:
    ids = list("abcd")
    base = pd.Series([0.1, 0.4, 0.6, 0.9], index=ids)
    system = pd.Series([0.3, 0.4, 0.5, 0.9], index=ids)
    control = pd.Series([0.9, 0.6, 0.4, 0.2], index=list("dcba"))
    selector = pd.Series([0.6, 0.2, 0.2, 0.7], index=ids)
    table = hard_query_table(
        base,
        {"s": system},
        selectors={"x": selector},
        control=control,
        quantiles=(0.5,),
        settings=QUICK,
    )
    assert table["rule"].tolist() == ["value < 0.5"] * 3 + ["lowest 50%"] * 3
    assert table["chosen_by"].tolist() == ["x", "baseline", BOTH] * 2
    assert table["estimate"].tolist() == [True] + [False] * 5
    assert table["p_corrected"].notna().tolist() == [True] + [False] * 5
    assert table["n_queries"].tolist() == [2] * 6
    nan = np.nan
    expected = {
        "baseline_mean": [0.5, 0.25, 0.25],
        "system_mean": [0.45, 0.35, 0.35],
        "gain": [-0.05, 0.1, 0.1],
        "relative_gain": [-0.1, 0.4, 0.4],
        "control_gain": [nan, 0.05, nan],
        "net_gain": [nan, 0.05, nan],
        "p": [1.0, 1.0, 1.0],
        "system_spread": [np.std([0.2, 0, -0.1, 0], ddof=1)] * 3,
        "control_spread": [np.std([0.1, 0, 0, 0], ddof=1)] * 3,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(table[name], values * 2, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("shared", "related"), [(0.0, False), (0.7, True)])
def test_a_selector_that_shares_the_luck_of_one_side_is_related(
    shared: float, related: bool, side: int
) -> None:
    """Two equally good systems and a selector, which see a query's difficulty through noise; part
    of the selector's noise is the baseline's (side 0), who then loses, or the system's."""
    rng = np.random.default_rng(1)
    difficulty, b, s, own = rng.normal(0, 0.2, (4, 400))
    c = shared * (b, s)[side] + np.sqrt(1 - shared**2) * own
    values = [pd.Series(np.clip(0.5 + difficulty + v, 0, 1)) for v in (b, s, c)]
    table = hard_query_table(
        values[0], {"s": values[1]}, selectors={"c": values[2]}, quantiles=(), settings=QUICK
    ).set_index("chosen_by")
    chosen, both = table.loc["c"], table.loc[BOTH]
    assert chosen["related"] == related == (chosen["p"] < 0.01)
    apart = chosen["baseline_correlation"] - chosen["system_correlation"]
    assert ((apart, -apart)[side] > 0.1) == related
    assert not related or (chosen["gain"] < 0) == bool(side)
    assert both["p"] > 0.05
    parts = np.average(
        [chosen["gain"], chosen["other_gain"]],
        weights=[chosen["n_queries"], 400 - chosen["n_queries"]],
    )
    assert parts == pytest.approx((values[1] - values[0]).mean())


def test_training_noise_counts_on_hard_queries() -> None:
    """Three fits whose means differ more than the gain: sure over queries, not over fits."""
    base = pd.Series(np.linspace(0, 0.4, 60))
    rng = np.random.default_rng(0)
    once = base + 0.03 + rng.normal(0, 0.02, 60)
    fits = pd.concat([once - 0.04, once, once + 0.04], axis=1)
    one, several = (
        hard_query_table(base, {"s": s}, quantiles=(), settings=QUICK).iloc[0] for s in (once, fits)
    )
    assert several["gain"] == pytest.approx(one["gain"])
    assert one["p"] < 0.01 < 0.05 < several["p"]
    assert several["low"] < 0 < one["low"]


def test_without_control_the_interval_describes_the_gain() -> None:
    base = pd.Series(np.linspace(0, 0.4, 40), index=range(40))
    table = hard_query_table(base, {"s": base + 0.1}, quantiles=(), settings=QUICK)
    row = table.iloc[0]
    assert np.isnan(row["control_gain"])
    assert np.isnan(row["net_gain"])
    assert row[["gain", "low", "high"]].tolist() == pytest.approx([0.1] * 3)


def test_a_gain_over_nothing_has_no_percentage() -> None:
    base = pd.Series(np.zeros(6), index=range(6))
    row = hard_query_table(base, {"s": base + 0.1}, quantiles=(), settings=QUICK).iloc[0]
    assert row["gain"] == pytest.approx(0.1)
    assert np.isnan(row["relative_gain"])


def test_selection_keeps_ties_together_and_may_be_empty() -> None:
    values = pd.Series([0.0, 0.0, 0.0, 0.5, 0.9])
    assert hard_by_quantile(values, 0.2).tolist() == [True, True, True, False, False]
    assert hard_by_threshold(values, 0.5).tolist() == [True, True, True, False, False]
    table = hard_query_table(values, {"s": values}, thresholds=(0.0,), quantiles=())
    assert table["n_queries"].tolist() == [0, 0]
    assert np.isnan(table["gain"].iloc[0])


def test_the_estimate_does_not_depend_on_the_runs_that_are_judged() -> None:
    """Neither the queries that it is about nor, under equality, its sign: the choice by the
    baseline turns equal systems into a gain, whichever of the two is called the baseline."""
    v = simulated({"one": 1.3, "other": 1.3, "selector": 1.3})
    chosen = hard_by_threshold(v["selector"])
    for system, baseline in (("one", "other"), ("other", "one")):
        table = hard_query_table(
            v[baseline], {"s": v[system]}, selectors={"x": v["selector"]}, settings=QUICK
        ).set_index(["rule", "chosen_by"])
        assert table.loc[("value < 0.5", "baseline"), "gain"] > 0.04
        estimate = table[table["estimate"]].iloc[0]
        assert estimate["n_queries"] == chosen.sum()
        assert estimate["gain"] == pytest.approx((v[system] - v[baseline])[chosen].mean())
        assert abs(estimate["gain"]) < 0.02


def test_without_a_selector_there_is_no_estimate() -> None:
    values = pd.Series([0.1, 0.4, 0.8], index=list("abc"))
    table = hard_query_table(values, {"s": values + 0.1}, settings=QUICK)
    assert not table["estimate"].any()
    assert table["p_corrected"].isna().all()


def test_hard_queries_are_tested_by_group() -> None:
    base = pd.Series(np.linspace(0, 0.4, 12), index=[f"q{i}" for i in range(12)])
    groups = {query: int(query[1:]) // 4 for query in base.index}
    table = hard_query_table(
        base, {"s": base + 0.1}, selectors={"x": base / 2}, settings=QUICK, groups=groups
    )
    row = table[table["estimate"]].iloc[0]
    assert (row["n_queries"], row["n_groups"], row["p"]) == (12, 3, 2 / 8)


def test_bad_input() -> None:
    values = pd.Series([0.1, 0.2], index=["a", "b"])
    with pytest.raises(InputError, match="system s: values of 1 queries, others have 2"):
        hard_query_table(values, {"s": values.iloc[:1]})
    with pytest.raises(InputError, match="query 'b' has no value"):
        hard_query_table(values, {"s": pd.Series([0.1, np.nan], index=["a", "b"])})
    with pytest.raises(InputError, match="both are taken"):
        hard_query_table(values, {"s": values}, selectors={"baseline": values})
    for selectors in ({"s": values + 1}, {"baseline again": values.copy()}):
        with pytest.raises(InputError, match="is judged itself; hard queries are chosen by"):
            hard_query_table(values, {"s": values / 2}, selectors=selectors)


def test_hard_is_below_one_half_by_default() -> None:
    """The papers' rule, and the lowest quarter."""
    values = pd.Series([0.2, 0.49, 0.5, 0.51])
    assert hard_by_threshold(values).tolist() == [True, True, False, False]
    table = hard_query_table(values, {"s": values})
    none = hard_query_table(values + 1, {"s": values + 1})
    assert none.loc[none["rule"] == "value < 0.5", ["n_queries", "n_groups"]].eq(0).all(axis=None)
    assert table.groupby("rule")["n_queries"].first().to_dict() == {
        "value < 0.5": 2,
        "lowest 25%": 1,
    }


def test_the_whole_quantile_is_every_query() -> None:
    values = pd.Series([0.2, 0.9, 1.0])
    assert hard_by_quantile(values, 1).all()
    for wrong in (0, 1.01, 25):
        with pytest.raises(InputError, match="quantile must lie above 0 and not above 1"):
            hard_by_quantile(values, wrong)


def test_rules_that_differ_have_different_names() -> None:
    """Rows of both would otherwise be estimates, and be corrected for one another."""
    values = pd.Series(np.linspace(0, 1, 40), index=[f"q{i}" for i in range(40)])
    selectors = {"x": values[::-1].set_axis(values.index)}
    table = hard_query_table(
        values, {"s": values / 2}, selectors=selectors, thresholds=(), quantiles=(0.125, 0.12),
        settings=QUICK,
    )  # fmt: skip
    assert table["rule"].unique().tolist() == ["lowest 12.5%", "lowest 12%"]
    assert table["estimate"].sum() == 1
