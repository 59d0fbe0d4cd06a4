"""What the labels of a LETOR file tell of the order of its rows and of its columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from ltr_base.slices import group_ranges

BLOCK = 1 << 12  # rows checked at a time, so that no copy of X is made
#: A column may order fewer queries than this as their labels do by chance.
_MIXED_QUERIES = 20


def labels_are_ranks(data: RankingData) -> bool:
    """Whether nearly all queries of three or more rows have consecutive, distinct labels."""
    n_queries = n_ranks = 0
    for i in range(data.n_queries):
        labels = np.sort(data.y[data.order[data.offsets[i] : data.offsets[i + 1]]])
        if len(labels) >= 3:
            n_queries += 1
            n_ranks += bool(np.all(np.diff(labels) == 1))
    # Grades 0, 1, 2 on three rows can be consecutive by chance.
    return bool(data.y.max() > 2) and n_queries > 1 and n_ranks >= 0.95 * n_queries


def descending_queries(data: RankingData) -> tuple[int, int]:
    """Number of queries whose labels never rise from row to row, and number of those that they are
    counted among: queries with three or more rows and different labels."""
    y, query = data.y[data.order], data.query_index[data.order]
    step = np.where(query[1:] == query[:-1], np.diff(y), 0)
    rises, falls = (
        np.bincount(query[1:], weights=found, minlength=data.n_queries) > 0
        for found in (step > 0, step < 0)
    )
    mixed = (data.group_sizes >= 3) & (rises | falls)
    return int((mixed & ~rises).sum()), int(mixed.sum())


def ordered_as_labels(data: RankingData) -> NDArray[np.bool_]:
    """bool [p]: columns in which a higher label means a higher value in every query, or a lower one
    in every query; no column if few queries have different labels."""
    rising, falling = np.ones((2, data.X.shape[1]), dtype=bool)
    mixed: set[int] = set()
    for first, last in group_ranges(data.offsets, BLOCK):
        rows = data.order[data.offsets[first] : data.offsets[last]]
        rows = rows[np.lexsort((data.y[rows], data.query_index[rows]))]
        y, query = data.y[rows], data.query_index[rows]
        starts = np.flatnonzero(np.diff(query, prepend=-1) | (np.diff(y, prepend=y[0]) != 0))
        same = query[starts][1:] == query[starts][:-1]  # a label, and the next one of its query
        mixed.update(query[starts][1:][same].tolist())
        left = np.flatnonzero(rising | falling)
        if not len(left):
            break
        X = np.nan_to_num(data.X[np.ix_(rows, left)])  # absent values are read as 0
        low, high = np.minimum.reduceat(X, starts), np.maximum.reduceat(X, starts)
        rising[left] &= (high[:-1] < low[1:])[same].all(axis=0)
        falling[left] &= (low[:-1] > high[1:])[same].all(axis=0)
    return (rising | falling) & (len(mixed) >= _MIXED_QUERIES)


def label_remarks(labels: NDArray[np.float32]) -> list[str]:
    """A remark on labels [n] that are no whole numbers, a sentence without a full stop, or none."""
    odd = labels[labels % 1 != 0]
    if not len(odd):
        return []
    return [
        f"labels that are not whole numbers: {len(odd):,} of {len(labels):,}, such as {odd[0]:g}: "
        "gains of NDCG are taken of them as they are, MAP, P, Recall and MRR take those below 1 as "
        "not relevant, and most other programs cut or refuse them; make grades 0, 1, 2, ... of them"
    ]
