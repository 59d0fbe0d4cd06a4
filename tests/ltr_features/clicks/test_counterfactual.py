"""What another ranking's clicks would be, and their intervals."""

import numpy as np
import pandas as pd
import pytest
from click_logs import judged_rows, log_of
from threadpoolctl import threadpool_limits

from letor.dataset import RankingData
from letor.errors import InputError
from ltr_features.clicks.counterfactual import estimate_clicks
from ltr_features.clicks.judging import (
    ClickJudgements,
    click_rows,
)
from ltr_features.clicks.position_models import ClickRate, PositionBased
from ltr_features.clicks.simulation import Simulation, Users
from ltr_features.text.query_texts import ids_of_texts


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("depth", [5, 15])
def test_another_rankings_clicks_are_within_the_interval(seed, depth):
    """What a second ranker would get is estimated from the log of the first; here it is asked. With
    a depth of 5 most pages lack most documents."""
    data = judged_rows(seed)
    logged = Simulation(data, data.X[:, 0], Users(), depth=depth, exploration=1.0, seed=seed)
    other = Simulation(data, data.X[:, 1], Users(), depth=depth, seed=seed + 100)
    log = logged.log(30_000)
    examination = Users().examination(depth)
    queries = np.asarray(data.query_ids, dtype=object)[data.query_index]
    run = pd.DataFrame({"qid": queries, "docno": data.document_ids, "score": data.X[:, 1]})
    estimate = estimate_clicks(log, examination, run, confidence=0.999)
    asked = other.log(100_000)
    truth = asked.clicked.sum() / asked.n_pages
    assert estimate.low - 0.01 < truth < estimate.high + 0.01
    assert abs(estimate.logged - log.clicked.sum() / 30_000) < 1e-12
    assert estimate.unseen == 0
    assert estimate.most == estimate.high
    model = PositionBased().fit(log)
    with_model = estimate_clicks(
        log, model.examination_, run, covariance=model.examination_covariance_, confidence=0.999
    )
    assert with_model.low - 0.02 < truth < with_model.high + 0.02


def test_the_error_of_the_examination_adds_to_that_of_the_estimate():
    """By differences of the value."""
    shown = [([0, 1, 2], [True, False, False]), ([1, 2, 0], [True, False, True]),
             ([2, 0, 1], [False, True, False]), ([0, 1, 2], [False, True, False])]  # fmt: skip
    log = log_of([(0, documents, [0, 1, 2], clicks) for documents, clicks in shown])
    run = pd.DataFrame({"qid": ["q0"] * 3, "docno": ["d2", "d0", "d1"], "score": [3.0, 2.0, 1.0]})
    examination = np.array([1.0, 0.6, 0.4])
    covariance = np.array([[0, 0, 0], [0, 0.03, 0.01], [0, 0.01, 0.02]])
    slope = [
        (estimate_clicks(log, examination + step, run).value
         - estimate_clicks(log, examination - step, run).value) / 2e-5
        for step in 1e-5 * np.eye(3)
    ]  # fmt: skip
    alone = estimate_clicks(log, examination, run)
    found = estimate_clicks(log, examination, run, covariance=covariance)
    added = found.standard_error**2 - alone.standard_error**2
    assert added == pytest.approx(slope @ covariance @ slope, rel=1e-5)
    assert added > 0


def test_estimates_and_predictions_of_large_logs_do_not_depend_on_blas_threads():
    data = judged_rows(n_queries=1500)
    log = Simulation(data, data.X[:, 0], Users(), exploration=1.0).log(60_000)
    queries = np.asarray(data.query_ids, dtype=object)[data.query_index]
    run = pd.DataFrame({"qid": queries, "docno": data.document_ids, "score": data.X[:, 1]})
    new = judged_rows(seed=1, n_queries=9000)  # pairs without clicks get the mean of all others
    new = Simulation(new, new.X[:, 0], Users(), exploration=1.0).log(500)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            estimate = estimate_clicks(log, Users().examination(10), run, largest=1.0)
            found.append((estimate, ClickRate().fit(log).predict(new).log_likelihood))
    assert found[1:] == found[:-1]


def test_the_same_ranking_has_its_own_clicks():
    data = judged_rows()
    log = Simulation(data, data.X[:, 0], Users(), seed=2).log(5_000)
    queries = np.asarray(data.query_ids, dtype=object)[data.query_index]
    run = pd.DataFrame({"qid": queries, "docno": data.document_ids, "score": data.X[:, 0]})
    estimate = estimate_clicks(log, Users().examination(10), run)
    assert estimate.value == pytest.approx(estimate.logged)
    clicks = np.repeat(
        np.add.reduceat(log.pages.click.astype(float), log.pages.offsets[:-1]), log.pages.count
    )
    assert estimate.standard_error == pytest.approx(clicks.std() / np.sqrt(len(clicks)))


@pytest.mark.parametrize("known", [True, False])
def test_intervals_hold_the_truth_as_often_as_they_say(known):
    """With the users' examination, and with the one that is estimated from the same log."""
    data = judged_rows(3)
    queries = np.asarray(data.query_ids, dtype=object)[data.query_index]
    run = pd.DataFrame({"qid": queries, "docno": data.document_ids, "score": data.X[:, 1]})
    rank = run.groupby("qid")["score"].rank(ascending=False, method="first")
    users = Users()
    p = Simulation(data, data.X[:, 0], users).attraction
    truth = (p / rank)[rank <= 8].sum() / data.n_queries
    within = 0
    for seed in range(60):
        logged = Simulation(data, data.X[:, 0], users, depth=8, exploration=1.0, seed=seed)
        log = logged.log(6_000)
        given = {"examination": users.examination(8)}
        if not known:
            model = PositionBased().fit(log)
            given = {"examination": model.examination_, "covariance": model.examination_covariance_}
        estimate = estimate_clicks(log, run=run, confidence=0.8, **given)
        within += estimate.low <= truth <= estimate.high
    assert 0.8 - 3.5 * np.sqrt(0.16 / 60) < within / 60 < 0.8 + 3.5 * np.sqrt(0.16 / 60)


def test_results_never_shown_are_told():
    log = log_of([(0, [0, 1], [0, 1], [True, False])] * 20)
    run = pd.DataFrame({"qid": ["q0", "q0"], "docno": ["new", "d0"], "score": [2.0, 1.0]})
    estimate = estimate_clicks(log, np.array([1.0, 0.5]), run)
    assert estimate.unseen == pytest.approx(1 / 1.5)
    assert estimate.value == pytest.approx(0.5)
    assert estimate.most == pytest.approx(estimate.high + 1.0)  # "new" is looked at on every page
    swapped = run.assign(docno=["d1", "d0"])
    whole = estimate_clicks(log, np.array([1.0, 0.5]), swapped)
    assert whole.most == whole.high
    # d1 is looked at on every page, and was on half of them: of its quotient 2 the half is cut off.
    cut = estimate_clicks(log, np.array([1.0, 0.5]), swapped, largest=1.0)
    assert cut.most == pytest.approx(cut.high + 0.5)
    assert cut.unranked == 0
    both = log_of([(i % 4 // 3, [0, 1], [0, 1], [True, False]) for i in range(20)])
    half = estimate_clicks(both, np.array([1.0, 0.5]), run)  # of q0, which has 15 of the pages
    assert half.unranked == pytest.approx(0.25)
    assert half.value == pytest.approx(0.75 * estimate.value)
    with pytest.raises(InputError, match="run lacks the column score"):
        estimate_clicks(log, np.array([1.0, 0.5]), run.drop(columns="score"))
    with pytest.raises(InputError, match="a score that is NaN"):
        estimate_clicks(log, np.array([1.0, 0.5]), run.assign(score=[2.0, np.nan]))
    with pytest.raises(InputError, match=r"run has 2 \(query, document\) pairs more than once"):
        estimate_clicks(log, np.array([1.0, 0.5]), pd.concat([run, run]))
    with pytest.raises(InputError, match="no row for any of the 1 queries of the log"):
        estimate_clicks(log, np.array([1.0, 0.5]), run.assign(qid=0))
    with pytest.raises(InputError, match="examination must be above 0"):
        estimate_clicks(log, np.array([1.0, 0.0]), run)
    with pytest.raises(InputError, match="confidence must be"):
        estimate_clicks(log, np.array([1.0, 0.5]), run, confidence=1.0)


def test_rows_and_runs_know_queries_by_the_ids_made_of_their_texts():
    """A workspace made from a log has such ids; no message has a text."""
    log = log_of([(0, [0, 1], [0, 1], [i % 2 == 0, False]) for i in range(40)], "sea {}")
    (made,) = ids_of_texts(log.query_ids)
    model = ClickRate(prior=(0, 0)).fit(log)
    data = RankingData.from_rows(
        np.zeros((2, 1), np.float32), [0, 0], [made] * 2, document_ids=["sea d1", "sea d0"]
    )
    assert ClickJudgements(model).label(data).y.tolist() == [0, 4]
    assert click_rows(log, data).n_queries == 20
    by_text, by_id = ({name: {"sea d1": 2.0}} for name in ("sea q0", made))
    examination = np.array([1.0, 0.5])
    assert estimate_clicks(log, examination, by_id) == estimate_clicks(log, examination, by_text)
    with pytest.raises(InputError, match=f"has the id '{made}'") as error:
        estimate_clicks(log, examination, {"q9": {"sea d1": 2.0}})
    assert "sea" not in str(error.value)
