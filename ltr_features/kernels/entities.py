"""Kernels of entity linking: hashes of words and phrases, phrase counts, and TAGME's steps.

Words and titles are 64-bit hashes; two of 30 million phrases share a hash with probability 3e-5.
0 is not a hash; it ends a line.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

#: Length of the longest phrase, in words.
LONGEST_PHRASE = 6

_START = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Senses(NamedTuple):
    """The entities that phrases link to, in compressed rows, the most common first, with the share
    of a phrase's links that go there. ``probability``: that a phrase is a link, for each phrase."""

    probability: NDArray[np.float64]
    ends: NDArray[np.int64]
    entity: NDArray[np.int32]
    commonness: NDArray[np.float64]


class InLinks(NamedTuple):
    """In-links of pages in compressed rows, sorted; ``n_pages`` counts all pages."""

    ends: NDArray[np.int64]
    sources: NDArray[np.int32]
    n_pages: int


class Voting(NamedTuple):
    """Least commonness of senses; how far below the most votes a more common sense may be; number
    of mentions on either side that vote."""

    least_commonness: float
    epsilon: float
    window: int


class Cache(NamedTuple):
    """Relatedness of pairs of pages, by slot; keys are 0 where there is none."""

    keys: NDArray[np.uint64]
    values: NDArray[np.float64]


@kernel()
def _mix(h):
    """splitmix64's finaliser: every bit depends on every bit."""
    h = (h ^ (h >> _S30)) * _MIX_1
    h = (h ^ (h >> _S27)) * _MIX_2
    h = h ^ (h >> _S31)
    return _ONE if h == _ZERO else h


@kernel()
def _extend(phrase, word):
    return _mix((phrase ^ word) * _PRIME + word)


@kernel()
def hash_runs(data, by_word, out):
    """Hash the words (by_word) or whole lines of UTF-8 text, uint8 [n], where LF ends every line.

    With ``by_word``, blanks separate words and a 0 ends each line. Returns the number of entries
    written to ``out``, uint64.
    """
    n = 0
    h = _START
    empty = True
    for i in range(len(data)):
        byte = data[i]
        if byte == 10 or (by_word and byte == 32):
            if not empty or not by_word:
                out[n] = _mix(h)
                n += 1
            h = _START
            empty = True
            if by_word and byte == 10:
                out[n] = _ZERO
                n += 1
        else:
            h = (h ^ np.uint64(byte)) * _PRIME
            empty = False
    return n


@kernel()
def phrases_of_lines(words, out):
    """Write the phrase hash of each line of words, uint64 [lines]; 0 if empty or too long."""
    n = 0
    length = 0
    h = _ZERO
    for i in range(len(words)):
        if words[i] == _ZERO:
            out[n] = h if length <= LONGEST_PHRASE else _ZERO
            n += 1
            length = 0
            h = _ZERO
        else:
            h = _extend(h, words[i])
            length += 1


@kernel()
def _find(h, phrases, first, shift):
    bucket = np.int64(h >> shift)
    for at in range(first[bucket], first[bucket + 1]):
        if phrases[at] == h:
            return at
    return -1


@kernel()
def count_phrases(words, end, phrases, first, shift, counts):
    """counts[p] += occurrences of phrase p that start in ``words[:end]``."""
    for i in range(end):
        h = _ZERO
        for j in range(i, min(i + LONGEST_PHRASE, len(words))):
            if words[j] == _ZERO:
                break
            h = _extend(h, words[j])
            at = _find(h, phrases, first, shift)
            if at >= 0:
                counts[at] += 1


@kernel()
def spot(words, phrases, first, shift, probability, least, starts, lengths, found):
    """TAGME's spotting: phrases of link probability >= least, except those inside a longer one of
    higher link probability, in order of start, longest first. Returns their number.

    Args:
        words: uint64 [n], lines of words.
        starts, lengths, found: int64 [LONGEST_PHRASE * n], written: first word, length, phrase.
    """
    n = 0
    here = np.empty(LONGEST_PHRASE, dtype=np.int64)
    for i in range(len(words)):
        h = _ZERO
        size = 0
        for j in range(i, min(i + LONGEST_PHRASE, len(words))):
            if words[j] == _ZERO:
                break
            h = _extend(h, words[j])
            here[size] = _find(h, phrases, first, shift)
            size += 1
        for k in range(size - 1, -1, -1):
            if here[k] >= 0 and probability[here[k]] >= least:
                starts[n] = i
                lengths[n] = k + 1
                found[n] = here[k]
                n += 1
    keep = np.ones(n, dtype=np.bool_)
    for a in range(n):
        b = a - 1
        while b >= 0 and starts[b] > starts[a] - LONGEST_PHRASE:
            inside = starts[b] + lengths[b] >= starts[a] + lengths[a]
            if inside and probability[found[b]] > probability[found[a]]:
                keep[a] = False
                break
            b -= 1
    kept = 0
    for a in range(n):
        if keep[a]:
            starts[kept] = starts[a]
            lengths[kept] = lengths[a]
            found[kept] = found[a]
            kept += 1
    return kept


@kernel()
def _common(links, a, b):
    """The number of common in-links of pages a and b, by exponential and binary search."""
    ends, sources, _ = links
    if ends[a + 1] - ends[a] > ends[b + 1] - ends[b]:
        a, b = b, a
    low, high = ends[b], ends[b + 1]
    n = 0
    for i in range(ends[a], ends[a + 1]):
        wanted = sources[i]
        step = 1
        while low + step < high and sources[low + step] < wanted:
            step *= 2
        stop = min(low + step, high - 1)
        while low < stop:
            middle = (low + stop) // 2
            if sources[middle] < wanted:
                low = middle + 1
            else:
                stop = middle
        if low < high and sources[low] == wanted:
            n += 1
    return n


@kernel()
def relatedness(links, a, b):
    """Milne and Witten's relatedness of two pages by in-links, 0 to 1; 1 for equal pages."""
    if a == b:
        return 1.0
    ends, _, n_pages = links
    size_a, size_b = ends[a + 1] - ends[a], ends[b + 1] - ends[b]
    if size_a == 0 or size_b == 0:
        return 0.0
    both = _common(links, a, b)
    if both == 0:
        return 0.0
    shorter, longer = min(size_a, size_b), max(size_a, size_b)
    if shorter >= n_pages:
        return 1.0
    distance = (math.log(longer) - math.log(both)) / (math.log(n_pages) - math.log(shorter))
    return min(1.0, max(0.0, 1.0 - distance))


@kernel()
def _cached_relatedness(links, a, b, cache):
    if a == b:
        return 1.0
    keys, values = cache
    low, high = min(a, b), max(a, b)
    key = (np.uint64(low) << np.uint64(32)) | np.uint64(high)
    slot = np.int64(_mix(key) % np.uint64(len(keys)))
    if keys[slot] != key:
        keys[slot] = key
        values[slot] = relatedness(links, low, high)
    return values[slot]


@kernel()
def disambiguate(texts, found, senses, links, voting, cache, out_sense, out_rho):
    """TAGME's voting, choice and confidence for the mentions of texts.

    Args:
        texts: int64 [n + 1], text t has the mentions ``texts[t]:texts[t + 1]``.
        found: int64 [m], the phrase of each mention.
        senses: :class:`Senses`. links: :class:`InLinks`. voting: :class:`Voting`.
        cache: :class:`Cache`, written.
        out_sense, out_rho: int64 and float64 [m], written; sense -1 for no entity.
    """
    entity, commonness = senses.entity, senses.commonness
    window = voting.window
    for t in range(len(texts) - 1):
        begin, end = texts[t], texts[t + 1]
        for a in range(begin, end):
            first = senses.ends[found[a]]
            last = _last_sense(senses, found[a], voting.least_commonness)
            votes = np.zeros(last - first)
            for b in range(max(begin, a - window), min(end, a + window + 1)):
                stop = _last_sense(senses, found[b], voting.least_commonness)
                start = senses.ends[found[b]]
                if b == a or stop == start:
                    continue
                for p in range(first, last):
                    total = 0.0
                    for q in range(start, stop):
                        total += commonness[q] * _cached_relatedness(
                            links, entity[p], entity[q], cache
                        )
                    votes[p - first] += total / (stop - start)
            out_sense[a] = -1
            if last > first:
                # The most common sense comes first, so the first with votes close to the best wins.
                bar = votes.max() * (1.0 - voting.epsilon)
                for p in range(first, last):
                    if votes[p - first] >= bar:
                        out_sense[a] = p
                        break
        for a in range(begin, end):
            total = 0.0
            others = 0
            for b in range(max(begin, a - window), min(end, a + window + 1)):
                if b != a and out_sense[a] >= 0 and out_sense[b] >= 0:
                    others += 1
                    total += _cached_relatedness(
                        links, entity[out_sense[a]], entity[out_sense[b]], cache
                    )
            out_rho[a] = (senses.probability[found[a]] + (total / others if others else 0.0)) / 2.0


@kernel()
def _last_sense(senses, phrase, least):
    last = senses.ends[phrase]
    while last < senses.ends[phrase + 1] and senses.commonness[last] >= least:
        last += 1
    return last
