"""Choice of parameters by validation rows."""

import sys

import numpy as np
import pytest
from learnable import rows

from letor.errors import InputError, LetorWarning
from letor.evaluation import Evaluator
from letor.measures import choosing_measure
from letor.rankers.registry import get_ranker
from letor.tuning import GRIDS, tune, tune_by_optuna


def test_best_trial_by_validation_is_kept():
    train, valid = rows(0), rows(1)
    tuned = tune(
        "rankboost", train, valid, grid={"n_rounds": [1, 20], "n_thresholds": [2, 50]},
        measure="map", fixed={"normalise": "minmax"},
    )  # fmt: skip
    evaluator = Evaluator(choosing_measure("map"), valid)
    expected = [
        evaluator.mean(
            get_ranker("rankboost")(n_rounds=n, n_thresholds=t, normalise="minmax")
            .fit(train, valid)
            .predict(valid)
        )
        for n in (1, 20)
        for t in (2, 50)
    ]
    np.testing.assert_array_equal(tuned.trials["value"], expected)
    best = tuned.trials.iloc[int(np.argmax(expected))]
    assert tuned.parameters == {p: best[p] for p in ("n_rounds", "n_thresholds")}
    assert evaluator.mean(tuned.ranker.predict(valid)) == max(expected)
    assert tuned.ranker.get_params()["normalise"] == "minmax"


def test_of_equal_trials_the_first_wins():
    for threads in ([1, 2], [2, 1]):  # which change nothing
        grid = {"num_threads": threads}
        tuned = tune("lambdamart", rows(0), rows(1), grid=grid, fixed={"n_estimators": 3})
        assert tuned.trials["value"].nunique() == 1
        assert tuned.parameters == {"num_threads": threads[0]}


@pytest.mark.parametrize("name", sorted(GRIDS))
def test_default_grids_name_parameters_of_their_ranker(name):
    assert set(GRIDS[name]) <= set(get_ranker(name)().get_params())


def test_fixed_parameters_leave_the_default_grid():
    tuned = tune(
        "lambdamart", rows(0), rows(1), fixed={"n_estimators": 5, "num_leaves": 4, "measure": "map"}
    )
    assert list(tuned.trials.columns) == ["min_data_in_leaf", "value"]
    assert tuned.ranker.get_params()["measure"] == "map"


def test_a_ranker_that_cannot_tell_rows_apart_is_not_chosen_by_the_order_of_the_file():
    """Rows sorted by label: in their order, equal scores would rank perfectly."""
    train, valid = (
        data.select_rows(np.argsort(-data.y, kind="stable")) for data in (rows(0), rows(1))
    )
    fixed = {"n_estimators": 5, "min_data_in_leaf": len(train)}
    with pytest.warns(LetorWarning, match="learned nothing"):
        tuned = tune("lambdamart", train, valid, grid={}, fixed=fixed)
    assert tuned.trials["value"][0] == tuned.ranker.score(valid) < 0.9
    with pytest.warns(LetorWarning, match="learned nothing"):
        tuned = tune("lambdamart", train, valid, grid={"min_data_in_leaf": [len(train), 5]})
    assert tuned.parameters == {"min_data_in_leaf": 5}


def test_bad_searches_are_refused():
    with pytest.raises(InputError, match="n_rounds has no values"):
        tune("adarank", rows(0), rows(1), grid={"n_rounds": []})
    for one in (7, "none"):
        with pytest.raises(InputError, match=rf"n_rounds must be a list .* such as \[{one!r}\]"):
            tune("adarank", rows(0), rows(1), grid={"n_rounds": one})
    with pytest.raises(InputError, match="n_rounds in grid and in fixed"):
        tune("adarank", rows(0), rows(1), grid={"n_rounds": [3]}, fixed={"n_rounds": 4})
    with pytest.raises(InputError, match="no parameter 'trees'"):
        tune("adarank", rows(0), rows(1), grid={"trees": [1]})
    with pytest.raises(InputError, match="'svm' has no default grid"):
        tune("svm", rows(0), rows(1))


def test_optuna_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"ltr-features\[tune\]"):
        tune_by_optuna("adarank", rows(0), rows(1), lambda trial: {}, n_trials=2)


def test_optuna_proposes_parameters():
    pytest.importorskip("optuna")
    values = [
        tune_by_optuna(
            "rankboost", rows(0), rows(1),
            lambda trial: {"n_rounds": trial.suggest_int("n_rounds", 1, 30)}, n_trials=4, seed=3,
        ).trials.to_numpy()
        for _ in range(2)
    ]  # fmt: skip
    assert values[0].shape == (4, 2)
    np.testing.assert_array_equal(values[0], values[1])
