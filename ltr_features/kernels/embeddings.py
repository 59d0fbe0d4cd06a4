"""Kernels of doc2vec inference."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

#: Greatest product of a step's size and the curvature met; Euler's method is stable below 2.
STEP_TIMES_CURVATURE = 0.7


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _climb(vector, output, rows, begin, end, labels, weights, scale, gradient):
    """gradient += scale * sum over r in rows[begin:end] of (labels_r - weights_r s(v . u_r)) u_r,
    four rows at a time so that the vector is read once for four products. Returns the scaled sum
    of the factors before u_r."""
    size = len(vector)
    total = np.float32(0.0)
    whole = begin + (end - begin) // 4 * 4
    for at in range(begin, whole, 4):
        u0, u1 = output[rows[at]], output[rows[at + 1]]
        u2, u3 = output[rows[at + 2]], output[rows[at + 3]]
        x0 = np.float32(0.0)
        x1 = np.float32(0.0)
        x2 = np.float32(0.0)
        x3 = np.float32(0.0)
        for k in range(size):
            x0 += vector[k] * u0[k]
            x1 += vector[k] * u1[k]
            x2 += vector[k] * u2[k]
            x3 += vector[k] * u3[k]
        g0 = scale * _pull(x0, labels[at], weights[at])
        g1 = scale * _pull(x1, labels[at + 1], weights[at + 1])
        g2 = scale * _pull(x2, labels[at + 2], weights[at + 2])
        g3 = scale * _pull(x3, labels[at + 3], weights[at + 3])
        total += g0 + g1 + g2 + g3
        for k in range(size):
            gradient[k] += g0 * u0[k] + g1 * u1[k] + g2 * u2[k] + g3 * u3[k]
    for at in range(whole, end):
        u = output[rows[at]]
        x = np.float32(0.0)
        for k in range(size):
            x += vector[k] * u[k]
        g = scale * _pull(x, labels[at], weights[at])
        total += g
        for k in range(size):
            gradient[k] += g * u[k]
    return total


@njit(cache=True, nogil=True)
def _pull(x, label, weight):
    # As word2vec does: beyond 6 the prediction counts as certain, and nothing moves.
    if x <= -6.0 or x >= 6.0:
        return np.float32(0.0)
    return np.float32(label - weight / (np.float32(1.0) + np.exp(-x)))


@njit(cache=True, nogil=True)
def infer_documents(
    ends, rows, labels, weights, drawn, curvature, duration, fewest_steps, output,
    noise_rows, noise_errors, out
):  # fmt: skip
    """PV-DBOW vectors of texts: the gradient flow of the expected objective, by Euler's steps.

    The first step keeps to the bound of the curvature. Later ones to the curvature met on the last
    step, |change of gradient| / |step|, which is mostly far below the bound.

    Args:
        ends: int64 [n + 1], text i owns the entries ``ends[i]:ends[i + 1]``.
        rows, labels, weights: int64, float32, float32: output vectors that a text predicts, how
            often with label 1, and how often in all.
        drawn: float32 [n], expected number of negative samples per pass; 0 for none.
        curvature: float64 [n], bound of the curvature of each text's objective.
        duration: sum of the learning rates of all passes.
        fewest_steps: of a text.
        output: float32 [R, d].
        noise_rows: int64 [s, m], the rows that stand for the noise distribution in a step; step t
            uses row ``t % s``.
        noise_errors: float32 [s, d], the mean of the noise distribution less that of the sample.
        out: float32 [n, d], written.
    """
    size = output.shape[1]
    gradient = np.empty(size, dtype=np.float32)
    last = np.zeros(size, dtype=np.float32)
    no_labels = np.zeros(noise_rows.shape[1], dtype=np.float32)
    ones = np.ones(noise_rows.shape[1], dtype=np.float32)
    for i in range(len(drawn)):
        vector = out[i]
        vector[:] = 0.0
        longest = duration / fewest_steps
        safest = min(longest, 1.0 / max(curvature[i], 1e-30))
        step_size = min(longest, 2.0 * safest)
        left = duration
        step = 0
        while left > 1e-9 * duration:
            gradient[:] = 0.0
            _climb(
                vector, output, rows, ends[i], ends[i + 1], labels, weights, np.float32(1.0),
                gradient,
            )  # fmt: skip
            if drawn[i] > 0:
                share = np.float32(drawn[i] / noise_rows.shape[1])
                at = step % noise_rows.shape[0]
                sample = noise_rows[at]
                total = _climb(
                    vector, output, sample, 0, len(sample), no_labels, ones, share, gradient
                )
                # Control variate: the mean of the noise is known exactly.
                for k in range(size):
                    gradient[k] += total * noise_errors[at, k]
            if step > 0:
                change = 0.0
                length = 0.0
                for k in range(size):
                    change += (gradient[k] - last[k]) ** 2
                    length += last[k] ** 2
                met = math.sqrt(change / max(length, 1e-30)) / step_size
                step_size = min(2.0 * step_size, STEP_TIMES_CURVATURE / max(met, 1e-30))
                step_size = min(max(step_size, safest), longest)
            step_size = min(step_size, left)
            for k in range(size):
                vector[k] += np.float32(step_size) * gradient[k]
                last[k] = gradient[k]
            left -= step_size
            step += 1
