"""Baselines against formulas written out."""

import numpy as np
import pytest
import scipy.sparse as sp
import ssi_twins as twins

from ssi_models.matrices import check_csr
from ssi_models.mixing import ALPHAS, best_mixture, rank_loss
from ssi_models.projections import baselines
from ssi_models.projections.baselines import VSM
from ssi_models.projections.lsa import LSI, LsiTfIdf
from ssi_models.projections.query_expansion import QueryExpansion
from ssi_models.representation import Representation
from ssi_models.training.held_out import sample_triples
from ssi_models.training.preferences import Preferences

N, WIDTH = 30, 20


def data():
    rng = np.random.default_rng(0)
    Q, D = (sp.csr_matrix(twins.unit_rows(rng, N, WIDTH, 0.3)) for _ in range(2))
    pairs = np.unique(rng.integers(N, size=(150, 2)), axis=0)
    return Q, D, Preferences.from_pairs(*pairs.T, n_queries=N, n_documents=N)


ALL = (np.repeat(np.arange(N), N), np.tile(np.arange(N), N))


def matrix(model):
    Q, D, pairs = data()
    return model.fit(Q, D, pairs).score(Q, D, *ALL).reshape(N, N)


def cosine():
    Q, D, _ = data()
    return Q.toarray() @ D.toarray().T


def in_degree():
    pairs = data()[2]
    return np.array([(pairs.document == d).sum() for d in range(N)])


def test_popularity_counts_queries():
    np.testing.assert_array_equal(
        matrix(baselines.Popularity()), np.tile(in_degree(), (N, 1)).astype(np.float32)
    )


def test_tfidf_is_the_cosine_and_popular_documents_gain():
    np.testing.assert_allclose(matrix(VSM()), cosine(), atol=1e-6)
    np.testing.assert_allclose(
        matrix(baselines.PopularTfIdf()), cosine() * np.log(1 + in_degree()), atol=1e-5
    )


def test_popularity_belongs_to_its_documents():
    Q, D, pairs = data()
    model = baselines.Popularity().fit(Q, D, pairs)
    with pytest.raises(ValueError, match="D has 12 documents, in-degrees were counted for 30"):
        model.score(Q, D[:12], [0], [0])


def test_lsi_is_the_cosine_of_projections():
    Q, D, _ = (x.toarray() if sp.issparse(x) else x for x in data())
    basis = np.linalg.svd(D)[2][:6].T
    q, d = Q @ basis, D @ basis
    q, d = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, d))
    np.testing.assert_allclose(matrix(LSI(6)), q @ d.T, atol=1e-3)


def test_lsi_of_full_rank_is_the_cosine():
    full = matrix(LSI(WIDTH))
    np.testing.assert_allclose(full, cosine(), atol=1e-4)


def test_mixture_adds_lsi_and_tfidf():
    lsi, both = LSI(5), LsiTfIdf(5, alpha=0.3)
    np.testing.assert_allclose(matrix(both), 0.3 * matrix(lsi) + 0.7 * cosine(), atol=1e-6)


def test_the_factor_is_chosen_between_the_two_scores():
    """Five topics of four words; queries and relevant documents share a topic, seldom a word."""
    rng = np.random.default_rng(0)
    topic = np.arange(N) % 5

    def texts(n_words):
        rows = np.zeros((N, WIDTH))
        for row in range(N):
            rows[row, 4 * topic[row] + rng.choice(4, n_words, replace=False)] = 1
        return sp.csr_matrix(rows / np.sqrt(n_words), dtype=np.float32)

    Q, D = texts(1), texts(2)
    pairs = Preferences.from_pairs(*np.nonzero(topic[:, None] == topic), n_queries=N, n_documents=N)
    lsi = LSI(5).fit(Q, D, pairs).score(Q, D, *ALL).reshape(N, N)
    words = (Q @ D.T).toarray()
    chosen = LsiTfIdf(5).fit(Q, D, pairs)
    expected = best_mixture(
        lambda q, d: (lsi[q, d], words[q, d]), pairs, np.arange(N), ALPHAS, chosen.seed
    )
    assert float(chosen.alpha_[0]) == pytest.approx(expected)
    assert expected > 0


def test_mixing_factor_has_the_lowest_rank_loss():
    """One score is right, the other noise: the factor leans to the right one."""
    pairs = data()[2]
    relevant = np.zeros((N, N))
    relevant[pairs.query, pairs.document] = 1
    noise = np.random.default_rng(0).random((N, N))

    def scores(query, document):
        return relevant[query, document], noise[query, document]

    alpha = best_mixture(scores, pairs, np.arange(N), ALPHAS, seed=0)
    assert alpha >= 0.5
    flipped = best_mixture(lambda q, d: scores(q, d)[::-1], pairs, np.arange(N), ALPHAS, seed=0)
    assert flipped <= 0.5
    assert rank_loss(np.array([1.0, 0.0, 2.0]), np.array([0.0, 0.0, 3.0])) == 0.5


def test_query_expansion_adds_the_mean_of_the_best():
    Q, D, _ = (x.toarray() if sp.issparse(x) else x for x in data())
    expected = np.empty((N, N))
    for i in range(N):
        best = np.argsort(-(D @ Q[i]), kind="stable")[:3]
        expected[i] = D @ (Q[i] + 0.4 * D[best].mean(axis=0))
    model = QueryExpansion(beta=0.4, n_expansion=3)
    np.testing.assert_allclose(matrix(model), expected, atol=1e-5)


def test_a_query_s_own_document_is_not_fed_back_to_it():
    Q, D, pairs = data()
    own = np.arange(N)[::-1].copy()
    own[3] = -1
    Q = sp.csr_matrix(np.where((own < 0)[:, None], Q.toarray(), D.toarray()[own]))
    expected = np.empty((N, N))
    for i in range(N):
        best = np.argsort(-(D @ Q[i].toarray()[0]), kind="stable")
        assert own[i] < 0 or best[0] == own[i]
        best = best[best != own[i]][:3]
        expected[i] = D @ (Q[i].toarray()[0] + 0.4 * D[best].mean(axis=0).A1)
    model = QueryExpansion(beta=0.4, n_expansion=3).fit(Q, D, pairs, excluded=own)
    found = model.score(Q, D, *ALL, excluded=own).reshape(N, N)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(model.cache(D).scores(Q, excluded=own), found, atol=1e-6)
    assert (model.score(Q, D, *ALL) != found.ravel()).any()
    with pytest.raises(ValueError, match=r"excluded\[0\] is row 30"):
        model.score(Q, D, *ALL, excluded=np.full(N, N))


def test_what_shares_no_word_with_a_query_is_not_fed_back_and_the_documents_are_its_own():
    D = sp.csr_matrix(np.eye(4, dtype=np.float32))
    Q = sp.csr_matrix(np.array([[0, 0, 0, 0], [1, 0, 0, 0]], np.float32))
    pairs = Preferences.from_pairs([0], [0], n_queries=2, n_documents=4)
    model = QueryExpansion(beta=0.5, n_expansion=3).fit(Q, D, pairs)
    everything = [0] * 4 + [1] * 4, [0, 1, 2, 3] * 2
    expected = [0, 0, 0, 0, 1.5, 0, 0, 0]
    assert model.score(Q, D, *everything).tolist() == expected
    same = D.copy()
    D.data[:] = 0
    assert model.score(Q, same, *everything).tolist() == expected


def test_of_documents_that_match_alike_the_first_is_fed_back():
    D = sp.csr_matrix(np.array([[0.6, 0.8, 0], [0.6, 0, 0.8]], np.float32))
    Q = sp.csr_matrix(np.array([[1, 0, 0]], np.float32))
    pairs = Preferences.from_pairs([0], [0], n_queries=1, n_documents=2)
    model = QueryExpansion(beta=0.5, n_expansion=1).fit(Q, D, pairs)
    assert model.expanded(Q).toarray()[0] == pytest.approx([1.3, 0.4, 0])


def test_with_nothing_else_to_feed_back_a_query_stays_as_it_is():
    Q = D = sp.csr_matrix(np.eye(1, WIDTH))
    pairs = Preferences.from_pairs([0], [0], n_queries=1, n_documents=1)
    model = QueryExpansion(beta=0.5, n_expansion=2).fit(Q, D, pairs, excluded=[0])
    assert model.score(Q, D, [0], [0], excluded=[0])[0] == 1
    assert model.score(Q, D, [0], [0])[0] == 1.5


def test_a_query_s_own_document_is_no_negative_of_the_choice():
    pairs, own = data()[2], np.arange(N)
    query, _, negative = sample_triples(pairs, own, 5000, 0)
    assert (negative == query).any()
    query, _, negative = sample_triples(pairs, own, 5000, 0, excluded=own)
    assert len(query) > 3000
    assert (negative != query).all()
    assert (negative < query).any()
    assert (negative > query).any()
    asked = []

    def scores(query, document):
        asked.append((query == document).any())
        return np.zeros(len(query)), np.zeros(len(query))

    relevant_to_itself = (pairs.query == pairs.document).any()
    best_mixture(scores, pairs, own, (0.0, 1.0), seed=0, excluded=own)
    assert asked == [relevant_to_itself, False]


def test_expansion_is_chosen_where_it_helps():
    """Relevant documents share words with the best match only, not with the query."""
    n = 10
    Q, D = np.zeros((n, 3 * n)), np.zeros((2 * n, 3 * n))
    for i in range(n):
        Q[i, i] = 1
        D[i, [i, n + i]] = np.sqrt(0.5)
        D[n + i, n + i] = 1
    pairs = Preferences.from_pairs(np.arange(n), n + np.arange(n), n_queries=n, n_documents=2 * n)
    model = QueryExpansion().fit(sp.csr_matrix(Q), sp.csr_matrix(D), pairs)
    assert model.n_expansion_[0] == 1
    s = model.score(sp.csr_matrix(Q), sp.csr_matrix(D), np.zeros(2 * n, int), np.arange(2 * n))
    assert set(np.argsort(-s)[:2]) == {0, n}


def test_expansion_is_chosen_without_a_query_s_own_document():
    """As above. Its own document is the best match, and has words of another's relevant one."""
    n, i = 10, np.arange(10)
    Q, D = np.zeros((n, 2 * n)), np.zeros((3 * n, 2 * n))
    Q[i, i] = 1
    D[i, i] = D[i, n + i] = np.sqrt(0.5)
    D[n + i, n + i] = 1
    D[2 * n + i, i], D[2 * n + i, n + (i + 1) % n] = 0.8, 0.6
    pairs = Preferences.from_pairs(i, n + i, n_queries=n, n_documents=3 * n)
    given = sp.csr_matrix(Q), sp.csr_matrix(D), pairs
    model = QueryExpansion().fit(*given, candidates="relevant", excluded=2 * n + i)
    assert model.n_expansion_[0] == 1
    assert QueryExpansion().fit(*given, candidates="relevant").n_expansion_[0] == 2


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LSI(0), "rank must be 1 or more"),
        (LsiTfIdf(alpha=1.5), "alpha must be in"),
        (LsiTfIdf(word_weight="auto"), "word_weight: alpha is the weight that is chosen here"),
        (QueryExpansion(beta=-1), "beta must be 0 or more"),
        (QueryExpansion(n_expansion=0), "n_expansion must be 1 or more"),
    ],
)
def test_bad_parameters_are_refused_by_name(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*data())


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.35, 0.95, 1.0])
def test_the_grid_of_mixing_factors_has_both_ends_and_steps_of_a_twentieth(alpha):
    """Half of the triples are right above a factor just below alpha, half below one just above."""
    low, high = alpha - 0.02, alpha + 0.02
    pairs = Preferences.from_pairs(np.arange(40), np.arange(40), n_queries=40, n_documents=41)

    def scores(query, document):
        """For even queries alpha a + (1 - alpha) b of the relevant document is alpha - low, for
        odd ones high - alpha; of the other document 0."""
        a = np.where(query % 2, high - 1, 1 - low)
        b = np.where(query % 2, high, -low)
        relevant = document == query
        return relevant * a, relevant * b

    assert best_mixture(scores, pairs, np.array([40]), ALPHAS, seed=0) == alpha


def of(n, width=2, dtype=np.float32):
    """A dense representation of n texts."""
    return Representation(np.ones((n, width), dtype))


OUTSIDE = check_csr("outside", sp.csr_matrix(np.eye(5, dtype=np.float32)))
OUTSIDE.indices[3] = 70


@pytest.mark.parametrize(
    ("queries", "documents", "said"),
    [
        (of(3), of(5), "query_representation has 3 dense rows.* of all 5 texts"),
        (of(5), of(1), "document_representation has 1 dense rows"),
        (of(5), of(5, width=3), "queries are represented by 2 numbers, documents by 3"),
        (of(5, dtype=np.float64), of(5), "dense part that is not an array float32"),
        (Representation(np.full((5, 2), np.nan, np.float32)), of(5), "values that are not finite"),
        (np.ones((5, 2)), of(5), "query_representation returned ndarray"),
        (Representation(sparse=OUTSIDE), of(5), "has entries outside the 5 columns"),
        (of(5), Representation(sparse=OUTSIDE[:2]), "document_representation has 2 sparse rows"),
    ],
)
def test_representations_that_kernels_would_read_beyond_are_refused(queries, documents, said):
    X = check_csr("X", sp.csr_matrix(np.eye(5, dtype=np.float32)))
    model = VSM().fit(X, X, Preferences.from_pairs([0], [1], n_queries=5, n_documents=5))
    model.query_representation = lambda Q, words: queries
    model.document_representation = lambda D: documents
    for score in (
        lambda: model.score(X, X, np.arange(5), np.arange(5)),
        lambda: model.cache(X).scores(X),
    ):
        with pytest.raises(ValueError, match=said):
            score()
