"""PV-DBOW inference as in gensim: passes of stochastic gradient ascent over one text.

A text's vector v starts near 0. In each pass, every occurrence of a word w that subsampling keeps
moves it by rate * sum of (label - s(v . u)) u over the output vectors u that w predicts: its own
with label 1 and those of ``negative`` random words with label 0, or those of the inner nodes on its
path in the Huffman tree. s is the logistic function by gensim's table of 1,000 numbers; an output
vector with |v . u| of 6 or more does not move v.

Random numbers are gensim's too: the upper 32 bits of a linear congruential generator of 48 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

_MASK = np.uint64((1 << 48) - 1)
_FACTOR = np.uint64(25214903917)
_HALF = np.uint64(16)
_MOST = np.float32(6.0)
#: Table entries per unit of v . u: 1000 / 6 / 2 in integers, as in gensim.
_PLACES = np.float32(83.0)
#: The last value of gensim's cumulative noise distribution.
NOISE_WHOLE = (1 << 31) - 1
#: The number of lower bits of a draw that the guide ignores.
GUIDE_BITS = 15


class FrozenModel(NamedTuple):
    """The parts of a PV-DBOW model with V words and R output vectors that inference reads.

    Attributes:
        output: float32 [R, d], vectors of the words, or of the inner nodes of the Huffman tree.
        kept: float64 [V], an occurrence survives if a draw below 2^32 is at most this; empty if
            all survive.
        noise: int64 [V], cumulative noise distribution up to :data:`NOISE_WHOLE`; empty with
            hierarchical softmax.
        guide: int32, for each value of a draw's upper bits the first row of ``noise`` that the draw
            can select (Chen and Asau 1974), see :func:`guide_of`: 15 times as fast as bisection.
        path_ends, path_nodes, path_codes: int64 [V + 1], int64 and uint8: word w predicts the
            inner nodes ``path_nodes[path_ends[w]:path_ends[w + 1]]``, with label 1 where the bit
            of the code is 0; empty with negative sampling.
        longest_path: length of the longest path of a word.
        negative: negative samples per occurrence; 0 with hierarchical softmax.
        rates: float32 [passes], the learning rate of each pass.
        logistic: float32 [1000], gensim's table.
    """

    output: NDArray[np.float32]
    kept: NDArray[np.float64]
    noise: NDArray[np.int64]
    guide: NDArray[np.int32]
    path_ends: NDArray[np.int64]
    path_nodes: NDArray[np.int64]
    path_codes: NDArray[np.uint8]
    longest_path: int
    negative: int
    rates: NDArray[np.float32]
    logistic: NDArray[np.float32]


def guide_of(noise: NDArray[np.int64]) -> NDArray[np.int32]:
    """The ``guide`` of a cumulative distribution, see :class:`FrozenModel`."""
    lowest = np.arange((NOISE_WHOLE >> GUIDE_BITS) + 1, dtype=np.int64) << GUIDE_BITS
    return np.searchsorted(noise, lowest).astype(np.int32)


@kernel()
def infer_documents(begin, end, ends, words, counts, model, out):
    """Infer the vectors of texts; the random draws of a text depend on its words alone.

    Args:
        begin, end: the texts to infer.
        ends, words, counts: bags in compressed rows, int64, int32, int32; words in ascending order.
        model: a :class:`FrozenModel`.
        out: float32 [texts, d], rows ``begin:end`` are written; 0 for a text without words.
    """
    for i in range(begin, end):
        out[i] = 0.0
        bag = slice(ends[i], ends[i + 1])
        if len(words[bag]):
            seed = text_seed(words[bag], counts[bag])
            infer(shuffled(words[bag], counts[bag], seed), seed, model, out[i])


@kernel()
def infer(text, seed, model, vector):
    """Infer the vector of one text as gensim does.

    Args:
        text: int32 [n], its words in order. seed: uint64. model: a :class:`FrozenModel`.
        vector: float32 [d], written.
    """
    state = pass_seed(seed, 0)
    for k in range(len(vector)):
        vector[k] = (np.float64(state >> _HALF) / 4294967296.0 - 0.5) / len(vector)
        state = _next(state)
    left = np.empty(len(text), dtype=np.int32)
    rows = np.empty(max(model.negative + 1, model.longest_path), dtype=np.int64)
    labels = np.ones(len(rows), dtype=np.float32)
    pulls = np.empty(len(rows) + 2, dtype=np.float32)
    for number in range(len(model.rates)):
        state, kept = _subsampled(text, model.kept, pass_seed(seed, number + 1), left)
        for i in range(kept):
            if model.negative:
                state, n = _with_noise(left[i], state, model, rows, labels)
            else:
                n = _along_path(left[i], model, rows, labels)
            _move(vector, model.output, model.logistic, rows, labels, n, model.rates[number], pulls)


@kernel()
def _subsampled(text, kept, state, left):
    """Write the words that survive to ``left``. Returns the state and the number of words."""
    n = 0
    for word in text:
        if len(kept):
            draw = state >> _HALF
            state = _next(state)
            if kept[word] < draw:
                continue
        left[n] = word
        n += 1
    return state, n


@kernel()
def _with_noise(word, state, model, rows, labels):
    """Write a word and its negative samples, other than itself, to ``rows`` and ``labels``. Returns
    the state and the number of entries."""
    rows[0] = word
    labels[0] = 1.0
    n = 1
    for _ in range(model.negative):
        drawn = np.int64(state >> _HALF) % NOISE_WHOLE
        state = _next(state)
        row = model.guide[drawn >> GUIDE_BITS]
        while model.noise[row] < drawn:
            row += 1
        if row != word:
            rows[n] = row
            labels[n] = 0.0
            n += 1
    return state, n


@kernel()
def _along_path(word, model, rows, labels):
    """Write the inner nodes on a word's path to ``rows`` and ``labels``. Returns their number."""
    begin, end = model.path_ends[word], model.path_ends[word + 1]
    for i in range(end - begin):
        rows[i] = model.path_nodes[begin + i]
        labels[i] = np.float32(1.0) - np.float32(model.path_codes[begin + i])
    return end - begin


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _move(vector, output, logistic, rows, labels, n, rate, pulls):
    """vector += rate * sum over i < n of (labels_i - s(vector . u_i)) u_i, u_i = output[rows_i].

    Processes three rows at a time, so that the vector is read a third as often (1.25 times as fast
    end to end); the last row fills up the three. ``pulls`` is scratch, two longer than ``rows``.
    """
    for i in range(0, n, 3):
        a, b, c = rows[i], rows[min(i + 1, n - 1)], rows[min(i + 2, n - 1)]
        x = y = z = np.float32(0.0)
        for k in range(len(vector)):
            x += vector[k] * output[a, k]
            y += vector[k] * output[b, k]
            z += vector[k] * output[c, k]
        pulls[i], pulls[i + 1], pulls[i + 2] = x, y, z
    for i in range(n):
        x = pulls[i]
        pulls[i] = 0.0
        if -_MOST < x < _MOST:
            pulls[i] = rate * (labels[i] - logistic[np.int64((x + _MOST) * _PLACES)])
    pulls[n : n + 2] = 0.0
    for i in range(0, n, 3):
        a, b, c = rows[i], rows[min(i + 1, n - 1)], rows[min(i + 2, n - 1)]
        x, y, z = pulls[i], pulls[i + 1], pulls[i + 2]
        for k in range(len(vector)):
            vector[k] += x * output[a, k] + y * output[b, k] + z * output[c, k]


@kernel()
def _next(state):
    """The state of the generator after a draw."""
    return (state * _FACTOR + np.uint64(11)) & _MASK


@kernel()
def pass_seed(seed, number):
    """uint64 below 2^48: the initial state of a pass; number 0 is for the vector's start."""
    return _mixed(seed + np.uint64(number)) & _MASK


@kernel()
def text_seed(words, counts):
    """uint64: the seed of a bag of words."""
    seed = np.uint64(0)
    for i in range(len(words)):
        seed = _mixed(seed ^ (np.uint64(words[i]) << np.uint64(32) | np.uint64(counts[i])))
    return seed


@kernel()
def _mixed(x):
    """splitmix64 (Steele, Lea and Flood 2014)."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel()
def shuffled(words, counts, seed):
    """int32: the occurrences of a bag's words, shuffled by the seed (Fisher and Yates)."""
    text = np.empty(counts.sum(), dtype=np.int32)
    n = 0
    for i in range(len(words)):
        for _ in range(counts[i]):
            text[n] = words[i]
            n += 1
    for i in range(n - 1, 0, -1):
        j = np.int64(_mixed(seed ^ (np.uint64(i) << np.uint64(32))) % np.uint64(i + 1))
        text[i], text[j] = text[j], text[i]
    return text
