"""Steps of every scorer against gradients by finite differences of the papers' formulas."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import ssi_twins as twins

from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch
from ssi_models.training.diagonal import Diagonal, DiagonalScorer, Identity
from ssi_models.training.embedding_table import EmbeddingTable
from ssi_models.training.pair_weights import PairWeights, PairWeightScorer
from ssi_models.training.towers import Polynomial, SeparatePolynomial, TowerScorer

V, N, RATE, START = 11, 3, 0.01, 0.05
KINDS = [
    "UV+I", "UU+I", "UV+D", "UV", "D", "W", "hash", "hash 5", "psi3", "psi4", "psi3 separate",
]  # fmt: skip


class Case:
    """A small batch, parameters of a kind, and the scorer that holds a copy of them."""

    def __init__(self, kind, workers, start=None, words=None):
        rng = np.random.default_rng(3)
        self.kind = kind.split(" 5")[0]
        self.Q = twins.unit_rows(rng, 6, V, empty=[2])
        self.D = twins.unit_rows(rng, 9, V, empty=[4])
        self.batch = Batch(
            np.array([0, 1, 2, 3, 0]),
            np.array([1, 3, 5, 4, 7]),
            np.ones(5, np.float32),
            np.array([8, 0, 4, 1]),
            own=np.array([[2, 6], [8, -1], [6, 6], [-1, -1], [2, 6]]),
            own_pool=np.full(5, 3),
        )
        shared = np.broadcast_to(self.batch.negatives, (5, 4))
        self.negatives = np.hstack([shared, self.batch.own])
        self.A = rng.random((5, 6), np.float32) * (rng.random((5, 6)) < 0.8)
        self.A[self.negatives < 0] = 0
        shapes = {
            "U": (V, 2 * N if "separate" in kind else N),
            "V": (V, N),
            "D": (V,),
            "W": (V, V),
            "w": (5 if kind == "hash 5" else 40,),
            **{f"V{i}": (V, N) for i in range(3)},
        }
        names = {
            "UU+I": "U", "UV+D": "U V D", "D": "D", "W": "W", "hash": "w", "psi3": "U V0 V1",
            "psi4": "U V0 V1 V2", "psi3 separate": "U V0 V1 V2",
        }.get(self.kind, "U V")  # fmt: skip
        self.theta = {n: rng.normal(size=shapes[n]).astype(np.float32) for n in names.split()}
        self.start = start
        self.scorer = self._scorer(workers)

    def _scorer(self, workers):
        Q, D = (check_csr("X", sp.csr_matrix(X)) for X in (self.Q, self.D))
        copies = {name: values.copy() for name, values in self.theta.items()}
        if self.kind == "W":
            weights = PairWeights((copies["W"] - np.eye(V, dtype=np.float32)).ravel(), V, RATE,
                                  self.start)  # fmt: skip
            return PairWeightScorer(Q, D, weights, Identity(), workers)
        if self.kind == "hash":
            return PairWeightScorer(
                Q, D, PairWeights(copies["w"], 97, RATE, self.start), None, workers
            )
        if self.kind == "D":
            return DiagonalScorer(Q, D, Diagonal(copies["D"], RATE, self.start), workers)
        tables = {n: EmbeddingTable(x, RATE, self.start) for n, x in copies.items() if n != "D"}
        diagonal = None if self.kind == "UV" else Identity()
        if self.kind == "UV+D":
            diagonal = Diagonal(copies["D"], RATE, self.start)
        documents = [(n, t) for n, t in tables.items() if n != "U"] or [("U", tables["U"])]
        polynomial = SeparatePolynomial() if "separate" in self.kind else Polynomial()
        return TowerScorer(
            Q, D, ("U", tables["U"]), documents, diagonal, workers, polynomial=polynomial
        )

    def double(self):
        """The parameters in float64, with what the twin needs besides."""
        theta = {name: values.astype(np.float64) for name, values in self.theta.items()}
        return theta | {"P": 97}

    def after(self):
        """The scorer's parameters, by the twin's names."""
        now = {k: v.copy() for k, v in self.scorer.parameters().items()}
        if self.kind == "W":
            return {"W": now["w"].reshape(V, V) + np.eye(V)}
        if "diagonal" in now:
            now["D"] = now.pop("diagonal")
        return now


@pytest.fixture
def workers():
    with Workers(2) as workers:
        yield workers


@pytest.mark.parametrize("kind", KINDS)
def test_batch_scores_are_the_papers(kind, workers):
    case = Case(kind, workers)
    positive, negative = case.scorer.scores(case.batch)
    theta = case.double()
    for b, q in enumerate(case.batch.query):
        used = case.negatives[b] >= 0
        expected = [
            twins.score(case.kind, theta, case.Q[q], case.D[d])
            for d in (case.batch.positive[b], *case.negatives[b][used])
        ]
        found = [positive[b], *negative[b][used]]
        np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_validation_matrices_are_the_papers(kind, workers):
    case = Case(kind, workers)
    queries, documents = np.array([3, 2, 0]), np.array([0, 4, 7, 8])
    parts = (
        case.scorer.diagonal_scores(queries, documents),
        case.scorer.learned_scores(queries, documents),
    )
    total = sum(part for part in parts if part is not None)
    theta = case.double()
    expected = [
        [twins.score(case.kind, theta, case.Q[q], case.D[d]) for d in documents] for q in queries
    ]
    np.testing.assert_allclose(total, expected, atol=2e-5, rtol=1e-5)


def gradients(case):
    theta, batch = case.double(), case.batch

    def climbed():
        return twins.objective(
            case.kind, theta, case.Q.astype(float), case.D.astype(float), batch.query,
            batch.positive, case.negatives, case.A,
        )  # fmt: skip

    return {n: twins.difference_gradient(climbed, theta[n]) for n in case.theta}


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_rate_step_follows_the_gradient(kind, workers):
    case = Case(kind, workers)
    case.scorer.scores(case.batch)
    case.scorer.step(case.A)
    for name, gradient in gradients(case).items():
        moved = (case.after()[name].astype(np.float64) - case.theta[name]) / RATE
        np.testing.assert_allclose(moved, gradient, atol=2e-4, rtol=2e-4, err_msg=name)
        assert np.abs(gradient).max() > 0.01


def test_adagrad_step_of_a_diagonal(workers):
    case = Case("D", workers, START)
    case.scorer.scores(case.batch)
    case.scorer.step(case.A)
    gradient = gradients(case)["D"]
    moved = (case.after()["D"].astype(np.float64) - case.theta["D"]) / RATE
    np.testing.assert_allclose(moved, gradient / np.sqrt(START + gradient**2), atol=3e-4, rtol=3e-4)


UVS = ("U", "V", "V0", "V1", "V2")
TOWERS = ["UV+I", "UU+I", "UV+D", "UV", "psi3", "psi4", "psi3 separate"]


def gradients_by_text(case):
    """(G_query [u, N], {table: G_documents [n, N]}): how each text's embeddings should move, by
    differences; the twin's words are the texts, and their embeddings its tables."""
    texts, theta = case.batch.texts, case.double()
    Q, D = case.Q[texts.queries].astype(float), case.D[texts.documents].astype(float)
    u, n = len(Q), len(D)
    tables = {
        name: np.vstack([Q @ values, D @ values]) for name, values in theta.items() if name in UVS
    }
    one_hot = np.eye(u + n)
    kind = "UV" if case.kind == "UV+D" else case.kind

    shared = np.broadcast_to(np.arange(texts.n_negatives), (5, texts.n_negatives))
    places = np.hstack([shared, texts.pair_document[5:].reshape(5, 2)])

    def climbed():
        return twins.objective(
            kind, tables, one_hot[:u], one_hot[u:], texts.query_of, texts.positive_of, places,
            case.A,
        )  # fmt: skip

    G = {name: twins.difference_gradient(climbed, values) for name, values in tables.items()}
    names = [name for name in G if name != "U"] or ["U"]
    return Q, G["U"][:u], D, {name: G[name][u:] for name in names}


@pytest.mark.parametrize("kind", TOWERS)
def test_adagrad_step_of_embeddings_is_the_twins(kind, workers):
    """a_j += sum_x x_j^2 |G_x|^2 / N over the distinct texts x of the batch, g_j / sqrt(a_j);
    queries first."""
    case = Case(kind, workers, START)
    case.scorer.scores(case.batch)
    case.scorer.step(case.A)
    Q, G_query, D, G_documents = gradients_by_text(case)
    expected = {n: v.astype(float) for n, v in case.theta.items() if n in UVS}
    squares = {n: np.full(V, START) for n in expected}
    for name, X, G in [("U", Q, G_query), *((n, D, G) for n, G in G_documents.items())]:
        squares[name] += (X**2).T @ (G**2).mean(axis=1)
        expected[name] += RATE * (X.T @ G) / np.sqrt(squares[name])[:, None]
    for name, values in expected.items():
        np.testing.assert_allclose(case.after()[name], values, atol=1e-5, rtol=1e-5)
        assert np.abs(values - case.theta[name]).max() > 1e-3


def test_adagrad_step_of_pair_weights_is_the_twins(workers):
    case = Case("hash 5", workers, START)
    case.scorer.scores(case.batch)
    case.scorer.step(case.A)
    w, a = case.theta["w"].astype(np.float64), np.full(5, START)
    for q in np.unique(case.batch.query):
        R = np.zeros(V)
        for b in np.flatnonzero(case.batch.query == q):
            R += case.A[b].sum() * case.D[case.batch.positive[b]]
            R -= case.A[b] @ case.D[case.negatives[b]]
        for s in np.flatnonzero(case.Q[q]):
            for t in sorted(range(V), key=lambda t: (((s * 97 + t) % 5), t)):
                h, g = (s * 97 + t) % 5, case.Q[q, s] * R[t]
                a[h] += g * g
                w[h] += RATE * g / np.sqrt(a[h])
    np.testing.assert_allclose(case.after()["w"], w, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("start", [None, START])
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_threads_gives_the_same_bytes(kind, start):
    states = []
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            case = Case(kind, workers, start)
            for _ in range(2):
                case.scorer.scores(case.batch)
                case.scorer.step(case.A)
            states.append({k: v.tobytes() for k, v in case.scorer.state().items()})
    assert states[0] == states[1] == states[2]


def test_scores_without_a_step_leave_no_trace(workers):
    twice, once = Case("UV+D", workers), Case("UV+D", workers)
    twice.scorer.scores(twice.batch)
    for case in (twice, once):
        case.scorer.scores(case.batch)
        case.scorer.step(case.A)
    assert all((a == once.after()[n]).all() for n, a in twice.after().items())


def test_dropout_trains_on_texts_without_some_words(workers):
    """The step is that of the thinned texts; what is left out depends on the batch's number."""
    case = Case("UV+I", workers)
    case.scorer.dropout, case.scorer.seed = 0.5, 3
    positive, negative = case.scorer.scores(case.batch)
    opened = case.scorer._open
    Q, D = (rows.space.X.toarray() for rows in opened)
    texts = case.batch.texts
    for thinned, whole in ((Q, case.Q[texts.queries]), (D, case.D[texts.documents])):
        np.testing.assert_array_equal(thinned, np.where(thinned > 0, 2 * whole, 0))
        assert 0 < (thinned > 0).sum() < (whole > 0).sum()
    theta = case.double()
    for b, (i, j) in enumerate(zip(texts.query_of, texts.positive_of, strict=True)):
        expected = [twins.score("UV+I", theta, Q[i], D[k]) for k in (j, *range(4))]
        np.testing.assert_allclose([positive[b], *negative[b, :4]], expected, atol=2e-5, rtol=1e-5)
    again = case.scorer.scores(case.batch)[1]
    np.testing.assert_array_equal(again, negative)
    other = case.scorer.scores(replace(case.batch, number=(0, 1)))[1]
    assert not np.array_equal(other, negative)
