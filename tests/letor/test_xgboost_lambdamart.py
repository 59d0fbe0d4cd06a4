"""What XGBoost's LambdaMART adds to the contract of rankers."""

import json
import re
from functools import reduce
from operator import getitem

import mutations
import numpy as np
import pytest
from learnable import rows

from letor.errors import InputError
from letor.evaluation import Evaluator
from letor.measures import parse_measure
from letor.rankers.registry import load_ranker
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:map", "rank:pairwise"])
def test_every_objective_learns(objective):
    ranker = XGBoostLambdaMART(objective=objective, n_estimators=40).fit(rows(0), rows(1))
    held_out = rows(2)
    assert Evaluator(parse_measure("ndcg@10"), held_out).mean(ranker.predict(held_out)) > 0.8
    curve = ranker.validation_curve_
    assert ranker.best_iteration_ == np.argmax(curve) + 1


def test_damaged_models_are_refused(tmp_path):
    XGBoostLambdaMART(n_estimators=3).fit(rows(0)).save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text().replace("1", "2"))
    with pytest.raises(InputError, match="damaged"):
        load_ranker(tmp_path / "model")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("trees 0 left_children 0", 0, "tree 0: its nodes are not each below one before"),
        ("trees 0 right_children 0", 10**6, "tree 0: its nodes are not each below one before"),
        ("trees 0 right_children 0", -1, "tree 0: its nodes are not each below one before"),
        ("trees 0 left_children 0", 10**20, "tree 0: its lists are not of whole numbers"),
        ("trees 0 parents 1", 10**6, "tree 0: parents are not those of its nodes"),
        ("trees 0 split_indices 0", 10**6, "columns are 0 to"),
        ("trees 0 split_indices 0", -1, "columns are 0 to"),
        ("trees 0 split_indices", [0], "tree 0: its lists are not of whole numbers alike"),
        ("trees 0 split_type 0", 1, "split_type is 'True', which no ranker of ours has"),
        ("trees 0 categories", [1], r"categories is '\[1\]'"),
        ("trees 0 tree_param size_leaf_vector", "9", "size_leaf_vector is '9'"),
        ("tree_info 0", -9, r"tree_info is '\[-9, 0, 0\]'"),
        ("iteration_indptr 1", -9, "iteration_indptr is"),
        ("gbtree_model_param num_parallel_tree", "9", "num_parallel_tree is '9'"),
    ],
)
def test_trees_that_lead_xgboost_astray_are_refused(path, value, said, tmp_path):
    """It crashes on them, whatever digests say that they are as they were saved."""
    XGBoostLambdaMART(n_estimators=3).fit(rows(0)).save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    found = json.loads(file.read_text())
    *keys, last = (int(key) if key.isdecimal() else key for key in path.split())
    place = reduce(getitem, keys, found["learner"]["gradient_booster"]["model"])
    place[last] = value
    file.write_text(json.dumps(found, separators=(",", ":")))
    mutations.write_digests_anew(tmp_path)
    with pytest.raises(InputError, match=rf"model\.json: .*{said}"):
        load_ranker(tmp_path / "model")


def test_a_model_that_xgboost_refuses_is_told_in_one_line(tmp_path):
    XGBoostLambdaMART(n_estimators=3).fit(rows(0)).save(tmp_path / "model")
    file = tmp_path / "model" / "model.json"
    file.write_text(re.sub(r'"loss_changes":\[[^]]*\]', '"loss_changes":[]', file.read_text()))
    mutations.write_digests_anew(tmp_path)
    with pytest.raises(InputError, match=r"model\.json is not an XGBoost model: .*") as raised:
        load_ranker(tmp_path / "model")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:map"])
def test_labels_that_xgboost_refuses_are_named(objective):
    data = rows(0)
    data.y[3] = 0.5
    query = data.query_ids[data.query_index[3]]
    said = rf"label 0\.5 \(row 3, query {query}\): xgboost with objective='{objective}' needs whole"
    with pytest.raises(InputError, match=said):
        XGBoostLambdaMART(objective=objective, n_estimators=1).fit(data)
    XGBoostLambdaMART(objective="rank:pairwise", n_estimators=1).fit(data)
