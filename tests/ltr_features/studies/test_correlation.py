"""Correlation of columns within queries."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from letor.dataset import RankingData
from ltr_features.studies.statistics.correlation import (
    chosen_columns,
    column_correlation,
    nearest_columns,
)


def rows_of(sizes: list[int], seed: int = 0, p: int = 4) -> RankingData:
    """Rows of queries in random order, values rounded so that some are equal."""
    rng = np.random.default_rng(seed)
    query = rng.permutation(np.repeat([f"q{seed}-{i}" for i in range(len(sizes))], sizes))
    X = np.round(rng.normal(size=(len(query), p)) + rng.normal(size=(len(query), 1)), 1)
    names = [f"x{j}" for j in range(p)]
    return RankingData.from_rows(
        X.astype(np.float32), np.zeros(len(query)), query, column_names=names
    )


def test_mean_of_spearman_s_coefficient_over_queries():
    parts = [rows_of([10, 7, 12]), rows_of([9, 11], seed=1)]
    found = column_correlation(parts)
    for a in range(4):
        for b in range(a):
            expected = [
                spearmanr(part.X[part.query_index == q, a], part.X[part.query_index == q, b])[0]
                for part in parts
                for q in range(part.n_queries)
            ]
            assert found.iloc[a, b] == pytest.approx(np.mean(expected), abs=1e-12)
    assert np.array_equal(found, found.T)
    assert np.array_equal(np.diag(found), np.ones(4))


def test_queries_count_where_both_columns_vary_and_monotone_changes_do_not_matter():
    rows = rows_of([8, 8, 1], p=5)
    X = rows.X
    X[:, 1] = np.exp(X[:, 0])
    X[:, 2] = -X[:, 0]
    X[rows.query_index == rows.query_index[0], 2] = 7  # constant in one of the queries
    X[:, 3] = 1
    X[::2, 4] = np.nan
    found = column_correlation([rows])
    assert found.loc["x0", "x1"] == pytest.approx(1)
    assert found.loc["x0", "x2"] == pytest.approx(-1)
    assert found["x3"].isna().all()
    assert found.drop(index="x3", columns="x3").notna().all(axis=None)


def test_missing_values_rank_lowest():
    rows = rows_of([12])
    lowest = np.argsort(rows.X[:, 0])[:3]
    rows.X[:, 1] = rows.X[:, 0]
    rows.X[lowest, 0] = -9
    rows.X[lowest, 1] = np.nan
    assert column_correlation([rows]).loc["x0", "x1"] == pytest.approx(1)


def test_the_columns_drawn_are_the_added_ones_then_those_of_most_gain():
    found = column_correlation([rows_of([30], p=8)])
    found.loc["x7", "x7"] = np.nan  # varies nowhere
    gain = {"x0": 5.0, "x1": 1.0, "x2": 9.0, "x3": 2.0, "x4": 3.0, "x7": 50.0}
    assert chosen_columns(found, gain, ["x3", "x4", "x7"], 4) == ["x4", "x3", "x2", "x0"]
    assert chosen_columns(found, gain, ["x0", "x1", "x3", "x4"], 3) == ["x0", "x4", "x2"]
    assert chosen_columns(found, gain, [], 20) == ["x2", "x0", "x4", "x3", "x1"]


def test_nearest_columns_count_by_size_whatever_the_sign():
    rows = rows_of([40], p=4)
    rows.X[:, 3] = -rows.X[:, 0]
    found = column_correlation([rows])
    ((name, near),) = nearest_columns(found, ["x0"], n=2)
    assert name == "x0"
    assert near[0] == ("x3", pytest.approx(-1))
    assert len(near) == 2
