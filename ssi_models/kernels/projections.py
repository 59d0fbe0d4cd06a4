"""Kernels of the discriminative projection (S2Net)."""

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
