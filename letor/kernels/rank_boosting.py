"""Potentials and threshold sums of RankBoost; callers check and cast."""

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel()
def potentials(
    scores: Floats, levels: Ints, n_levels: int, offsets: Ints, query_weight: Floats
) -> tuple[Floats, float]:
    """(float64 [n], sum of all pair weights): weights of the pairs in which a row should win minus
    those in which it should lose.

    A pair (i, j) of a query q with ``levels[i] > levels[j]`` (int64 [n], 0 .. n_levels - 1) weighs
    ``query_weight[q] * exp(scores[j] - scores[i])``, so that sums over pairs are products of sums
    over rows.
    """
    result = np.zeros(len(scores))
    winners, losers = np.empty(n_levels), np.empty(n_levels)
    total = 0.0
    for q in range(len(offsets) - 1):
        start, stop = offsets[q], offsets[q + 1]
        centre = 0.0
        for i in range(start, stop):
            centre += scores[i]
        centre /= max(stop - start, 1)
        winners[:] = 0.0
        losers[:] = 0.0
        for i in range(start, stop):
            high = np.exp(scores[i] - centre)
            result[i] = high
            winners[levels[i]] += 1.0 / high
            losers[levels[i]] += high
        for level in range(1, n_levels):
            losers[level] += losers[level - 1]  # of this level and below
            winners[n_levels - 1 - level] += winners[n_levels - level]  # and above
        for i in range(start, stop):
            high, level = result[i], levels[i]
            wins = losers[level - 1] / high if level > 0 else 0.0
            loses = winners[level + 1] * high if level + 1 < n_levels else 0.0
            result[i] = query_weight[q] * (wins - loses)
            total += query_weight[q] * wins
    return result, total


@kernel()
def threshold_sums(
    potential: Floats, bins: NDArray[np.uint8], n_bins: Ints, sums: Floats
) -> tuple[int, int, int, int]:
    """Fill ``sums`` float64 [p, most bins] with the potential of rows whose bin in column j is
    above b, and return (column, bin) of the largest sum, then of the smallest.

    ``bins`` uint8 [p, n]; column j has the bins 0 .. ``n_bins[j]`` - 1, and as the sum above the
    last one is empty, a column of one bin has none. Equal sums: the first column and bin wins.
    """
    high_j, high_b, low_j, low_b = -1, -1, -1, -1
    high, low = -np.inf, np.inf
    for j in range(len(bins)):
        column, row = bins[j], sums[j]
        row[:] = 0.0
        for i in range(len(potential)):
            row[column[i]] += potential[i]
        above = 0.0
        for b in range(n_bins[j] - 1, -1, -1):
            here = row[b]
            row[b] = above
            above += here
        for b in range(n_bins[j] - 1):
            if row[b] > high:
                high, high_j, high_b = row[b], j, b
            if row[b] < low:
                low, low_j, low_b = row[b], j, b
    return high_j, high_b, low_j, low_b
