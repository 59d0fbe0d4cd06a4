"""Remarks on fits, by hand-made histories and by fits that go wrong."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from ssi_models.projections.lsa import LSA, LsiTfIdf
from ssi_models.registry import load_model
from ssi_models.remarks import of_amount, of_training, of_word_weight
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.sparse import SparseSSI
from ssi_models.topics.bilingual import PLSA
from ssi_models.topics.translation import IBMModel1
from ssi_models.training.loop import DivergenceWarning, Epoch, History
from ssi_models.training.preferences import Preferences

N = 30


def told(values, best, stopped, weight=1.0):
    epochs = [Epoch(i, 0.1, 0.1, value) for i, value in enumerate(values)]
    return of_training(
        History(epochs, best, stopped),
        start="word matching",
        n_queries=1200,
        learned_weight=weight,
        learning_rate=0.03,
    )


@pytest.mark.parametrize(
    ("values", "best", "stopped", "weight", "begin"),
    [
        ([0.3, 0.2, 0.2], 0, "patience", 1, "did not improve on its start (word matching): what"),
        ([0.3, 0.4], 1, "diverged", 1, "diverged in epoch 2 and kept the parameters of epoch 1: "),
        ([0.3], 0, "diverged", 1, "diverged in epoch 1 and kept its start (word matching): lower"),
        ([0.3], 0, "max_epochs", 1, "was not trained and equals its start (word matching)"),
        ([0.3, 0.2], 0, "patience", 0, "gives no weight to its learned part and is plain word"),
        ([0.3, 0.4], 1, "max_epochs", 1, "stopped at its epoch limit (1) while"),
        ([0.3, 0.4], 1, "max_seconds", 1, "stopped at its time limit while"),
    ],
)
def test_what_is_said_of_training(values, best, stopped, weight, begin):
    (sentence,) = told(values, best, stopped, weight)
    assert sentence.startswith(begin)


def test_a_mixture_without_lsi_is_told():
    """Each query has one relevant document, which has its word: nothing beats word matching."""
    X = sp.identity(N, np.float32, format="csr")
    pairs = Preferences.from_pairs(np.arange(N), np.arange(N), n_queries=N, n_documents=N)
    mixed, given = (LsiTfIdf(2, alpha=alpha).fit(X, X, pairs) for alpha in (None, 0.0))
    assert mixed.alpha_[0] == 0
    assert mixed.only_same_words
    assert mixed.remarks[-1].startswith("gives no weight to LSI")
    assert given.only_same_words
    assert not [remark for remark in given.remarks if "LSI" in remark]  # as it was asked for


@pytest.mark.parametrize(
    ("queries", "advice"),
    [
        (999, "judge more queries, or leave it out"),
        (1000, "held-out queries; leave it out"),
    ],
)
def test_more_queries_are_advised_where_there_are_few(queries, advice):
    (sentence,) = of_word_weight(1.0, chosen=True, n_queries=queries)
    assert sentence.endswith(advice)


def test_nothing_is_said_where_all_is_well():
    assert told([0.3, 0.4, 0.35], 1, "patience") == []
    assert of_amount(20, 100) == of_amount(0, 0) == []
    assert of_word_weight(0.9, chosen=True, n_queries=9) == []


@pytest.mark.parametrize(("queries", "pairs"), [(19, 1000), (1000, 99)])
def test_few_queries_or_pairs_are_little(queries, pairs):
    (sentence,) = of_amount(queries, pairs)
    assert f"only {pairs:,} relevant pairs of {queries:,} queries" in sentence


def data():
    """Each query has a word that its documents alone have: nothing to be learned for others."""
    D = sp.identity(N, np.float32, format="csr")
    every = np.arange(N)
    return D, D, Preferences.from_pairs(every, every, n_queries=N, n_documents=N)


def test_remarks_are_saved_with_the_model(tmp_path):
    model = LowRankSSI(2, init="identity", max_epochs=2, scales=(1.0,), threads=1).fit(*data())
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.remarks == model.remarks
    assert [sentence.split()[0] for sentence in model.remarks] == ["learned", "did"]
    assert loaded.only_same_words


def test_a_diverged_fit_says_so():
    model = LowRankSSI(2, init="normal", margin=1e3, learning_rate=1e30, optimizer="sgd", threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        model.fit(*data())
    assert any(sentence.startswith("diverged in epoch ") for sentence in model.remarks)


def test_the_last_round_of_a_sparse_model_is_not_its_start():
    model = SparseSSI(n_weights=2, max_epochs=3, threads=1).fit(*data())
    words = model.matrix_.tocoo()
    assert model.only_same_words == bool(np.all(words.row == words.col))
    assert any(s.startswith("did not improve") for s in model.remarks) <= model.only_same_words


@pytest.mark.parametrize(
    ("kind", "weight"), [(PLSA, "lambda2"), (IBMModel1, "lambda2"), (LSA, "word_weight")]
)
def test_models_without_a_learned_part_match_the_same_words_only(kind, weight):
    for value in (1.0, 0.5):
        model = kind(**{weight: value}, threads=1)
        assert not model.only_same_words
        assert model.fit(*data()).only_same_words == (value == 1)


def test_unfitted_models_have_nothing_to_say():
    assert LowRankSSI(2).remarks == []
    assert not LowRankSSI(2).only_same_words
    assert not SparseSSI().only_same_words
