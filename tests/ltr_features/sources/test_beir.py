"""BEIR folders: what is read, what is left out and counted, what is refused by file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from beir_folders import write_beir

from letor.errors import InputError
from ltr_features.sources.beir import read_beir
from ltr_features.sources.registry import check_options, get_source, read_collection, sources

CORPUS = [
    {"_id": "d1", "title": "One", "text": "first text", "metadata": {"year": 1}},
    {"_id": "d2", "text": "zweiter Text", "keywords": "two"},
    {"_id": "d3", "title": None, "text": ""},
]
QUERIES = [{"_id": "q2", "text": "b"}, {"_id": "q1", "text": "a"}, {"_id": "q3", "text": "none"}]


def write(folder, corpus=CORPUS, queries=QUERIES, **qrels):
    judged = qrels or {"test": "q1\td2\t2\nq2\td1\t1\nq1\td1\t0\n"}
    return write_beir(folder, corpus, queries, **judged)


def test_a_folder_by_hand(tmp_path):
    c = read_beir(write(tmp_path), name="tiny")
    assert c.name == "tiny"
    assert c.document_ids == ["d1", "d2", "d3"]
    assert c.fields == {
        "body": ["first text", "zweiter Text", ""],
        "title": ["One", "", ""],
        "keywords": ["", "two", ""],
    }
    assert (c.query_ids, c.query_texts) == (["q2", "q1"], ["b", "a"])
    j = c.judgements
    assert list(zip(j.query, j.document, j.grade, strict=True)) == [(0, 0, 1), (1, 1, 2), (1, 0, 0)]
    assert c.description["queries without judgement, left out"] == 1
    assert c.description["keys of documents left out"] == "metadata"
    assert any("keys that are no fields and were left out: metadata;" in r for r in c.remarks)


def test_compressed_files_splits_and_links(tmp_path):
    write(tmp_path, train="q1\td1\t1\n", test="q2\td2\t1\n")
    (tmp_path / "cited.tsv").write_text("d1\td3\nd1\td3\n")
    whole = (tmp_path / "corpus.jsonl").read_bytes()
    (tmp_path / "corpus.jsonl").unlink()
    (tmp_path / "corpus.jsonl.gz").write_bytes(gzip.compress(whole))
    train = read_beir(tmp_path, splits=["train"], links="cited.tsv")
    assert train.query_ids == ["q1"]
    assert (train.links.source.tolist(), train.links.target.tolist()) == ([0, 0], [2, 2])
    assert train.description["links"] == 2
    assert read_beir(tmp_path).query_ids == ["q2", "q1"]
    assert read_beir(tmp_path, splits=["train", "test"]).query_ids == ["q2", "q1"]
    assert read_beir(tmp_path, splits=["train"], keep_unjudged=True).query_ids == ["q2", "q1", "q3"]


def queries_with(folder, *keys):
    """Rewrite the queries with further keys."""
    lines = (json.dumps({"_id": f"q{i}", "text": "a", **more}) for i, more in enumerate(keys, 1))
    (folder / "queries.jsonl").write_text("\n".join(lines), encoding="utf-8")


def test_queries_keep_the_document_that_they_were_made_from_and_their_group(tmp_path):
    write(tmp_path, test="q1\td1\t1\nq2\td2\t1\n")
    assert read_beir(tmp_path).query_sources is read_beir(tmp_path).query_groups is None
    queries_with(tmp_path, {"source": "d2", "group": 7}, {"source": None, "group": "x"})
    found = read_beir(tmp_path)
    assert found.query_sources.tolist() == [1, -1]
    assert found.query_groups == ["7", "x"]
    assert any("1 of 2 queries were drawn from documents" in said for said in found.remarks)
    queries_with(tmp_path, {"source": "d9"}, {"source": "d1"})
    with pytest.raises(InputError, match="'q1' has the source 'd9', which is no document's id"):
        read_beir(tmp_path)
    queries_with(tmp_path, {"source": "web"}, {"source": "log"})
    assert (found := read_beir(tmp_path)).query_sources is None
    assert found.description["key of queries left out"].startswith("source")
    queries_with(tmp_path, {"group": "x"}, {})
    with pytest.raises(InputError, match="'q2' has no group, but others have one"):
        read_beir(tmp_path)


def test_keys_that_are_empty_everywhere_are_not_told(tmp_path):
    write(tmp_path, [{**record, "metadata": {}} for record in CORPUS])
    assert not any("keys" in remark for remark in read_beir(tmp_path).remarks)


def test_documents_that_are_relevant_to_each_other_are_told(tmp_path):
    write(tmp_path, test="q1\td2\t1\nq1\td3\t1\nq2\td1\t1\nq2\td3\t0\n")
    queries_with(tmp_path, {"source": "d1"}, {"source": "d2"})
    told = read_beir(tmp_path).remarks
    assert any(
        said.startswith("2 of 3 relevant pairs are relevant the other way round, too")
        for said in told
    )
    queries_with(tmp_path, {"source": "d3"}, {"source": "d3"})
    assert not any("round" in said for said in read_beir(tmp_path).remarks)


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    write(tmp_path)
    for path in (tmp_path / "corpus.jsonl", tmp_path / "qrels" / "test.tsv"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    c = read_beir(tmp_path)
    assert c.document_ids == ["d1", "d2", "d3"]
    np.testing.assert_array_equal(c.judgements.grade, [1, 2, 0])


def test_unknown_ids_are_refused_or_counted(tmp_path):
    write(tmp_path, test="q1\td1\t1\nq1\tzz\t1\nq9\td1\t1\n")
    with pytest.raises(InputError, match=r"test\.tsv, line 3: there is no document 'zz'"):
        read_beir(tmp_path)
    c = read_beir(tmp_path, on_unknown="skip")
    assert len(c.judgements) == 1
    assert c.description["judgements of unknown queries or documents, left out"] == 2


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "corpus.jsonl",
            b'{"_id": "d1"}\n{"_id": "d1"}\n',
            "line 2: document id 'd1' occurs twice",
        ),
        (
            "corpus.jsonl",
            b'{"_id": "d1", "text": ["x"]}\n',
            "text is a JSON list, expected text",
        ),
        ("corpus.jsonl", b'\n{"_id": "d1", "text": "\xff"}\n', "line 2: byte 0xff at position"),
        ("corpus.jsonl", b"", "no documents"),
        (
            "queries.jsonl",
            b'{"_id": "q1", "text": "a"}\n{"_id": "q1", "text": "b"}\n',
            "line 2: query 'q1' has another text here than before",
        ),
        ("queries.jsonl", b'{"_id": "q1"}\n', r"queries\.jsonl: no column text; it has '_id'"),
        ("qrels/test.tsv", b"q1\td1\n", ":1: 2 fields instead of 4"),
        ("qrels/test.tsv", b"q1\td1\tx\n", "line 1: grade 'x' is not an integer"),
        ("qrels/test.tsv", b"q1\td1\t1\nq1\td1\t2\n", "line 2: .* were judged 1 before, now 2"),
        ("qrels/test.tsv", b"", "cannot be read as a table: Empty"),
    ],
)
def test_bad_lines_are_named(tmp_path, file, content, message):
    write(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_beir(tmp_path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"corpus\.jsonl: no such file"):
        read_beir(tmp_path)
    write(tmp_path)
    with pytest.raises(InputError, match=r"dev\.tsv: no such file"):
        read_beir(tmp_path, splits=["dev"])
    with pytest.raises(InputError, match="no such folder"):
        read_beir(tmp_path / "nothing")


def test_sources_are_found_by_name(tmp_path):
    assert {"beir", "wikipedia-sections"} <= set(sources())
    assert get_source("beir") is read_beir
    assert read_collection("beir", folder=write(tmp_path)).n_documents == 3
    with pytest.raises(InputError, match="there is no source 'bier'; did you mean 'beir'"):
        get_source("bier")
    with pytest.raises(InputError, match="'beir' has no option 'foldr'; did you mean 'folder'"):
        check_options("beir", {"folder": "x", "foldr": "x"})
    with pytest.raises(InputError, match="source 'beir' needs the option 'folder'"):
        check_options("beir", {})


def test_half_a_character_is_named(tmp_path):
    write(tmp_path, corpus=[*CORPUS, {"_id": "d4", "text": "x \ud800 y"}])
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 4: text has '.ud800', half"):
        read_beir(tmp_path)


def test_ids_in_another_normal_form_are_told(tmp_path):
    write(tmp_path, [{"_id": "gr\u00f6\u00dfe", "text": "a"}], test="q1\tgro\u0308\u00dfe\t1\n")
    with pytest.raises(
        InputError, match=r"line 2: there is no document .*; there is 'größe': write ids"
    ):
        read_beir(tmp_path)


def test_a_path_in_place_of_a_source_is_told_from_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("beir").mkdir()  # a source all the same
    Path("mine").mkdir()
    Path("shop.csv").touch()
    with pytest.raises(InputError, match="source 'beir' needs the option 'folder'"):
        read_collection("beir")
    with pytest.raises(InputError, match=r"mine is a path, .* beir folder=mine; sources are beir"):
        read_collection("mine")
    with pytest.raises(InputError, match=r"for example table documents=shop\.csv"):
        read_collection("shop.csv")
