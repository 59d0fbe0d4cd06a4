"""Scores of other systems as columns."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from given import PAIRS, write_scores

from letor.errors import InputError
from ltr_features.columns.given_scores import GivenScores
from ltr_features.sources.score_tables import read_scores, score_columns


@pytest.mark.parametrize("form", ["run", "csv", "tsv", "csv.gz", "jsonl", "parquet"])
def test_every_form_gives_the_same_column(context, tmp_path, form):
    family = GivenScores(
        files={"engine": write_scores(tmp_path / f"scores.{form}", form)}, missing=-7
    )
    family.check(context)
    assert family.column_names == ["engine"]
    assert family.compute(context, PAIRS).ravel().tolist() == [1.5, -2, -7, 3, -7]
    assert family.n_missing(context, PAIRS) == [2]
    told = "2 of 5 rows (40.0 %) have no score and get -7"
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
    path.write_text("qid\tdocno\ts\na\td0\t1.5\na\td1\t-2\na\tgone\t-3\n")
    family = GivenScores(files={"s": path}, missing="lowest")
    assert family.compute(context, PAIRS).ravel().tolist() == [1.5, -2, -3, -3, -3]


def test_a_pair_without_a_score_is_above_none_that_has_one(context, tmp_path):
    path = tmp_path / "log-probabilities.tsv"
    path.write_text("qid\tdocno\ts\na\td0\t-1.5\na\td1\t-2\nb\td1\t3\n")
    family = GivenScores(files={"s": path})
    assert family.compute(context, PAIRS).ravel().tolist() == [-1.5, -2, -2, 3, 0]
    assert GivenScores(files={"s": path}, missing=0).compute(context, PAIRS)[2] == 0


def test_each_column_may_have_a_substitute_of_its_own(context, tmp_path):
    """For a distance, 0 would be the best."""
    path = tmp_path / "s.tsv"
    path.write_text("qid\tdocno\tmatch\tkm\na\td0\t1.5\t3\na\td1\t-2\t8\n")
    family = GivenScores(files={"e": path}, missing={"e_km": 99})
    expected = [[1.5, 3], [-2, 8], [-2, 99], [-2, 99], [-2, 99]]
    assert family.compute(context, PAIRS).tolist() == expected
    remarks = [family.missing_remark(name, 3, 5) for name in family.column_names]
    rows = "3 of 5 rows (60.0 %) have no score and get"
    assert remarks == [f"{rows} 0, or the query's lowest if that is below 0", f"{rows} 99"]
    with pytest.raises(InputError, match=r"missing: no column 'km'; did you mean 'e_km'\?"):
        GivenScores(files={"e": path}, missing={"km": 99})
    for wrong in (np.nan, 10**400, "lowst"):
        with pytest.raises(InputError, match="missing must be"):
            GivenScores(files={"e": path}, missing={"e_km": wrong})


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


@pytest.mark.parametrize("named", [{"query": "q"}, {"document": "d"}, {"scores": ["bm25"]}])
def test_columns_of_runs_are_not_named(tmp_path, named):
    engine, table = tmp_path / "a.run", tmp_path / "t.csv"
    engine.write_text("a Q0 d0 1 1 t\n")
    with pytest.raises(InputError, match=r"name columns of tables, and .*a\.run is a run: leave"):
        GivenScores(files={"s": engine}, **named)
    table.write_text("q,d,bm25\na,d0,1\n")
    every = {"query": "q", "document": "d", "scores": ["bm25"]}
    assert GivenScores(files={"s": engine, "t": table}, **every).column_names == ["s", "t"]


def test_files_are_looked_at_before_anything_else(context, tmp_path):
    with pytest.raises(InputError, match=r"gone\.csv: no such file"):
        GivenScores(files={"s": tmp_path / "gone.csv"})
    with pytest.raises(InputError, match=r"gone\.run: no such file"):
        GivenScores(files={"s": tmp_path / "gone.run"})
    with pytest.raises(InputError, match="name at least one file"):
        GivenScores().check(context)
    with pytest.raises(InputError, match="missing must be finite"):
        GivenScores(missing=np.inf)
