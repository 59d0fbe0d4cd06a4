"""The unigram language model and the mixture's weights, against hand-computed numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

from ssi_models.remarks import FitWarning
from ssi_models.topics.language_model import UnigramLM

#        apple pear plum
D = sp.csr_matrix([[2.0, 1, 0], [0, 1, 1], [0, 0, 0]])
Q = sp.csr_matrix([[1.0, 0, 0], [1, 0, 2], [0, 0, 0]])
BACKGROUND = np.array([2.5, 2.5, 1.5]) / 6.5


def test_jelinek_mercer_by_hand():
    model = UnigramLM(lambda1=0.25, threads=1).fit(Q, D)
    scores = model.score(Q, D, [0, 0, 1, 0, 2], [0, 1, 1, 2, 0])
    apple, plum = BACKGROUND[[0, 2]]
    expected = [
        np.log(0.25 * apple + 0.75 * 2 / 3),
        np.log(0.25 * apple),
        (np.log(0.25 * apple) + 2 * np.log(0.25 * plum + 0.75 / 2)) / 3,
        np.log(0.25 * apple),  # an empty title: the collection alone
        0.0,  # a query without words
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_pairs_that_are_scored_some_at_a_time_have_the_same_scores(monkeypatch):
    model = UnigramLM(lambda1=0.25, threads=1).fit(Q, D)
    pairs = [0, 0, 1, 0, 2], [0, 1, 1, 2, 0]
    at_once = model.score(Q, D, *pairs)
    monkeypatch.setattr("ssi_models.topics.language_model._BLOCK", 2)
    np.testing.assert_array_equal(model.score(Q, D, *pairs), at_once)


def test_dirichlet_by_hand():
    model = UnigramLM(smoothing="dirichlet", mu=2.0).fit(Q, D)
    apple, plum = BACKGROUND[[0, 2]]
    expected = [
        np.log((2 + 2 * apple) / 5),
        (np.log(2 * apple / 4) + 2 * np.log((1 + 2 * plum) / 4)) / 3,
        np.log(apple),
    ]
    np.testing.assert_allclose(model.score(Q, D, [0, 1, 0], [0, 1, 2]), expected, rtol=1e-6)


def test_pairs_of_a_word_are_its_own_title():
    with pytest.warns(FitWarning, match="^unigram: matches each query word with itself only$"):
        assert UnigramLM().fit(Q, D).nearest_words(2, 3) == [(2, 1.0)]
    with pytest.raises(TypeError, match="UnigramLM explains single words; use nearest_words"):
        UnigramLM().fit(Q, D).nearest_words_of_text(Q[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": "laplace"}, "smoothing 'laplace' is unknown"),
        ({"mu": 0}, "mu must be positive"),
        ({"lambda1": np.nan}, "lambda1 must be a number, got nan"),
    ],
)
def test_parameters_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        UnigramLM(**options).fit(Q, D)


def test_collections_without_words_are_refused():
    with pytest.raises(ValueError, match="no word"):
        UnigramLM().fit(Q, sp.csr_matrix((3, 3)))
