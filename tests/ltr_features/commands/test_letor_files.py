"""``convert``, ``measure`` and ``validate``."""

from __future__ import annotations

import numpy as np
import pytest
from toys import done, refused, run
from typer.testing import CliRunner

from letor.column_names import read_rows
from letor.trec import read_qrels, read_run
from ltr_features.cli import app


def test_conversions_keep_everything(workspace, tmp_path):
    text, table, again = tmp_path / "a.txt", tmp_path / "a.parquet", tmp_path / "c.txt.gz"
    done("columns", "build", "--workspace", workspace, "--family", "vsm", "--out", text)
    done("convert", text, table)
    done("convert", table, again)
    first, last = read_rows(text), read_rows(again)
    np.testing.assert_array_equal(first.X, last.X)
    assert (first.column_names, first.query_ids) == (last.column_names, last.query_ids)
    assert first.provenance == last.provenance == read_rows(table).provenance
    done("convert", text, tmp_path / "a.qrels")
    np.testing.assert_array_equal(read_qrels(tmp_path / "a.qrels")["label"], first.y)
    (tmp_path / "scores").write_text("".join(f"{v}\n" for v in first.X[:, 0]))
    done("convert", text, tmp_path / "a.run", "--scores", tmp_path / "scores")
    assert len(read_run(tmp_path / "a.run")) == len(first)


def test_parquet_is_measured_and_validated_as_text_is(tmp_path):
    text, table = tmp_path / "a.txt", tmp_path / "a.parquet"
    text.write_text("1 qid:1 1:1\n0 qid:1 1:2\n1 qid:2 1:3\n")
    done("convert", text, table)
    assert done("measure", table, "--column", 1) == done("measure", text, "--column", 1)
    said = refused("measure", table, "--column", 1, "--on-error", "skip")
    assert "a.parquet: on_error (--on-error) is for lines of LETOR text: leave it out" in said
    with pytest.raises(TypeError, match="'threds'"):
        read_rows(table, threds=1)
    missing = tmp_path / "b.csv"
    missing.write_text("qid,label,bm25\n1,1,\n1,0,2\n")
    done("convert", missing, tmp_path / "b.parquet")
    said = refused("measure", tmp_path / "b.parquet", "--column", "bm25")
    assert "column bm25 has no value in 1 row" in said
    missing.write_text("qid,bm25\n1,1\n1,2\n")
    done("convert", missing, tmp_path / "b.parquet")
    told = CliRunner().invoke(app, ["measure", str(tmp_path / "b.parquet"), "--column", "bm25"])
    assert "b.parquet: no row has a label above 0" in told.output
    (_, *said), (_, *same) = (done("validate", path).splitlines() for path in (text, table))
    assert same == said


def test_labels_too_large_for_a_gain_are_no_obstacle_to_other_measures(tmp_path):
    """Views or sales as labels."""
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{n} qid:1 1:{n}\n" for n in (0, 40, 5000)))
    told = run("measure", path, "--column", 1)
    assert "P@10" in told.stdout
    assert "RankLib" not in told.stdout
    why = "label 5000 is too large for the exponential gain 2^label - 1: bin the labels"
    assert f"not computed: NDCG@10, MeanNDCG: {why}" in told.stderr


def test_files_that_do_not_say_what_they_lack_are_said_so(workspace, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"{i % 2} qid:{i // 4} 1:{i}\n" for i in range(40)))
    unknown = "not known: whether relevant documents or queries lack a row"
    assert unknown in done("measure", path, "--column", 1)
    trained = run("rank", "train", path, "--ranker", "coordinate-ascent", "--out", tmp_path / "r")
    assert f"ndcg@10: {unknown}" in trained.stderr
    build = ("columns", "build", "--workspace", workspace, "--family", "vsm", "--depth", 12)
    done(*build, "--folds", 4, "--out", tmp_path / "folds")
    fold = tmp_path / "folds" / "Fold1"
    trained = run("rank", "train", fold / "train.txt", "--vali", fold / "vali.txt", "--param",
                  "n_estimators=2", "--out", tmp_path / "s")  # fmt: skip
    assert f"ndcg@10: {read_rows(fold / 'vali.txt').coverage}" in trained.stderr
    judged = run("convert", fold / "test.txt", tmp_path / "test.qrels")
    assert "judgements of the rows only; without a row: " in judged.stderr
