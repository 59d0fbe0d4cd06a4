"""Judgements of collections in tables: several files, kinds of files, labels that become grades."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from tables import OPTIONS, PRODUCTS, RATINGS, save_table

from letor.column_names import read_rows, write_rows
from letor.errors import InputError
from ltr_features.commands.options import settings
from ltr_features.sources.table import read_table


@pytest.mark.parametrize("qrels_first", [False, True])
@pytest.mark.parametrize("called", ["document", "thing"])
def test_judgements_may_be_tables_beside_other_files(tmp_path, qrels_first, called):
    """Ratings of editors, and what `clicks judge` writes, say, in any order."""
    ratings = pd.DataFrame({"qid": ["a"], called: ["007"], "grade": [2], "who": ["Ann"]})
    files = [save_table(ratings, tmp_path / "ratings.csv"), tmp_path / "qrels.txt"]
    files[1].write_text("b 0 8 1\n")
    files = files[::-1] if qrels_first else files
    (tmp_path / "queries.tsv").write_text("qid\ttext\na\tshoe\nb\that\n")
    options = {"queries": tmp_path / "queries.tsv"}
    named = {} if called == "document" else {"judgement_columns": {"document": called}}
    found = read_table(PRODUCTS, files, **options, **named)
    judged = zip(found.judgements.query, found.judgements.document, strict=True)
    assert {(found.query_ids[q], found.document_ids[d]) for q, d in judged} == {
        ("a", "007"), ("b", "8"),
    }  # fmt: skip
    assert found.description["columns of judgements left out"] == "'who'"
    with pytest.raises(InputError, match=r"qrels.txt: no query texts: name a table of queries"):
        read_table(PRODUCTS, files, **named)
    with pytest.raises(InputError, match=r"qrels.txt is not a table and has no columns"):
        read_table(PRODUCTS, tmp_path / "qrels.txt", **options, judgement_columns={"grade": "g"})


def test_judgements_in_several_tables_are_those_of_one(tmp_path):
    """Those of each month, say: a text that comes again is the same query."""
    months = [
        pd.DataFrame({"query": texts, "document": documents, "grade": grades})
        for texts, documents, grades in (
            (["shoe", "hat"], ["007", "8"], [2, 1]),
            (["Shoe ", "cap"], ["8", "007"], [1, 0]),
        )
    ]
    files = [save_table(month, tmp_path / f"{n}.csv") for n, month in enumerate(months)]
    options = {"judgement_columns": {"text": "query"}}
    one = read_table(PRODUCTS, pd.concat(months), **options)
    several = read_table(PRODUCTS, [*map(str, files)], **options)
    assert (several.query_ids, several.query_texts) == (one.query_ids, one.query_texts)
    np.testing.assert_array_equal(several.judgements.grade, one.judgements.grade)
    for month, message in (
        (months[0].assign(grade=0), "line 2: query '1' .* were judged 2 before, now 0"),
        (months[0].drop(columns="grade"), "grade"),
        (months[0].assign(query=" "), "line 2: the query text is empty"),
    ):
        other = save_table(month, tmp_path / "3.csv")
        with pytest.raises(InputError, match=f"{re.escape(str(other))}.*{message}"):
            read_table(PRODUCTS, [*files, other], **options)
    with pytest.raises(InputError, match="judgements: an empty list; name a file"):
        read_table(PRODUCTS, [], **options)


@pytest.mark.parametrize("rule", [{}, {"grades": {"3": 3}}, {"grade_thresholds": [1, 2]}])
def test_rows_without_a_grade_are_to_be_left_out(rule):
    rated = RATINGS.assign(label=["3", "3", ""])
    options = {**OPTIONS, "grades": None, **rule}
    with pytest.raises(InputError, match="3: the grade is empty; leave out rows without a grade"):
        read_table(PRODUCTS, rated, **options)
    rated["label"] = ["3", "3", "Exact"]
    if "grade_thresholds" not in rule:
        with pytest.raises(InputError, match=r"grade 'Exact' .* the table has 3, Exact: say"):
            read_table(PRODUCTS, rated, **options)


def test_judgements_that_were_all_skipped_are_told_with_ids_of_both_sides(tmp_path):
    ratings = save_table(RATINGS.assign(sku=["p7", "p8", "p8"]), tmp_path / "r.csv")
    message = r"all 3 .* line 2 has document 'p7', but .* '007', '8', '9';"
    with pytest.raises(InputError, match=message):
        read_table(PRODUCTS, ratings, **OPTIONS, on_unknown="skip")
    for sku, advice in (("1.5e+18", "write ids as text or integers"), ("7", "there is '007'")):
        with pytest.raises(InputError, match=rf"all 3 .* has document '.*; .*{advice}"):
            read_table(PRODUCTS, RATINGS.assign(sku=sku), **OPTIONS, on_unknown="skip")


def test_skipped_judgements_of_ids_that_are_written_otherwise_are_told(tmp_path):
    """A spreadsheet reads 007 as 7; p8 is another document."""
    found = read_table(PRODUCTS, RATINGS.assign(sku=["7", "p8", "8"]), **OPTIONS, on_unknown="skip")
    assert found.description["judgements of unknown queries or documents, left out"] == 2
    (told,) = (v for key, v in found.description.items() if "that differ from known ones" in key)
    assert told == "1, such as '7' for '007'"


def test_ids_that_lost_digits_in_a_frame_are_refused():
    """A frame with a missing value anywhere in a column of integers holds floats."""
    products = pd.DataFrame({"id": [2**60, 2**60 + 1], "text": ["shoe", "hat"]})
    ratings = pd.DataFrame({"qid": ["a"], "query": ["shoe"], "docno": [2**60], "label": [1]})
    assert read_table(products, ratings).document_ids == [str(2**60), str(2**60 + 1)]
    advice = "write ids as text or integers"
    with pytest.raises(InputError, match=f"row 1: there is no document '1.15.*e.18' .*{advice}"):
        read_table(products, ratings.astype({"docno": float}))
    with pytest.raises(InputError, match=f"row 2: document '1.15.*' has another body.*{advice}"):
        read_table(products.astype({"id": float}), ratings)


@pytest.mark.parametrize("labels", [("0.7333", "0.25"), ("3", "1.0")])
def test_labels_of_rows_become_grades_as_those_of_tables(tmp_path, labels):
    (tmp_path / "rows.txt").write_text(
        "".join(f"{y} qid:a 1:2 #docid = {d}\n" for d, y in zip("xy", labels, strict=True))
    )
    documents = pd.DataFrame({"id": ["x", "y"], "text": ["shoe", "hat"]})
    queries = pd.DataFrame({"qid": ["a"], "text": ["shoe"]})
    options = {"documents": documents, "judgements": tmp_path / "rows.txt", "queries": queries}
    c = read_table(**options, grade_thresholds=[float(label) for label in labels[::-1]])
    assert c.judgements.grade.tolist() == [2, 1]
    if labels[0] == "3":
        assert read_table(**options).judgements.grade.tolist() == [3, 1]
    else:
        with pytest.raises(
            InputError, match=r"rows\.txt, line 1: grade '0\.7333' is not an integer"
        ):
            read_table(**options)


def test_what_to_write_for_grades_with_points_can_be_written():
    ratings = RATINGS.assign(label=["1.0", "two", "1.0"])
    options = {key: value for key, value in OPTIONS.items() if key != "grades"}
    with pytest.raises(InputError, match="grade 'two'") as caught:
        read_table(PRODUCTS, ratings, **options)
    (written,) = re.findall(r"on the command line (.*)\), or", str(caught.value))
    given = settings(shlex.split(written.replace("...", "3", 1).replace("...", "0")), "option")
    c = read_table(PRODUCTS, ratings, **options, **given)
    assert c.judgements.grade.tolist() == [3, 0, 3]


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.parquet"])
def test_labels_of_rows_are_judgements(name, tmp_path):
    documents = pd.DataFrame({"id": ["007", "8"], "text": ["red", "blue"]})
    queries = pd.DataFrame({"qid": ["1", "2"], "query": ["shoe", "hat"]})
    (tmp_path / "a.txt").write_text(
        "2 qid:1 1:0.5 #docid = 007\n0 qid:1 1:1 #docid = 8\n1 qid:2 1:0 # docid = 8 x\n"
    )
    write_rows(read_rows(tmp_path / "a.txt"), tmp_path / name)
    found = read_table(documents, tmp_path / name, queries=queries)
    judged = found.judgements
    rows = zip(judged.query.tolist(), judged.document.tolist(), judged.grade.tolist(), strict=True)
    assert sorted(rows) == [(0, 0, 2), (0, 1, 0), (1, 1, 1)]
    (tmp_path / "b.txt").write_text("2 qid:1 1:0.5\n")
    with pytest.raises(InputError, match="no document ids, which TREC files need"):
        read_table(documents, tmp_path / "b.txt", queries=queries)
