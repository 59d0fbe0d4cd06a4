"""Text tables: alignment, marks against one and several baselines, definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ltr_features.studies.page import html
from ltr_features.studies.page.query_tables import class_table, hard_query_table, learning_table
from ltr_features.studies.page.report import Report
from ltr_features.studies.page.study_tables import (
    comparison_table,
    latex_tables,
    marks_note,
    report_text,
    significance_marks,
    systems_table,
    value_table,
)
from ltr_features.studies.page.tables import Cell, Column, Table, aligned, escaped, write_csv
from ltr_features.studies.page.verdicts import p_value, signed, value


def test_aligned_by_hand() -> None:
    got = aligned(["a", "num"], [["xyz", "1"], ["é", "1234"]], left=1)
    assert got == "a     num\n─────────\nxyz     1\né    1234"


def test_marks_follow_the_corrected_p_values(make_report: Callable[..., Report]) -> None:
    study = make_report().studies[0]
    marks = significance_marks(study)
    seen = set()
    for row in study.comparisons.to_dict("records"):
        expected = ""
        if row["p_corrected"] < 0.05:
            expected = "▲" if row["difference"] > 0 else "▼"
        assert marks[row["system"], row["measure"]] == expected
        seen.add(expected)
    assert seen == {"", "▲", "▼"}
    assert "against the baseline" not in marks_note(study)
    for part in ("Fisher", "2,000 random sign patterns", "Holm", "20 comparisons", "240 queries"):
        assert part in marks_note(study)


def test_several_baselines_are_told_apart_by_letters(make_report: Callable[..., Report]) -> None:
    study = make_report().studies[0]
    names = [s.name for s in study.systems]
    two = replace(study, pairs=[(names[3], names[1]), (names[3], names[0])])
    assert significance_marks(two)[names[3], "NDCG@10"] == "▲a▲b"
    assert "a = Word counts, b = BM25" in marks_note(two)
    table = systems_table(two).text()
    assert "BM25 (baseline b)" in table
    assert "▲a▲b" in table


def test_columns_are_aligned_by_the_places_of_characters() -> None:
    got = aligned(["a", "num"], [["文字", "1"], ["e\u0301", "2"]], left=1)
    assert got.split("\n")[2:] == ["文字    1", "e\u0301       2"]


def test_means_table_holds_every_mean_in_aligned_columns(
    make_report: Callable[..., Report],
) -> None:
    study = make_report().studies[0]
    lines = systems_table(study).text().splitlines()
    rows = lines[2 : 2 + len(study.systems)]
    for row, system in zip(rows, study.systems, strict=True):
        assert row.startswith(system.name)
        for measure in study.measures:
            assert f"{system.per_query[measure].mean():.4f}" in row
    points = [[i for i, c in enumerate(row) if c == "."] for row in rows]
    assert all(p == points[0] for p in points)


def test_comparison_and_hard_query_tables_show_their_numbers(
    make_report: Callable[..., Report],
) -> None:
    study = make_report().studies[0]
    text = comparison_table(study, "MAP").text()
    row = study.comparison(study.pairs[0], "MAP")
    for part in (signed(row["difference"]), p_value(row["p_corrected"]), "MAP difference"):
        assert part in text
    table = hard_query_table(study)
    assert table is not None
    hard = table.text()
    assert study.hard_queries is not None
    estimate = study.hard_queries[study.hard_queries["estimate"]]
    assert len(hard.splitlines()) == 2 + len(estimate) == 3
    assert signed(estimate["gain"].iloc[0]) in hard
    assert "design effect" not in text
    assert hard_query_table(replace(study, hard_queries=None)) is None


def test_only_what_a_corrected_test_finds_is_coloured(make_report: Callable[..., Report]) -> None:
    """An interval without 0 is no finding where many are shown."""
    study = make_report().studies[0]
    assert study.column_value is not None
    values = study.column_value.assign(low=0.001, high=0.2, value=0.1, significant=False)
    values.loc[values.index[0], "significant"] = True
    assert study.query_classes is not None
    classes = study.query_classes.assign(low=0.001, high=0.2, gain=0.1, significant=False)
    study = replace(study, column_value=values)
    vars(study)["query_classes"] = classes  # in place of those that it would compute

    def colours(table: Table | None) -> list[set[str]]:
        assert table is not None
        rows = ([cell for cell in row if isinstance(cell, Cell)] for row in table.rows)
        return [{cell.style for cell in row} & {"gain", "loss", "unsure"} for row in rows]

    first, *others = colours(value_table(study))
    assert first == {"gain"}
    assert others
    for found in (others, colours(class_table(study)), colours(learning_table(study))):
        assert all(row == {"unsure"} for row in found)


def test_tables_of_grouped_and_refitted_systems_say_so(make_report: Callable[..., Report]) -> None:
    study = make_report().studies[1]
    row = study.comparison(study.pairs[0], "MAP")
    text = comparison_table(study, "MAP").text()
    assert f"(spread {value(row['spread'])})" in text
    assert f"(refits {p_value(row['p_refits'])})" in text
    assert f"(design effect {row['design_effect']:.1f})" in text
    assert "randomisation test by 20 groups of queries, two-sided" in marks_note(study)
    assert "t-test that includes training noise" in marks_note(study)
    alone = [line for line in text.splitlines() if line.startswith("BM25 - ")]
    assert len(alone) == 1  # refits of the baseline move this difference, too
    assert "spread" in alone[0]


def test_report_text_has_verdicts_remarks_and_each_definition_once(
    make_report: Callable[..., Report],
) -> None:
    report = make_report()
    text = report_text(report)
    assert "Held-out queries: Word counts + SSI did significantly better" in text
    assert "Held-out articles: No significant difference" in text
    assert text.count("gain 2^label - 1") == 2  # NDCG@10 and NDCG@20
    assert text.count("A document with label 1 or more is relevant") == 1
    for study in report.studies:
        assert f"! {study.remarks[0]}." in text


def test_one_table_as_text_and_as_latex() -> None:
    rows = [
        [Cell("50% of $x_1", "told elsewhere"), Cell("1.5", strong=True, marks="▲a"), "x"],
        ["{other}", Cell("−2", "3 %"), "yy"],
    ]
    table = Table("A name", ["Row", "Value", Column("Text", number=False)], rows, "And more.")
    assert table.text().splitlines() == [
        "Row             Value     Text",
        "──────────────────────────────",
        "50% of $x_1       1.5 ▲a     x",
        "{other}      −2 (3 %)       yy",
    ]
    assert table.latex("mine").splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{A name. And more.}",
        r"\label{tab:mine}",
        r"\begin{adjustbox}{max width=\linewidth}",
        r"\begin{tabular}{lrl}",
        r"\toprule",
        r"Row & Value & Text \\",
        r"\midrule",
        r"50\% of \$x\_1 & \textbf{1.5}$^{\blacktriangle \mathrm{a}}$ & x \\",
        r"\{other\} & \makecell[tr]{$-$2\\\footnotesize 3 \%} & yy \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        r"\end{table}",
    ]


def test_in_latex_no_sign_of_a_text_is_a_command() -> None:
    assert escaped("\\a~b^c & 5% of $x_1# {y}<z>") == (
        r"\textbackslash{}a\textasciitilde{}b\textasciicircum{}c \& 5\% of \$x\_1\# "
        r"\{y\}\textless{}z\textgreater{}"
    )
    assert escaped("▲ ▼ −1 ±2 –") == r"$\blacktriangle$ $\blacktriangledown$ $-$1 $\pm$2 --"


def test_in_latex_long_texts_are_broken_and_wide_tables_take_both_columns() -> None:
    long = Table("A name", ["Row", "Value"], [["a system of a very long name, seed 7", "0.5"]])
    assert r"\begin{tabular}{>{\raggedright\arraybackslash}p{13em}r}" in long.latex("a")
    assert r"\begin{table}" in long.latex("a")
    wide = Table("A name", ["Row", *"abcdef"], [["a", *["0.5000"] * 6]])
    assert r"\begin{table*}" in wide.latex("a")
    assert r"\end{table*}" in wide.latex("a")


def test_in_latex_bold_is_what_stands_out_in_its_column() -> None:
    rows = [
        ["a", Cell("1", strong=True), Cell("2", strong=True)],
        ["b", Cell("3", strong=True), "4"],
    ]
    lines = Table("A name", ["Row", "First", "Second"], rows).latex("a").splitlines()
    assert r"a & 1 & \textbf{2} \\" in lines
    assert r"b & 3 & 4 \\" in lines


def test_long_names_are_broken_into_lines_in_plain_text() -> None:
    name = "a system of a very long name " * 4
    table = Table("A name", ["Row", "Value"], [[name.strip(), Cell("1.5", marks="▲")], ["b", "2"]])
    assert table.text().splitlines() == [
        f"{'Row':47}  Value",
        "─" * 56,
        f"{'a system of a very long name a system of a very':47}    1.5 ▲",
        "  long name a system of a very long name a",
        "  system of a very long name",
        f"{'b':47}      2",
    ]


def test_a_row_that_begins_with_a_bracket_or_star_is_no_argument_of_the_row_above_in_latex() -> (
    None
):
    table = Table("A name", ["Row", "Value"], [["a", "1"], ["[mine] b", "2"], ["*ours|c", "3"]])
    assert r"{[}mine] b & 2 \\" in table.latex("mine").splitlines()
    assert r"{*}ours\textbar{}c & 3 \\" in table.latex("mine").splitlines()


def test_captions_are_sentences_whatever_a_study_is_called(
    make_report: Callable[..., Report],
) -> None:
    report = make_report()
    for name, shown in (("Does it hold?", "Does it hold? Mean"), ("Queries", "Queries. Mean")):
        named = replace(report, studies=[replace(report.studies[0], name=name)])
        assert f"Systems, {shown} over" in latex_tables(named)
        assert f"Systems, {shown} over" in html.render(named)


def test_properties_that_tell_no_queries_apart_are_left_out(
    make_report: Callable[..., Report],
) -> None:
    study = make_report().studies[0]
    table = class_table(study)
    assert table is not None
    assert any(str(row[0]).startswith("words: ") for row in table.rows)
    assert study.query_kinds is not None
    same = study.query_kinds.assign(words=pd.Categorical(["2"] * len(study.query_kinds)))
    alone = class_table(replace(study, query_kinds=same))
    assert alone is not None
    assert not any(str(row[0]).startswith("words: ") for row in alone.rows)


def test_cells_that_spreadsheets_would_run_are_made_harmless(tmp_path: Path) -> None:
    texts = ["=1+1", "+cmd", "-x", "@a", "\t=a", "-1.5", "plain", None]
    numbers = [-1.0, 2, 3, 4, 5, 6, 7, np.nan]
    frame = pd.DataFrame({"=name": texts, "number": numbers})
    write_csv(frame, tmp_path / "a.csv")
    again = pd.read_csv(tmp_path / "a.csv")
    assert list(again.columns) == ["'=name", "number"]
    assert again["'=name"].tolist()[:-1] == [
        "'=1+1", "'+cmd", "'-x", "'@a", "'\t=a", "-1.5", "plain",
    ]  # fmt: skip
    assert again["number"].tolist()[:-1] == numbers[:-1]
    assert again.isna().sum().tolist() == [1, 1]
    assert list(frame.columns) == ["=name", "number"]
