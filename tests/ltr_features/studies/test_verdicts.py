"""Words computed from numbers: each outcome, agreement of measures, hard queries, formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from letor.errors import InputError
from ltr_features.studies.page.hard_verdicts import hard_in_short, hard_query_verdict
from ltr_features.studies.page.query_tables import hard_query_table as hard_rows
from ltr_features.studies.page.report import Report, Study, SystemResult
from ltr_features.studies.page.study_tables import comparison_table, marks_note
from ltr_features.studies.page.verdicts import (
    HELPS,
    HURTS,
    NEITHER,
    Outcome,
    changes,
    group_verdict,
    hundredths,
    outcome_of,
    p_equals,
    p_value,
    percent,
    second_sentence,
    signed,
    value,
    verdict,
    verdict_sentence,
)
from ltr_features.studies.statistics.hard_queries import BOTH, hard_query_table
from ltr_features.studies.statistics.significance import TestSettings


def study(gains: Sequence[float], n: int = 60, **changes: object) -> Study:
    """A baseline and a system whose mean gain in each measure is about the one given."""
    rng = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(n)]
    measures = ["NDCG@10", "MAP", "P@10"][: len(gains)]
    base = 0.3 + 0.4 * rng.random((n, len(gains)))
    other = base + np.array(gains) + rng.normal(0, 0.05, base.shape)
    systems = [
        SystemResult("old", "baseline", pd.DataFrame(base, ids, measures)),
        SystemResult("new", "system", pd.DataFrame(np.clip(other, 0, 1), ids, measures)),
    ]
    settings: dict[str, object] = {"hard_measure": "NDCG@10", "hard_baseline": "old"}
    settings["test"] = TestSettings(n_permutations=999, n_resamples=200)
    return Study("S", "d", "r", systems, [("new", "old")], measures, **(settings | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("gain", "outcome", "headline"),
    [
        (0.1, HELPS, "new did significantly better than old."),
        (-0.1, HURTS, "new did significantly worse than old."),
        (0.0, NEITHER, "No significant difference between new and old."),
    ],
)
def test_outcomes(gain: float, outcome: Outcome, headline: str) -> None:
    found = verdict(study([gain]))
    assert (found.outcome, found.headline) == (outcome, headline)
    row = found.row
    assert f"new {changes(row['difference'])}" in found.details
    for number in (percent(row["relative"]), signed(row["low"])):
        assert number in found.details
    assert f"{row['won']} of 60 queries won" in found.details
    assert ("power of 80 %" in found.details) == (gain == 0)


def test_other_measures_are_reported_whichever_way_they_go() -> None:
    assert "Also significant on MAP, P@10." in verdict(study([0.1, 0.1, 0.1])).details
    assert "Not significant on MAP." in verdict(study([0.1, 0.0])).details
    assert "the opposite is significant on MAP" in verdict(study([0.1, -0.1])).details
    assert "Other measures disagree: it helps on MAP" in verdict(study([0.0, 0.1])).details
    assert "Also no significant difference on MAP, P@10." in verdict(study([0.0] * 3)).details


def test_says_so_when_nothing_could_have_been_significant() -> None:
    few = verdict(study([0.1], n=4)).details
    assert (
        "No difference could have been significant: the smallest possible p-value is 0.12 (" in few
    )
    assert "(queries that differ: 4; all 16 sign patterns)" in few
    assert "is detected" not in few  # not by the test that decides
    rough = study([0.1, 0.1], test=TestSettings(n_permutations=9, n_resamples=100))
    assert "9 random sign patterns, seed 0)" in verdict(rough).details
    assert "could have been" not in verdict(study([0.0])).details


def test_outcome_needs_significance() -> None:
    assert outcome_of(pd.Series({"significant": False, "difference": 0.5})) is NEITHER


def test_the_hard_query_verdict_is_one_estimate(make_report: Callable[..., Report]) -> None:
    example = make_report().studies[0]
    text = hard_query_verdict(example)
    table = example.hard_queries
    assert table is not None
    row = table[table["estimate"]].iloc[0]
    assert f"{row['system']} {changes(row['gain'])} against" in text
    for number in (row["low"], row["high"]):
        assert signed(number) in text
    assert f"(the {row['n_queries']:,} on which a third ranking, BM25, does poorly" in text
    assert text.count("interval") == 1
    for other in table.loc[~table["estimate"], "net_gain"].dropna():
        assert signed(other) not in text
    assert "against SVM (" in hard_query_verdict(replace(example, hard_baseline="SVM"))
    assert hard_query_verdict(replace(example, hard_queries=None)) == ""
    nobody = table[table["estimate"]].assign(n_queries=0)
    assert "No query is hard for BM25" in hard_query_verdict(replace(example, hard_queries=nobody))
    grouped = make_report().studies[1]
    assert " groups on which a third ranking, BM25" in hard_query_verdict(grouped)
    assert grouped.hard_queries is not None
    one = replace(grouped, hard_queries=grouped.hard_queries.assign(n_groups=1))
    assert " in 1 group on which a third ranking" in hard_query_verdict(one)


def test_no_hard_query_verdict_without_a_third_ranking() -> None:
    example = study([0.0])
    values = example.systems[0].per_query["NDCG@10"]
    table = hard_query_table(
        values, {"new": values}, settings=TestSettings(n_permutations=99, n_resamples=50)
    )
    text = hard_query_verdict(replace(example, hard_queries=table))
    assert "There is no estimate on hard queries, as no third ranking selects them" in text
    assert "+" not in text


def test_a_third_ranking_that_is_related_to_the_baseline_is_told() -> None:
    """Two equally good systems; the chooser is the baseline but for one query."""
    example = study([0.0], n=200)
    old = example.systems[0].per_query["NDCG@10"]
    new = pd.Series(np.random.default_rng(0).permutation(old), old.index)
    chooser = old.copy()
    chooser.iloc[0] += 0.01
    related = {"selectors": {"copy": chooser}, "quantiles": (), "settings": example.test}
    table = hard_query_table(old, {"new": new}, **related)  # type: ignore[arg-type]
    text = hard_query_verdict(replace(example, hard_queries=table))
    said = "depends on the values of copy (their correlation with those of old is 1.00, of new"
    assert said in text
    both = table[table["chosen_by"] == BOTH].iloc[0]
    assert f"On the {both['n_queries']} that are hard by the mean of old and new" in text
    assert f"new {changes(both['gain'])}, 95% interval {signed(both['low'])} to" in text


def test_a_baseline_of_equal_values_has_no_correlation() -> None:
    old = pd.Series(0.0, [f"q{i}" for i in range(30)])
    new = pd.Series(np.linspace(0.1, 0.9, 30), old.index)
    table = hard_query_table(old, {"new": new}, selectors={"third": new**2})
    example = replace(study([0.0], n=30), hard_queries=table)
    text = hard_query_verdict(example)
    assert "(their correlation with those of old is n/a, of new 0.98)" in text
    shown = hard_rows(example)
    assert shown is not None
    assert "n/a, 0.98" in shown.text()


def test_hard_queries_on_which_nobody_finds_anything_are_told() -> None:
    old, new, third = (
        pd.Series(values, list("abcde"))
        for values in ([0, 0, 0, 0.2, 0.9], [0, 0, 0.3, 0.4, 0.9], [0, 0, 0, 0.3, 0.9])
    )
    table = hard_query_table(old, {"new": new}, selectors={"third": third})
    text = hard_query_verdict(replace(study([0.0], n=5), hard_queries=table))
    assert "(the 4 on which a third ranking, third, does poorly" in text
    assert "On 2 of them all three have 0" in text
    assert "too few queries for a test" in text
    assert "interval" not in text


def test_in_short_an_empty_choice_has_no_numbers(make_report: Callable[..., Report]) -> None:
    example = make_report().studies[0]
    table = example.hard_queries
    assert table is not None
    assert re.search(
        r"on the [\d,]+ queries hard for BM25: \S+ NDCG@20 \(95% ", hard_in_short(example)
    )
    empty = table.assign(related=True)
    empty.loc[empty["chosen_by"] == BOTH, ["n_queries", "n_groups"]] = 0
    text = hard_in_short(replace(example, hard_queries=empty))
    assert text.endswith("; no query is hard for both systems on average.")
    assert "n/a" not in text


def test_in_short_each_p_says_whether_it_is_corrected(make_report: Callable[..., Report]) -> None:
    example = make_report().studies[0]
    table = example.hard_queries
    assert table is not None
    alone = table.assign(related=True)
    text = hard_in_short(replace(example, hard_queries=alone))
    assert ", corrected)" not in text
    assert text.endswith(", uncorrected).")
    two = pd.concat([alone, alone.assign(system="another")])
    assert hard_in_short(replace(example, hard_queries=two)).count(", corrected)") == 1


def test_few_queries_have_too_narrow_intervals() -> None:
    assert "With so few of them, the intervals may be too narrow." in group_verdict(
        study([0.1], n=8)
    )
    assert "There are no intervals." in group_verdict(study([0.1], n=4))


def test_one_query_has_no_interval() -> None:
    one = study([0.1], n=1)
    assert "no interval; p = 1.00" in verdict(one).details
    assert group_verdict(one) == "Tested on 1 query. There are no intervals."


def test_a_difference_that_holms_steps_let_through_is_not_called_out_of_reach() -> None:
    """5 of 6 differing queries are won; all 6 would have had p = 2 / 64, and the other two tests,
    which are significant, leave it uncorrected."""
    example = study([0.1, 0.1, 0.0])
    old, new = example.systems
    frame = old.per_query.assign(
        **{"NDCG@10": new.per_query["NDCG@10"], "MAP": new.per_query["MAP"]}
    )
    frame.iloc[:5, 2] += 0.1
    frame.iloc[5, 2] -= 0.1
    measures = ["P@10", "NDCG@10", "MAP"]
    found = verdict(
        replace(example, systems=[old, replace(new, per_query=frame)], measures=measures)
    )
    assert found.row["smallest_p"] == 2 / 64
    assert found.outcome is NEITHER
    assert "No difference could" not in found.details


def test_groups_and_what_they_leave_are_told() -> None:
    alone = study([0.1])
    assert group_verdict(alone) == ""
    alike = alone.per_query_difference(("new", "old"), "NDCG@10").sort_values().index
    groups = {query: i // 3 for i, query in enumerate(alike)}
    grouped = replace(alone, groups=groups)
    row = grouped.comparison(("new", "old"), "NDCG@10")
    text = group_verdict(grouped)
    assert "The 60 queries belong to 20 groups and are tested by group" in text
    assert f"Design effect: {row['design_effect']:.1f}" in text
    assert f"{60 / row['design_effect']:,.0f} independent queries" in text
    assert row["design_effect"] > 2
    assert "too narrow" not in text
    assert "20 groups of queries" in marks_note(grouped)
    # Groups less alike than queries at random promise nothing.
    apart = group_verdict(replace(alone, groups={q: i % 20 for i, q in enumerate(alike)}))
    assert re.search(r"Design effect: 0\.\d\.$", apart)


def test_a_design_effect_from_few_groups_is_called_unreliable(recwarn) -> None:
    """Two groups with the same sums: the estimate is 0."""
    ids = ["q0", "q1", "q2", "q3"]
    systems = [
        SystemResult("old", "", pd.DataFrame({"MAP": [0.5] * 4}, ids)),
        SystemResult("new", "", pd.DataFrame({"MAP": [0.6, 0.8, 0.8, 0.6]}, ids)),
    ]
    groups = {"q0": "g", "q1": "g", "q2": "h", "q3": "h"}
    text = group_verdict(Study("S", "d", "r", systems, [("new", "old")], ["MAP"], groups=groups))
    assert "Design effect: 0.0, an unreliable estimate from so few groups." in text
    assert "independent queries" not in text
    assert not recwarn.list


def test_no_difference_larger_than_a_measure_can_take_is_called_detectable() -> None:
    values = {"old": [0.0, 0.9] * 3, "new": [0.9, 0.0] * 3}
    systems = [
        SystemResult(name, "", pd.DataFrame({"MAP": v}, list("abcdef")))
        for name, v in values.items()
    ]
    two = Study("S", "d", "r", systems, [("new", "old")], ["MAP"])
    assert two.comparisons["detectable"].iloc[0] > 1
    details = verdict(two).details
    assert (
        "With this many queries, no difference that MAP can take is detected with a power of 80 %."
    ) in details
    assert "may be missed" not in details
    assert comparison_table(two).rows[0][-1].text == "none"


def test_too_few_groups_to_decide_are_told() -> None:
    """Five groups: the smallest p is 2 of 32 patterns, whatever the 60 queries say."""
    groups = {f"q{i}": i % 5 for i in range(60)}
    few = study([0.1], groups=groups)
    found = verdict(few)
    assert found.outcome is NEITHER
    assert "(groups of queries that differ: 5; all 32 sign patterns)" in found.details
    assert "p-value is 0.062 (" in found.details
    assert "With so few of them, the intervals may be too narrow." in group_verdict(few)
    assert verdict(study([0.1])).outcome is HELPS


def test_training_noise_is_told_and_decides() -> None:
    example = study([0.02])
    base, new = example.systems
    shifts = (-0.15, 0.0, 0.15)
    fits = [(new.per_query + shift).clip(0, 1) for shift in shifts]
    refitted = replace(example, systems=[base, replace(new, fits=fits)])
    assert verdict(example).outcome is HELPS
    found = verdict(refitted)
    assert found.outcome is NEITHER
    assert "Over 3 fits with different seeds (and folds, if random)" in found.details
    assert value(found.row["spread"]) in found.details
    assert p_equals(found.row["p_refits"]) in found.details
    assert "Over" not in verdict(example).details


def test_losses_are_losses_in_words() -> None:
    lost = study([-0.1])
    assert "new loses 0." in verdict(lost).details
    assert " gain" not in verdict(lost).details
    assert [changes(x) for x in (0.0368, -0.0368, -0.000012, 0.0, 1e-17)] == [
        "gains 0.0368", "loses 0.0368", "loses 0.000012", *["neither gains nor loses"] * 2,
    ]  # fmt: skip


def test_a_tiny_significant_difference_is_shown() -> None:
    tiny = study([0.0])
    first = tiny.systems[0]
    second = replace(first, name="new", per_query=first.per_query + 1.2e-5)
    found = verdict(replace(tiny, systems=[first, second]))
    assert found.outcome is HELPS
    assert "new gains 0.000012 (+0.0024 %), 95% interval +0.000012 to +0.000012" in found.details


def test_one_sentence_for_all_splits_with_everyday_names() -> None:
    better, equal = (
        replace(study([gain]), name=name)
        for gain, name in ((0.1, "Unseen queries"), (0.0, "MQ2008"))
    )
    labels = {"old": "the 46 word columns", "new": "all 83 columns"}

    def labelled(one: Study) -> Study:
        systems = [replace(s, label=labels[s.name]) for s in one.systems]
        return replace(one, systems=systems)

    def said(*studies: Study) -> str:
        return verdict_sentence(Report("t", "i", [labelled(one) for one in studies]))

    assert said(better) == "All 83 columns did significantly better than the 46 word columns."
    assert said(better, replace(better, name="Unseen articles")) == (
        "All 83 columns did significantly better than the 46 word columns, on unseen queries and "
        "on unseen articles."
    )
    assert said(better, equal) == (
        "All 83 columns did significantly better than the 46 word columns, on unseen queries; no "
        "significant difference on MQ2008."
    )
    assert said(equal) == (
        "No significant difference between all 83 columns and the 46 word columns."
    )
    report = Report("t", "i", [labelled(replace(better, second=("new", "old")))])
    assert second_sentence(report) == said(better)
    assert second_sentence(Report("t", "i", [better])) == ""


def test_formats() -> None:
    assert [signed(x) for x in (0.01234, -0.01234, -0.0000123, 4.9e-5, -1e-17)] == [
        "+0.0123", "−0.0123", "−0.000012", "+0.000049", "0.0000",
    ]  # fmt: skip
    assert signed(float("nan")) == "n/a"
    assert [percent(x) for x in (0.1234, -0.5, float("nan"), 0.000123, 0.0)] == [
        "+12.3 %", "−50.0 %", "n/a", "+0.012 %", "0.0 %",
    ]  # fmt: skip
    assert [p_value(p) for p in (0.5, 0.04321, 0.00054, 0.00001, float("nan"))] == [
        "0.50", "0.043", "0.0005", "< 0.0001", "n/a",
    ]  # fmt: skip
    assert [p_value(p) for p in (0.0499, 0.0501, 0.05, 0.04996, 0.0489, 0.0511)] == [
        "0.0499", "0.0501", "0.050", "0.04996", "0.049", "0.051",
    ]  # fmt: skip
    assert [hundredths(x) for x in (-0.123, -0.004, float("nan"))] == ["−0.12", "0.00", "n/a"]
    assert p_equals(1e-6) == "p < 0.0001"
    assert p_equals(0.5) == "p = 0.50"


def test_intervals_have_their_level_in_full() -> None:
    test = TestSettings(n_permutations=99, n_resamples=1000, confidence=0.995)
    example = study([0.1], test=test)
    for text in (verdict(example).details, comparison_table(example).text(), test.description):
        assert re.search("99.5% (interval|percentile bootstrap)", text)
    assert "100%" not in test.description
    assert TestSettings().confidence_text == "95%"


def test_bad_studies() -> None:
    good = study([0.0])
    with pytest.raises(InputError, match="system 'old': per-query values of NDCG@10, Recall@5"):
        replace(good, measures=["NDCG@10", "Recall@5"])
    over = replace(good.systems[1], per_query=good.systems[1].per_query + 5)
    with pytest.raises(InputError, match=r"lie in \[0, 1\]"):
        replace(good, systems=[good.systems[0], over])
