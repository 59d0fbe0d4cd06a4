"""What language models promise beside what every matching model does (``test_models.py``)."""

from __future__ import annotations

import numpy as np
import pytest
from pair_data import maker, random_labels, sparse_texts

from ssi_models.registry import MODELS, get_model
from ssi_models.topics.language_model import UnigramLM
from ssi_models.training.preferences import Preferences
from ssi_models.weighting import TfIdf

NAMES = [name for name, kind in MODELS.items() if kind.inputs == "counts"]
N, WIDTH = 40, 30
PAIRS = tuple(np.random.default_rng(5).integers(N, size=(2, 90)))


def counts(seed):
    return sparse_texts(seed, UnigramLM, N, WIDTH, empty=7)


def labels():
    return random_labels(N)


def data():
    return counts(0), counts(1), labels()


@pytest.fixture(params=NAMES)
def make(request):
    """Makes a fresh model; ``make.kind`` is its class."""
    return maker(get_model(request.param), {})


def scores_of(model):
    return model.score(counts(0), counts(1), *PAIRS)


def test_the_family_is_complete():
    assert NAMES == ["unigram", "plsa", "bltm", "bltm-pr", "bltm-pr-1v", "wtm"]


def test_scores_are_log_probabilities(make):
    scores = scores_of(make().fit(*data()))
    assert scores.max() <= 0
    assert np.ptp(scores) > 0


def test_what_means_nothing_to_a_model_is_ignored(make):
    options = {"candidates": np.arange(N), "excluded": np.arange(N), "groups": np.arange(N)}
    model = make(lambda2=0.5).fit(*data(), weighting=None, **options)
    np.testing.assert_array_equal(scores_of(model), scores_of(make(lambda2=0.5).fit(*data())))


def test_only_scoring_parameters_change_no_fitted_number(make):
    first, second = make().fit(*data()), make(lambda1=0.7, lambda2=0.1).fit(*data())
    for name in make.kind.tensors:
        np.testing.assert_array_equal(getattr(first, f"{name}_"), getattr(second, f"{name}_"))
    assert not np.array_equal(scores_of(first), scores_of(second))


def test_labels_teach_only_models_that_learn_from_them(make):
    others = Preferences.from_pairs(*PAIRS, n_queries=N, n_documents=N)
    # A weight that is chosen would be that of words alone: these labels are chance.
    first, second = (make(lambda2=0.5) for _ in "ab")
    first.fit(*data())
    second.fit(counts(0), counts(1), others)
    same = np.array_equal(scores_of(first), scores_of(second))
    assert same == (make.kind.learns_from == "documents")


def test_a_pair_scores_the_same_from_cached_titles(make):
    model = make().fit(*data())
    everything = model.cache(counts(1)).scores(counts(0))
    np.testing.assert_array_equal(everything[PAIRS], scores_of(model))


def test_bad_input_is_refused_by_name(make):
    Q, D, pairs = data()
    negative = D.copy()
    negative.data[negative.indptr[3]] = -1
    with pytest.raises(ValueError, match=r"D: row 3 holds -1\.0; counts must be 0 or more"):
        make().fit(Q, negative, pairs)
    with pytest.raises(ValueError, match=r"weighting: .* reads counts"):
        make().fit(Q, D, pairs, weighting=TfIdf())
    with pytest.raises(ValueError, match=r"lambda1 must be in 0\.\.1, got 2"):
        make(lambda1=2).fit(Q, D, pairs)


def test_a_copy_for_a_part_learns_from_the_other_queries(make):
    Q, D, pairs = data()
    parts = [np.arange(20), np.arange(20, N)]
    model = make(lambda2=0.5)
    copies = model.fit_parts(Q, D, pairs, parts)
    for copy, part in zip(copies, parts, strict=True):
        alone = make(lambda2=0.5).fit(Q, D, pairs.without(part))
        np.testing.assert_array_equal(scores_of(copy), scores_of(alone))
    np.testing.assert_array_equal(scores_of(model), scores_of(make(lambda2=0.5).fit(Q, D, pairs)))
