"""Synthetic query-title pairs for tests of matching models."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


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
