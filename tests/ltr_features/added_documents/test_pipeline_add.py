"""Documents that the command adds: tables, ids and markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from additions import N, news
from toys import done, refused, run

from letor.folds import k_fold
from letor.rankers import LambdaMART
from ltr_features import FeatureBuilder, ScoringPipeline


def test_documents_of_a_table_are_added_by_the_command(pipeline, collection, tmp_path):
    pipeline.save(tmp_path / "p")
    ids, fields = news(collection)
    lines = [
        {"_id": name, "text": body, "title": title, "url": url}
        for name, body, title, url in zip(ids, *fields.values(), strict=True)
    ]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = done("pipeline", "add", tmp_path / "p", corpus)
    assert "3 documents of " in said
    assert "by their usual names: id '_id', body 'text', title 'title', url 'url'\n" in said
    assert "no column for" not in said
    assert "60 documents of the build, 1 of them replaced, 2 new" in said
    assert done("validate", tmp_path / "p")
    table = tmp_path / "more.csv"
    table.write_text("sku,words\nodd,common1\nlast,common2\n")
    said = run(
        "pipeline", "add", tmp_path / "p", table, "--column", "id=sku", "--column", "body=words"
    ).stderr
    assert "more.csv has no column for title, url, empty in its documents: name one by" in said
    again = ScoringPipeline.load(tmp_path / "p")
    assert again.features.n_documents == N + 3
    wanted = pipeline.with_documents(ids, fields).with_documents(
        ["odd", "last"], {"body": ["common1", "common2"]}
    )
    text, docnos = collection.query_texts[3], ["d3", "d4", "copy", "odd", "last"]
    np.testing.assert_array_equal(again.score(text, docnos), wanted.score(text, docnos))
    table.write_text("sku,text,hue\nnew,common1,x\nnew,common2,y\n")
    assert "pipeline add: --on-other-text)" in refused("pipeline", "add", tmp_path / "p", table)
    said = done("pipeline", "add", tmp_path / "p", table, "--on-other-text", "first")
    assert "rows of documents that were there, with other texts; the first taken: 1" in said
    assert """left out: 'hue'; to read 'hue' too, name all columns: --column body='["te""" in said
    table.write_text("sku,words\nodd,common1\n")
    for arguments, message in (
        ((table,), r"more.csv: the columns are 'sku', 'words'; say which is the id"),
        ((table, "--column", "id=sku", "--column", "body=wrods"), "wrods"),
        ((table, "--column", "id=sku", "--column", "anchor=words"), "have no field anchor"),
    ):
        assert re.search(message, refused("pipeline", "add", tmp_path / "p", *arguments))


def test_tables_of_another_encoding_are_added_as_they_are_indexed(pipeline, tmp_path):
    pipeline.save(tmp_path / "p")
    table = tmp_path / "new.csv"
    table.write_bytes("id,body\nnew,Müller common1\n".encode("cp1252"))
    assert "new.csv, line 2: byte 0xfc" in refused("pipeline", "add", tmp_path / "p", table)
    done("pipeline", "add", tmp_path / "p", table, "--encoding", "cp1252")
    added = ScoringPipeline.load(tmp_path / "p").features
    assert added.title("new") == "Müller common1"
    unknown = refused("pipeline", "add", tmp_path / "p", table, "--encoding", "cp1253x")
    assert "encoding 'cp1253x' is unknown" in unknown


def test_ids_that_are_only_written_otherwise_are_told(pipeline, tmp_path):
    """Of a spreadsheet, say, whose ids have lost leading zeros."""
    pipeline.save(tmp_path / "p")
    table = tmp_path / "new.csv"
    table.write_text("id,body\nD3,common1\nd4,common1\nother,common1\n d5,common2\n")
    told = run("pipeline", "add", tmp_path / "p", table).stderr
    assert "2 new documents beside one whose id differs in case, blanks" in told
    assert "such as 'D3' beside 'd3': if it is to replace that" in told
    (tmp_path / "gone.txt").write_text("D3\nD6\n")
    told = run("pipeline", "remove", tmp_path / "p", tmp_path / "gone.txt").stderr
    assert "has no document 'D6'; for 'D6' there is 'd6'" in told
    table.write_text("id,body\nnewer,common1\n")
    assert "beside" not in run("pipeline", "add", tmp_path / "p", table).stderr


@pytest.mark.parametrize("stripped", [True, False])
def test_html_is_stripped_from_added_documents_as_from_those_of_the_build(
    pipeline, collection, tmp_path, stripped
):
    if stripped:
        collection = replace(collection, description={"HTML in documents": "stripped"})
        builder = FeatureBuilder(["vsm"], depth=12).fit(collection)
        rows = builder.folds(collection, k_fold(collection.query_ids, 4, seed=0))[0][0]
        ranker = LambdaMART(n_estimators=2, min_data_in_leaf=5).fit(rows)
        pipeline = ScoringPipeline(builder, ranker)
    pipeline.save(tmp_path / "p")
    table = tmp_path / "more.csv"
    table.write_text("id,body,title,url\na,<b>common1</b>,t,u\n")
    added = ScoringPipeline.load(tmp_path / "p")
    for options, kept in ((), not stripped), (("--markup", "keep"), True):
        done("pipeline", "add", tmp_path / "p", table, *options)
        added = ScoringPipeline.load(tmp_path / "p").features.added_.context.collection
        assert added.fields["body"][0] == ("<b>common1</b>" if kept else "common1")
