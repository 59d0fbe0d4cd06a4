"""Columns of scores and vectors from elsewhere."""

import gzip
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from random_collection import random_collection
from safetensors.numpy import save_file
from toys import context_of, refused, run, toy

from letor.column_names import read_names
from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning
from letor.parquet import write_parquet
from letor.rankers import get_ranker
from letor.svmlight import read_letor
from ltr_features.blocks import write_columns
from ltr_features.candidates import choose_candidates
from ltr_features.column_workers import blocks_on
from ltr_features.columns.context import make_workspace, open_workspace
from ltr_features.columns.document_numbers import DocumentNumbers
from ltr_features.columns.given_scores import GivenScores
from ltr_features.columns.given_vectors import GivenVectors
from ltr_features.embeddings.id_vectors import read_id_vectors
from ltr_features.feature_builder import FeatureBuilder
from ltr_features.feature_table import build_columns
from ltr_features.part_store import PartFolder
from ltr_features.remarks import family_remarks
from ltr_features.sample import write_sample
from ltr_features.scoring import ScoringPipeline
from ltr_features.sources.score_tables import read_scores, score_columns
from ltr_features.text.collection import Pairs

#: (query, document): score; "a" and "b" have no score for d2, "c" is not in the collection.
SCORES = {("a", "d0"): 1.5, ("a", "d1"): -2.0, ("b", "d0"): 3.0, ("b", "d1"): 3.0, ("c", "d0"): 9.0}
BM25 = {"bm25": {"depth": 5}}
PAIRS = Pairs(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 1, 2]))


@pytest.fixture(scope="module")
def context():
    collection = toy({"body": ["one two", "two three", "three"]}, ["one", "two"])
    return context_of(replace(collection, query_ids=["a", "b"]))


def write(path, form):
    rows = [(q, d, s) for (q, d), s in SCORES.items()]
    if form == "run":
        path.write_text("".join(f"{q} Q0 {d} 1 {s} x\n" for q, d, s in rows))
    elif form in ("csv", "tsv"):
        mark = {"csv": ",", "tsv": "\t"}[form]
        lines = ["Query-Id,Doc ID,rank,engine", *(f"{q},{d},1,{s}" for q, d, s in rows)]
        path.write_text("\n".join(lines).replace(",", mark) + "\n")
    elif form == "csv.gz":
        text = "score,docno,qid\n" + "".join(f"{s},{d},{q}\n" for q, d, s in rows)
        path.write_bytes(gzip.compress(text.encode()))
    elif form == "jsonl":
        lines = [f'{{"qid": "{q}", "docno": "{d}", "s": {s}}}\n' for q, d, s in rows]
        path.write_text("".join(lines))
    else:
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip(("query_id", "doc_id", "s"), columns, strict=True))), path)
    return path


@pytest.mark.parametrize("form", ["run", "csv", "tsv", "csv.gz", "jsonl", "parquet"])
def test_every_form_gives_the_same_column(context, tmp_path, form):
    family = GivenScores(files={"engine": write(tmp_path / f"scores.{form}", form)}, missing=-7)
    family.check(context)
    assert family.column_names == ["engine"]
    assert family.compute(context, PAIRS).ravel().tolist() == [1.5, -2, -7, 3, -7]
    assert family.n_missing(context, PAIRS) == [2]
    told = "engine: 2 of 5 rows (40.0 %) have no score and get -7"
    assert family.missing_remark("engine", 2, 5) == told
    assert family.trained_on == "given; not checked for leaks"


def test_the_columns_of_letor_rows_are_scores(context, tmp_path):
    path = tmp_path / "rows.txt"
    rows = ["2 qid:a 1:1.5 3:7 #docid = d0", "0 qid:a 1:-2 #docid = d1", "1 qid:b 2:3 #docid = d1"]
    path.write_text("".join(f"{row}\n" for row in rows))
    family = GivenScores(files={"own": path})
    family.check(context)
    assert [column.name for column in family.columns] == ["own_1", "own_2", "own_3"]
    values = [[1.5, 0, 7], [-2, 0, 0], [-2, 0, 0], [0, 3, 0], [0, 0, 0]]
    np.testing.assert_array_equal(family.compute(context, PAIRS), np.float32(values))
    one = GivenScores(files={"own": path}, scores=["2"])
    np.testing.assert_array_equal(one.compute(context, PAIRS)[:, 0], [0, 0, 0, 3, 0])
    with pytest.raises(InputError, match=r"rows.txt: no column '4'"):
        read_scores(path, scores=["4"])
    path.write_text("2 qid:a 1:1.5\n")
    with pytest.raises(InputError, match=r"rows.txt: no document ids, by which scores are joined"):
        read_scores(path)


def test_missing_scores_may_be_the_querys_lowest(context, tmp_path):
    path = tmp_path / "s.tsv"
    path.write_text("qid\tdocno\ts\na\td0\t1.5\na\td1\t-2\n")
    family = GivenScores(files={"s": path}, missing="lowest")
    assert family.compute(context, PAIRS).ravel().tolist() == [1.5, -2, -2, -2, -2]


def test_a_pair_without_a_score_is_above_none_that_has_one(context, tmp_path):
    path = tmp_path / "log-probabilities.tsv"
    path.write_text("qid\tdocno\ts\na\td0\t-1.5\na\td1\t-2\nb\td1\t3\n")
    family = GivenScores(files={"s": path})
    assert family.compute(context, PAIRS).ravel().tolist() == [-1.5, -2, -2, 3, 0]
    assert GivenScores(files={"s": path}, missing=0).compute(context, PAIRS)[2] == 0


@pytest.mark.parametrize("word", ["1_0", "\u0661", "x"])
def test_a_score_that_is_no_number_is_named_with_its_line(word, tmp_path):
    """Python takes 1_0 and other scripts' digits for numbers, Arrow does not."""
    path = tmp_path / "s.csv"
    path.write_text(f"qid,docno,s\na,d0,1\nb,d1,{word}\n", encoding="utf-8")
    with pytest.raises(InputError, match=rf"s\.csv, line 3: 's' is '{word}', not a number"):
        read_scores(path)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_index_of_a_frame_is_no_score(kind, tmp_path):
    """It counts the rows of the table, which are often in the order of the labels."""
    frame = pd.DataFrame(
        {"qid": ["a", "a", "b"], "docno": ["x", "y", "x"], "bm25": [3.0, 2.0, 1.0]}
    )
    path, sorted_frame = tmp_path / f"s.{kind}", frame.iloc[[2, 0, 1]]
    getattr(sorted_frame, f"to_{kind}")(path)
    assert list(read_scores(path).scores) == score_columns(path) == ["bm25"]


@pytest.mark.parametrize("name", ["label", "Relevance", "esci_label"])
def test_judgements_are_no_scores_unless_named(name, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text(f"qid,docno,{name},dense\na,d0,1,0.5\na,d1,0,0.25\n")
    with pytest.raises(InputError, match=f"column '{name}' looks like judgements"):
        score_columns(path)
    with pytest.raises(InputError, match=f"column '{name}' looks like judgements"):
        read_scores(path)
    assert list(read_scores(path, scores=["dense"]).scores) == ["dense"]
    assert list(read_scores(path, scores=[name]).scores) == [name]


def test_whole_numbers_that_no_double_holds_are_scores(tmp_path):
    path = tmp_path / "s.parquet"
    pd.DataFrame({"qid": ["a"], "docno": ["x"], "n": [2**53 + 1]}).to_parquet(path)
    assert read_scores(path).scores["n"].tolist() == [2.0**53]


def test_tables_may_have_several_scores_and_names_of_their_own(context, tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("search,sku,BM 25,dense,note\na,d0,1,2,x\nb,d1,3,4,y\n")
    with pytest.raises(InputError, match=r"the columns are 'search', 'sku', .*by the option query"):
        GivenScores(files={"s": path})
    named = {"query": "search", "document": "sku"}
    with pytest.raises(InputError, match=r"s\.csv, line 2: 'note' is 'x', not a number; name the"):
        GivenScores(files={"s": path}, **named).check(context)
    family = GivenScores(files={"s": path}, **named, scores=["BM 25", "dense"])
    assert family.column_names == ["s_bm_25", "s_dense"]
    assert family.compute(context, PAIRS)[[0, 3]].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("qid,docno,s\na,d0,1\na,d0,1\na,d0,2\n", r"line 4: 's' is 2 for query 'a' and document "
         r"'d0', but 1 before \(.*, line 3\)"),
        ("qid,docno,s\na,d0,nan\n", r"line 2: 's' is missing or NaN; .*leave out the rows"),
        ("qid,docno,s\na,d0,1\na,d1,\n", r"line 3: 's' is missing or NaN"),
        ("qid,docno,s\na,d0,1e39\n", r"line 2: 's' is 1e\+39; scores must be finite in float32"),
        ("qid,docno,s\n,d0,1\n", r"line 2: qid is empty"),
        ("qid,docno,s\nx,d0,1\n", r"none of its 1 query ids \('x'\) is .* 2 .*\('a', 'b'\)"),
        ("qid,docno,s\na,x,1\n", r"none of its 1 document ids \('x'\) is one of the 3 of the"),
        ("qid,docno,s\n", "no row"),
        ("qid,docno,s\na,d0\n", r"line 2: 2 values, the first line has 3, with a ',' between two"),
        ("qid,docno\na,d0\n", "none is left for scores"),
        ("", "cannot be read as a table"),
    ],
)  # fmt: skip
def test_bad_scores_are_refused_by_file_and_line(context, tmp_path, text, message):
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        GivenScores(files={"s": path}).check(context)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_numbers_of_documents_are_the_same_for_every_query(context, tmp_path, form):
    table = pd.DataFrame(
        {"sku": ["d1", "x", "d0", "d1"], "Unit price": [2.5, 9, None, 2.5],
         "stock": [True, True, False, True], "name": list("abcd")}
    )  # fmt: skip
    path = tmp_path / f"products.{form}"
    if form == "csv":
        table.to_csv(path, index=False)
    elif form == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    with pytest.warns(LetorWarning, match=r"left out, as the first value .*: name \("):
        family = DocumentNumbers(path, missing=-1)
    family.check(context)
    assert family.column_names == ["unit_price", "stock"]
    found = family.compute(context, PAIRS).tolist()
    assert found == [[-1, 0], [2.5, 1], [-1, -1], [2.5, 1], [-1, -1]]
    assert family.n_missing(context, PAIRS) == [3, 2]
    told = "unit_price: 3 of 5 rows (60.0 %) have no number and get -1"
    assert family.missing_remark("unit_price", 3, 5) == told
    with pytest.raises(InputError, match=r"the first value of 'name' is '.*', not a number"):
        DocumentNumbers(path, numbers=["name"])
    with pytest.raises(InputError, match="no column cost; it has 'sku'"):
        DocumentNumbers(path, numbers=["cost"])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_lists_of_objects_are_no_numbers_of_documents(context, tmp_path, form):
    table = pd.DataFrame(
        {"id": ["d0", "d1"], "parts": [None, [{"name": "flour"}]], "kcal": [120, 80]}
    )
    path = tmp_path / f"items.{form}"
    if form == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    with pytest.warns(LetorWarning, match=r"left out, as the first value .*: parts \('\{...\}'\)"):
        family = DocumentNumbers(path)
    assert family.column_names == ["kcal"]
    assert family.compute(context, PAIRS)[:2].tolist() == [[120], [80]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,n\nd0,1\nd0,2\n", "document 'd0' has other numbers in a later row than in its first"),
        ("id,n\nd0,inf\n", "line 2: 'n' is inf: infinite"),
        ("id,n\nd0,1\nd1,x\n", "line 3: 'n' is 'x', not a number"),
        ("id,n\n,1\n", "line 2: the id 'id' is empty"),
        ("id,n\nx,1\n", "none of its 1 document ids"),
        ("id,n\n", "no rows"),
        ("id,n\nd0,a\n", "no column of numbers"),
        ("qid,docno,n\na,d0,1\n", "has queries, column 'qid': numbers of pairs are scores"),
        ("product,n\nd0,1\n", "name the one of document ids by the option document"),
    ],
)
def test_bad_numbers_of_documents_are_refused_by_file(context, tmp_path, text, message):
    path = tmp_path / "numbers.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        DocumentNumbers(path).check(context)
    assert str(path) in str(error.value)
    with pytest.raises(InputError, match=r"--option numbers\.file=products\.csv"):
        DocumentNumbers().check(context)


def test_a_service_knows_the_numbers_of_its_documents(context, tmp_path):
    """For queries that it has never seen, other than scores."""
    path = tmp_path / "numbers.csv"
    path.write_text("id,n\nd0,1\nd1,3\nd2,2\n")
    features = FeatureBuilder([DocumentNumbers(path)]).fit(context)
    rows = RankingData(np.float32([[1], [3], [2]]), [0, 2, 1], ["a"], [0, 0, 0], ["n"])
    pipeline = ScoringPipeline(features, get_ranker("coordinate-ascent")().fit(rows))
    pipeline.save(tmp_path / "service")
    served = ScoringPipeline.load(tmp_path / "service")
    assert [r.docno for r in served.rank("two three", 3).itertuples()] == ["d1", "d2", "d0"]


def test_columns_are_described_alike_however_a_path_is_spelled(context, tmp_path, monkeypatch):
    """Reports are the same bytes wherever their files are."""
    monkeypatch.chdir(tmp_path)
    write(Path("scores.run"), "run")
    Path("prices.csv").write_text("id,price\nd0,1\n")
    for folder in (Path(), tmp_path):
        scores = GivenScores(files={"engine": folder / "scores.run"})
        numbers = DocumentNumbers(file=folder / "prices.csv")
        assert [spec.description for spec in (*scores.columns, *numbers.columns)] == [
            "score in scores.run",
            "price of the document in prices.csv",
        ]


def test_zeros_that_would_fill_the_memory_are_refused(tmp_path):
    path = tmp_path / "v.npz"
    (tmp_path / "v.txt").write_text("a\n")
    sp.save_npz(path, sp.csr_matrix(np.zeros((1, 9), np.float32)))
    assert read_id_vectors(path).width == 9
    zeros, n = np.zeros(2**23, np.float32), np.zeros(2**23, np.int32)
    np.savez_compressed(path, data=zeros, indices=n, indptr=[0, 2**23], format=b"csr", shape=[1, 9])
    with pytest.raises(InputError, match=r"v\.npz: its [\d,]+ bytes hold more than 33,554,432"):
        read_id_vectors(path)


def test_a_long_text_of_many_rows_is_refused(tmp_path):
    """It is once in the file."""
    path = tmp_path / "s.parquet"
    text = pa.array(["x" * 10**5])
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), text)
    ids = pa.array([f"q{i}" for i in range(10_000)])
    pq.write_table(pa.table({"qid": ids, "docno": long, "s": np.zeros(10_000)}), path)
    with pytest.raises(InputError, match=r"s\.parquet: its [\d,]+ bytes expand to 0\.9 GiB"):
        read_scores(path)


def test_ids_of_runs_are_utf8(tmp_path):
    path = tmp_path / "a.run"
    path.write_bytes(b"a Q0 d0 1 1 t\na Q0 d\xe9 2 0 t\n")
    with pytest.raises(InputError, match=r"a\.run, line 2: byte 0xe9 .*not UTF-8"):
        read_scores(path)


def test_files_are_looked_at_before_anything_else(context, tmp_path):
    with pytest.raises(InputError, match=r"gone\.csv: no such file"):
        GivenScores(files={"s": tmp_path / "gone.csv"})
    with pytest.raises(InputError, match=r"gone\.run: no such file"):
        GivenScores(files={"s": tmp_path / "gone.run"})
    with pytest.raises(InputError, match="name at least one file"):
        GivenScores().check(context)
    with pytest.raises(InputError, match="missing must be finite"):
        GivenScores(missing=np.inf)


Q = np.array([[1, 0, 2], [0, 0, 0]], np.float32)
D = np.array([[2, 1, 2], [0, 3, -1]], np.float32)


def save(path, rows, ids):
    """Write vectors in the format of the name, and their ids."""
    if path.suffix == ".parquet":
        flat = pa.array(rows.ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1])
        names = pa.array(ids, pa.large_string())  # as polars writes it
        pq.write_table(pa.table({"id": names, "vector": lists}), path)
        return path
    if path.suffix == ".vec":
        lines = (f"{name} {' '.join(map(str, row))}\n" for name, row in zip(ids, rows, strict=True))
        path.write_text(f"{rows.shape[0]} {rows.shape[1]}\n" + "".join(lines))
        return path
    path.with_suffix(".txt").write_text("".join(f"{name}\n" for name in ids))
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".npz":
        sp.save_npz(path, sp.csr_matrix(rows))
    else:
        save_file({"embedding": rows}, path)
    return path


@pytest.mark.parametrize("form", [".npy", ".npz", ".safetensors", ".parquet", ".vec"])
def test_every_form_gives_the_same_similarities(context, tmp_path, form):
    family = GivenVectors(
        queries=save(tmp_path / f"q{form}", Q, ["a", "b"]),
        documents=save(tmp_path / f"d{form}", D, ["d1", "d0"]),
        measures=["cosine", "dot", "distance"],
        prefix="mine",
        missing=-1,
    )
    family.check(context)
    assert family.column_names == ["mine_cosine", "mine_dot", "mine_distance"]
    # q = (1, 0, 2): |q|² = 5; d0 = (0, 3, -1): 10, q'd = -2; d1 = (2, 1, 2): 9, q'd = 6.
    expected = [
        [-2 / 50**0.5, -2, (1 + 9 + 9) ** 0.5],
        [6 / 45**0.5, 6, 2**0.5],
        [-1, -1, -1],
        [0, 0, 3],
        [-1, -1, -1],
    ]
    np.testing.assert_allclose(family.compute(context, PAIRS), expected, rtol=1e-6)
    assert family.n_missing(context, PAIRS) == [2, 2, 2]
    told = "mine: 2 of 5 rows (40.0 %) have no vectors and get -1"
    assert family.missing_remark("mine_dot", 2, 5) == told


@pytest.mark.parametrize("form", [".npy", ".npz"])
def test_a_document_without_a_vector_is_not_the_nearest(context, tmp_path, form):
    family = GivenVectors(
        queries=save(tmp_path / f"q{form}", Q[:1], ["a"]),
        documents=save(tmp_path / f"d{form}", D, ["d1", "d0"]),
        measures=["cosine", "distance"],
    )
    # |q|² = 5; d2 has no vector and counts as one of length |q| at right angles to q.
    distances = [19**0.5, 2**0.5, 10**0.5, 0, 0]
    cosines = [-2 / 50**0.5, 6 / 45**0.5, 0, 0, 0]
    found = family.compute(context, PAIRS)
    np.testing.assert_allclose(found, np.transpose([cosines, distances]), rtol=1e-6)
    told = "vectors_distance: 3 of 5 rows (60.0 %) have no vectors and get the distance of"
    assert family.missing_remark("vectors_distance", 3, 5).startswith(told)


def test_the_same_vectors_under_other_ids_are_other_columns(context, tmp_path):
    for name, ids in (("q", "a\nb\n"), ("other", "b\na\n"), ("d", "d0\nd1\nd2\n")):
        (tmp_path / f"{name}.txt").write_text(ids)
        np.save(tmp_path / f"{name}.npy", np.arange(2.0 * len(ids.split())).reshape(-1, 2))
    first, second = (
        GivenVectors(
            queries=tmp_path / "q.npy", query_ids=tmp_path / f"{ids}.txt",
            documents=tmp_path / "d.npy", measures=["dot"],
        )
        for ids in ("q", "other")
    )  # fmt: skip
    assert first.compute(context, PAIRS).ravel().tolist() == [1, 3, 5, 13, 23]
    assert second.compute(context, PAIRS).ravel().tolist() == [3, 13, 23, 3, 5]


def test_vectors_are_not_sent_to_workers(context, tmp_path):
    """They may be gigabytes, and every block of rows sends its families."""
    ids = [*context.collection.document_ids, *(f"other{i}" for i in range(1000))]
    family = GivenVectors(
        queries=save(tmp_path / "q.npy", np.ones((2, 3), np.float32), ["a", "b"]),
        documents=save(tmp_path / "d.npy", np.eye(len(ids), 3, dtype=np.float32), ids),
        measures=("dot", "distance"),
    )
    sent = pickle.dumps(family)
    assert len(sent) < 1000
    received = pickle.loads(sent)
    received.check(context)
    assert (received.compute(context, PAIRS) == family.compute(context, PAIRS)).all()


def test_the_arrays_of_savez_are_told_how_to_be_read(tmp_path):
    np.savez(tmp_path / "q.npz", vectors=Q, ids=["a", "b"])
    with pytest.raises(InputError, match=r"q\.npz: holds arrays of np\.savez.* by np\.save, as"):
        GivenVectors(queries=tmp_path / "q.npz", documents=tmp_path / "q.npz")


def test_bad_vectors_are_refused_by_file(context, tmp_path):
    q, d = save(tmp_path / "q.npy", Q, "ab"), save(tmp_path / "d.npy", D[:, :2], ["d0", "d1"])
    with pytest.raises(InputError, match=r"q\.npy has 3 numbers a row, .*d\.npy 2; they must come"):
        GivenVectors(queries=q, documents=d)
    save(tmp_path / "d.npy", D, ["x", "y"])
    with pytest.raises(InputError, match=r"d\.npy: none of its 2 document ids \('x', 'y'\)"):
        GivenVectors(queries=q, documents=d).check(context)
    save(tmp_path / "d.npy", D, ["d0"])
    with pytest.raises(InputError, match=r"d\.txt: 1 ids for the 2 rows of .*d\.npy"):
        GivenVectors(queries=q, documents=d)
    save(tmp_path / "d.npy", D, ["d0", "d0"])
    with pytest.raises(InputError, match=r"d\.npy: id 'd0' has two vectors"):
        GivenVectors(queries=q, documents=d)
    save(tmp_path / "d.npy", np.where(D == 3, np.nan, D), ["d0", "d1"])
    family = GivenVectors(queries=q, documents=d)
    with pytest.raises(InputError, match=r"d\.npy, row 2: the vector of document 'd1' has"):
        family.compute(context, PAIRS)
    (tmp_path / "d.txt").unlink()
    with pytest.raises(InputError, match=r"expected in .*d\.txt, .*by query_ids or document_ids"):
        GivenVectors(queries=q, documents=d)
    d.write_bytes(b"no array")
    with pytest.raises(InputError, match=r"d\.npy: .*cannot be read as \.npy"):
        GivenVectors(queries=q, documents=d)
    np.save(tmp_path / "d.npy", np.array(["a"], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"d\.npy: .*cannot be read as \.npy"):
        GivenVectors(queries=q, documents=d)
    with pytest.raises(InputError, match="name both files"):
        GivenVectors().check(context)
    with pytest.raises(InputError, match="measures must be some of cosine, dot, distance"):
        GivenVectors(measures=["euclid"])


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a", "b", "c"], [[1.0, 2], [3, 4], [5]], r"row 3: .* it has 1 in 'v', the first row 2"),
        (["a", "b"], [[1.0, 2], None], r"row 2: .* has 0 in 'v', the first row 2"),
        (["a", None], [[1.0, 2], [3, 4]], r"row 2: every row must have an id"),
    ],
)
def test_parquet_rows_that_are_no_vectors_are_named(tmp_path, ids, vectors, message):
    columns = {"id": pa.array(ids, pa.string()), "v": pa.array(vectors, pa.list_(pa.float32()))}
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    with pytest.raises(InputError, match=message):
        GivenVectors(queries=tmp_path / "v.parquet", documents=tmp_path / "v.parquet")


@pytest.fixture(scope="module")
def halves(tmp_path_factory):
    """A workspace, and families whose sources know the first and the last few queries only."""
    folder = tmp_path_factory.mktemp("halves")
    collection = random_collection(30, 90)
    workspace = make_workspace(collection, folder / "workspace")
    ids, documents = list(collection.query_ids), list(collection.document_ids)
    known = [*ids[:4], *ids[-4:]]
    (folder / "s.tsv").write_text(
        "qid\tdocno\ts\n" + "".join(f"{q}\t{d}\t1\n" for q in known for d in documents)
    )
    vectors = GivenVectors(
        queries=save(folder / "q.npy", np.ones((8, 3), np.float32), known),
        documents=save(folder / "d.npy", np.ones((len(documents), 3), np.float32), documents),
        measures=["cosine", "dot"],
    )
    return workspace, [GivenScores(files={"s": folder / "s.tsv"}), vectors]


def test_rows_without_a_score_are_counted_over_all_blocks(halves, tmp_path, workers):
    workspace, families = halves
    context, path = open_workspace(workspace), tmp_path / "rows.parquet"
    found = choose_candidates(context, BM25)
    table = build_columns(context, found.pairs, families)
    n, known = len(table), int((table.X[:, 0] == 1).sum())
    assert 0 < known < n
    share = f"{n - known} of {n} rows ({100 * (n - known) / n:.1f} %)"
    told = [
        f"scores: s: {share} have no score and get 0, or the query's lowest if that is below 0",
        f"vectors: vectors: {share} have no vectors and get 0",
    ]
    assert family_remarks(table.provenance) == told
    assert {notes["rows without a value"] for notes in table.provenance.values()} == {n - known}
    write_parquet(table, path)
    expected = path.read_bytes()
    for memory in (1, 2**30):
        written = write_columns(context, BM25, families, path, memory=memory)
        assert family_remarks(written.provenance) == told
        assert path.read_bytes() == expected
    with blocks_on(workers.scheduler_address, workspace, PartFolder(tmp_path / "b")) as made_by:
        written = write_columns(context, BM25, families, path, memory=1, made_by=made_by)
    assert family_remarks(written.provenance) == told
    assert path.read_bytes() == expected


def test_the_commands_tell_of_all_rows_without_a_score(halves, tmp_path):
    workspace, _ = halves
    scores = workspace.parent / "s.tsv"
    build = (
        f"columns build --workspace {workspace} --family scores --option scores.files.s={scores}"
    )
    told = [
        run(*f"{build} {more}".split()).stderr.splitlines()
        for more in (
            f"--out {tmp_path / 'rows.txt'}",
            f"--out {tmp_path / 'rows.parquet'} --memory 1MiB",
            f"--out {tmp_path / 'folds'} --folds 5",
            f"--out {tmp_path / 'blocks'} --folds 5 --format parquet",
            f"--out {tmp_path / 'workers.parquet'} --scheduler local:1",
        )
    ]
    (remark,) = (line for line in told[0] if line.startswith("scores: s: "))
    assert all(remark in lines for lines in told)
    append = (
        f"columns append {tmp_path / 'rows.txt'} --workspace {workspace} --family vectors "
        f"--option vectors.queries={workspace.parent / 'q.npy'} "
        f"--option vectors.documents={workspace.parent / 'd.npy'} --out {tmp_path / 'a.txt'}"
    )
    run(*append.split())
    *_, notes = read_names(tmp_path / "a.columns.json")
    (appended,) = notes["remarks"]
    assert appended.replace("vectors", "s", 1).replace("vectors", "score") in remark


def test_rows_get_scores_and_vectors_without_their_texts(tmp_path, monkeypatch):
    """The same bytes as with the workspace."""
    monkeypatch.chdir(tmp_path)
    write_sample("sample")
    append = (
        "columns append sample/letor/Fold1/test.txt --family scores --family vectors "
        "--option scores.files.lsa=sample/runs/lsa.run --option scores.missing=lowest "
        "--option vectors.queries=sample/vectors/queries.npy "
        "--option vectors.documents=sample/vectors/documents.npy --out"
    )
    told = run(*append.split(), "without.txt").stderr
    assert "have no score and get the query's lowest" in told
    run("index", "beir", "folder=sample/beir", "--out", "workspace")
    run(*append.split(), "with.txt", "--workspace", "workspace")
    for suffix in (".txt", ".columns.json"):
        assert Path(f"without{suffix}").read_bytes() == Path(f"with{suffix}").read_bytes()
    texts = "columns append sample/letor/Fold1/test.txt --family vsm --out vsm.txt"
    assert "vsm are computed from texts: name the workspace" in refused(*texts.split())


def test_the_command_line_builds_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample("sample")
    commands = [
        "index beir folder=sample/beir --out workspace",
        "columns build --workspace workspace --family scores --family vectors --depth 10 "
        "--option scores.files.lsa=sample/runs/lsa.run "
        "--option vectors.queries=sample/vectors/queries.npy "
        "--option vectors.documents=sample/vectors/documents.npy --folds 5 --out folds",
    ]
    for command in commands:
        result = run(*command.split())
    assert re.search(r"scores: lsa: [\d,]+ of 2,330 rows \(.* %\) have no score and", result.stderr)
    rows = read_letor("folds/Fold1/test.txt")
    notes = read_names(Path("folds/Fold1/test.columns.json"))
    assert [note["name"] for note in notes] == ["lsa", "vectors_cosine"]
    assert notes[0]["trained on"] == "given; not checked for leaks"
    both = rows.X[rows.X[:, 0] != 0]
    # The run is the ranking by these vectors' cosines.
    np.testing.assert_allclose(both[:, 0], both[:, 1], atol=1e-5)
