"""Synthetic texts and pairs, and a callback that kills fits, for tests of matching models."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ssi_models.parallel import Workers
from ssi_models.ssi.low_rank import LowRankSSI
from ssi_models.training.preferences import Preferences


def planted_pairs(n=400, n_topics=4, words=10, seed=0):
    """Queries use words 0..W-1 and titles words W..2W-1, W = n_topics * words; topic z owns a run
    of ``words`` on each side. Returns Q, D (CSR counts [n, 2W]) and the topics int64 [n]."""
    rng = np.random.default_rng(seed)
    width = n_topics * words
    topics = rng.integers(0, n_topics, n)
    Q, D = np.zeros((n, 2 * width)), np.zeros((n, 2 * width))
    for i, z in enumerate(topics):
        np.add.at(Q[i], z * words + rng.integers(0, words, rng.integers(2, 5)), 1)
        np.add.at(D[i], width + z * words + rng.integers(0, words, rng.integers(4, 9)), 1)
    return sp.csr_matrix(Q), sp.csr_matrix(D), topics


def random_pairs(n=50, V=24, n_topics=4, seed=0):
    """Dense counts Q, D [n, V] of pairs with shared random topics, in which every word occurs on
    both sides and no side is empty."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_topics, 0.3), n)
    sides = []
    for low, high in ((1, 6), (3, 14)):
        phi = rng.dirichlet(np.full(V, 0.3), n_topics)
        X = np.array([rng.multinomial(rng.integers(low, high), t @ phi) for t in theta], float)
        X[np.arange(V) % n, np.arange(V)] += 1
        sides.append(X)
    return sides[0], sides[1]


def sparse_texts(seed, kind, n, width, *, empty, columns=None):
    """float32 [n, width or more], one row of them empty: unit rows or, for a ``kind`` of models
    that learn from them, counts. Words lie in the given columns, the first ones by default."""
    rng = np.random.default_rng(seed)
    if kind.inputs == "counts":
        X = rng.poisson(0.3, (n, width)).astype(float)
    else:
        X = rng.random((n, width)) * (rng.random((n, width)) < 0.25)
    X[empty] = 0
    if kind.inputs != "counts":
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    rows, used = np.nonzero(X)
    where = np.arange(width) if columns is None else columns
    return sp.csr_matrix((X[rows, used], (rows, where[used])), (n, where[-1] + 1), dtype=np.float32)


# Settings that keep the tests short, given to the models that know them.
_QUICK = {
    "rank": 4, "batch_size": 32, "n_negatives": 16, "max_epochs": 4, "n_buckets": 700,
    "n_features": 20, "n_weights": 6, "n_topics": 4, "iterations": 4, "threads": 1,
}  # fmt: skip


def maker(kind, options):
    """Makes fresh models of a kind with the options, and with what it knows of further ones."""
    known = kind().get_params()

    def make(**more):
        quick, wanted = (
            {key: value for key, value in given.items() if key in known} for given in (_QUICK, more)
        )
        return kind(**{**quick, **options, **wanted})

    make.kind = kind
    return make


def random_labels(n, seed=2):
    """About 200 relevant pairs of n queries and n documents."""
    pairs = np.unique(np.random.default_rng(seed).integers(n, size=(200, 2)), axis=0)
    return Preferences.from_pairs(*pairs.T, n_queries=n, n_documents=n)


def topic_texts(n=60, width=30, seed=0):
    """Q, D and preferences: queries of the words of a topic, whose relevant documents, half of
    which are known, use other words of it."""
    rng = np.random.default_rng(seed)
    topic = np.arange(n) % 5
    Q, D = np.zeros((n, width), np.float32), np.zeros((n, width), np.float32)
    for i in range(n):
        Q[i, topic[i] * 3 + rng.integers(3, size=2)] = 1
        D[i, 15 + topic[i] * 3 + rng.integers(3, size=2)] = 1
        D[i, rng.integers(15)] += 0.5
    Q, D = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (Q, D))
    query, document = np.nonzero(topic[:, None] == topic[None, :])
    chosen = rng.random(len(query)) < 0.5
    pairs = Preferences.from_pairs(query[chosen], document[chosen], n_queries=n, n_documents=n)
    return sp.csr_matrix(Q), sp.csr_matrix(D), pairs


def paired(n):
    """Query i and document i."""
    return Preferences.from_pairs(np.arange(n), np.arange(n), n_queries=n, n_documents=n)


def run_of_one_epoch(model, Q, D, pairs):
    """The training run of a model after its first epoch (no early stopping)."""
    with Workers(1) as workers:
        run = model.make_run(model._prepared(Q, D, pairs), model.training.rates[0], workers)
        for batch in run.batches(0):
            run.step(batch)
    return run


def killing(number):
    """A callback that kills a fit after its epoch or iteration of that number."""

    def kill(line):
        if line.number == number:
            raise KeyboardInterrupt

    return kill


def quick_ssi(**more):
    """A small model with the settings of the SSI papers, but for those given."""
    quick = {"rank": 6, "batch_size": 32, "n_negatives": 20, "max_epochs": 8, "threads": 1}
    paper = {"init": "identity", "margin": 1.0, "scales": (1.0,), "hold_out": "queries"}
    return LowRankSSI(**{**quick, **paper, **more})


def bytes_of(fitted):
    """The bytes of all arrays that a model has learned."""
    return b"".join(getattr(fitted, f"{name}_").tobytes() for name in fitted.tensors)
