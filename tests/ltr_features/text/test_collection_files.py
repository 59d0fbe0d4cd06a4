"""A collection survives its folder; damaged folders are refused with file and line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from letor.errors import InputError
from ltr_features.text.collection import Collection, Judgements, Links
from ltr_features.text.collection_files import load_collection, save_collection


def collection(**changes) -> Collection:
    values = {
        "name": "tiny",
        "document_ids": ["a", "b", "ü c"],
        "fields": {"body": ["one\ttwo", "", "drei\nvier"], "title": ["A", "B", ""]},
        "query_ids": ["q1", "q2"],
        "query_texts": ["one", "vier"],
        "judgements": Judgements(np.array([0, 1]), np.array([1, 2]), np.array([2, 1])),
        "links": Links(np.array([0, 0]), np.array([1, 1])),
        "query_sources": np.array([0, -1]),
        "query_groups": ["g", "h"],
        "withheld": "every third line",
        "description": {"rule": "by hand", "count": 3},
    }
    return Collection(**{**values, **changes})


@pytest.mark.parametrize("bare", [False, True])
def test_round_trip(tmp_path, bare):
    nothing = {"links": None, "query_sources": None, "query_groups": None, "withheld": None}
    before = collection(**(nothing if bare else {}))
    save_collection(before, tmp_path)
    after = load_collection(tmp_path)
    given = ("document_ids", "query_ids", "query_texts", "query_groups", "withheld", "description")
    for name in ("name", *given):
        assert getattr(after, name) == getattr(before, name)
    assert {k: list(v) for k, v in after.fields.items()} == before.fields
    for part, fields in (("judgements", ("query", "document", "grade")), ("links", ("source",))):
        for field in fields if getattr(before, part) is not None else ():
            np.testing.assert_array_equal(
                getattr(getattr(after, part), field), getattr(getattr(before, part), field)
            )
    if bare:
        assert after.links is None
        assert after.query_sources is None
    else:
        assert after.query_sources.tolist() == [0, -1]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("corpus.jsonl", '{"_id": "a"\n', r"corpus\.jsonl, line 1: not a JSON object"),
        ("corpus.jsonl", "", "no documents"),
        ("corpus.jsonl", '{"text": "a"}\n', r"corpus\.jsonl, line 1: _id is missing"),
        ("collection.json", "{}", "name, description is missing"),
        ("queries.jsonl", "[1]\n", r"queries\.jsonl, line 1: not a JSON object"),
        ("qrels.tsv", "h\nq1\tb\n", r"qrels\.tsv, line 2: 2 fields, expected 3"),
        ("links.tsv", "a b\n", r"links\.tsv, line 1: 1 field, expected 2, separated by tabs"),
        ("qrels.tsv", "h\nq9\tb\t1\n", r"qrels\.tsv, line 2: 'q9' is no known id"),
        ("links.tsv", "a\tb\na\tz\n", r"links\.tsv, line 2: 'z' is no known id"),
        ("qrels.tsv", None, r"qrels\.tsv: no such file"),
    ],
)
def test_damage_is_named(tmp_path, file, content, message):
    save_collection(collection(), tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_collection(tmp_path)


def test_ids_that_would_break_the_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="has a tab"):
        save_collection(collection(document_ids=["a", "b\tc", "d"]), tmp_path)


def test_collections_check_themselves():
    with pytest.raises(InputError, match="document id 'a' occurs twice"):
        collection(document_ids=["a", "b", "a"])
    with pytest.raises(InputError, match="query_groups has 1 entries for 2 queries"):
        collection(query_groups=["g"])
    with pytest.raises(InputError, match=r"query_sources holds row 3, outside -1\.\.2"):
        collection(query_sources=np.array([3, -1]))
    with pytest.raises(InputError, match="has no documents"):
        collection(document_ids=[], fields={})
    with pytest.raises(InputError, match="query_sources must be an array of integers, got float64"):
        collection(query_sources=[np.nan, 1])


def test_groups_of_a_frame_are_checked_before_anything_is_learned():
    """A saved builder with other groups than texts could not be read again."""
    for groups, found in ((pd.Series([7, 8]), "7"), (["g", None], "None")):
        with pytest.raises(InputError, match=f"query_groups: query '.*' has {found}, must be text"):
            collection(query_groups=groups)


def test_a_missing_time_of_a_frame_is_no_number():
    times = pd.Series(["1970-01-02", None], dtype="datetime64[s]")
    np.testing.assert_array_equal(collection(query_times=times).query_times, [86400, np.nan])


def test_a_text_in_place_of_the_list_of_new_queries_is_refused():
    """Its letters would be taken for queries."""
    with pytest.raises(InputError, match=r"must be a list of texts, such as \['red sofa'\]"):
        collection().with_queries("red sofa")


def test_what_collections_have_of_queries_is_found_by_position():
    """A series of a filtered or sorted frame finds its first value elsewhere."""
    made = collection(
        query_sources=pd.Series([0, -1], index=[1, 0], dtype=np.int8),
        query_times=pd.Series([5, 6], index=[1, 0]),
        query_groups=pd.Series(["g", "h"], index=[1, 0]),
    )
    assert (made.query_sources[0], made.query_times[0], made.query_groups[0]) == (0, 5.0, "g")
    assert made.query_sources.dtype == np.int64


def queries(texts, groups=None) -> Collection:
    return collection(
        query_ids=[str(i) for i in range(len(texts))],
        query_texts=texts,
        query_sources=None,
        query_groups=groups,
        judgements=Judgements.none(),
    )


def test_queries_of_one_text_or_group_are_kept_together():
    alike = queries(["Red  sofa ", "blue sofa", "red sofa", "ＲＥＤ sofa", "sofa"])
    labels = alike.kept_together()
    assert labels is not None
    assert labels[0] == labels[2] == labels[3]
    assert len(set(labels.tolist())) == 3
    assert "3 of 5 queries have the same text as another one" in "".join(alike.remarks)
    # Groups are joined where they share a text: 0-1 by group, 1-2 by text, 2-3 by group.
    chained = queries(["a", "b", "B", "c", "d"], groups=["g", "g", "h", "h", "i"])
    joined = chained.kept_together(by_group=True)
    assert joined is not None
    assert joined[4] not in set(joined[:4].tolist())
    assert len(set(joined.tolist())) == 2
    apart = queries(["a", "b"], groups=["g", "g"])
    assert apart.kept_together() is None
    assert apart.kept_together(by_group=True) is not None
    assert apart.remarks == []
