"""VSM, LSA, CL-LSA and OPCA against dense linear algebra."""

import tracemalloc

import numpy as np
import projection_twins as twins
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from ssi_models.matrices import check_csr
from ssi_models.mixing import chosen_by_others
from ssi_models.parallel import Workers
from ssi_models.projections import opca
from ssi_models.projections.lsa import CLLSA, LSA, LSI
from ssi_models.projections.opca import OPCA
from ssi_models.projections.svd import right_singular_vectors
from ssi_models.training.preferences import Preferences

M, N, WIDTH = 25, 30, 18


def rows(seed, n, width=WIDTH):
    rng = np.random.default_rng(seed)
    X = rng.random((n, width)) * (rng.random((n, width)) < 0.4)
    X[3] = 0
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)


def data(d_width=WIDTH):
    Q, D = rows(0, M), rows(1, N, d_width)
    pairs = np.unique(np.random.default_rng(2).integers([M, N], size=(90, 2)), axis=0)
    return Q, D, Preferences.from_pairs(*pairs.T, n_queries=M, n_documents=N)


def fitted(model, d_width=WIDTH):
    Q, D, pairs = data(d_width)
    return model.fit(sp.csr_matrix(Q), sp.csr_matrix(D), pairs)


def matrix(model, d_width=WIDTH):
    Q, D, _ = data(d_width)
    every = np.repeat(np.arange(M), N), np.tile(np.arange(N), M)
    return model.score(sp.csr_matrix(Q), sp.csr_matrix(D), *every).reshape(M, N)


def test_lsi_is_lsa_of_the_documents():
    lsi, lsa = (fitted(model) for model in (LSI(6), LSA(6, texts="documents")))
    np.testing.assert_array_equal(lsi.A_d_, lsa.A_d_)
    assert LSI().rank == 200


@pytest.mark.parametrize("kind", [LSA, LSI])
def test_lsa_is_the_dense_svd(kind):
    Q, D, _ = data()
    X = D if kind is LSI else np.vstack([Q, D])
    A = twins.lsa(X, 6)
    model = fitted(kind(6))
    np.testing.assert_allclose(model.A_q_, A, atol=2e-5)
    assert model.A_d_ is model.A_q_
    np.testing.assert_allclose(matrix(model), twins.cosines(Q, D, A, A), atol=2e-5)


def test_lsa_looks_at_no_query_without_preferences():
    """Queries of a test must not move the model that ranks for them."""
    Q, D, pairs = data()
    few = pairs.only(np.arange(3))
    A = twins.lsa(np.vstack([Q[np.unique(few.query)], D]), 6)
    other = Q.copy()
    other[3:] = Q[3:, ::-1]
    for queries in (Q, other):
        model = LSA(6).fit(sp.csr_matrix(queries), sp.csr_matrix(D), few)
        np.testing.assert_allclose(model.A_q_, A, atol=2e-5)


def test_inverse_scaling_divides_by_the_singular_values():
    Q, D, _ = data()
    X = np.vstack([Q, D])
    A = twins.lsa(X, 6) / scipy.linalg.svdvals(X)[:6]
    np.testing.assert_allclose(fitted(LSA(6, scaling="inverse")).A_q_, A, atol=1e-4)


def test_cl_lsa_is_the_svd_of_concatenated_pairs():
    Q, D, pairs = data()
    A = twins.lsa(Q[pairs.query] + D[pairs.document], 5)
    np.testing.assert_allclose(fitted(CLLSA(5)).A_q_, A, atol=2e-5)


@pytest.mark.parametrize(("n_topics", "ranks"), [(150, [200]), (40, [50, 100])])
def test_rank_is_that_which_ranks_held_out_queries_best(n_topics, ranks):
    """Queries name a topic by one word, documents by another; with more topics than dimensions
    some are not seen, and dimensions beyond the topics are noise."""
    rng = np.random.default_rng(0)
    topic = np.repeat(np.arange(n_topics), 3)
    n, noise = len(topic), 2 * n_topics + rng.integers(0, 400, (2, 3 * n_topics))
    sides = [
        sp.csr_matrix(
            (np.tile(np.float32([0.9, 0.43]), n), np.stack([word, other], 1).ravel(),
             2 * np.arange(n + 1)), (n, 2 * n_topics + 400),
        )
        for word, other in zip((topic, n_topics + topic), noise, strict=True)
    ]  # fmt: skip
    known = Preferences.from_pairs(np.arange(n), np.arange(n), n_queries=n, n_documents=n)
    model = CLLSA().fit(*sides, known)
    rank = model.A_q_.shape[1]
    assert rank in ranks
    whole = CLLSA(200).fit(*sides, known)
    np.testing.assert_array_equal(model.A_q_, whole.A_q_[:, :rank])
    assert model.A_d_ is model.A_q_
    assert CLLSA(word_weight=0.5).fit(*sides, known).A_q_.shape[1] == min(n, 200)


def test_weight_of_words_beside_lsa_is_chosen_by_held_out_queries():
    """Each query is the text of its document, and its words alone find it."""
    _, D, _ = data()
    X = sp.csr_matrix(D)
    own = Preferences.from_pairs(np.arange(N), np.arange(N), n_queries=N, n_documents=N)
    model = LSA(2, word_weight="auto")
    assert model.looks_at_labels
    assert not LSA(2).looks_at_labels
    assert model.fit(X, X, own).word_weight_ == 1
    assert "gives no weight to its learned part" in model.remarks[-1]
    part = np.arange(10)
    (copy, _) = LSA(2, word_weight="auto").fit_parts(X, X, own, [part, np.arange(10, 20)])
    alone = LSA(2).fit(X, X, own.without(part))  # the queries of the part are in no text
    np.testing.assert_array_equal(copy.A_q_, alone.A_q_)


def test_cl_lsa_of_two_vocabularies():
    Q, D, pairs = data(11)
    A = twins.lsa(np.hstack([Q[pairs.query], D[pairs.document]]), 5)
    model = fitted(CLLSA(5, vocabularies="separate"), 11)
    np.testing.assert_allclose(np.vstack([model.A_q_, model.A_d_]), A, atol=2e-5)
    expected = twins.cosines(Q, D, A[:WIDTH], A[WIDTH:])
    np.testing.assert_allclose(matrix(model, 11), expected, atol=2e-5)


@pytest.mark.parametrize("kind", [LSI, LSA, CLLSA, OPCA])
def test_fewer_dimensions_than_asked_for_are_remarked(kind):
    """The texts have 18 words."""
    remark = f"has {WIDTH} dimensions instead of {WIDTH + 1}: "
    for rank, is_told in ((WIDTH, False), (WIDTH + 1, True)):
        told = " ".join(fitted(kind(rank)).remarks)
        assert (remark in told) is is_told


@pytest.mark.parametrize("d_width", [WIDTH, 11])
@pytest.mark.parametrize("form", ["dense", "matrix-free"])
def test_opca_attains_the_generalised_rayleigh_quotient(form, d_width, monkeypatch):
    """Against scipy.linalg.eigh of the whole matrices."""
    if form == "matrix-free":
        monkeypatch.setattr(opca, "DENSE_WORDS", 0)
    Q, D, pairs = data(d_width)
    rank, settings = 3, {"ridge": 0.1, "tolerance": 1e-7, "max_iterations": 300}
    separate = d_width != WIDTH
    words = "separate" if separate else "shared"
    model = fitted(OPCA(rank, vocabularies=words, **settings), d_width)
    if separate:
        Q, D = np.hstack([Q, np.zeros((M, d_width))]), np.hstack([np.zeros((N, WIDTH)), D])
        A = np.vstack([model.A_q_, model.A_d_]).astype(np.float64)
    else:
        A = model.A_q_.astype(np.float64)
    S, B = twins.opca_matrices(Q, D, list(zip(pairs.query, pairs.document, strict=True)), 0.1)
    best = scipy.linalg.eigh(S, B, eigvals_only=True)[::-1][:rank]
    quotients = np.einsum("ij,ik,kj->j", A, S, A) / np.einsum("ij,ik,kj->j", A, B, A)
    np.testing.assert_allclose(quotients, best, rtol=1e-5)
    apart = A.T @ B @ A / np.outer(*[np.sqrt(np.diag(A.T @ B @ A))] * 2)
    np.testing.assert_allclose(apart, np.eye(rank), atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    rank=st.integers(1, 12),
    density=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_singular_vectors_of_any_matrix(shape, rank, density, seed):
    """Orthonormal, of the largest singular values, with the stated signs; 0 matrices too."""
    rng = np.random.default_rng(seed)
    X = (rng.random(shape) * (rng.random(shape) < density)).astype(np.float32)
    with Workers(1) as workers:
        V, s = right_singular_vectors([check_csr("X", sp.csr_matrix(X))], rank, 0, workers)
    expected = scipy.linalg.svdvals(X.astype(np.float64))[:rank]
    kept = expected[: len(s)]
    np.testing.assert_allclose(s, kept, atol=1e-4 * max(1, expected[0]))
    assert (expected[len(s) :] <= 1e-2 * max(expected[0], 1e-9)).all()
    np.testing.assert_allclose(V.T @ V, np.eye(len(s)), atol=2e-2)
    assert (V[np.abs(V).argmax(axis=0), np.arange(len(s))] > 0).all()


def test_product_of_factors_is_never_formed_but_decomposed():
    rng = np.random.default_rng(0)
    P = sp.random_array((40, 15), density=0.3, rng=rng, dtype=np.float32)
    X = sp.random_array((15, 22), density=0.4, rng=rng, dtype=np.float32)
    factors = [check_csr("P", sp.csr_matrix(P)), check_csr("X", sp.csr_matrix(X))]
    with Workers(2) as workers:
        V, s = right_singular_vectors(factors, 4, 0, workers)
    both = (P @ X).toarray().astype(np.float64)
    np.testing.assert_allclose(s, scipy.linalg.svdvals(both)[:4], rtol=1e-4)
    np.testing.assert_allclose(V, twins.lsa(both, 4), atol=1e-4)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LSA(0), "rank must be 1 or more, got 0"),
        (LSA("auto"), "rank must be a number, got 'auto'"),
        (CLLSA("most"), "rank must be a whole number or 'auto', got 'most'"),
        (LSA(scaling="whitened"), "scaling 'whitened' is unknown"),
        (CLLSA(vocabularies="two"), "vocabularies 'two' is unknown; use one of"),
        (OPCA(ridge=0), "ridge must be positive and finite, got 0"),
        (OPCA(max_iterations=0), "max_iterations must be 1 or more"),
    ],
)
def test_bad_parameters_are_refused_by_name(model, message):
    with pytest.raises(ValueError, match=message):
        fitted(model)


def test_factor_of_a_mixture_comes_from_the_other_fold():
    """The second choice is right for the first two queries, the first for the others."""
    values = [[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
    assert chosen_by_others(values, [0, 0, 1, 1]) == {0: 0, 1: 1}
    assert chosen_by_others(values, [0, 1, 0, 1]) == {0: 0, 1: 0}
    with pytest.raises(ValueError, match="two folds or more"):
        chosen_by_others(values, [0, 0, 0, 0])


def test_many_rows_take_float64_copies_of_some_at_a_time():
    rng = np.random.default_rng(0)
    X = sp.random(300_000, 40, 0.05, "csr", np.float32, rng)
    with Workers(1) as workers:
        right_singular_vectors([X[:100]], 20, 0, workers)  # compiled
        tracemalloc.start()
        V, s = right_singular_vectors([X], 20, 0, workers)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert V.shape == (40, 20)
    whole = np.linalg.eigvalsh((X.T @ X).toarray().astype(np.float64))[::-1][:20]
    np.testing.assert_allclose(s**2, whole, rtol=1e-5)
    assert peak < 4 * 300_000 * 40 * 4  # a float64 copy of all rows and its transpose took 5.4


def test_scores_of_a_query_with_all_documents_do_not_depend_on_blas_threads():
    D = sp.csr_matrix(rows(0, 20_011, 150))
    pairs = Preferences.from_pairs([0], [1], n_queries=1, n_documents=D.shape[0])
    cached = LSA(rank=100, word_weight=0.5).fit(D[:1], D, pairs).cache(D)
    scores = []
    for threads in (1, 3):
        with threadpool_limits(threads, user_api="blas"):
            scores.append(cached.scores(D[:1]))
    np.testing.assert_array_equal(*scores)
