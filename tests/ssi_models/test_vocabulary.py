import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from ssi_models.parameters import NotFittedError
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf, heaviest


def test_rows_of_known_and_unknown_words():
    vocabulary = Vocabulary(["b", "a", "ß"])
    assert len(vocabulary) == 3
    assert vocabulary.rows(["a", "x", "ß", "a"]).tolist() == [1, -1, 2, 1]
    assert vocabulary.rows([]).tolist() == []
    assert list(vocabulary) == ["b", "a", "ß"]
    assert "a" in vocabulary
    assert "x" not in vocabulary


def test_fingerprint_depends_on_words_order_and_borders():
    fingerprints = {
        Vocabulary(words).fingerprint for words in (["ab", "c"], ["c", "ab"], ["a", "bc"], ["abc"])
    }
    assert len(fingerprints) == 4
    assert Vocabulary(["ab", "c"]).fingerprint == Vocabulary(("ab", "c")).fingerprint
    assert Vocabulary(["ab", "c"]) == Vocabulary(("ab", "c"))


@pytest.mark.parametrize(
    ("words", "message"),
    [(["a", "b", "c", "b"], "'b' occurs twice"), (["a", 3], "holds strings; got 3")],
)
def test_what_cannot_be_a_vocabulary_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(words)


@pytest.mark.parametrize("form", ["csc", "coo", "lil", "bsr", "dok"])
def test_counts_of_any_format_are_weighted_alike(form):
    counts = sp.csr_matrix(np.array([[2, 1, 0], [0, 1, 0], [1, 1, 3]]))
    weighting, expected = TfIdf().fit(counts), np.log([3 / 2, 1, 3])
    np.testing.assert_allclose(weighting.idf_, expected, rtol=1e-6)
    weights = counts.toarray() * expected
    weights /= np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(weighting.transform(counts).toarray(), weights, rtol=1e-6)
    other = counts.asformat(form)
    np.testing.assert_array_equal(TfIdf().fit(other).idf_, weighting.idf_)
    assert (weighting.transform(other) != weighting.transform(counts)).nnz == 0


def test_a_word_counted_in_two_entries_is_in_one_document():
    twice = sp.csr_matrix((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_allclose(TfIdf().fit(twice).idf_, np.log([2, 2]), rtol=1e-6)
    assert TfIdf().fit(twice).transform(twice).toarray().tolist() == [[1, 0], [0, 1]]
    assert twice.nnz == 3


def test_the_length_of_a_row_does_not_depend_on_the_rows_before_it():
    # The first word is in all documents but one of 200,000, as in a query of stop words.
    weighting = TfIdf.from_idf(np.log([200_000 / 199_999, 200_000]))
    rows = sp.csr_matrix(np.array([[0, 3]] * 2000 + [[1, 0]]))
    assert weighting.transform(rows)[-1].toarray().tolist() == [[1, 0]]


def test_what_is_no_count_is_refused():
    with pytest.raises(ValueError, match=r"row 1 holds -2\.0; counts must be 0 or more"):
        TfIdf().fit(sp.csr_matrix([[1.0], [-2.0]]))
    with pytest.raises(TypeError, match="counts must be a scipy sparse matrix"):
        TfIdf().fit(np.eye(2))
    with pytest.raises(NotFittedError, match="this TfIdf is not fitted"):
        TfIdf().transform(sp.csr_matrix([[1.0]]))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_heaviest_keeps_the_largest_weights(seed, n):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 4, (5, 8)).astype(np.float32)
    kept = heaviest(sp.csr_matrix(dense), n).toarray()
    for row, own in zip(dense, kept, strict=True):
        expected = np.zeros(8)
        best = sorted(np.flatnonzero(row), key=lambda j: (-row[j], j))[:n]
        expected[best] = row[best]
        length = np.linalg.norm(expected)
        np.testing.assert_allclose(own, expected / length if length else expected, rtol=1e-6)
