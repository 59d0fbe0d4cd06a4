"""What LambdaMART adds to the contract of rankers (tests/contracts/test_rankers.py)."""

from dataclasses import replace

import numpy as np
import pytest
from learnable import rows

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import Evaluator
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART


def quick(**more):
    return LambdaMART(**{"n_estimators": 60, "learning_rate": 0.2, **more})


def test_best_iteration_is_the_best_of_our_measure():
    """The curve is the stated measure of the validation rows; prediction uses the best trees."""
    train, valid = rows(0), rows(1)
    ranker = quick(early_stopping_rounds=8, measure="skip:ndcg@5").fit(train, valid)
    curve = np.array(ranker.validation_curve_)
    assert ranker.best_iteration_ == np.argmax(curve) + 1
    assert len(curve) == min(60, ranker.best_iteration_ + 8)
    # Training shuffles rows within queries; scores without ties give the same value.
    scores = ranker.predict(valid)
    value = Evaluator(parse_measure("skip:ndcg@5"), valid).mean(scores)
    np.testing.assert_allclose(value, curve.max(), atol=0.01)


def test_validation_rows_may_have_the_columns_in_another_order():
    train, valid = rows(0), rows(1)
    turned = valid.select_columns(valid.column_names[::-1])
    curves = [quick(n_estimators=5).fit(train, part).validation_curve_ for part in (valid, turned)]
    assert curves[0] == curves[1]


def test_without_validation_all_trees_are_kept():
    ranker = quick().fit(rows(0))
    assert ranker.best_iteration_ == 60
    assert ranker.validation_curve_ == []


def test_order_of_the_file_does_not_give_the_labels_away():
    """With useless columns all scores tie: rows sorted by label must not look well ranked."""
    data = rows(0)
    data = replace(data, X=np.zeros_like(data.X))
    by_label = data.select_rows(np.argsort(-data.y, kind="stable"))
    ranker = quick(n_estimators=1).fit(by_label, by_label)
    assert ranker.validation_curve_[0] < 0.8
    assert Evaluator(parse_measure("ndcg@10"), by_label).mean(ranker.predict(by_label)) == 1


def test_gain_changes_the_model():
    train = rows(0, labels=5)
    scores = [
        quick(gain=g).fit(train).predict(train)
        for g in ("exponential", "linear", [0, 1, 3, 7, 15], [0, 0, 0, 0, 1])
    ]
    np.testing.assert_array_equal(scores[0], scores[2])
    assert not np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[3])


@pytest.mark.parametrize(
    "changed",
    [
        {"learning_rate": 0.3},
        {"num_leaves": 3},
        {"min_data_in_leaf": 60},
        {"feature_fraction": 0.4},
        {"bagging_fraction": 0.5},
        {"lambda_l2": 10.0},
        {"truncation_level": 1},
        {"normalise": "none"},
    ],
    ids=str,
)
def test_each_parameter_changes_the_model(changed):
    train = rows(0)
    scores = [quick(n_estimators=5, **more).fit(train).predict(train) for more in ({}, changed)]
    assert not np.array_equal(*scores)


def test_large_labels_need_a_linear_gain():
    """Labels of LETOR's '-list' files are positions."""
    data = rows(0)
    positions = replace(data, y=np.floor(data.X[:, 0] * 1000))
    with pytest.raises(InputError, match=r"too large for the exponential gain .* gain='linear'"):
        quick().fit(positions)
    scores = quick(gain="linear").fit(positions).predict(positions)
    assert Evaluator(parse_measure("linear:ndcg@10"), positions).mean(scores) > 0.95


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gain": "log"}, "gain='log'"),
        ({"gain": [0, 1]}, "gain has 2 entries, but labels go up to 2"),
        ({"gain": [0, float("nan"), 3]}, "gains must be numbers of 0 or more"),
        ({"gain": [3, 1, 0]}, "do not decrease with the label"),
    ],
)
def test_impossible_parameters_are_named(parameters, message, capfd):
    with pytest.raises(InputError, match=message):
        quick(**parameters).fit(rows(0))
    captured = capfd.readouterr()
    assert captured.out + captured.err == "", "refused before LightGBM sees them"


def test_rows_that_lightgbm_cannot_take_are_named():
    data = rows(0)
    halves = replace(data, y=data.y / 2)
    with pytest.raises(InputError, match=r"label 0\.5 \(.*\d\): LambdaMART needs whole numbers"):
        quick().fit(halves)
    with pytest.raises(InputError, match=r"label 0\.5 \(row .* of the validation rows\)"):
        quick().fit(data, halves)
    long = RankingData.from_rows(np.zeros((10_001, 1)), np.arange(10_001) % 2, ["long"] * 10_001)
    with pytest.raises(InputError, match="query long has 10,001 rows"):
        quick().fit(long)


def test_numpy_parameters_are_saved(tmp_path):
    ranker = quick(n_estimators=np.int64(3), gain=np.array([0.0, 1.0, 3.0])).fit(rows(0))
    ranker.save(tmp_path / "model")
    again = LambdaMART.load(tmp_path / "model")
    assert (again.n_estimators, again.gain) == (3, [0, 1, 3])


def test_damaged_model_file_is_named(tmp_path):
    quick(n_estimators=3).fit(rows(0)).save(tmp_path / "model")
    text = (tmp_path / "model" / "model.txt").read_text()
    for damaged in ("tree\nversion=v4\n", text[: len(text) // 2]):  # LightGBM crashes on halves
        (tmp_path / "model" / "model.txt").write_text(damaged)
        with pytest.raises(InputError, match=r"model\.txt is damaged"):
            LambdaMART.load(tmp_path / "model")
    (tmp_path / "model" / "model.txt").unlink()
    with pytest.raises(InputError, match=r"model\.txt: No such file or directory; restore"):
        LambdaMART.load(tmp_path / "model")


def test_saved_rankers_do_not_tell_how_many_threads_trained_them(tmp_path):
    folders = []
    for threads in (1, 2, None):
        folders.append(tmp_path / str(threads))
        quick(num_threads=threads, n_estimators=5).fit(rows(0)).save(folders[-1])
    one, *others = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders)
    assert all(other == one for other in others)
    assert LambdaMART.load(folders[0]).num_threads is None


def test_many_rows_are_scored_alike_by_any_number_of_threads():
    ranker, data = quick(n_estimators=20).fit(rows(0)), rows(1)
    many = data.select_rows(np.tile(np.arange(len(data)), 10_000 // len(data) + 1))
    parts = [ranker.set_params(num_threads=n).predict(many) for n in (1, 2)]
    np.testing.assert_array_equal(*parts)
    np.testing.assert_array_equal(parts[0][: len(data)], ranker.predict(data))


def test_rank_xendcg_is_another_objective_that_repeats():
    train, valid, data = rows(0), rows(1), rows(2)
    one, two = (
        quick(objective="rank_xendcg", num_threads=t).fit(train, valid).predict(data)
        for t in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, quick().fit(train, valid).predict(data))
    assert Evaluator(parse_measure("ndcg@10"), data).mean(one) > 0.8
