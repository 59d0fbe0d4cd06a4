"""AdaRank and RankBoost against slow twins, step by step."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import Evaluator
from letor.measures import parse_measure
from letor.rankers.adarank import AdaRank
from letor.rankers.array_ranker import in_own_order, with_pairs
from letor.rankers.rankboost import RankBoost, _thresholds
from letor.rankers.registry import get_ranker


def rows(seed, n_queries=8, size=7, p=4):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n_queries * size, p)).astype(np.float32)
    y = rng.integers(0, 3, size=len(X))
    y[:size] = 0  # a query without relevant rows
    return RankingData.from_rows(X, y, np.repeat(np.arange(n_queries), size))


def slow_adarank(data, rounds, update, repeats, measure):
    """Weights of [columns, negated columns] after each round."""
    evaluator = Evaluator(parse_measure(measure), data)
    H = np.hstack([data.X, -data.X]).astype(float)
    E = [evaluator.per_query(h) for h in H.T]
    P, weights, history, taken = np.full(len(E[0]), 1 / len(E[0])), np.zeros(H.shape[1]), [], []
    for _ in range(rounds):
        allowed = [k for k in range(H.shape[1]) if taken.count(k) < repeats]
        k = max(allowed, key=lambda k: (P @ E[k], -k))
        alpha = 0.5 * np.log((P @ (1 + E[k])) / (P @ (1 - E[k])))
        weights[k] += alpha
        taken.append(k)
        E_now = evaluator.per_query(H @ weights)
        P = np.exp(-E_now) if update == "paper" else P * np.exp(-alpha * E_now)
        P = P / P.sum()
        history.append(weights[:4] - weights[4:])
    return history


@pytest.mark.parametrize("update", ["paper", "multiplied"])
@pytest.mark.parametrize("measure", ["map", "ndcg@5"])
def test_adarank_takes_the_steps_of_the_paper(update, measure):
    data = rows(0)
    twin = slow_adarank(with_pairs(in_own_order(data)), 6, update, 2, measure)
    for rounds, expected in enumerate(twin, start=1):
        ranker = AdaRank(
            n_rounds=rounds, measure=measure, update=update, max_repeats=2, normalise="none"
        ).fit(data)
        np.testing.assert_allclose(ranker.predict(data), data.X @ expected, rtol=1e-5, atol=1e-5)


def test_adarank_uses_descending_columns_if_allowed():
    data = rows(1)
    y = 8 - data.X[:, 2].round()
    data = RankingData.from_rows(data.X, y, data.query_index)
    evaluator = Evaluator(parse_measure("ndcg@5"), data)
    values = [
        evaluator.mean(AdaRank(n_rounds=1, descending=both, normalise="none").fit(data)
                       .predict(data))
        for both in (True, False)
    ]  # fmt: skip
    assert values[0] == 1 > values[1]


def pairs_of(data):
    for q in range(data.n_queries):
        mine = np.flatnonzero(data.query_index == q)
        for i, j in itertools.permutations(mine, 2):
            if data.y[i] > data.y[j]:
                yield q, i, j


def slow_rankboost(data, rounds, per_query):
    """Scores after each round, with weights of all pairs kept one by one."""
    pairs = list(pairs_of(data))
    n_pairs = np.bincount([q for q, _, _ in pairs], minlength=data.n_queries)
    D = np.array([1 / n_pairs[q] if per_query else 1.0 for q, _, _ in pairs])
    scores, history = np.zeros(len(data)), []
    for _ in range(rounds):
        D /= D.sum()
        candidates = []
        for k in range(data.X.shape[1]):
            for value in np.unique(data.X[:, k])[:-1]:
                h = (data.X[:, k] > value).astype(float)
                candidates.append(
                    (sum(d * (h[i] - h[j]) for d, (_, i, j) in zip(D, pairs, strict=True)), h)
                )
        r, h = max(candidates, key=lambda c: abs(c[0]))
        alpha = 0.5 * np.log((1 + r) / (1 - r))
        scores = scores + alpha * h
        D *= np.exp([alpha * (h[j] - h[i]) for _, i, j in pairs])
        history.append(scores)
    return history


@pytest.mark.parametrize("query_weights", ["pairs", "queries"])
def test_rankboost_takes_the_steps_of_the_paper(query_weights):
    data = rows(2)
    twin = slow_rankboost(with_pairs(data), 6, query_weights == "queries")
    for rounds, expected in enumerate(twin, start=1):
        ranker = RankBoost(
            n_rounds=rounds, query_weights=query_weights, descending=True, normalise="none"
        ).fit(data)
        found = ranker.predict(with_pairs(data))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_best_round_by_validation_is_kept():
    train, valid = rows(5, 40), rows(6, 40)
    for ranker in (AdaRank(n_rounds=30, max_repeats=2), RankBoost(n_rounds=30)):
        ranker.fit(train, valid)
        curve = np.array(ranker.validation_curve_)
        again = type(ranker)(**{**ranker.get_params(), "n_rounds": int(curve.argmax()) + 1})
        np.testing.assert_array_equal(again.fit(train).predict(valid), ranker.predict(valid))


def test_rankboost_stops_when_no_pair_weighs_anything():
    data = RankingData.from_rows([[0], [1], [0], [1]], [0, 1, 0, 1], list("aabb"))
    ranker = RankBoost(n_rounds=500).fit(data)
    assert np.isfinite(ranker.predict(data)).all()
    assert ranker.feature_importance()["gain"].to_list()[0] > 0


_UP = np.nextafter(np.float32(1), np.float32(2))


@pytest.mark.parametrize(
    ("column", "most", "expected"),
    [
        ([1, 2, 4, 2], 9, [1.5, 3]),
        ([7], 9, []),
        ([-1, 0, 0.25], 9, [-0.5, 0.125]),
        # Between neighbours there is nothing: the lower one.
        ([1, _UP, 3], 9, [1, 2]),
        ([_UP, np.nextafter(_UP, np.float32(2))], 9, [_UP]),  # half way is rounded upwards here
        ([0, 1, 2], 2, [0.5, 1.5]),
        # Two thresholds for 9 rows: above the rows a third and two thirds of the way.
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], 2, [4.5, 7]),
        ([0, 0, 0, 0, 0, 0, 0, 1, 8], 1, [4]),
    ],
)
def test_thresholds_lie_half_way_to_the_next_value(column, most, expected):
    found = _thresholds(np.array(column, np.float32), most)
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_thresholds_of_many_rows_where_whole_numbers_have_32_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on Windows with NumPy 1."""
    column = np.arange(1 << 20, dtype=np.float32)
    expected, arange = _thresholds(column, 4096), np.arange
    monkeypatch.setattr(np, "arange", lambda *a, dtype=np.int32: arange(*a, dtype=dtype))
    np.testing.assert_array_equal(_thresholds(column, 4096), expected)


def test_a_value_that_equals_its_threshold_is_below_it():
    """In training, on validation rows and in scoring: neighbouring numbers, of which the lower one
    is the threshold."""
    low = np.float32(1)
    high = np.nextafter(low, np.float32(2))
    data = RankingData.from_rows([[low], [high], [low], [high]], [0, 1, 0, 1], list("aabb"))
    ranker = RankBoost(n_rounds=1).fit(data, data)
    assert ranker.validation_curve_ == [1.0]
    scores = ranker.predict(data)
    assert scores[0] == 0
    assert scores[1] > 0


@pytest.mark.parametrize(
    ("name", "most"),
    [("n_rounds", 1_000_000), ("max_repeats", 1_000_000), ("early_stopping_rounds", 2**31 - 1)],
)
def test_limits_of_adarank(name, most):
    with pytest.raises(InputError, match=name):
        AdaRank(**{name: most + 1}).fit(rows(0))
    with pytest.raises(InputError, match=name):
        AdaRank(**{name: 0}).fit(rows(0))
    if name != "n_rounds":
        assert AdaRank(**{name: most, "n_rounds": 1}).fit(rows(0)).predict(rows(0)).any()


def test_adarank_of_many_queries_does_not_depend_on_blas_threads():
    data = rows(0, n_queries=12_000, size=3, p=40)
    fitted = []
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="blas"):
            fitted.append(AdaRank(n_rounds=20, max_repeats=1).fit(data)._model["weights"])
    np.testing.assert_array_equal(*fitted)


def test_adarank_learns_from_the_queries_that_its_measure_counts() -> None:
    """``skip:`` leaves out queries without a document of label 2, wherever they come."""
    data = rows(0)
    plain = replace(data, y=np.where(data.query_index % 3 == 0, np.minimum(data.y, 1), data.y))
    counted = plain.select_rows(plain.query_index % 3 > 0)
    for update in ("paper", "multiplied"):
        ranker, expected = (
            AdaRank(measure="skip:map(rel=2)", update=update).fit(part) for part in (plain, counted)
        )
        np.testing.assert_allclose(ranker.predict(plain), expected.predict(plain), rtol=1e-6)


@pytest.mark.parametrize("name", ["adarank", "coordinate-ascent", "rankboost", "listnet",
                                  "lambdamart", "xgboost"])  # fmt: skip
def test_a_measure_that_counts_no_validation_query_is_refused(name: str) -> None:
    train, valid = rows(0), rows(1)
    valid = replace(valid, y=np.minimum(valid.y, 1))
    with pytest.raises(InputError, match=r"'skip:map\(rel=2\)' leaves out all \d+ queries"):
        get_ranker(name)(measure="skip:map(rel=2)").fit(train, valid)
