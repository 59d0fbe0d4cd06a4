"""PLSA, BLTM, BLTM-PR and BLTM-PR-1V: EM against its slow twin, and the models' promises."""

import errno
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import scipy.sparse as sp
import topic_em
from pair_data import killing, paired, planted_pairs, random_pairs

from ssi_models.kernels.expectation import Texts, project_pairs, sum_logs, tilt
from ssi_models.matrices import arrays, check_csr
from ssi_models.parallel import Workers
from ssi_models.topics import em
from ssi_models.topics.bilingual import BLTM, BLTMPR, BLTMPR1V, PLSA
from ssi_models.topics.em import Blocks, EStep, PosteriorConstraint, Prior, iterate
from ssi_models.topics.state import State

MODELS = [PLSA, BLTM, BLTMPR, BLTMPR1V]
K = 4


def fitted(model, data, **options):
    Q, D = data[:2]
    return model(**{"n_topics": K, "threads": 2, **options}).fit(Q, D, paired(Q.shape[0]))


_HISTORIES = """
import numpy as np, scipy.sparse as sp
from ssi_models import BLTMPR, Preferences
n = 8
pairs = Preferences.from_pairs(np.arange(n), np.arange(n), n_queries=n, n_documents=n)
for seed in range(20):
    rng = np.random.default_rng(seed)
    Q, D = (sp.csr_matrix(rng.poisson(rate, (n, 60))) for rate in (0.1, 0.5))
    model = BLTMPR(n_topics=8, iterations=6, lambda2=0.5, threads=1).fit(Q, D, pairs)
    print([line.objective for line in model.history_])
"""


def test_code_that_was_just_compiled_gives_the_digits_of_code_compiled_earlier(tmp_path):
    def fit():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", _HISTORIES]
        return subprocess.run(command, env=environment, capture_output=True, check=True).stdout

    assert fit() == fit()


@pytest.fixture(scope="module")
def planted():
    return planted_pairs()


def start_of(n, V, shared, seed):
    rng = np.random.default_rng(seed)
    theta, phi_q, phi_d = rng.random((n, K)) + 1, rng.random((V, K)) + 1, rng.random((V, K)) + 1
    theta /= theta.sum(axis=1, keepdims=True)
    phi_q, phi_d = phi_q / phi_q.sum(axis=0), phi_d / phi_d.sum(axis=0)
    return theta, phi_q, phi_q if shared else phi_d


@pytest.mark.parametrize("regularised", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_em_gives_the_numbers_of_its_slow_twin(shared, regularised):
    Q, D = random_pairs(n=30, seed=1)
    n, V = Q.shape
    theta, phi_q, phi_d = start_of(n, V, shared, 2)
    ours_q = phi_q.astype(np.float32)
    ours_d = ours_q if shared else phi_d.astype(np.float32)
    multiplier = np.zeros((n, K if regularised else 0), np.float32)
    state = State(theta.astype(np.float32), ours_q, ours_d, multiplier)
    constraint = PosteriorConstraint() if regularised else None
    rows = np.arange(n)
    with Workers(1) as workers:
        pairs = Blocks(*[check_csr("X", sp.csr_matrix(X)) for X in (Q, D)], rows, rows)
        prior = Prior(1.1, 1.01, constraint)
        e_step = EStep(pairs, state, prior, workers)
        for number in range(4):
            expected, theta, phi_q, phi_d = topic_em.iterate(
                Q, D, theta, phi_q, phi_d, 1.1, 1.01, regularised, shared
            )
            found = e_step.shards(number)
            line = iterate(found, state, prior, state.zeros(), workers, number)
            assert line.objective == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(state.theta, theta, atol=2e-5)
    np.testing.assert_allclose(state.phi_q, phi_q, atol=2e-5)
    np.testing.assert_allclose(state.phi_d, phi_d, atol=2e-5)


@pytest.mark.parametrize("model", MODELS)
def test_em_climbs_its_objective(model, planted):
    history = fitted(model, planted, iterations=25).history_
    objective = np.array([line.objective for line in history])
    assert len(objective) == 25
    assert np.diff(objective).min() > -1e-6 * abs(objective[-1])
    assert objective[-1] > objective[0]


def projectable(X, phi):
    """Texts for the kernels."""
    theta = np.empty((X.shape[0], K), np.float32)
    return Texts(*arrays(X), phi.astype(np.float32, "C"), theta, np.empty(X.nnz, np.float32))


@pytest.mark.parametrize("concentration", [0.05, 1.0])
def test_projected_posteriors_have_equal_fractions(concentration):
    """Checked in float64 from the multipliers; sharp posteriors are the hard case."""
    rng = np.random.default_rng(0)
    Q, D = random_pairs(n=300, V=60, seed=3)
    n, V = Q.shape
    phi_q, phi_d = (
        np.maximum(rng.dirichlet(np.full(V, concentration), K).T, 1e-4).astype(np.float32, "C")
        for _ in "qd"
    )
    theta = np.maximum(rng.dirichlet(np.full(K, 0.5), n), 0.01).astype(np.float32)
    sides = [check_csr("X", sp.csr_matrix(X)) for X in (Q, D)]
    multiplier = np.zeros((n, K), np.float32)
    value, evaluations = np.empty(n), np.zeros(n, np.int32)
    given = projectable(sides[0], phi_q), projectable(sides[1], phi_d), theta.copy(), 0.1
    project_pairs(*given, multiplier, 5e-7, 500, value, evaluations, 0, n)
    u, v = given[0].theta, given[1].theta
    assert evaluations.max() < 500
    for i in range(n):
        fractions = []
        for X, phi, tilted in ((Q, phi_q, u), (D, phi_d, v)):
            R = phi.astype(float) * tilted[i].astype(float)
            R /= R.sum(axis=1, keepdims=True)
            fractions.append(X[i] @ R / X[i].sum())
        assert np.abs(fractions[0] - fractions[1]).max() < 1e-6


def test_projection_is_the_closest_one():
    rng = np.random.default_rng(5)
    Q, D = random_pairs(n=20, V=12, seed=6)
    phi_q, phi_d = rng.dirichlet(np.ones(12), (2, K)).transpose(0, 2, 1)
    theta = rng.dirichlet(np.ones(K), len(Q))
    sides = [check_csr("X", sp.csr_matrix(X)) for X in (Q, D)]
    given = [projectable(X, phi) for X, phi in zip(sides, (phi_q, phi_d), strict=True)]
    project_pairs(
        *given, theta.astype(np.float32), 0.1, np.zeros(theta.shape, np.float32), 5e-7, 500,
        np.empty(len(Q)), np.zeros(len(Q), np.int32), 0, len(Q),
    )  # fmt: skip
    u, v = given[0].theta, given[1].theta
    for i in range(len(Q)):
        q, d = np.flatnonzero(Q[i]), np.flatnonzero(D[i])
        P = [topic_em.posterior(theta[i : i + 1], p)[0] for p in (phi_q, phi_d)]
        expected = topic_em.project(P[0][q], Q[i, q], P[1][d], D[i, d])
        for phi, tilted, words, right in ((phi_q, u, q, expected[0]), (phi_d, v, d, expected[1])):
            ours = topic_em.posterior(tilted[i : i + 1].astype(float), phi)[0, words]
            np.testing.assert_allclose(ours, right, atol=1e-5)


def test_tilting_and_logarithms_equal_those_of_numpy():
    rng = np.random.default_rng(0)
    theta, lam = rng.random(37, np.float32), rng.normal(0, 8, 37).astype(np.float32)
    u, v = np.empty((2, 37), np.float32)
    a, b = tilt(theta, lam, np.float32(0.5), np.float32(0.25), u, v)
    np.testing.assert_allclose(u * np.exp(a), theta * np.exp(-0.5 * lam.astype(float)), rtol=2e-6)
    np.testing.assert_allclose(v * np.exp(b), theta * np.exp(0.25 * lam.astype(float)), rtol=2e-6)
    assert max(u.max(), v.max()) <= 1
    X = (rng.random((50, 37), np.float32) ** 12 + np.float32(1e-25)).astype(np.float32)
    X[7] = 0
    sums = np.empty(50)
    sum_logs(X, sums, 0, 50)
    with np.errstate(divide="ignore"):
        expected = np.log(X.astype(float)).sum(axis=1)
    expected[7] = 0
    np.testing.assert_allclose(sums, expected, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_planted_topics_are_found(model, planted):
    """The symmetric start is left, and each topic's best title words are one planted topic's."""
    found = fitted(model, planted, n_topics=6, iterations=60)
    purity = []
    for topic in found.explain(5):
        owners = [(row - 40) // 10 for row, _ in topic["title"]]
        purity.append(max(np.bincount(np.clip(owners, 0, 9))) / 5)
        if model in (BLTM, BLTMPR):
            assert len({row // 10 for row, _ in topic["query"]} | set(owners)) <= 2
    assert np.mean(purity) > 0.85
    topics = found.document_topics(planted[1]).argmax(axis=1)
    agreement = sum(np.bincount(planted[2][topics == z]).max() for z in np.unique(topics))
    assert agreement / len(topics) > 0.9


def test_topics_are_explained_by_the_likeliest_words_of_each_side(planted):
    found = fitted(BLTM, planted, n_topics=3, iterations=5)
    for z, topic in enumerate(found.explain(4)):
        for side, phi in (("query", found.phi_q_), ("title", found.phi_d_)):
            assert [p for _, p in topic[side]] == sorted(phi[:, z].tolist(), reverse=True)[:4]
            assert all(phi[row, z] == p for row, p in topic[side])


def test_folding_in_reproduces_the_topics_of_training():
    """PLSA trains on titles alone, so at convergence a title folds in to its own theta."""
    data = planted_pairs(n=120, seed=3)
    model = fitted(PLSA, data, iterations=400, fold_in_iterations=400)
    np.testing.assert_allclose(model.document_topics(data[1]), model.theta_, atol=2e-3)


def test_topics_of_a_title_do_not_depend_on_the_other_titles(planted):
    model, D = fitted(BLTM, planted, iterations=5), planted[1]
    every = model.document_topics(D)
    np.testing.assert_array_equal(every[17:19], model.document_topics(D[17:19]))
    np.testing.assert_allclose(every.sum(axis=1), 1, rtol=1e-5)


def test_score_is_the_log_likelihood_of_the_mixture(planted):
    Q, D, _ = planted
    model = fitted(BLTM, planted, iterations=8, lambda1=0.3, lambda2=0.25)
    q, d = np.array([0, 1, 2, 2]), np.array([0, 5, 7, 9])
    theta = model.document_topics(D).astype(float)
    occurrences = np.asarray(D.sum(axis=0)).ravel() + 0.5
    for i, score in enumerate(model.score(Q, D, q, d)):
        counts, title = Q[q[i]].toarray()[0], D[d[i]].toarray()[0]
        own = 0.25 * title / title.sum() + 0.75 * model.phi_q_.astype(float) @ theta[d[i]]
        p = 0.3 * occurrences / occurrences.sum() + 0.7 * own
        used = counts > 0
        assert score == pytest.approx(
            (counts[used] * np.log(p[used])).sum() / counts.sum(), rel=1e-5
        )


def test_the_size_of_blocks_hardly_matters(planted, monkeypatch):
    whole = fitted(BLTMPR, planted, iterations=5)
    monkeypatch.setattr(em, "BLOCK", 37)
    parts = fitted(BLTMPR, planted, iterations=5)
    np.testing.assert_allclose(parts.phi_q_, whole.phi_q_, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_one_and_two_threads_give_equal_bytes(model, monkeypatch):
    monkeypatch.setattr(em, "BLOCK", 1000)
    rng = np.random.default_rng(0)
    Q, D = (sp.random(3500, 400, 0.01, format="csr", rng=rng) for _ in "qd")
    for X in (Q, D):
        X.data[:] = 1
    data = Q, D
    one = fitted(model, data, iterations=3, threads=1)
    two = fitted(model, data, iterations=3, threads=2)
    for name in ("phi_q_", "phi_d_", "theta_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.history_ == two.history_


@pytest.mark.parametrize("model", MODELS)
def test_pairs_on_disk_give_equal_bytes_and_leave_no_file(model, planted, monkeypatch, tmp_path):
    monkeypatch.setattr(em, "BLOCK", 37)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    inside = fitted(model, planted, iterations=3)
    outside = fitted(model, planted, iterations=3, memory_limit=0)
    for name in ("phi_q_", "phi_d_", "theta_"):
        np.testing.assert_array_equal(getattr(outside, name), getattr(inside, name))
    assert outside.history_ == inside.history_
    assert not list(tmp_path.iterdir())


def test_no_room_for_the_pairs_is_said_before_training(planted, monkeypatch):
    def full(descriptor, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match="raise memory_limit"):
        fitted(BLTM, planted, memory_limit=0)


@pytest.mark.parametrize("model", [BLTM, BLTMPR1V])
@pytest.mark.parametrize("memory_limit", [2, 0])
def test_killed_run_resumes_to_the_same_parameters(model, memory_limit, planted, tmp_path):
    Q, D, _ = planted
    pairs, path = paired(Q.shape[0]), tmp_path / "checkpoint"
    whole = fitted(model, planted, iterations=6)

    options = {"n_topics": K, "iterations": 6, "memory_limit": memory_limit, "lambda2": 0.5}
    fresh = model(**options)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(Q, D, pairs, checkpoint=path, callback=killing(4))
    seen = []
    resumed = model(**options)
    resumed.fit(Q, D, pairs, checkpoint=path, callback=lambda line: seen.append(line.number))
    assert seen == [5, 6]
    assert not path.exists()
    np.testing.assert_array_equal(resumed.phi_q_, whole.phi_q_)
    np.testing.assert_array_equal(resumed.theta_, whole.theta_)
    assert resumed.history_ == whole.history_


def test_warm_start_goes_on_from_the_fitted_words(planted):
    Q, D, _ = planted
    model = fitted(BLTM, planted, iterations=20, warm_start=True)
    cold = model.history_[0].objective
    model.fit(Q, D, paired(Q.shape[0]))
    assert model.history_[0].objective > cold


@pytest.mark.parametrize("model", [BLTM, BLTMPR1V])
def test_online_em_learns_from_a_stream(model, monkeypatch):
    """In two parts and several passes it comes near what batch EM reaches."""
    monkeypatch.setattr(em, "BLOCK", 1000)
    Q, D, topics = planted_pairs(n=9000, seed=4)
    stream = model(n_topics=K, threads=2)
    for _ in range(6):
        for part in (slice(0, 4500), slice(4500, 9000)):
            stream.partial_fit(Q[part], D[part], paired(4500))
    found = stream.document_topics(D).argmax(axis=1)
    agreement = sum(np.bincount(topics[found == z]).max() for z in np.unique(found))
    assert agreement / len(topics) > 0.95
    assert np.isfinite(stream.score(Q, D, [0, 1], [0, 2])).all()


@pytest.mark.parametrize("model", [BLTM, BLTMPR1V])
def test_a_stream_goes_on_in_a_new_process(model, planted, tmp_path):
    Q, D, _ = planted
    n, path = Q.shape[0] // 2, tmp_path / "stream"
    parts = [(X[:n], Y[:n]) if i == 0 else (X[n:], Y[n:]) for i, (X, Y) in enumerate([(Q, D)] * 2)]
    whole = model(n_topics=K)
    for X, Y in parts:
        whole.partial_fit(X, Y, paired(X.shape[0]))
        model(n_topics=K).partial_fit(X, Y, paired(X.shape[0]), checkpoint=path)
    resumed = model(n_topics=K)
    resumed.partial_fit(*parts[0], paired(n), checkpoint=path)
    whole.partial_fit(*parts[0], paired(n))
    for name in ("phi_q_", "phi_d_", "background_"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    assert resumed.history_ == whole.history_
    with pytest.raises(ValueError, match="the checkpoint of another stream"):
        model(n_topics=K, alpha=1.5).partial_fit(*parts[0], paired(n), checkpoint=path)
    # A fit starts anew.
    resumed.fit(Q, D, paired(Q.shape[0])).partial_fit(*parts[0], paired(n))
    assert len(resumed.history_) == 1


def test_pairs_with_an_empty_side_are_left_out(planted):
    Q, D, _ = planted
    Q = sp.diags((np.arange(Q.shape[0]) != 3).astype(float)) @ Q
    model = fitted(BLTMPR, (Q, D), iterations=2)
    assert model.n_left_out_ == 1
    assert 3 not in model.pairs_[:, 0]
    # An empty title keeps uniform topics, and a query without words scores 0.
    empty = sp.csr_matrix((1, D.shape[1]))
    np.testing.assert_allclose(model.document_topics(empty), 1 / K)
    assert model.score(Q, D, [3], [0])[0] == 0


def test_unseen_query_words_leave_only_the_collection(planted):
    Q, D, _ = planted
    model = fitted(BLTM, planted, iterations=3, lambda1=0.5, lambda2=0.0)
    title_word = D[0].indices[0]
    asked = sp.csr_matrix(([1.0], ([0], [title_word])), shape=(1, Q.shape[1]))
    expected = np.log(0.5 * model.background_[title_word])
    assert model.score(asked, D, [0], [0])[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_topics": 0}, "n_topics must be 1"),
        ({"alpha": 0.5}, "alpha must be 1"),
        ({"beta": np.nan}, "beta must be a number, got nan"),
        ({"jitter": 0}, "jitter must be positive"),
        ({"lambda1": 1.5}, "lambda1 must be in 0..1"),
        ({"iterations": -1}, "iterations must be 0"),
        ({"step_power": 0.5}, "step_power"),
        ({"memory_limit": -1}, "memory_limit must be 0"),
        ({"tolerance": 0}, "tolerance"),
        ({"max_evaluations": 0}, "max_evaluations"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(options, message, planted):
    with pytest.raises(ValueError, match=message):
        fitted(BLTMPR, planted, **options)


def test_topics_are_learned_from_pairs_and_told_by_a_fitted_model(planted):
    Q, D, _ = planted
    model = BLTM(n_topics=K)
    with pytest.raises(ValueError, match="learns from pairs"):
        model.fit(Q, D)
    with pytest.raises(ValueError, match="not fitted"):
        model.document_topics(D)


def test_there_are_no_more_topics_than_there_is_to_learn_from(planted, tmp_path):
    Q, D, _ = planted
    n = Q.shape[0]
    few = sp.csr_matrix((np.ones(n), (np.arange(n), np.arange(n) % 3)), shape=Q.shape)
    model = BLTM(n_topics=K, lambda2=0.5).fit(few, D, paired(n))
    assert model.n_topics_ == 3 < K
    assert model.phi_d_.shape[1] == 3
    assert any("has 3 topics instead of 4" in remark for remark in model.remarks)
    model.save(tmp_path / "model")
    assert BLTM.load(tmp_path / "model").remarks == model.remarks
