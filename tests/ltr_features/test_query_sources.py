"""Queries that were made from documents of the collection: the user is told, and may say so."""

from __future__ import annotations

import json

import pytest
from toys import refused
from toys import run as command

from letor import evaluate
from letor.column_names import read_rows
from ltr_features.columns.context import open_workspace

CLAIMS = [
    "1. A hinge comprising a spring and two leaves, wherein the spring presses the leaves apart.",
    "1. A valve comprising a seat, a disc and a spring that presses the disc onto the seat.",
    "1. A lock comprising a spring, a bolt and a keyway, wherein the bolt slides in two leaves.",
    "1. A pump comprising a disc and a seat, wherein a bolt holds the disc in the keyway.",
]


@pytest.fixture
def patents(tmp_path):
    """Options of the source ``table``: the queries are claims of the documents of the same ids."""
    names = [f"US-{n}" for n in range(1, 5)]
    documents = [
        {"id": name, "title": claims.split()[2], "text": f"Claims:\n{claims}\nDescription ..."}
        for name, claims in zip(names, CLAIMS, strict=True)
    ]
    queries = [
        {"query_id": name, "text": claims} for name, claims in zip(names, CLAIMS, strict=True)
    ]
    for path, rows in (("documents.jsonl", documents), ("queries.jsonl", queries)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / path).write_text(lines, encoding="utf-8")
    judged = "".join(f"US-{n}\tUS-{m}\t1\n" for n, m in ((1, 2), (2, 1), (3, 4), (4, 3)))
    (tmp_path / "cited.tsv").write_text("query_id\tdoc_id\tgrade\n" + judged, encoding="utf-8")
    return [
        f"documents={tmp_path / 'documents.jsonl'}",
        f"queries={tmp_path / 'queries.jsonl'}",
        f"judgements={tmp_path / 'cited.tsv'}",
    ]


def indexed(patents, folder, *options):
    return command("index", "table", *patents, *options, "--out", folder / "workspace")


def own_rows(folder):
    """The queries whose own document is among the rows of ``columns build``."""
    rows = folder / "rows.txt"
    command(
        "columns", "build", "--workspace", folder / "workspace", "--family", "vsm", "--out", rows
    )
    data = read_rows(rows)
    of_row = [data.query_ids[query] for query in data.query_index]
    return [q for q, d in zip(of_row, data.document_ids, strict=True) if q == d]


def test_own_documents_are_told_and_left_out(patents, tmp_path):
    said = indexed(patents, tmp_path).stderr
    assert "100 % of the queries have the id of a document that has their text" in said
    assert 'index --sources same-id, or sources = "same-id" of an experiment' in said
    assert len(own_rows(tmp_path)) == 4

    said = indexed(patents, tmp_path, "--sources", "same-id").stderr
    assert "that has their text" not in said
    assert "4 of 4 queries were drawn from documents of the collection" in said
    assert own_rows(tmp_path) == []


def test_queries_with_html_are_told_and_recognised(patents, tmp_path):
    """Only the documents are stripped."""
    for path in (tmp_path / "documents.jsonl", tmp_path / "queries.jsonl"):
        text = path.read_text(encoding="utf-8").replace("spring", "<em>spring</em>")
        path.write_text(text.replace("a disc", "a&nbsp;disc"), encoding="utf-8")
    said = indexed(patents, tmp_path, "markup=strip").stderr
    assert "% of the documents contain HTML" not in said
    assert "100 % of the queries contain HTML, whose tags and character references are" in said
    assert "100 % of the queries have the id of a document that has their text" in said


def test_sources_of_some_queries_alone(patents, tmp_path):
    """The others' own documents are ranked, which is told."""
    (tmp_path / "sources.tsv").write_text("US-1\tUS-1\n", encoding="utf-8")
    said = indexed(patents, tmp_path, "--sources", tmp_path / "sources.tsv").stderr
    assert "1 of 4 queries were drawn from documents of the collection" in said
    assert "75 % of the queries have the id of a document that has their text" in said
    assert own_rows(tmp_path) == ["US-2", "US-3", "US-4"]


def test_sources_from_a_file(patents, tmp_path):
    (tmp_path / "sources.tsv").write_text("US-1\tUS-1\nUS-3\tUS-4\n", encoding="utf-8")
    indexed(patents, tmp_path, "--sources", tmp_path / "sources.tsv")
    found = open_workspace(tmp_path / "workspace").collection
    assert found.query_sources.tolist() == [0, -1, 3, -1]


def test_own_documents_are_not_relevant(patents, tmp_path):
    """No ranking can show them, so that they would lower every measure; US-2 is unjudged then."""
    with open(tmp_path / "cited.tsv", "w", encoding="utf-8") as file:
        file.write("query_id\tdoc_id\tgrade\nUS-1\tUS-1\t2\nUS-1\tUS-3\t1\nUS-2\tUS-2\t2\n")
    own = "judgements of documents that their query was made from, left out: 2"
    assert own in indexed(patents, tmp_path, "--sources", "same-id").stdout
    collection = open_workspace(tmp_path / "workspace").collection
    judged = collection.judgements
    assert [judged.query.tolist(), judged.document.tolist()] == [[0], [2]]
    assert own_rows(tmp_path) == []
    rows = read_rows(tmp_path / "rows.txt")
    assert evaluate(rows, -rows.X[:, 0], ["recall@3"])["recall@3"].dropna().tolist() == [1.0]


def test_queries_judged_for_their_own_documents_alone_are_refused(patents, tmp_path):
    with open(tmp_path / "cited.tsv", "w", encoding="utf-8") as file:
        file.write("query_id\tdoc_id\tgrade\nUS-1\tUS-1\t2\nUS-2\tUS-2\t2\n")
    out = ("--out", tmp_path / "workspace")
    message = refused("index", "table", *patents, "--sources", "same-id", *out)
    assert "if it is to be found, give no sources" in message


def test_rows_of_own_documents_are_told(patents, tmp_path):
    indexed(patents, tmp_path, "--sources", "same-id")
    rows = "".join(f"1 qid:US-1 1:{n} #docid = US-{n}\n" for n in (1, 2, 3))
    (tmp_path / "rows.txt").write_text(rows, encoding="utf-8")
    append = (
        "--workspace",
        tmp_path / "workspace",
        "--family",
        "vsm",
        "--out",
        tmp_path / "new.txt",
    )
    said = command("columns", "append", tmp_path / "rows.txt", *append).stderr
    assert "1 of 3 rows are of the document that their query was made from" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("US-1\tUS-1\nUS-2\tEP-2\n", "query 'US-2' has the source 'EP-2', which is no document"),
        ("7\tUS-1\n", "no query has a document there; query ids 'US-1'"),
        ("7\tUS-1\n", "; the file has '7' and 'US-1'"),
        ("US-1\n", "line 1: expected query id, tab, source"),
        (
            "US-1\tUS-2\nUS-1\tUS-3\n",
            "line 2: query 'US-1' has the source 'US-3' here, but 'US-2' before; of a query made "
            "from several documents name one, and take the others out of its candidates",
        ),
    ],
)
def test_sources_that_are_wrong(patents, tmp_path, text, message):
    (tmp_path / "sources.tsv").write_text(text, encoding="utf-8")
    options = ["--sources", tmp_path / "sources.tsv", "--out", tmp_path / "workspace"]
    assert message in refused("index", "table", *patents, *options)
    assert not (tmp_path / "workspace").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.csv", "query_id,source\nUS-1,US-1\nUS-2,\n"),
        ("sources.tsv", "query_id\tsource\nUS-1\tUS-1\nUS-2\t\n"),
        ("sources.jsonl", '{"_id": "US-1", "source": "US-1"}\n{"_id": "US-2", "text": "x"}\n'),
    ],
)
def test_queries_of_a_table_may_have_no_source(patents, tmp_path, name, text):
    """Those that people wrote, beside others that were made from documents."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    said = indexed(patents, tmp_path, "--sources", tmp_path / name).stderr
    assert "1 of 4 queries were drawn from documents" in said


def test_ids_that_agree_by_chance_are_not_told(patents, tmp_path):
    path = tmp_path / "queries.jsonl"
    text = path.read_text(encoding="utf-8").replace("1. A ", "Which ")
    path.write_text(text, encoding="utf-8")
    assert "that has their text" not in indexed(patents, tmp_path).stderr
