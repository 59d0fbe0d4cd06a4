"""Documents and judgements in one table, as a shop exports them."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from tables import save_table

from letor.errors import InputError
from ltr_features.sources.registry import read_collection
from ltr_features.sources.table import read_table
from ltr_features.text import stored_texts


@pytest.fixture
def one_table():
    """Ratings with the products' texts in each row, as a shop exports them."""
    return pd.DataFrame(
        {
            "product_uid": ["7", "8", "7", "9"],
            "product_title": ["Red shoe", "Hat", "Red shoe", "Cap"],
            "search_term": ["shoe", "shoe", "red", "red"],
            "relevance": [2.33, 1, 3, 2.67],
        }
    )


ONE_TABLE = {
    "document_columns": {"id": "product_uid", "title": "product_title"},
    "judgement_columns": {"text": "search_term", "document": "product_uid"},
    "grade_thresholds": [2.33, 2.67],
}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_one_table_is_documents_and_judgements(tmp_path, one_table, suffix):
    c = read_table(save_table(one_table, tmp_path / f"ratings{suffix}"), **ONE_TABLE)
    assert c.document_ids == ["7", "8", "9"]
    assert c.fields == {"title": ["Red shoe", "Hat", "Cap"]}
    assert c.query_texts == ["shoe", "red"]
    j = c.judgements
    rows = list(zip(j.query, j.document, j.grade, strict=True))
    assert rows == [(0, 0, 1), (0, 1, 0), (1, 0, 2), (1, 2, 2)]
    assert c.description["rows of documents that were there, with the same texts"] == 1


def test_columns_of_a_shop_are_found_by_their_usual_names(tmp_path, one_table):
    numbered = one_table.assign(id=range(4), query_id=["b", "b", "a", "a"])
    path = save_table(numbered, tmp_path / "ratings.csv")
    c = read_table(path, grade_thresholds=[2.33, 2.67])
    assert (c.document_ids, c.query_ids) == (["7", "8", "9"], ["b", "a"])
    assert (c.fields, c.query_texts) == ({"title": ["Red shoe", "Hat", "Cap"]}, ["shoe", "red"])
    told = "text 'search_term', query 'query_id'"
    assert c.description["columns of judgements, by their usual names"] == (
        f"document 'product_uid', {told}, grade 'relevance'"
    )
    products = one_table.rename(columns={"product_title": "description"}).drop_duplicates(
        "product_uid"
    )
    rated = numbered.rename(columns={"search_term": "query"})
    c = read_table(products, rated, grade_thresholds=[2.33, 2.67])
    assert (c.fields, c.query_ids) == ({"body": ["Red shoe", "Hat", "Cap"]}, ["b", "a"])
    with pytest.raises(InputError, match=r"no query texts.*the columns are 'product_uid', 'q"):
        read_table(products, rated[["product_uid", "query", "relevance"]])  # ids or texts?


def test_columns_of_judgements_are_not_left_out_of_a_table_of_both(tmp_path, one_table):
    path = save_table(one_table.assign(rater="ann"), tmp_path / "ratings.csv")
    queries = pd.DataFrame({"id": ["shoe", "red"], "text": ["shoe", "red"]})
    for options in (
        ONE_TABLE,
        {**ONE_TABLE, "judgements": path},
        {
            "queries": queries,
            "judgement_columns": {"query": "search_term"},
            "grade_thresholds": [2],
        },
    ):
        told = read_table(path, **options).description["columns of documents left out"]
        assert told.startswith("'rater'; to read 'rater' too")


@pytest.mark.parametrize("kind", ["pandas", "polars", "Arrow"])
def test_tables_may_be_frames(tmp_path, one_table, kind):
    def made(frame):
        if kind == "polars":
            return pytest.importorskip("polars").from_pandas(frame)
        return pa.Table.from_pandas(frame) if kind == "Arrow" else frame

    c = read_collection("table", documents=made(one_table), **ONE_TABLE)
    read = read_table(save_table(one_table, tmp_path / "ratings.csv"), **ONE_TABLE)
    assert (c.name, c.document_ids, c.fields) == ("frame", read.document_ids, read.fields)
    assert (c.query_texts, c.judgements.grade.tolist()) == (read.query_texts, [1, 0, 2, 2])
    queries = pd.DataFrame({"qid": ["a"], "text": ["shoe"]})
    judged = pd.DataFrame({"qid": ["a"], "docno": ["8"], "label": [1]})
    columns = {"id": "product_uid", "title": "product_title"}
    c = read_table(made(one_table), made(judged), document_columns=columns, queries=made(queries))
    assert (c.query_texts, c.judgements.document.tolist()) == (["shoe"], [1])
    with pytest.raises(InputError, match="frame of documents: no column sku; it has 'product_uid'"):
        read_table(made(one_table), **{**ONE_TABLE, "document_columns": {**columns, "id": "sku"}})
    with pytest.raises(InputError, match=r"of documents, row 1: grade '2.33' is not an integer"):
        read_table(made(one_table), **{**ONE_TABLE, "grade_thresholds": None})
    for given, message in (
        ((made(one_table), made(judged.assign(qid=None))), "the frame of judgements, row 1: the q"),
        ((made(one_table), made(judged.drop(columns="label"))), "the frame of judgements: "),
    ):
        with pytest.raises(InputError, match=message):
            read_table(*given, document_columns=columns, queries=made(queries))


@pytest.mark.parametrize("held", [1, 1 << 20])
def test_a_document_with_two_texts_is_refused_or_chosen(tmp_path, one_table, monkeypatch, held):
    monkeypatch.setattr(stored_texts, "_HELD", held)
    one_table.loc[2, "product_title"] = "Shoe"
    path = save_table(one_table, tmp_path / "ratings.csv")
    with pytest.raises(
        InputError, match=r"line 4: document '7' has another title.*on_other_text=f"
    ):
        read_table(path, **ONE_TABLE)
    for choice, title in (("first", "Red shoe"), ("last", "Shoe")):
        c = read_table(path, **ONE_TABLE, on_other_text=choice)
        assert list(c.fields["title"]) == [title, "Hat", "Cap"]
        told = f"rows of documents that were there, with other texts; the {choice} taken"
        assert c.description[told] == 1
    with pytest.raises(InputError, match="on_other_text must be"):
        read_table(path, **ONE_TABLE, on_other_text="longest")


def test_pairs_with_two_grades_or_one_below_0_are_told(tmp_path, one_table):
    raters = pd.concat([one_table, one_table.assign(relevance=[1, 3, 3, 1])])
    path = save_table(raters, tmp_path / "ratings.csv")
    with pytest.raises(InputError, match=r"line 6: query '1' \('shoe'\) and document '7' were"):
        read_table(path, **ONE_TABLE)
    expected = {"highest": [1, 2, 2, 2], "lowest": [0, 0, 2, 0], "last": [0, 2, 2, 0]}
    expected["median"] = expected["lowest"]  # of two
    for choice, grades in expected.items():
        c = read_table(path, **ONE_TABLE, on_other_grade=choice)
        assert c.judgements.grade.tolist() == grades
        told = f"judged pairs with different grades; the {choice} taken"
        assert c.description[told] == 3
    marked = save_table(one_table.assign(relevance=[-1, 1, -1, 0]), tmp_path / "marked.csv")
    c = read_table(marked, **{**ONE_TABLE, "grade_thresholds": None})
    assert c.description["judged pairs with a grade below 0, which counts as 0"] == 2
    with pytest.raises(InputError, match="on_other_grade must be 'raise' or 'highest' or 'lo"):
        read_table(path, **ONE_TABLE, on_other_grade="mean")


def test_the_median_is_that_of_all_raters(tmp_path, one_table):
    rated = [[1, 2, 2, 1], [3, 3, 2, 3], [1, 3, 2, 2], [1, 3, 3, 3], [2, 2, 3, 2]]
    raters = pd.concat([one_table.assign(relevance=grades) for grades in rated])
    path = save_table(raters, tmp_path / "ratings.csv")
    options = {**ONE_TABLE, "grade_thresholds": None, "on_other_grade": "median"}
    c = read_table(path, **options)
    assert c.judgements.grade.tolist() == [1, 3, 2, 2]
    told = "judged pairs with different grades; the median taken"
    assert c.description[told] == 4
    again = save_table(raters.iloc[::-1], tmp_path / "reversed.csv")
    assert read_table(again, **options).description[told] == 4  # whatever the order of the rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grade_thresholds": [2, 1]}, r"must be ascending numbers, \[2.33, 2.67\], got \[2, 1\]"),
        ({"grade_thresholds": []}, "must be ascending numbers"),
        ({"grades": {"1": 1}}, "both say what grades mean"),
        ({"grade_thresholds": None}, r"line 2: grade '2.33' is not an integer; .*thresholds"),
        ({"judgement_columns": {**ONE_TABLE["judgement_columns"], "grade": "search_term"}},
         r"line 2: grade 'shoe' is not a finite number"),
    ],
)  # fmt: skip
def test_wrong_thresholds_are_named(tmp_path, one_table, changes, message):
    path = save_table(one_table, tmp_path / "ratings.csv")
    with pytest.raises(InputError, match=message):
        read_table(path, **{**ONE_TABLE, **changes})
