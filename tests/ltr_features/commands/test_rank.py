"""``rank train``, ``rank score`` and ``rank list``."""

from __future__ import annotations

import numpy as np
import pandas as pd
from toys import done, refused, run

from letor.rankers import load_ranker


def test_a_measure_that_there_is_not_is_told_before_rows_are_read(tmp_path):
    wrong = ("--param", "measure=ndcg@x", "--out", tmp_path / "ranker")
    said = refused("rank", "train", tmp_path / "nowhere.txt", *wrong)
    assert "measure 'ndcg@x' needs a positive cut-off" in said


def test_rankers_are_listed_together_or_one_by_one():
    text = done("rank", "list")
    assert "num_leaves = " in text
    one = done("rank", "list", "listnet")
    assert one.startswith("Top-one ListNet: ")
    assert "n_epochs = " in one
    assert "num_leaves" not in one
    assert "did you mean 'listnet'" in refused("rank", "list", "listnt")


def test_text_has_zeros_where_a_ranker_learned_from_missing_values(tmp_path):
    """Its scores of the same rows differ, which is told."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "qid": np.repeat(np.arange(40), 10),
            "docno": np.arange(400),
            "label": 0,
            "a": 1.0,
            "b": 1.0,
        }
    )
    rows["label"], rows["a"] = rng.integers(0, 3, 400), rng.random(400)
    rows["a"] = rows["a"].where(rows["label"] > 0)
    rows.to_csv(tmp_path / "a.csv", index=False)
    parquet, text, ranker = (tmp_path / name for name in ("a.parquet", "a.txt", "ranker"))
    done("convert", tmp_path / "a.csv", parquet)
    done("convert", tmp_path / "a.csv", text)
    done("rank", "train", parquet, "--param", "n_estimators=5", "--out", ranker)
    exact, other = (run("rank", "score", ranker, path) for path in (parquet, text))
    assert exact.stdout != other.stdout
    assert exact.stderr == ""
    assert "a.txt: 1 column (a) had missing values in the training rows; LETOR text" in other.stderr
    stopping = run("rank", "train", parquet, "--vali", text, "--out", ranker).stderr
    assert "a.txt: 1 column (a) had missing values in the training rows; LETOR text" in stopping
    done("rank", "train", text, "--param", "n_estimators=5", "--out", ranker)
    assert run("rank", "score", ranker, text).stderr == ""


def test_last_columns_that_no_row_has_are_zero(workspace, tmp_path):
    """The sister file of a LETOR file has a value in the last column of each row."""
    full, short, ranker = (tmp_path / name for name in ("full.txt", "short.txt", "ranker"))
    rows = [f"{(i + j) % 2} qid:q{i} 1:{j} 2:{i * j}" for i in range(8) for j in range(6)]
    full.write_text("".join(f"{row} 3:0\n" for row in rows))
    short.write_text("".join(f"{row}\n" for row in rows))
    train = ("rank", "train", full, "--param", "n_estimators=3", "--out", ranker, "--vali")
    remark = f"{short}: no row has a value in column 3 of the training rows; they count as 0"
    assert remark in run(*train, short).stderr
    assert "no row has a value" not in run(*train, full).stderr
    found = run("rank", "score", ranker, short)
    assert remark in found.stderr
    assert found.stdout == done("rank", "score", ranker, full)
    assert "train with their number: rank train --columns N" in refused(
        "rank", "train", short, "--out", ranker, "--vali", full
    )
    done("rank", "train", short, "--columns", 3, "--out", ranker, "--vali", full)
    full.with_name("short.columns.json").write_text('[{"name": "a"}, {"name": "b"}]')
    assert "short.txt lack columns" not in (said := refused("rank", "score", ranker, short))
    assert "lack columns of the training rows: 1, 2, 3; make them as for the training" in said
    assert "3 columns were given as the number of columns, but" in refused(
        "rank", "train", short, "--columns", 3, "--out", ranker
    )


def test_training_that_learns_nothing_is_told(tmp_path):
    train, ranker = tmp_path / "train.txt", tmp_path / "ranker"
    train.write_text("".join(f"{j % 2} qid:q{i} 1:{j}\n" for i in range(3) for j in range(6)))
    found = run("rank", "train", train, "--out", ranker)
    assert found.stderr.count("learned nothing") == 1
    assert "lambdamart: learned nothing, it uses no column" in found.stderr
    assert "LetorWarning" not in found.stderr
    found = run("rank", "train", train, "--param", "min_data_in_leaf=1", "--out", ranker)
    assert "learned nothing" not in found.stderr


def test_rankers_learn_from_some_columns_and_score_rows_with_all(tmp_path):
    rng = np.random.default_rng(0)
    file, out = tmp_path / "a.txt", tmp_path / "r"
    rows = (f"{rng.integers(3)} qid:{q} 1:{rng.random()} 2:{rng.random()} 3:{rng.random()}\n"
            for q in range(9) for _ in range(9))  # fmt: skip
    file.write_text("".join(rows))
    train = ("rank", "train", file, "--vali", file, "--ranker", "coordinate-ascent", "--out", out)
    for options, used in (
        (("--only", 1, "--only", 3), ["1", "3"]),
        (("--without", 1), ["2", "3"]),
    ):
        done(*train, *options)
        assert load_ranker(out).feature_names_ == used
        assert len(done("rank", "score", out, file).split()) == 81
    assert "no column '7'" in refused(*train, "--without", 7)
    assert "no column is left" in refused(*train, "--without", 1, "--only", 1)
    assert "column '1' is named twice" in refused(*train, "--only", 1, "--only", 1)
    said = refused(*train, "--only", 1, "--without", 2)
    assert "column '2' is left out, but was not chosen" in said


def test_what_says_when_to_stop_is_refused_without_rows_to_stop_by(tmp_path):
    file, out = tmp_path / "a.txt", tmp_path / "r"
    file.write_text("".join(f"{j % 3 > 1:d} qid:{q} 1:{j}\n" for q in range(9) for j in range(9)))
    train = ("rank", "train", file, "--out", out, "--ranker")
    for ranker in ("adarank", "lambdamart", "listnet", "rankboost", "ranknet", "xgboost"):
        said = refused(*train, ranker, "--param", "early_stopping_rounds=3")
        assert "early_stopping_rounds: it says when to stop on validation rows; give --vali" in said
    assert "--param measure: it says" in refused(*train, "rankboost", "--param", "measure=map")
    learned = run(*train, "adarank", "--param", "measure=map", "--param", "n_rounds=3")
    assert "map: " in learned.stderr  # what it optimises
    assert "ndcg@10" not in run(*train, "rankboost", "--param", "n_rounds=3").stderr


def test_rankers_are_checked_before_they_are_trained(tmp_path):
    absent, mine = tmp_path / "absent.txt", tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("precious")
    assert "'lambdamart': n_estimators must be a whole number, got 'abc'" in refused(
        "rank", "train", absent, "--out", tmp_path / "r", "--param", "n_estimators=abc"
    )
    said = refused("rank", "train", absent, "--out", mine)
    assert "mine is not empty and holds no ranker" in said


def test_training_tells_its_best_round_and_queries_that_are_not_held_out(tmp_path):
    train, vali, out = tmp_path / "train.txt", tmp_path / "vali.txt", ("--out", tmp_path / "ranker")
    rows = [f"{j % 2} qid:{i} 1:{j % 3} 2:{i * j}\n" for i in range(6) for j in range(6)]
    train.write_text("".join(rows))
    vali.write_text("".join(rows[30:34]) + "0 qid:5 1:9 2:9\n1 qid:9 1:1 2:1\n0 qid:9 1:1 2:0\n")
    found = run("rank", "train", train, "--vali", vali, "--ranker", "adarank", *out)
    curve = load_ranker(tmp_path / "ranker").validation_curve_
    best = int(np.argmax(curve))
    assert found.stdout.startswith(
        f"best on the validation rows: ndcg@10 {curve[best]:.4f}, in round {best + 1} of "
        f"{len(curve)}\n"
    )
    assert (
        f"{vali}: 1 of 2 queries are in {train}, too (the first is '5'), with 4 of their 5 rows "
        in found.stderr
    )
    alone = run("rank", "train", train, "--ranker", "adarank", *out)
    assert "best on" not in alone.stdout
    assert "too (the first" not in alone.stderr


def test_rows_without_their_names_are_told_where_to_get_them(tmp_path):
    train, test, ranker = (tmp_path / name for name in ("train.txt", "test.txt", "ranker"))
    train.write_text("".join(f"{j % 2} qid:{i} 1:{j}\n" for i in range(6) for j in range(6)))
    test.write_text(train.read_text())
    (tmp_path / "train.columns.json").write_text('[{"name": "bm25"}]')
    done("rank", "train", train, "--ranker", "adarank", "--out", ranker)
    assert "copy the NAME.columns.json of the training rows" in refused(
        "rank", "score", ranker, test
    )
