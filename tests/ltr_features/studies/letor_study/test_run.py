"""A small comparison of rankers from file to tables."""

import json
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp
from small_studies import LETOR, write_letor

from letor.errors import InputError
from letor.evaluation import evaluate
from letor.fold_files import read_folds
from letor.measures import parse_measure
from letor.tuning import tune
from ltr_features.studies.config import read_config
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.run import find_experiment, run_file


@pytest.fixture
def toy(tmp_path):
    """The file of the study."""
    path = tmp_path / "study.toml"
    path.write_text(write_letor(tmp_path / "data"))
    return path


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
    assert "from Boosted steps" in text
    assert "n_thresholds=" in text
    assert f"{0.123:.4f}" in text
    assert "✗ AdaRank, MAP, official" in text


def test_standard_errors_are_those_of_a_mean_of_independent_folds(folder):
    values = pd.read_csv(folder / "per_query.csv")
    mine = values.query("scheme == 'three' and ranker == 'AdaRank'")
    parts = [part["NDCG@5"].to_numpy() for _, part in mine.groupby("fold")]
    expected = np.sqrt(sum(x.var(ddof=1) / len(x) for x in parts)) / len(parts)
    errors = pd.read_csv(folder / "errors.csv").set_index(["scheme", "ranker"])
    np.testing.assert_allclose(errors.loc[("three", "AdaRank"), "NDCG@5"], expected, atol=1e-6)


def test_page_has_means_references_and_what_was_expected(folder):
    page = (folder / "report.html").read_text()
    means = pd.read_csv(folder / "means.csv")
    for value in means["MAP"]:
        assert f"{value:.4f}" in page
    assert "Elsewhere &amp; else" in page
    assert "✗ AdaRank, MAP, official" in page
    assert "://" not in page


def test_another_grid_makes_the_rankers_with_it_again(toy, tmp_path):
    run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*.csv")}
    toy.write_text(toy.read_text().replace("n_thresholds = [2, 20]", "n_thresholds = [3, 20]"))
    run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    changed = {p for p in kept if p.stat().st_mtime_ns != kept[p]}
    assert {p.parent.name for p in changed} == {"Boosted_steps", "report"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('ranker = "adarank"', 'ranker = "ada"', "no ranker 'ada'; did you mean 'adarank'"),
        ("n_rounds = 10", "rounds = 10", "no parameter 'rounds'"),
        ('"letor4:map"', '"letor5:map"', "measure 'letor5:map' is unknown"),
        ('["MAP"]', '["MAP", "MAP"]', "compare_measures: two of them are the same measure"),
        ('["MAP"]', '["P@5"]', "'P@5' is not among the measures"),
        ('baseline = "Boosted steps"', 'baseline = "BM25"', "baseline 'BM25' is not a ranker"),
        ('label = "AdaRank"', 'label = "Boosted steps"', "labels must differ"),
        ("k = 3", "k = 2", "schemes.1.k"),
        ("MAP = 0.123", "MRR = 0.123", "references.0: 'MRR' is not one of"),
        ('measure = "MAP"', 'measure = "ERR"', "expected.0: 'ERR' is not one of"),
    ],
)
def test_bad_files_are_refused(toy, tmp_path, old, new, message):
    toy.write_text(toy.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_installed_experiment_is_sound():
    config = read_config(find_experiment("mq2008"), StudyConfig)
    assert {r.ranker for r in config.rankers} >= {"adarank", "listnet", "ranknet", "rankboost"}


def test_every_part_is_known_by_its_content(toy, tmp_path, capsys):
    """Another label makes the rankers again that it trains, stops or tests; the manifest lists all
    files, and other bytes of the same rows make the report alone again."""
    manifest = tmp_path / "out" / "report" / "manifest.json"

    def run():
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")
        folder = tmp_path / "data" / "toy"
        listed = json.loads(manifest.read_text())["inputs"]
        assert {file["name"]: file["sha256"] for file in listed["files"]} == {
            path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        }
        return {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("result*.json")}

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
    means = d.groupby(d.index // 20).mean()
    assert row["p_t"] == pytest.approx(ttest_1samp(means, 0).pvalue, abs=1e-4)
    assert "Design effect" in (folder / "tables.txt").read_text()
    assert "belong to 3 groups" in (folder / "report.html").read_text()
    assert json.loads((folder / "manifest.json").read_text())["inputs"]["groups"]["sha256"]
    file.write_text(f"{queries[0]}\tpart 1\n")
    with pytest.raises(InputError, match="23 queries have no group"):
        run_file(toy, data=tmp_path / "data", out=tmp_path / "out")


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
    assert "2 fits: spread" in (folder / "report.html").read_text()
