"""Kernels of doc2vec inference.

Loops rather than assignments of slices, and scratch arrays from the caller, so that numba's runtime
is not needed (``_nrt=False``): both take long to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ltr_features.kernels.row_sums import TOGETHER, add_rows, dot_rows

# Output vectors that are read once for both of their uses; they fit the nearest cache.
_CHUNK = 32

# A step damps what it is too long to follow to 1 / cosh of this.
_DAMPING = 2.0
# A step is at most this many times the one before it.
_GROWTH = 4.0
# What a step allows for, of the curvature that is likely, and of that met: the one is mostly within
# some percent of the greatest, the other within a half.
_MARGIN = 1.1
_MARGIN_MET = 2.0
# A block of noise rows for so many rows of a text.
_ROWS_PER_BLOCK = 64


class FrozenModel(NamedTuple):
    """What inference reads of a PV-DBOW model with V words and R output vectors.

    Attributes:
        kept: float32 [V], probability that an occurrence survives subsampling.
        path_ends, path_nodes, path_codes: int64 [V + 1], int64 and uint8: word w predicts the
            output vectors ``path_nodes[path_ends[w]:path_ends[w + 1]]``, with label 1 where the
            bit of the code is 0.
        shares: float32 [V], predictions of each of these per occurrence of the word.
        output: float32 [R, d], d a multiple of :data:`LANES`.
        squares: float32 [R], of the lengths of the output vectors.
        likely: float32 [R], squares of their products with the direction of the greatest
            curvature of most texts.
        negative: negative samples per occurrence; 0 with hierarchical softmax.
        noise_curvature: greatest eigenvalue of E_noise[u u'].
        noise_rows: int64 [b, m], blocks of output vectors that stand for the noise distribution.
        noise_labels, noise_weights: float32 [m], 0 and 1: that it is predicted against.
        noise_likely: float32 [b, m], their ``likely``.
        noise_errors: float32 [b, d], the mean of the noise distribution less that of each block.
    """

    kept: NDArray[np.float32]
    path_ends: NDArray[np.int64]
    path_nodes: NDArray[np.int64]
    path_codes: NDArray[np.uint8]
    shares: NDArray[np.float32]
    output: NDArray[np.float32]
    squares: NDArray[np.float32]
    likely: NDArray[np.float32]
    negative: int
    noise_curvature: float
    noise_rows: NDArray[np.int64]
    noise_labels: NDArray[np.float32]
    noise_weights: NDArray[np.float32]
    noise_likely: NDArray[np.float32]
    noise_errors: NDArray[np.float32]


class Predictions(NamedTuple):
    """Which output vectors a text predicts, n of them (a multiple of :data:`TOGETHER`).

    Attributes:
        rows: int64 [n], of the model's output vectors.
        labels, weights: float32 [n], how often with label 1 and how often in all.
        likely: float32 [n], the model's, of the rows.
        drawn: expected number of negative samples.
    """

    rows: NDArray[np.int64]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]
    likely: NDArray[np.float32]
    drawn: float


@njit(cache=True, nogil=True, _nrt=False)
def _climb(vector, output, rows, labels, weights, likely, scale, factors, gradient):
    """gradient += scale * sum over i of (labels_i - weights_i s(v . u_i)) u_i with u_i the row
    ``rows[i]`` of output. Returns the scaled sums of the factors before u_i and of
    weights_i s'(v . u_i) likely_i; ``factors`` is scratch, float32 [_CHUNK]."""
    pulled = np.float32(0.0)
    bent = np.float32(0.0)
    for begin in range(0, len(rows), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        count = len(rows[part])
        for i in range(0, count, TOGETHER):
            dot_rows(vector, output, rows, begin + i, factors, i)
        sums = _pull(factors[:count], labels[part], weights[part], likely[part], scale)
        pulled += sums[0]
        bent += sums[1]
        for i in range(0, count, TOGETHER):
            add_rows(gradient, output, rows, begin + i, factors, i)
    return pulled, bent


# Division as numpy has it: a check for 0 would keep the loop from the processor's vectors.
@njit(
    cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)
def _pull(x, labels, weights, likely, scale):
    """x = scale (labels - weights s(x)). Returns the sums of that and of scale weights s'(x)
    likely; s as gensim has it, see the module of the models, and 1 / (1 + e^-2y) = (1 + tanh y) / 2
    by Lambert's continued fraction of tanh, within 1e-6."""
    one = np.float32(1.0)
    half = np.float32(0.5)
    most = np.float32(6.0)
    pulled = np.float32(0.0)
    bent = np.float32(0.0)
    for i in range(len(x)):
        # As word2vec does: beyond 6 the prediction counts as certain, and nothing moves.
        inside = scale if abs(x[i]) < most else np.float32(0.0)
        y = np.float32(0.498) * min(max(x[i], -most), most) - np.float32(0.015)
        z = y * y
        above = ((z + np.float32(378.0)) * z + np.float32(17325.0)) * z + np.float32(135135.0)
        below = (np.float32(28.0) * z + np.float32(3150.0)) * z + np.float32(62370.0)
        s = half + half * y * above / (below * z + np.float32(135135.0))
        weight = inside * weights[i]
        x[i] = inside * labels[i] - weight * s
        pulled += x[i]
        bent += weight * s * (one - s) * likely[i]
    return pulled, bent


@njit(cache=True, nogil=True, _nrt=False)
def _slope(model, text, vector, turn, factors, gradient):
    """The gradient of a text's expected objective at a vector. Returns its likely curvature there.
    The blocks of noise rows take turns."""
    for k in range(len(vector)):
        gradient[k] = 0.0
    rows = text.rows
    _, bent = _climb(
        vector, model.output, rows, text.labels, text.weights, text.likely, np.float32(1.0),
        factors, gradient
    )  # fmt: skip
    if text.drawn > 0.0:
        blocks, size = model.noise_rows.shape
        used = min(1 + len(rows) // _ROWS_PER_BLOCK, blocks)
        share = np.float32(text.drawn / (used * size))
        for i in range(used):
            block = (turn * used + i) % blocks
            sums = _climb(
                vector, model.output, model.noise_rows[block], model.noise_labels,
                model.noise_weights, model.noise_likely[block], share, factors, gradient
            )  # fmt: skip
            bent += sums[1]
            # Control variate: the mean of the noise is known exactly.
            for k in range(len(vector)):
                gradient[k] += sums[0] * model.noise_errors[block, k]
    return bent


@njit(cache=True, nogil=True, _nrt=False, fastmath={"reassoc", "contract", "nsz"})
def _length(a, b):
    """Of a - b."""
    total = np.float32(0.0)
    for k in range(len(a)):
        total += (a[k] - b[k]) ** 2
    return math.sqrt(total)


@njit(cache=True, nogil=True, _nrt=False)
def _advance(model, text, start, slope, duration, curvature, turn, work, factors, vector):
    """vector = where the flow from start, whose slope is given, is after a time. Returns the number
    of gradients, the given one included, and the curvature met on the last stage but one.

    The damped Chebyshev method of first order (van der Houwen and Sommeijer 1980) of s stages, as
    steps with momentum: with c = damping, Y_j - Y_(j-1) = (m_j - 1) (Y_(j-1) - Y_(j-2)) +
    m_j a g(Y_(j-1)) and m_j = 2 w T_(j-1)(w) / T_j(w), where w = cosh(c / s), a = duration
    tanh(c / s) / (s tanh c), T_j Chebyshev's polynomials and m_1 = 1 to begin with. Stable for
    duration * curvature up to s tanh c coth(c / 2s), about 2 s^2 / c; one stage is Euler's step.

    ``work`` is left with the last gradient and the last move.
    """
    gradient, move, last = work[0], work[1], work[2]
    stages = 1
    reach = math.tanh(_DAMPING)
    while stages * reach / math.tanh(0.5 * _DAMPING / stages) < duration * curvature:
        stages += 1
    width = math.cosh(_DAMPING / stages)
    rate = duration * math.tanh(_DAMPING / stages) / (stages * reach)
    a = np.float32(rate)
    for k in range(len(vector)):
        gradient[k] = slope[k]
        move[k] = a * slope[k]
        vector[k] = start[k] + move[k]
    met = 0.0
    ratio = 1.0 / width
    for stage in range(1, stages):
        for k in range(len(vector)):
            last[k] = gradient[k]
        _slope(model, text, vector, turn + stage, factors, gradient)
        if stage == stages - 1:
            met = _length(gradient, last) / max(_length(move, work[3]), 1e-30)
        ratio = 1.0 / (2.0 * width - ratio)
        momentum = 2.0 * width * ratio
        a = np.float32(momentum * rate)
        b = np.float32(momentum - 1.0)
        for k in range(len(vector)):
            move[k] = b * move[k] + a * gradient[k]
            vector[k] += move[k]
    return stages, met


@njit(cache=True, nogil=True, _nrt=False)
def _follow(model, text, duration, fewest_steps, work, factors, vector):
    """vector = where the flow from 0 is after a time.

    The first step keeps to the bound of the curvature; later ones to the likely curvature where
    they start. With hierarchical softmax, of which the bound is many times the curvature, also to
    the curvature met, |change of gradient| / |change|, and a step that meets more than it allowed
    for is repeated. So is one that is longer than its time times the gradient where it starts,
    which no flow of a concave objective is. (With negative sampling the noise rows change with
    every gradient, but the bound is close.)
    """
    zero, slope, start = work[3], work[4], work[5]
    bound = text.drawn * model.noise_curvature / 4.0 + 1e-30
    for i in range(len(text.rows)):
        bound += max(text.weights[i], np.float32(0.0)) * model.squares[text.rows[i]] / 4.0
    margin = _MARGIN
    longest = duration / fewest_steps
    time = min(longest, 2.0 / bound)
    left = duration
    met = 0.0
    turn = 0
    for k in range(len(vector)):
        vector[k] = 0.0
        zero[k] = 0.0
    while left > 1e-9 * duration:
        likely = _slope(model, text, vector, turn, factors, slope)
        if turn == 0 and text.drawn > 0.0:
            margin = max(margin, bound / max(likely, 1e-30))
        elif turn > 0:
            if text.drawn == 0.0:
                met = _length(slope, work[0]) / max(_length(work[1], zero), 1e-30)
            time = min(_GROWTH * time, longest)
        time = min(time, left)
        for k in range(len(vector)):
            start[k] = vector[k]
        while True:
            curvature = min(max(margin * likely, _MARGIN_MET * met), bound)
            stages, meeting = _advance(
                model, text, start, slope, time, curvature, turn, work, factors, vector
            )
            turn += stages
            stable = text.drawn > 0.0 or meeting <= curvature
            farthest = 1.00001 * time * _length(slope, zero)
            if curvature == bound or (stable and _length(vector, start) <= farthest):
                break
            met = max(met, meeting)
            margin *= 1.5
        left -= time


@njit(cache=True, nogil=True, _nrt=False)
def _predictions(model, words, counts, place, rows, labels, weights, likely):
    """Each output vector once that the paths of a text's words pass, in the order in which they
    do. ``place`` is -1 for all, and is again. Returns their number, filled up to a multiple of
    TOGETHER, and the occurrences that survive subsampling."""
    n = 0
    occurrences = 0.0
    for i in range(len(words)):
        word = words[i]
        frequency = np.float32(counts[i]) * model.kept[word]
        occurrences += frequency
        for at in range(model.path_ends[word], model.path_ends[word + 1]):
            row = model.path_nodes[at]
            p = place[row]
            if p < 0:
                p = n
                place[row] = p
                rows[p] = row
                labels[p] = 0.0
                weights[p] = 0.0
                likely[p] = model.likely[row]
                n += 1
            weights[p] += frequency * model.shares[word]
            if model.path_codes[at] == 0:
                labels[p] += frequency
    for p in range(n):
        place[rows[p]] = -1
    while n % TOGETHER:
        rows[n] = rows[0]
        labels[n] = 0.0
        weights[n] = 0.0
        likely[n] = 0.0
        n += 1
    return n, occurrences


@njit(cache=True, nogil=True)
def infer_documents(begin, end, ends, words, counts, model, duration, fewest_steps, out):
    """PV-DBOW vectors of texts: the gradient flow of the expected objective.

    Args:
        begin, end: the texts to infer.
        ends, words, counts: bags in compressed rows, int64, int32, float32.
        model: a :class:`FrozenModel`.
        duration: sum of the learning rates of all passes.
        fewest_steps: of a text.
        out: float32 [texts, columns], rows begin to end written; columns at most the model's d.
    """
    longest = 0
    for i in range(begin, end):
        passed = 0
        for at in range(ends[i], ends[i + 1]):
            passed += model.path_ends[words[at] + 1] - model.path_ends[words[at]]
        longest = max(longest, passed)
    longest = min(longest, len(model.output)) + TOGETHER
    place = np.full(len(model.output), -1, dtype=np.int32)
    rows = np.empty(longest, dtype=np.int64)
    labels = np.empty(longest, dtype=np.float32)
    weights = np.empty(longest, dtype=np.float32)
    likely = np.empty(longest, dtype=np.float32)
    vector = np.empty(model.output.shape[1], dtype=np.float32)
    work = np.empty((6, len(vector)), dtype=np.float32)
    factors = np.empty(_CHUNK, dtype=np.float32)
    for i in range(begin, end):
        bag = slice(ends[i], ends[i + 1])
        n, occurrences = _predictions(
            model, words[bag], counts[bag], place, rows, labels, weights, likely
        )
        drawn = model.negative * occurrences
        text = Predictions(rows[:n], labels[:n], weights[:n], likely[:n], drawn)
        _follow(model, text, duration, fewest_steps, work, factors, vector)
        for k in range(out.shape[1]):
            out[i, k] = vector[k]
