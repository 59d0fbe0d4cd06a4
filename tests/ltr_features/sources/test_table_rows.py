"""Tables of features: every format gives the same rows, and nothing is taken or left silently."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from letor.column_names import read_rows
from letor.errors import InputError, LetorWarning
from letor.missing import Missing
from ltr_features.cli import app
from ltr_features.sources.files import judgement_rows
from ltr_features.sources.table_rows import read_table_rows

FRAME = pd.DataFrame(
    {
        "query_id": ["b", "a", "b", "a"],
        "doc_id": ["007", "d2", "d3", "d4"],
        "relevance": [2, 0, 1, 0],
        "position": [1.5, 2.5, 3.5, 4.5],
        "bm25": [0.25, np.nan, -3.0, 1e-3],
        "in_stock": [True, False, True, True],
    }
)
#: Queries in order of first appearance.
EXPECTED = [[1.5, 0.25, 1], [3.5, -3, 1], [2.5, np.nan, 0], [4.5, 1e-3, 1]]


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def csv(folder, *lines):
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
def test_formats_give_the_same_rows(name, tmp_path):
    with pytest.warns(LetorWarning, match="scores of rows, are in another order than in the table"):
        rows = read_table_rows(write(FRAME, tmp_path / name))
    np.testing.assert_array_equal(rows.X, np.array(EXPECTED, np.float32))
    assert rows.column_names == ["position", "bm25", "in_stock"]
    assert (rows.query_ids, list(rows.query_index)) == (["b", "a"], [0, 0, 1, 1])
    assert (list(rows.document_ids), list(rows.y)) == (["007", "d3", "d2", "d4"], [2, 1, 0, 0])


def test_columns_are_named_or_numbered(tmp_path):
    path = csv(tmp_path, "3,q,0.5,x", "0,q,1.5,y")
    rows = read_table_rows(path, columns={"label": 1, "query": 2, "document": 4})
    assert (rows.column_names, rows.X.tolist(), list(rows.y)) == (["3"], [[0.5], [1.5]], [3, 0])
    named = csv(tmp_path, "wanted,session,f", "1,s,2")
    rows = read_table_rows(named, columns={"query": "session", "label": "wanted"})
    assert (rows.query_ids, rows.column_names, rows.document_ids) == (["s"], ["f"], None)


def test_words_for_missing_values_and_truth(tmp_path):
    rows = read_table_rows(csv(tmp_path, "qid,f,g,h", "1,NA,true,", "1, 2 ,FALSE,", "1,null,None,"))
    expected = [[np.nan, 1, np.nan], [2, 0, np.nan], [np.nan] * 3]
    np.testing.assert_array_equal(rows.X, np.array(expected, np.float32))


def test_texts_and_second_labels_are_left_out_and_named(tmp_path):
    path = csv(tmp_path, "qid,label,grade,title,price,f", "1,0,3,Red,'1,1", "1,1,0,,2,2")
    with pytest.warns(LetorWarning) as told:
        rows = read_table_rows(path)
    assert rows.column_names == ["f"]
    said = " ".join(str(w.message) for w in told)
    assert "usual names of ids or labels, too (a feature needs another name): grade" in said
    assert """not a number, such as 7.25: title ('Red'), price ("'1")""" in said
    frame = FRAME.assign(seen=pd.Timestamp("2026-01-01"))
    with pytest.warns(LetorWarning, match="seen"):
        assert "seen" not in read_table_rows(write(frame, tmp_path / "t.parquet")).column_names


def test_labels_in_words_are_refused_and_not_replaced_by_ratings_of_the_product(tmp_path):
    path = csv(tmp_path, "qid,docno,f,rating,esci_label", "1,a,1,5,E", "1,b,2,4,S")
    with pytest.raises(InputError, match=r"'esci_label' is 'E', .*; write grades as"):
        read_table_rows(path)


def test_numbers_that_are_no_features_are_left_out(tmp_path):
    """Ids of documents recur in other queries with their labels; an index tells the order."""
    path = csv(tmp_path, ",qid,docno,label,sku,query,Unnamed: 0,f", "0,1,a,0,7,1,0,2")
    with pytest.warns(LetorWarning) as told:
        rows = read_table_rows(path)
    assert rows.column_names == ["f"]
    said = " ".join(str(w.message) for w in told)
    assert "sku, query" in said
    assert "no names, such as the index of a data frame: '', Unnamed: 0" in said


def test_infinite_features_are_missing_if_asked(tmp_path):
    path = csv(tmp_path, "qid,label,f,g", "1,0,inf,1", "1,0,2,1e39")
    rows = read_table_rows(path, non_finite="nan")
    np.testing.assert_array_equal(rows.X, np.array([[np.nan, 1], [2, np.nan]], np.float32))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["qid,label,f", "1,0,1", "1,0,x"], "line 3: 'f' is 'x', not a number"),
        (["qid,label,f", "1,0,1", "1,,1"], "line 3: the label 'label' is ''"),
        (["qid,label,f", "1,0,1", "1,NaN,1"], "line 3: the label 'label' is 'NaN'"),
        (["qid,label,f", "1,0,1", ",1,1"], "line 3: the id 'qid' is empty"),
        (["qid,label,f", "1,0,1", "1,0,inf"], "line 3: 'f' is inf: .* --non-finite nan"),
        (["qid,label,f", "1,0,-1e39"], "line 2: 'f' is -1e\\+39"),
        (["qid,label,title", "1,0,red"], r"no column of numbers, such as 7.25; .* title \('red'\)"),
        (["qid;label;price", "1;0;3,5"], r"no column of numbers, such as 7.25; .* price \('3,5'\)"),
        (["qid,label", "1,0"], "no column of numbers, such as 7.25$"),
        (["qid,label,f"], "no rows"),
        (["id,label,f", "1,0,1"], "none has a usual name for query ids"),
    ],
)
def test_bad_tables_are_refused(lines, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read_table_rows(csv(tmp_path, *lines))


def test_rows_of_parquet_have_numbers_instead_of_lines(tmp_path):
    path = write(FRAME.assign(relevance=[2, 0, np.nan, 0]), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"t.parquet, row 3: the label 'relevance'"):
        read_table_rows(path)


def test_ids_that_a_merge_made_floats_are_written_as_integers(tmp_path):
    """Arrow writes 123456789012.0 as 1.23456789012e+11, and 123456792 of float32 as 123456790."""
    frame = FRAME.assign(
        query_id=np.array([7, 123456789012, 7, 123456789012], np.float64),
        doc_id=np.array([123456792, 2, 3, 4], np.float32),
    )
    with pytest.warns(LetorWarning, match="are in another order"):
        rows = read_table_rows(write(frame, tmp_path / "t.parquet"))
    assert rows.query_ids == ["7", "123456789012"]
    assert list(rows.document_ids) == ["123456792", "3", "2", "4"]
    judged = pd.DataFrame({"qid": [123456789012.0], "docno": [1.5], "grade": [2.0]})
    assert [*judgement_rows(judged)] == [
        (1, {"query": "123456789012", "document": "1.5", "grade": "2"})
    ]
    lost = write(frame.assign(query_id=[7.0, np.nan, 7, 8]), tmp_path / "lost.parquet")
    with pytest.raises(InputError, match=r"lost.parquet, row 2: the id 'query_id' is empty"):
        read_table_rows(lost)


def test_ids_that_are_nan_are_missing(tmp_path):
    """Python writes missing values of JSON so, and polars those of Parquet."""
    path = tmp_path / "j.jsonl"
    path.write_text('{"qid": "q", "docno": NaN, "grade": 1}\n')
    with pytest.raises(InputError, match=r"j.jsonl, line 1: the document id is empty"):
        [*judgement_rows(path)]
    path = tmp_path / "j.parquet"
    pq.write_table(pa.table({"qid": [7.0, np.nan], "docno": ["a", "b"], "grade": [1, 1]}), path)
    with pytest.raises(InputError, match=r"j.parquet, row 2: the query id is empty"):
        [*judgement_rows(path)]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_texts_of_any_type_of_arrow_are_texts(kind, tmp_path):
    """polars writes large strings and views."""
    columns = {"qid": ["q", "q"], "docno": ["a", "b"], "label": ["1", "0"], "f": ["0.5", "NA"]}
    table = pa.table({name: pa.array(values, kind) for name, values in columns.items()})
    try:
        pq.write_table(table, tmp_path / "t.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("older versions of pyarrow write no views")
    rows = read_table_rows(tmp_path / "t.parquet")
    assert (rows.column_names, list(rows.y), rows.X[0].tolist()) == (["f"], [1, 0], [0.5])


def test_a_word_far_down_is_found_in_its_line(tmp_path):
    """Arrow reads a file in blocks; what a column holds is decided once."""
    path = csv(tmp_path, "qid,label,f", *["1,0,0.125000000000000000000000"] * 60_000, "1,0,x")
    with pytest.raises(InputError, match="line 60002: 'f' is 'x'"):
        read_table_rows(path)


def test_judgements_give_labels(tmp_path):
    path = csv(tmp_path, "qid,docno,f", "1,a,1", "1,b,2", "2,a,3")
    (tmp_path / "qrels").write_text("1 0 b 2\n1 0 gone 1\n", encoding="utf-8")
    with pytest.warns(LetorWarning, match="1 of 3 rows have no judgement.*query '1' and .*'a'"):
        rows = read_table_rows(path, tmp_path / "qrels")
    assert list(rows.y) == [0, 2, 0]
    assert rows.missing == Missing({"1": {1: 1}}, frozenset({"2"}))
    with pytest.raises(InputError, match="has labels, column 'relevance'"):
        read_table_rows(write(FRAME, tmp_path / "t.parquet"), tmp_path / "qrels")


def test_judgements_that_cannot_be_joined_are_told(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 2\n2 0 b 1\n", encoding="utf-8")
    rows = read_table_rows(
        csv(tmp_path, "qid,docno,f", "1,a,1", "1,a,2", "3,b,1"), tmp_path / "qrels"
    )
    assert list(rows.y) == [2, 2, 0]  # a pair in two rows; validate tells of it
    for lines, message in (
        (["qid,f", "1,1"], "no document ids, by which rows and judgements are joined"),
        (["qid,docno,f", "1,b,1", "3,a,1"], "none of its rows is judged .*query '1' and .*'b'"),
    ):
        with pytest.raises(InputError, match=message):
            read_table_rows(csv(tmp_path, *lines), tmp_path / "qrels")


@pytest.fixture
def convert(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CliRunner().invoke(app, ["convert", *arguments])

    return run


def test_convert_tells_columns_and_missing_values(convert, tmp_path):
    write(FRAME, tmp_path / "t.csv")
    with pytest.warns(LetorWarning, match="rows.txt: 1 missing value will be read as 0"):
        result = CliRunner().invoke(app, ["convert", "t.csv", "rows.txt"])
    assert result.exit_code == 0, result.output
    assert "query 'query_id', document 'doc_id', label 'relevance'" in result.output
    assert "features: position, bm25, in_stock" in result.output
    assert read_rows(tmp_path / "rows.txt").column_names == ["position", "bm25", "in_stock"]
    convert("t.csv", "rows.parquet")
    assert np.isnan(read_rows(tmp_path / "rows.parquet").X).sum() == 1


def test_convert_tells_of_features_that_may_be_labels(convert, tmp_path):
    csv(tmp_path, "qid,Human Label,f", "1,2,3")
    result = convert("t.csv", "rows.csv.parquet")  # a suffix counts at the end alone
    assert (
        "every label is 0; if 'Human Label' is one: --column label='Human Label'" in result.output
    )
    result = convert("t.csv", "rows.parquet", "--column", "label=Human Label")
    assert read_rows(tmp_path / "rows.parquet").y.tolist() == [2]


def test_convert_refuses_columns_that_do_nothing(convert, tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1 1:1\n", encoding="utf-8")
    result = convert("rows.txt", "rows.parquet", "--column", "query=qid")
    assert "rows.txt is none" in str(result.exception)
    write(FRAME, tmp_path / "t.csv")
    result = convert("t.csv", "rows.parquet", "--column", "quer=qid")
    assert "the keys are query, document, label" in str(result.exception)


def test_convert_tells_that_labels_are_unknown(convert, tmp_path):
    write(FRAME.drop(columns="relevance"), tmp_path / "t.csv")
    assert "every label is 0" in convert("t.csv", "rows.parquet").output


def test_convert_tells_of_ids_that_lost_digits(convert, tmp_path):
    csv(tmp_path, "qid,docno,label,f", "1.5e+18,d1,1,2", "1.5e+18,d2,0,3", "2,d1,0,1")
    told = convert("t.csv", "rows.txt").output
    assert "1 of 2 query ids are like '1.5e+18', and may be those of several" in told
    assert "document ids are like" not in told
