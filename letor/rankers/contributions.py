"""Contributions of single columns to a ranker's scores.

The contributions of a row add up to its score, up to a constant that all rows share:

- LightGBM and XGBoost: TreeSHAP (Lundberg et al., "From local explanations to global understanding
  with explainable AI for trees", Nature Machine Intelligence 2020), as these libraries compute it;
- other rankers: Shapley values against a row that has the median of the query's rows in every
  column, by sampled orders of the columns (Strumbelj, Kononenko, "Explaining prediction models and
  individual predictions with feature contributions", Knowledge and Information Systems 2014,
  section 3). For a ranker that adds up functions of single columns (linear ListNet and RankNet,
  AdaRank, RankBoost, coordinate ascent) every order gives the same result: exactly these terms.
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.normalise import NoNormaliser
from letor.rankers.base import Ranker
from letor.rankers.trees import TreeRanker

ORDERS = 8
"""Number of sampled orders of the columns; half of them are the other half reversed."""


def column_contributions(
    ranker: Ranker, rows: RankingData, wanted: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Contribution of each column of ``ranker.feature_names_`` to the score of each row, minus its
    mean over the query's rows: the sum of a row is its score minus the query's mean score.

    Args:
        ranker: a fitted ranker.
        rows: all rows of some queries, with at least the ranker's columns.
        wanted: bool [n], the rows that are returned and that means are taken over; by default all.

    Returns:
        float64 [number of wanted rows, p].

    Raises:
        InputError: the rows lack a column of the ranker.
    """
    rows = ranker.normaliser_.transform(rows.select_columns(ranker.feature_names_))
    if wanted is not None:
        rows = rows.select_rows(wanted)
    if not len(rows):
        return np.zeros((0, len(ranker.feature_names_)))
    queries = np.split(rows.order, rows.offsets[1:-1])
    if isinstance(ranker, TreeRanker):
        parts = ranker.contributions(rows.X)
    else:
        parts = np.zeros(rows.X.shape)
        for query_rows in queries:
            parts[query_rows] = _sampled(ranker, rows.select_rows(query_rows))
    # A column's contribution is that of all copies that the normaliser makes of it.
    parts = parts.reshape(len(parts), ranker.normaliser_.copies, -1).sum(axis=1)
    for query_rows in queries:
        parts[query_rows] -= parts[query_rows].mean(axis=0)
    return parts


def is_exact(ranker: Ranker) -> bool:
    """Whether the contributions are computed exactly rather than sampled."""
    return isinstance(ranker, TreeRanker)


def _sampled(ranker: Ranker, rows: RankingData) -> NDArray[np.float64]:
    """Shapley values of a query's normalised rows by sampled orders. Starting from the median row,
    values are replaced by those of the rows column by column; each column gets the change of the
    score at its turn. One order is enough if the ranker adds up functions of single columns."""
    plain = copy.copy(ranker)
    plain.normaliser_, plain.feature_names_ = NoNormaliser(), list(rows.column_names)
    X = rows.X
    middle = np.sort(X, axis=0)[(len(X) - 1) // 2]  # a value that some row has; NaN sorts last
    varying = np.flatnonzero((middle != X).any(axis=0))
    parts = np.zeros(X.shape)
    rng = np.random.default_rng(0)
    order = rng.permutation(varying)
    orders = [order]
    if not _adds_up(plain, rows, middle, order[::2]):
        orders += [rng.permutation(varying) for _ in range(ORDERS // 2 - 1)]
        orders += [order[::-1] for order in orders]
    for turns in orders:
        steps = np.repeat(np.broadcast_to(middle, X.shape)[None], len(turns) + 1, axis=0)
        for step, column in enumerate(turns, start=1):
            steps[step:, :, column] = X[:, column]
        parts[:, turns] += np.diff(_scores(plain, rows, steps), axis=0).T
    return parts / len(orders)


def _adds_up(
    ranker: Ranker,
    rows: RankingData,
    middle: NDArray[np.float32],
    half: NDArray[np.int64],
) -> bool:
    """Whether the scores are additive over two halves of the columns, to the precision of scores,
    as they are if the ranker adds up functions of single columns."""
    X = rows.X
    none, all_of = np.broadcast_to(middle, X.shape), X
    first, second = none.copy(), all_of.copy()
    first[:, half], second[:, half] = X[:, half], none[:, half]
    f = _scores(ranker, rows, np.stack([none, first, second, all_of]))
    size = float(np.abs(f).max())
    return bool(np.abs(f[1] + f[2] - f[0] - f[3]).max() <= 4 * np.finfo(np.float32).eps * size)


def _scores(ranker: Ranker, rows: RankingData, X: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64 [m, n]: scores of m modified copies of a query's n rows, each scored as a query."""
    m, n, p = X.shape
    copies = RankingData(
        X=np.ascontiguousarray(X.reshape(m * n, p)),
        y=np.zeros(m * n, dtype=np.float32),
        query_ids=[str(i) for i in range(m)],
        query_index=np.repeat(np.arange(m), n),
        column_names=rows.column_names,
    )
    return ranker.predict(copies).astype(np.float64).reshape(m, n)
