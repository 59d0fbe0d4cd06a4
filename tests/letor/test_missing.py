"""What is judged and has no row: it counts in every measure, is kept by files and by selections,
and by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, nDCG

from letor.column_names import append_named, names_path, read_rows, write_rows
from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning
from letor.evaluation import Evaluator, evaluate, side_by_side
from letor.fold_files import concatenate, read_folds
from letor.folds import Fold
from letor.measures import MeasureDefinition, parse_measure
from letor.missing import Missing
from letor.rankers.coordinate_ascent import CoordinateAscent
from letor.rankers.lambdamart import LambdaMART
from letor.svmlight import read_letor


def rows(missing: Missing | None) -> RankingData:
    """Query a: labels 2, 0, 1, as they are ranked; query b: 0, 0; query c: 0."""
    return RankingData(
        np.arange(12, dtype=np.float32).reshape(6, 2),
        np.array([2, 0, 1, 0, 0, 0], np.float32),
        ["a", "b", "c"],
        np.array([0, 0, 0, 1, 1, 2]),
        ["x", "y"],
        np.array([f"d{i}" for i in range(6)], dtype=object),
        missing=missing,
    )


#: a lacks a document of label 2, b one of label 1; d and e have no rows, e nothing relevant either;
#: c is not judged.
LOST = Missing({"a": {2: 1}, "b": {1: 1}, "d": {1: 2, 2: 1}, "e": {}}, frozenset("c"))
SCORES = -np.arange(6.0)


def test_values_by_hand():
    found = evaluate(
        rows(LOST), SCORES, [parse_measure(m) for m in ("ndcg@2", "map", "p@2", "mrr", "meanndcg")]
    )
    assert found.index.tolist() == ["a", "b", "c", "d", "e"]
    second = 1 / math.log2(3)
    third = 1 / 2
    # The ideal ranking of a is 2, 2, 1.
    curve = [1, 3 / (3 + 3 * second), (3 + third) / (3 + 3 * second + third)]
    expected = {
        "a": [3 / (3 + 3 * second), (1 + 2 / 3) / 3, 0.5, 1, sum(curve) / 3],
        "b": [0] * 5,
        "c": [math.nan] * 5,
        "d": [0] * 5,
        "e": [0] * 5,
    }
    np.testing.assert_allclose(found, pd.DataFrame(expected).T, rtol=1e-12)


@pytest.mark.parametrize(("empty", "value"), [("zero", 0), ("one", 1), ("skip", None)])
def test_the_rule_for_queries_without_relevant_documents_is_for_those_without_rows_too(
    empty, value
):
    """Of a, b, d and e only e has none."""
    definition = MeasureDefinition("ap", empty=empty)
    evaluator = Evaluator(definition, rows(LOST))
    assert evaluator.n_empty == 1
    total = (1 + 2 / 3) / 3
    expected = total / 3 if value is None else (total + value) / 4
    assert evaluator.mean(SCORES) == pytest.approx(expected)
    each = evaluate(rows(LOST), SCORES, [definition]).iloc[:, 0]
    np.testing.assert_array_equal(each[["d", "e"]], [0, np.nan if value is None else value])
    table = side_by_side(rows(LOST), SCORES, [definition]).iloc[0]
    assert (table["value"], table["queries"]) == (evaluator.mean(SCORES), 3 + (value is not None))
    assert (table["empty"], table["missing"]) == (1, 5)


def test_the_ideal_of_a_query_is_its_own():
    """The first query lacks documents, so that it has more judged documents than rows."""
    data = RankingData(
        np.zeros((3, 1), np.float32), np.array([0, 0, 1], np.float32), ["a", "b"],
        np.array([0, 1, 1]), ["x"], missing=Missing({"a": {2: 2}}),
    )  # fmt: skip
    found = evaluate(data, [3.0, 2.0, 1.0], [parse_measure("meanndcg")]).iloc[:, 0]
    assert found.tolist() == pytest.approx([0, (0 + 1 / math.log2(3)) / 2])


def test_documents_that_a_definition_does_not_call_relevant_do_not_count():
    strict = Evaluator(MeasureDefinition("ap", relevant_from=2), rows(LOST))
    assert strict.n_missing == 2
    assert strict.n_empty == 2  # b lacks a document of label 1
    np.testing.assert_allclose(strict.per_query(SCORES)[:2], [0.5, 0])


def test_nothing_known_is_as_before():
    known, unknown = (side_by_side(rows(m), SCORES) for m in (Missing({}), None))
    pd.testing.assert_frame_equal(known.drop(columns="missing"), unknown.drop(columns="missing"))
    assert unknown["missing"].isna().all()
    assert (known["missing"] == 0).all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_values_are_those_of_trec_eval_by_all_judgements(seed):
    """Rows of a pool that misses documents and whole queries, against trec_eval by ir_measures."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    query = np.sort(rng.integers(0, 6, n))
    label = rng.choice([0, 1, 2], n, p=[0.5, 0.3, 0.2])
    has_row = (rng.random(n) < 0.6) & (query != 5)
    has_row[0] = True
    qrels: dict[str, dict[str, int]] = {}
    for i in range(n):
        qrels.setdefault(f"q{query[i]}", {})[f"d{i}"] = int(label[i])
    relevant: dict[str, dict[int, int]] = {}
    for i in np.flatnonzero(~has_row):
        counts = relevant.setdefault(f"q{query[i]}", {})
        if label[i]:
            counts[int(label[i])] = counts.get(int(label[i]), 0) + 1
    kept = np.flatnonzero(has_row)
    data = RankingData.from_rows(
        np.zeros((len(kept), 1)), label[kept], [f"q{query[i]}" for i in kept],
        document_ids=np.array([f"d{i}" for i in kept], dtype=object), missing=Missing(relevant),
    )  # fmt: skip
    scores = rng.permutation(len(kept)).astype(float)
    run: dict[str, dict[str, float]] = {q: {} for q in qrels}
    for i, score in zip(kept, scores, strict=True):
        run[f"q{query[i]}"][f"d{i}"] = float(score)
    peers = {
        "ndcg@5": nDCG(gains={0: 0, 1: 1, 2: 3}) @ 5, "linear:ndcg@10": nDCG @ 10, "map": AP,
        "p@3": P @ 3, "mrr": RR,
    }  # fmt: skip
    found = evaluate(data, scores, [parse_measure(name) for name in peers])
    assert set(found.index) == set(qrels)
    for column, peer in enumerate(peers.values()):
        values = {m.query_id: m.value for m in ir_measures.iter_calc([peer], qrels, run)}
        expected = [values.get(q, 0.0) for q in found.index]
        np.testing.assert_allclose(found.iloc[:, column], expected, atol=1e-12)


def test_what_is_known_in_one_line():
    assert rows(LOST).coverage == (
        "without a row: 5 of 7 relevant documents, 2 queries; measures count them; they leave out "
        "queries without judgement: 1"
    )
    assert rows(None).coverage.startswith("not known: whether relevant documents or queries lack")


@pytest.mark.parametrize("name", ["rows.txt", "rows.txt.gz", "rows.parquet"])
def test_files_keep_it(tmp_path, name):
    for missing in (LOST, Missing({}), None):
        write_rows(rows(missing), tmp_path / name)
        assert read_rows(tmp_path / name).missing == missing


def test_text_that_cannot_be_written_leaves_the_former_text_with_its_names(tmp_path):
    path = tmp_path / "a.txt"
    write_rows(rows(LOST), path)
    infinite = replace(rows(None), column_names=["v", "w"], X=np.full((6, 2), np.inf, np.float32))
    with pytest.raises(InputError, match="inf"):
        write_rows(infinite, path)
    assert list(read_rows(path).column_names) == ["x", "y"]
    names_path(path).unlink()
    names_path(path).mkdir()  # the names cannot be written, so neither are the rows
    with pytest.raises(InputError, match=r"a\.columns\.json is a folder"):
        write_rows(
            rows(
                None,
            ),
            path,
        )
    assert read_letor(path, side_file=True).X.tolist() == rows(LOST).X.tolist()


@pytest.mark.filterwarnings("error")
def test_who_reads_text_alone_is_told_what_it_lacks(tmp_path):
    write_rows(rows(LOST), tmp_path / "a.txt.gz")
    with pytest.warns(LetorWarning, match=r"a\.columns\.json is not read, .* letor\.read_rows"):
        assert read_letor(tmp_path / "a.txt.gz").missing is None
    assert read_rows(tmp_path / "a.txt.gz").missing == LOST
    names_path(tmp_path / "a.txt.gz").unlink()
    read_letor(tmp_path / "a.txt.gz")


def test_appended_columns_keep_it(tmp_path):
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    write_rows(rows(LOST), source)
    append_named(source, target, np.ones((6, 1), np.float32), {"z": {}})
    again = read_rows(target)
    assert (list(again.column_names), again.missing) == (["x", "y", "z"], LOST)


@pytest.mark.parametrize(
    "damage",
    ['"missing": 3', '"missing": {"relevant": {"a": {"0": 1}}, "unjudged": []}', '"other": 1'],
)
def test_damaged_files_are_named(tmp_path, damage):
    write_rows(rows(None), tmp_path / "a.txt")
    columns = '"columns": [{"name": "x"}, {"name": "y"}]'
    names_path(tmp_path / "a.txt").write_text(f"{{{columns}, {damage}}}")
    with pytest.raises(InputError, match=r"a\.columns\.json: not a list of columns"):
        read_rows(tmp_path / "a.txt")


def test_selections_keep_what_is_missing_of_their_queries():
    data = rows(LOST)
    chosen = data.select_queries(["a", "d"])
    assert (chosen.query_ids, chosen.queries_without_rows) == (["a"], ["d"])
    assert chosen.missing == Missing({"a": {2: 1}, "d": {1: 2, 2: 1}})
    train, vali, test = Fold("Fold1", ["a", "e"], ["b"], ["c", "d"]).split(data)
    assert [set(part.missing.relevant) for part in (train, vali, test)] == [
        {"a", "e"}, {"b"}, {"d"},
    ]  # fmt: skip
    assert test.missing.unjudged == {"c"}
    with pytest.raises(InputError, match="1 query id not in the data: f"):
        data.select_queries(["a", "f"])


def test_rows_that_are_left_out_are_missing():
    """But not those of queries that lose all rows."""
    chosen = rows(LOST).select_rows(np.array([2, 1]))
    assert chosen.missing == Missing({"a": {2: 2}, "d": {1: 2, 2: 1}, "e": {}})
    assert rows(None).select_rows(np.array([2, 1])).missing is None
    assert LOST.relevant["a"] == {2: 1}  # the given one is not changed


def test_parts_together():
    first, second = rows(LOST).select_queries(["a", "d"]), rows(LOST).select_queries(["b", "c"])
    both = concatenate([first, second])
    assert both.missing == LOST.only(["a", "b", "c", "d"])
    assert concatenate([first, rows(None).select_queries(["b"])]).missing is None
    assert concatenate([first, first]).missing is None


def test_folders_of_folds_keep_it(tmp_path):
    turns = [["a", "d"], ["b"], ["c", "e"]]
    for number in range(3):
        parts = Fold("", *(turns[(number + j) % 3] for j in range(3))).split(rows(LOST))
        for name, part in zip(("train", "vali", "test"), parts, strict=True):
            write_rows(part, tmp_path / f"Fold{number + 1}" / f"{name}.txt")
    data, folds = read_folds(tmp_path)
    assert data.missing == LOST
    assert [fold.test for fold in folds] == [["c", "e"], ["a", "d"], ["b"]]
    assert sorted(data.all_query_ids) == list("abcde")


def test_rankers_stop_and_climb_by_measures_that_count_it():
    rng = np.random.default_rng(0)
    n = 40
    X = rng.normal(size=(6 * n, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=len(X)) > 0.5).astype(np.float32)
    ids = [f"q{i // 6}" for i in range(len(X))]
    lost = Missing({f"q{i}": {1: i % 5} for i in range(n)} | {"q999": {1: 1}})
    plain, counted = (RankingData.from_rows(X, y, ids, missing=m) for m in (None, lost))
    for ranker in (LambdaMART(n_estimators=5, measure="map"), CoordinateAscent(measure="map")):
        curves = [ranker.fit(plain, valid).validation_curve_ for valid in (plain, counted)]
        assert max(curves[1]) < max(curves[0]) - 0.1
    # Of the ranker that is kept, by itself; it has no equal scores.
    value = Evaluator(parse_measure("map"), counted).mean(ranker.predict(counted))
    assert max(curves[1]) == pytest.approx(value)


def test_bad_lines_of_rows_with_fewer_columns_than_names_are_listed_once(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:5\nx\n0 qid:1 1:4\n")
    names_path(tmp_path / "a.txt").write_text('[{"name": "x"}, {"name": "y"}]')
    rejected = []
    with pytest.warns(LetorWarning, match="names 2 columns"):
        rows = read_rows(tmp_path / "a.txt", on_error="skip", rejected=rejected)
    assert rows.X.tolist() == [[5, 0], [4, 0]]
    assert [line.number for line in rejected] == [2]


def test_names_of_more_columns_than_the_rows_have_are_told(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:5\n0 qid:1 1:4\n")
    names_path(tmp_path / "a.txt").write_text('[{"name": "x"}, {"name": "y"}, {"name": "z"}]')
    remark = r"a\.columns\.json names 3 columns, the rows of .*a\.txt have 1: .* from 'y' on, count"
    with pytest.warns(LetorWarning, match=remark):
        rows = read_rows(tmp_path / "a.txt", missing=np.nan)
    assert rows.column_names == ["x", "y", "z"]
    np.testing.assert_array_equal(rows.X, [[5, np.nan, np.nan], [4, np.nan, np.nan]])
    names_path(tmp_path / "a.txt").write_text('[{"name": "x"}, {"name": "x"}]')
    with pytest.raises(InputError, match=r"columns\.json: column names given twice: x; rename"):
        read_rows(tmp_path / "a.txt")


def test_columns_with_a_missing_value_in_any_training_row_are_noted(monkeypatch) -> None:
    """By them, zeros of LETOR text are told that stand for missing values."""
    X = np.arange(60.0).reshape(20, 3)
    X[0, 1] = X[19, 2] = np.nan
    data = RankingData.from_rows(X, np.arange(20) % 2, ["q"] * 20)
    monkeypatch.setattr("letor.column_settings._ROWS", 7)
    noted = CoordinateAscent(n_restarts=1, n_sweeps=1).fit(data).column_settings_
    assert noted == {name: {"missing values": True} for name in ("2", "3")}
