"""Per-query normalisation of feature columns; callers check and cast.

``X`` float32 [n, p]; query i owns the rows ``order[offsets[i]:offsets[i + 1]]``.
"""

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

Matrix = NDArray[np.float32]
Ints = NDArray[np.int64]


@kernel()
def query_minmax(X: Matrix, order: Ints, offsets: Ints) -> Matrix:
    """float32 [n, p]: (x - min) / (max - min) within query and column, 0 where max = min.

    Minimum and maximum are those of the finite values; +inf becomes 1, -inf 0, NaN stays NaN.
    """
    n_columns = X.shape[1]
    result = np.empty_like(X)
    low, high = np.empty(n_columns), np.empty(n_columns)
    for q in range(len(offsets) - 1):
        rows = order[offsets[q] : offsets[q + 1]]
        low[:] = np.inf
        high[:] = -np.inf
        for row in rows:
            for j in range(n_columns):
                x = X[row, j]
                if np.isfinite(x):
                    low[j] = min(low[j], x)
                    high[j] = max(high[j], x)
        for row in rows:
            for j in range(n_columns):
                x = X[row, j]
                if np.isnan(x):
                    result[row, j] = np.nan
                elif np.isinf(x):
                    result[row, j] = 1.0 if x > 0 else 0.0
                elif high[j] > low[j]:
                    result[row, j] = (x - low[j]) / (high[j] - low[j])
                else:
                    result[row, j] = 0.0
    return result


@kernel()
def query_zscore(X: Matrix, order: Ints, offsets: Ints) -> Matrix:
    """float32 [n, p]: (x - mean) / standard deviation within query and column, 0 where all the
    values are equal. Non-finite values are ignored and become NaN."""
    n_columns = X.shape[1]
    result = np.empty_like(X)
    count, mean, spread = np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    low, high = np.empty(n_columns), np.empty(n_columns)
    for q in range(len(offsets) - 1):
        rows = order[offsets[q] : offsets[q + 1]]
        count[:], mean[:], spread[:] = 0.0, 0.0, 0.0
        low[:], high[:] = np.inf, -np.inf
        for row in rows:
            for j in range(n_columns):
                x = X[row, j]
                if np.isfinite(x):
                    # Welford's update: no cancellation for large means.
                    count[j] += 1.0
                    delta = x - mean[j]
                    mean[j] += delta / count[j]
                    spread[j] += delta * (x - mean[j])
                    low[j] = min(low[j], x)
                    high[j] = max(high[j], x)
        for row in rows:
            for j in range(n_columns):
                x = X[row, j]
                if not np.isfinite(x):
                    result[row, j] = np.nan
                elif high[j] > low[j]:
                    result[row, j] = (x - mean[j]) / np.sqrt(spread[j] / count[j])
                else:
                    result[row, j] = 0.0
    return result
