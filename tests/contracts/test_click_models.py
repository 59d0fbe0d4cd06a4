"""What every click model promises (``ltr_features.clicks.base.ClickModel``)."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from click_logs import Page, log_of

from letor.errors import InputError
from ltr_features.clicks.base import ClickModel
from ltr_features.clicks.judging import ClickJudgements, weighted_pairs
from ltr_features.clicks.models import click_models, get_click_model
from ltr_features.clicks.source import fitted_model

OF_PAIRS = ("attractiveness_", "standard_error_", "evidence_", "relevance_", "relevance_error_")


@pytest.fixture(params=click_models())
def kind(request) -> type[ClickModel]:
    return get_click_model(request.param)


def users(n_pages: int = 400, seed: int = 0, depth: int = 5) -> list[Page]:
    """Pages of four queries; document d is clicked with probability (d + 1) / 10 where it is looked
    at, each position less often than the one above."""
    rng = np.random.default_rng(seed)
    pages = []
    for _ in range(n_pages):
        shown = rng.permutation(8)[:depth]
        looked = rng.random(depth) < 1 / (1 + np.arange(depth))
        clicks = looked & (rng.random(depth) < (shown + 1) / 10)
        pages.append((int(rng.integers(4)), shown.tolist(), list(range(depth)), clicks.tolist()))
    return pages


def values_of(model: ClickModel) -> dict[str, np.ndarray]:
    names = (*OF_PAIRS, "examination_", "examination_error_")
    return {name: np.asarray(getattr(model, name)) for name in names}


def test_a_fit_has_what_a_model_has(kind):
    log = log_of(users())
    model = kind()
    assert model.fit(log) is model
    assert model.log_ is log
    for name, values in values_of(model).items():
        n = log.n_pairs if name in OF_PAIRS else log.n_positions
        assert (values.shape, values.dtype) == ((n,), np.dtype(np.float64)), name
    for name in ("attractiveness_", "relevance_", "examination_"):
        values = getattr(model, name)
        assert ((values >= 0) & (values <= 1)).all(), name
    for name in ("standard_error_", "relevance_error_", "evidence_"):
        assert (getattr(model, name) >= 0).all(), name
    assert (model.relevance_ <= model.attractiveness_ + 1e-12).all()
    assert (model.evidence_ <= log.by_pair(log.shown) + 1e-9).all()
    assert isinstance(model.converged_, bool)
    assert all(isinstance(remark, str) for remark in model.remarks_)


def test_more_clicks_in_the_same_places_are_more_attractive(kind):
    pages = []
    for i in range(60):  # two documents take turns on top; the second is clicked twice as often
        first, second = (0, 1) if i % 2 else (1, 0)
        liked = 0 if i % 6 < 2 else 1
        pages.append((0, [first, second], [0, 1], [first == liked, second == liked]))
    model = kind().fit(log_of(pages))
    assert model.attractiveness_[1] > model.attractiveness_[0]
    assert model.relevance_[1] > model.relevance_[0]


def test_names_and_the_order_of_pages_mean_nothing(kind):
    pages = users()
    plain = values_of(kind().fit(log_of(pages)))
    named = values_of(kind().fit(log_of(pages, names="<{}>")))
    turned = values_of(kind().fit(log_of(pages[::-1])))
    for name, values in plain.items():
        np.testing.assert_array_equal(values, named[name], err_msg=name)
        np.testing.assert_allclose(values, turned[name], rtol=1e-6, err_msg=name)


def test_a_second_fit_forgets_the_first_and_gives_the_same_bytes(kind):
    first, second = log_of(users(seed=1)), log_of(users(seed=2, depth=3))
    model = kind().fit(first).fit(second)
    fresh = kind().fit(second)
    for name, values in values_of(fresh).items():
        assert values.tobytes() == getattr(model, name).tobytes(), name
    assert (model.log_likelihoods_, model.objective_) == (fresh.log_likelihoods_, fresh.objective_)
    assert model.remarks_ == fresh.remarks_


@pytest.mark.filterwarnings("error")
def test_a_fit_changes_neither_its_log_nor_anything_global(kind):
    log = log_of(users())
    arrays = [getattr(log, field.name) for field in fields(log)]
    arrays += [getattr(log.pages, field.name) for field in fields(log.pages)]
    before = [array.tobytes() for array in arrays if isinstance(array, np.ndarray)]
    state = np.random.get_state()[1].tobytes()  # noqa: NPY002
    errors = np.geterr()
    model = kind().fit(log)
    model.predict(log)
    assert before == [array.tobytes() for array in arrays if isinstance(array, np.ndarray)]
    assert state == np.random.get_state()[1].tobytes()  # noqa: NPY002
    assert errors == np.geterr()


def test_every_page_twice_says_the_same_more_surely(kind):
    pages = users()
    once, twice = (kind(prior=(0, 0)).fit(log_of(pages * n)) for n in (1, 2))
    np.testing.assert_allclose(once.attractiveness_, twice.attractiveness_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(2 * once.evidence_, twice.evidence_, rtol=1e-3)
    sure = np.isfinite(once.standard_error_) & (once.standard_error_ > 0)
    assert (twice.standard_error_ < once.standard_error_)[sure].all()


@pytest.mark.parametrize(
    "pages",
    [
        [(0, [0], [0], [False])],
        [(0, [0], [0], [True])],
        [(0, [0, 1, 2], [0, 1, 2], [False] * 3)] * 30,
        [(0, [0, 1, 2], [0, 1, 2], [True] * 3)] * 30,
        [(0, [0, 1], [3, 7], [True, False]), (1, [1, 0], [3, 7], [False, True])] * 20,
        [(0, list(range(1000)), list(range(1000)), [i % 7 == 0 for i in range(1000)])] * 3,
    ],
    ids=["one skip", "one click", "no click", "clicks alone", "gaps above", "a thousand"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("prior", [None, (0, 0)], ids=["prior", "maximum likelihood"])
def test_odd_logs_are_fitted(kind, pages, prior):
    model = kind(prior=prior).fit(log_of(pages))
    values = values_of(model)
    for name in ("attractiveness_", "relevance_", "evidence_"):
        assert np.isfinite(values[name]).all(), name
    for name in ("standard_error_", "relevance_error_"):
        assert not np.isnan(values[name]).any(), name
    shown = model.log_.by_position(model.log_.shown) > 0
    assert np.isfinite(values["examination_"][shown]).all()
    prediction = model.predict(model.log_)
    assert np.isfinite(prediction.log_likelihood)
    assert prediction.log_likelihood <= 0
    assert prediction.n_rows == int(model.log_.shown.sum())
    assert prediction.perplexity >= 1 - 1e-9


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("simplified", [False, True], ids=["EM", "counts"])
def test_without_a_prior_nothing_is_known_of_who_is_satisfied_by_unclicked_documents(simplified):
    pages = [(0, [0, 1, 2], [0, 1, 2], [False, True, False]), (0, [1, 3], [0, 1], [True, True])]
    model = get_click_model("dbn")(prior=(0, 0), simplified=simplified).fit(log_of(pages * 9))
    unknown = model.log_.by_pair(model.log_.clicked) == 0
    assert unknown.tolist() == [True, False, True, False]
    assert np.isinf(model.relevance_error_[unknown]).all()


def test_other_queries_documents_and_deeper_pages_are_predicted(kind):
    model = kind().fit(log_of(users(depth=3)))
    other = log_of([(6, [9, 3, 12, 1, 7], [0, 1, 2, 3, 8], [False, True, False, False, True])])
    prediction = model.predict(other)
    assert np.isfinite(prediction.log_likelihood)
    assert np.isfinite(prediction.by_position[[0, 1, 2, 3, 8]]).all()
    assert np.isnan(prediction.by_position[4:8]).all()


def test_judgements_can_be_made_of_it(kind):
    model = kind().fit(log_of(users(2_000)))
    judged = ClickJudgements(model, n_grades=3)
    frame = judged.frame()
    assert set(frame["grade"]) <= {-1, 0, 1, 2}
    assert frame["grade"].max() == 2
    liked = frame[frame["document"] == "d7"]["relevance"].mean()
    assert liked > frame[frame["document"] == "d0"]["relevance"].mean()
    pairs = weighted_pairs(judged)
    assert (pairs.weight > 0).all()


def test_mistakes_are_named(kind):
    log = log_of(users(20))
    with pytest.raises(InputError, match="not fitted"):
        kind().predict(log)
    with pytest.raises(InputError, match="is not fitted"):
        ClickJudgements(kind())
    for prior in ((-1.0, 1.0), (1.0,), (np.nan, 1.0)):
        with pytest.raises(InputError, match="prior must be two numbers"):
            kind(prior=prior).fit(log)
    with pytest.raises(InputError, match=f"click model '{kind.name}' has no option 'priors'"):
        fitted_model(log, kind.name, {"priors": (1, 1)})
