"""Rows of pandas, polars, Arrow and of any Parquet file, and back; what cannot be rows is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from letor import InputError, RankingData, read_parquet
from letor.errors import LetorWarning
from letor.ids import document_texts


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "bm25": [1.5, None, 3.0],
            "qid": [10, 10, 9],
            "label": [2, 0, 1],
            "is page": [True, False, True],
            "docno": ["a", None, "c"],
            "length": [3, 4, 2**24 + 1],
        },
        index=[7, 7, 1],
    )


def check(data: RankingData) -> None:
    assert data.column_names == ["bm25", "is page", "length"]
    np.testing.assert_array_equal(data.X, [[1.5, 1, 3], [np.nan, 0, 4], [3, 1, 2**24]])
    assert (data.y.tolist(), data.y.dtype) == ([2, 0, 1], np.float32)
    assert (data.query_ids, data.query_index.tolist()) == (["10", "9"], [0, 0, 1])
    assert list(data.document_ids) == ["a", "", "c"]


def as_polars(given: pd.DataFrame) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({c: given[c].replace({np.nan: None}).tolist() for c in given.columns})


@pytest.mark.parametrize("make", [RankingData.from_pandas, RankingData.from_frame])
def test_pandas(make: Any) -> None:
    given = frame()
    check(make(given))
    pd.testing.assert_frame_equal(given, frame())
    some = make(given.rename(columns={"label": "y"}), label="y", features=["length", "bm25"])
    assert some.column_names == ["length", "bm25"]


def test_polars() -> None:
    check(RankingData.from_polars(as_polars(frame())))


def test_arrow() -> None:
    check(RankingData.from_arrow(pa.Table.from_pandas(frame())))
    decimals = pa.table({"x": pa.array([1, 2]).cast(pa.decimal128(20)), "qid": ["q"] * 2,
                         "label": [0, 1]})  # fmt: skip
    assert RankingData.from_arrow(decimals).X.tolist() == [[1], [2]]


def test_there_and_back() -> None:
    data = RankingData.from_pandas(frame())
    for again in (
        RankingData.from_arrow(data.to_arrow()),
        RankingData.from_pandas(data.to_pandas()),
        RankingData.from_pandas(data.to_pandas(label="y"), label="y"),
    ):
        check(again)
    assert list(data.to_pandas().columns) == ["qid", "docno", "label", "bm25", "is page", "length"]
    without = RankingData.from_rows([[1.0]], [0], ["q"], column_names=["label"])
    with pytest.raises(InputError, match=r"a feature column is called 'label'.*by label="):
        without.to_arrow()
    assert list(without.to_arrow(label="grade").column_names) == ["qid", "grade", "label"]


def test_any_parquet_file(tmp_path: Any) -> None:
    path = tmp_path / "rows.parquet"
    frame().rename(columns={"qid": "search", "label": "grade"}).assign(title="text").to_parquet(
        path
    )
    named = {"label": "grade", "qid": "search"}
    features = ["bm25", "is page", "length"]
    check(read_parquet(path, **named, features=features))
    with pytest.raises(InputError, match=r"rows\.parquet: column 'title' holds .*string"):
        read_parquet(path, **named)
    with pytest.raises(InputError, match=r"rows\.parquet: the frame has no column 'label', 'lang'"):
        read_parquet(path, qid="search", features=["lang"])
    with pytest.raises(InputError, match=r"read_parquet\(path, label=\.\.\., qid=\.\.\.\)"):
        read_parquet(path)
    pq.write_table(pa.table({"x": [1]}), path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_parquet(path, **named)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.rename(columns={"length": "bm25"}), "two columns are called bm25"),
        (lambda f: f.rename(columns={"qid": "query"}), r"no column 'qid'; it has bm25, query"),
        (lambda f: f.assign(title="x"), r"column 'title' holds .*string.*features="),
        (lambda f: f.assign(title=["x", 1, None]), r"failed for column title .*astype\('string'\)"),
        (lambda f: f.assign(day=pd.Timestamp("2020-01-01")), "column 'day' holds timestamp"),
        (lambda f: f.assign(label=[1, None, 0]), r"no label in 1 row \(row 1, query 10\)"),
        (lambda f: f.assign(label=["2", "0", "1"]), r"column 'label' holds .*string.*by label="),
        (lambda f: f.assign(qid=["a", None, "b"]), "no query id in 1 row"),
        (lambda f: f.assign(qid=["a", "b", "a"]), r"row 2: query 'a' has rows further up.*sort"),
        (
            lambda f: f.assign(bm25=[1.797e308, 0, 0]),
            "column 'bm25': infinite values, or values beyond",
        ),
        (lambda f: f.assign(bm25=[0, np.nan, -np.inf]), "column 'bm25': inf.*1 row, the .* row 2"),
        (lambda f: f.assign(label=[1, np.inf, 0]), "column 'label': infinite"),
        (lambda f: f.to_dict(), "builtins.dict is not a frame"),
    ],
)
def test_what_cannot_be_rows_is_named(change: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankingData.from_pandas(change(frame()))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["a"]], "rows of numbers.*<U1"),
        ([1.0, 2.0], r"its shape is \(2,\)"),
        ([[1.0], [1e300]], "column 1 of X: infinite values, or values beyond float32"),
        (
            [[1.0, np.nan], [1.0, np.inf]],
            "column 2 of X: infinite .* in 1 row, the first .* row 1",
        ),
        ([[1.0]], r"qid has shape \(2,\), must be a list, array or series of one per row, \(1,\)"),
        ([[1.0], [[2.0]]], "rows of numbers"),
    ],
)
def test_arrays_that_cannot_be_rows_are_named(X: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RankingData.from_rows(X, [0] * len(X), ["q", "q"])


@pytest.mark.parametrize("kind", [np.int64, np.float64, np.uint64, object])
def test_whole_numbers_that_float32_rounds_are_told(kind: Any) -> None:
    times = np.array([1_750_000_001, 2**24, 1_750_000_002], dtype=kind)
    remark = r": whole numbers beyond 2\^24 .* float32, such as 1750000001 to 1750000000,"
    queries, y = ["q", "q", "q"], [0, 1, 0]
    with pytest.warns(LetorWarning, match="^column 2 of X" + remark):
        RankingData.from_rows(np.column_stack([[1, 2, 3], times]).astype(kind), y, queries)
    frame = pd.DataFrame({"label": y, "qid": queries, "time": times})
    with pytest.warns(LetorWarning, match="^column 'time'" + remark) as caught:
        RankingData.from_frame(frame)
    assert caught[0].filename == __file__


def test_rows_are_shown_by_their_numbers() -> None:
    data = RankingData.from_rows([[1.0], [2.0]], [0, 1], ["q", "q"])
    assert repr(data) == "<RankingData: 2 rows, 1 query, 1 column>"


def test_numbers_that_are_not_whole_are_rounded_without_a_word(recwarn: Any) -> None:
    X = np.array([[2.0**24, 0.1], [2.0**60, 123_456_789.3], [-(2.0**24), np.nan]])
    RankingData.from_rows(X, [0, 1, 0], ["q", "q", "q"])
    assert not recwarn


def test_labels_and_queries_that_cannot_be_are_named() -> None:
    X = [[1.0], [2.0]]
    with pytest.raises(InputError, match=r"labels y must be numbers.*'good'"):
        RankingData.from_rows(X, ["good", "bad"], ["q", "q"])
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(InputError, match="qid: row 1 has no id"):
            RankingData.from_rows(X, [0, 1], ["q", missing])
    assert RankingData.from_rows(X, [0, 1], pd.Series([7, 7])).query_ids == ["7"]
    with pytest.raises(InputError, match=r"qid: row 1 has \[7\], which is no id"):
        RankingData.from_rows(X, [0, 1], [7, [7]])


@pytest.mark.parametrize(
    "given", [[0, 1, 2], np.ones((2, 1)), pd.DataFrame({"q": [1, 2]}), iter([1, 2]), 7]
)
def test_labels_and_queries_are_one_per_row(given: Any) -> None:
    """The names of a frame's columns, above all, are no query ids of its rows."""
    X = [[1.0], [2.0]]
    for name, y, qid in (("y", given, ["q", "q"]), ("qid", [0, 1], given)):
        with pytest.raises(InputError, match=f"^{name} .*, must be a list, .* one per row"):
            RankingData.from_rows(X, y, qid)


@pytest.mark.parametrize("X", [sparse.csr_matrix([[1.0], [0.0]]), sparse.coo_array([[1.0], [0.0]])])
def test_sparse_rows_are_told_to_be_made_dense(X: Any) -> None:
    with pytest.raises(InputError, match=r"it is a c\w+: give X\.toarray\(\), with 0 for"):
        RankingData.from_rows(X, [0, 1], ["q", "q"])


def test_ids_are_texts_whatever_they_come_in() -> None:
    for qid in (pa.array([7.0, 8.0]), np.array([b"7", b"8"]), [7, "8"]):
        ids = RankingData.from_rows([[1.0], [2.0]], [0, 1], qid, document_ids=qid)
        assert ids.query_ids == list(ids.document_ids) == ["7", "8"]
    assert list(document_texts(pa.array(["a", None]), "docno")) == ["a", ""]
    assert list(document_texts(pa.array([b"\xff", b"b"]), "docno")) == ["\udcff", "b"]
    with pytest.raises(InputError, match="qid: row 0 has no id"):
        RankingData.from_rows([[1.0], [2.0]], [0, 1], pa.array([None, "q"]))


@pytest.mark.parametrize(
    ("kind", "least"), [(np.float64, 2**53), (np.float32, 2**24), (np.float16, 2**11)]
)
def test_ids_that_were_rounded_are_refused(kind: Any, least: int) -> None:
    """A merge that leaves rows without an id makes floats of integers, and one of two ids."""
    ids = np.array([least, least + 1], dtype=kind)
    assert ids[0] == ids[1]
    for make in (
        lambda qid: RankingData.from_rows([[1.0], [2.0]], [0, 1], qid),
        lambda qid: RankingData.from_frame(pd.DataFrame({"label": [0, 1], "qid": qid, "x": 1.0})),
        lambda qid: RankingData.from_frame(pa.table({"label": [0, 1], "qid": qid, "x": [1.0, 2]})),
    ):
        with pytest.raises(InputError, match=f"row 0 has {least}, a rounded number"):
            make(ids)
        assert make(ids / 4).query_ids == [str(least // 4)]


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        (["a", "b"], np.ones((2, 3)), r"shape \(2, 3\), must be \(3, 2\)"),
        (["a"], [1, 2], r"shape \(2,\), must be \(3, 1\)"),
        (["a", "b"], np.ones(6), r"shape \(6,\), must be \(3, 2\)"),
        ("abc", np.ones((3, 3)), r"a list of texts, such as \['abc'\]"),
        (["a", "b"], pd.DataFrame({"b": [1, 2, 3], "a": 0}), "columns b, a, .* give values.names"),
        (
            ["a"],
            pd.Series([1, 2, 3], index=[2, 1, 0]),
            r"values: .* \(row 0: 2\).*sort_index",
        ),
    ],
)
def test_further_columns_have_a_line_per_row(names: Any, values: Any, message: str) -> None:
    data = RankingData.from_rows([[1.0], [2.0], [3.0]], [0, 1, 2], ["q", "q", "q"])
    with pytest.raises(InputError, match=message):
        data.with_columns(names, values)
    wider = data.with_columns(["new"], pd.Series([7, 8, 9]))
    assert wider.column("new").tolist() == [7, 8, 9]


def test_rows_are_chosen_by_position_whatever_they_are_given_as() -> None:
    y = pd.Series([0.0, 1.0, 2.0], index=[2, 0, 1])
    X = pd.DataFrame({"x": [5.0, 6.0, 7.0]}, index=[1, 2, 0])
    index = pd.Series([0, 0, 1], index=[7, 8, 9], dtype=np.int8)
    data = RankingData(X, y, ["q", "r"], index, ["x"], document_ids=["a", "b", "c"])
    some = data.select_rows(np.array([True, False, True]))
    assert (some.y.tolist(), some.column("x").tolist()) == ([0, 2], [5, 7])
    assert some.query_index.tolist() == [0, 1]
    assert list(some.document_ids) == ["a", "c"]
    assert (data.X.dtype, data.y.dtype, data.query_index.dtype) == (
        np.float32,
        np.float32,
        np.int64,
    )
    with pytest.raises(InputError, match=r"rows: .* another index than 0 to 2 \(row 0: 2\)"):
        data.select_rows(y > 0)
    assert len(data.select_rows(y.reset_index(drop=True) > 0)) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query_index": np.zeros(2)}, "query_index must be an array of integers, got float64"),
        ({"query_ids": [1]}, "query_ids must be text, got 1"),
        ({"column_names": "x"}, r"column_names must be a list of texts, such as \['x'\]"),
    ],
)
def test_what_rows_cannot_be_made_of_is_named(change: Any, said: str) -> None:
    data = RankingData.from_rows([[1.0], [2.0]], [0, 1], ["q", "q"])
    with pytest.raises(InputError, match=said):
        replace(data, **change)
    for choose in (data.select_columns, data.select_queries):
        with pytest.raises(InputError, match=r"must be a list of texts, such as \['12'\]"):
            choose("12")


def test_rows_that_a_merge_has_doubled_are_told(recwarn: Any) -> None:
    once = pd.DataFrame({"qid": [1, 1, 2], "docno": ["a", "b", "a"], "x": 1.0, "label": [0, 1, 1]})
    RankingData.from_frame(once)
    RankingData.from_frame(once.assign(docno=""))
    assert not recwarn
    twice = once.merge(pd.DataFrame({"qid": [1, 1, 2], "y": 1.0}))
    for make in (
        RankingData.from_frame,
        lambda f: RankingData.from_rows(f[["x"]], f["label"], f["qid"], document_ids=f["docno"]),
    ):
        with pytest.warns(LetorWarning, match=r"^2 rows .* row 1, query 1, document a\)") as w:
            make(twice)
        assert w[0].filename == __file__


def test_ids_of_rows_have_the_index_of_the_rows() -> None:
    X, index = np.ones((2, 1)), [5, 6]
    y, ids = pd.Series([0, 1], index=index), pd.Series(["a", "b"], index=index)
    data = RankingData.from_rows(X, y, ["q", "r"], document_ids=ids)
    assert data.select_rows(np.array([1])).document_ids.tolist() == ["b"]
    with pytest.raises(InputError, match=r"^y and document_ids are pandas objects with different"):
        RankingData.from_rows(X, y, ["q", "r"], document_ids=ids[::-1])


def test_floats_that_are_whole_numbers_are_ids_without_a_point() -> None:
    """As after a merge of pandas that left some rows without an id."""
    ids = pd.DataFrame({"qid": [100.0, 7.0], "docno": [3.0, np.nan], "x": 1.0, "label": [0, 1]})
    data = RankingData.from_pandas(ids)
    assert (data.query_ids, list(data.document_ids)) == (["100", "7"], ["3", ""])
    assert RankingData.from_rows([[1.0]], [1], np.array([100.0])).query_ids == ["100"]
    with pytest.raises(InputError, match=r"column 'qid': row 1 has 7\.5, which is no id"):
        RankingData.from_pandas(ids.assign(qid=[100, 7.5]))
