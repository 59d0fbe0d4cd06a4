"""What XGBoost's LambdaMART adds to the contract of rankers."""

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


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:map"])
def test_labels_that_xgboost_refuses_are_named(objective):
    data = rows(0)
    data.y[3] = 0.5
    query = data.query_ids[data.query_index[3]]
    said = rf"label 0\.5 \(row 3, query {query}\): xgboost with objective='{objective}' needs whole"
    with pytest.raises(InputError, match=said):
        XGBoostLambdaMART(objective=objective, n_estimators=1).fit(data)
    XGBoostLambdaMART(objective="rank:pairwise", n_estimators=1).fit(data)
