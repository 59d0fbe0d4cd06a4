"""Rank correlation of columns over the candidates of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata

from letor.dataset import RankingData
from ltr_base.blas import one_blas_thread

DEFINITION = (
    "Spearman's rank correlation of two columns over the candidates of a query (equal values share "
    "their mean rank), mean over the test queries in which both columns vary"
)


def column_correlation(parts: Sequence[RankingData]) -> pd.DataFrame:
    """Spearman's correlation of all pairs of columns within queries, averaged over queries.

    Args:
        parts: rows with the same columns, each query in one part only. Missing values rank lowest.

    Returns:
        Symmetric, index = columns = column names, values in [-1, 1]; NaN if there is no query in
        which both columns vary.
    """
    names = list(parts[0].column_names)
    sums, queries = np.zeros((2, len(names), len(names)))
    # One thread: the products are small, and BLAS sums depend on the number of threads.
    with one_blas_thread():
        for part in parts:
            X = np.where(np.isnan(part.X), -np.inf, part.X)[part.order]
            for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
                if end - start > 1:
                    unit = _unit_ranks(X[start:end])
                    varying = unit.any(axis=0).astype(np.float64)
                    sums += unit.T @ unit
                    queries += np.outer(varying, varying)
    mean = np.where(queries > 0, sums / np.maximum(queries, 1), np.nan)
    mean[np.diag_indices_from(mean)] = np.where(np.diag(queries) > 0, 1.0, np.nan)
    return pd.DataFrame(np.clip(mean, -1.0, 1.0), names, names)


def _unit_ranks(X: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64 [n, p]: ranks within each column, centred and scaled to length 1; 0 if constant."""
    ranks = rankdata(X.astype(np.float64), axis=0) - (len(X) + 1) / 2
    length = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(length > 0, length, 1.0)


def chosen_columns(
    correlation: pd.DataFrame,
    gain: Mapping[str, float],
    added: Sequence[str],
    most: int = 24,
) -> list[str]:
    """The columns to draw: first the added ones, at most two thirds of ``most``, then others; both
    by decreasing gain. Columns that vary in no query are left out.

    Args:
        correlation: of all columns. gain: of the columns that the ranker saw.
        added: columns of the system that its baseline lacks.
    """
    varying = correlation.columns[np.diag(correlation) == 1]
    by_gain = sorted(varying, key=lambda name: -gain.get(name, 0.0))
    first = [name for name in by_gain if name in added][: 2 * most // 3]
    rest = [name for name in by_gain if name not in added and name in gain]
    return [*first, *rest][:most]


def nearest_columns(
    correlation: pd.DataFrame, names: Sequence[str], n: int = 5
) -> list[tuple[str, list[tuple[str, float]]]]:
    """For each column in ``names``, the ``n`` other columns with the largest absolute
    correlation."""
    found = []
    for name in names:
        others = correlation[name].drop(name).dropna()
        order = others.abs().sort_values(ascending=False, kind="stable").index[:n]
        found.append((name, [(str(other), float(others[other])) for other in order]))
    return found
