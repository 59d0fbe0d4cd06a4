"""What every language model promises: matching models whose matrices hold counts of words."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ssi_models.base import NotFittedError
from ssi_models.registry import MODELS, get_model, load_model
from ssi_models.training.preferences import CandidateLists, Preferences
from ssi_models.vocabulary import Vocabulary
from ssi_models.weighting import TfIdf

NAMES = [name for name, kind in MODELS.items() if kind.inputs == "counts"]
N, WIDTH, EMPTY = 40, 30, 7
PAIRS = tuple(np.random.default_rng(5).integers(N, size=(2, 90)))


def counts(seed, width=WIDTH):
    """float32 counts over the first 30 columns; row 7 is empty."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.3, (N, WIDTH)) * (np.arange(N) != EMPTY)[:, None]
    rows, used = np.nonzero(X)
    return sp.csr_matrix((X[rows, used], (rows, used)), (N, width), dtype=np.float32)


def labels():
    pairs = np.unique(np.random.default_rng(2).integers(N, size=(200, 2)), axis=0)
    return Preferences.from_pairs(*pairs.T, n_queries=N, n_documents=N)


def data():
    return counts(0), counts(1), labels()


@pytest.fixture(params=NAMES)
def make(request):
    """Makes a fresh model; ``make.kind`` is its class."""
    kind = get_model(request.param)
    quick = {"n_topics": 4, "iterations": 4, "threads": 1}
    known = kind().get_params()

    def make(**more):
        return kind(**{k: v for k, v in {**quick, **more}.items() if k in known})

    make.kind = kind
    return make


def scores_of(model, pairs=PAIRS):
    scores = model.score(counts(0), counts(1), *pairs)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    return scores


def test_no_argument_is_ignored(make):
    """A word that fit does not know, and what does not fit the queries, is refused by all."""
    for name in ("exclude", "candidate"):
        with pytest.raises(TypeError, match=f"{name}'"):
            make().fit(*data(), **{name: np.arange(N)})
    for name, given, message in (
        ("excluded", np.arange(N - 1), "excluded has 39 rows for 40 queries"),
        ("groups", np.arange(N - 1), "groups has 39 entries for 40 queries"),
        ("candidates", [3, 40], r"candidates\[1\] is row 40"),
        ("candidate_lists", CandidateLists.from_pairs([0], [1], n_queries=N, n_documents=N),
         "candidate_lists: .* learns from no negatives"),
        ("weighting", TfIdf(), "weighting: .* reads counts"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            make().fit(*data(), **{name: given})
    model = make().fit(*data(), excluded=np.arange(N))
    with pytest.raises(ValueError, match="excluded has 39 rows for 40 queries"):
        model.score(counts(0), counts(1), *PAIRS, excluded=np.arange(N - 1))
    with pytest.raises(ValueError, match="excluded has 39 rows for 40 queries"):
        model.cache(counts(1)).scores(counts(0), excluded=np.arange(N - 1))


def test_the_family_is_complete():
    assert NAMES == ["unigram", "plsa", "bltm", "bltm-pr", "bltm-pr-1v", "wtm"]


def test_scores_are_log_probabilities(make):
    model = make()
    assert model.fit(*data()) is model
    scores = scores_of(model)
    assert scores.max() <= 0
    assert np.ptp(scores) > 0


def test_what_means_nothing_to_a_model_is_ignored(make):
    options = {"candidates": np.arange(N), "excluded": np.arange(N), "groups": np.arange(N)}
    model = make(lambda2=0.5).fit(*data(), weighting=None, **options)
    np.testing.assert_array_equal(scores_of(model), scores_of(make(lambda2=0.5).fit(*data())))


def test_two_fits_and_any_threads_give_the_same_bytes(make):
    one, two = (make(threads=n).fit(*data()) for n in (1, 2))
    for name in make.kind.tensors:
        assert getattr(one, f"{name}_").tobytes() == getattr(two, f"{name}_").tobytes()
    assert scores_of(one).tobytes() == scores_of(two).tobytes()


def test_fitting_again_forgets_the_first_fit(make):
    model = make().fit(counts(3), counts(4), labels())
    np.testing.assert_array_equal(scores_of(model.fit(*data())), scores_of(make().fit(*data())))


def test_saved_model_scores_the_same_bits(make, tmp_path):
    vocabulary = Vocabulary(f"word {i} é" for i in range(WIDTH))
    model = make().fit(*data(), vocabulary=vocabulary, recipe="recipe 1")
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is make.kind
    assert scores_of(loaded).tobytes() == scores_of(model).tobytes()
    assert loaded.vocabulary_ == vocabulary
    assert loaded.recipe_ == "recipe 1"


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


def test_a_pair_scores_the_same_alone_and_from_cached_titles(make):
    model = make().fit(*data())
    alone = [scores_of(model, ([q], [d]))[0] for q, d in zip(*PAIRS, strict=True)]
    np.testing.assert_array_equal(scores_of(model), alone)
    everything = model.cache(counts(1)).scores(counts(0))
    np.testing.assert_array_equal(everything[PAIRS], scores_of(model))
    assert scores_of(model, ([], [])).shape == (0,)


def test_some_queries_score_the_same_without_the_others(make):
    model = make().fit(*data())
    query, document = (np.asarray(rows) for rows in PAIRS)
    some = (query >= 3) & (query < 9)
    alone = model.score(counts(0)[3:9], counts(1), query[some] - 3, document[some])
    np.testing.assert_array_equal(scores_of(model)[some], alone)


def test_empty_texts_have_finite_scores(make):
    model = make().fit(*data())
    every = np.arange(N)
    assert (scores_of(model, (np.full(N, EMPTY), every)) == 0).all()
    assert np.isfinite(scores_of(model, (every, np.full(N, EMPTY)))).all()


def test_words_that_no_text_had_are_harmless(make):
    Q, D = counts(0, WIDTH + 5), counts(1, WIDTH + 5)
    model = make().fit(Q, D, labels())
    unseen = sp.csr_matrix(([1.0], ([0], [WIDTH + 2])), (1, WIDTH + 5), dtype=np.float32)
    assert np.isfinite(model.score(unseen, D, np.zeros(N, int), np.arange(N))).all()


def test_bad_input_is_refused_by_name(make):
    Q, D, pairs = data()
    negative = D.copy()
    negative.data[negative.indptr[3]] = -1
    with pytest.raises(ValueError, match=r"D: row 3 holds -1\.0; counts must be 0 or more"):
        make().fit(Q, negative, pairs)
    with pytest.raises(TypeError, match="Q must be a scipy sparse matrix"):
        make().fit(Q.toarray(), D, pairs)
    with pytest.raises(ValueError, match="Q has 20 columns, D has 30"):
        make().fit(Q[:, :20], D, pairs)
    with pytest.raises(ValueError, match="the preferences are of 40 queries and 40 documents"):
        make().fit(Q, D[:20], pairs)
    with pytest.raises(ValueError, match=r"lambda1 must be in 0\.\.1, got 2"):
        make(lambda1=2).fit(Q, D, pairs)
    with pytest.raises(NotFittedError, match="not fitted; call fit or load"):
        make().score(Q, D, [0], [0])
    with pytest.raises(ValueError, match=r"document\[1\] is row 40, outside 0..39"):
        make().fit(Q, D, pairs).score(Q, D, [0, 0], [3, 40])


def test_a_copy_for_a_part_learns_from_the_other_queries(make):
    Q, D, pairs = data()
    parts = [np.arange(20), np.arange(20, N)]
    model = make(lambda2=0.5)
    copies = model.fit_parts(Q, D, pairs, parts)
    for copy, part in zip(copies, parts, strict=True):
        alone = make(lambda2=0.5).fit(Q, D, pairs.without(part))
        np.testing.assert_array_equal(scores_of(copy), scores_of(alone))
    np.testing.assert_array_equal(scores_of(model), scores_of(make(lambda2=0.5).fit(Q, D, pairs)))
