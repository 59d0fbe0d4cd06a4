"""CSV and TSV of all sorts: without names, with quotes that mean nothing, by hand."""

from __future__ import annotations

import csv
import gzip
import io
import random

import pytest
from typer.testing import CliRunner

from letor.errors import InputError
from ltr_features.cli import app
from ltr_features.clicks.source import read_log
from ltr_features.sources.feature_log import is_feature_log
from ltr_features.sources.query_files import read_query_parts
from ltr_features.sources.score_tables import score_columns
from ltr_features.sources.table import read_table
from ltr_features.sources.table_blocks import is_table, rows, table_columns
from ltr_features.sources.trec_topics import read_topics


def values(path, *columns):
    return [tuple(row) for _, row in rows(path, columns)]


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.fixture
def collection(tmp_path):
    """Documents, queries and judgements without a line of names, as MS MARCO has them."""
    return {
        "documents": write(
            tmp_path / "collection.tsv", '7\tred "shoe\n08\tblue hat\n9\t"quoted"\n'
        ),
        "queries": write(tmp_path / "queries.tsv", "3\tsneaker\n5\tcap\n"),
        "judgements": write(tmp_path / "qrels.tsv", "3\t0\t7\t1\n5\t0\t08\t2\n"),
    }


def test_columns_without_names_have_numbers(collection):
    c = read_table(**collection, document_columns={"id": 1, "body": [2]})
    assert c.document_ids == ["7", "08", "9"]
    assert list(c.fields["body"]) == ['red "shoe', "blue hat", "quoted"]
    assert (c.query_ids, c.query_texts) == (["3", "5"], ["sneaker", "cap"])
    assert c.judgements.grade.tolist() == [1, 2]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_queries_and_judgements_may_be_numbered_too(tmp_path, collection, suffix):
    mark = "\t" if "tsv" in suffix else ","
    queries = write(tmp_path / f"q{suffix}", f"sneaker{mark}3\ncap{mark}5\n")
    judged = write(tmp_path / f"j{suffix}", f"1{mark}7{mark}3\n2{mark}08{mark}5\n")
    c = read_table(
        collection["documents"],
        judged,
        document_columns={"id": 1, "body": 2},
        queries=queries,
        query_columns={"id": 2, "text": 1},
        judgement_columns={"query": 3, "document": 2, "grade": 1},
    )
    assert (c.query_ids, c.query_texts) == (["3", "5"], ["sneaker", "cap"])
    assert c.judgements.document.tolist() == [0, 1]


def test_the_first_row_is_in_line_1(tmp_path):
    path = write(tmp_path / "x.csv", "a,b\nc,d\n")
    assert list(rows(path, [2])) == [(1, ["b"]), (2, ["d"])]


def test_a_number_as_text_is_a_name(tmp_path):
    path = write(tmp_path / "x.csv", "2,1\na,b\n")
    assert values(path, "1", "2") == [("b", "a")]
    assert values(path, 1, 2) == [("2", "1"), ("a", "b")]


@pytest.mark.parametrize("number", [0, -1, 3, 12345678901234567890])
def test_a_number_without_a_column_is_refused(tmp_path, number):
    path = write(tmp_path / "x.tsv", "a\tb\n")
    with pytest.raises(InputError, match=rf"x\.tsv: no column {number}; it has 1, 2"):
        values(path, number)


def test_a_missing_name_says_that_numbers_will_do_and_cuts_texts(tmp_path, collection):
    long = write(tmp_path / "long.tsv", f"1\t{'word ' * 1000}\n")
    for columns in (None, {"id": "pid", "body": "text"}):
        with pytest.raises(InputError, match=r"number.*1, 2") as raised:
            read_table(**{**collection, "documents": long}, document_columns=columns)
        assert len(str(raised.value)) < 400


def test_documents_columns_are_found_by_their_usual_names(tmp_path, collection):
    named = write(
        tmp_path / "d.csv", "price,Doc-ID,Name,text,url\n1,7,shoe,red,/s\n2,08,hat,x,/h\n"
    )
    c = read_table(**{**collection, "documents": named})
    assert c.document_ids == ["7", "08"]
    assert {f: list(c.fields[f]) for f in c.fields} == {
        "title": ["shoe", "hat"],
        "body": ["red", "x"],
        "url": ["/s", "/h"],
    }
    told = c.description["columns of documents, by their usual names"]
    assert sorted(told.split(", ")) == ["body 'text'", "id 'Doc-ID'", "title 'Name'", "url 'url'"]


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_csv_may_have_semicolons_or_tabs(tmp_path, mark):
    lines = [["id", '"a, b; c"'], ["1", '"red; blue, green\t"'], ["2", "hat"]]
    path = write(tmp_path / "x.csv", "\r\n".join(map(mark.join, lines)) + "\r\n")
    assert table_columns(path) == ["id", "a, b; c"]
    assert values(path, "id", "a, b; c") == [("1", "red; blue, green\t"), ("2", "hat")]


def test_a_comma_in_the_first_line_separates(tmp_path):
    path = write(tmp_path / "x.csv", "id,a;b\n1,x;y\n")
    assert values(path, "id", "a;b") == [("1", "x;y")]
    alone = write(tmp_path / "y.csv", "text\nred; blue\n")
    assert values(alone, "text") == [("red; blue",)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('id,text\n\n1,"a\nb"\n2,c,d\n3,e\n', r"line 5: 3 values, the first line has 2"),
        ("id;text\n1;a;b\n", r"line 2: 3 values.*with a ';' between two; put a value"),
        ("sep=;\nid;text;url\n1;a;b\n", r"line 2: 3 values.*; remove the first line if it is a t"),
        ("id;price, net;text\n1;2;a\n", r"line 2: 1 value.*with a ',' .*; if ';' is to be between"),
        ("id,text\n1," + "x" * 200_000 + "\n2\n", "lines have different numbers of values"),
    ],
)
def test_uneven_lines_are_named(tmp_path, text, message):
    path = write(tmp_path / "x.csv", text)
    with pytest.raises(InputError, match=rf"x\.csv.*{message}"):
        values(path, "id")


def test_rows_are_named_by_the_lines_where_they_begin(tmp_path):
    """Blank lines, and those that go on with a quoted value, are lines, too."""
    lines = ["", '"the', 'id",text', "", '1,"a', "", '""b"""', "2,c", "", "", "3,d,e", "4,f", "5"]
    path = write(tmp_path / "x.csv", "\r\n".join(lines))
    told = []
    found = [*rows(path, ["text"], on_bad_line=lambda number, reason: told.append(number))]
    assert found == [(5, ['a\r\n\r\n"b"']), (8, ["c"]), (12, ["f"])]
    assert told == [11, 13]
    even = write(tmp_path / "y.csv", "\n".join(lines[:10]))
    assert [number for number, _ in rows(even, ["text"])] == [5, 8]
    assert [number for number, _ in rows(even, [1])] == [2, 5, 8]


def test_quotes_of_tsv_swallow_no_rows(tmp_path):
    lines = [
        '1\t"What is it?" he asked',
        '2\t"no end',
        "3\tplain",
        '4\t5" disk',
        '5\t"the ""end"""',
    ]
    path = write(tmp_path / "x.tsv", "\n".join(["id\ttext", *lines]) + "\n")
    assert [number for number, _ in rows(path, ["id"])] == [2, 3, 4, 5, 6]
    texts = ['"What is it?" he asked', '"no end', "plain", '5" disk', 'the "end"']
    assert values(path, "text") == [(text,) for text in texts]


def test_quoted_line_ends_of_tsv_are_kept(tmp_path):
    path = write(
        tmp_path / "x.tsv", '"id"\t"text"\n1\t"two\nlines"\n2\t"a\ttab"\n3\t"say ""so"""\n'
    )
    assert table_columns(path) == ["id", "text"]
    assert values(path, "id", "text") == [("1", "two\nlines"), ("2", "a\ttab"), ("3", 'say "so"')]


@pytest.mark.parametrize("seed", range(5))
def test_tsv_of_the_csv_module_is_read_back(tmp_path, seed):
    """Whatever it quotes."""
    rng = random.Random(seed)
    some = [
        ["".join(rng.choices('ab"" é', k=rng.randint(1, 6))) for _ in range(3)] for _ in range(50)
    ]
    written = io.StringIO()
    csv.writer(written, delimiter="\t", lineterminator="\n").writerows([["x", "y", "z"], *some])
    path = write(tmp_path / "x.tsv", written.getvalue())
    assert values(path, "x", "y", "z") == [tuple(row) for row in some]


@pytest.mark.parametrize("layout", ["rows", "counts"])
def test_click_logs_may_have_no_names(tmp_path, layout):
    names = (
        "query",
        "document",
        "position",
        "clicked",
        "shown" if layout == "counts" else "session",
    )
    lines = ["a\tx\t1\t1\t1", "a\ty\t2\t0\t1", "b\ty\t1\t1\t2"]
    named = write(tmp_path / "named.tsv", "\n".join(["\t".join(names), *lines]) + "\n")
    bare = write(tmp_path / "bare.tsv", "\n".join(lines) + "\n")
    numbers = {name: number for number, name in enumerate(names, start=1)}
    found, wanted = (
        read_log(path, layout=layout, columns=columns)
        for path, columns in ((bare, numbers), (named, None))
    )
    assert (found.query_ids, found.document_ids) == (wanted.query_ids, wanted.document_ids)
    assert found.clicked.tolist() == wanted.clicked.tolist() == [1, 0, 1]
    result = CliRunner().invoke(
        app,
        ["clicks", "judge", str(bare), "--layout", layout, "--model", "ctr", "--min-evidence", "1"]
        + [part for name, number in numbers.items() for part in ("--column", f"{name}={number}")]
        + ["--out", str(tmp_path / "judged")],
        catch_exceptions=False,
    )
    assert result.exit_code == 0


@pytest.mark.parametrize("name", ["ITEMS.CSV", "Items.Tsv"])
def test_names_of_files_may_be_in_capitals(tmp_path, name):
    separator = "," if name == "ITEMS.CSV" else "\t"
    path = write(tmp_path / name, f"id{separator}text\n007{separator}a\n")
    assert is_table(path)
    assert values(path, "id", "text") == [("007", "a")]


def test_what_a_name_says_it_says_in_capitals(tmp_path):
    run = write(tmp_path / "RUN.TSV", "q1\tQ0\td1\t1\t2.5\tbm25\n")
    assert score_columns(run) == ["score"]
    topics = write(tmp_path / "TOPICS.TSV", "shop:7\tred shoe\n")
    assert read_topics(topics) == [("shop:7", "red shoe")]
    assert is_feature_log(tmp_path / "LOG.JSONL")
    (tmp_path / "qrels").mkdir()
    for part, query in (("TRAIN", "q1"), ("VALI", "q2"), ("TEST", "q3")):
        write(tmp_path / "qrels" / f"{part}.TSV", f"{query}\t0\td1\t1\n")
    parts = read_query_parts(tmp_path / "qrels", ["q1", "q2", "q3"])
    assert parts == {"q1": "train", "q2": "validation", "q3": "test"}


def test_only_csv_and_tsv_have_numbers(tmp_path):
    path = write(tmp_path / "x.jsonl", '{"1": "a"}\n')
    with pytest.raises(InputError, match=r"x\.jsonl: column 1: columns have numbers only in CSV"):
        values(path, 1)
    mixed = write(tmp_path / "x.csv", "a,b\n")
    with pytest.raises(InputError, match=r"no column 2; .*numbers, 1, 2, \.\.\., for all"):
        values(mixed, "a", 2)


def test_a_field_is_the_column_of_its_own_name_before_others(tmp_path, collection):
    both = write(tmp_path / "d.csv", "id,text,body\n7,b,a\n08,d,c\n")
    c = read_table(**{**collection, "documents": both})
    assert list(c.fields["body"]) == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('id,text\n1,"never closed\n2,b\n3,c\n', "line 2: .*no other one closes it"),
        ('id,text\n1,"open\n2,b\n3,"quoted"\n4,d\n', "line 2: .*in line 4, ends no value"),
        ('id,text\n0,"a ""b"" c"\n1,"open\n2,b\n3,"c"\n', "line 3: .*in line 5, ends no value"),
        ('id,text\r\n1,"open\r\n2,b"x\r\n', "line 2: .*in line 3, ends no value"),
        ('id,text,more\n1,"two\nlines",x\n2,y,"open ""\n3,z,c\n', "line 4: .*no other one"),
        ('id;text;more\n1;"1/2 hose;x\n2;y;z\n', "line 2: .*no other one"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_quote_that_swallows_rows_is_refused(tmp_path, text, told, suffix):
    path = write(tmp_path / f"x{suffix}", text)
    with pytest.raises(InputError, match=told) as raised:
        values(path, "id")
    assert "never" not in str(raised.value)  # nothing of the rows


def test_so_is_one_of_tsv_whose_lines_have_unequal_columns(tmp_path):
    path = write(tmp_path / "x.tsv", 'id\ttext\n1\t"a\ttab"\n2\t"open\n3\tb\n')
    with pytest.raises(InputError, match=r"x\.tsv, line 3: .*no other one closes it"):
        values(path, "id")


@pytest.mark.parametrize("seed", range(3))
def test_of_what_the_csv_module_takes_nothing_is_refused(tmp_path, seed):
    rng = random.Random(seed)
    refused = []
    for trial in range(400):
        some = rng.choices('ab",\n', [3, 3, 3, 2, 2], k=rng.randint(4, 20))
        text = "".join(["x,y\n", *some, "\n"])
        path = write(tmp_path / f"{trial}.csv", text)
        try:
            found = values(path, "x", "y")
        except InputError as error:
            refused += [text] if "begins with a quote" in str(error) else []
            continue
        try:
            wanted = list(csv.reader(io.StringIO(text), strict=True))
        except csv.Error:
            continue
        assert found == [tuple(row) for row in wanted[1:] if row]
    assert len(refused) >= 10
    for text in refused:
        with pytest.raises(csv.Error):
            list(csv.reader(io.StringIO(text), strict=True))
