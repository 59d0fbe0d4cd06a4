"""Whatever a command writes, or `index` reads, the others read: the same content in every form that
there is, by every command."""

from __future__ import annotations

import bz2
import gzip
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from toys import refused, run

from letor.column_names import read_rows, write_rows
from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import evaluate
from ltr_features.sources.files import (
    read_judgements,
    read_queries,
    read_ranking,
    read_titles,
)
from ltr_features.sources.registry import read_collection

QUERIES = {"q1": "red shoe", "q2": "blue: hat", "q 3": "green sock"}
TITLES = {f"d{i}": f"The {word} one" for i, word in enumerate(["red", "blue", "green", "grey"])}
LABELS = {("q1", "d0"): 2, ("q1", "d3"): 0, ("q2", "d1"): 1, ("q2", "d2"): 0, ("q 3", "d2"): 1}
#: TREC's files and LETOR text hold no blanks in ids.
PLAIN = {pair: label for pair, label in LABELS.items() if " " not in pair[0]}
PLAIN_QUERIES = {query: text for query, text in QUERIES.items() if " " not in query}


def lines(*rows, sep):
    return "".join(sep.join(map(str, row)) + "\n" for row in rows)


def table(path, **columns):
    """Write a table in the format of the name."""
    frame = pd.DataFrame(columns)
    kind = path.suffixes[0]
    if kind == ".parquet":
        names = [c for c, values in columns.items() if isinstance(values[0], str)]
        large = {c: pa.array(columns[c], pa.large_string()) for c in names}  # as polars writes it
        pq.write_table(pa.table({**columns, **large}), path)
        return
    if kind == ".jsonl":
        text = frame.to_json(orient="records", lines=True)
    else:
        text = frame.to_csv(index=False, sep="," if kind == ".csv" else "\t")
    packed(path, text)


def packed(path, text):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
    path.write_bytes(pack.get(path.suffix, bytes)(text.encode()))


def save_judgements(path, labels):
    queries, documents = zip(*labels, strict=True)
    values = list(labels.values())
    if path.name.startswith("rows"):
        data = RankingData.from_rows(
            [[0.5]] * len(values), values, queries, document_ids=pd.array(documents, dtype=object)
        )
        write_rows(data, path)
    elif path.name.startswith("bare"):
        packed(path, lines(*zip(queries, documents, values, strict=True), sep="\t"))
    elif path.suffixes[0] in (".txt", ".qrels"):
        zeros = ["0"] * len(values)
        packed(path, lines(*zip(queries, zeros, documents, values, strict=True), sep=" "))
    else:
        names = {"beir": ("query-id", "corpus-id", "score")}
        q, d, g = names.get(path.name.split(".")[0], ("query_id", "document_id", "grade"))
        table(path, **{q: queries, d: documents, g: values})


JUDGEMENTS = [
    "qrels.txt", "qrels.txt.gz", "a.qrels.bz2", "a.qrels.zst", "beir.tsv", "bare.tsv", "bare.txt",
    "a.csv", "a.csv.gz", "a.tsv.zst", "a.jsonl", "a.jsonl.bz2", "a.parquet", "rows.txt",
    "rows.txt.gz", "rows.parquet",
]  # fmt: skip


def save_queries(path, texts):
    pairs = texts.items()
    if path.name.startswith("topics"):
        tops = (f"<top>\n<num> Number: {q}\n<title> {t}\n</top>\n" for q, t in pairs)
        packed(path, "".join(tops))
    elif path.name.startswith("xml"):
        packed(path, "".join(f'<topic number="{q}"><query>{t}</query></topic>' for q, t in pairs))
    elif path.suffixes[0] == ".txt" or path.name.startswith("bare"):
        packed(path, lines(*pairs, sep=":" if path.suffixes[0] == ".txt" else "\t"))
    else:
        names = {"beir": ("_id", "text"), "clicks": ("query", "text")}
        i, t = names.get(path.name.split(".")[0], ("query_id", "query"))
        table(path, **{i: list(texts), t: list(texts.values())})


QUERY_FILES = [
    "topics.trec", "xml.xml", "a.txt", "a.txt.gz", "bare.tsv", "beir.jsonl", "beir.jsonl.gz",
    "clicks.tsv", "a.csv", "a.csv.zst", "a.parquet",
]  # fmt: skip


def save_documents(path):
    ids, texts = list(TITLES), list(TITLES.values())
    if path.suffixes[0] == ".trec":
        docs = "".join(
            f"<DOC>\n<DOCNO>{i}</DOCNO>\n<TITLE>{t}</TITLE>\n</DOC>\n" for i, t in TITLES.items()
        )
        packed(path, docs)
    elif path.name.startswith("beir"):
        table(path, _id=ids, title=texts, text=["xyz"] * len(ids))
    else:
        table(path, id=ids, text=texts)


DOCUMENTS = ["beir.jsonl", "beir.jsonl.gz", "a.trec", "a.trec.bz2", "a.csv", "a.csv.gz",
             "a.parquet"]  # fmt: skip

RANKING = {("q1", "d1"): 3.0, ("q1", "d0"): 2.0, ("q2", "d1"): 1.5, ("q2", "d0"): -1.0}


def save_ranking(path):
    (queries, documents), scores = zip(*RANKING, strict=True), list(RANKING.values())
    if path.suffixes[0] == ".run":
        rows = ((q, "Q0", d, 1, s, "me") for (q, d), s in RANKING.items())
        packed(path, lines(*rows, sep=" "))
    else:
        table(path, qid=queries, docno=documents, score=scores, rank=[1, 2, 1, 2])


RANKINGS = ["a.run", "a.run.gz", "a.run.zst", "a.csv", "a.csv.gz", "a.tsv", "a.jsonl", "a.parquet"]


@pytest.mark.parametrize("name", JUDGEMENTS)
def test_judgements_in_every_form(tmp_path, name):
    labels = PLAIN if name.startswith(("qrels", "a.qrels", "rows.txt")) else LABELS
    save_judgements(tmp_path / name, labels)
    found = read_judgements(tmp_path / name)
    assert {(r.qid, r.docno): r.label for r in found.itertuples()} == labels


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.qrels"])
def test_grades_may_be_whole_numbers_with_a_point(tmp_path, name):
    """As pandas writes a column of integers in which a value was missing once."""
    path, grades = tmp_path / name, [1.0, 2.0, 0.0]
    if name == "a.qrels":
        path.write_text("q 0 a 1.0\nq 0 b 2.00\nq 0 c 0e0\n")
    else:
        table(path, qid=["q"] * 3, docno=["a", "b", "c"], grade=grades)
    assert read_judgements(path)["label"].tolist() == grades


@pytest.mark.parametrize("name", QUERY_FILES)
def test_queries_in_every_form(tmp_path, name):
    texts = PLAIN_QUERIES if name.startswith("a.txt") else QUERIES
    save_queries(tmp_path / name, texts)
    assert read_queries(tmp_path / name) == texts


def test_queries_may_be_those_of_judgements(tmp_path):
    """A row per judgement repeats the query's text."""
    table(tmp_path / "a.csv", query_id=["q1", "q1", "q2"], query=["x", "x", "y"], label=[1, 0, 1])
    assert read_queries(tmp_path / "a.csv") == {"q1": "x", "q2": "y"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_titles_in_every_form(tmp_path, name):
    save_documents(tmp_path / name)
    assert read_titles(tmp_path / name, ["d1", "d3", "d9"]) == {
        "d1": TITLES["d1"], "d3": TITLES["d3"],
    }  # fmt: skip


def test_long_titles_are_cut_with_an_ellipsis(tmp_path):
    texts = {"a": "x" * 90, "b": "long  words " * 20}
    table(tmp_path / "d.csv", id=list(texts), text=list(texts.values()))
    found = read_titles(tmp_path / "d.csv", list(texts))
    assert found == {"a": "x" * 90, "b": ("long words " * 20)[:89] + "…"}


@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_in_every_form(tmp_path, name):
    save_ranking(tmp_path / name)
    found = read_ranking(tmp_path / name)
    assert {(r.qid, r.docno): r.score for r in found.itertuples()} == RANKING


def invoke(command):
    return run(*shlex.split(command))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("i", range(len(JUDGEMENTS)))
def test_commands_take_every_form(folder, i):
    """The commands that take files, each on other forms of all of them: nothing depends on it."""
    judgements, ranking = JUDGEMENTS[i], RANKINGS[i % len(RANKINGS)]
    queries, documents = QUERY_FILES[i % len(QUERY_FILES)], DOCUMENTS[i % len(DOCUMENTS)]
    save_judgements(folder / judgements, PLAIN)
    for part in ("queries", "documents", "runs"):
        (folder / part).mkdir()
    save_queries(folder / "queries" / queries, PLAIN_QUERIES)
    save_documents(folder / "documents" / documents)
    save_ranking(folder / "runs" / ranking)
    save_documents(folder / "all.trec")
    told = invoke(f"measure {judgements} --scores runs/{ranking} --cutoff 2").stdout
    assert measured(told) == pytest.approx(evaluate(frame(PLAIN, "label"), frame(RANKING), ["map"])
                                           .mean().item(), abs=1e-4)  # fmt: skip
    if judgements.startswith("rows"):
        return  # rows of features are no judgements to index
    for source, given in {
        "trec": f"documents=all.trec topics=queries/{queries} qrels={judgements}",
        "table": f"documents=documents/{documents} document_columns.id={id_of(documents)} "
        f"document_columns.body=text judgements={judgements} queries=queries/{queries}",
    }.items():
        if source == "table" and documents.startswith("a.trec"):
            continue
        invoke(f"index {source} {given} --out {source}")
        collection = read_collection("collection", folder=f"{source}/collection")
        assert (collection.document_ids, collection.query_ids) == (list(TITLES), ["q1", "q2"])
        assert collection.query_texts == ["red shoe", "blue: hat"]
        assert collection.judgements.grade.tolist() == list(PLAIN.values())
    build = f"columns build --workspace trec --family vsm --candidates judged.path={judgements}"
    invoke(f"{build} --candidates run.path=runs/{ranking} --out built.parquet")
    pairs = read_rows("built.parquet")
    assert len(pairs) == len({*PLAIN, *RANKING})
    invoke("columns append built.parquet --workspace trec --family letor46 --out more.txt")
    assert read_rows("more.txt").X.shape == (len(pairs), 47)


@pytest.mark.parametrize("name", ["ranks.tsv", "ranks.tsv.gz", "ranks.txt", "trec.tsv"])
def test_runs_without_scores_or_names_are_rankings(folder, name):
    """MS MARCO's, of three columns, and TREC's in a .tsv."""
    ranks = {pair: 1 + i % 2 for i, pair in enumerate(RANKING)}
    of_trec = name.startswith("trec")
    rows = (
        (q, "Q0", d, r, RANKING[q, d], "me") if of_trec else (q, d, r)
        for (q, d), r in ranks.items()
    )
    packed(folder / name, lines(*rows, sep="\t"))
    found = {(r.qid, r.docno): r.score for r in read_ranking(name).itertuples()}
    expected = RANKING if of_trec else {pair: 1 / rank for pair, rank in ranks.items()}
    assert found == expected
    save_judgements(folder / "a.csv", PLAIN)
    told = invoke(f"measure a.csv --scores {name} --cutoff 2").stdout
    assert measured(told) == pytest.approx(
        evaluate(frame(PLAIN, "label"), frame(RANKING), ["map"]).mean().item(), abs=1e-4
    )
    save_documents(folder / "documents.csv")
    save_queries(folder / "queries.csv", PLAIN_QUERIES)
    invoke("index table documents=documents.csv judgements=a.csv queries=queries.csv --out w")
    built = f"--family scores --option scores.files.s={name} --candidates run.path={name}"
    invoke(f"columns build --workspace w {built} --out built.parquet")
    assert read_rows("built.parquet").X.ravel().tolist() == pytest.approx(list(expected.values()))


def id_of(name):
    return "_id" if name.startswith("beir") else "id"


def measured(text):
    """The value of the measure called map."""
    (line,) = [line for line in text.splitlines() if " map " in line.lower()][:1]
    return float(next(word for word in line.split() if word[:2] in ("0.", "1.")))


def frame(values, name="score"):
    queries, documents = zip(*values, strict=True)
    return pa.table({"qid": queries, "docno": documents, name: list(values.values())})


@pytest.mark.parametrize("i", range(3))
def test_compare_takes_every_form(folder, i):
    for part in ("queries", "documents", "runs"):
        (folder / part).mkdir()
    judgements = ["beir.tsv", "a.csv.gz", "rows.parquet"][i]
    queries, documents = (
        ["a.txt", "beir.jsonl.gz", "a.parquet"][i],
        ["a.trec", "a.csv", "a.parquet"][i],
    )
    save_judgements(folder / judgements, PLAIN)
    save_queries(folder / "queries" / queries, PLAIN_QUERIES)
    save_documents(folder / "documents" / documents)
    save_ranking(folder / "a.run")
    save_ranking(folder / "runs" / RANKINGS[-1 - i])
    invoke(
        f"compare a.run runs/{RANKINGS[-1 - i]} --name one --name two --qrels {judgements} "
        f"--queries queries/{queries} --documents documents/{documents} --permutations 10 --out out"
    )
    html = Path("out/report/report.html").read_text(encoding="utf-8")
    assert "blue: hat" in html


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "qid,docno\nq1,d0\n", r"none has a usual name for grade: call it grade"),
        ("a.csv", "thema,id\nq1,d0\n", r"query or document or grade: call them qid, docno, grade"),
        ("a.jsonl", '{"qid": "q1", "docno": "d0", "grade": 1}\n{"qid": "q1", "docno": "d1"}\n',
         r"a\.jsonl, line 2: grade is missing"),
        ("a.jsonl", '{"qid": null, "docno": "d0", "grade": 1}\n', r"line 1: the query id is empty"),
        ("a.csv", "qid,docno,grade\nq1,d0,x\n", r"a\.csv, line 2: grade 'x' is not an integer"),
        ("a.csv", "qid,docno,grade\nq1,d0,1.5\n", r"a\.csv, line 2: grade '1.5' is not an int"),
        ("a.csv", "qid,docno,grade\nq1,d0,inf\n", r"a\.csv, line 2: grade 'inf' is not an int"),
        ("a.tsv", "qid\tdocno\tgrade\nq1\td0\t1\nq1\td0\t2\n", r"a\.tsv, line 3: query 'q1'"),
        ("a.qrels", "q1 0 d0 1\nq1 0 d0\n", r"a\.qrels:2: 3 fields instead of 4"),
        ("a.csv", "qid,docno,grade\nq1,d\xff0,1\n", r"a\.csv, line 2: byte 0xff .* is not UTF-8"),
        ("a.qrels", "q1 0 d0 1\nq1 0 d\xff 1\n", r"a\.qrels, line 2: byte 0xff .* is not UTF-8"),
    ],
)  # fmt: skip
def test_bad_judgements_are_named(tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        read_judgements(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "qid,docno,s\nq1,d0,1\nq1,d0,2\n", r"line 3: 's' is 2 for .* 1 before"),
        ("a.csv", "qid,docno,a,b\nq1,d0,1,2\n", r"'a', 'b' may be scores; keep one, or call it"),
        ("a.csv", "qid,docno,s\nq1,d0,nan\n", r"line 2: 's' is missing or NaN"),
        ("a.csv", "qid;s\nq0;1\n", r"is neither a run .* its columns are 'qid', 's'; if"),
        ("a.run", "q1 Q0 d0 1 2.5\n", r"its first line has 5 fields \('q1 Q0 d0 1 2.5'\)"),
        ("a.run", "q1 Q0 d0 1 2 t\nq1 Q0 d\xff 2 1 t\n", r"a\.run, line 2: byte 0xff .* UTF-8"),
        ("a.run", "\n", r"a\.run is empty"),
        ("a.run", "q1 Q0 d0 1 x t\n", r"a\.run:1: score 'x' is not a number"),
    ],
)  # fmt: skip
def test_bad_rankings_are_named(tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=message):
        read_ranking(tmp_path / name)


def test_a_process_ends_when_a_table_is_refused(tmp_path):
    """Arrow's reader is left in the middle of the file, with a thread that reads on."""
    large = "".join(f"q{i},d{i},{'x' if i == 5 else 1}\n" for i in range(200_000))
    packed(tmp_path / "a.csv.gz", f"qid,docno,grade\n{large}")
    code = "import sys; from ltr_features.sources.files import *; read_judgements(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.csv.gz")],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "line 7: grade 'x' is not an integer" in done.stderr.splitlines()[-1]
    assert done.returncode == 1


def test_ids_that_match_nothing_are_shown_on_both_sides(folder):
    save_judgements(folder / "qrels.txt", {("q1", "D-0"): 1})
    save_ranking(folder / "a.run")
    measure = ("measure", "qrels.txt", "--scores", "a.run")
    told = refused(*measure)
    assert "a.run: none of its 2 documents ('d1', 'd0')" in told
    assert "the 1 that are judged ('D-0')" in told
    save_judgements(folder / "qrels.txt", {("1", "d0"): 1})
    assert "none of its 2 queries ('q1', 'q2') is among the 1 that" in refused(*measure)
    save_judgements(folder / "qrels.txt", {("Q1", "d0"): 1})
    assert "('Q1'); there is 'Q1': write ids alike in all files (these differ" in refused(*measure)
    save_judgements(folder / "rows.txt", PLAIN)
    other = {"_id": "x", "title": "", "text": "yes"}
    (folder / "beir" / "qrels").mkdir(parents=True)
    (folder / "beir" / "corpus.jsonl").write_text(json.dumps(other) + "\n")
    (folder / "beir" / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "y"}) + "\n")
    (folder / "beir" / "qrels" / "test.tsv").write_text("q1\tx\t1\n")
    invoke("index beir folder=beir --out workspace")
    append = "columns append rows.txt --workspace workspace --family vsm --out b.txt"
    told = refused(*append.split(), "--on-missing", "zero")
    assert "the rows' document ids are 'd0', 'd3', 'd1', ..., the collection's 'x'" in told
