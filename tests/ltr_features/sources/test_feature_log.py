"""Features that engines logged: every shape of their JSON gives the same rows."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from letor.column_names import read_rows
from letor.errors import InputError, LetorWarning
from letor.missing import Missing
from ltr_features import read_feature_log
from ltr_features.cli import app

#: Elasticsearch leaves out the values of features that do not match, Solr's sparse format zeros.
ROWS = {
    "q1": {"d1": {"title_bm25": 9.5, "clicks": 3}, "d2": {"title_bm25": 0.25}},
    "q 2": {"d1": {"clicks": 1}},
}
EXPECTED = [[9.5, 3], [0.25, 0], [0, 1]]


def hit(document, features, old=False):
    names = ("title_bm25", "clicks")
    entries = [{"name": n} | ({"value": features[n]} if n in features else {}) for n in names]
    log = features if old else entries
    return {"_index": "i", "_id": document, "_score": 1.0, "fields": {"_ltrlog": [{"main": log}]}}


def solr(document, features, equals="=", between=","):
    text = between.join(f"{name}{equals}{value}" for name, value in features.items())
    return {"id": document, "score": 1.0, "[features]": text}


def lines(shape):
    """The log in one of its shapes."""
    for query, documents in ROWS.items():
        old = shape.endswith("old")
        hits = [hit(d, f, old) for d, f in documents.items()]
        marks = (":", ";") if old else ("=", ",")
        docs = [solr(d, f, *marks) for d, f in documents.items()]
        if shape == "elasticsearch":
            yield {"qid": query, "took": 1, "hits": {"total": {"value": 2}, "hits": hits}}
        elif shape in ("elasticsearch nested", "elasticsearch old"):
            yield {"query_id": query, "response": {"hits": {"hits": hits}}}
        elif shape == "solr":
            yield {"query": query, "responseHeader": {}, "response": {"numFound": 2, "docs": docs}}
        elif shape in ("solr nested", "solr old"):
            yield {"qid": query, "response": {"response": {"docs": docs}}}
        else:
            yield from ({"qid": query, **d} for d in (hits if shape == "hits" else docs))


SHAPES = ["elasticsearch", "elasticsearch nested", "elasticsearch old", "hits", "solr",
          "solr nested", "solr old", "documents"]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_rows(tmp_path, shape):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines(shape)))
    data = read_feature_log(path)
    assert (list(data.query_ids), data.query_index.tolist()) == (["q1", "q 2"], [0, 0, 1])
    assert list(data.document_ids) == ["d1", "d2", "d1"]
    assert data.column_names == ["title_bm25", "clicks"]
    np.testing.assert_array_equal(data.X, EXPECTED)
    assert data.provenance["clicks"]["trained on"] == "given; not checked for leaks"
    assert np.isnan(read_feature_log(path, missing=np.nan).X).sum() == 2


def test_the_command_gives_labelled_rows(tmp_path):
    path, target = tmp_path / "log.jsonl.gz", tmp_path / "rows.parquet"
    path.write_bytes(gzip.compress("".join(json.dumps(x) + "\n" for x in lines("hits")).encode()))
    qrels = tmp_path / "qrels.csv"
    qrels.write_text("qid,docno,grade\nq1,d1,2\nq1,d9,1\nq3,d1,0\nq1,d2,-1\n")
    result = CliRunner().invoke(app, ["convert", str(path), str(target), "--qrels", str(qrels)])
    assert result.exit_code == 0, result.output
    rows = read_rows(target)
    np.testing.assert_array_equal(rows.X, EXPECTED)
    assert rows.y.tolist() == [2, 0, 0]
    assert rows.missing == Missing({"q1": {1: 1}, "q3": {}}, frozenset({"q 2"}))
    told = CliRunner().invoke(app, ["convert", str(path), str(tmp_path / "b.parquet")])
    assert "every label is 0" in told.stderr
    again = CliRunner().invoke(
        app, ["convert", str(target), str(tmp_path / "c.parquet"), "--qrels", str(qrels)]
    )
    assert "--qrels is for features without labels" in str(again.exception)


def test_several_logs_have_names_of_their_own(tmp_path):
    both = hit("d1", {"title_bm25": 3, "clicks": 1})
    both["fields"]["_ltrlog"][0]["other"] = [{"name": "clicks", "value": 2}]
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"qid": 1, **both}) + "\n")
    data = read_feature_log(path)
    assert data.column_names == ["main_title_bm25", "main_clicks", "other_clicks"]
    assert data.X.tolist() == [[3, 1, 2]]


def test_features_that_never_match_are_columns_in_the_engine_s_order(tmp_path):
    """So logs of different queries have the same columns."""
    path = tmp_path / "log.jsonl"
    for features in ({"clicks": 3}, {}):
        path.write_text(json.dumps({"qid": "q", **hit("d", features)}) + "\n")
        data = read_feature_log(path)
        assert data.column_names == ["title_bm25", "clicks"]
        assert data.X.tolist() == [[0, features.get("clicks", 0)]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"hits": {"hits": []}}, "line 2: no query id; write it into each line"),
        ({"qid": "q", "hits": {"hits": [{"id": 1}]}}, r"line 2: neither hits with _id and fields"),
        ({"qid": "q", "text": "x"}, "line 2: neither hits with _id"),
        ({"qid": "q", "_id": "d", "fields": {}}, "hit 'd' has no fields._ltrlog; ask for it by"),
        ({"qid": "q", **hit("d", {"clicks": "x"})}, "feature 'clicks' is 'x', not a finite number"),
        ({"qid": "q", **solr("d", {"clicks": "nan"})}, "feature 'clicks' is 'nan', not a finite"),
        ({"qid": "q", "id": "d", "[features]": "a=1,b"}, "has 'b'; expected name=value"),
        ({"qid": "q1", **hit("d1", {"clicks": 4})}, "line 2: query 'q1' and document 'd1' have"),
    ],
)
def test_bad_lines_are_named(tmp_path, record, message):
    path = tmp_path / "log.jsonl"
    first = {"qid": "q1", **hit("d1", {"clicks": 3})}
    path.write_text(json.dumps(first) + "\n" + json.dumps(record) + "\n")
    with pytest.raises(InputError, match=message):
        read_feature_log(path)


def test_queries_without_hits_are_told(tmp_path):
    path, qrels = tmp_path / "log.jsonl", tmp_path / "qrels.txt"
    empty = [{"qid": "q3", "hits": {"hits": []}}, {"qid": "q4", "response": {"docs": []}}]
    written = "".join(json.dumps(line) + "\n" for line in [*lines("elasticsearch"), *empty])
    path.write_text(written, encoding="utf-8")
    with pytest.warns(LetorWarning, match=r"log.jsonl: 2 queries without hits \('q3', 'q4'\)"):
        read_feature_log(path)
    qrels.write_text("q1 0 d1 1\nq3 0 d1 1\n", encoding="utf-8")
    assert read_feature_log(path, qrels).missing.n_relevant == 1


def test_ids_that_match_nothing_are_shown(tmp_path):
    path, qrels = tmp_path / "log.jsonl", tmp_path / "qrels.txt"
    path.write_text(json.dumps({"qid": "q1", **hit("d1", {"clicks": 3})}) + "\n")
    qrels.write_text("q1 0 GX-1 1\n")
    with pytest.raises(InputError, match=r"none of its 1 documents \('d1'\) .* judged \('GX-1'\)"):
        read_feature_log(path, qrels)
    path.write_text("")
    with pytest.raises(InputError, match="no row"):
        read_feature_log(path)
