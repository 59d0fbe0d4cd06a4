"""Where rankers of a LETOR data set differ: hard queries, kinds of queries, columns used."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from folders import unwrapped
from small_studies import write_letor

from letor.errors import InputError
from letor.fold_files import read_folds
from ltr_features.studies.run import run_file

# In these data, column 2 follows the labels.
STUDY = """
kind = "letor"
title = "Toy"
folder = "toy"
hard_by = "one column"
n_permutations = 200
measures = { "NDCG@2" = "ndcg@2", MAP = "map" }

[[rankers]]
label = "baseline"
ranker = "coordinate-ascent"
columns = ["1"]
grid = {}

[[rankers]]
label = "all"
ranker = "coordinate-ascent"
grid = {}

[[rankers]]
label = "third"
ranker = "coordinate-ascent"
columns = ["1", "3"]
grid = {}

[[rankers]]
label = "one column"
ranker = "adarank"
columns = ["1", "3"]
params = { n_rounds = 1, normalise = "none" }
grid = {}
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("findings")
    write_letor(folder)
    return folder


@pytest.fixture(scope="module")
def report(data):
    return _run(data, STUDY)


def _run(data, text):
    name = f"study{len(list(data.iterdir()))}"
    (data / f"{name}.toml").write_text(text)
    return run_file(data / f"{name}.toml", data=data, out=data / name)


def test_gains_on_queries_that_a_third_ranker_finds_hard(report):
    values = pd.read_csv(report / "per_query.csv").pivot(
        index="qid", columns="ranker", values="NDCG@2"
    )
    hard = values["one column"] < 0.5
    assert 0 < hard.sum() < len(values)
    table = pd.read_csv(report / "hard_queries.csv").query("estimate").set_index("system")
    assert list(table.index) == ["all", "third"]
    for name, row in table.iterrows():
        gain = (values[name] - values["baseline"])[hard].mean()
        assert row["n_queries"] == hard.sum()
        assert row["gain"] == pytest.approx(gain)
    verdict = unwrapped(report / "verdict.txt")
    n, gain = hard.sum(), table.loc["all", "gain"]
    said = f"On the {n} queries hard for one column (NDCG@2, value < 0.5): all ({gain:+.4f})"
    assert said in verdict
    text = unwrapped(report / "tables.txt")
    assert f"the {n} on which a third ranking, one column, does poorly: NDCG@2" in text
    assert "Columns that one column uses: " in text


def test_the_ranker_that_finds_hard_queries_is_not_compared(report):
    compared = pd.read_csv(report / "comparisons.csv")
    assert set(compared["system"]) == {"all", "third"}
    assert "one column" in pd.read_csv(report / "means.csv")["ranker"].tolist()


def test_kinds_are_by_the_number_of_relevant_rows(data, report):
    rows, _ = read_folds(data / "toy")
    n = np.bincount(rows.query_index, rows.y >= 1, rows.n_queries)
    table = pd.read_csv(report / "query_classes.csv")
    assert table["n_queries"].sum() == (n > 0).sum()
    first = table["class"][0].split(" to ")
    assert table["n_queries"][0] == ((n >= int(first[0])) & (n <= int(first[-1]))).sum()


def test_kinds_are_those_of_the_tested_queries(tmp_path):
    """In parts that somebody else made, test queries may be unlike those for training."""
    (tmp_path / "toy").mkdir()
    rng = np.random.default_rng(0)
    for part, relevant in (("train", (1, 2, 3)), ("vali", (1, 2, 3)), ("test", (9, 9, 8))):
        lines = [
            f"{int(n < relevant[query % 3])} qid:{part}{query} 1:{a:.3f} 2:{b:.3f} 3:{c:.3f}\n"
            for query in range(12)
            for n, (a, b, c) in enumerate(rng.random((10, 3)))
        ]
        (tmp_path / "toy" / f"{part}.txt").write_text("".join(lines))
    table = pd.read_csv(_run(tmp_path, STUDY) / "query_classes.csv")
    assert table["class"].tolist() == [8, 9]
    assert table["n_queries"].tolist() == [4, 8]


def test_captions_count_queries_and_tests_as_nothing_stands_beside_a_table_in_latex(report, data):
    rows, _ = read_folds(data / "toy")
    first = rows.query_ids[0]
    for path in sorted((data / "toy").rglob("*.txt")):
        text = re.sub(rf"(?m)^\d+ (qid:{first} )", r"0 \1", path.read_text())
        there = data / "one-without" / path.relative_to(data / "toy")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(text)
    without = _run(data, STUDY.replace('"toy"', '"one-without"'))
    n, tests = rows.n_queries, len(pd.read_csv(report / "comparisons.csv"))
    for folder, counted in (
        (report, f"{n} in all"),
        (without, f"{n} in all, 1 without a relevant"),
    ):
        shown = (folder / "tables.tex").read_text()
        assert f"test queries ({counted}" in shown
        assert f"after correction (Holm over {tests} tests)." in shown


def test_columns_that_each_ranker_used(report):
    table = pd.read_csv(report / "importance.csv", dtype={"column": str})
    gains = table.groupby(["ranker", "column"])["gain"].mean()
    assert gains["all"].idxmax() == "2"
    assert set(gains["baseline"].index) == {"1"}
    page = (report / "report.html").read_text()
    assert "all: share of each column in the total gain" in page
    assert "one column: share of each column" not in page


def test_a_column_that_is_better_than_the_rankers_is_told(tmp_path, report):
    assert "tune the rankers" not in (report / "verdict.txt").read_text()
    write_letor(tmp_path)
    short = tmp_path / "toy" / "S1.txt"  # folds of different sizes
    short.write_text("".join(short.read_text().splitlines(keepends=True)[:16]))
    seen = 'ranker = "adarank"\ncolumns = ["1", "3"]'
    ranked = 'label = "all"\nranker = "coordinate-ascent"'
    text = STUDY.replace(seen, 'ranker = "adarank"')
    text = text.replace(ranked, f'{ranked}\ncolumns = ["1"]')
    verdict = unwrapped(_run(tmp_path, text) / "verdict.txt")
    told = re.search(r"! official folds: one column has a higher mean NDCG@2 \((0\.\d+)\)", verdict)
    shown = re.search(r"one column +(0\.\d+)", verdict)
    assert told[1] == shown[1]


def test_without_such_a_ranker_nothing_is_said_of_hard_queries(data):
    text = STUDY.replace('hard_by = "one column"\n', "")
    report = _run(data, text)
    assert not (report / "hard_queries.csv").exists()
    assert "hard" not in (report / "tables.txt").read_text()
    assert "one column" in pd.read_csv(report / "comparisons.csv")["system"].tolist()


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ('hard_by = "colum"', "hard_by: no ranker 'colum'; did you mean 'one column'"),
        ('hard_by = "baseline"', "hard_by: the baseline cannot choose the hard queries"),
        ('hard_by = "all"\nhard_measure = "MRR"', "hard_measure: no measure 'MRR'"),
        ('hard_measure = "MAP"', "hard_measure: no ranker chooses hard queries; name one by hard"),
    ],
)
def test_what_cannot_choose_hard_queries_is_refused(data, new, message):
    with pytest.raises(InputError, match=message):
        _run(data, STUDY.replace('hard_by = "one column"', new))


def test_a_chooser_and_a_baseline_alone_leave_nothing_to_compare(data):
    start, end = STUDY.index('[[rankers]]\nlabel = "all"'), STUDY.index('[[rankers]]\nlabel = "one')
    with pytest.raises(InputError, match="besides it and the baseline no ranker is left"):
        _run(data, STUDY[:start] + STUDY[end:])


def test_texts_of_queries_are_shown_and_equal_ones_tested_together(data):
    known = [query for part in (10, 20, 30) for query in range(part, part + 6)]
    lines = (f"{query}\tabout topic {query % 10}\n" for query in known)
    (data / "queries.tsv").write_text("".join(lines))
    report = _run(data, STUDY.replace('folder = "toy"', 'folder = "toy"\nqueries = "queries.tsv"'))
    # Six texts of three queries each, and six queries without a text.
    assert (pd.read_csv(report / "comparisons.csv")["n_groups"] == 12).all()
    assert "about topic" in (report / "tables.txt").read_text()
    verdict = unwrapped(report / "verdict.txt")
    assert "! 6 queries without a text in queries.tsv, shown by their ids" in verdict
    (data / "queries.tsv").write_text("a\tan id of another kind\n")
    with pytest.raises(InputError, match="do both use the same ids"):
        _run(data, STUDY.replace('folder = "toy"', 'folder = "toy"\nqueries = "queries.tsv"'))


def test_groups_may_be_a_column_of_a_table_of_queries(data):
    rows = (f'{{"_id": "{q}", "text": "t", "group": "{q // 20}"}}\n' for q in range(10, 46))
    (data / "queries.jsonl").write_text("".join(rows))
    report = _run(data, STUDY.replace('folder = "toy"', 'folder = "toy"\ngroups = "queries.jsonl"'))
    assert (pd.read_csv(report / "comparisons.csv")["n_groups"] == 3).all()


def test_a_chooser_of_hard_queries_that_ranks_as_a_compared_one_is_told(tmp_path):
    """It may turn out so only when all are trained."""
    write_letor(tmp_path)
    one = STUDY[STUDY.rindex("[[rankers]]") :]
    text = STUDY + one.replace("one column", "again")
    (tmp_path / "study.toml").write_text(text)
    report = run_file(tmp_path / "study.toml", data=tmp_path, out=tmp_path / "out")
    told = "one column has the NDCG@2 of again for every query, so that it is no third ranking"
    assert told in unwrapped(report / "verdict.txt")
    assert "hard for one column" not in unwrapped(report / "tables.txt")
