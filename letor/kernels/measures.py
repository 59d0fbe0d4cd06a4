"""Ranking measures of grouped rows, one value per query; callers check and cast.

``offsets`` int64 [m + 1]: query i owns positions ``offsets[i]:offsets[i + 1]`` of every ranked
array (``gains``, ``ideal``, ``relevant``), best rank first.
"""

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel()
def rank_rows(scores: Floats, rows: Ints, offsets: Ints) -> Ints:
    """int64 [n]: the rows of each query by descending score; equal scores keep their order in
    ``rows``. ``scores`` float64, finite, indexed by row."""
    ranked = np.empty_like(rows)
    for q in range(len(offsets) - 1):
        mine = rows[offsets[q] : offsets[q + 1]]
        order = np.argsort(-scores[mine], kind="mergesort")
        for i in range(len(order)):  # not slices, which take three seconds to compile
            ranked[offsets[q] + i] = mine[order[i]]
    return ranked


@kernel()
def dcg(gains: Floats, offsets: Ints, discounts: Floats, cutoff: int) -> Floats:
    """float64 [m]: sum of ``gains * discounts[rank - 1]`` over the ranks up to ``cutoff``."""
    result = np.zeros(len(offsets) - 1)
    for q in range(len(result)):
        start = offsets[q]
        for i in range(min(cutoff, offsets[q + 1] - start)):
            result[q] += gains[start + i] * discounts[i]
    return result


@kernel()
def mean_ndcg(gains: Floats, ideal: Floats, offsets: Ints, discounts: Floats) -> Floats:
    """float64 [m]: NDCG@k averaged over k = 1 .. number of rows of the query; 0 where the ideal
    gain is 0."""
    result = np.zeros(len(offsets) - 1)
    for q in range(len(result)):
        start, stop = offsets[q], offsets[q + 1]
        if start == stop or ideal[start] <= 0.0:
            continue
        total, best, curve = 0.0, 0.0, 0.0
        for i in range(start, stop):
            total += gains[i] * discounts[i - start]
            best += ideal[i] * discounts[i - start]
            curve += total / best
        result[q] = curve / (stop - start)
    return result


@kernel()
def average_precision(
    relevant: NDArray[np.bool_], offsets: Ints, total: Ints, cutoff: int
) -> Floats:
    """float64 [m]: sum of precision at each relevant rank up to ``cutoff``, divided by ``total``,
    int64 [m], the query's relevant documents; 0 where there are none."""
    result = np.zeros(len(offsets) - 1)
    for q in range(len(result)):
        start = offsets[q]
        found = 0
        for i in range(min(cutoff, offsets[q + 1] - start)):
            if relevant[start + i]:
                found += 1
                result[q] += found / (i + 1)
        if total[q] > 0:
            result[q] /= total[q]
    return result


@kernel()
def hits(relevant: NDArray[np.bool_], offsets: Ints, cutoff: int) -> tuple[Ints, Ints]:
    """(int64 [m], int64 [m]): relevant rows up to rank ``cutoff``, and the first relevant rank
    (0 where there is none up to ``cutoff``)."""
    m = len(offsets) - 1
    count, first = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for q in range(m):
        start = offsets[q]
        for i in range(min(cutoff, offsets[q + 1] - start)):
            if relevant[start + i]:
                count[q] += 1
                if first[q] == 0:
                    first[q] = i + 1
    return count, first


@kernel()
def expected_reciprocal_rank(stops: Floats, offsets: Ints, cutoff: int) -> Floats:
    """float64 [m]: sum over the ranks r up to ``cutoff`` of 1/r stops_r prod_(i < r) (1 - stops_i),
    ``stops`` float64 [n] the probability that a ranked document ends the search."""
    result = np.zeros(len(offsets) - 1)
    for q in range(len(result)):
        start, goes_on = offsets[q], 1.0
        for i in range(min(cutoff, offsets[q + 1] - start)):
            result[q] += goes_on * stops[start + i] / (i + 1)
            goes_on *= 1.0 - stops[start + i]
    return result
