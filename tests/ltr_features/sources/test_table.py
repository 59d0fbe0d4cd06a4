"""Collections in tables: product search in every format, by hand."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from tables import COLUMNS, JUDGED, OPTIONS, PRODUCTS, RATINGS, save_table

from letor.errors import InputError
from ltr_features.commands.options import settings
from ltr_features.sources.document_table import read_documents
from ltr_features.sources.table import read_table
from ltr_features.sources.table_blocks import blocks, texts
from ltr_features.text.markup import html_share, without_markup

NAMES = {"document_columns": {"id": "sku", "title": "name"}}


@pytest.mark.parametrize(
    "suffix", [".csv", ".tsv", ".jsonl", ".json", ".parquet", ".csv.gz", ".jsonl.gz", ".json.gz"]
)
def test_every_format_gives_the_same_collection(tmp_path, suffix):
    products = save_table(PRODUCTS, tmp_path / f"products{suffix}")
    ratings = save_table(RATINGS, tmp_path / f"ratings{suffix}")
    c = read_table(products, ratings, **OPTIONS)
    assert c.name == "products"
    assert c.document_ids == ["007", "8", "9"]
    assert c.fields == {
        "title": ["Red shoe", "Blue, big hat", ""],
        "body": ["for running light\nand red", 'a "hat"', "x y"],
        "url": ["/shoe", "/hat", "/x"],
    }
    assert (c.query_ids, c.query_texts) == (["1", "2"], ["sneaker", "cap"])
    j = c.judgements
    assert list(zip(j.query, j.document, j.grade, strict=True)) == [(0, 0, 3), (0, 1, 0), (1, 1, 3)]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ""])
def test_numbers_and_lists_of_objects_are_not_what_to_read_too(tmp_path, suffix):
    products = PRODUCTS.assign(parts=[[{"of": "wool"}], None, []], tags=[["a", "b"], None, []])
    products = products.assign(lat=[None, -1.5, 2])[["sku", "name", "lat", "parts", "tags"]]
    products = save_table(products, tmp_path / f"p{suffix}") if suffix else products
    options = OPTIONS | {"document_columns": {"id": "sku", "title": "name"}}
    told = read_table(products, RATINGS, **options).description["columns of documents left out"]
    assert told.startswith("'lat', 'parts', 'tags'; to read 'tags' too, name all columns: ")
    options["document_columns"] = {"id": "sku", "title": "name", "keywords": ["tags", "parts"]}
    advice = "write the texts in it under a key of their own|text or numbers are expected"
    with pytest.raises(InputError, match=advice):
        read_table(products, RATINGS, **options)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet", ""])
def test_lists_of_texts_are_one_text(tmp_path, suffix):
    points = [["light", "and red"], None, ["y", None, ""]]
    products = PRODUCTS.assign(bullets=points)
    products = save_table(products, tmp_path / f"p{suffix}") if suffix else products
    c = read_table(products, RATINGS, **OPTIONS)
    assert [text.strip() for text in c.fields["body"]] == [
        "for running light and red", 'a "hat"', "x y"
    ]  # fmt: skip
    ids = PRODUCTS.assign(sku=[["007"], ["8"], ["9"]])
    with pytest.raises(InputError, match=r"sku (is a JSON list|holds list)"):
        read_table(save_table(ids, tmp_path / f"p{suffix}") if suffix else ids, RATINGS, **OPTIONS)


def test_columns_that_are_read_as_grades_and_those_left_out_are_told():
    rated = RATINGS.assign(esci_label=["E", "I", "S"], rating=[5, 4, 4], split="train")
    rated = rated.drop(columns="label")
    with pytest.raises(InputError) as caught:
        read_table(PRODUCTS, rated, **NAMES, judgement_columns={"text": "query"})
    assert "row 1: grade 'E' is not an integer; the table has E, I, S: say what each means" in str(
        caught.value
    ).replace("line 1", "row 1")
    assert "grades.E=... grades.I=..." in str(caught.value)
    given = {**NAMES, "judgement_columns": {"text": "query"}, "grades": {"E": 2, "S": 1, "I": 0}}
    facts = read_table(PRODUCTS, rated, **given).description
    found = "document 'sku', grade 'esci_label'"
    assert facts["columns of judgements, by their usual names"] == found
    assert facts["columns of judgements left out"] == "'rating', 'split'"
    queries = pd.DataFrame({"query_id": ["a"], "query": ["cap"], "category": ["hats"]})
    judged = pd.DataFrame({"query_id": ["a"], "sku": ["8"], "grade": [1]})
    facts = read_table(PRODUCTS, judged, queries=queries, **NAMES).description
    assert facts["columns of queries left out"] == "'category'"


def test_documents_in_several_tables_are_those_of_one(tmp_path):
    ratings = save_table(RATINGS, tmp_path / "ratings.csv")
    one = read_table(PRODUCTS, ratings, **OPTIONS)
    parts = [
        save_table(PRODUCTS[:1], tmp_path / "1.csv.gz"),
        save_table(PRODUCTS[1:], tmp_path / "2.parquet"),
        save_table(PRODUCTS[:2], tmp_path / "3.jsonl"),  # the same documents again
    ]
    several = read_table([*map(str, parts)], ratings, **OPTIONS)
    assert several.document_ids == one.document_ids
    assert {f: list(t) for f, t in several.fields.items()} == {
        f: list(t) for f, t in one.fields.items()
    }
    np.testing.assert_array_equal(several.judgements.document, one.judgements.document)
    assert several.description["rows of documents that were there, with the same texts"] == 2

    def told(tables, judgements=ratings):
        with pytest.raises(InputError) as caught:
            read_table(tables, judgements, **OPTIONS)
        return str(caught.value)

    other = save_table(PRODUCTS.assign(name="other"), tmp_path / "4.csv")
    assert f"{other}, line 2: document '007' has another title here" in told([*parts, other])
    lacking = save_table(PRODUCTS.drop(columns="name"), tmp_path / "5.csv")
    assert f"{lacking}: no column name; it has" in told([*parts, lacking])
    assert "join those that have others by their ids first" in told([*parts, lacking])
    assert "judgements: several tables of documents hold none; name a file" in told(parts, None)
    assert "documents: an empty list; name a file" in told([])


def test_queries_in_a_table_of_their_own(tmp_path):
    queries = save_table(
        pd.DataFrame({"query_id": ["a", "b"], "query": ["cap", "tie"]}), tmp_path / "q.csv"
    )
    ratings = pd.DataFrame({"query_id": ["a"], "document_id": ["8"], "grade": [2]})
    given = {
        "documents": save_table(PRODUCTS, tmp_path / "p.parquet"),
        "judgements": save_table(ratings, tmp_path / "r.tsv"),
        "queries": queries,
        **NAMES,
    }
    assert read_table(**given).query_texts == ["cap"]
    assert read_table(**given, keep_unjudged=True).query_ids == ["a", "b"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"document_columns": {"id": "id", "title": "name"}},
            r"p\.csv: no column id; it has 'sku'",
        ),
        ({"document_columns": {"id": "sku", "text": "name"}}, "text unknown; use id and body"),
        ({"document_columns": {"id": ["sku", "name"]}}, "id and a field are needed"),
        ({"judgement_columns": {"query": "query"}}, "no query texts: name a table"),
        ({"judgement_columns": {**JUDGED, "who": "x"}}, "judgement_columns: who unknown"),
        ({"grades": {"Exact": 1}}, r"r\.csv, line 3: grade 'None' is not among Exact"),
        ({"grades": None}, r"r\.csv, line 2: grade 'Exact' is not an integer; .* option grades"),
        ({"grades": {"Exact": 1 << 70, "None": 0}}, r"r\.csv, line 2: grade \d+ is beyond"),
        (
            {"queries": RATINGS, "query_columns": {"txt": "x"}, "judgement_columns": None},
            "query_columns: txt unknown",
        ),
        ({"query_columns": {"id": "x"}}, "query_columns names columns of a table of queries"),
        ({"queries": RATINGS.assign(id="a")}, "judgement_columns.text: the texts are those of qu"),
        ({"queries": ["a.csv", "b.csv"]}, "queries: a list; name one file, and join several"),
    ],
)
def test_wrong_options_are_named(tmp_path, changes, message):
    given = {
        "documents": save_table(PRODUCTS, tmp_path / "p.csv"),
        "judgements": save_table(RATINGS, tmp_path / "r.csv"),
    }
    with pytest.raises(InputError, match=message):
        read_table(**{**given, **OPTIONS, **changes})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", "sku,name\n1,a\n1,b\n", "line 3: document '1' has another title here"),
        ("p.csv", "sku,name\n,a\n", "line 2: the document id is empty"),
        ("p.csv", "sku,name\n1\n", "line 2: 1 value, .* 2, .*; complete the line if it is cut"),
        ("p.csv", "sku,name\n", "no documents"),
        ("p.csv", "sku,sku,name\n1,2,a\n", "two columns are called sku; rename one"),
        ("p.jsonl", '{"sku": "1"}\n', r"p\.jsonl: no column name; it has 'sku'$"),
        ("p.jsonl", '{"sku": "1", "name": {"en": "a"}}\n', r"'sku', 'name\.en'; keys of nested ob"),
        (
            "p.jsonl",
            '{"sku": "1", "name": [["a"]]}\n',
            "line 1: name is a JSON list, expected text",
        ),
        ("p.jsonl", '{"sku": "1", "name": "a"}\n{"name": "a"}\n', "line 2: sku is missing"),
        ("p.json", '\n[\n{"sku": "1",\n"name": "a"},\n{"name": "2"}]', "line 5: sku is missing"),
        ("p.json", '[{"sku": "1", "name": "a"},\n2]', "line 2: not a JSON object"),
        ("p.json", '[{"sku": "1", "name": "a"},\n', "line 1: not a JSON object"),
        ("p.json", '[{"sku": "1", "name": "a"}]\n[]', "line 1: not a JSON object"),
        (
            "p.json",
            '{"products": [\n',
            "line 1: not a JSON object; .* or the file a list",
        ),
        ("p.json", "[]", r"p\.json: the table is empty"),
        ("p.jsonl", "", r"p\.jsonl: the table is empty"),
        ("p.parquet", "no table", "cannot be read as a table"),
        ("p.xls", "", r"the name must end in \.csv, .*save a spreadsheet as \.csv"),
    ],
)
def test_bad_tables_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name, RATINGS, **{**OPTIONS, **NAMES})


def test_a_list_with_many_spaces_is_read_in_time(tmp_path):
    """In a time that grows with the square of their number it would take hours."""
    path, spaces = tmp_path / "p.json", " \n" * 500_000
    objects = ['{"id": "1", "body": "a"}', '{"id": "2", "body": "b"}']
    path.write_text(f"[{spaces}{f'{spaces},{spaces}'.join(objects)}{spaces}]{spaces}")
    assert list(read_documents([path]).ids) == ["1", "2"]


def test_keys_may_be_absent_from_any_line_and_nested(tmp_path):
    products = [
        {"id": "1", "title": "Shoe"},
        {"id": "2", "text": {"en": "a hat", "de": "ein Hut"}, "title": "Hat", "body": "felt"},
        {"id": "3", "body": None, "title": "Cap"},
        {"id": "4", "body": "wool"},
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(product) + "\n" for product in products))
    read = read_documents([path])
    assert read.fields == {
        "title": ["Shoe", "Hat", "Cap", ""],
        "body": ["", "felt", "", "wool"],
    }
    absent = "absent keys of documents, taken as empty"
    assert read.facts[absent] == "'body' in 1 of 4 objects, 'title' in 1 of 4 objects"
    assert read.facts["columns of documents left out"].startswith("'text.en', 'text.de'; to read")
    read = read_documents([path], {"id": "id", "body": "text.en"})
    assert read.fields == {"body": ["", "a hat", "", ""]}
    assert read.facts[absent] == "'text.en' in 3 of 4 objects"


HTML = [
    ('<p>Caf&eacute; <a href="/a">au</a> lait</p>', "Café au lait"),
    ("a &lt;b&gt; <!-- <p> --> <br/>c &amp;eacute;", "a <b> c &eacute;"),
    ("<STYLE>p {}</style>x<script>if (a<b) y = '<p>'</Script >z", "x z"),
    ("1 < 2, x <- y, i<3 & j>4", "1 < 2, x <- y, i<3 & j>4"),
    ("H<sub>2</sub>O, Ca<SUP>2+</SUP>, <i>p</i>53 <em>in vivo</em>", "H2O, Ca2+, p53 in vivo"),
    ("one<br>two<p>three</p><b>four</b>five", "one two three four five"),
    ("open <script>lost", "open"),
    ("open <!-- lost", "open"),
    ("cut off <a href='x", "cut off <a href='x"),
]


def test_html_is_told_of_and_stripped(tmp_path):
    products = pd.DataFrame({"id": range(len(HTML)), "text": [html for html, _ in HTML]})
    path = save_table(products.assign(url="/a?b&amp;copy=1"), tmp_path / "p.csv")
    ratings = pd.DataFrame({"query_text": ["coffee"], "docno": ["1"], "grade": [1]})
    kept = read_table(path, ratings)
    assert kept.fields["body"] == list(products["text"])
    assert kept.remarks[0].startswith("67 % of the documents contain HTML, whose tags")
    stripped = read_table(path, ratings, markup="strip")
    assert stripped.fields["body"] == [text for _, text in HTML]
    assert stripped.fields["url"] == ["/a?b&amp;copy=1"] * len(HTML)
    assert stripped.description["HTML in documents"] == "stripped"
    with pytest.raises(InputError, match="markup must be 'keep' or 'strip'"):
        read_table(path, ratings, markup="drop")


def test_texts_that_stripping_leaves_empty_are_told_of():
    posts = pd.DataFrame(
        {"id": ["1", "2", "2", "3"], "body": ["<p>a", "<p>b", "<p>b", "c"]}
        | {"tags": ["<c++><math>", "<.net>", "<.net>", " "]}
    )
    ratings = pd.DataFrame({"query_text": ["b"], "docno": ["1"], "grade": [1]})
    columns = {"id": "id", "body": "body", "keywords": "tags"}
    told = [
        read_table(posts, ratings, document_columns=columns, markup=markup).description.get(
            "texts of tags alone, empty now"
        )
        for markup in ("keep", "strip")
    ]
    assert told == [None, "keywords of 1 document; write words like <c++> without < and >"]


@pytest.mark.parametrize(("taken", "n"), [("first", "1 document"), ("last", "2 documents")])
def test_texts_that_stripping_leaves_empty_are_told_of_as_they_are_taken(tmp_path, taken, n):
    posts = pd.DataFrame(
        {"id": ["1", "1", "2", "2", "3", "3"], "body": ["a", "<a>", "a", "<a>", "<a>", "a"]}
    )
    path = save_table(posts, tmp_path / "posts.csv")
    options = {"on_other_text": taken, "markup": "strip"}
    told = read_documents([path], {"id": "id", "body": "body"}, **options).facts
    assert told["texts of tags alone, empty now"].startswith(f"body of {n};")


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<!--", "<script>", '<a b="', "<a/", "&", "&#", "<!"]
)
def test_html_that_never_ends_takes_no_time(piece):
    for text in (piece * 100_000, piece + "x" * 100_000):
        assert len(without_markup(text)) <= len(text)
        html_share([[text]])


def test_spellings_of_a_query_without_an_id_are_one_query():
    read = read_table(PRODUCTS, RATINGS.assign(query=["Sneaker", " sneaker", "cap"]), **OPTIONS)
    assert list(read.query_texts) == ["Sneaker", "cap"]
    assert read.judgements.query.tolist() == [0, 0, 1]
    assert read.description["queries with several spellings (case, spaces); the first taken"] == 1


@pytest.mark.parametrize(
    ("query_id", "text", "message"),
    [
        ("1", "cap", "query '1' has the text 'cap' here, 'sneaker' before"),
        ("", "cap", "line 4: the query id is empty"),
        ("2", " ", "line 4: the query text is empty"),
    ],
)
def test_a_query_without_id_or_with_none_or_two_texts_is_refused(tmp_path, query_id, text, message):
    ratings = RATINGS.assign(id=["1", "1", query_id], query=["sneaker", "sneaker", text])
    columns = {"judgement_columns": {**JUDGED, "query": "id"}}
    with pytest.raises(InputError, match=message):
        read_table(PRODUCTS, save_table(ratings, tmp_path / "r.csv"), **{**OPTIONS, **columns})


def test_texts_in_another_encoding_are_named_or_read(tmp_path):
    given = {**OPTIONS, **NAMES}
    products = PRODUCTS.assign(name=["Caf\xe9", "T\xe9e", "\xd6l"])
    for suffix in (".csv", ".jsonl"):
        path, ratings = tmp_path / f"p{suffix}", save_table(RATINGS, tmp_path / f"r{suffix}")
        text = save_table(products, path).read_text(encoding="utf-8")
        path.write_text(text, encoding="latin-1")
        with pytest.raises(InputError, match=r"line [12]: byte 0xe9 .*encoding='cp1252'"):
            read_table(path, ratings, **given)
        found = read_table(path, ratings, **given, encoding="latin-1")
        assert found.fields["title"] == ["Caf\xe9", "T\xe9e", "\xd6l"]
    save_table(products, tmp_path / "p.csv")
    (tmp_path / "p.csv").write_bytes((tmp_path / "p.csv").read_text("utf-8").encode("utf-16"))
    (tmp_path / "r.csv").write_bytes((tmp_path / "r.csv").read_text("utf-8").encode("utf-16"))
    found = read_table(tmp_path / "p.csv", tmp_path / "r.csv", **given, encoding="utf-16")
    assert found.fields["title"] == ["Caf\xe9", "T\xe9e", "\xd6l"]
    save_table(RATINGS.assign(query=["Stra\xdfe", "Stra\xdfe", "\u20ac"]), tmp_path / "u.csv")
    marked = b"\xef\xbb\xbf" + (tmp_path / "u.csv").read_bytes()
    (tmp_path / "marked.csv").write_bytes(marked)
    products.to_csv(tmp_path / "l.csv", index=False, encoding="latin-1")
    for catalogue, encoding in (("p.csv", "utf-16"), ("l.csv", "latin-1"), ("l.csv", "cp1252")):
        for ratings in ("u.csv", "marked.csv"):  # in UTF-8, unlike the catalogue
            tables = tmp_path / catalogue, tmp_path / ratings
            found = read_table(*tables, **given, encoding=encoding)
            assert found.query_texts == ["Stra\xdfe", "\u20ac"]
            assert found.fields["title"] == ["Caf\xe9", "T\xe9e", "\xd6l"]
    with pytest.raises(InputError, match=r"\.csv: byte 0xff is not ascii; name another"):
        read_table(tmp_path / "p.csv", tmp_path / "r.csv", **given, encoding="ascii")
    with pytest.raises(InputError, match="encoding 'utf-88' is unknown"):
        read_table(tmp_path / "p.csv", tmp_path / "r.csv", **given, encoding="utf-88")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (
            None,
            "'bullets', 'page'; to read 'bullets' too, name all columns: "
            """document_columns.body='["text", "bullets"]' document_columns.title=name""",
        ),
        (
            {"id": "sku", "title": "name", "url": "page"},
            "'text', 'bullets'; to read 'text' too, name all columns: document_columns.id=sku "
            "document_columns.title=name document_columns.url=page document_columns.body=text",
        ),
        (
            {"id": 1, "title": 2, "body": [3, 4]},
            "5; to read 5 too, name all columns: document_columns.id=1 document_columns.title=2 "
            "document_columns.body='[3, 4, 5]'",
        ),
        (COLUMNS, None),
    ],
)
def test_columns_that_are_left_out_are_told_with_what_to_write(tmp_path, columns, told):
    path = save_table(PRODUCTS, tmp_path / "p.csv")
    fact = "columns of documents left out"
    assert read_documents([path], columns).facts.get(fact) == told
    if told is not None:  # what it says to write reads one column more
        first, *others = told.partition(";")[0].split(", ")
        options = settings(shlex.split(told.partition("name all columns: ")[2]), "option")
        more = read_documents([path], options["document_columns"]).facts.get(fact, "")
        assert more.partition(";")[0] == ", ".join(others), first


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_long_documents_are_read_a_few_at_a_time(tmp_path, suffix):
    """Memory must not grow with a file of books or patents, however few rows it has."""
    path = tmp_path / f"books{suffix}"
    frame = pd.DataFrame({"id": list("abcdefgh"), "text": [c * 8_000_000 for c in "abcdefgh"]})
    if suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    read = list(blocks(path, ["id", "text"]))
    assert max(len(block.line) for block in read) <= 3
    assert [i for block in read for i in texts(block, "id")[0]] == list("abcdefgh")
    assert np.concatenate([block.line for block in read]).tolist() == list(range(1, 9))
