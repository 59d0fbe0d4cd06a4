"""Judgements from clicks: grades, pairs, propensities."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click_logs import counted, judged_rows, log_of
from scipy.stats import chi2, chi2_contingency

from letor.dataset import RankingData
from letor.errors import InputError
from letor.evaluation import evaluate
from ltr_features.clicks.dynamic_bayesian import DynamicBayesian
from ltr_features.clicks.judging import (
    ClickJudgements,
    describe,
    inverse_propensity,
    weighted_pairs,
)
from ltr_features.clicks.output import by_label
from ltr_features.clicks.position_models import ClickRate, PositionBased
from ltr_features.clicks.rules import LogRules
from ltr_features.clicks.simulation import Simulation, Users
from ltr_features.text.query_texts import ids_of_texts

LOG = [(0, 0, 0, 100, 50), (0, 1, 1, 100, 10), (0, 2, 2, 4, 4), (1, 3, 0, 40, 0), (2, 3, 0, 3, 3)]


def test_grades_are_the_nearest_step():
    judgements = ClickJudgements(ClickRate(prior=(0, 0)).fit(counted(LOG)), scale=0.5)
    # Relevance .5, .1, (too little), 0, (too little), of mean .2 (.27 of all examinations); above
    # it, .3, of .3.
    assert judgements.grade.tolist() == [4, 0, -1, 0, -1]
    assert judgements.thin_queries == [1, 2]
    frame = judgements.frame()
    assert frame["query"].tolist() == ["q0", "q0", "q0", "q1", "q2"]
    assert frame["shown"].tolist() == [100, 100, 4, 40, 3]
    assert frame["clicked"].tolist() == [50, 10, 4, 0, 3]
    said = describe(judgements)
    assert said["pairs with enough evidence"] == 3
    assert said["pairs by grade"] == [2, 0, 0, 0, 1]
    assert said["relevance up to which the grade is 0"] == 0.2
    log = counted([(0, 0, 0, 100, 50), (0, 1, 1, 100, 24), (0, 2, 2, 100, 10), (0, 3, 3, 100, 0)])
    judgements = ClickJudgements(ClickRate(prior=(0, 0)).fit(log), scale=0.42)
    # The mean is .21: .5 is beyond the scale, and .24 is .03 of .21 above, nearest to 1/4.
    assert judgements.grade.tolist() == [4, 1, 0, 0]
    assert said["queries with fewer than two judged documents"] == 2


def test_relevance_that_the_log_does_not_determine_is_told_of():
    """On pages of one result nobody sees whether a click satisfied."""
    model = DynamicBayesian(prior=(0, 0)).fit(log_of([(0, [0], [0], [i < 30]) for i in range(60)]))
    assert model.evidence_.tolist() == [60]
    with pytest.raises(InputError, match="does not determine the relevance of any pair with 10 "):
        ClickJudgements(model)


def test_the_scale_is_what_the_best_pairs_reach():
    judgements = ClickJudgements(ClickRate(prior=(0, 0)).fit(counted(LOG)), n_grades=2)
    assert judgements.best == pytest.approx(np.quantile([0.5, 0.1, 0.0], 0.99))
    assert judgements.grade.max() == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_evidence": 0}, r"min_evidence \(--min-evidence\) must be above 0"),
        ({"n_grades": 1}, r"n_grades \(--grades\) must lie"),
        ({"scale": 2}, "scale must be in"),
        ({"scale": 0.2}, r"scale must be above 0\.2068, the average relevance, up to which"),
        ({"min_evidence": 1000}, "the most are 100.0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    model = ClickRate().fit(counted(LOG))
    with pytest.raises(InputError, match=message):
        ClickJudgements(model, **settings)


def test_rows_get_the_grades_of_their_pairs():
    model = ClickRate(prior=(0, 0)).fit(counted(LOG))
    judgements = ClickJudgements(model, n_grades=21, scale=0.5)
    rows = RankingData.from_rows(
        np.arange(4)[:, None], [9, 9, 9, 9], ["q0", "q0", "q1", "q9"],
        document_ids=np.array(["d1", "d2", "d3", "d0"], dtype=object),
    )  # fmt: skip
    labelled = judgements.label(rows)
    assert labelled.y.tolist() == [0, 0]
    assert labelled.X[:, 0].tolist() == [0, 2]
    assert labelled.query_ids == ["q0", "q1"]
    with pytest.raises(InputError, match="no document ids"):
        judgements.label(RankingData.from_rows([[1.0]], [1], ["q0"]))
    strangers = np.array(["x"] * 4, dtype=object)
    with pytest.raises(InputError, match="do the ids"):
        judgements.label(
            RankingData.from_rows(rows.X, rows.y, list("abcd"), document_ids=strangers)
        )


def test_propensities_are_clipped():
    weight = inverse_propensity(np.array([1.0, 0.5, 0.001, np.nan]), largest=50)
    np.testing.assert_allclose(weight, [1, 2, 50, 0])
    with pytest.raises(InputError, match="within 0 and 1"):
        inverse_propensity(np.array([1.5]))
    with pytest.raises(InputError, match="largest must be"):
        inverse_propensity(np.array([1.0]), largest=0.5)


def test_pairs_weigh_their_clicks_by_the_inverse_propensity():
    log = counted([(0, 0, 0, 50, 20), (0, 0, 1, 50, 5), (0, 1, 1, 50, 10), (0, 2, 0, 50, 0)])
    model = PositionBased().fit(log)
    pairs = weighted_pairs(ClickJudgements(model), errors_above=-np.inf)
    second = 1 / model.examination_[1]
    clicks = np.array([20 + 5 * second, 10 * second])
    np.testing.assert_allclose(pairs.weight, clicks / clicks.mean(), rtol=1e-6)
    assert pairs.document.tolist() == [0, 1]
    assert pairs.weight.dtype == np.float32
    nothing = counted([(0, 0, 0, 50, 0)])
    with pytest.raises(InputError, match="of 0 clicked pairs with enough evidence none"):
        weighted_pairs(ClickJudgements(ClickRate().fit(nothing)))


def test_pairs_are_better_than_the_average_result():
    """The mean click rate is 42 / 300 = .14; rates and errors: .4 (.07), .2 (.04), .33 (.27, of
    three showings), .007 (.007)."""
    log = counted([(0, 0, 0, 50, 20), (0, 1, 0, 100, 20), (0, 2, 0, 3, 1), (0, 3, 0, 147, 1)])
    judged = ClickJudgements(ClickRate(prior=(0, 0)).fit(log), min_evidence=1)
    assert weighted_pairs(judged, errors_above=0).document.tolist() == [0, 1, 2]
    assert weighted_pairs(judged, errors_above=1).document.tolist() == [0, 1]
    assert weighted_pairs(judged, errors_above=2).document.tolist() == [0]
    assert weighted_pairs(judged, errors_above=-np.inf).document.tolist() == [0, 1, 2, 3]
    said = "of 4 clicked pairs .* none .* by its standard error times 9: .* of weighted_pairs"
    with pytest.raises(InputError, match=said):
        weighted_pairs(judged, errors_above=9)
    with pytest.raises(InputError, match="errors_above must be a number"):
        weighted_pairs(judged, errors_above=np.nan)


def test_relevance_that_varies_no_more_than_by_chance_is_told():
    """By chance: 20 clicks of 50 or so. The p-value is that of the table of clicks and skips."""
    rng = np.random.default_rng(0)
    for clicks, expected in (
        (rng.binomial(50, 0.4, 40), True),
        (rng.binomial(50, np.linspace(0.2, 0.6, 40)), False),
        (np.zeros(40), True),
    ):
        rows = [(0, i, 0, 50, int(n)) for i, n in enumerate(clicks)]
        rows.append((0, 40, 0, 3, 3))  # too few to count
        judged = ClickJudgements(ClickRate(prior=(0, 0)).fit(counted(rows, 41)), scale=1)
        p = chi2_contingency([clicks, 50 - clicks])[1] if clicks.any() else 1
        said = f"of the 40 pairs with enough evidence varies no more than by chance (p = {p:.2f})"
        assert any(said in remark for remark in judged.remarks) == expected
    for shown_in_one_order in ([(0, 0, 0, 50, 20)], [(0, 0, 0, 50, 20), (0, 1, 1, 50, 15)]):
        alone = ClickJudgements(ClickRate().fit(counted(shown_in_one_order)))
        assert alone.remarks == []


@pytest.mark.parametrize(("clicks", "told"), [((22, 9, 19, 11), True), ((30, 9, 10, 11), False)])
def test_two_pairs_that_change_places_are_compared_at_each_position(clicks, told):
    """The p-value is that of the test of Cochran, Mantel and Haenszel."""
    n = np.array([[52, 48], [47, 53]])  # a row for each position
    c = np.array([[clicks[0], clicks[2]], [clicks[1], clicks[3]]])
    rows = [(0, i, j, int(n[j, i]), int(c[j, i])) for i in (0, 1) for j in (0, 1)]
    judged = ClickJudgements(ClickRate().fit(counted(rows)))
    rate = c.sum(1) / n.sum(1)
    above = (c[:, 0] - n[:, 0] * rate).sum()
    p = chi2.sf(above**2 / (n.prod(1) / n.sum(1) * rate * (1 - rate)).sum(), 1)
    said = f"of the 2 pairs with enough evidence varies no more than by chance (p = {p:.2f})"
    assert any(said in remark for remark in judged.remarks) == told == (p >= 0.05)


@pytest.mark.parametrize("kind", [ClickRate, PositionBased, DynamicBayesian])
def test_the_prior_does_not_make_relevance_that_varies_look_like_chance(kind):
    """Results that are looked at a few times each, on pages in random order."""

    def remarked(relevance, seed):
        rng, pages = np.random.default_rng(seed), []
        for page in range(200):
            order = rng.permutation(10)
            looked = np.concatenate([[1], rng.random(9) < 0.9]).cumprod()
            clicks = rng.random(10) < relevance[order] * looked
            documents = page % 25 * 10 + order
            pages.append((page % 25, documents.tolist(), list(range(10)), clicks.tolist()))
        judged = ClickJudgements(kind().fit(log_of(pages)), min_evidence=3)
        return any("no more than by chance" in remark for remark in judged.remarks)

    assert sum(remarked(np.full(10, 0.3), seed) for seed in range(5)) >= 4
    assert not any(remarked(np.repeat([0.1, 0.5], 5), seed) for seed in range(5))


def test_one_standard_error_lets_in_one_average_result_in_six():
    clicks = np.random.default_rng(0).binomial(1000, 0.4, 1000)
    log = counted([(0, i, 0, 1000, int(n)) for i, n in enumerate(clicks)], 1000)
    judged = ClickJudgements(ClickRate(prior=(0, 0)).fit(log))
    assert len(weighted_pairs(judged).query) == pytest.approx(1000 / 6, rel=0.15)
    assert len(weighted_pairs(judged, errors_above=2).query) == pytest.approx(1000 / 44, rel=0.4)


def test_results_that_alone_are_shown_often_may_all_be_good():
    """Then the average is that of what users look at, here 110 / 500."""
    seldom = [(0, d, 2, 6, 0) for d in range(2, 52)]
    log = counted([(0, 0, 0, 100, 60), (0, 1, 1, 100, 50), *seldom], 52)
    judged = ClickJudgements(ClickRate(prior=(0, 0)).fit(log))
    assert judged.average == pytest.approx(110 / 500)
    assert judged.grade[:2].tolist() == [4, 3]
    assert set(judged.grade[2:]) == {-1}


def test_grades_order_rankings_as_the_truth_does():
    """The ranking in production shows much that is not relevant, and users click on some of it;
    that must not make it look better than a ranking that puts relevant results first."""
    data = judged_rows(n_documents=40)
    users = Users(noise=0.15)
    simulation = Simulation(data, data.X[:, 0], users, depth=20, exploration=0.3, seed=1)
    judged = ClickJudgements(PositionBased().fit(simulation.log(20_000)))
    frame = judged.frame()
    labels = frame["grade"].clip(lower=0).set_axis(frame["document"])
    clicked = replace(data, y=labels.reindex(data.document_ids, fill_value=0).to_numpy(np.float32))
    better = data.X[:, 0] + 0.5 * data.y
    for measure in ("map", "p@5", "ndcg@10"):
        production, improved = (
            evaluate(clicked, scores, [measure]).mean().item() for scores in (data.X[:, 0], better)
        )
        assert improved > production, measure


def test_debiased_labels_are_nearer_to_the_truth():
    data = judged_rows()
    simulation = Simulation(data, data.X[:, 0], Users(eta=1.0), exploration=0.5, seed=1)
    log = simulation.log(50_000)
    truth = simulation.attraction[log.pair_document]
    off = {}
    for kind in (ClickRate, PositionBased):
        judgements = ClickJudgements(kind().fit(log), scale=1.0)
        off[kind] = np.abs(judgements.model.relevance_ - truth)[judgements.enough].mean()
    assert off[PositionBased] < 0.1
    assert off[ClickRate] > 3 * off[PositionBased]


def test_whole_numbers_of_numpy_are_whole_numbers():
    log = log_of([(0, [0, 1], [0, 1], [True, False]), (0, [1, 0], [0, 1], [False, True])] * 20)
    model = PositionBased(max_iterations=np.int64(5)).fit(log)
    assert ClickJudgements(model, n_grades=np.int64(3)).grade.max() == 2
    assert LogRules(depth=np.int64(3)).depth == 3


def test_labels_are_found_by_texts_and_by_ids():
    log = log_of([(0, [0, 1], [0, 1], [i % 2 == 0, False]) for i in range(40)], "sea {}")
    judgements = ClickJudgements(ClickRate().fit(log))
    labels = pd.DataFrame({"docno": ["sea d0", "sea d1"], "label": [1, 0]})
    for name in ("sea q0", " Sea  Q0", *ids_of_texts(log.query_ids)):
        table = by_label(judgements, labels.assign(qid=name))
        assert table["label"].tolist() == [0, 1]
        assert table["click_rate"].tolist() == [0.0, 0.5]
    ids = replace(log, description={"queries": "ids"})
    with pytest.raises(InputError, match=r"of 1 query of the labels 0 are in the log.* 2$"):
        by_label(ClickJudgements(ClickRate().fit(ids)), labels.assign(qid="SEA Q0"))
    with pytest.raises(InputError, match=r"0 are in the log, of 2 documents 2; .* leave these out"):
        by_label(judgements, labels.assign(qid="7"))
    with pytest.raises(InputError, match=r"labels 1 are in the log, of 1 document 0$"):
        by_label(judgements, labels[:1].assign(qid="sea q0", docno="shore"))
