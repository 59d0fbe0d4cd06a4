"""Losses and gradients of ListNet and RankNet."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from letor.dataset import RankingData
from letor.errors import InputError
from letor.kernels.networks import Queries, batch_gradient, network_scores, train_epoch
from letor.rankers.neural import ListNet, RankNet

SIZES = {"linear": [5, 1], "one layer": [5, 4, 1], "two layers": [5, 4, 3, 1]}


def rows(seed=0, n_queries=6, size=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * size, 5))
    y = np.floor(3 * rng.random(len(X)))
    return RankingData.from_rows(X, y, np.repeat(np.arange(n_queries), size))


def n_parameters(sizes):
    hidden = pairwise(sizes[:-1])
    return sum(a * b + b for a, b in hidden) + sizes[-2]


def slow_scores(X, parameters, sizes):
    place, out = 0, X.astype(float)
    for layer, (a, b) in enumerate(pairwise(sizes)):
        out = out @ parameters[place : place + a * b].reshape(a, b)
        place += a * b
        if layer < len(sizes) - 2:
            out = np.tanh(out + parameters[place : place + b])
            place += b
    return out[:, 0]


def slow_loss(data, targets, parameters, sizes, by_pairs):
    losses = []
    for q in range(data.n_queries):
        mine = data.query_index == q
        s, t = slow_scores(data.X[mine], parameters, sizes), targets[mine]
        if by_pairs:
            pairs = [np.logaddexp(0, s[j] - s[i]) for i in range(len(s)) for j in range(len(s))
                     if t[i] > t[j]]  # fmt: skip
            losses.append(np.mean(pairs))
        else:
            losses.append(-(t * np.log(np.exp(s) / np.exp(s).sum())).sum())
    return np.mean(losses)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("by_pairs", [False, True])
def test_gradient_is_that_of_finite_differences(sizes, by_pairs):
    data = rows()
    targets = data.y.astype(float) if by_pairs else ListNet()._targets(data)
    rng = np.random.default_rng(1)
    parameters, shape = 0.7 * rng.normal(size=n_parameters(sizes)), np.array(sizes)
    gradient = np.empty(len(parameters))
    queries = np.arange(data.n_queries)
    rows_ = Queries(data.X, targets, data.offsets)
    found = batch_gradient(rows_, queries, by_pairs, parameters, shape, gradient)
    np.testing.assert_allclose(found, slow_loss(data, targets, parameters, sizes, by_pairs))
    for p in range(len(parameters)):
        step = np.zeros(len(parameters))
        step[p] = 1e-5
        above = slow_loss(data, targets, parameters + step, sizes, by_pairs)
        below = slow_loss(data, targets, parameters - step, sizes, by_pairs)
        np.testing.assert_allclose(gradient[p], (above - below) / 2e-5, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_scores_are_those_of_matrix_products(sizes):
    data = rows()
    parameters = np.random.default_rng(2).normal(size=n_parameters(sizes))
    np.testing.assert_allclose(
        network_scores(data.X, parameters, np.array(sizes)),
        slow_scores(data.X, parameters, sizes),
    )


def test_targets_of_listnet_are_shares_of_each_query():
    data = rows()
    targets = ListNet(label_scale=2.0)._targets(data)
    for q in range(data.n_queries):
        mine = data.query_index == q
        share = np.exp(2.0 * data.y[mine])
        np.testing.assert_allclose(targets[mine], share / share.sum())


@pytest.mark.parametrize("kind", [ListNet, RankNet])
def test_training_lowers_the_loss(kind):
    data = rows(3, 40)
    data = replace(data, y=np.floor(2 * (data.X[:, 0] > 0) * (data.X[:, 1] > 0)))
    few, many = (
        kind(hidden=[8, 4], n_epochs=n, learning_rate=0.01).fit(data).predict(data)
        for n in (1, 100)
    )
    of_grid, plain = (kind(hidden=h, n_epochs=1).fit(data).predict(data) for h in (np.int64(4), 4))
    np.testing.assert_array_equal(of_grid, plain)
    wrong = [np.mean([np.corrcoef(s, data.y)[0, 1]]) for s in (few, many)]
    assert wrong[1] > max(wrong[0], 0.8)


def adam(queries, batches, theta, sizes, rate, decay):
    """Parameters after a step of Adam on each batch. Kingma, Ba, ICLR 2015, algorithm 1; the decay
    of weights is that of Loshchilov, Hutter, ICLR 2019, algorithm 2."""
    m, v, gradient = np.zeros(len(theta)), np.zeros(len(theta)), np.empty(len(theta))
    for t, batch in enumerate(batches, start=1):
        batch_gradient(queries, batch, False, theta, sizes, gradient)
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        change = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        theta = theta - rate * (change + decay * theta)
    return theta


def test_an_epoch_is_a_step_of_adam_for_each_batch():
    """Of 2 queries; the last one of 5 is a batch of its own."""
    data, sizes = rows(n_queries=5), np.array(SIZES["one layer"])
    queries = Queries(data.X, ListNet()._targets(data), data.offsets)
    rng = np.random.default_rng(5)
    start = rng.normal(size=n_parameters(sizes))
    parameters, moments, step = start.copy(), np.zeros((2, len(start))), 0
    orders = [rng.permutation(5) for _ in range(3)]
    for order in orders:
        step = train_epoch(queries, order, 2, False, 0.03, 0.2, parameters, sizes, moments, step)
    batches = [batch for order in orders for batch in (order[:2], order[2:4], order[4:])]
    assert step == len(batches)
    expected = adam(queries, batches, start, sizes, 0.03, 0.2)
    np.testing.assert_allclose(parameters, expected, rtol=1e-9)


def test_steps_of_adam_are_counted_over_all_epochs():
    data = rows(n_queries=5)
    settings = {"batch_size": 5, "learning_rate": 0.03, "weight_decay": 0.2, "normalise": "none"}
    found = ListNet(n_epochs=4, **settings).fit(data)._model["networks"][0]
    queries = Queries(data.X, ListNet()._targets(data), data.offsets)
    expected = adam(queries, [np.arange(5)] * 4, np.zeros(5), np.array([5, 1]), 0.03, 0.2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [ListNet, RankNet])
def test_the_epoch_that_is_best_on_the_validation_rows_is_kept(kind):
    """The first of equal ones; three epochs without a better one end the training."""
    train, valid = rows(6, 20), rows(7, 5)
    settings = {"hidden": 4, "learning_rate": 0.05}
    stopped = kind(**settings, early_stopping_rounds=3).fit(train, valid)
    best = int(np.argmax(stopped.validation_curve_)) + 1
    assert len(stopped.validation_curve_) == best + 3 < 200
    assert stopped.score(valid) == max(stopped.validation_curve_)
    again = kind(**settings, n_epochs=best).fit(train)
    np.testing.assert_array_equal(stopped._model["networks"], again._model["networks"])


def test_a_seed_decides_the_order_of_the_queries():
    """A linear ranker starts from zeros whatever the seed."""
    data = rows(8, 12)
    one, same, other = (
        ListNet(n_epochs=1, batch_size=1, seed=seed).fit(data).predict(data) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_networks_are_averaged():
    data = rows(4, 20)
    several = RankNet(n_networks=3, n_epochs=5, hidden=3).fit(data)
    first = RankNet(n_networks=1, n_epochs=5, hidden=3).fit(data)
    assert several._model["networks"].shape[0] == 3
    np.testing.assert_array_equal(several._model["networks"][0], first._model["networks"][0])
    assert not np.array_equal(several.predict(data), first.predict(data))


def test_the_gain_of_a_column_is_the_sum_of_its_weights_in_all_networks():
    data = rows(4, 20)
    ranker = RankNet(n_networks=2, n_epochs=3, hidden=3).fit(data)
    weights = np.abs([net[:15].reshape(5, 3) for net in ranker._model["networks"]])
    table = ranker.feature_importance().set_index("column").loc[data.column_names]
    np.testing.assert_allclose(table["gain"], weights.sum(axis=(0, 2)))
    assert table["splits"].tolist() == [6] * 5


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (RankNet(hidden=[0]), r"hidden=\[0\]"),
        (RankNet(hidden=np.int64(-1)), r"hidden=np.int64\(-1\)"),
        (RankNet(hidden=2.5), r"hidden=2\.5"),
        (RankNet(hidden=-1), "hidden=-1"),
    ],
)
def test_impossible_parameters_are_named(ranker, message):
    with pytest.raises(InputError, match=message):
        ranker.fit(rows())
