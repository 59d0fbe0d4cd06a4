"""Contributions of columns to scores: they add up, and are the terms of rankers that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from letor.dataset import RankingData
from letor.rankers.adarank import AdaRank
from letor.rankers.contributions import ORDERS, column_contributions
from letor.rankers.coordinate_ascent import CoordinateAscent
from letor.rankers.lambdamart import LambdaMART
from letor.rankers.neural import ListNet, RankNet
from letor.rankers.rankboost import RankBoost
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART


@pytest.fixture(scope="module")
def rows() -> RankingData:
    """40 queries of 10 rows; the label needs the columns "a" and "b" together."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 4), dtype=np.float32)
    y = np.floor(3 * np.clip(X[:, 0] * X[:, 1] + 0.2 * X[:, 2], 0, 0.999))
    query = np.repeat([f"q{i}" for i in range(40)], 10)
    return RankingData.from_rows(X, y, query, column_names=["a", "b", "c", "d"])


LINEAR = [
    ListNet(hidden=0, n_epochs=10),
    RankNet(hidden=0, n_epochs=10),
    AdaRank(n_rounds=20),
    CoordinateAscent(n_restarts=1, n_sweeps=2),
]
RANKERS = [
    *LINEAR,
    ListNet(hidden=5, n_epochs=20, n_networks=2, normalise="standard"),
    RankNet(hidden=[4, 3], n_epochs=20, normalise="raw+zscore"),
    RankBoost(n_rounds=30),
    LambdaMART(n_estimators=20, normalise="minmax"),
    XGBoostLambdaMART(n_estimators=20),
]


def parts_of(ranker, rows):
    ranker.fit(rows)
    query = rows.select_queries(["q7"])
    return query, column_contributions(ranker, query)


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_contributions_add_up_to_the_score(ranker, rows):
    query, parts = parts_of(ranker, rows)
    scores = ranker.predict(query).astype(np.float64)
    assert np.ptp(scores) > 0
    np.testing.assert_allclose(
        parts.sum(axis=1), scores - scores.mean(), atol=2e-6 * np.abs(scores).max() + 1e-6
    )
    np.testing.assert_allclose(parts.mean(axis=0), 0, atol=1e-12)


def test_a_column_gets_the_contributions_of_its_copies(rows):
    X = rows.X.copy()
    X[:, [0, 1, 3]] = 1
    ranker = LambdaMART(n_estimators=5, normalise="raw+zscore")
    _, parts = parts_of(ranker, replace(rows, X=X))
    assert np.flatnonzero(np.ptp(parts, axis=0)).tolist() == [2]


@pytest.mark.parametrize("ranker", RANKERS[-3:], ids=repr)
def test_some_rows_of_several_queries(ranker, rows):
    """Rows are normalised with all of their query, and told against those that are wanted."""
    ranker.fit(rows)
    two = rows.select_queries(["q3", "q9"])
    wanted = np.tile(np.arange(10) < 4, 2)
    parts = column_contributions(ranker, two, wanted)
    scores = ranker.predict(two).astype(np.float64)[wanted].reshape(2, 4)
    centred = scores - scores.mean(axis=1, keepdims=True)
    assert parts.sum(axis=1).reshape(2, 4) == pytest.approx(centred, abs=1e-5)


@pytest.mark.parametrize("ranker", LINEAR, ids=repr)
def test_linear_rankers_give_their_terms(ranker, rows):
    query, parts = parts_of(ranker, rows)
    model = ranker._model
    weights = model["weights"] if "weights" in model else model["networks"][0][:4]
    terms = ranker.normaliser_.transform(query).X * weights
    np.testing.assert_allclose(parts, terms - terms.mean(axis=0), atol=3e-6)
    assert np.abs(parts).max() > 1e-3


def test_rankboost_gives_its_steps(rows):
    ranker = RankBoost(n_rounds=30, normalise="none")
    query, parts = parts_of(ranker, rows)
    model, terms = ranker._model, np.zeros((10, 4))
    for j, threshold, alpha in zip(
        model["column"], model["threshold"], model["alpha"], strict=True
    ):
        terms[:, j] += alpha * (query.X[:, j] > threshold)
    np.testing.assert_allclose(parts, terms - terms.mean(axis=0), atol=3e-6)


def test_two_columns_of_a_network_give_shapley_s_formula(rows):
    two = rows.select_columns(["a", "b"])
    ranker = RankNet(hidden=6, n_epochs=40, normalise="none")
    query, parts = parts_of(ranker, two)
    X = query.X
    middle = np.tile(np.sort(X, axis=0)[4], (10, 1))

    def f(*columns: int) -> np.ndarray:
        chosen = middle.copy()
        chosen[:, list(columns)] = X[:, list(columns)]
        return ranker.predict(replace(query, X=chosen)).astype(np.float64)

    a = (f(0) - f() + f(0, 1) - f(1)) / 2
    b = (f(1) - f() + f(0, 1) - f(0)) / 2
    expected = np.column_stack([a, b])
    np.testing.assert_allclose(parts, expected - expected.mean(axis=0), atol=1e-6)
    assert np.abs(f(0, 1) - f(0) - f(1) + f()).max() > 1e-3  # the columns work together


def test_missing_values_and_a_single_row(rows):
    ranker = ListNet(n_epochs=5).fit(rows)
    query = rows.select_queries(["q3"])
    X = query.X.copy()
    X[::2, 1] = np.nan
    holes = replace(query, X=X)
    parts = column_contributions(ranker, holes)
    scores = ranker.predict(holes).astype(np.float64)
    np.testing.assert_allclose(parts.sum(axis=1), scores - scores.mean(), atol=1e-5)
    one = query.select_rows(np.array([0]))
    assert np.array_equal(column_contributions(ranker, one), np.zeros((1, 4)))


@pytest.mark.parametrize(
    ("ranker", "calls"), [(AdaRank(n_rounds=20), 2), (RankNet(n_epochs=20), 1 + ORDERS)], ids=repr
)
def test_one_order_is_enough_for_rankers_that_add_up(ranker, calls, rows, monkeypatch):
    seen = []
    predict = type(ranker).predict

    def counted(self, data):
        seen.append(len(data))
        return predict(self, data)

    monkeypatch.setattr(type(ranker), "predict", counted)
    parts_of(ranker, rows)
    assert len(seen) == calls
    assert set(seen[1:]) == {5 * 10}  # the median row, then one more column each time
