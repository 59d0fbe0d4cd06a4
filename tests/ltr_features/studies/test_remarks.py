"""What a report says of trained columns that learned nothing: in the verdict, in the table of
columns and where the models' words would be; and the distance of training rows."""

from __future__ import annotations

import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from beir_folders import write_beir
from folders import unwrapped

from letor.errors import LetorWarning
from ltr_features.columns.out_of_fold import DISTANCE
from ltr_features.studies.kinds.ranking import RankingStudy
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.kinds.ranking_report import better_alone
from ltr_features.studies.page import html
from ltr_features.studies.page.study_tables import report_text

N_QUERIES, N_DOCUMENTS = 30, 40
KEPT = r"did not improve on its start \(the tf-idf cosine\): what .* \d+( to \d+)? judged training"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Random judgements of queries of one word each, which their documents have; the first two
    are versions of one long text."""
    rng = np.random.default_rng(0)
    relevant = [rng.choice(N_DOCUMENTS, 10, replace=False) for _ in range(N_QUERIES)]
    texts = [[f"common{d % 7}"] for d in range(N_DOCUMENTS)]
    for q, documents in enumerate(relevant):
        for d in documents:
            texts[d].append(f"asked{q}")
    long = [f"word{n}" for n in range(30)]
    texts[0] += long
    corpus = [{"_id": f"d{d}", "text": " ".join(words)} for d, words in enumerate(texts)]
    queries = [{"_id": f"q{q}", "text": f"asked{q} common{q % 7}"} for q in range(N_QUERIES)]
    for query in queries[:2]:
        query["text"] += " " + " ".join(long)
    judged = "".join(f"q{q}\td{d}\t1\n" for q, every in enumerate(relevant) for d in every)
    folder = write_beir(tmp_path_factory.mktemp("beir") / "beir", corpus, queries, test=judged)
    scores = [f"q{q}\td{d}\t{rng.random()}" for q in range(N_QUERIES) for d in range(N_DOCUMENTS)]
    (folder / "few.vec").write_text("common1 1 0\ncommon2 1 1\n")
    (folder / "given.tsv").write_text("\n".join(["qid\tdocno\tscore", *scores]) + "\n")
    return folder


@pytest.fixture(scope="module")
def run(folder, tmp_path_factory) -> RankingStudy:
    """An experiment whose model can be taught nothing."""
    still = {"init": "identity", "scales": [1.0], "rank": 2, "max_epochs": 1}
    tree = {"n_estimators": 3, "min_data_in_leaf": 5}
    config = ExperimentConfig.model_validate(
        {
            "title": "Random judgements",
            "collection": {"source": "beir", "folder": str(folder)},
            "candidate_depth": 20,
            "columns": [
                {"family": "vsm"},
                {"family": "w2v-word", "options": {"vectors": str(folder / "few.vec")}},
                {"family": "scores", "options": {"files": {"given": str(folder / "given.tsv")}}},
            ],
            "models": [
                {"name": "mine", "model": "ssi", "params": still},
                {"name": "lsa", "model": "lsa", "params": {"rank": 3}},
            ],
            "rankers": [
                {"name": "trees", "ranker": "lambdamart", "params": tree},
                {"name": "none", "ranker": "lambdamart", "params": {"min_data_in_leaf": 10**6}},
            ],
            "splits": [{"name": "by-query", "title": "Unseen queries", "folds": 5}],
            "systems": [
                {"name": "words", "columns": ["vsm"], "ranker": "trees"},
                {
                    "name": "words+SSI",
                    "columns": ["vsm", "mine", "lsa", "given"],
                    "ranker": "trees",
                },
                {"name": "nothing", "columns": ["vsm"], "ranker": "none"},
                {"name": "cosine", "score": "vsm"},
            ],
            "evaluation": {
                "measures": ["NDCG@10", "Recall@20"],
                "comparisons": [["words+SSI", "words"]],
                "n_permutations": 99,
                "n_resamples": 50,
            },
            "nearest_words": ["asked3"],
        }
    )
    experiment = RankingStudy(config, tmp_path_factory.mktemp("out"), threads=1)
    with warnings.catch_warnings():  # once in the report, not once for each fold and fit
        warnings.filterwarnings("error", ".*learned nothing", LetorWarning)
        experiment.run()
    return experiment


def test_rows_carry_remarks_and_distance(run):
    notes = [run.part(run.config.splits[0], f"Fold{n}", "train").provenance for n in range(1, 6)]
    assert any(re.match(KEPT, r) for columns in notes for r in columns["mine"].get("remarks", ()))
    assert all(0 <= columns[name][DISTANCE] <= 1 for columns in notes for name in ("mine", "lsa"))


def test_the_verdict_says_it_once(run):
    folder = run.folder / "report"
    summary = unwrapped(folder / "summary.txt")
    page = (folder / "report.html").read_text(encoding="utf-8")
    sentence = f"Column mine, [^:]*: {KEPT}"
    assert len(re.findall(sentence, summary)) == 1
    assert summary.index("Column mine") < summary.index("NDCG@10 difference")
    verdict = page[page.index('id="verdict"') : page.index('id="s1"')]
    assert len(re.findall(sentence, verdict)) == 1
    lines = (folder / "verdict.txt").read_text(encoding="utf-8").splitlines()
    assert max(map(len, lines)) <= 80
    ending = " ".join(" ".join(lines).split())
    assert re.search(f"! {sentence}.*judge more queries, or leave it out", ending)


def test_versions_of_a_query_in_training_and_test_are_told(run):
    summary = unwrapped(run.folder / "report" / "summary.txt")
    assert "! at least 2 test queries have nearly the same words as a training query" in summary


def test_what_a_family_lacks_is_told_once_for_all_its_columns_and_folds(run):
    summary = unwrapped(run.folder / "report" / "summary.txt")
    told = re.findall(r"! (Columns? w2v[^:]*: .*?[,;])", summary)
    assert told == [
        "Columns w2v-word: vector file few.vec lacks 97 % of the words in documents,",
        "Columns w2v-word: 360 of 429 rows (83.9 %) have no known word in the query,",
    ]


def test_given_columns_are_told_with_the_verdict(run):
    """Only what made them knows whether it saw the judgements of the test queries."""
    summary = unwrapped(run.folder / "report" / "summary.txt")
    told = "! given columns (given): if their source saw judgements of the test queries"
    assert summary.index(told) < summary.index("! Column mine")  # terminals show the first remarks


def test_rankers_that_learned_nothing_are_named(run):
    summary = unwrapped(run.folder / "report" / "summary.txt")
    assert re.findall(r"! ([^:!]+): learned nothing, it uses no column", summary) == [
        "Ranker of nothing (5 of 5 fits)"
    ]


def test_a_measure_as_deep_as_the_candidates_is_told_as_it_weakens_the_other_tests(run):
    summary = unwrapped(run.folder / "report" / "summary.txt")
    assert "! Recall@20: the same for every query in all compared systems" in summary
    assert "as its 1 comparison can find nothing" in summary


def test_queries_without_a_relevant_document_are_counted(run, folder, tmp_path):
    data = tmp_path / "beir"
    shutil.copytree(folder, data)
    qrels = data / "qrels" / "test.tsv"
    qrels.write_text(re.sub(r"(?m)^(q[37]\t.*)\t1$", r"\1\t0", qrels.read_text()))
    values = run.config.model_dump(mode="json", exclude_none=True)
    values |= {"collection": {"source": "beir", "folder": str(data)}, "models": []}
    values |= {"rankers": [], "columns": [{"family": "vsm"}, {"family": "letters"}]}
    values |= {"systems": [{"name": name, "score": name} for name in ("vsm", "letters")]}
    values["evaluation"] |= {"measures": ["MAP"], "comparisons": [["vsm", "letters"]]}
    values["nearest_words"] = []
    study = RankingStudy(ExperimentConfig.model_validate(values), tmp_path / "out", threads=1)
    study.run()
    told = "<dt>queries without a relevant document</dt><dd>2, which count 0 in every mean</dd>"
    for experiment, wanted in ((study, True), (run, False)):
        page = (experiment.folder / "report" / "report.html").read_text(encoding="utf-8")
        assert (told in page) == wanted
        assert ("queries without a relevant document" in page) == wanted


@pytest.mark.parametrize(("alone", "told"), [(0.5, True), (0.3, False)])
def test_a_column_that_beats_the_rankers_of_the_verdict_is_told(run, alone, told):
    """A gain over a ranker that one of its columns beats says little."""
    values = {"words": 0.2, "words+SSI": 0.4, "nothing": 0.6, "cosine": alone}
    per_query = {name: pd.DataFrame({"NDCG@10": [0.0, 2 * x]}) for name, x in values.items()}
    remark = "cosine, a column without a ranker, has a higher mean NDCG@10 (0.5000) than both"
    remarks = list(better_alone(run.config, per_query))
    assert [r.startswith(remark) for r in remarks] == [True] * told


def test_the_table_of_columns_has_the_distance(run):
    folder = run.folder / "report"
    table = pd.read_csv(folder / "tables" / "columns.csv").set_index("name")["training_distance"]
    split, folds = run.config.splits[0], [f"Fold{n}" for n in range(1, 6)]
    largest = max(run.part(split, fold, "test").provenance["mine"][DISTANCE] for fold in folds)
    assert table["mine"] == largest
    assert np.isnan(table.drop(["mine", "lsa"])).all()
    assert f'data-label="Distance">{largest:.2f}</td>' in (folder / "report.html").read_text(
        "utf-8"
    )


def test_words_that_were_not_learned_are_not_shown_as_such(run):
    page = (run.folder / "report" / "report.html").read_text(encoding="utf-8")
    models = page[page.index('id="models"') : page.index('id="columns"')]
    assert re.search(f"<p>.*mine {KEPT}.*In this model, a query word matches only itself", models)
    assert "before training (the tf-idf cosine)" in page


def test_remarks_are_text_not_html(make_report):
    report = make_report(n_queries=20, n_systems=5)
    told = replace(report.studies[0], remarks=["Column <b>ssi</b>, all 5 folds: diverged"])
    report = replace(report, studies=[told, *report.studies[1:]])
    assert "! Column <b>ssi</b>, all 5 folds: diverged." in report_text(report)
    page = html.render(report)
    assert "Column &lt;b&gt;ssi&lt;/b&gt;, all 5 folds: diverged." in page
    assert "<b>ssi</b>" not in page


def test_reports_without_trained_columns_have_no_distances(page):
    assert "Distance" not in page.read_text(encoding="utf-8").split("<script")[0]
