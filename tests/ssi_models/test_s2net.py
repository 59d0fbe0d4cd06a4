"""S2Net: its loss and gradients, its optimisers, and what they promise."""

import sys
import warnings

import numpy as np
import projection_twins as twins
import pytest
import scipy.optimize
import scipy.sparse as sp

from ssi_models.kernels.pair_losses import Judged
from ssi_models.kernels.projections import CosineLoss, PairGradients, QueryPairs, batch_gradients
from ssi_models.kernels.sparse import row_squares
from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.s2net import full_batch, mini_batch
from ssi_models.s2net.lbfgs import LBFGS
from ssi_models.s2net.model import S2Net
from ssi_models.s2net.tuples import TupleObjective, draw_negatives
from ssi_models.training.embedding_table import TextMatrix
from ssi_models.training.preferences import Preferences

M, N, WIDTH, RANK, GAMMA = 24, 30, 20, 4, 10.0


def rows(seed, n, width=WIDTH):
    rng = np.random.default_rng(seed)
    X = rng.random((n, width)) * (rng.random((n, width)) < 0.35)
    X[3] = 0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    return check_csr("X", sp.csr_matrix(X))


def pairs():
    drawn = np.unique(np.random.default_rng(2).integers([M, N], size=(110, 2)), axis=0)
    grade = np.random.default_rng(3).integers(1, 3, len(drawn))
    return Preferences.from_pairs(*drawn.T, grade, n_queries=M, n_documents=N)


def data():
    return rows(0, M), rows(1, N), pairs()


def model(**params):
    quick = {"batch_size": 16, "max_epochs": 6, "validation_share": 0.2, "threads": 1}
    paper = {"hold_out": "queries", "word_weight": 0.0}
    return S2Net(**{"rank": RANK, **quick, **paper, **params})


def objective(workers, preferences=None):
    Q, D, every = data()
    preferences = preferences or every
    documents = draw_negatives(preferences, np.arange(N), 4, 0, None)
    return TupleObjective(Q, D, preferences.query, documents, None, GAMMA, workers)


def tuples_of(kept):
    """(q, d+, d-) over the rows that were kept."""
    return [
        (q, d[0], n)
        for q, d in zip(kept.query, kept.documents, strict=True)
        for n in d[1:]
        if n >= 0
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_loss_and_gradient_are_the_papers(threads):
    rng = np.random.default_rng(5)
    A_q, A_d = rng.standard_normal((2, WIDTH, RANK))
    with Workers(threads) as workers:
        ours = objective(workers)
        loss, wrong, G_q, G_d = ours.gradient(A_q.astype(np.float32), A_d.astype(np.float32))
        assert ours.loss(A_q.astype(np.float32), A_d.astype(np.float32)) == (loss, wrong)
    (kept,) = ours.shards
    dense = kept.Q.toarray().astype(float), kept.D.toarray().astype(float)
    tuples = tuples_of(kept)
    assert len(tuples) == ours.n_tuples > 300
    args = (*dense, tuples, A_q, A_d, GAMMA)
    assert loss == pytest.approx(twins.s2net_loss(*args), rel=1e-5)
    expected = twins.s2net_gradient(*args)
    for found, exact in zip((G_q, G_d), expected, strict=True):
        np.testing.assert_allclose(found, exact, atol=1e-5 * np.abs(exact).max() + 1e-4)
    C = twins.cosines(*dense, A_q, A_d)
    assert wrong == sum(C[q, p] - C[q, n] <= 0 for q, p, n in tuples)


def test_gradient_of_the_papers_is_the_finite_difference():
    rng = np.random.default_rng(6)
    Q, D = rows(0, M).toarray().astype(float), rows(1, N).toarray().astype(float)
    tuples = [tuple(t) for t in rng.integers([M, N, N], size=(40, 3))]
    start = rng.standard_normal(2 * WIDTH * RANK)

    def sides(x):
        return x.reshape(2, WIDTH, RANK)

    def loss(x):
        return twins.s2net_loss(Q, D, tuples, *sides(x), GAMMA)

    gradient = np.concatenate(
        [g.ravel() for g in twins.s2net_gradient(Q, D, tuples, *sides(start), GAMMA)]
    )
    exact = scipy.optimize.approx_fprime(start, loss, 1e-7)
    np.testing.assert_allclose(gradient, exact, atol=1e-4 * np.abs(exact).max())


def test_negatives_are_never_as_relevant():
    preferences, excluded = pairs(), np.arange(M)
    drawn = draw_negatives(preferences, np.arange(N), 50, 0, excluded)
    grade = {
        (q, d): g
        for q, d, g in zip(preferences.query, preferences.document, preferences.grade, strict=True)
    }
    np.testing.assert_array_equal(drawn[:, 0], preferences.document)
    for q, row in zip(preferences.query, drawn, strict=True):
        for d in row[1:][row[1:] >= 0]:
            assert grade.get((q, d), 0) < grade[q, row[0]]
            assert d != excluded[q]
    assert 0 < (drawn < 0).mean() < 0.3


def test_lbfgs_finds_what_scipy_finds():
    scale = np.linspace(1, 30, 40)

    def rosenbrock(x):
        x = x.astype(np.float64)
        return scipy.optimize.rosen(x / 3), scipy.optimize.rosen_der(x / 3) / 3

    def bowl(x):
        return float(scale @ (x - 1.0) ** 2), 2 * scale * (x - 1.0)

    for function, tolerance in ((bowl, 1e-6), (rosenbrock, 1e-3)):
        x = np.full(40, 1.7, np.float32)

        def value_and_gradient(x, function=function):
            value, gradient = function(x)
            return float(value), gradient.astype(np.float32)

        optimizer = LBFGS(x, value_and_gradient)
        values = [optimizer.iterate() for _ in range(150)]
        assert (np.diff(values) <= 0).all()
        theirs = scipy.optimize.minimize(function, np.full(40, 1.7), jac=True, method="L-BFGS-B")
        assert values[-1] <= theirs.fun + tolerance


def test_full_batches_reach_scipys_minimum():
    """The same objective from the same start, to the same loss within a tenth."""
    Q, D, preferences = data()
    ours = model(optimizer="l-bfgs", max_epochs=40, patience=40, validation_share=0.05)
    ours.fit(Q, D, preferences)
    losses = [epoch.loss for epoch in ours.history_.epochs[1:]]
    assert (np.diff(losses) <= 1e-7).all()
    with Workers(1) as workers:
        training = preferences.only(np.setdiff1d(preferences.queries, ours.validation_queries_))
        of_training = objective(workers, training)

        def value(x):
            A = x.reshape(WIDTH, RANK).astype(np.float32)
            loss, _, G_q, G_d = of_training.gradient(A, A)
            n = of_training.n_tuples
            return loss / n, (G_q + G_d).ravel().astype(np.float64) / n

        start = twins.lsa(np.vstack([Q.toarray(), D.toarray()]).astype(float), RANK).ravel()
        theirs = scipy.optimize.minimize(
            value, start, jac=True, method="L-BFGS-B", options={"maxiter": 40}
        )
    assert losses[-1] <= 1.1 * theirs.fun


@pytest.mark.parametrize("optimizer", ["rmsprop", "adagrad", "sgd", "l-bfgs"])
@pytest.mark.parametrize("rate", [0.1, 30.0])
def test_training_loss_is_never_above_that_of_the_lsa_start(optimizer, rate):
    Q, D, preferences = data()
    ours = model(optimizer=optimizer, learning_rate=rate, validation_measure="rank_loss")
    ours.fit(Q, D, preferences)
    before, after = ours.training_loss_
    assert after <= before
    if ours.history_.best_epoch == 0:
        assert after == before


@pytest.mark.parametrize("queries_have_own_words", [False, True])
def test_no_epoch_is_the_lsa_start(queries_have_own_words):
    """Of the documents, and of the queries that are learned from where these have words of their
    own."""
    Q, D, preferences = data()
    if queries_have_own_words:
        texts = D.toarray()
        texts[:, 3] = 0
        texts /= np.maximum(np.linalg.norm(texts, axis=1, keepdims=True), 1e-12)
        D = check_csr("D", sp.csr_matrix(texts))
    ours = model(max_epochs=0).fit(Q, D, preferences)
    queries = np.setdiff1d(preferences.query, ours.validation_queries_)
    texts = [Q[queries].toarray()] * queries_have_own_words + [D.toarray()]
    A = twins.lsa(np.vstack(texts).astype(float), RANK)
    np.testing.assert_allclose(ours.A_q_ / np.sqrt(WIDTH / RANK), A, atol=2e-5)
    assert ours.A_d_ is ours.A_q_


def test_a_step_of_a_batch_follows_the_gradient(monkeypatch):
    """One SGD step of all pairs against all documents moves A along the twin's gradient."""
    monkeypatch.setattr(full_batch, "FEWEST_STEPS", 1)
    Q, D, preferences = data()
    options = {"optimizer": "sgd", "learning_rate": 1e-3, "negatives": "uniform",
               "batch_size": 500, "n_negatives": N, "patience": 9, "max_epochs": 1}  # fmt: skip
    before = model(max_epochs=0).fit(Q, D, preferences)
    after = model(**options, margin=0.1, validation_measure="loss").fit(Q, D, preferences)
    training = preferences.only(np.setdiff1d(preferences.queries, after.validation_queries_))
    grade = np.zeros((M, N))
    grade[preferences.query, preferences.document] = preferences.grade
    tuples = [
        (q, p, n)
        for q, p in zip(training.query, training.document, strict=True)
        for n in range(N)
        if grade[q, n] < grade[q, p]
    ]
    A = before.A_q_.astype(float)
    dense = Q.toarray().astype(float), D.toarray().astype(float)
    G_q, G_d = twins.s2net_gradient(*dense, tuples, A, A, GAMMA)
    step = after.A_q_.astype(float) - A
    assert after.history_.best_epoch == 1
    # The gradients of the common loss are those of the mean over N documents, divided by gamma.
    np.testing.assert_allclose(
        step, -1e-3 * (G_q + G_d) / N / GAMMA, atol=1e-3 * np.abs(step).max() + 1e-6
    )


@pytest.mark.parametrize("gamma", [0.6, 10.0, 40.0])
def test_gradients_of_a_batch_are_the_losses_derivatives(gamma):
    rng = np.random.default_rng(7)
    n, K = 9, 40
    positive, negative = rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, K))
    positive[0], negative[0, :2] = 1, [-1, 1]
    positive[1], negative[1, :2] = -1, [1, -1]
    own = rng.uniform(-1, 1, (n, 3))
    own[0], own[1] = [1, -1, 1], [-1, 1, 1]
    places = np.ones((n, 4), np.int64)
    places[2, 1] = places[3, 1:] = -1
    paired = np.column_stack([positive, own]).astype(np.float32)
    C = np.empty((n, K), np.float32)
    out = PairGradients(np.empty((n, 4), np.float32), np.empty(n), np.empty((n, 2), np.int64))
    nothing = Judged(np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    weight = rng.uniform(0.5, 3, n).astype(np.float32)
    pairs = QueryPairs(
        np.arange(n), np.arange(n + 1), places, np.arange(n), np.ones(n, np.float32), weight,
        np.full(K, -1, np.int32), nothing,
    )  # fmt: skip
    loss = CosineLoss(gamma, 0.3)
    batch_gradients(paired, negative.astype(np.float32), pairs, loss, out, C, 0, n)
    pull, losses, counts = out
    used = places[:, 1:] >= 0
    share = np.where(used.any(axis=1), 0.3, 0.0)[:, None]
    x, y = gamma * (positive[:, None] - negative), gamma * (positive[:, None] - own)
    gradient = (1 - share) / (1 + np.exp(x)) / K
    own_slope = used * share / (1 + np.exp(y)) / np.maximum(1, used.sum(axis=1))[:, None]
    total = np.logaddexp(0, -x).sum(axis=1) + (used * np.logaddexp(0, -y)).sum(axis=1)
    gradient, own_slope = gradient * weight[:, None], own_slope * weight[:, None]
    np.testing.assert_allclose(losses, weight * total, rtol=2e-5)
    np.testing.assert_allclose(C, -gradient, rtol=1e-4)
    np.testing.assert_allclose(pull[:, 1:], -own_slope, rtol=1e-4)
    np.testing.assert_allclose(pull[:, 0], gradient.sum(axis=1) + own_slope.sum(axis=1), rtol=1e-4)
    inside = (x < 1).sum(axis=1) + (used & (y < 1)).sum(axis=1)
    np.testing.assert_array_equal(counts, np.stack([inside, K + used.sum(axis=1)], axis=1))


@pytest.mark.parametrize("negatives", ["in-batch", "uniform", "given"])
def test_steps_do_not_depend_on_the_threads(negatives, monkeypatch):
    """Small blocks, so that a batch has several."""
    monkeypatch.setattr(mini_batch, "BLOCK", 2)
    Q, D, preferences = data()
    one, two = (
        model(
            negatives=negatives,
            n_negatives=8,
            threads=threads,
            margin=0.1,
            validation_measure="loss",
        ).fit(Q, D, preferences)
        for threads in (1, 2)
    )
    losses = [epoch.loss for epoch in one.history_.epochs[1:]]
    assert losses[-1] < losses[0]
    assert one.A_q_.tobytes() == two.A_q_.tobytes()
    assert repr(one.history_) == repr(two.history_)


@pytest.mark.parametrize("optimizer", ["rmsprop", "adagrad", "l-bfgs"])
def test_two_matrices_learn_two_vocabularies(optimizer, monkeypatch):
    """Document words are the query words in another order, 7 of them missing."""
    # Twelve held-out queries are too few to tell it from chance.
    monkeypatch.setattr(
        "ssi_models.training.run.exceeds_noise", lambda values, start, errors=0: True
    )
    rng = np.random.default_rng(0)
    X = (rng.random((120, 16)) < 0.25) * 1.0
    X[:, 0] += X.sum(axis=1) == 0
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = X[:, rng.permutation(16)[:9]]
    every = np.arange(120)
    preferences = Preferences.from_pairs(every, every, n_queries=120, n_documents=120)
    options = {"max_epochs": 25, "batch_size": 32, "hold_out": "queries", "threads": 1}
    ours = S2Net(6, vocabularies="separate", optimizer=optimizer, **options).fit(
        sp.csr_matrix(X), sp.csr_matrix(Y), preferences
    )
    assert ours.A_q_.shape == (16, 6)
    assert ours.A_d_.shape == (9, 6)
    scores = ours.cache(sp.csr_matrix(Y)).scores(sp.csr_matrix(X))
    above = (scores > np.diag(scores)[:, None]).sum(axis=1)
    assert np.mean(above) < 15
    assert ours.training_loss_[1] < 0.7 * ours.training_loss_[0]


def test_rmsprop_is_that_of_its_slow_twin(monkeypatch):
    """Rates by a running mean per word of its examples' squared gradients; words that do not occur
    stay; the average of every second step."""
    monkeypatch.setattr(mini_batch, "SAMPLED", 2)
    rng = np.random.default_rng(4)
    X, start = rows(1, N), rng.standard_normal((WIDTH, RANK)).astype(np.float32)
    table = mini_batch.AveragedTable(start.copy(), 0.1)
    A, average, squares = start.astype(float), start.astype(float), np.zeros(WIDTH)
    space = TextMatrix(X)
    for step in range(1, 9):
        drawn = rng.permutation(N)[:5]
        G = rng.standard_normal((5, RANK)).astype(np.float32)
        with_words, weight = space.rows(drawn), table.next_weight()
        for share in range(3):
            table.step_share(with_words.by_term, G, row_squares(G), share, 3)
            table.average_own(weight, share, 3)
        with_words.close()
        x = X[drawn].toarray().astype(float)
        square = (x**2).T @ (G.astype(float) ** 2).mean(axis=1)
        occurs = square > 0
        mean = np.where(squares > 0, (squares + square) / 2, square)
        squares[occurs] = mean[occurs]
        A[occurs] += 0.1 * (x.T @ G)[occurs] / np.sqrt(squares[occurs])[:, None]
        if step % 2 == 0:
            average += 4 / (step // 2 + 3) * (A - average)
    np.testing.assert_allclose(table.values, A, atol=1e-5)
    np.testing.assert_allclose(table.accumulator, squares, rtol=1e-5)
    np.testing.assert_allclose(table.result, average, atol=1e-5)


def test_batches_of_little_data_are_small():
    """Eight steps or more per pass, whatever the batch size, and no epoch of several passes."""
    ours = model(batch_size=1024)
    with Workers(1) as workers:
        run = ours.make_run(ours._prepared(*data()), 0.1, workers)
        batches = list(run.batches(0))
    assert 8 <= len(batches) <= 9
    assert sum(len(batch.query) for batch in batches) == len(run.data.training)


def test_parts_of_a_pass_are_the_pass():
    """Epochs of about 30 pairs run through the passes, from any epoch on."""
    ours = model(pairs_per_epoch=30, shuffle="pairs")
    ours._start = None
    training = ours._prepared(*data())
    n = len(training.training)

    def visited(run, numbers):
        epochs = [list(run.batches(number)) for number in numbers]
        assert all(sum(len(b.query) for b in epoch) in range(30, 46) for epoch in epochs)
        return [
            pair
            for epoch in epochs
            for batch in epoch
            for pair in zip(batch.query, batch.positive, strict=True)
        ]

    with Workers(1) as workers:
        run, resumed = (ours.make_run(training, 0.1, workers) for _ in range(2))
        seen = visited(run, range(2 * n // 30))
        assert visited(resumed, [2, 3]) == visited(run, [2, 3])
    expected = zip(training.training.query, training.training.document, strict=True)
    assert sorted(seen[:n]) == sorted(expected)
    assert len(seen) > n
    assert seen[:n] != seen[n : 2 * n]


def test_warm_start_goes_on_from_the_fitted_matrix():
    Q, D, preferences = data()
    first = model().fit(Q, D, preferences)
    A = first.A_q_.copy()
    again = first.set_params(warm_start=True, max_epochs=0).fit(Q, D, preferences)
    np.testing.assert_array_equal(again.A_q_, A)


@pytest.mark.parametrize(
    ("optimizer", "symmetric", "rate"),
    [
        ("rmsprop", True, 0.1),
        ("rmsprop", False, 0.03),
        ("adagrad", True, "auto"),
        ("adagrad", False, 0.3),
        ("sgd", True, 0.3),
    ],
)
def test_pytorch_learns_the_same(optimizer, symmetric, rate, tmp_path):
    pytest.importorskip("torch", reason="PyTorch (the extra torch) is not installed")
    Q, D, preferences = data()
    params = {"optimizer": optimizer, "symmetric": symmetric, "learning_rate": rate}
    params |= {"max_epochs": 3, "patience": 9}
    kernels = model(**params).fit(Q, D, preferences)
    torch = model(**params, device="cpu").fit(Q, D, preferences, checkpoint=tmp_path / "state")
    assert kernels.learning_rate_ == torch.learning_rate_
    assert kernels.history_.best_epoch == torch.history_.best_epoch
    for name in ("A_q_", "A_d_"):
        np.testing.assert_allclose(getattr(torch, name), getattr(kernels, name), atol=2e-3)
    for a, b in zip(kernels.history_.epochs[1:], torch.history_.epochs[1:], strict=True):
        assert a.loss == pytest.approx(b.loss, rel=1e-4)


def test_unknown_devices_are_refused():
    pytest.importorskip("torch", reason="PyTorch (the extra torch) is not installed")
    with pytest.raises(ValueError, match="device 'abacus'"):
        model(device="abacus").fit(*data())


def test_missing_pytorch_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match="needs PyTorch, which is not installed; install"):
        model(device="cpu").fit(*data())


def test_texts_without_words_are_harmless():
    """Only empty queries, and documents whose words are in no other text."""
    Q = sp.csr_matrix((4, 6), dtype=np.float32)
    D = sp.csr_matrix(np.eye(4, 6, dtype=np.float32))
    preferences = Preferences.from_pairs(np.arange(4), np.arange(4), n_queries=4, n_documents=4)
    for optimizer in ("adagrad", "l-bfgs"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours = S2Net(2, optimizer=optimizer, max_epochs=3, threads=1).fit(Q, D, preferences)
        assert (ours.score(Q, D, np.arange(4), np.arange(4)) == 0).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"negatives_per_pair": 0}, "negatives_per_pair must be 1 or more"),
        ({"pairs_per_epoch": 0}, "pairs_per_epoch must be 1 or more"),
        ({"margin": 0.01}, "margin must be 0.025 or more, got 0.01"),
        ({"validation_measure": "loss"}, "margin='auto' is chosen by how queries are ranked"),
        ({"device": "cpu", "optimizer": "l-bfgs"}, "device: l-bfgs runs on the host"),
        ({"loss": "margin"}, "loss 'margin' is unknown"),
        ({"vocabularies": "none"}, "vocabularies 'none' is unknown"),
        ({"validation_measure": "ndcg"}, "validation_measure 'ndcg' is unknown"),
    ],
)
def test_bad_parameters_are_refused_by_name(params, message):
    with pytest.raises(ValueError, match=message):
        model(**params).fit(*data())
