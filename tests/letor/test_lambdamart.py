"""What LambdaMART adds to the contract of rankers (tests/contracts/test_rankers.py)."""

import re
from dataclasses import replace

import mutations
import numpy as np
import pytest
from learnable import rows

from letor.dataset import RankingData
from letor.errors import InputError, RankerWarning
from letor.evaluation import Evaluator
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART
from letor.rankers.stored_trees import check_lightgbm


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


def _numbers(key, number):
    """A change of all numbers of a list of the first tree."""
    return rf"\n{key}=.*", lambda line: re.sub(r"[^ =]+(?= |$)", str(number), line[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_numbers("left_child", 0), "Tree=0: its nodes are not each below one before"),
        (_numbers("right_child", 5_000_000), "Tree=0: its nodes are not each below one before"),
        (_numbers("left_child", -5_000_000), "Tree=0: its .* are not each below one"),
        (_numbers("split_feature", 5_000_000), "columns are 0 to"),
        (_numbers("split_feature", -5), "columns are 0 to"),
        (_numbers("decision_type", 1), "decision_type is of no split by a threshold"),
        (_numbers("internal_value", "1e999"), "internal_value is no list of 9 numbers"),
        (_numbers("threshold", "x"), "threshold is no list of 9 numbers"),
        ((r"\nleaf_value=\S+", "\nleaf_value="), "leaf_value is no list of 10 numbers"),
        ((r"\nnum_leaves=10", "\nnum_leaves=1000000"), "is no list of 1000000 numbers"),
        ((r"\nnum_leaves=10", "\nnum_leaves=1_0"), "'1_0' is no whole number"),
        ((r"\nnum_leaves=10", "\nnum_leaves=0"), "is no list of 0 numbers"),
        ((r"\nis_linear=0", "\nis_linear=1"), "is_linear is '1', which no ranker of ours has"),
        ((r"\nnum_cat=0", "\nnum_cat=3"), "num_cat is '3'"),
        ((r"\nnum_class=1", "\nnum_class=1000000"), "num_class is '1000000'"),
        ((r"\nnum_tree_per_iteration=1", "\nnum_tree_per_iteration=0"), "iteration is '0'"),
        ((r"\nobjective=lambdarank", "\nobjective=multiclass num_class:9"), "objective is 'multi"),
        ((r"\nshrinkage=", "\nno value\nshrinkage="), "lines that LightGBM does not write"),
        ((r"\nshrinkage=", "\n" + "a=\n" * 20 + "shrinkage="), "lines is"),
        ((r"\nmax_feature_idx=\d+", "\nmax_feature_idx=0"), "size of feature_names|columns"),
    ],
)  # fmt: skip
def test_trees_that_lead_lightgbm_astray_are_refused(change, said, tmp_path):
    """It crashes on them, whatever digests say that they are as they were saved."""
    ranker = quick(n_estimators=3).fit(rows(0))
    ranker.save(tmp_path / "model")
    path = tmp_path / "model" / "model.txt"
    text = re.sub(*change, path.read_text(), count=1)
    trees = text.partition("\n\nTree=")[2].partition("end of trees")[0].split("\nTree=")
    sizes = " ".join(str(len(f"Tree={tree}") + (tree is not trees[-1])) for tree in trees)
    path.write_text(re.sub("(?<=\ntree_sizes=).*", sizes, text))
    mutations.write_digests_anew(tmp_path)
    with pytest.raises(InputError, match=rf"model\.txt.*({said})"):
        LambdaMART.load(tmp_path / "model")


def test_trees_are_where_their_sizes_say(tmp_path):
    quick(n_estimators=3).fit(rows(0)).save(tmp_path / "model")
    path = tmp_path / "model" / "model.txt"
    path.write_text(re.sub("(?<=\ntree_sizes=).", "99", path.read_text()))
    mutations.write_digests_anew(tmp_path)
    with pytest.raises(InputError, match=r"model\.txt: tree_sizes is '99"):
        LambdaMART.load(tmp_path / "model")


def _chain(n):
    """A tree of LightGBM with a leaf on each of ``n`` levels, and two on the last."""
    lists = {
        **dict.fromkeys(("split_feature", "decision_type", "internal_count"), [0] * n),
        **dict.fromkeys(("split_gain", "threshold", "internal_value", "internal_weight"), [0] * n),
        "left_child": [*range(1, n), -n - 1],
        "right_child": range(-1, -n - 1, -1),
        **dict.fromkeys(("leaf_value", "leaf_weight", "leaf_count"), [1] * (n + 1)),
    }
    lines = [f"Tree=0\nnum_leaves={n + 1}\nnum_cat=0\nis_linear=0"]
    lines += [f"{key}={' '.join(map(str, values))}" for key, values in lists.items()]
    tree = "\n".join([*lines, "\n\n"])
    return (
        f"tree\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\nobjective=lambdarank\n"
        f"tree_sizes={len(tree)}\n\n{tree}end of trees\n"
    )


def test_deep_trees_are_refused():
    """LightGBM goes down by recursion when it explains scores."""
    check_lightgbm(_chain(4097))
    with pytest.raises(InputError, match="Tree=0: has more than 4,096 levels"):
        check_lightgbm(_chain(4098))


def test_trees_with_a_level_for_each_category_are_loaded(tmp_path):
    """Of columns of which one is 1 in each row, every split takes one more off the others."""
    rng = np.random.default_rng(0)
    category = rng.integers(0, 600, 6000)
    label = np.clip(np.round(rng.normal(1, 1, 600)[category]), 0, 4)
    X, queries = np.eye(600, dtype=np.float32)[category], np.repeat(np.arange(300).astype(str), 20)
    data = RankingData.from_rows(X, label, queries)
    ranker = quick(n_estimators=2, num_leaves=600, min_data_in_leaf=1, normalise="none").fit(data)
    ranker.save(tmp_path / "model")
    again = LambdaMART.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data), ranker.predict(data))


def test_trees_that_split_off_missing_values_are_loaded(tmp_path):
    """LightGBM gives such a split the threshold inf."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    label = np.where(np.isnan(X[:, 0]), rng.integers(0, 3, 240), 0)
    data = RankingData.from_rows(X, label, np.repeat(np.arange(20).astype(str), 12))
    ranker = quick(n_estimators=3, min_data_in_leaf=1).fit(data)
    ranker.save(tmp_path / "model")
    assert re.search(r"\nthreshold=.*\binf", (tmp_path / "model" / "model.txt").read_text())
    again = LambdaMART.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data), ranker.predict(data))


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


@pytest.mark.parametrize(("name", "value"), [("gain", np.arange(5.0)), ("truncation_level", 3)])
def test_parameters_that_an_objective_does_not_use_are_told(name, value):
    train, data = rows(0), rows(2)
    usual = quick(objective="rank_xendcg").fit(train)
    with pytest.warns(RankerWarning, match=f"{name} has no effect without objective="):
        ranker = quick(objective="rank_xendcg", **{name: value}).fit(train)
    np.testing.assert_array_equal(ranker.predict(data), usual.predict(data))
    assert not quick(**{name: value}).fit(train).remarks
