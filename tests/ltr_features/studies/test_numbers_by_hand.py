"""One small study, whose numbers are reckoned by hand: each stands where its words or heading say.

Of 12 queries "new" wins 9 by 0.2, loses 1 by 0.1 and ties 2, so that 4 of 1024 sign patterns of the
10 that differ are as extreme. "same" is the baseline once more. "third" is low on 8 queries.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from ltr_features.studies.page.hard_verdicts import hard_in_short, hard_query_verdict
from ltr_features.studies.page.html import render
from ltr_features.studies.page.query_rankings import RankedDocument
from ltr_features.studies.page.query_tables import (
    class_table,
    extreme_tables,
    hard_query_table,
    learning_table,
    moves_table,
    other_choices_table,
)
from ltr_features.studies.page.report import Report, Study, SystemResult
from ltr_features.studies.page.study_tables import (
    comparison_table,
    marks_note,
    systems_table,
    value_table,
)
from ltr_features.studies.page.tables import Table
from ltr_features.studies.page.verdicts import (
    hundredths,
    p_value,
    signed,
    tie_remark,
    value,
    verdict,
)

IDS = [f"q{i}" for i in range(12)]
OLD = np.tile([0.3, 0.5], 6)
NEW = OLD + np.array([0.2] * 9 + [-0.1, 0.0, 0.0])
HARD = np.isin(np.arange(12), [0, 1, 2, 3, 4, 5, 6, 9])


def system(name: str, values: np.ndarray) -> SystemResult:
    table = {"NDCG@10": values, "MAP": 0.5, "P@10": 0.25}
    return SystemResult(name, "", pd.DataFrame(table, IDS))


@pytest.fixture(scope="module")
def study() -> Study:
    systems = [
        system("old", OLD),
        system("same", OLD),
        system("new", NEW),
        system("third", np.where(HARD, 0.1, 0.9)),
    ]
    kinds = pd.Categorical(np.where(np.arange(12) < 7, "1", "2"), ordered=True)
    whole = Study(
        "S", "d", "r", systems, [("new", "old"), ("same", "old")], ["NDCG@10", "MAP", "P@10"],
        hard_measure="NDCG@10", hard_baseline="old",
        query_kinds=pd.DataFrame({"words": kinds}, IDS),
    )  # fmt: skip
    return whole.with_hard_queries(["new", "same"], ["third"])


def texts(table: Table) -> list[list[str]]:
    """The texts of each row, with marks and, in brackets, notes."""
    return [
        [f"{c.text}{c.marks}" + (f" ({c.note})" if c.note else "") for c in row]
        for row in table.cells
    ]


def rows(table: Table | None) -> list[dict[str, str]]:
    """The texts of each row by heading."""
    assert table is not None
    titles = [head.title for head in table.headings]
    return [dict(zip(titles, row, strict=True)) for row in texts(table)]


def ends(row: pd.Series) -> str:
    return f"{signed(row['low'])} to {signed(row['high'])}"


def test_the_verdict(study: Study) -> None:
    row = study.comparison(("new", "old"), "NDCG@10")
    assert row["low"] < row["difference"] < row["high"]
    assert verdict(study).details == (
        f"NDCG@10 0.5417 against 0.4000: new gains 0.1417 (+35.4 %), 95% interval {ends(row)}; "
        "p = 0.023 (Holm over 6 tests), 0.004 uncorrected. 9 of 12 queries won, 2 tied, 1 lost. "
        "Not significant on MAP, P@10."
    )
    assert "over 2 x 3 = 6 comparisons (pairs x measures; 12 queries)" in marks_note(study)


def test_what_a_test_can_find_is_told_without_a_finding(study: Study) -> None:
    """Four wins and a smaller loss: 4 of 32 patterns are as extreme, and 2 at best are too many."""
    noisy = system("new", OLD + np.array([0.2] * 4 + [-0.1] + [0.0] * 7))
    found = verdict(replace(study, systems=[study.systems[0], noisy], pairs=[("new", "old")]))
    assert "NDCG@10 0.4583 against 0.4000: new gains 0.0583 (+14.6 %)" in found.details
    assert "p = 0.38 (Holm over 3 tests), 0.12 uncorrected." in found.details
    assert found.details.count("smallest possible p-value is 0.062 (queries that differ: 5;") == 1
    assert "before correction over 3 tests." in found.details
    alike = system("new", OLD + np.array([0.2, -0.1] * 6))
    found = verdict(replace(study, systems=[study.systems[0], alike], pairs=[("new", "old")]))
    assert f"a difference of {value(found.row['detectable'])} is detected" in found.details


def test_what_equal_scores_leave_open_is_told_from_the_second_decimal_on() -> None:
    assert [*tie_remark("MAP", 0.20, 0.25, "here by id")] == [
        "gives equal scores to documents of different grades; its MAP is between 0.2000 and 0.2500"
        ", depending on their order; here by id"
    ]
    assert [*tie_remark("MAP", 0.20, 0.209, "here by id")] == []


def test_the_verdict_on_hard_queries(study: Study) -> None:
    row = pd.Series(study.hard_rows()[0])
    assert hard_query_verdict(study) == (
        "On hard queries (the 8 on which a third ranking, third, does poorly: NDCG@10, "
        f"value < 0.5), new gains 0.1625 against old (+40.6 %), 95% interval {ends(row)}, "
        "p = 0.031 (Holm over 2 systems); on the 4 others it gains 0.1000."
    )
    alone = replace(study, pairs=study.pairs[:1])  # as many systems have an estimate
    assert hard_query_verdict(alone) == hard_query_verdict(study)
    assert hard_in_short(study) == (
        f"on the 8 queries hard for third: +0.1625 NDCG@10 (95% interval {ends(row)}, p = 0.031, "
        "corrected)."
    )


def test_the_tables_of_systems_and_differences(study: Study) -> None:
    shown = rows(systems_table(study))
    assert [(row["System"], row["NDCG@10"], row["MAP"]) for row in shown] == [
        ("old (baseline)", "0.4000", "0.5000"),
        ("same", "0.4000", "0.5000"),
        ("new", "0.5417▲", "0.5000"),
        ("third", "0.3667", "0.5000"),
    ]
    bold = [[cell.strong for cell in cells[1:3]] for cells in systems_table(study).cells]
    assert bold == [[False, True], [False, True], [True, True], [False, True]]
    row = study.comparison(("new", "old"), "NDCG@10")
    d = NEW - OLD
    assert rows(comparison_table(study))[0] == {
        "NDCG@10 difference": "new - old",
        "Mean": "+0.1417▲ (+35.4 %)",
        "95% interval": ends(row),
        "Corrected p": "0.023",
        "p": "0.004",
        "p (t)": p_value(ttest_rel(NEW, OLD).pvalue),
        "Effect": hundredths(d.mean() / d.std(ddof=1)),
        "Won / tied / lost": "9 / 2 / 1",
        "Detectable": value(row["detectable"]),
    }


def test_the_tables_of_hard_queries(study: Study) -> None:
    row = pd.Series(study.hard_rows()[0])
    correlation = np.corrcoef(NEW, HARD)[0, 1]  # the third ranking's values, turned round
    table = hard_query_table(study)
    assert table is not None
    assert [head.title for head in table.headings] == [
        "System", "Difference", "95% interval", "p", "Corrected p", "Queries", "Baseline",
        "System", "Others", "Correlation",
    ]  # fmt: skip
    assert texts(table)[0] == [
        "new", "+0.1625▲ (+40.6 %)", ends(row), "0.016", "0.031", "8", "0.4000", "0.5625",
        "+0.1000", f"0.00, {hundredths(-correlation)}",
    ]  # fmt: skip
    again = system("again", OLD + np.where(np.isin(np.arange(12), [0, 2, 4]), 0.1, 0.0))
    controlled = replace(study, systems=[*study.systems, again])
    controlled = controlled.with_hard_queries(["new"], ["third"], "again")
    others = rows(other_choices_table(controlled))
    assert others[0] == {
        "System": "new",
        "Hard queries": "value < 0.5 (by the baseline itself)",
        "Queries": "6",
        "Baseline": "0.3000",
        "Difference": "+0.1667",
        "Control": "+0.0500",
        "Net": "+0.1167",
        "95% interval": others[0]["95% interval"],
        "p": "0.062",  # 4 of 64: 0.1 three times, 0.2 twice and a tie
        "Spread": value((NEW - OLD).std(ddof=1)),
    }
    styles = [row[0].style for row in other_choices_table(controlled).cells]  # type: ignore[union-attr]
    itself = ["by the baseline itself" in row["Hard queries"] for row in others]
    assert [style == "biased" for style in styles] == itself


def test_the_tables_of_classes_and_of_single_queries(study: Study) -> None:
    table = class_table(study)
    assert table is not None
    assert "In no row" not in table.caption
    assert study.query_kinds is not None
    fewer = class_table(replace(study, query_kinds=study.query_kinds.iloc[:-1]))
    assert fewer is not None
    assert "In no row: 1 query without a relevant document." in fewer.caption
    one, two = rows(table)
    assert one == {
        "Queries with": "words: 1", "Difference": "+0.2000▲", "95% interval": "+0.2000 to +0.2000",
        "p": "0.016", "Corrected p": "0.031",  # twice as large: of two tests
        "Queries": "7", "Baseline": "0.3857", "System": "0.5857",
    }  # fmt: skip
    assert [two[name] for name in ("Difference", "p", "Queries", "Baseline", "System")] == [
        "+0.0600", "0.50", "5", "0.4200", "0.4800",
    ]  # fmt: skip
    won, lost = map(rows, extreme_tables(study))
    assert {row["Difference"] for row in won} == {"+0.2000"}
    assert {"Query": "q1", "Baseline": "0.5000", "System": "0.7000", "Difference": "+0.2000"} in won
    assert lost == [
        {"Query": "q9", "Baseline": "0.5000", "System": "0.4000", "Difference": "−0.1000"}
    ]


def test_given_tables_are_shown_under_their_headings(study: Study) -> None:
    numbers = {"low": 0.01, "high": 0.3, "p": 0.02, "p_corrected": 0.04, "significant": True}
    found = {"group": "ssi", "kind": "added", "with": 0.6, "without": 0.4, "value": 0.2, **numbers}
    valued = replace(study, column_value=pd.DataFrame([found]), column_value_of="new")
    assert rows(value_table(valued)) == [
        {
            "Columns": "ssi", "Method": "added", "Value": "+0.2000▲",
            "95% interval": "+0.0100 to +0.3000", "p": "0.020", "Corrected p": "0.040",
            "With": "0.6000", "Without": "0.4000",
        }
    ]  # fmt: skip
    [drawn] = [cell.span for row in value_table(valued).cells for cell in row if cell.span]  # type: ignore[union-attr]
    assert drawn == pytest.approx((1 / 30, 2 / 3, 1))  # shares of the largest value, 0.3
    point = {
        "queries": 1200.0, "system": "new", "baseline": "old", "system_mean": 0.6,
        "baseline_mean": 0.4, "difference": 0.2, "low": 0.01, "high": 0.3, "p": 0.02,
    }  # fmt: skip
    learned = replace(study, learning_curve=pd.DataFrame([point]))
    assert rows(learning_table(learned)) == [
        {
            "Training queries": "1,200", "Comparison": "new - old", "Difference": "+0.2000",
            "95% interval": "+0.0100 to +0.3000", "p": "0.020", "Baseline": "0.4000",
            "System": "0.6000",
        }
    ]  # fmt: skip


def test_the_first_screen_and_the_drawn_intervals_of_the_page(study: Study) -> None:
    values = {"low": -0.1, "high": 0.3, "p": 0.2, "p_corrected": 0.4, "significant": False}
    values |= {"group": "ssi", "kind": "added", "with": 0.6, "without": 0.4, "value": 0.15}
    valued = replace(study, column_value=pd.DataFrame([values]), column_value_of="new")
    page = render(Report("t", "", [valued]))
    row = study.comparison(("new", "old"), "NDCG@10")
    assert (
        '<span class="big gain-text">+0.1417</span> NDCG@10 0.4000 → 0.5417 (+35.4 %), 95% '
        f"interval {ends(row)}, p = 0.023, corrected. 9 of 12 queries won, 1 lost. "
        "On the 8 queries hard for third: +0.1625 NDCG@10 ("
    ) in page
    # From a third of the largest value below 0, in the middle, to that value; the dot half-way.
    assert ('<i style="left:33.3%;width:66.7%"></i><b style="left:75.0%"></b>') in page
    assert "new minus old in NDCG@10 by query, sorted" in page
    for choice, chosen in (("system", "new"), ("against", "old")):
        options = re.search(f'<select class="{choice}">(.*?)</select>', page)
        assert options is not None
        assert re.findall(r"selected>(\w+)<", options[1]) == [chosen]


def test_documents_that_moved(study: Study) -> None:
    """Good news is a relevant document that rose, or another one that fell."""
    documents = [
        RankedDocument("up", "", 2, 3, 1, [("ssi", 0.5), ("bm25", 0.25)]),
        RankedDocument("gone", "", 1, 4, None),
        RankedDocument("down", "A title", None, 1, 2, [("ssi", -0.5)]),
        RankedDocument("new", "", -2, None, 9),
    ]
    table = moves_table(replace(study, drill_down={"q0": documents}), "q0")
    assert [tuple(row.values()) for row in rows(table)] == [
        ("up", "2", "3 → 1 ▲", "ssi +0.50, bm25 +0.25"),
        ("gone", "1", "4 → – ▼", "–"),
        ("A title (down)", "–", "1 → 2 ▼", "ssi −0.50"),
        ("new", "−2", "– → 9 ▲", "–"),
    ]
    assert [row[2].style for row in table.cells] == ["gain", "loss", "gain", "loss"]
