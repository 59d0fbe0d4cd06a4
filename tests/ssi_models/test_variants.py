"""What the variants of SSI have to do with each other, and what each promises of its own."""

import numpy as np
import pytest
import scipy.sparse as sp
import ssi_twins as twins
from pair_data import run_of_one_epoch

from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.ssi.correlated_hash import CorrelatedHashSSI, top_dice
from ssi_models.ssi.cross_language import CrossLanguageSSI
from ssi_models.ssi.diagonal import DiagonalSSI
from ssi_models.ssi.full import FullSSI
from ssi_models.ssi.hash_kernel import HashKernelSSI
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.ssi.polynomial import PSI
from ssi_models.ssi.sparse import SparseSSI, project
from ssi_models.training.preferences import Preferences

N, WIDTH = 50, 24
QUICK = {
    "batch_size": 32, "n_negatives": 16, "max_epochs": 4, "threads": 1, "margin": 1.0,
    "scales": (1.0,), "hold_out": "queries",
}  # fmt: skip
#: f(q, d) = (Uq) . (Vd) + q . d
OF_THE_PAPER = {**QUICK, "unit_documents": False}


@pytest.fixture(autouse=True)
def _keep_what_was_trained(monkeypatch):
    """The data below teach nothing, and a start is left only for what is better beyond chance."""
    monkeypatch.setattr(
        "ssi_models.training.run.exceeds_noise", lambda values, start, errors=0: True
    )


def data(seed=0):
    rng = np.random.default_rng(seed)
    Q, D = (sp.csr_matrix(twins.unit_rows(rng, N, WIDTH, 0.3, [9])) for _ in range(2))
    pairs = np.unique(rng.integers(N, size=(300, 2)), axis=0)
    return Q, D, Preferences.from_pairs(*pairs.T, n_queries=N, n_documents=N)


ALL = (np.repeat(np.arange(N), N), np.tile(np.arange(N), N))


def scores(model, Q=None, D=None):
    own = data()
    return model.score(own[0] if Q is None else Q, own[1] if D is None else D, *ALL)


def test_low_rank_of_full_rank_is_the_unconstrained_matrix():
    full = FullSSI(**QUICK).fit(*data())
    low_rank = LowRankSSI(WIDTH, **QUICK, learning_rate=1e-9).fit(*data())
    delta = np.zeros((WIDTH, WIDTH), np.float32)
    delta[np.ix_(full.rows_, full.columns_)] = full.w_.reshape(len(full.rows_), -1)
    low_rank.U_, low_rank.V_ = delta, np.eye(WIDTH, dtype=np.float32)
    assert np.abs(delta).max() > 0.01
    np.testing.assert_allclose(scores(low_rank), scores(full), atol=1e-6)


def test_unconstrained_step_is_the_margin_ranking_perceptron():
    """W += lr q (d+ - d-)' summed over violating tuples / K, from W = I (all tuples violate)."""
    model = FullSSI(
        optimizer="sgd", learning_rate=0.1, batch_size=10**4, n_negatives=N, margin=100.0
    )
    Q, D, pairs = data()
    run = run_of_one_epoch(model, Q, D, pairs)
    W, judged = np.zeros((WIDTH, WIDTH)), np.zeros((N, N), bool)
    judged[pairs.query, pairs.document] = True
    Q, D = Q.toarray(), D.toarray()
    for q, d in zip(pairs.query, pairs.document, strict=True):
        if q not in run.data.validating.queries:
            rest = ~judged[q]
            W += 0.1 / N * np.outer(Q[q], rest.sum() * D[d] - D[rest].sum(axis=0))
    np.testing.assert_allclose(run.scorer.parameters()["w"].reshape(WIDTH, WIDTH), W, atol=1e-5)


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
@pytest.mark.parametrize("loss", ["margin", "logistic"])
@pytest.mark.parametrize(
    "kind",
    [FullSSI, SparseSSI, DiagonalSSI, LowRankSSI, PSI, HashKernelSSI, CorrelatedHashSSI,
     CrossLanguageSSI],
)  # fmt: skip
def test_a_step_climbs_by_the_gradients_of_the_loss(kind, loss, optimizer):
    """With the scorer's steps tested by themselves: the gradients are those of the slow twin."""
    known = kind().get_params()
    options = {"rank": 3, "init": "normal", "batch_size": 20, "n_negatives": 9, "threads": 1}
    wanted = {name: value for name, value in options.items() if name in known}
    model = kind(loss=loss, optimizer=optimizer, margin=0.3, **wanted)
    Q, D, pairs = data()
    if kind is CrossLanguageSSI:
        model._monolingual = None
    if kind is CorrelatedHashSSI:
        model.frequent_ = np.arange(10)
        model.matches_ = top_dice(check_csr("D", D), model.frequent_, model.bins)[0]
    checked = model._prepared(Q, D, pairs, excluded=np.arange(N))
    with Workers(1) as workers:
        run, slow = (model.make_run(checked, 0.05, workers) for _ in range(2))
        batch = next(run.batches(0))
        summed, _, _ = run.step(batch)
        positive, negative = slow.scorer.scores(batch)
        relevant = set(zip(checked.training.query, checked.training.document, strict=True))
        allowed = np.array(
            [[(q, d) not in relevant and q != d for d in batch.negatives] for q in batch.query]
        )
        A, total = twins.pair_gradients(loss, "uniform", 0.3, positive, negative, allowed, N)
        slow.scorer.step(A.astype(np.float32))
    np.testing.assert_allclose(summed, total, rtol=1e-5)
    assert (A > 0).any()
    for name, values in slow.scorer.state().items():
        np.testing.assert_allclose(run.scorer.state()[name], values, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "options", [{}, {"symmetric": True}, {"symmetric": False}, {"separate": True}]
)
def test_polynomial_of_degree_2_is_low_rank(options):
    symmetric = False if "separate" in options else options.get("symmetric", "auto")
    low_rank = LowRankSSI(5, symmetric=symmetric, **QUICK).fit(*data())
    polynomial = PSI(5, degree=2, **options, **QUICK).fit(*data())
    assert polynomial.U_.tobytes() == low_rank.U_.tobytes()
    assert polynomial.V_[0].tobytes() == low_rank.V_.tobytes()
    assert scores(polynomial).tobytes() == scores(low_rank).tobytes()


@pytest.mark.parametrize("n_frequent", [None, 10])
@pytest.mark.parametrize("symmetric", [False, True])
def test_lsi_start_is_latent_semantic_indexing_beside_word_matching(symmetric, n_frequent):
    """W = c AA' + I, A the singular vectors of D by a dense SVD."""
    options = {"init": "lsi", "init_scale": 0.3, "n_frequent": n_frequent}
    model = LowRankSSI(4, symmetric=symmetric, **options, **{**OF_THE_PAPER, "max_epochs": 0}).fit(
        *data()
    )
    Q, D, _ = (x.toarray() if sp.issparse(x) else x for x in data())
    words = model.embedded_words_ if n_frequent else np.arange(WIDTH)
    A = np.linalg.svd(D[:, words])[2][:4].T
    part = 0.3**2 * len(words) / 4 * (Q[:, words] @ A) @ (D[:, words] @ A).T
    np.testing.assert_allclose(scores(model), (part + Q @ D.T).ravel(), atol=1e-5)


def test_lsi_start_of_texts_with_fewer_dimensions_is_filled_up():
    """Two distinct texts have two singular vectors; the other dimensions can still be learned."""
    rows = np.tile(np.eye(2, WIDTH), (N // 2, 1))
    Q, D = (sp.csr_matrix(rows.astype(np.float32)) for _ in range(2))
    model = LowRankSSI(5, init="lsi", **QUICK).fit(Q, D, data()[2])
    assert model.U_.any(axis=0).all()
    quick = {**QUICK, "max_epochs": 0}
    start = PSI(5, degree=2, init="lsi", symmetric=False, **quick).fit(Q, D, data()[2])
    assert not start.V_[0][:, 2:].any()
    assert start.V_[0][:2, :2].any(axis=0).all()


def test_polynomial_starts_near_its_lower_degree():
    """With no training at all, any degree with init="identity" is q . d."""
    for degree in (2, 3, 5):
        quick = {**QUICK, "max_epochs": 0}
        model = PSI(4, degree=degree, init="identity", **quick).fit(*data())
        Q, D, _ = data()
        np.testing.assert_allclose(scores(model), (Q @ D.T).toarray().ravel(), atol=1e-6)
        assert model.embed_documents(D).shape == (N, 4)


def test_separate_degrees_start_at_degree_2():
    quick = {**OF_THE_PAPER, "init": "lsi", "max_epochs": 0}
    second = LowRankSSI(4, **quick).fit(*data())
    for degree in (3, 4):
        model = PSI(4, degree=degree, separate=True, **quick).fit(*data())
        np.testing.assert_allclose(scores(model), scores(second), atol=1e-6)


@pytest.mark.parametrize(("init", "scale"), [("lsi", 0.5), ("identity", 0.5), ("normal", 0.2)])
def test_further_embeddings_spread_texts_by_their_scale(init, scale):
    """A unit text's embedding is N(0, scale^2) in each dimension."""
    quick = {**QUICK, "init": init, "init_scale": 0.2, "max_epochs": 0}
    Q, D, pairs = data()
    model = PSI(500, degree=4, **quick).fit(Q, D, pairs)
    texts = np.flatnonzero(np.diff(D.indptr))
    for table in model.V_[1:]:
        np.testing.assert_allclose((D[texts] @ table).std(axis=1), scale, rtol=0.15)


def test_degree_3_is_the_papers_product():
    model = PSI(4, **OF_THE_PAPER).fit(*data())
    Q, D, _ = (x.toarray().astype(float) if sp.issparse(x) else x for x in data())
    theta = {"U": model.U_, "V0": model.V_[0], "V1": model.V_[1]}
    expected = [twins.score("psi3", theta, Q[q], D[d]) for q, d in zip(*ALL, strict=True)]
    np.testing.assert_allclose(scores(model), expected, atol=1e-5)


def test_hash_kernel_without_collisions_is_the_unconstrained_matrix():
    full = FullSSI(**QUICK).fit(*data())
    assert len(full.rows_) == len(full.columns_) == WIDTH
    large = HashKernelSSI(n_buckets=WIDTH**2, prime=WIDTH, identity="added", **QUICK).fit(*data())
    assert large.w_.tobytes() == full.w_.tobytes()
    assert scores(large).tobytes() == scores(full).tobytes()
    other = HashKernelSSI(n_buckets=10**6 + 3, identity="added", **QUICK).fit(*data())
    np.testing.assert_allclose(scores(other), scores(full), atol=1e-6)


def test_hash_kernel_mixes_with_the_identity():
    alone = HashKernelSSI(n_buckets=200, identity="none", **QUICK).fit(*data())
    mixed = HashKernelSSI(n_buckets=200, identity="mixed", **QUICK).fit(*data())
    assert mixed.w_.tobytes() == alone.w_.tobytes()
    alpha = float(mixed.alpha_[0])
    assert 0 <= alpha <= 1
    Q, D, _ = data()
    expected = alpha * scores(alone) + (1 - alpha) * (Q @ D.T).toarray().ravel()
    np.testing.assert_allclose(scores(mixed), expected, atol=1e-6)


def test_diagonal_weighs_words():
    model = DiagonalSSI(**QUICK).fit(*data())
    Q, D, _ = data()
    expected = (Q.toarray() * model.diagonal_) @ D.toarray().T
    np.testing.assert_allclose(scores(model), expected.ravel(), atol=1e-6)
    assert np.abs(model.diagonal_ - 1).max() > 0.01


def test_infrequent_words_have_no_embedding_but_match():
    model = LowRankSSI(4, n_frequent=10, **QUICK).fit(*data())
    Q, D, _ = data()
    frequency = np.diff(D.tocsc().indptr)
    assert model.U_.shape == (10, 4)
    assert (
        frequency[model.embedded_words_].min() >= np.delete(frequency, model.embedded_words_).max()
    )
    wide = LowRankSSI(4, **{**QUICK, "max_epochs": 0}).fit(Q, D, data()[2])
    for name in "UV":
        table = np.zeros((WIDTH, 4), np.float32)
        table[model.embedded_words_] = getattr(model, f"{name}_")
        setattr(wide, f"{name}_", table)
    np.testing.assert_allclose(scores(model), scores(wide), atol=1e-6)


def test_symmetric_model_scores_both_ways_alike():
    model = LowRankSSI(4, symmetric=True, **{**OF_THE_PAPER, "scales": (0.3, 2.0)}).fit(*data())
    Q, D, _ = data()
    forth = scores(model).reshape(N, N)
    back = scores(model, D, Q).reshape(N, N)
    np.testing.assert_allclose(forth, back.T, atol=1e-6)


def test_chosen_scale_is_part_of_the_parameters():
    for options in ({}, {"symmetric": True}):
        fitted = {
            s: LowRankSSI(
                4, init="normal", **options, **{**QUICK, "scales": (s,), "patience": 9}
            ).fit(*data())
            for s in (1.0, 0.5)
        }
        if fitted[1.0].history_.best_epoch == fitted[0.5].history_.best_epoch > 0:
            Q, D, _ = data()
            diagonal = (Q @ D.T).toarray().ravel()
            np.testing.assert_allclose(
                2 * (scores(fitted[0.5]) - diagonal), scores(fitted[1.0]) - diagonal, atol=1e-5
            )
        assert fitted[0.5].scale_ == 0.5


# Sparse W --------------------------------------------------------------------------------------


def test_projection_keeps_the_largest_weights():
    rng = np.random.default_rng(0)
    delta = rng.normal(size=(6, 8)).astype(np.float32)
    identity = np.array([0, 1, 2, 3, -1, 7])
    W = delta.astype(float)
    for i, j in enumerate(identity):
        W[i, j] += j >= 0
    active = rng.random((6, 8)) < 0.9
    before = active.copy()
    project(delta, active, identity, 3)
    for i in range(6):
        order = sorted(np.flatnonzero(before[i]), key=lambda j: -abs(W[i, j]))[:3]
        assert set(np.flatnonzero(active[i])) == set(order)
        now = delta[i].astype(float)
        if identity[i] >= 0:
            now[identity[i]] += 1
        np.testing.assert_allclose(now, np.where(active[i], W[i], 0), atol=1e-6)


@pytest.mark.parametrize("p", [1, 5])
def test_sparse_rows_have_at_most_p_weights(p):
    model = SparseSSI(n_weights=p, keep=0.5, **QUICK).fit(*data())
    W = model.matrix_
    assert np.diff(W.indptr).max() == p
    Q, D, _ = data()
    np.testing.assert_allclose(scores(model), (Q @ W @ D.T).toarray().ravel(), atol=1e-6)
    assert not np.allclose(W.toarray(), np.eye(WIDTH))


def test_sparse_model_with_room_for_all_weights_is_the_full_one():
    full, sparse = FullSSI(**QUICK), SparseSSI(n_weights=WIDTH, **QUICK)
    np.testing.assert_allclose(scores(sparse.fit(*data())), scores(full.fit(*data())), atol=1e-6)


# Correlated feature hashing --------------------------------------------------------------------


def dice_twin(X, i, j):
    a, b = X[:, i] > 0, X[:, j] > 0
    return 2 * (a & b).sum() / (a.sum() + b.sum())


def test_top_matches_have_the_largest_dice_coefficients(monkeypatch):
    X = twins.unit_rows(np.random.default_rng(0), 30, WIDTH, 0.15)
    frequent = np.array([1, 4, 9, 17, 20])
    columns, dice = top_dice(check_csr("X", sp.csr_matrix(X)), frequent, 3)
    for i in range(WIDTH):
        found = {int(j): dice_twin(X, i, j) for j in frequent}
        best = sorted((j for j in found if found[j] > 0), key=lambda j: (-found[j], j))[:3]
        assert [j for j in columns[i].tolist() if j >= 0] == best
        np.testing.assert_allclose(dice[i][: len(best)], [found[j] for j in best], rtol=1e-6)
    monkeypatch.setattr("ssi_models.ssi.correlated_hash._BLOCK", 20)
    blocks = top_dice(check_csr("X", sp.csr_matrix(X)), frequent, 3)
    np.testing.assert_array_equal(blocks[0], columns)
    np.testing.assert_array_equal(blocks[1], dice)


@pytest.mark.parametrize("k", [1, 3])
def test_hashing_is_replacing_words(k, monkeypatch):
    """Algorithm 1: every word i becomes S_1(i), ..., S_k(i), each with weight 1 / sqrt(k)."""
    model = CorrelatedHashSSI(4, n_features=8, bins=k, **QUICK).fit(*data())
    replaced = []
    for X in data()[:2]:
        out = np.zeros((N, 8))
        for row, word in zip(*X.nonzero(), strict=True):
            for match, _ in model.top_matches(word):
                column = model.frequent_.tolist().index(match)
                out[row, column] += X[row, word] / np.sqrt(k)
        replaced.append(sp.csr_matrix(out, dtype=np.float32))
    # Replaced rows are longer than 1, and refused at the door.
    monkeypatch.setattr("ssi_models.base.check_unit_rows", check_csr)
    plain = LowRankSSI(4, **QUICK).fit(*replaced, data()[2])
    np.testing.assert_allclose(scores(model), scores(plain, *replaced), atol=1e-5)


def test_frequent_word_stands_for_itself_first():
    model = CorrelatedHashSSI(4, n_features=8, bins=2, **QUICK).fit(*data())
    for word in model.frequent_.tolist():
        match, dice = model.top_matches(word)[0]
        assert (match, dice) == (word, 1.0)
    with pytest.raises(ValueError, match=r"word\[0\] is row 24"):
        model.top_matches(WIDTH)


def test_ngrams_are_hashed_to_words_only():
    """Columns 12.. are n-grams: they have matches, but stand for nothing."""
    words = np.arange(WIDTH) < 12
    model = CorrelatedHashSSI(4, n_features=8, bins=2, **QUICK).fit(*data(), words=words)
    assert model.frequent_.max() < 12
    assert (model.matches_ < 12).all()
    assert (model.matches_[12:] >= 0).any()
    with pytest.raises(ValueError, match="no column may become a frequent word"):
        CorrelatedHashSSI(4, **QUICK).fit(*data(), words=np.zeros(WIDTH, bool))
    for odd in (np.array([3, 5]), words[1:]):
        with pytest.raises(
            ValueError, match=r"words must be bool \[24\], a mask of the columns, got"
        ):
            CorrelatedHashSSI(4, **QUICK).fit(*data(), words=odd)


def test_mixture_adds_the_two_models():
    model = CorrelatedHashSSI(4, n_features=8, bins=2, mixture=True, **OF_THE_PAPER).fit(*data())
    Q, D, _ = data()
    alpha = float(model.alpha_[0])
    frequent = [X[:, model.frequent_].toarray() for X in (Q, D)]
    A = (frequent[0] @ model.A_U_) @ (frequent[1] @ model.A_V_).T + (Q @ D.T).toarray()
    hashed = [model.hash(check_csr("X", X)).toarray() for X in (Q, D)]
    B = (hashed[0] @ model.U_) @ (hashed[1] @ model.V_).T + hashed[0] @ hashed[1].T
    np.testing.assert_allclose(scores(model).reshape(N, N), (1 - alpha) * A + alpha * B, atol=1e-5)
    rare_only = Q.toarray().copy()
    rare_only[:, model.frequent_] = 0
    np.testing.assert_allclose(
        hashed[0], model.hash(check_csr("X", sp.csr_matrix(rare_only))).toarray(), atol=1e-6
    )


# Parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (PSI, {"degree": 1}, "degree must be 2 or more, got 1"),
        (PSI, {"higher_init_scale": 0}, "higher_init_scale must be positive"),
        (SparseSSI, {"n_weights": 0}, "n_weights must be 1 or more"),
        (SparseSSI, {"keep": 1.0}, "keep must be in"),
        (SparseSSI, {"scales": (0.5, 1.0)}, "scales: a sparse model"),
        (HashKernelSSI, {"n_buckets": 0}, "n_buckets must be 1 or more"),
        (HashKernelSSI, {"identity": "half"}, "identity 'half' is unknown"),
        (HashKernelSSI, {"prime": 2**40}, "prime must be between"),
        (CorrelatedHashSSI, {"bins": 0}, "bins must be 1 or more"),
        (CorrelatedHashSSI, {"n_frequent": 5}, "n_features limits the words"),
        (CrossLanguageSSI, {"sharing": "all"}, "sharing 'all' is unknown"),
        (CrossLanguageSSI, {"rank": 0}, "rank must be 1 or more"),
    ],
)
def test_bad_parameters_are_refused_by_name(kind, params, message):
    with pytest.raises(ValueError, match=message):
        kind(**{**QUICK, **params}).fit(*data())


def test_more_dimensions_than_words_or_documents_are_refused():
    Q, D, preferences = data()
    most = min(D.shape)
    for kind in (LowRankSSI, CrossLanguageSSI):
        usual = kind.default_params()["rank"]
        with pytest.raises(
            ValueError, match=f"rank=100,000 is more than {most}, .* give {most} or"
        ):
            kind(**{**QUICK, "rank": 100_000}).fit(Q, D, preferences)
        assert usual > most  # small collections need not change the default
        kind(**{**QUICK, "rank": usual}).fit(Q, D, preferences)


def test_too_many_weights_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr("ssi_models.ssi.full.MAX_WEIGHTS", 100)
    with pytest.raises(ValueError, match="need 576 weights, more than 100; keep fewer words"):
        FullSSI(**QUICK).fit(*data())
