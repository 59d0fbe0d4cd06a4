"""Rankings and ranking measures of grouped rows, one value per query; callers check and cast.

``offsets`` int64 [m + 1]: query i owns positions ``offsets[i]:offsets[i + 1]`` of every ranked
array (``gains``, ``ideal``, ``relevant``), best rank first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Rows that are sorted at a time, in some 10 MB.
_BLOCK = 2**18


def rank_rows(scores: Floats, rows: Ints, offsets: Ints) -> Ints:
    """int64 [n]: the rows of each query by descending score; equal scores keep their order in
    ``rows``. ``scores`` float64 without NaN, indexed by row."""
    ranked, negated, sizes = np.empty_like(rows), -scores[rows], np.diff(offsets)
    for queries in _of_similar_size(sizes):
        ranks = np.arange(sizes[queries].max())
        present = ranks < sizes[queries, None]
        positions = (offsets[queries, None] + ranks)[present]
        keys = np.full(present.shape, np.inf)
        keys[present] = negated[positions]
        order = np.argsort(keys, axis=1, kind="stable")  # what pads a query stays behind its rows
        ranked[positions] = rows[(offsets[queries, None] + order)[present]]
    return ranked


def _of_similar_size(sizes: Ints) -> Iterator[Ints]:
    """All queries, in blocks that numpy can sort as one matrix: the sizes of a block differ by less
    than a factor of 2, and it has about ``_BLOCK`` rows, or a single query."""
    exponents = np.frexp(sizes)[1]
    for exponent in np.unique(exponents).tolist():
        queries = np.flatnonzero(exponents == exponent)
        n_blocks = 1 + (len(queries) << exponent) // _BLOCK
        yield from np.array_split(queries, min(len(queries), n_blocks))


def _by_rank(offsets: Ints, cutoff: int) -> Iterator[tuple[int, Ints, Ints]]:
    """Each rank up to ``cutoff``, with the queries that have a row there and its position."""
    sizes = np.diff(offsets)
    for rank in range(1, min(cutoff, int(sizes.max(initial=0))) + 1):
        queries = np.flatnonzero(sizes >= rank)
        yield rank, queries, offsets[queries] + rank - 1


def dcg(gains: Floats, offsets: Ints, discounts: Floats, cutoff: int) -> Floats:
    """float64 [m]: sum of ``gains * discounts[rank - 1]`` over the ranks up to ``cutoff``."""
    result = np.zeros(len(offsets) - 1)
    for rank, queries, row in _by_rank(offsets, cutoff):
        result[queries] += gains[row] * discounts[rank - 1]
    return result


def mean_ndcg(gains: Floats, ideal: Floats, offsets: Ints, discounts: Floats) -> Floats:
    """float64 [m]: NDCG@k averaged over k = 1 .. number of rows of the query; 0 where the ideal
    gain is 0."""
    total, best, curve = np.zeros((3, len(offsets) - 1))
    for rank, queries, row in _by_rank(offsets, len(gains)):
        total[queries] += gains[row] * discounts[rank - 1]
        best[queries] += ideal[row] * discounts[rank - 1]
        ideally = best[queries]
        curve[queries] += np.divide(total[queries], ideally, np.zeros(len(row)), where=ideally > 0)
    return curve / np.maximum(np.diff(offsets), 1)


def average_precision(
    relevant: NDArray[np.bool_], offsets: Ints, total: Ints, cutoff: int
) -> Floats:
    """float64 [m]: sum of precision at each relevant rank up to ``cutoff``, divided by ``total``,
    int64 [m], the query's relevant documents."""
    found, result = np.zeros((2, len(total)))
    for rank, queries, row in _by_rank(offsets, cutoff):
        found[queries] += relevant[row]
        result[queries] += relevant[row] * found[queries] / rank
    return result / total


def hits(relevant: NDArray[np.bool_], offsets: Ints, cutoff: int) -> tuple[Ints, Ints]:
    """(int64 [m], int64 [m]): relevant rows up to rank ``cutoff``, and the first relevant rank
    (0 where there is none up to ``cutoff``)."""
    count, first = np.zeros((2, len(offsets) - 1), np.int64)
    for rank, queries, row in _by_rank(offsets, cutoff):
        first[queries[relevant[row] & (count[queries] == 0)]] = rank
        count[queries] += relevant[row]
    return count, first


def expected_reciprocal_rank(stops: Floats, offsets: Ints, cutoff: int) -> Floats:
    """float64 [m]: sum over the ranks r up to ``cutoff`` of 1/r stops_r prod_(i < r) (1 - stops_i),
    ``stops`` float64 [n] the probability that a ranked document ends the search."""
    result = np.zeros(len(offsets) - 1)
    goes_on = np.ones(len(offsets) - 1)
    for rank, queries, row in _by_rank(offsets, cutoff):
        result[queries] += goes_on[queries] * stops[row] / rank
        goes_on[queries] *= 1 - stops[row]
    return result
