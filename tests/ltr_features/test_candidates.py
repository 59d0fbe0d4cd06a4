"""Candidates from every source, against slow twins."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from toys import all_pairs, context_of, refused, run, toy

from letor.dataset import RankingData
from letor.errors import InputError
from letor.folds import k_fold
from letor.svmlight import read_letor
from letor.trec import read_qrels
from letor.writing import write_letor
from ltr_features import candidate_kinds
from ltr_features.candidate_kinds import top_rows
from ltr_features.candidates import Candidates, candidate_sources, find_candidates
from ltr_features.columns.context import open_workspace
from ltr_features.columns.registry import get_family
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.sample import write_sample
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.collection import Judgements

N_QUERIES, N_DOCUMENTS = 12, 60


def make_collection(query_sources=None):
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(40)])
    texts = [" ".join(rng.choice(words, 12)) for _ in range(N_DOCUMENTS)]
    queries = [" ".join(rng.choice(words, 3)) for _ in range(N_QUERIES - 1)] + ["word1x"]
    judged = rng.choice(N_QUERIES * N_DOCUMENTS, 50, replace=False)
    judgements = Judgements(
        judged // N_DOCUMENTS, judged % N_DOCUMENTS, rng.integers(0, 3, 50, dtype=np.int64)
    )
    return replace(toy({"body": texts}, queries, judgements), query_sources=query_sources)


@pytest.fixture(scope="module")
def context():
    return context_of(make_collection(), 1)


def find(context, **settings) -> Candidates:
    return find_candidates(context, candidate_sources(settings))


def listed(pairs):
    return list(zip(pairs.query.tolist(), pairs.document.tolist(), strict=True))


@pytest.mark.parametrize(("n_queries", "told"), [(10, True), (11, False)])
def test_many_queries_without_candidates_are_told(tmp_path, n_queries, told):
    """Of judged ones; on rows in memory, on those written block by block, and in experiments."""
    words = [f"word{number}" for number in range(n_queries)]
    documents, ratings = tmp_path / "documents.csv", tmp_path / "ratings.csv"
    documents.write_text("id,text\n" + "".join(f"d{word},{word}\n" for word in words))
    asked = ["wrod0", *words[1:]]
    lines = (f"{query},d{word},1\n" for query, word in zip(asked, words, strict=True))
    ratings.write_text("search_term,docno,grade\n" + "".join(lines))
    table = (f"documents={documents}", f"judgements={ratings}")
    run("index", "table", *table, "--out", tmp_path / "workspace")
    remark = f"candidates: 1 of {n_queries} queries have none, so that no column and no ranker"
    build = ("columns", "build", "--workspace", tmp_path / "workspace", "--family", "vsm", "--out")
    for name in ("rows.txt", "rows.parquet"):
        assert (remark in run(*build, tmp_path / name).stderr) == told
    opened = open_workspace(tmp_path / "workspace")
    remarks = find(opened, bm25={}).remarks(opened.collection)
    assert [one.startswith(remark) for one in remarks] == [True] * told
    assert all("and no source compares letters, take one" in one for one in remarks)
    unjudged = opened.for_queries(["wrod0", "word1"])
    assert find(unjudged, bm25={}).remarks(unjudged.collection) == []


def test_one_source_gives_its_own_order(context):
    found = find(context, bm25={"depth": 7})
    pool = BM25Retriever(context.index).top(context.query_counts, 7)[0]
    assert listed(found.pairs) == listed(pool)
    assert found.found_by.all()
    judged = context.collection.judgements
    found = find(context, judged={})
    assert sorted(listed(found.pairs)) == sorted(listed(judged))
    assert N_QUERIES - 1 in judged.query  # a query that BM25 finds nothing for


@pytest.mark.parametrize("from_file", [False, True])
def test_the_order_of_judged_pairs_says_nothing_of_their_grades(tmp_path, from_file):
    """Where scores tie, measures keep the order of the rows."""
    collection = make_collection()
    query, document = np.divmod(np.arange(N_QUERIES * 10), 10)
    grade = (document < 3).astype(np.int64)
    context = context_of(replace(collection, judgements=Judgements(query, document, grade)), 1)
    (tmp_path / "judged.csv").write_text(
        "qid,docno,grade\n"
        + "".join(f"q{q},d{d},{g}\n" for q, d, g in zip(query, document, grade, strict=True))
    )
    found = find(context, judged={"path": str(tmp_path / "judged.csv")} if from_file else {}).pairs
    assert sorted(listed(found)) == sorted(zip(query.tolist(), document.tolist(), strict=True))
    places = np.arange(len(found)) % 10
    assert places[found.document < 3].mean() == pytest.approx(4.5, abs=1.5)


@pytest.mark.parametrize("terms", ["words", "letter-trigrams"])
def test_a_model_gives_the_best_of_all_documents(context, terms):
    found = find(context, letters={"source": "model", "model": "vsm", "depth": 5, "terms": terms})
    values = get_family("vsm", terms=terms).compute(context, all_pairs(context.collection))
    scores = values.reshape(N_QUERIES, N_DOCUMENTS)
    for q in range(N_QUERIES):
        mine = found.pairs.document[found.pairs.query == q]
        best = np.argsort(-scores[q], kind="stable")[:5]
        best = best[scores[q, best] > 0]
        np.testing.assert_allclose(scores[q, mine], scores[q, best], rtol=1e-5)
        assert len(set(mine.tolist())) == len(best)
    assert (found.pairs.query == N_QUERIES - 1).sum() == (0 if terms == "words" else 5)


def test_doc2vec_gives_the_greatest_cosines(context):
    options = {"dimension": 8, "epochs": 2, "min_count": 1}
    found = find(context, doc2vec={"depth": 5, "field": "body", **options})
    family = get_family("d2v-word", **options)
    values = family.compute(context, all_pairs(context.collection))
    cosines = values[:, family.column_names.index("d2v_word_body")].reshape(N_QUERIES, N_DOCUMENTS)
    for q in range(N_QUERIES - 1):
        mine = found.pairs.document[found.pairs.query == q]
        np.testing.assert_allclose(cosines[q, mine], np.sort(cosines[q])[:-6:-1], rtol=1e-5)
    # The last query's only word is in no document: it has no vector.
    assert N_QUERIES - 1 not in found.pairs.query
    with pytest.raises(InputError, match="doc2vec: the collection has no field 'anchor'"):
        find(context, doc2vec={"field": "anchor", **options})


def test_sources_are_united_in_their_order(context):
    parts = {"bm25": {"depth": 5}, "lsi": {"depth": 5, "params": {"rank": 4}}, "judged": {}}
    found = find(context, **parts)
    alone = [listed(find(context, **{name: part}).pairs) for name, part in parts.items()]
    expected = [
        pair
        for q in range(N_QUERIES)
        for pair in dict.fromkeys(p for source in alone for p in source if p[0] == q)
    ]
    assert listed(found.pairs) == expected
    assert found.sources == ("bm25", "lsi", "judged")
    for source, pairs in enumerate(alone):
        has = [pair in set(pairs) for pair in expected]
        assert found.found_by[:, source].tolist() == has


def test_files_name_candidates(context, tmp_path):
    run, rows = tmp_path / "engine.run", tmp_path / "rows.txt"
    lines = [("q1", "d4", 2.0), ("q0", "d3", 1.0), ("q0", "d9", 5.0), ("gone", "d1", 9.0)]
    run.write_text("".join(f"{q} Q0 {d} 1 {s} x\n" for q, d, s in lines))
    found = find(context, engine={"source": "run", "path": str(run)})
    assert listed(found.pairs) == [(0, 9), (0, 3), (1, 4)]
    assert found.n_unknown == {"engine": 1}
    query, grade = np.array([0, 0, 1, 1]), np.ones(4, np.int64)
    half = Judgements(query, np.array([3, 5, 4, 6]), grade)
    (left_out,) = found.remarks(replace(context.collection, judgements=half))
    assert "candidates engine: 1 of its pairs" in left_out
    quarter = Judgements(query, np.array([3, 5, 7, 6]), grade)
    _, few = found.remarks(replace(context.collection, judgements=quarter))
    assert "only 25 % of the relevant documents are among them" in few
    assert listed(find(context, run={"path": str(run), "depth": 1}).pairs) == [(0, 9), (1, 4)]
    two = tmp_path / "two.csv"
    two.write_text("qid,docno,bm25,dense\nq1,d4,1,2\nq1,d5,2,1\n")
    with pytest.raises(InputError, match="has several scores, bm25, dense: name the one"):
        find(context, run={"path": str(two), "depth": 1})
    dense = find(context, run={"path": str(two), "depth": 1, "scores": ["dense"]})
    assert listed(dense.pairs) == [(1, 4)]
    assert listed(find(context, run={"path": str(two)}).pairs) == [(1, 5), (1, 4)]
    judged = tmp_path / "judged.csv"
    judged.write_text("qid,docno,grade\nq1,d4,0\ngone,d1,1\nq0,d3,2\n")
    found = find(context, judged={"path": str(judged)}, bm25={"depth": 1})
    assert found.n_unknown == {"judged": 1, "bm25": 0}
    assert listed(find(context, judged={"path": str(judged)}).pairs) == [(0, 3), (1, 4)]
    judged.write_text("qid,docno,grade\nq1,D4,0\n")
    with pytest.raises(InputError, match=r"document ids \('D4'\) is one of the 60 of the coll"):
        find(context, judged={"path": str(judged)})
    data = RankingData.from_rows(
        np.ones((3, 1), np.float32), np.zeros(3), ["q2", "q0", "gone"],
        comments=np.array([b"#docid = d5", b"#docid = d1", b"#docid = d2"], dtype=object),
    )  # fmt: skip
    write_letor(data, rows)
    found = find(context, letor={"files": [str(rows)]})
    assert listed(found.pairs) == [(0, 1), (2, 5)]
    assert found.n_unknown == {"letor": 1}


@pytest.mark.parametrize(
    "settings",
    [{"bm25": {"depth": 6}}, {"lsi": {"depth": 6}}, {"run": {"depth": 6}}, {"judged": {}}],
)
def test_what_a_query_was_made_from_is_no_candidate(settings, tmp_path):
    if "run" in settings:
        lines = [f"q{q} Q0 d{q + n} {n} {-n} t" for q in range(N_QUERIES) for n in range(9)]
        (tmp_path / "engine.run").write_text("\n".join(lines))
        settings = {"run": {**settings["run"], "path": tmp_path / "engine.run"}}
    plain = find(context_of(make_collection(), 1), **settings).pairs
    sources = np.full(N_QUERIES, -1)
    queries, first = np.unique(plain.query, return_index=True)
    sources[queries] = plain.document[first]
    found = find(context_of(make_collection(sources), 1), **settings).pairs
    assert (found.document != sources[found.query]).all()
    if "judged" not in settings:
        again, counts = np.unique(found.query, return_counts=True)
        before = dict(zip(*np.unique(plain.query, return_counts=True), strict=True))
        assert all(counts >= [before[q] - 1 for q in again])
        assert (counts == 6).any()


def test_queries_that_are_searched_some_at_a_time_keep_their_candidates(context, monkeypatch):
    at_once = find(context, lsi={"depth": 9})
    monkeypatch.setattr(candidate_kinds, "_SCORES", 5 * N_DOCUMENTS)
    assert listed(find(context, lsi={"depth": 9}).pairs) == listed(at_once.pairs)


def test_threads_do_not_matter():
    collection, settings = make_collection(), {"lsi": {"depth": 9}, "bm25": {"depth": 9}}
    one, two = (find(context_of(collection, threads=n), **settings) for n in (1, 2))
    assert one.pairs.query.tobytes() == two.pairs.query.tobytes()
    assert one.pairs.document.tobytes() == two.pairs.document.tobytes()


@given(
    arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 30)),
           elements=st.integers(-2, 3).map(float)),
    st.integers(1, 12),
)  # fmt: skip
def test_top_rows_are_those_of_a_stable_sort(scores, depth):
    expected = []
    for row, values in enumerate(scores):
        order = [c for c in np.argsort(-values, kind="stable").tolist() if values[c] != 0]
        expected += [(row, c) for c in order[:depth]]
    assert listed(top_rows(scores, depth)) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "name at least one source"),
        ({"bm52": {}}, r"candidates\.bm52: there is no source 'bm52'; did you mean 'bm25'"),
        ({"bm25": 100}, r"candidates\.bm25: write a source and its options.*got 100"),
        ({"bm25": {"dept": 5}}, "bm25 has no option 'dept'; did you mean 'depth'"),
        ({"bm25": {"depth": 0}}, r"candidates\.bm25: depth must be 1 or more, got 0"),
        ({"bm25": {"depth": "x"}}, "depth must be a whole number, got 'x'"),
        ({"judged": {"depth": 5}}, "judged has no option 'depth'"),
        ({"run": {}}, "run needs a path"),
        ({"run": {"path": "gone.run"}}, r"gone\.run"),
        ({"run": {"path": __file__, "query": "q"}}, "name columns of tables, and .* is a run"),
        ({"letor": {}}, "letor needs files"),
        ({"ssi": {}}, "model 'ssi' learns from judgements, .* use vsm, lsi, lsa, unigram$"),
        ({"plsa": {}}, "use vsm, lsi, lsa, unigram, plsa with a lambda2, which judgements choose"),
        ({"m": {"source": "model", "model": "lsj"}}, "lsj"),
    ],
)
def test_wrong_settings_are_refused(context, settings, message):
    with pytest.raises(InputError, match=message):
        find_candidates(context, candidate_sources(settings))


def test_builders_take_them(tmp_path):
    collection = make_collection()
    settings = {"bm25": {"depth": 6}, "judged": {}}
    builder = FeatureBuilder(["vsm"], candidates=settings)
    folds = k_fold(collection.query_ids, 4, seed=0)
    train, vali, test = builder.folds(collection, folds)[0]
    assert all(part.missing is None or part.missing.n_relevant == 0 for part in (train, vali, test))
    named = [bytes(comment).decode() for comment in train.comments]
    assert any(comment.endswith("from = bm25+judged") for comment in named)
    assert any(comment.endswith("from = judged") for comment in named)
    builder.fit(collection, folds[0].train).save(tmp_path / "features")
    assert FeatureBuilder.load(tmp_path / "features").candidates == settings
    with pytest.raises(InputError, match="no source 'bm52'"):
        FeatureBuilder(["vsm"], candidates={"bm52": {}})


def test_commands_and_experiments_take_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample("sample")

    def done(command):
        return run(*shlex.split(command))

    done("index beir folder=sample/beir --out workspace")
    build = "columns build --workspace workspace --family vsm --out "
    united = "--candidates bm25.depth=10 --candidates lsi.depth=10 --candidates judged"
    said = refused(*shlex.split(f"{build} rows.txt {united} --depth 20"))
    assert "--depth is for BM25 alone; with --candidates give each source its depth, bm25" in said
    recall = done(f"{build} rows.txt {united}").stderr
    assert re.search(
        r"Recall of relevant documents, mean over queries: bm25 0\.\d+, lsi 0\.\d+, judged 1\.000, "
        r"together 1\.000",
        recall,
    )
    rows = read_letor("rows.txt")
    assert len(rows) > len(read_qrels("sample/trec/qrels.txt"))
    Path("e.toml").write_text(EXPERIMENT, encoding="utf-8")
    done("run e.toml --data . --out out")
    facts = Path("out/report/report.html").read_text(encoding="utf-8")
    assert "bm25 (10), lsi (10)" in facts
    told = json.loads(Path("out/letor/base/candidates.json").read_text())
    assert f"{told['recall']['lsi']:.3f}" in facts
    (remark,) = told["remarks"]
    assert remark.startswith("candidates: only 33 % of the relevant documents are among them")
    assert "take more (depth), also of sources that do not need the query's words" in remark
    # A run file makes the columns again; what it has too much is left out, and told.
    lines = Path("sample/runs/lsa.run").read_text()
    Path("more.run").write_text(f"{lines}nobody Q0 nothing 1 1 t\n")
    lost = "candidates run: 1 of its pairs name queries or documents"
    Path("e.toml").write_text(
        EXPERIMENT.replace("lsi = { depth = 10 }", 'run = { path = "more.run" }')
    )
    assert "candidates" in done("run e.toml --data . --out out --verbose").output
    summary = Path("out/report/summary.txt").read_text(encoding="utf-8")
    assert lost in " ".join(summary.split())
    assert f"! {lost}"[:60] in Path("out/report/verdict.txt").read_text(encoding="utf-8")
    assert lost in done(f"{build} some.txt --candidates run.path=more.run").stderr
    Path("e.toml").write_text(EXPERIMENT.replace("lsi", "lsj"))
    assert "no source 'lsj'" in refused("run", "e.toml", "--data", ".", "--out", "out")


EXPERIMENT = """
kind = "ranking"
title = "Candidates"
[collection]
source = "beir"
folder = "sample/beir"
[candidates]
bm25 = { depth = 10 }
lsi = { depth = 10 }
[[columns]]
family = "vsm"
[[rankers]]
name = "linear"
ranker = "coordinate-ascent"
params = { n_sweeps = 1, n_restarts = 1 }
[[splits]]
name = "by-query"
title = "Unseen queries"
folds = 5
[[systems]]
name = "vsm"
score = "vsm"
[[systems]]
name = "learned"
columns = ["vsm"]
ranker = "linear"
[evaluation]
measures = ["NDCG@10"]
comparisons = [["learned", "vsm"]]
"""
