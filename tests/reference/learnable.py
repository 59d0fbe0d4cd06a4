"""Rows that rankers can learn from."""

import numpy as np

from letor.dataset import RankingData


def rows(seed: int, n_queries: int = 40, size: int = 15, labels: int = 3) -> RankingData:
    """Labels by the first of four columns, with noise; the rows of a query are scattered."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.random((n, 4), dtype=np.float32)
    y = np.floor(labels * np.clip(X[:, 0] + 0.3 * rng.normal(size=n), 0, 0.999))
    return RankingData.from_rows(X, y, rng.permutation(np.repeat(np.arange(n_queries), size)))
