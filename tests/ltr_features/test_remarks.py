"""What a user is told of a fit that learned nothing or little: on the terminal, as warnings, in the
notes of every file, by ``validate`` and by ``explain``."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp
from toys import context_of, toy
from toys import run as command

from letor.column_names import read_rows, write_rows
from letor.dataset import GIVEN
from letor.folds import k_fold
from letor.lint import render, validate
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import DISTANCE, training_distance
from ltr_features.columns.registry import get_family
from ltr_features.columns.trained import TrainedColumn
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.feature_table import build_columns, learned_columns
from ltr_features.remarks import ColumnWarning, given_remark, grouped_remarks, ranker_remarks
from ltr_features.text.collection import Collection, Judgements, Pairs
from ssi_models.registry import load_model
from ssi_models.remarks import FitWarning

N_QUERIES, N_DOCUMENTS = 30, 60
KEPT = r"did not improve on its start \(the tf-idf cosine\): what .* \d+( to \d+)? judged training"
FEW = r"learned from only \d+( to \d+)? relevant pairs of \d+( to \d+)? queries: judge more"
#: Training starts at word matching.
STILL = {"init": "identity", "scales": [1.0], "rank": 2, "max_epochs": 2, "threads": 1}


def collection(n_queries=N_QUERIES, per_query=10) -> Collection:
    """Random judgements. Word matching ranks without a mistake, as documents hold the one word of
    each query that they are relevant to, and there is nothing to be learned for other queries."""
    rng = np.random.default_rng(0)
    relevant = [rng.choice(N_DOCUMENTS, per_query, replace=False) for _ in range(n_queries)]
    texts = [[f"common{d % 7}"] for d in range(N_DOCUMENTS)]
    for q, documents in enumerate(relevant):
        for d in documents:
            texts[d].append(f"asked{q}")
    query = np.repeat(np.arange(n_queries), per_query)
    grades = np.ones(len(query), dtype=np.int64)
    judged = Judgements(query, np.concatenate(relevant), grades)
    queries = [f"asked{q}" for q in range(n_queries)]
    return toy({"body": [" ".join(words) for words in texts]}, queries, judged)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """The random collection as the workspace of the commands."""
    return make_workspace(collection(), tmp_path_factory.mktemp("random") / "workspace")


def still(name="ssi"):
    return [f"--param={name}.{key}={value}" for key, value in STILL.items() if key != "threads"]


@pytest.fixture(scope="module")
def built(workspace):
    """``columns build`` with a model that can learn nothing: its answer, and the folds."""
    out = workspace.parent / "folds"
    arguments = ["--workspace", workspace, "--family", "vsm", "--model", "ssi", "--threads", 1]
    return command("columns", "build", *arguments, *still(), "--folds", 4, "--out", out), out


def test_columns_build_says_it_last_and_once_for_all_folds(built):
    said = [line for line in built[0].stderr.splitlines() if line.startswith("ssi, ")]
    assert said == built[0].stderr.splitlines()[-len(said) :]
    kept = [line for line in said if "did not improve" in line]
    assert len(kept) == 1
    assert re.match(f"ssi, all 4 folds: {KEPT}", kept[0])


def test_queries_drawn_from_documents_are_told_of(workspace, tmp_path):
    """On the terminal, and as a warning."""
    shutil.copytree(workspace, tmp_path / "workspace")
    queries = tmp_path / "workspace" / "collection" / "queries.jsonl"
    lines = [json.loads(line) for line in queries.read_text().splitlines()]
    for line in lines[:7]:
        line["source"] = "d3"
    queries.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = tmp_path / "rows.txt"
    built = ["columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm"]
    told = f"7 of {N_QUERIES} queries were drawn from documents of the collection"
    assert command(*built, "--out", out).stderr.splitlines()[-1].startswith(told)
    sources = np.full(N_QUERIES, -1)
    sources[:7] = 3
    drawn = replace(collection(), query_sources=sources)
    assert collection().remarks == replace(drawn, query_sources=sources * 0 - 1).remarks == []
    with pytest.warns(ColumnWarning, match=told):
        FeatureBuilder(["vsm"]).fit(drawn)


def test_grades_inferred_from_clicks_are_told_of(tmp_path):
    """They are not ratings; a saved workspace still knows."""
    (tmp_path / "documents.csv").write_text("id,text\na,deep water\nb,still water\n")
    looks = [[("a", 1, 1), ("b", 2, 0)], [("b", 1, 0), ("a", 2, 1)]]
    shown = "".join(f"{s},water,{d},{p},{c}\n" for s in range(40) for d, p, c in looks[s % 2])
    (tmp_path / "log.csv").write_text("session,query,document,position,clicked\n" + shown)
    log, documents = f"log={tmp_path}/log.csv", f"documents={tmp_path}/documents.csv"
    command("index", "clicks", log, documents, "--out", tmp_path / "workspace")
    (remark,) = open_workspace(tmp_path / "workspace").remarks
    assert remark.startswith("grades are what the click model 'pbm' infers from clicks")


def test_clicks_by_chance_are_told_of_wherever_their_grades_are_used():
    """A gain on grades that are noise is none; also of one period of several."""
    chance = "the relevance of the 9 pairs varies no more than by chance"
    whole = replace(collection(), description={"remarks": [chance]})
    with pytest.warns(ColumnWarning, match=chance):
        FeatureBuilder(["vsm"]).fit(whole)
    periods = {"periods": [{"remarks": []}, {"remarks": [chance]}]}
    (told,) = replace(collection(), description=periods).remarks
    assert told == f"period 2 of the clicks: {chance}"
    periods["periods"].append({"remarks": [chance]})
    (told,) = replace(collection(), description=periods).remarks
    assert told == f"period 2 and period 3 of the clicks: {chance}"


def test_given_columns_are_told_of_where_they_are_used():
    provenance = {"bm25": {}, "mine": {"trained on": GIVEN}}
    assert given_remark(provenance, ["bm25"]) == []
    assert given_remark(provenance, ["bm25", "mine"])[0].startswith("given columns (mine): if")


def test_every_file_of_a_fold_carries_it_also_as_parquet(built, tmp_path):
    for part in ("train", "vali", "test"):
        rows = read_rows(built[1] / "Fold2" / f"{part}.txt")
        notes = rows.provenance["ssi"]
        assert any(re.match(KEPT, remark) for remark in notes["remarks"])
        assert 0 <= notes[DISTANCE] <= 1
        assert "remarks" not in rows.provenance[rows.column_names[0]]
    write_rows(rows, tmp_path / "test.parquet")
    assert read_rows(tmp_path / "test.parquet").provenance["ssi"] == notes


def test_validate_finds_it(built):
    path = built[1] / "Fold1" / "test.txt"
    found = [f for f in validate(path).findings if f.code == "column-remarks"]
    number = len(read_rows(path).column_names)
    kept = next(f for f in found if "did not improve" in f.message)
    assert kept.level == "warning"
    assert kept.columns == (number,)
    assert re.match(rf"column {number} \(ssi\): {KEPT}", kept.message)
    assert kept.message in render(validate(path))


def test_validate_reads_files_without_names_and_refuses_damaged_ones(built, tmp_path):
    lines = (built[1] / "Fold1" / "test.txt").read_bytes()
    (tmp_path / "rows.txt").write_bytes(lines)
    assert not [f for f in validate(tmp_path / "rows.txt").findings if "remarks" in f.code]
    (tmp_path / "rows.columns.json").write_text("{")
    with pytest.raises(ValueError, match="not a list of columns"):
        validate(tmp_path / "rows.txt")


@pytest.fixture(scope="module")
def fitted(workspace):
    """``models fit`` on 25 of the queries: its answer, and the model file."""
    ids, out = workspace.parent / "ids.txt", workspace.parent / "ssi.safetensors"
    ids.write_text("".join(f"q{i}\n" for i in range(25)))
    param = [argument.replace("ssi.", "") for argument in still()]
    arguments = ["--workspace", workspace, "--queries", ids, "--threads", 1, "--out", out]
    return command("models", "fit", "ssi", *arguments, *param), out


def test_models_fit_says_it_and_notes_it(fitted):
    said, path = fitted
    assert re.search(f"^ssi: {KEPT}", said.stderr, re.MULTILINE)
    notes = json.loads(path.with_name("ssi.column.json").read_text())
    assert notes["remarks"] == load_model(path).remarks
    assert re.search(f"^remark: {KEPT}", command("models", "info", path).stdout, re.MULTILINE)


def test_columns_append_says_it_and_writes_it(fitted, workspace, tmp_path):
    rows = "".join(f"0 qid:q{q} 1:{d} #docid = d{d}\n" for q in range(25, 30) for d in range(5))
    (tmp_path / "old.txt").write_text(rows)
    arguments = ["--workspace", workspace, "--model-file", fitted[1], "--out", tmp_path / "new.txt"]
    said = command("columns", "append", tmp_path / "old.txt", *arguments)
    assert re.search(f"^ssi: {KEPT}", said.stderr, re.MULTILINE)
    notes = read_rows(tmp_path / "new.txt").provenance["ssi"]
    assert notes["remarks"] == load_model(fitted[1]).remarks


def test_explain_says_it_instead_of_identities(fitted):
    words = ["asked3", "asked4", "asked3 asked4"]
    first, *others = command("explain", fitted[1], *words).stdout.splitlines()
    assert re.match(f"ssi: {KEPT}", first)
    assert others == [
        "asked3 matches itself alone",
        "asked4 matches itself alone",
        "asked3 asked4 matches its own words alone",
    ]


def test_nearest_words_of_a_model_that_learned_nothing_warn(fitted):
    with pytest.warns(FitWarning, match=f"^ssi: {KEPT}"):
        assert load_model(fitted[1]).nearest_words(3, 1)[0][0] == 3


def test_explain_tells_the_start_and_shows_its_words(workspace, tmp_path):
    """A model that kept LSI as its start still has words to show."""
    out = tmp_path / "ssi.safetensors"
    param = [a.replace("ssi.", "") for a in still() if "init" not in a]
    arguments = ["--workspace", workspace, "--out", out, "--threads", 1, *param]
    command("models", "fit", "ssi", *arguments, "--param", "learning_rate=1e-30")
    first, *_, last = command("explain", out, "asked3").stdout.splitlines()
    assert first.startswith("ssi: did not improve on its start (latent semantic indexing plus the")
    assert last.startswith("asked3 matches: asked3 ")


def test_feature_builder_warns_once_for_each_column():
    folds = k_fold(collection().query_ids, 4, seed=0)
    builder = FeatureBuilder(["vsm"], [LearnedColumn("mine", "ssi", STILL)], depth=20, threads=1)
    with pytest.warns(ColumnWarning) as caught:
        train, _, _ = builder.folds(collection(), folds)[0]
    kept = [str(w.message) for w in caught if "did not improve" in str(w.message)]
    assert len(kept) == 1
    assert re.match(f"mine, all 4 folds: {KEPT}", kept[0])
    assert caught[0].filename == __file__
    assert any(re.match(KEPT, remark) for remark in train.provenance["mine"]["remarks"])
    with pytest.warns(ColumnWarning, match=f"^mine: {KEPT}"):
        builder.fit(collection())


def test_divergence_is_told_once_and_for_all_folds():
    params = {**STILL, "margin": 1e3, "learning_rate": 1e30, "optimizer": "sgd", "init": "normal"}
    builder = FeatureBuilder([], [LearnedColumn("ssi", "ssi", params)], depth=20, threads=1)
    with pytest.warns() as caught:
        builder.folds(collection(), k_fold(collection().query_ids, 4, seed=0))
    assert {w.category for w in caught} == {ColumnWarning}
    diverged = [str(w.message) for w in caught if "diverged in epoch" in str(w.message)]
    assert len(diverged) == 1
    assert "kept its start (random embeddings plus the tf-idf cosine): lower" in diverged[0]


@pytest.mark.parametrize(
    ("model", "params"), [("ssi", STILL), ("bltm", {"n_topics": 2, "threads": 1}), ("wtm", {})]
)
def test_few_pairs_are_told_of_every_kind_of_model(model, params):
    builder = FeatureBuilder([], [LearnedColumn(model, model, params)], threads=1)
    with pytest.warns(ColumnWarning, match=f"^{model}: {FEW}"):
        builder.fit(collection(6, 3))
    assert any(re.match(FEW, remark) for remark in builder.fitted_[0].model.remarks)


def test_a_topic_model_whose_weight_is_all_word_matching_says_so():
    builder = FeatureBuilder([], [LearnedColumn("bltm", "bltm", {"n_topics": 2})], threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        model = builder.fit(collection()).fitted_[0].model
    model.word_weight_, model._chosen = 1.0, True
    assert any("is plain word matching: what it learns from its 30" in r for r in model.remarks)


@pytest.mark.filterwarnings("error::ltr_features.remarks.ColumnWarning")
def test_models_of_documents_miss_no_judgements():
    builder = FeatureBuilder(
        [], [LearnedColumn("plsa", "plsa", {"n_topics": 2, "lambda2": 0.95})], threads=1
    )
    builder.fit(collection())
    assert builder.fitted_[0].model.remarks == []


@pytest.mark.parametrize("seed", range(5))
def test_distance_of_training_rows_is_scipy_s(seed):
    rng = np.random.default_rng(seed)
    query = rng.integers(12, size=300)
    scores = np.round(rng.normal(size=300) + 0.3 * (query < 7), 1).astype(np.float32)  # with ties
    pairs = Pairs(query, np.zeros(300, np.int64))
    distance, _ = training_distance(scores, pairs, np.arange(7))
    assert distance == pytest.approx(ks_2samp(scores[query < 7], scores[query >= 7]).statistic)


@pytest.mark.parametrize(("n_queries", "by_chance"), [(3, 1.0), (50, 1.95 * 0.2), (2000, 0.1)])
def test_distance_by_chance_by_hand(n_queries, by_chance):
    """As many queries on both sides: 1.95 sqrt(2 / n), from .1 to 1."""
    pairs = Pairs(np.arange(2 * n_queries), np.zeros(2 * n_queries, np.int64))
    scores = np.arange(2 * n_queries, dtype=np.float32)
    assert training_distance(scores, pairs, np.arange(n_queries))[1] == pytest.approx(by_chance)


def test_distance_without_rows_on_a_side_is_none():
    pairs = Pairs(np.arange(3), np.zeros(3, np.int64))
    assert training_distance(np.ones(3, np.float32), pairs, np.arange(3)) == (0.0, 1.0)


def test_training_rows_that_are_scored_otherwise_are_told(monkeypatch):
    """Out-of-fold models on another scale than the model of all training queries."""
    made = collection(60, 10)
    context = context_of(made, threads=1)
    pairs = Pairs(np.repeat(np.arange(60), 20), np.tile(np.arange(20), 60))
    table = build_columns(context, pairs, [get_family("vsm")])
    folds = k_fold(made.query_ids, 4, seed=0)

    def remarks():
        column = LearnedColumn("lsa", "lsa", {"rank": 5})
        facts = next(learned_columns(context, table, [column], folds)).provenance["lsa"]
        return facts[DISTANCE], facts.get("remarks", [])

    distance, told = remarks()
    assert distance < 0.2
    assert told == []
    fold_models = TrainedColumn.fold_models

    def mismatched(column, train_parts):
        whole, *others = fold_models(column, train_parts)
        others = [other.copy() for other in others]
        for other in others:
            other.A_d_ = -other.A_d_
        return [whole, *others]

    monkeypatch.setattr(TrainedColumn, "fold_models", mismatched)
    distance, (sentence,) = remarks()
    assert distance > 0.4
    assert re.match("the scores of training rows differ from those of the other rows", sentence)
    assert f"distance {distance:.2f}" in sentence


def test_remarks_on_rankers_count_the_fits_of_each():
    fits = [
        ("words", ["learned nothing"]),
        ("words", []),
        ("words", ["learned nothing"]),
        ("ssi", ["kept 3 columns"]),
        ("ssi", ["learned nothing", "kept 12 columns"]),
        *[("ssi", [])] * 3,
    ]
    assert ranker_remarks(fits) == [
        "words (2 of 3 fits), ssi (1 of 5 fits): learned nothing",
        "ssi (2 of 5 fits): kept 3 to 12 columns",
    ]


def test_sentences_name_folds_and_join_numbers():
    """By hand."""
    folds = {
        "Fold1": {"a": {"remarks": ["learned from 1,034 pairs of 9 queries", "diverged"]}, "b": {}},
        "Fold2": {"a": {"remarks": ["learned from 998 pairs of 9 queries"]}},
        "Fold3": {"a": {"remarks": ["diverged"]}, "b": {"remarks": ["rate 1e-05"]}},
        "Fold4": {"a": {"remarks": ["diverged"]}, "b": {"remarks": ["rate 0.3"]}},
    }
    assert grouped_remarks(folds) == [
        "a, Fold1 and Fold2: learned from 998 to 1,034 pairs of 9 queries",
        "a, Fold1, Fold3 and Fold4: diverged",
        "b, Fold3 and Fold4: rate 1e-05 to 0.3",
    ]
    every = {name: {"a": {"remarks": ["diverged"]}} for name in ("Fold1", "Fold2", "Fold3")}
    assert grouped_remarks(every) == ["a, all 3 folds: diverged"]
    assert grouped_remarks({"Fold1": {"a": {}}}) == []
