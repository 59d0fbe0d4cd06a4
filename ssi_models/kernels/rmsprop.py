"""Kernels of the optimisers by word of S2Net, and of the average of its parameters.

Of several threads each takes the words whose number leaves its own number when divided by theirs:
the words of queries and of documents of one table are then the same thread's.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from ssi_models.kernels.sparse import _sum_rows


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def row_squares(G):
    """float64 [B], |G_b|^2 / N."""
    squares = np.empty(len(G))
    for b in range(len(G)):
        total = 0.0
        for k in range(G.shape[1]):
            total += np.float64(G[b, k]) * np.float64(G[b, k])
        squares[b] = total / G.shape[1]
    return squares


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def ascend_own_words(
    words, starts, owner, value, G, squares, M, accumulator, learning_rate, adaptive, kept, added,
    share, n_shares,
):  # fmt: skip
    """Gradient ascent of sum_b (M' x_b) . G_b for the words of one thread.

    As ``ssi_models.kernels.sparse.ascend_words``, but a word's accumulator becomes a_j = kept a_j +
    added sum_b x_bj^2 |G_b|^2 / N, and where it was 0 that sum itself: 1 and 1 are AdaGrad, other
    numbers whose sum is 1 are RMSProp.
    """
    g = np.empty(M.shape[1], np.float32)
    for s in range(len(words)):
        j = words[s]
        if j % n_shares != share:
            continue
        square = 0.0
        for e in range(starts[s], starts[s + 1]):
            square += np.float64(value[e]) * np.float64(value[e]) * squares[owner[e]]
        if square == 0.0:
            continue
        _sum_rows(value, owner, starts[s], starts[s + 1], G, g)
        step = learning_rate
        if adaptive:
            if accumulator[j] > 0.0:
                square = kept * accumulator[j] + added * square
            accumulator[j] = square
            step = learning_rate / np.sqrt(square)
        m = M[j]
        factor = np.float32(step)
        for k in range(M.shape[1]):
            m[k] += factor * g[k]


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def move_towards(M, average, weight, share, n_shares):
    """average += weight (M - average), of the rows of one thread."""
    for j in range(share, len(M), n_shares):
        for k in range(M.shape[1]):
            average[j, k] += weight * (M[j, k] - average[j, k])
