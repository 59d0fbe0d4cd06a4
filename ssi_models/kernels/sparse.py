"""Kernels over CSR rows: embedding, sparse dot products and updates by word.

Kernels release the GIL and work on a share of the output, so that callers split work over plain
threads; every output element is computed by one thread, in an order independent of their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel


class Csr(NamedTuple):
    """The arrays of a CSR matrix of words by texts' rows."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]


class ByTerm(NamedTuple):
    """The n entries of B rows of a CSR matrix, grouped by the S words that occur.

    Attributes:
        words: int32 [S]. starts: int64 [S + 1]; word s owns entries ``starts[s]:starts[s + 1]``.
        owner, value: int32 and float32 [n], the row of each entry (0..B - 1, ascending for each
            word) and its value.
    """

    words: NDArray[np.int32]
    starts: NDArray[np.int64]
    owner: NDArray[np.int32]
    value: NDArray[np.float32]


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _sum_rows(weight, row, first, last, M, out):
    """out = sum over first <= p < last of weight[p] M[row[p]]."""
    out[:] = 0.0
    for p in range(first, last):
        x, m = weight[p], M[row[p]]
        for k in range(M.shape[1]):
            out[k] += x * m[k]


@kernel()
def embed_rows(X, rows, M, out, start, stop):
    """out[b] = sum_j x_j M[j] for row x = rows[b] of the CSR matrix X, b in start..stop."""
    indptr, indices, data = X
    for b in range(start, stop):
        _sum_rows(data, indices, indptr[rows[b]], indptr[rows[b] + 1], M, out[b])


@kernel()
def transpose_rows(X, rows, place, found, free):
    """Group the n entries of some rows of the CSR matrix X by word; returns the number S of words.

    Args:
        rows: int64 [B]. place: int32 [V], all -1 on entry; on return the slot of each word that
            occurs, -1 elsewhere (the caller restores ``place[words] = -1``).
        found: ``ByTerm`` with room for n words, starts all 0; the first S words, in the order of
            their first occurrence, S + 1 starts and all entries are written.
        free: int64 [n], scratch space.
    """
    indptr, indices, data = X
    words, starts, owner, value = found
    n_words = 0
    for b in range(len(rows)):
        for p in range(indptr[rows[b]], indptr[rows[b] + 1]):
            j = indices[p]
            if place[j] < 0:
                place[j] = n_words
                words[n_words] = j
                n_words += 1
            starts[place[j] + 1] += 1
    for s in range(n_words):  # not cumsum, which takes a second to compile
        free[s] = starts[s]
        starts[s + 1] += starts[s]
    for b in range(len(rows)):
        for p in range(indptr[rows[b]], indptr[rows[b] + 1]):
            s = place[indices[p]]
            owner[free[s]], value[free[s]] = b, data[p]
            free[s] += 1
    return n_words


@kernel(fastmath={"contract", "reassoc", "nsz"})
def row_squares(G):
    """float64 [B], |G_b|^2 / N."""
    squares = np.empty(len(G))
    for b in range(len(G)):
        total = 0.0
        for k in range(G.shape[1]):
            total += np.float64(G[b, k]) * np.float64(G[b, k])
        squares[b] = total / G.shape[1]
    return squares


@kernel(fastmath={"contract", "reassoc", "nsz"})
def step_words(
    entries, G, squares, M, accumulator, learning_rate, adaptive, kept, added, share, n_shares
):
    """Gradient ascent of sum_b (M' x_b) . G_b for the words of one thread: those whose number
    modulo ``n_shares`` is ``share``, so that a word of one table belongs to the same thread in
    queries and in documents.

    The gradient by M_j is g_j = sum_b x_bj G_b. If ``adaptive``, the accumulator of each word first
    becomes a_j = kept a_j + added sum_b x_bj^2 |G_b|^2 / N (that sum itself if it was 0), from the
    squared gradients of single examples, and M_j += lr g_j / sqrt(a_j); otherwise M_j += lr g_j.
    kept = added = 1 is AdaGrad, kept + added = 1 RMSProp. ``squares`` comes from ``row_squares``.
    """
    words, starts, owner, value = entries
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


@kernel(fastmath={"contract", "reassoc", "nsz"})
def move_towards(M, average, weight, share, n_shares):
    """average += weight (M - average), for the rows of one thread."""
    for j in range(share, len(M), n_shares):
        for k in range(M.shape[1]):
            average[j, k] += weight * (M[j, k] - average[j, k])


@kernel()
def diagonal_products(Q, documents, place, limit, out, first, last):
    """out[a, b] += q_a . d_b for rows a in first..last of the CSR matrix Q and owners b < limit.

    The documents are grouped by word, so that the cost is the number of matching words, not
    |q| x |d|; ``place`` holds the slots of their words (see ``transpose_rows``).
    """
    indptr, indices, data = Q
    _, starts, owner, value = documents
    for a in range(first, last):
        row = out[a]
        for p in range(indptr[a], indptr[a + 1]):
            s = place[indices[p]]
            if s >= 0:
                x = data[p]
                for e in range(starts[s], starts[s + 1]):
                    if owner[e] >= limit:
                        break
                    row[owner[e]] += x * value[e]


@kernel()
def diagonal_gradient(queries, documents, place, C, out, first, last):
    """out[s] = sum_(a, b) C[a, b] q_aj d_bj for the query words j = words[s], s in first..last.

    Both are grouped by word; ``place`` holds the slots of the documents' words. ``out`` is float64.
    """
    words, starts, owner, value = queries
    _, d_starts, d_owner, d_value = documents
    for s in range(first, last):
        total = 0.0
        t = place[words[s]]
        if t >= 0:
            for e in range(starts[s], starts[s + 1]):
                row = C[owner[e]]
                inner = 0.0
                for h in range(d_starts[t], d_starts[t + 1]):
                    inner += row[d_owner[h]] * d_value[h]
                total += value[e] * inner
        out[s] = total


@kernel()
def pair_products(Q, D, query, document, dense, out, start, stop):
    """out[i] = q_(query[i]) . d_(document[i]) in float64, for i in start..stop; Q and D are CSR.

    ``dense`` is float64 [V], all zero on entry and on return; pairs sorted by query are fastest,
    because a query is spread into ``dense`` once per run of equal queries.
    """
    q_indptr, q_indices, q_data = Q
    d_indptr, d_indices, d_data = D
    current = -1
    for i in range(start, stop):
        if query[i] != current:
            if current >= 0:
                for p in range(q_indptr[current], q_indptr[current + 1]):
                    dense[q_indices[p]] = 0.0
            current = query[i]
            for p in range(q_indptr[current], q_indptr[current + 1]):
                dense[q_indices[p]] += q_data[p]
        total = 0.0
        for p in range(d_indptr[document[i]], d_indptr[document[i] + 1]):
            total += dense[d_indices[p]] * d_data[p]
        out[i] = total
    if current >= 0:
        for p in range(q_indptr[current], q_indptr[current + 1]):
            dense[q_indices[p]] = 0.0


@kernel(fastmath={"contract", "reassoc", "nsz"})
def pair_dots(Eq, Ed, query, document, out, start, stop):
    """out[i] += Eq[query[i]] . Ed[document[i]] in float64, for i in start..stop."""
    for i in range(start, stop):
        total = 0.0
        for k in range(Eq.shape[1]):
            total += np.float64(Eq[query[i], k]) * np.float64(Ed[document[i], k])
        out[i] += total
