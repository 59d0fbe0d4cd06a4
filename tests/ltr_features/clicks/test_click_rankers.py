"""Rankers that learn from clicks themselves, and what positions do to them."""

from dataclasses import replace

import numpy as np
import pytest

from letor.dataset import RankingData
from letor.errors import InputError, RankerWarning
from letor.evaluation import Evaluator
from letor.fold_files import concatenate
from letor.measures import parse_measure
from letor.rankers.lambdamart import LambdaMART
from letor.rankers.registry import load_ranker
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART
from ltr_features.clicks.judging import click_rows
from ltr_features.clicks.simulation import Simulation, Users

RANKERS = [
    (LambdaMART, "position_bias", {"n_estimators": 60, "learning_rate": 0.1}),
    (XGBoostLambdaMART, "lambdarank_unbiased", {"n_estimators": 60, "learning_rate": 0.1}),
]


def judged(seed, n_queries=40, size=12):
    """Column "good" tells the labels, column "shown" is what production ranks by: nothing."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    good = rng.random(n)
    y = np.floor(3 * np.clip(good + 0.2 * rng.normal(size=n), 0, 0.999))
    ids = np.array([f"d{i}" for i in range(n)], dtype=object)
    queries = np.repeat([f"q{seed}-{i}" for i in range(n_queries)], size)
    X = np.stack([good, rng.random(n)], axis=1)
    return RankingData.from_rows(X, y, queries, document_ids=ids, column_names=["good", "shown"])


@pytest.fixture(scope="module")
def clicked():
    data = judged(0)
    users = Users(eta=2.0, noise=0.1)
    log = Simulation(data, data.column("shown"), users, depth=12, exploration=0.5).log(6_000)
    return click_rows(log, data), log, data


def test_pages_become_rows(clicked):
    rows, log, data = clicked
    pages = log.pages
    n_clicks = np.add.reduceat(pages.click.astype(int), pages.offsets[:-1])
    chosen = (n_clicks > 0) & (n_clicks < np.diff(pages.offsets))
    assert rows.n_queries == pages.count[chosen].sum()
    assert rows.y.sum() == (pages.count * n_clicks)[chosen].sum()
    assert rows.group_sizes.tolist() == [12] * rows.n_queries
    assert (rows.positions.reshape(-1, 12) == np.arange(12)).all()
    one = rows.select_rows(rows.query_index == 5)
    assert one.positions.tolist() == list(range(12))
    first = {tuple(x): row for row, x in enumerate(data.X.tolist())}
    assert len({data.query_index[first[tuple(x)]] for x in one.X.tolist()}) == 1


def test_rows_that_are_not_there_are_left_out(clicked):
    _, log, data = clicked
    half = data.select_rows(np.arange(len(data)) % 2 == 0)
    rows = click_rows(log, half)
    assert (rows.group_sizes == 6).all()
    assert set(map(tuple, rows.X.tolist())) <= set(map(tuple, half.X.tolist()))
    with pytest.raises(InputError, match="do the ids agree"):
        click_rows(log, judged(7))
    with pytest.raises(InputError, match="no document ids"):
        click_rows(log, replace(data, document_ids=None))


@pytest.mark.parametrize(("kind", "parameter", "quick"), RANKERS)
def test_learning_what_positions_do_helps(clicked, kind, parameter, quick, tmp_path):
    rows, _, _ = clicked
    test = judged(1)
    measure = Evaluator(parse_measure("ndcg@5"), test)
    plain = kind(**quick).fit(rows)
    debiased = kind(**quick, **{parameter: True}).fit(rows)
    assert measure.mean(debiased.predict(test)) > measure.mean(plain.predict(test)) + 0.01
    importance = [r.feature_importance().set_index("column")["gain"] for r in (plain, debiased)]
    share = [gain["shown"] / gain.sum() for gain in importance]
    assert share[1] < share[0]  # the column of production explains less
    again = kind(**quick, **{parameter: True}).fit(rows)
    np.testing.assert_array_equal(again.predict(test), debiased.predict(test))
    debiased.save(tmp_path / "ranker")
    loaded = load_ranker(tmp_path / "ranker")
    assert loaded.get_params()[parameter] is True
    np.testing.assert_array_equal(loaded.predict(test), debiased.predict(test))


def test_xgboost_gets_the_rows_by_position(clicked):
    rows, _, _ = clicked
    few = rows.select_rows(rows.query_index < 300)
    turned = few.select_rows(np.arange(len(few))[::-1])
    ranker = XGBoostLambdaMART(n_estimators=20, lambdarank_unbiased=True)
    a, b = (ranker.fit(x).predict(judged(1)) for x in (few, turned))
    np.testing.assert_allclose(a, b, atol=1e-4)


@pytest.mark.parametrize(("kind", "parameter", "quick"), RANKERS)
def test_positions_are_needed(kind, parameter, quick):
    with pytest.raises(InputError, match=f"{parameter} needs to know where each row was shown"):
        kind(**quick, **{parameter: True}).fit(judged(0))
    data = replace(judged(0), positions=np.full(480, -1))
    with pytest.raises(InputError, match="positions must be 0 or more"):
        kind(**quick, **{parameter: True}).fit(data)
    with pytest.raises(InputError, match=f"{parameter}="):
        kind(**{parameter: "yes"}).fit(data)


def test_objectives_that_do_not_learn_positions_are_refused():
    with pytest.raises(InputError, match="only objective='lambdarank'"):
        LambdaMART(objective="rank_xendcg", position_bias=True).fit(judged(0))
    with pytest.raises(InputError, match="rank:map does not learn it"):
        XGBoostLambdaMART(objective="rank:map", lambdarank_unbiased=True).fit(judged(0))


@pytest.mark.parametrize(("kind", "parameter", "quick"), RANKERS)
def test_a_parameter_of_positions_that_are_not_learned_is_told(kind, parameter, quick, clicked):
    idle = next(name for name, (other, _) in kind.effective_with.items() if other == parameter)
    with pytest.warns(RankerWarning, match=f"{idle} has no effect without {parameter}=True"):
        kind(**quick, **{idle: 0.5}).fit(judged(0))
    for params in ({}, {parameter: True, idle: 0.5}):
        assert not kind(**quick, **params).fit(clicked[0]).remarks


def test_positions_have_an_entry_per_row_and_are_not_joined():
    data = judged(0)
    with pytest.raises(InputError, match="positions has 3 entries"):
        replace(data, positions=np.arange(3))
    shown = replace(data, positions=np.arange(len(data)) % 12)
    assert concatenate([shown.select_rows(np.arange(12))]).positions is None
