"""A LETOR file and the texts behind it: the whole way to an enriched file, bytes kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toys import context_of

from letor.errors import InputError
from letor.svmlight import read_letor
from letor.writing import append_columns
from ltr_features.columns.registry import get_family
from ltr_features.sources.letor_join import join_letor
from ltr_features.text.collection import Collection, Judgements

LINES = """2 qid:10 1:0.5 2:1 #docid = GX1 inc = 1 prob = 0.1
0 qid:10 1:0.2 2:0 #docid = GX2 inc = 1 prob = 0.2
1 qid:20 1:0.9 2:1 #docid = GX2 inc = 1 prob = 0.3\r
"""


def texts(documents=("GX0", "GX2", "GX1"), queries=("20", "10")):
    return Collection(
        name="gov",
        document_ids=list(documents),
        fields={"body": [f"tax law {d}" for d in documents]},
        query_ids=list(queries),
        query_texts=[f"tax {q}" for q in queries],
        judgements=Judgements.none(),
    )


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "mq.txt").write_bytes(LINES.encode())
    return read_letor(tmp_path / "mq.txt")


def test_rows_find_their_texts(rows):
    join = join_letor(rows, texts())
    assert join.pairs.query.tolist() == [1, 1, 0]
    assert join.pairs.document.tolist() == [2, 1, 1]
    assert join.n_without_text == 0


@pytest.mark.parametrize(
    ("queries", "judged", "n_agreed", "told"),
    [
        (("20", "10"), [(1, 2, 1), (0, 1, 3)], 2, False),  # relevant in the rows, too
        (("10", "20"), [(1, 2, 1), (0, 1, 3)], 0, True),  # the same texts under other ids
        (("20", "10"), [(1, 0, 1), (0, 1, 3)], 1, False),
        (("20", "10"), [], 0, False),  # nothing to compare
    ],
)
def test_judgements_that_contradict_the_labels_are_told(rows, queries, judged, n_agreed, told):
    judgements = Judgements(*np.array(judged, np.int64).reshape(-1, 3).T)
    join = join_letor(rows, replace(texts(queries=queries), judgements=judgements))
    assert (join.n_relevant, join.n_agreed) == (2 * bool(judged), n_agreed)
    assert [remark[:32] for remark in join.remarks] == ["of 2 relevant rows only 0 are ju"] * told


def test_new_columns_are_appended_and_the_bytes_kept(rows, tmp_path):
    collection = texts()
    context = context_of(collection)
    join = join_letor(rows, collection)
    values = get_family("vsm").compute(context, join.pairs)
    assert append_columns(tmp_path / "mq.txt", tmp_path / "more.txt", join.spread(values)) == [3]
    for old, new in zip(
        LINES.split("\n"), (tmp_path / "more.txt").read_bytes().decode().split("\n"), strict=True
    ):
        before, comment = old.split("#") if old else ("", "")
        assert new.startswith(before)
        assert new.endswith(comment)
    np.testing.assert_array_equal(read_letor(tmp_path / "more.txt").column("3"), values[:, 0])


def test_rows_without_text_get_nought_and_are_counted(rows):
    join = join_letor(rows, texts(documents=("GX2",)), on_missing="zero")
    assert join.rows.tolist() == [1, 2]
    assert join.n_without_text == 1
    assert join.spread(np.ones((2, 3), np.float32)).tolist() == [[0] * 3, [1] * 3, [1] * 3]


def test_what_cannot_be_joined_is_named(rows, tmp_path):
    with pytest.raises(InputError, match=r"1 of 3 rows have no text.*row 1 names document 'GX1'"):
        join_letor(rows, texts(documents=("GX2",)))
    with pytest.raises(InputError, match="row 3 names query '20'"):
        join_letor(rows, texts(queries=("10",)))
    with pytest.raises(InputError, match=r"none of the 3 rows .* query ids are .10., .20., the"):
        join_letor(rows, texts(queries=("99",)), on_missing="zero")
    with pytest.raises(InputError, match=r"for '10' there is '0010': write ids alike"):
        join_letor(rows, texts(queries=("0010",)))
    assert "there is 'gx1'" in join_letor(rows, texts(("gx1", "GX2")), on_missing="zero").lost
    (tmp_path / "bare.txt").write_text("1 qid:1 1:2\n")
    with pytest.raises(InputError, match=r"no document ids, .* needs a comment '#docid = ID'$"):
        join_letor(read_letor(tmp_path / "bare.txt"), texts())
    (tmp_path / "ranklib.txt").write_text("1 qid:1 1:2 # 7555 rambo\n")
    with pytest.raises(InputError, match=r"such as '# 7555 rambo', .*: .* write 'docid =' before"):
        join_letor(read_letor(tmp_path / "ranklib.txt"), texts())
