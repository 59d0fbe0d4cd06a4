"""A small comparison of rankers from file to tables."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from folders import unwrapped, written
from scipy.stats import sem, ttest_1samp
from small_studies import LETOR, write_letor

from letor.column_names import write_rows
from letor.errors import InputError, LetorWarning, RankerWarning
from letor.evaluation import evaluate
from letor.fold_files import read_folds
from letor.measures import parse_measure
from letor.rankers.registry import load_ranker
from letor.trec import qrels_of, read_run
from letor.tuning import tune
from ltr_features.studies.run import run_file
from ltr_features.studies.statistics.paired_tests import group_error


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def folder(data):
    """The report of the study."""
    (data / "study.toml").write_text(write_letor(data))
    return run_file(data / "study.toml", data=data, out=data / "out")


def test_study_scores_each_test_query_once(data, folder):
    values = pd.read_csv(folder / "per_query.csv", dtype={"qid": str})
    assert not values.duplicated(["scheme", "ranker", "qid"]).any()
    assert len(values) == 2 * 2 * 24
    rows, folds = read_folds(data / "toy")
    train, valid, test = folds[1].split(rows)
    fixed = {"n_rounds": 10, "measure": "map"}
    ranker = tune("rankboost", train, valid, grid={"n_thresholds": [2, 20]}, fixed=fixed).ranker
    measures = [parse_measure("ndcg@5"), parse_measure("letor4:map")]
    expected = evaluate(test, ranker.predict(test), measures)
    found = values.query("scheme == 'official' and fold == 2 and ranker == 'Boosted steps'")
    assert found["qid"].tolist() == list(expected.index)
    np.testing.assert_allclose(found[["NDCG@5", "MAP"]], expected, atol=1e-6)
    means = pd.read_csv(folder / "means.csv").set_index(["scheme", "ranker"])
    by_fold = values.groupby(["scheme", "ranker", "fold"])["MAP"].mean()
    np.testing.assert_allclose(
        means.loc[("official", "AdaRank"), "MAP"], by_fold["official", "AdaRank"].mean(), atol=1e-6
    )
    summary = json.loads((folder / "results.json").read_text())
    assert len(summary["comparisons"]) == 2
    text = (folder / "tables.txt").read_text()
    assert "AdaRank - Boosted steps" in text
    assert "n_thresholds=" in text
    assert f"{0.123:.4f}" in text
    assert "✗ AdaRank, MAP, official" in text


def test_standard_errors_are_those_of_the_mean_over_queries(folder):
    values = pd.read_csv(folder / "per_query.csv")
    mine = values.query("scheme == 'three' and ranker == 'AdaRank'")
    errors = pd.read_csv(folder / "errors.csv").set_index(["scheme", "ranker"])
    found = errors.loc[("three", "AdaRank"), "NDCG@5"]
    assert found == pytest.approx(sem(mine["NDCG@5"]), abs=1e-6)
    assert "Every system was fitted once" in unwrapped(folder / "tables.txt")


def test_page_has_means_references_and_what_was_expected(folder):
    page = (folder / "report.html").read_text()
    means = pd.read_csv(folder / "means.csv")
    for value in means["MAP"]:
        assert f"{value:.4f}" in page
    assert "Elsewhere &amp; else (published)" in page
    assert "✗ AdaRank, MAP, official" in page
    assert "not known: whether relevant documents or queries lack a row" in page
    assert "://" not in page


def test_another_label_makes_the_rankers_again_and_another_remark_the_report_alone(toy, tmp_path):
    def run():
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
        return written(tmp_path / "out", "result*.json")

    first = run()
    part = tmp_path / "data" / "toy" / "S2.txt"
    text = part.read_text()
    part.write_text(text.replace("\n", " # a remark\n", 1))
    assert run().items() & first.items() == {
        item for item in first.items() if item[0].name == "result.json"
    }
    second = run()
    other = "0" if text[0] != "0" else "1"
    part.write_text(other + text[1:])
    assert not run().items() & second.items()


def test_queries_of_one_group_are_tested_together(toy, tmp_path):
    queries = [10 * part + query for part in range(1, 5) for query in range(6)]
    file = tmp_path / "data" / "groups.tsv"
    file.write_text("".join(f"{q}\tpart {q // 20}\n" for q in queries))
    toy.write_text(LETOR.replace('folder = "toy"', 'folder = "toy"\ngroups = "groups.tsv"'))
    folder = run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    table = pd.read_csv(folder / "comparisons.csv")
    assert (table["n_groups"] == 3).all()
    values = pd.read_csv(folder / "per_query.csv").query("scheme == 'three'")
    values = values.pivot_table(index="qid", columns="ranker", values="MAP")
    d = values["AdaRank"] - values["Boosted steps"]
    row = table[table["scheme"] == "three"].iloc[0]
    of_folds = pd.read_csv(folder / "per_query.csv").query("scheme == 'three'")
    assert of_folds.groupby(of_folds["qid"] // 20)["fold"].nunique().eq(1).all()
    errors = pd.read_csv(folder / "errors.csv").set_index(["scheme", "ranker"])
    expected = group_error(values["AdaRank"], (values.index // 20).tolist())[0].item()
    assert errors.loc[("three", "AdaRank"), "MAP"] == pytest.approx(expected, abs=1e-6)
    verdict = unwrapped(folder / "verdict.txt")
    # S2 and S3 make one group; only the third fold, of S3 and S4, tests the other part of it
    assert "! official folds: 6 of 24 test queries belong to a group that was also" in verdict
    means = d.groupby(d.index // 20).mean()
    assert row["p_t"] == pytest.approx(ttest_1samp(means, 0).pvalue, abs=1e-4)
    assert "Design effect" in (folder / "tables.txt").read_text()
    said = "Fisher's randomisation test by 3 groups of queries, two-sided, all 8 sign patterns; p"
    assert said in unwrapped(folder / "tables.txt")
    assert "tested by their 3 groups" in (folder / "tables.tex").read_text()
    assert json.loads((folder / "manifest.json").read_text())["inputs"]["groups"]["sha256"]
    file.write_text(f"{queries[0]}\tpart 1\n")
    with pytest.raises(InputError, match="no group of 23 queries"):
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")


JOINED = """
kind = "letor"
title = "Do these scores help?"
folder = "toy"
compare_measures = ["NDCG@10"]

[[columns]]
family = "scores"
options = { files = { mine = "mine.tsv" }, missing = "lowest" }

[[rankers]]
label = "given"
ranker = "coordinate-ascent"
grid = {}
without = ["mine"]

[[rankers]]
label = "given and mine"
ranker = "coordinate-ascent"
grid = {}

[[rankers]]
label = "ties"
ranker = "rankboost"
columns = ["1"]
params = { n_rounds = 1, n_thresholds = 1 }
grid = {}
"""


@pytest.fixture
def joined(tmp_path):
    """The file of a study of scores that follow the labels; one document has none."""
    write_letor(tmp_path)
    scores = []
    for part in sorted((tmp_path / "toy").iterdir()):
        lines = part.read_text().splitlines()
        ids = [f"{line.split()[1][4:]}-{row}" for row, line in enumerate(lines)]
        part.write_text("".join(f"{row} #docid = {i}\n" for row, i in zip(lines, ids, strict=True)))
        scores += [f"{i.split('-')[0]}\t{i}\t{row[0]}\n" for row, i in zip(lines, ids, strict=True)]
    (tmp_path / "mine.tsv").write_text("qid\tdocno\tscore\n" + "".join(scores[1:]))
    (tmp_path / "study.toml").write_text(JOINED)
    return tmp_path / "study.toml"


def test_columns_that_others_made_are_judged_without_texts(joined, tmp_path):
    """By the usual measures, on the official folds; the first ranker is the baseline."""
    folder = run_file(joined, data=tmp_path, out=tmp_path / "out")
    means = pd.read_csv(folder / "means.csv").set_index("ranker")
    assert means.loc["given and mine", "NDCG@10"] > 0.99
    assert means.loc["given", "NDCG@10"] < 0.98
    verdict = unwrapped(folder / "verdict.txt")
    assert re.search(r"NDCG@10: given and mine \(\+0\.\d+\) significantly better", verdict)
    assert "! given columns (mine): if their source saw judgements of the test queries" in verdict
    page = (folder / "tables.txt").read_text()
    assert "scores: 1 of 192 rows (0.5 %) have no score" in page
    stages = tmp_path / "out" / "rankers" / "official_folds"
    seen = {
        name: len(load_ranker(stages / "fold1" / name / "ranker").feature_names_)
        for name in ("given", "given_and_mine", "ties")
    }
    assert seen == {"given": 3, "given_and_mine": 4, "ties": 1}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert "sha256" in json.dumps(manifest["inputs"]["columns"])


def test_what_a_table_has_besides_numbers_is_told_once(joined, tmp_path, recwarn):
    ids = [line.rpartition(" ")[2] for part in (tmp_path / "toy").iterdir() for line in part.open()]
    table = pd.DataFrame({"docno": map(str.strip, ids), "mine": range(len(ids)), "colour": "red"})
    table.to_csv(tmp_path / "mine.csv", index=False)
    options = 'family = "numbers"\noptions = { file = "mine.csv" }\n'
    joined.write_text(re.sub('family = "scores"\noptions = .*\n', options, JOINED))
    run_file(joined, data=tmp_path, out=tmp_path / "out", dry_run=True)
    told = [str(one.message) for one in recwarn if "left out" in str(one.message)]
    assert [message.partition("colour ")[2] for message in told] == ["('red')"]


def test_runs_of_the_test_queries_are_kept(joined, tmp_path):
    folder = run_file(joined, data=tmp_path, out=tmp_path / "out")
    rows, folds = read_folds(tmp_path / "toy")
    values = pd.read_csv(folder / "per_query.csv", dtype={"qid": str})
    found = values.query("ranker == 'given' and fold == 2").set_index("qid")["NDCG@10"]
    run = read_run(tmp_path / "out/rankers/official_folds/fold2/given/run.txt.gz")
    test = rows.select_queries(folds[1].test)
    again = evaluate(qrels_of(test), run, "ndcg@10")["ndcg@10"]
    np.testing.assert_allclose(again, found[again.index], atol=1e-9)


def test_equal_scores_are_told(joined, tmp_path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = run_file(joined, data=tmp_path, out=tmp_path / "out")
    assert not [
        told for told in caught if issubclass(told.category, RankerWarning)
    ]  # in the report
    text = unwrapped(folder / "tables.txt")
    assert "ties: gives equal scores to documents of different grades" in text
    assert "given: gives equal" not in text
    assert "ties, fold 1, 2, 3, 4: learned nothing" in text
    assert "! ties (4 of 4 fits): learned nothing, it uses no column" in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('without = ["mine"]', 'without = ["mime"]', "no column 'mime'; did you mean 'mine'"),
        ('"scores"', '"vsm"', "columns of vsm are computed from texts"),
        ("{ mine =", '{ "1" =', "the rows have a column '1' already"),
        ('without = ["mine"]', 'without = ["1"]\ncolumns = ["1"]', "'given': no column is left"),
        ('"mine.tsv"', '"absent.tsv"', "absent.tsv: no such file"),
    ],
)
def test_columns_that_cannot_be_joined_are_named(joined, tmp_path, old, new, message):
    text = joined.read_text().replace(old, new, 1)
    if new == '"vsm"':
        text = text.replace('options = { files = { mine = "mine.tsv" }, missing = "lowest" }', "")
    joined.write_text(text)
    with pytest.raises(InputError, match=message):
        run_file(joined, data=tmp_path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_values_that_are_not_finite_may_be_missing(joined, tmp_path):
    part = tmp_path / "toy" / "S1.txt"
    part.write_text(re.sub(r" 3:\S+", " 3:nan", part.read_text(), count=1))
    text = joined.read_text()
    with pytest.raises(InputError, match=r"S1\.txt, line 1: '3:nan' is not a number"):
        run_file(joined, data=tmp_path, out=tmp_path / "out")
    joined.write_text(text.replace('folder = "toy"', 'folder = "toy"\nnon_finite = "nan"'))
    with pytest.warns(LetorWarning, match="count as missing: 1, in columns 3") as caught:
        run_file(joined, data=tmp_path, out=tmp_path / "out")
    assert {told.filename for told in caught} == {__file__}  # though a cached property warns


def test_refits_have_other_folds_and_seeds_and_their_spread_is_told(toy, tmp_path):
    """On official folds a ranker without a seed is fitted once; dealt folds differ."""
    listnet = (
        '[[rankers]]\nlabel = "ListNet"\nranker = "listnet"\nparams = { n_epochs = 2 }\ngrid = {}\n'
    )
    text = LETOR.replace("[measures]", "repeats = 2\n\n[measures]", 1)
    toy.write_text(text.replace("[[references]]", f"{listnet}\n[[references]]", 1))
    folder = run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    values = pd.read_csv(folder / "per_query.csv", dtype={"qid": str})
    fits = values.groupby(["scheme", "ranker"])["fit"].nunique()
    assert fits["official"].to_dict() == {"AdaRank": 1, "Boosted steps": 1, "ListNet": 2}
    assert fits["three"].to_dict() == {"AdaRank": 2, "Boosted steps": 2, "ListNet": 2}
    dealt = values.query("scheme == 'three' and ranker == 'AdaRank'")
    first, second = (
        {frozenset(part["qid"]) for _, part in fit.groupby("fold")}
        for _, fit in dealt.groupby("fit")
    )
    assert first != second
    table = pd.read_csv(folder / "comparisons.csv").set_index(["scheme", "system"])
    for scheme in ("official", "three"):
        of = values.query("scheme == @scheme").groupby(["ranker", "fit"])["MAP"].mean()
        ours, base = (of[name].to_numpy() for name in ("ListNet", "Boosted steps"))
        d = ours - base  # one value of the baseline serves both fits on official folds
        row = table.loc[(scheme, "ListNet")]
        assert (row["n_fits"], row["spread"]) == (2, pytest.approx(d.std(ddof=1)))
        assert row["difference"] == pytest.approx(d.mean())
    assert table.loc[("official", "AdaRank"), "n_fits"] == 1
    assert f"spread {row['spread']:.4f}" in (folder / "report.html").read_text()
    assert "Chosen parameters, by fold count, first fit" in (folder / "tables.txt").read_text()
    every = values.query("scheme == 'three' and ranker == 'ListNet'")
    by_fit = every.pivot_table(index="qid", columns="fit", values="MAP")
    expected = np.hypot(sem(by_fit.mean(axis=1)), sem(by_fit.mean()))
    errors = pd.read_csv(folder / "errors.csv").set_index(["scheme", "ranker"])
    assert errors.loc[("three", "ListNet"), "MAP"] == pytest.approx(expected, abs=1e-6)


def test_the_rows_of_a_file_are_dealt_into_folds(tmp_path):
    write_letor(tmp_path)
    rows, _ = read_folds(tmp_path / "toy")
    write_rows(rows, tmp_path / "rows.parquet")
    text = """kind = "letor"
title = "One file"
folder = "rows.parquet"
[[rankers]]
label = "all"
ranker = "coordinate-ascent"
grid = {}
"""
    (tmp_path / "one.toml").write_text(text)
    with pytest.raises(InputError, match=r"rows.parquet is a file, without folds of its own"):
        run_file(tmp_path / "one.toml", data=tmp_path, out=tmp_path / "out")
    (tmp_path / "one.toml").write_text(f"n_permutations = 99\n{text}")
    with pytest.raises(InputError, match="n_permutations: no ranker is compared with the base"):
        run_file(tmp_path / "one.toml", data=tmp_path, out=tmp_path / "out")
    (tmp_path / "one.toml").write_text(f"{text}[[schemes]]\nname = 'new'\nk = 3\n")
    report = run_file(tmp_path / "one.toml", data=tmp_path, out=tmp_path / "out")
    values = pd.read_csv(report / "per_query.csv", dtype={"qid": str})
    assert sorted(values["qid"]) == sorted(rows.query_ids)
    assert values["fold"].nunique() == 3
    named = np.array([f"d {i}" for i in range(len(rows))], object)
    write_rows(replace(rows, document_ids=named, comments=None), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"document id 'd 0' .* TREC files cannot hold it"):
        run_file(tmp_path / "one.toml", data=tmp_path, out=tmp_path / "other")
    assert not list((tmp_path / "other").rglob("ranker*"))


def test_folds_whose_rows_differ_are_read_apart(tmp_path):
    """A column of the fold's own models: informative in each fold, in scales that differ."""
    write_letor(tmp_path / "data")
    rows, folds = read_folds(tmp_path / "data/toy")
    homes = tmp_path / "data/apart"
    for number, fold in enumerate(folds, start=1):
        for name, part in zip(("train", "vali", "test"), fold.split(rows), strict=True):
            notes = {"own": {"remarks": [f"was fitted in fold {fold.name}"]}}
            wider = part.with_columns(["own"], number * (part.y + 1), notes)
            write_rows(wider, homes / fold.name / f"{name}.txt")
    text = """kind = "letor"
title = "Apart"
folder = "apart"
[[rankers]]
label = "own"
ranker = "coordinate-ascent"
columns = ["own"]
grid = {}
"""
    (tmp_path / "apart.toml").write_text(text)
    report = run_file(tmp_path / "apart.toml", data=tmp_path / "data", out=tmp_path / "out")
    values = pd.read_csv(report / "per_query.csv", dtype={"qid": str})
    assert sorted(values["qid"].unique()) == sorted(rows.query_ids)
    relevant = values[values["MAP"] > 0]
    assert relevant["MAP"].min() == 1  # the column orders the rows of every test query by label
    assert "own, all 4 folds: was fitted in fold" in (report / "tables.txt").read_text()
    (tmp_path / "dealt.toml").write_text(f"{text}[[schemes]]\nname = 'new'\nk = 3\nseed = 1\n")
    with pytest.raises(InputError, match="other rows than in"):
        run_file(tmp_path / "dealt.toml", data=tmp_path / "data", out=tmp_path / "dealt")
