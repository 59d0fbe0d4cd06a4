"""The files beside the page: tables, LaTeX, figures, manifest."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from folders import different

from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.outputs import write_files, write_outputs
from ltr_features.studies.page.study_tables import significance_marks, systems_table


@pytest.fixture(scope="module")
def written(make_report, tmp_path_factory):
    report = make_report(n_queries=40, n_systems=4)
    folder = tmp_path_factory.mktemp("outputs")
    write_outputs(report, folder)
    return report, folder


def test_tables_hold_the_report_s_numbers_in_three_formats(written):
    report, folder = written
    for name in (
        "comparisons", "means", "per_query", "hard_queries", "importance", "columns", "moves",
        "query_classes", "query_kinds", "column_correlation", "column_value",
    ):  # fmt: skip
        parquet = pd.read_parquet(folder / "tables" / f"{name}.parquet")
        csv = pd.read_csv(folder / "tables" / f"{name}.csv", keep_default_na=True)
        other = pd.DataFrame(json.loads((folder / "tables" / f"{name}.json").read_text()))
        assert list(parquet.columns) == list(csv.columns) == list(other.columns)
        assert len(parquet) == len(csv) == len(other)
    per_query = pd.read_parquet(folder / "tables" / "per_query.parquet")
    study = report.studies[0]
    system = study.systems[2]
    ours = per_query[(per_query["study"] == study.name) & (per_query["system"] == system.name)]
    assert ours["MAP"].tolist() == system.per_query["MAP"].tolist()
    assert ours["query"].tolist() == study.queries
    means = pd.read_csv(folder / "tables" / "means.csv").set_index(["study", "system"])
    for one in study.systems:
        row = means.loc[study.name, one.name]
        assert row["columns"] == len(one.columns)
        assert row["MAP"] == pytest.approx(one.per_query["MAP"].mean(), abs=1e-12)
    moves = pd.read_csv(folder / "tables" / "moves.csv").head(3).astype(object)
    assert moves.where(moves.notna(), None).drop(columns=["query", "study"]).values.tolist() == [
        ["d1", "A treaty", 2, 7, 1, "IDF +0.800"],
        ["d3", "A comet", 1, 2, 9, None],
        ["d2", "A river", None, None, 3, "BM25 body +0.400; IDF +0.100"],
    ]
    matrix = pd.read_csv(folder / "tables" / "column_correlation.csv").set_index("column")
    ours = matrix[matrix["study"] == study.name].drop(columns="study")
    pd.testing.assert_frame_equal(ours, study.column_correlation, check_names=False)


def test_latex_has_a_row_per_system_and_its_marks(written):
    study = written[0].studies[0]
    text = systems_table(study).latex("systems")
    rows = [line for line in text.splitlines() if line.endswith(r"\\") and not line.startswith("S")]
    assert len(rows) == len(study.systems)
    marks = significance_marks(study)
    for system, row in zip(study.systems, rows, strict=True):
        assert row.count("blacktriangle") == sum(
            marks.get((system.name, m), "").count(sign) for m in study.measures for sign in "▲▼"
        )
    for j, measure in enumerate(study.measures, start=1):
        best = max(f"{s.per_query[measure].mean():.4f}" for s in study.systems)
        assert any(rf"\textbf{{{best}}}" in row.split(" & ")[j + 1] for row in rows)


def test_every_latex_table_has_a_label_of_its_own(written):
    text = (written[1] / "tables.tex").read_text(encoding="utf-8")
    assert re.findall(r"\\label{(.*)}", text) == [
        f"tab:{name}-{i}" for i in (1, 2) for name in ("systems", "differences", "hard-queries")
    ]


def test_figures_stand_alone(written):
    report, folder = written
    figures = sorted(path.name for path in (folder / "figures").iterdir())
    pairs = sum(len(study.pairs) for study in report.studies)
    rankers = sum(system.importance is not None for s in report.studies for system in s.systems)
    for ending in (".svg", ".pdf"):
        mine = [name for name in figures if name.endswith(ending)]
        # The overview, the maps of words and of documents; of each study a scatter, precision by
        # recall, the learning curve, the hard queries and the correlation.
        assert len(mine) == 3 + pairs + rankers + 5 * len(report.studies) + len(report.curves)
    for name in figures:
        content = (folder / "figures" / name).read_bytes()
        if name.endswith(".pdf"):
            assert content.startswith(b"%PDF")
        else:
            root = ElementTree.fromstring(content)
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            assert b"var(" not in content  # colours are put in


def drawing(title):
    return Drawing(title, "", 50, lambda figure: None)


def test_figures_of_names_alike_as_file_names_are_all_kept(tmp_path):
    named = zip(("a_b", "a_b", "A_B"), ("one", "two", "three"), strict=True)
    write_files(tmp_path, {}, [(name, drawing(title)) for name, title in named])
    kept = {"a_b.svg": "one", "a_b--2.svg": "two", "A_B--3.svg": "three"}
    for name, title in kept.items():
        assert title in (tmp_path / "figures" / name).read_text(encoding="utf-8")


def test_the_same_report_gives_the_same_bytes(written, tmp_path):
    report, folder = written
    write_outputs(report, tmp_path)
    assert different(folder, tmp_path) == set()


def test_figures_of_very_long_names_are_all_kept(tmp_path):
    write_files(tmp_path, {}, [("система_" * 60 + end, drawing("one")) for end in "ab"])
    assert len(list((tmp_path / "figures").glob("система_система*.pdf"))) == 2
