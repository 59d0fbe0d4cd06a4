"""What a saved pipeline ranks for a file of queries, as a TREC run."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from toys import refused, run, topics

from letor.folds import k_fold
from letor.rankers import LambdaMART
from letor.trec import read_run, write_run
from ltr_features import FeatureBuilder, ScoringPipeline

#: The first is judged in the pipeline's collection, the last has no word of a document.
QUERIES = {
    "q7": "Topic1word1  common1 common4",
    "new": "topic2word3 topic2word1",
    "odd": "unheard",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    collection = topics()
    builder = FeatureBuilder(["letor46"], depth=20)
    together = collection.kept_together()
    folds = k_fold(collection.query_ids, 4, seed=0, groups=together)
    train, vali, _ = builder.folds(collection, folds)[0]
    ranker = LambdaMART(n_estimators=10, min_data_in_leaf=5).fit(train, vali)
    folder = tmp_path_factory.mktemp("s") / "service"
    ScoringPipeline(builder.fit(collection, folds[0].train, folds=folds), ranker).save(folder)
    return folder


@pytest.fixture
def queries(tmp_path):
    file = tmp_path / "queries.jsonl"
    lines = (json.dumps({"_id": qid, "text": text}) for qid, text in QUERIES.items())
    file.write_text("\n".join(lines))
    return file


def ranked(*arguments, out):
    """The run's ids and scores by query, and what is told beside."""
    told = run("pipeline", "rank", *arguments, "--out", out).stderr
    found = read_run(out)
    assert (found["tag"] == "ltr-features").all()
    pairs = zip(found["docno"], found["score"].astype(np.float32), strict=True)
    return pd.Series([*pairs]).groupby(found["qid"].to_numpy()).agg(list).to_dict(), told


def expected(service, depth, **options):
    """The same, a query at a time, as TREC files have it: equal scores follow each other."""
    pipeline, found = ScoringPipeline.load(service), {}
    for qid, text in QUERIES.items():
        of_query = {key: value[qid] for key, value in options.items()}
        best = pipeline.rank(text, depth, **of_query)
        if len(best):
            scores = best["score"].to_numpy().copy()
            for row in range(1, len(scores)):
                scores[row] = min(scores[row], np.nextafter(scores[row - 1], np.float32(-np.inf)))
            found[qid] = [*zip(best["docno"], scores, strict=True)]
    return found


def test_the_run_has_what_the_pipeline_ranks(service, queries, tmp_path):
    found, told = ranked(service, queries, "--depth", 7, out=tmp_path / "a.run")
    assert found == expected(service, 7)
    assert {qid: len(ranking) for qid, ranking in found.items()} == {"q7": 7, "new": 7}
    assert told.splitlines() == [
        "1 query (first 'odd') without candidates: not in the run, so 0 in its measures",
        "1 query (first 'q7') judged in the pipeline's collection, from which it may have learned: "
        "leave them out where you measure how good it is",
    ]


def test_the_documents_of_another_ranking_are_ranked_anew(service, queries, tmp_path):
    docnos = {"q7": ["d3", "d9", "d40"], "new": ["d9", "d2"], "odd": ["d5"], "other": ["d1"]}
    first = tmp_path / "first.run"
    rows = [(q, d, -place) for q, ids in docnos.items() for place, d in enumerate(ids)]
    write_run(pd.DataFrame(rows, columns=["qid", "docno", "score"]), first)
    found, _ = ranked(service, queries, "--among", first, out=tmp_path / "a.run")
    assert found == expected(service, 7, docnos=docnos)
    assert [docno for docno, _ in found["odd"]] == ["d5"]

    first.write_text(first.read_text().replace(" d40 ", " x40 "))
    command = "pipeline", "rank", service, queries, "--among", first, "--out", tmp_path / "b.run"
    assert f"{first} has 1 document (first 'x40') that the pipeline" in refused(*command)
    found, told = ranked(*command[2:-2], "--on-unknown", "skip", out=tmp_path / "b.run")
    assert found == expected(service, 7, docnos=docnos | {"q7": ["d3", "d9"]})
    assert told.startswith(f"1 document (first 'x40') of {first} skipped")
    first.write_text(first.read_text().replace(" d", " x"))
    none = refused(*command, "--on-unknown", "skip")
    assert none.endswith(f"has none of the documents of {first}: 5 documents (first 'x3')")
    first.write_text("q1 Q0 d1 1 0.5 engine\n")
    assert "has none of the queries; it ranks for q1, and the queries are q7" in refused(*command)
    only = refused(*command[:4], *command[-2:], "--on-unknown", "skip")
    assert only.startswith("--on-unknown is for documents of --among")


def test_documents_that_queries_were_made_from_are_not_ranked(service, queries, tmp_path):
    best = {qid: ranking[0][0] for qid, ranking in expected(service, 1).items()}
    sources = tmp_path / "sources.tsv"
    sources.write_text("".join(f"{qid}\t{docno}\n" for qid, docno in best.items()))
    found, _ = ranked(service, queries, "--sources", sources, out=tmp_path / "a.run")
    assert found == expected(service, 1000, excluded={q: [best.get(q, "")] for q in QUERIES})
    sources.write_text(f"q7\tx1\nnew\t{best['new']}\nodd\tx1\n")
    found, told = ranked(service, queries, "--sources", sources, out=tmp_path / "b.run")
    excluded = {"q7": [], "new": [best["new"]], "odd": []}
    assert found == expected(service, 1000, excluded=excluded)
    skipped = f"1 document (first 'x1') of {sources} skipped, which the pipeline does not have"
    assert skipped in told.splitlines()
    command = "pipeline", "rank", service, queries, "--out", tmp_path / "b.run"
    onto = refused(*command[:-1], sources, "--sources", sources)
    assert onto == f"{sources} is the input itself; name another file"
    none = refused(*command, "--sources", "same-id")
    assert none == "--sources same-id: no query has a document of the pipeline there"


def test_ids_that_trec_files_cannot_hold_are_refused_before_the_work(service, tmp_path):
    queries = tmp_path / "queries.tsv"
    queries.write_text("q 1\ttopic1word1\n")
    told = refused("pipeline", "rank", service, queries, "--out", tmp_path / "a.run")
    assert told.startswith("query id 'q 1' is empty or contains blanks")
    assert not (tmp_path / "a.run").exists()
    told = refused("pipeline", "rank", service, queries, "--out", tmp_path / "a.parquet")
    assert "a.parquet: runs are written as text, a line each, not as .parquet" in told


@pytest.mark.parametrize(
    ("queries", "docnos", "told"),
    [
        ({}, None, "no queries to rank documents for"),
        ({"a": "topic1word1", "b": None}, None, "the text of query 'b' is None, not text"),
        (QUERIES, {"new": ["d1", "x1"]}, "docnos of query 'new': there is no document 'x1'"),
        (QUERIES, {"new": "d1"}, "docnos of query 'new' must be a list of texts"),
    ],
)
def test_what_cannot_be_ranked_is_refused_by_the_query_before_the_work(
    service, queries, docnos, told
):
    done = []
    pipeline = ScoringPipeline.load(service)
    with pytest.raises(ValueError, match=told):
        pipeline.rank_queries(queries, docnos=docnos, on_progress=lambda *at: done.append(at))
    assert not done
