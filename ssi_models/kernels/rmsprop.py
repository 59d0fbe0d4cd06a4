"""Kernels of RMSProp by word, and of the average of its parameters."""

from __future__ import annotations

import numba as nb
import numpy as np

from ssi_models.kernels.sparse import _sum_rows


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def row_squares(G, out, first, last):
    """out[b] = |G_b|^2 / N in float64, for rows first..last."""
    for b in range(first, last):
        total = 0.0
        for k in range(G.shape[1]):
            total += np.float64(G[b, k]) * np.float64(G[b, k])
        out[b] = total / G.shape[1]


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def rmsprop_words(
    words, starts, owner, value, G, squares, M, accumulator, learning_rate, decay, first, last
):
    """Gradient ascent of sum_b (M' x_b) . G_b for the words of slots first..last.

    As ``ssi_models.kernels.sparse.ascend_words``, but a word's accumulator is a running mean of
    its squares, a_j = decay a_j + (1 - decay) sum_b x_bj^2 |G_b|^2 / N; the first time the sum
    itself.
    """
    g = np.empty(M.shape[1], np.float32)
    for s in range(first, last):
        square = 0.0
        for e in range(starts[s], starts[s + 1]):
            square += np.float64(value[e]) * np.float64(value[e]) * squares[owner[e]]
        if square == 0.0:
            continue
        _sum_rows(value, owner, starts[s], starts[s + 1], G, g)
        j = words[s]
        if accumulator[j] > 0.0:
            square = decay * accumulator[j] + (1.0 - decay) * square
        accumulator[j] = square
        factor = np.float32(learning_rate / np.sqrt(square))
        m = M[j]
        for k in range(M.shape[1]):
            m[k] += factor * g[k]


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def move_towards(M, average, share, first, last):
    """average += share (M - average), of rows first..last."""
    for j in range(first, last):
        for k in range(M.shape[1]):
            average[j, k] += share * (M[j, k] - average[j, k])
