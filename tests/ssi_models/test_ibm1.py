"""IBM Model 1 against its slow twin, and on a toy dictionary."""

import numpy as np
import pytest
import scipy.sparse as sp
import topic_em
from pair_data import paired

from ssi_models.topics.translation import IBMModel1
from ssi_models.vocabulary import Vocabulary

WORDS = Vocabulary(["the", "house", "book", "a", "das", "haus", "buch", "ein"])
BITEXT = [
    (["the", "house"], ["das", "haus"]),
    (["the", "book"], ["das", "buch"]),
    (["a", "book"], ["ein", "buch"]),
]


def counts(texts):
    X = np.zeros((len(texts), len(WORDS)))
    for i, text in enumerate(texts):
        np.add.at(X[i], WORDS.rows(text), 1)
    return sp.csr_matrix(X)


def toy(**options):
    Q, D = counts([q for q, _ in BITEXT]), counts([d for _, d in BITEXT])
    return IBMModel1(**options).fit(Q, D, paired(3), vocabulary=WORDS), Q, D


def random_bitext(n=60, V=14):
    rng = np.random.default_rng(0)
    return [
        (
            rng.integers(0, V, rng.integers(1, 5)).tolist(),
            rng.integers(0, V, rng.integers(1, 8)).tolist(),
        )
        for _ in range(n)
    ], V


def as_matrix(texts, V):
    X = np.zeros((len(texts), V))
    for i, text in enumerate(texts):
        np.add.at(X[i], text, 1)
    return sp.csr_matrix(X)


def table_of(model):
    V = model.n_words_
    parts = (model.table_values_, model.table_indices_, model.table_indptr_)
    return sp.csr_matrix(parts, shape=(V, V + 1)).toarray()


def test_em_gives_the_numbers_of_its_slow_twin():
    pairs, V = random_bitext()
    Q, D = as_matrix([q for q, _ in pairs], V), as_matrix([d for _, d in pairs], V)
    model = IBMModel1(iterations=12, prune=0, threads=2).fit(Q, D, paired(len(pairs)))
    table, likelihoods = topic_em.ibm1(pairs, V, 12)
    np.testing.assert_allclose(table_of(model), table, atol=1e-5)
    objective = [line.objective for line in model.history_]
    np.testing.assert_allclose(objective, likelihoods, rtol=1e-6)
    assert np.diff(objective).min() > -1e-4


def test_one_step_by_hand():
    """das meets the, house and book, haus meets 2 words, buch 3, NULL 4. So "the" and "house"
    beside das and haus count (1/3) / (1/3 + 1/2 + 1/4) = 4/13 for das, and "the" and "book" beside
    das and buch (1/3) / (1/3 + 1/3 + 1/4) = 4/11."""
    model, _, _ = toy(iterations=1, prune=0)
    das = dict(model.explain()["das"])
    assert das == pytest.approx({"the": 1 / 2, "house": 11 / 48, "book": 13 / 48}, rel=1e-6)
    assert [word for word, _ in model.explain()["das"]] == ["the", "book", "house"]
    assert [word for word, _ in model.explain(1)["das"]] == ["the"]


def test_the_toy_dictionary_is_found():
    model, _, _ = toy(iterations=60)
    best = {word: found[0][0] for word, found in model.explain().items()}
    assert {word: best[word] for word in ("das", "haus", "buch", "ein")} == {
        "das": "the", "haus": "house", "buch": "book", "ein": "a",
    }  # fmt: skip
    assert model.nearest_words(WORDS.rows(["house"])[0], 1)[0][0] == WORDS.rows(["haus"])[0]


def test_score_is_the_translated_title():
    model, Q, D = toy(iterations=5, lambda1=0.0, lambda2=0.25)
    table, title = table_of(model), D[1].toarray()[0]
    words = WORDS.rows(["the", "house"])
    p = 0.75 * table[words, :-1] @ title / 2 + 0.25 * title[words] / 2
    expected = np.log(np.maximum(p, 1e-12)).mean()
    assert model.score(Q, D, [0], [1])[0] == pytest.approx(expected, rel=1e-5)


def test_pruning_drops_small_entries_and_keeps_distributions():
    pairs, V = random_bitext(300, 40)
    Q, D = as_matrix([q for q, _ in pairs], V), as_matrix([d for _, d in pairs], V)
    whole = IBMModel1(prune=0).fit(Q, D, paired(300))
    pruned = IBMModel1(prune=0.01).fit(Q, D, paired(300))
    assert len(pruned.table_values_) < len(whole.table_values_)
    assert pruned.table_values_.min() >= 0.01
    np.testing.assert_allclose(table_of(pruned).sum(axis=0), 1, rtol=1e-5)


def test_warm_start_begins_above_the_cold_one():
    pairs, V = random_bitext(100, 20)
    Q, D = as_matrix([q for q, _ in pairs], V), as_matrix([d for _, d in pairs], V)
    model = IBMModel1(warm_start=True, prune=0).fit(Q, D, paired(100))
    cold = model.history_[0].objective
    assert model.fit(Q, D, paired(100)).history_[0].objective > cold


def test_empty_sides_are_left_out_and_bad_parameters_refused():
    Q, D = counts([["the"], [], ["book"]]), counts([["das"], ["haus"], []])
    model = IBMModel1().fit(Q, D, paired(3))
    assert model.n_left_out_ == 2
    with pytest.raises(ValueError, match="prune must be"):
        IBMModel1(prune=1).fit(Q, D, paired(3))
    with pytest.raises(ValueError, match="iterations must be"):
        IBMModel1(iterations=-1).fit(Q, D, paired(3))
    with pytest.raises(ValueError, match="words on both sides"):
        IBMModel1().fit(Q[1:], D[1:], paired(2))
