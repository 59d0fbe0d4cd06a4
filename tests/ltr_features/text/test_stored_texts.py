"""Documents that are mapped from disk are those that were written."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import toy

from letor.errors import InputError
from ltr_features.text import stored_texts
from ltr_features.text.collection_files import load_collection, save_collection
from ltr_features.text.id_rows import ids_of, rows_of
from ltr_features.text.stored_texts import (
    FILE,
    DocumentTexts,
    StoredTexts,
    open_documents,
    save_documents,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def collection(bodies, titles=None):
    return toy({"body": bodies} | ({} if titles is None else {"title": titles}), ["x"])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=12))
def test_texts_are_those_that_were_written(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("stored")
    bodies, titles = (list(column) for column in zip(*texts, strict=True))
    save_documents(collection(bodies, titles), folder)
    ids, fields = open_documents(folder)
    assert ids == [f"d{i}" for i in range(len(texts))]
    assert list(fields) == ["body", "title"]
    for found, expected in zip(fields.values(), (bodies, titles), strict=True):
        assert list(found) == expected
        assert [found[i] for i in range(-len(texts), len(texts))] == expected * 2
        assert found[1:7] == expected[1:7]
        assert found[::-2] == expected[::-2]
        with pytest.raises(IndexError):
            found[len(texts)]


def test_texts_of_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_texts, "_BLOCK", 3)
    bodies = [f"text {i}" for i in range(10)]
    save_documents(collection(bodies), tmp_path)
    _, fields = open_documents(tmp_path)
    assert list(fields["body"]) == bodies
    assert fields["body"][2:5] == bodies[2:5]


def test_a_collection_is_loaded_from_them(tmp_path):
    save_collection(collection(["one", "two"]), tmp_path)
    assert open_documents(tmp_path) is None
    assert load_collection(tmp_path).fields["body"] == ["one", "two"]
    save_documents(collection(["one", "two"]), tmp_path)
    loaded = load_collection(tmp_path)
    assert isinstance(loaded.fields["body"], StoredTexts)
    assert list(loaded.fields["body"]) == ["one", "two"]
    assert loaded.document_ids == ["d0", "d1"]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(["title", "body", "url"]), TEXT), min_size=1),
    st.integers(1, 30),
    st.data(),
)
def test_texts_that_come_one_after_the_other(texts, held, data):
    """A field is there from its first text on, or if it was asked for; wherever it lies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_texts, "_HELD", held)
        made = DocumentTexts(["title"])
        for of_document in texts:
            made.add(of_document)
    assert len(made) == len(texts)
    expected = {
        field: [of_document.get(field, "") for of_document in texts]
        for field in ("body", "title", "url")
    }
    expected = {s: found for s, found in expected.items() if s == "title" or any(found)}
    fields = made.fields()
    assert {field: list(found) for field, found in fields.items()} == expected
    assert list(fields) == list(expected)
    n_characters = sum(map(len, (t for found in expected.values() for t in found)))
    assert isinstance(fields["title"], StoredTexts) == (n_characters >= held)
    rows = data.draw(st.permutations(range(len(texts))))[: len(texts) // 2]
    for field, found in made.fields(rows).items():
        assert list(found) == [expected[field][row] for row in rows]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_texts_that_the_disk_has_no_room_for_name_the_folder(monkeypatch):
    monkeypatch.setattr(stored_texts, "_HELD", 10)
    monkeypatch.setattr(tempfile, "TemporaryFile", partial(open, "/dev/full", "r+b", buffering=0))
    with pytest.raises(OSError, match="set TMPDIR") as caught:
        DocumentTexts().add({"body": "ten letters"})
    assert caught.value.filename == tempfile.gettempdir()


def test_a_collection_of_texts_on_the_disk_is_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_texts, "_HELD", 10)
    monkeypatch.setattr(stored_texts, "_BLOCK", 3)
    made = DocumentTexts()
    for i in range(20):
        made.add({"body": f"text {i}", "title": "t" * (i == 15)})
    fields = made.fields()
    assert isinstance(fields["title"], StoredTexts)
    held = collection([f"text {i}" for i in range(20)], ["t" * (i == 15) for i in range(20)])
    for name, c in (("disk", collection(fields["body"], fields["title"])), ("held", held)):
        (tmp_path / name).mkdir()
        save_collection(c, tmp_path / name)
        save_documents(c, tmp_path / name)
    for file in ("corpus.jsonl", FILE):
        assert (tmp_path / "disk" / file).read_bytes() == (tmp_path / "held" / file).read_bytes()


def damaged(column, name="body"):
    return pa.table({"_id": pa.array(["a"], pa.large_string()), name: column})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (damaged(pa.array([1])), "column body does not hold texts"),
        (damaged(pa.array([None], pa.large_string())), "column body does not hold texts"),
        (damaged(pa.array(["x"], pa.large_string()), "colour"), "columns _id, colour"),
        (damaged(pa.array([b"\xff"], pa.large_binary()).view(pa.large_string())), "UTF8"),
    ],
)
def test_damaged_files_are_refused(tmp_path, table, message):
    with pa.OSFile(str(tmp_path / FILE), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)
    with pytest.raises(InputError, match=f"corpus.arrow.*{message}"):
        open_documents(tmp_path)
    (tmp_path / FILE).write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"corpus\.arrow: .*damaged"):
        open_documents(tmp_path)


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=12, unique=True), st.lists(TEXT, max_size=9), st.data())
def test_ids_are_found_and_chosen_as_in_a_list(tmp_path_factory, ids, others, data):
    folder = tmp_path_factory.mktemp("stored")
    save_documents(replace(collection(["x"] * len(ids)), document_ids=ids), folder)
    stored, _ = open_documents(folder)
    assert isinstance(stored, StoredTexts)
    asked = data.draw(st.permutations([*ids, *others, "\ud800"]))
    np.testing.assert_array_equal(rows_of(asked, stored), rows_of(asked, ids))
    rows = np.array(data.draw(st.lists(st.integers(0, len(ids) - 1))), np.int64)
    assert ids_of(rows, stored).tolist() == ids_of(rows, ids).tolist() == [ids[i] for i in rows]
    assert stored.distinct


def test_ids_that_occur_twice_are_refused(tmp_path):
    save_collection(collection(["one", "two"]), tmp_path)
    twice = collection(["one", "two"])
    vars(twice)["document_ids"] = ["d0", "d0"]
    save_documents(twice, tmp_path)
    assert not open_documents(tmp_path)[0].distinct
    with pytest.raises(InputError, match="document id 'd0' occurs twice"):
        load_collection(tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("q0\td1\t1\t2", "line 3: 4 fields, expected 3"),
        ("q0\td2\t1", "line 3: 'd2' is no known id"),
        ("p\td1\t1", "line 3: 'p' is no known id"),
        ("q0\td1\tgood", "line 3: 'good' is no integer"),
    ],
)
def test_judgements_that_cannot_be_read_are_named_by_line(line, said, tmp_path):
    save_collection(collection(["one", "two"]), tmp_path)
    save_documents(collection(["one", "two"]), tmp_path)
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text(f"query-id\tcorpus-id\tscore\nq0\td0\t1\n{line}\n")
    with pytest.raises(InputError, match=said):
        load_collection(tmp_path)
    qrels.write_text("query-id\tcorpus-id\tscore\nq0\td1\t-2\n")
    assert load_collection(tmp_path).judgements.grade.tolist() == [-2]
