"""Kernels of S2Net: logistic losses of cosines, and their slopes."""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot(x, y):
    total = np.float32(0.0)
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@nb.njit(cache=True, nogil=True)
def tuple_losses(Hq, Hd, query, documents, gamma, slopes, losses, counts, start, stop):
    """Loss of pairs start..stop, each of a query, a relevant document and its negatives.

    With x = h_q . h_d+ - h_q . h_d- the loss of a tuple is log(1 + exp(-gamma x)).

    Args:
        Hq: float32 [m, k], Hd: float32 [n, k]. query: int64 [n_pairs].
        documents: int64 [n_pairs, 1 + J], the relevant document first; a negative of -1 is none.
        slopes: float32 [n_pairs, 1 + J], written: minus the derivative of the summed loss by each
            inner product. losses: float64 [n_pairs], the summed loss. counts: int64 [n_pairs, 2],
            tuples with x <= 0, and tuples.
    """
    for p in range(start, stop):
        h = Hq[query[p]]
        own = np.float64(_dot(h, Hd[documents[p, 0]]))
        total, pull = 0.0, 0.0
        n_wrong, n_tuples = 0, 0
        for j in range(1, documents.shape[1]):
            slopes[p, j] = 0.0
            if documents[p, j] < 0:
                continue
            x = own - np.float64(_dot(h, Hd[documents[p, j]]))
            n_wrong += x <= 0.0
            n_tuples += 1
            small = np.exp(-abs(gamma * x))
            total += max(0.0, -gamma * x) + np.log1p(small)
            weight = gamma * (small if x > 0.0 else 1.0) / (1.0 + small)
            slopes[p, j] = -weight
            pull += weight
        slopes[p, 0] = pull
        losses[p] = total
        counts[p, 0] = n_wrong
        counts[p, 1] = n_tuples


@nb.njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _row_slopes(larger, smaller, chunk, row):
    """Slopes E / (1 + E) of E = larger[k] smaller, taken from row; (their sum, sum of log(1 + E),
    number of E > 1 / e)."""
    one, inside = np.float32(1.0), np.float32(0.36787944117144233)
    pull, loss = 0.0, 0.0
    n_inside = 0
    for start in range(0, len(larger), chunk):
        total, product = np.float32(0.0), 1.0
        for k in range(start, min(start + chunk, len(larger))):
            E = larger[k] * smaller
            slope = E / (one + E)
            row[k] -= slope
            total += slope
            product *= np.float64(one + E)
            n_inside += inside < E
        pull += np.float64(total)
        loss += np.log(product)
    return pull, loss, n_inside


@nb.njit(cache=True, nogil=True)
def _mark(exponential, slot, judged_document, judged_grade, first, last, grade, given_only, larger):
    """larger[k] = exponential[k] where negative k counts against the grade, else 0; their
    number."""
    n = 0 if given_only else len(larger)
    if given_only:
        larger[:] = 0.0
    else:
        larger[:] = exponential
    for p in range(first, last):
        k = slot[judged_document[p]]
        if k >= 0:
            if judged_grade[p] >= grade:
                n -= not given_only
                larger[k] = 0.0
            elif given_only:
                n += 1
                larger[k] = exponential[k]
    return n


@nb.njit(cache=True, nogil=True)
def batch_slopes(
    positive, negative, order, starts, query, grade, slot, judged_offsets, judged_document,
    judged_grade, given_only, gamma, pull, C, losses, counts, first, last,
):  # fmt: skip
    """Logistic losses of all pairs of queries first..last of a batch against shared negatives.

    The loss of (pair b of query i, negative k) is log(1 + E), where
    E = exp(gamma negative[i, k]) exp(-gamma positive[b]): one exponential per text, not per tuple.
    A negative counts unless it is judged for the query with a grade at least that of the pair;
    with ``given_only`` it counts only if it is judged, with a lower grade.

    Args:
        positive: float32 [B], cosines of the pairs. negative: float32 [u, K], of each query with
            each negative.
        order: int64 [B], the pairs by query and grade; query i owns
            ``order[starts[i]:starts[i + 1]]``.
        query: int64 [u]. grade: float32 [B].
        slot: int32 [n_documents], k where the document is negative k, else -1.
        judged_offsets, judged_document, judged_grade: CSR of judged documents by query.
        gamma: at most 40, so that no E overflows.
        pull: float32 [B] and C: float32 [u, K], written: minus the derivatives of the summed loss
            by positive and negative, divided by gamma K.
        losses: float64 [u]. counts: int64 [u, 2], tuples with a difference below 1 / gamma, and
            tuples.
    """
    K = negative.shape[1]
    exponential, larger = np.empty(K, np.float32), np.empty(K, np.float32)
    chunk = 8 * max(1, int(40.0 / gamma))  # terms up to exp(2 gamma) whose product is below 1e300
    share = np.float32(1.0 / K)
    for i in range(first, last):
        C[i] = 0.0
        for k in range(K):
            exponential[k] = np.float32(np.exp(gamma * negative[i, k]))
        losses[i] = 0.0
        counts[i] = 0
        present, n_tuples = np.float32(-1.0), 0
        for b in order[starts[i] : starts[i + 1]]:
            if grade[b] != present:
                present = grade[b]
                n_tuples = _mark(
                    exponential, slot, judged_document, judged_grade, judged_offsets[query[i]],
                    judged_offsets[query[i] + 1], present, given_only, larger,
                )  # fmt: skip
            smaller = np.float32(np.exp(-gamma * positive[b]))
            total, loss, n_inside = _row_slopes(larger, smaller, chunk, C[i])
            pull[b] = np.float32(total) * share
            losses[i] += loss
            counts[i, 0] += n_inside
            counts[i, 1] += n_tuples
        C[i] *= share
