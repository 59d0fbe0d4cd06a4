"""Kernels for one weight per pair of words, w[h(s, t)] with h(s, t) = (s P + t) mod H.

A batch only needs the document words that occur in it: ``offsets`` holds t mod H for each of them,
ascending. The bucket of (s, t) is then (base + offset) mod H with base = s P mod H, and the
buckets of one query word are visited in ascending order, with at most one wrap.
"""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel


@kernel()
def gather_weights(Q, w, factor, offsets, out, first, last):
    """out[a, c] = sum_s q_as w[h(s, c)] for rows a in first..last of the CSR matrix Q."""
    indptr, indices, data = Q
    H = len(w)
    for a in range(first, last):
        row = out[a]
        row[:] = 0.0
        for p in range(indptr[a], indptr[a + 1]):
            base = (np.int64(indices[p]) * factor) % H
            x = data[p]
            wrap = np.searchsorted(offsets, H - base)
            for c in range(wrap):
                row[c] += x * w[base + offsets[c]]
            for c in range(wrap, len(offsets)):
                row[c] += x * w[base + offsets[c] - H]


@kernel()
def step_weights(Q, R, w, accumulator, active, learning_rate, factor, offsets, low, high):
    """w[h(s, c)] += lr q_as R[a, c] for the buckets low..high - 1, in the order of (a, s, c).

    With accumulators (float32 [H]; empty for a fixed rate), each weight has AdaGrad's rate. With
    ``active`` (bool [H]; empty for all), only the active weights change. Q is a CSR matrix.
    """
    indptr, indices, data = Q
    H = len(w)
    for a in range(len(indptr) - 1):
        for p in range(indptr[a], indptr[a + 1]):
            base = (np.int64(indices[p]) * factor) % H
            for shift in (base, base - H):
                # Offsets with low <= offset + shift < high.
                start = np.searchsorted(offsets, low - shift)
                stop = np.searchsorted(offsets, high - shift)
                for c in range(start, stop):
                    g = data[p] * R[a, c]
                    h = offsets[c] + shift
                    if g == 0.0 or (len(active) > 0 and not active[h]):
                        continue
                    if len(accumulator) > 0:
                        accumulator[h] += g * g
                        w[h] += np.float32(learning_rate * g / np.sqrt(accumulator[h]))
                    else:
                        w[h] += np.float32(learning_rate * g)
