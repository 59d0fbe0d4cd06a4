"""Click models: equal to their twins, and they find again what users were made of."""

import click_twins as twins
import numpy as np
import pytest
from click_logs import log_of
from hypothesis import given, settings
from hypothesis import strategies as st

from letor.dataset import RankingData
from letor.errors import InputError
from ltr_features.clicks.cascade_models import Cascade
from ltr_features.clicks.dependent_click import DependentClick
from ltr_features.clicks.dynamic_bayesian import DynamicBayesian
from ltr_features.clicks.log import LogBuilder
from ltr_features.clicks.models import click_models, get_click_model
from ltr_features.clicks.position_models import ClickRate, PositionBased
from ltr_features.clicks.simulation import Simulation, Users
from ltr_features.kernels import clicks as kernels


def rows(n_queries=8, n_documents=12, seed=0, grades=(1, 3)):
    """Judged rows of one column, every document of one query."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_documents
    y = rng.integers(grades[0], grades[1], n).astype(np.float32)
    y[0] = 3  # the largest grade, so that others are inside (0, 1)
    ids = np.array([f"d{i}" for i in range(n)], dtype=object)
    queries = np.repeat([f"q{i}" for i in range(n_queries)], n_documents)
    return RankingData.from_rows(rng.random((n, 1)), y, queries, document_ids=ids)


def simulation(model, seed=0, **more):
    data = rows(seed=seed)
    users = Users(model, **{k: more.pop(k) for k in ("eta", "noise", "continuation") if k in more})
    return Simulation(data, data.X[:, 0], users, exploration=1.0, seed=seed, **more)


def z_scores(values, errors, truth):
    return (values - truth) / np.where(errors == 0, 1, errors)


def assert_normal(z):
    """As draws of a normal distribution: their mean square is 1, give or take four errors."""
    assert abs(np.mean(z**2) - 1) < 4 * np.sqrt(2 / len(z))
    assert np.mean(np.abs(z) < 2) > 0.9


def test_click_rates_are_clicks_per_showing():
    clicks = ([True, False], [False, False], [True, True])
    log = log_of([(0, [0, 1], [0, 1], of_page) for of_page in clicks])
    model = ClickRate(prior=(0, 0)).fit(log)
    np.testing.assert_allclose(model.attractiveness_, [2 / 3, 1 / 3])
    np.testing.assert_allclose(model.standard_error_, np.sqrt([2 / 27, 2 / 27]))
    np.testing.assert_allclose(ClickRate(prior=(1, 1)).fit(log).attractiveness_, [3 / 5, 2 / 5])


def test_pbm_equals_its_twin():
    log = simulation("pbm").log(500)
    model = PositionBased(prior=(1, 1), max_iterations=30, tolerance=1e-300).fit(log)
    alpha, gamma = twins.pbm(twins.sessions_of(log), iterations=30)
    expected = [alpha[p] for p in range(log.n_pairs)]
    np.testing.assert_allclose(model.attractiveness_, expected, rtol=1e-6)  # one halves, one steps
    np.testing.assert_allclose(model.examination_, [gamma[k] for k in range(10)])
    assert not model.converged_
    assert "not converged after 30" in model.remarks_[0]


def test_cascade_equals_its_twin():
    log = simulation("dbn", continuation=1.0).log(500)
    alpha = twins.cascade(twins.sessions_of(log))
    model = Cascade(prior=(1, 1)).fit(log)
    np.testing.assert_allclose(model.attractiveness_, [alpha[p] for p in range(log.n_pairs)])
    assert "several clicks" in model.remarks_[0]
    seen = [(0, [0, 1], [0, 1], clicks) for clicks in ([True] * 2, [True] * 2, [True, False])]
    assert Cascade().fit(log_of(seen)).remarks_[0].startswith("2 of 3 pages have several clicks")


def test_dcm_equals_its_twin():
    log = simulation("dcm", continuation=0.6, depth=5).log(400)
    model = DependentClick(prior=(1, 1), max_iterations=12, tolerance=1e-300).fit(log)
    alpha, lam = twins.dcm(twins.sessions_of(log), iterations=12)
    np.testing.assert_allclose(model.attractiveness_, [alpha[p] for p in range(log.n_pairs)])
    np.testing.assert_allclose(model.continuation_, [lam[k] for k in range(5)])


def test_dbn_equals_its_twin():
    log = simulation("dbn", continuation=0.8, depth=5).log(400)
    model = DynamicBayesian(prior=(1, 1), max_iterations=12, tolerance=1e-300).fit(log)
    alpha, sigma, gamma = twins.dbn(twins.sessions_of(log), iterations=12)
    np.testing.assert_allclose(model.attractiveness_, [alpha[p] for p in range(log.n_pairs)])
    np.testing.assert_allclose(model.satisfaction_, [sigma[p] for p in range(log.n_pairs)])
    assert model.continuation_ == pytest.approx(gamma)


def test_objective_is_the_likelihood_and_the_prior():
    log = simulation("dbn", depth=4).log(200)
    sessions = twins.sessions_of(log)
    model = DynamicBayesian(prior=(0, 0), max_iterations=5).fit(log)
    alpha, sigma, gamma = model.attractiveness_, model.satisfaction_, model.continuation_

    def parameters(pairs, _):
        return alpha[pairs], gamma * (1 - sigma[pairs]), gamma

    expected = twins.log_likelihood(sessions, parameters)
    assert model.objective_[-1] == pytest.approx(expected, abs=1e-4)
    assert model.predict(log).log_likelihood == pytest.approx(expected, abs=1e-4)
    prior = DynamicBayesian(prior=(2, 3), max_iterations=5).fit(log)
    own = sum((2 * np.log(x) + 3 * np.log(1 - x)).sum() for x in (prior.attractiveness_,
                                                                  prior.satisfaction_))  # fmt: skip
    likelihood = prior.predict(log).log_likelihood
    assert prior.objective_[-1] == pytest.approx(likelihood + own)


@st.composite
def pages(draw):
    n = draw(st.integers(1, 6))
    probability = st.floats(0.02, 0.98)
    several = st.lists(probability, min_size=n, max_size=n)
    clicks = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return clicks, draw(several), draw(several), draw(st.floats(0.02, 1.0))


@given(pages())
@settings(max_examples=80, deadline=None)
def test_what_was_examined_is_the_sum_over_all_histories(page):
    clicks, attraction, after_click, after_skip = page
    n = len(clicks)
    last = np.array([max([r for r in range(n) if clicks[r]], default=-1)])
    examination, tail = np.empty(n), np.empty(1)
    kernels.examined(
        np.array([0, n]), last, np.arange(n), np.array(attraction),
        np.array([after_click[last[0]]]), after_skip, examination, tail,
    )  # fmt: skip
    found = twins.histories(clicks, attraction, after_click, after_skip)
    total = sum(p for _, p in found)
    for r in range(n):
        expected = sum(p for n_examined, p in found if n_examined > r) / total
        assert examination[r] == pytest.approx(expected)
    reach, conditional = np.empty(n), np.empty(n)
    kernels.click_probabilities(
        np.array([0, n]), np.array(clicks), np.array(attraction), np.array(after_click), after_skip,
        reach, conditional,
    )  # fmt: skip
    seen = np.where(clicks, conditional, 1 - conditional)
    assert np.prod(seen) == pytest.approx(total)
    for r in range(n):
        every = [(c, twins.histories(c, attraction, after_click, after_skip))
                 for c in twins.all_clicks(n)]  # fmt: skip
        assert reach[r] == pytest.approx(sum(p for _, h in every for k, p in h if k > r))
        clicked = sum(p for c, h in every if c[r] for _, p in h)
        assert reach[r] * attraction[r] == pytest.approx(clicked)


@pytest.mark.parametrize("seed", range(3))
def test_position_based_users_are_found_again(seed):
    simulated = simulation("pbm", seed)
    log = simulated.log(40_000)
    model = PositionBased().fit(log)
    assert model.converged_
    truth = simulated.attraction[log.pair_document]
    inner = truth < 1
    assert_normal(z_scores(model.attractiveness_, model.standard_error_, truth)[inner])
    z = z_scores(model.examination_, model.examination_error_, simulated.users.examination(10))[1:]
    assert (np.abs(z) < 4).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("users", "kind"),
    [("cascade", Cascade), ("cascade", DependentClick), ("dcm", DependentClick),
     ("dbn", DynamicBayesian)],
)  # fmt: skip
def test_users_who_go_down_the_page_are_found_again(users, kind, seed):
    simulated = simulation(users, seed, continuation=0.8)
    log = simulated.log(20_000)
    model = kind().fit(log)
    assert model.converged_
    truth = simulated.attraction[log.pair_document]
    inner = (truth < 1) & (model.evidence_ > 20)
    assert_normal(z_scores(model.attractiveness_, model.standard_error_, truth)[inner])
    if users == "dcm":
        np.testing.assert_allclose(model.continuation_, 0.8, atol=0.05)
    if users == "dbn":
        assert model.continuation_ == pytest.approx(0.8, abs=0.02)
        satisfied = simulated.satisfaction[log.pair_document]
        z = z_scores(model.satisfaction_, model.satisfaction_error_, satisfied)
        assert_normal(z[inner])
        z = z_scores(model.relevance_, model.relevance_error_, truth * satisfied)
        assert_normal(z[inner])


def test_results_that_nobody_clicks_are_examined():
    """By maximum likelihood their attractiveness is 0. Of six users three click the first result,
    none the second, two of the others the third: all these models agree, up to what follows a
    click, on who looks at the second."""
    clicks = [[True, False, False]] * 3 + [[False, False, True]] * 2 + [[False] * 3]
    log = log_of([(0, [0, 1, 2], [0, 1, 2], of_page) for of_page in clicks])
    np.testing.assert_allclose(Cascade(prior=(0, 0)).fit(log).examination_, [1, 0.5, 0.5])
    dcm = DependentClick(prior=(0, 0)).fit(log)
    expected = 0.5 + 0.5 * dcm.continuation_[0]
    np.testing.assert_allclose(dcm.examination_, [1, expected, expected])
    dbn = DynamicBayesian(prior=(0, 0), continuation=1.0).fit(log)
    expected = 0.5 + 0.5 * (1 - dbn.satisfaction_[0])
    np.testing.assert_allclose(dbn.examination_, [1, expected, expected])


def test_simplified_models_count():
    log = simulation("dcm", continuation=0.5, depth=4).log(300)
    clicked, seen, last, at = (np.zeros(99) for _ in range(4))
    for pairs, positions, clicks in twins.sessions_of(log):
        end = max([r for r in range(len(pairs)) if clicks[r]], default=len(pairs))
        for r, (pair, position) in enumerate(zip(pairs, positions, strict=True)):
            clicked[pair] += clicks[r]
            seen[pair] += r <= end
            at[position] += clicks[r]
            last[position] += clicks[r] and r == end
    P = log.n_pairs
    model = DependentClick(prior=(1, 1), simplified=True).fit(log)
    np.testing.assert_allclose(model.attractiveness_, (clicked[:P] + 1) / (seen[:P] + 2))
    np.testing.assert_allclose(model.continuation_, 1 - last[:4] / at[:4])
    other = DynamicBayesian(prior=(1, 1), simplified=True).fit(log)
    np.testing.assert_allclose(other.attractiveness_, model.attractiveness_)
    assert other.continuation_ == 1


@given(st.integers(0, 10_000), st.sampled_from(["pbm", "dcm", "dbn"]), st.sampled_from([0.0, 1.0]))
@settings(max_examples=30, deadline=None)
def test_the_objective_never_falls(seed, name, pseudo):
    """Whoever the users are: here they click at random, on pages of any length."""
    rng = np.random.default_rng(seed)
    pages = []
    for _ in range(40):
        n = int(rng.integers(1, 6))
        place = np.sort(rng.permutation(7)[:n])
        pages.append((rng.integers(3), rng.permutation(6)[:n], place, rng.random(n) < 0.3))
    log = log_of(pages)
    model = get_click_model(name)(prior=(pseudo, pseudo), max_iterations=60).fit(log)
    for values in (model.log_likelihoods_, model.objective_):
        assert (np.diff(values) >= -1e-6).all()
    assert len(model.log_likelihoods_) > 1
    assert ((model.attractiveness_ >= 0) & (model.attractiveness_ <= 1)).all()
    assert (model.standard_error_ >= 0).all()
    assert model.predict(log).perplexity >= 1


def test_the_true_model_predicts_best():
    train, test = simulation("pbm").log(20_000), simulation("pbm").log(25_000)
    perplexity = {n: get_click_model(n)().fit(train).predict(test).perplexity
                  for n in ("ctr", "pbm", "dbn")}  # fmt: skip
    assert min(perplexity, key=perplexity.get) == "pbm"


def test_perplexity_and_likelihood_by_hand():
    clicks = ([True, False], [False, False], [False, True], [True, False])
    log = log_of([(0, [0, 1], [0, 1], of_page) for of_page in clicks])
    prediction = ClickRate(prior=(0, 0)).fit(log).predict(log)
    second = 2 ** -(np.log2(1 / 4) / 4 + 3 * np.log2(3 / 4) / 4)
    np.testing.assert_allclose(prediction.by_position, [2.0, second])
    assert prediction.perplexity == pytest.approx((2 + second) / 2)
    expected = 4 * np.log(0.5) + np.log(1 / 4) + 3 * np.log(3 / 4)
    assert prediction.log_likelihood == pytest.approx(expected)


def test_impossible_clicks_are_counted():
    log = log_of([(0, [0, 1, 2], [0, 1, 2], [True, True, False])])
    prediction = Cascade(prior=(1, 1)).fit(log).predict(log)
    assert prediction.n_impossible == 1
    assert prediction.log_likelihood == pytest.approx(np.log(2 / 3) + np.log(1e-6))


def test_pairs_that_were_not_seen_are_predicted_by_the_mean():
    train = simulation("pbm").log(2_000)
    model = PositionBased().fit(train)
    new = log_of([(0, [0], [0], [True])], names="unknown {}")
    mean = np.average(model.attractiveness_, weights=model.evidence_)
    assert model.predict(new).log_likelihood == pytest.approx(np.log(mean))


def test_a_fixed_ranking_identifies_no_examination():
    data = rows()
    log = Simulation(data, data.X[:, 0], Users()).log(2_000)
    model = PositionBased().fit(log)
    assert "9 of 10 positions is not identified" in model.remarks_[0]
    assert np.isinf(model.examination_error_[1:]).all()
    first = np.isin(np.arange(log.n_pairs), log.result_pair[log.result_position == 0])
    assert np.isfinite(model.standard_error_[first]).all()
    assert np.isinf(model.standard_error_[~first]).all()


def test_models_of_pages_refuse_counts():
    builder = LogBuilder(pages=False)
    one = np.ones(1, np.int64)
    builder.add_counts(0 * one, 0 * one, 0 * one, 5 * one, one)
    log = builder.finish(["q"], ["d"], {})
    for name in click_models():
        model = get_click_model(name)()
        if model.from_counts:
            assert model.fit(log).predict(log).n_rows == 5
        else:
            with pytest.raises(InputError, match="only counts"):
                model.fit(log)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PositionBased(tolerance=0), "tolerance must be above 0"),
        (lambda: PositionBased(jackknife=2), "jackknife must be"),
        (lambda: DependentClick(max_iterations=0), "max_iterations"),
        (lambda: DynamicBayesian(continuation=1.5), "continuation must be in"),
        (lambda: DynamicBayesian(simplified=True, continuation=0.5), "simplified model"),
    ],
)
def test_parameters_out_of_range_are_refused(make, message):
    log = simulation("pbm").log(10)
    with pytest.raises(InputError, match=message):
        make().fit(log)


def test_unknown_models_are_refused():
    with pytest.raises(InputError, match="did you mean 'pbm'"):
        get_click_model("ubm")


def test_click_rates_that_fall_with_the_position_are_told_of():
    """Raw clicks take that for relevance; the same clicks in the reverse order say nothing."""
    top = [(0, [0, 1], [0, 1], [i % 2 == 0, i % 20 == 0]) for i in range(400)]
    (remark,) = ClickRate().fit(log_of(top)).remarks_
    assert remark.startswith("the click rate is 50.0 % at the first position and 5.0 % below it")
    assert "pbm tells the two apart" in remark
    low = [(0, [0, 1], [0, 1], [i % 20 == 0, i % 2 == 0]) for i in range(400)]
    assert ClickRate().fit(log_of(low)).remarks_ == ClickRate().fit(log_of(top[:40])).remarks_ == []


def test_a_result_that_nobody_looked_at_is_taken_for_an_average_one():
    """By default the prior is the click rate of the first position, 12 of 40."""
    top = [(0, [0, 1], [0, 9], [i < 12, False]) for i in range(40)]
    for name in ("pbm", "dcm"):
        model = get_click_model(name)().fit(log_of(top))
        assert model.prior_ == pytest.approx((0.6, 1.4))
        assert model.attractiveness_[0] == pytest.approx(0.3)
        assert model.attractiveness_[1] <= 0.3
    assert ClickRate().fit(log_of(top)).attractiveness_[1] == pytest.approx(0.6 / 42)


def test_a_prior_on_pairs_does_not_move_the_examination():
    """Sparse as logs are: 1,200 pairs with two clicks each."""
    data = rows(60, 20, grades=(0, 2))
    users = Users(eta=1.0, noise=0.1)
    log = Simulation(data, data.X[:, 0], users, exploration=0.5, seed=5).log(6_000)
    weak, strong = (PositionBased(prior=(n, n)).fit(log) for n in (0.5, 5))
    np.testing.assert_allclose(weak.examination_, strong.examination_)
    z = z_scores(weak.examination_, weak.examination_error_, users.examination(10))[1:]
    assert (np.abs(z) < 4).all()


def test_predictions_equal_the_twins():
    log = simulation("dbn", continuation=0.9).log(300)
    sessions = twins.sessions_of(log)
    pbm, dcm = PositionBased().fit(log), DependentClick().fit(log)
    for model, twin in (
        (pbm, twins.by_position(pbm.attractiveness_, pbm.examination_)),
        (dcm, twins.downwards(dcm.attractiveness_, lambda _, k: dcm.continuation_[k], 1.0)),
    ):
        likelihood, perplexity = twins.prediction(sessions, twin)
        predicted = model.predict(log)
        assert predicted.log_likelihood == pytest.approx(likelihood)
        assert predicted.perplexity == pytest.approx(perplexity)


def test_the_jackknife_takes_bias_away():
    """Few clicks a result make examination too large; over many logs the halves tell by how
    much."""
    data = rows(60, 20, grades=(0, 2))
    users = Users(eta=1.0, noise=0.1)
    off = {False: [], True: []}
    for seed in range(8):
        log = Simulation(data, data.X[:, 0], users, exploration=0.5, seed=seed).log(1_000)
        for jackknife, found in off.items():
            model = PositionBased(jackknife=jackknife).fit(log)
            found.append(model.examination_[1:] - users.examination(10)[1:])
            assert (np.diff(model.log_likelihoods_) >= -1e-6).all()
    bias, left = (abs(np.mean(off[jackknife])) for jackknife in (False, True))
    assert bias > 0.02
    assert left < 0.6 * bias
    again = PositionBased(jackknife=True).fit(log)
    np.testing.assert_array_equal(again.examination_, model.examination_)


def test_examination_that_few_clicks_overestimate_is_told():
    data = rows(60, 20, grades=(0, 2))
    simulation = Simulation(data, data.X[:, 0], Users(eta=1.0, noise=0.1), exploration=0.5)
    few, many = simulation.log(1_000), simulation.log(50_000)
    (remark,) = PositionBased().fit(few).remarks_
    assert "examination of lower positions is probably overestimated" in remark
    assert "jackknife=true" in remark
    assert PositionBased(jackknife=True).fit(few).remarks_ == []
    # Some results are clicked each time, but they are looked at often.
    assert PositionBased().fit(many).remarks_ == []
