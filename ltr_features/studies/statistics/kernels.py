"""Resampling loops of the paired tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel


def count_extreme(
    values: NDArray[np.int64], words: NDArray[np.uint64], threshold: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64 [k]: for each column, how many sign patterns have a sum of at least ``threshold`` in
    absolute value.

    ``values`` int64 [64 w, k] (padded with zeros), ``words`` uint64 [m, w]: bit b of word j is set
    where value 64 j + b keeps its sign, ``threshold`` int64 [k].
    A pattern's sum is 2 * (sum of the values that keep their sign) - (sum of all). For every eight
    values the 256 partial sums are tabulated once and looked up for every pattern.
    """
    k = values.shape[1]
    kept, tables = np.zeros((len(words), k), np.int64), np.zeros((8, 256, k), np.int64)
    for word in range(words.shape[1]):
        eights = values[64 * word : 64 * word + 64].reshape(8, 8, k)
        for bit in range(8):
            half = 1 << bit
            tables[:, half : 2 * half] = tables[:, :half] + eights[:, bit, None]
        add_kept(tables, words, word, kept)
    count: NDArray[np.int64] = (np.abs(2 * kept - values.sum(axis=0)) >= threshold).sum(axis=0)
    return count


@kernel()
def add_kept(
    tables: NDArray[np.int64], words: NDArray[np.uint64], word: int, kept: NDArray[np.int64]
) -> None:
    """Add to ``kept`` int64 [m, k], for each pattern, the sum of those of a word's 64 values that
    keep their sign; ``tables`` int64 [8, 256, k] has the partial sums of every eight values."""
    m, k = kept.shape
    for byte in range(8):
        shift = np.uint64(8 * byte)
        for p in range(m):
            entry = np.int64((words[p, word] >> shift) & np.uint64(255))
            for c in range(k):
                kept[p, c] += tables[byte, entry, c]


@kernel()
def resampled_sums(values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 [m, k]: sums of the rows of ``values`` float64 [n, k] with the numbers in each row of
    ``rows`` int64 [m, n]."""
    m, k = rows.shape[0], values.shape[1]
    sums = np.zeros((m, k), dtype=np.float64)
    for r in range(m):
        for i in range(rows.shape[1]):
            row = rows[r, i]
            for c in range(k):
                sums[r, c] += values[row, c]
    return sums
