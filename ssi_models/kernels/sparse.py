"""Kernels over CSR rows: embedding, sparse dot products and row-wise updates.

A CSR matrix comes as its three arrays (``indptr`` int64, ``indices`` int32, ``data`` float32).
Kernels release the GIL and work on a share of the output, so that callers split work over plain
threads; every output element is computed by one thread in one order, whatever their number.
"""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def embed_rows(indptr, indices, data, rows, M, out, start, stop):
    """out[b] = sum_j x_j M[j] for row x = rows[b] of the CSR matrix, b in start..stop."""
    for b in range(start, stop):
        row = rows[b]
        out[b] = 0.0
        for p in range(indptr[row], indptr[row + 1]):
            x = data[p]
            m = M[indices[p]]
            for k in range(M.shape[1]):
                out[b, k] += x * m[k]


@nb.njit(cache=True, nogil=True)
def adagrad_rows(indptr, indices, data, rows, G, M, accumulator, learning_rate, share, n_shares):
    """Gradient ascent of sum_b (M' x_b) . G_b with one AdaGrad accumulator per row of M.

    For each word j of row x_b:  a_j += x_j^2 |G_b|^2 / N,  M_j += lr x_j G_b / sqrt(a_j).
    Only words with ``j % n_shares == share`` are touched: shares are disjoint, and each row of M
    sees its updates in batch order for any number of shares.
    """
    width = M.shape[1]
    for b in range(len(rows)):
        g = G[b]
        square = 0.0
        for k in range(width):
            square += g[k] * g[k]
        if square == 0.0:
            continue
        square /= width
        row = rows[b]
        for p in range(indptr[row], indptr[row + 1]):
            j = indices[p]
            if j % n_shares != share:
                continue
            x = data[p]
            accumulator[j] += x * x * square
            step = learning_rate * x / np.sqrt(accumulator[j])
            m = M[j]
            for k in range(width):
                m[k] += np.float32(step * g[k])


@nb.njit(cache=True, nogil=True)
def sgd_rows(indptr, indices, data, rows, G, M, learning_rate, share, n_shares):
    """M_j += lr x_j G_b for each word j of row x_b (same sharing rule as ``adagrad_rows``)."""
    for b in range(len(rows)):
        g = G[b]
        row = rows[b]
        for p in range(indptr[row], indptr[row + 1]):
            j = indices[p]
            if j % n_shares == share:
                step = np.float32(learning_rate * data[p])
                m = M[j]
                for k in range(M.shape[1]):
                    m[k] += step * g[k]


@nb.njit(cache=True, nogil=True)
def lexical_products(
    q_indptr, q_indices, q_data, q_rows, d_indptr, d_indices, d_data, d_rows, head, out
):
    """out[a, b] += q_a . d_b for all rows a of ``q_rows`` and b of ``d_rows``.

    An inverted list of the documents' words is built first, so that the cost is the number of
    matching words, not |q| x |d|. ``head`` is int32 [V], all -1 on entry and on return.
    """
    n_entries = 0
    for b in range(len(d_rows)):
        n_entries += d_indptr[d_rows[b] + 1] - d_indptr[d_rows[b]]
    following = np.empty(n_entries, np.int32)
    owner = np.empty(n_entries, np.int32)
    value = np.empty(n_entries, np.float32)
    e = 0
    for b in range(len(d_rows)):
        for p in range(d_indptr[d_rows[b]], d_indptr[d_rows[b] + 1]):
            j = d_indices[p]
            following[e] = head[j]
            head[j] = e
            owner[e] = b
            value[e] = d_data[p]
            e += 1
    for a in range(len(q_rows)):
        for p in range(q_indptr[q_rows[a]], q_indptr[q_rows[a] + 1]):
            e = head[q_indices[p]]
            while e >= 0:
                out[a, owner[e]] += q_data[p] * value[e]
                e = following[e]
    for b in range(len(d_rows)):
        for p in range(d_indptr[d_rows[b]], d_indptr[d_rows[b] + 1]):
            head[d_indices[p]] = -1


@nb.njit(cache=True, nogil=True)
def pair_products(
    q_indptr, q_indices, q_data, d_indptr, d_indices, d_data, query, document, dense, out,
    start, stop,
):  # fmt: skip
    """out[i] = q_(query[i]) . d_(document[i]) in float64, for i in start..stop.

    ``dense`` is float64 [V], all zero on entry and on return; pairs sorted by query are fastest,
    because a query is spread into ``dense`` once per run of equal queries.
    """
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


@nb.njit(cache=True, nogil=True)
def pair_dots(Eq, Ed, query, document, out, start, stop):
    """out[i] += Eq[query[i]] . Ed[document[i]] in float64, for i in start..stop."""
    for i in range(start, stop):
        total = 0.0
        for k in range(Eq.shape[1]):
            total += np.float64(Eq[query[i], k]) * np.float64(Ed[document[i], k])
        out[i] += total
