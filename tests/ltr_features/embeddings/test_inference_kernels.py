"""Twins of the kernels of doc2vec inference."""

import numpy as np
import pytest
from numba import njit

from ltr_features.kernels.embeddings import (
    FrozenModel,
    Predictions,
    _advance,
    _predictions,
    _pull,
)
from ltr_features.kernels.row_sums import LANES, TOGETHER, add_rows, dot_rows


@njit
def dots(line, matrix, rows, out):
    for at in range(0, len(rows), TOGETHER):
        dot_rows(line, matrix, rows, at, out, at)


@njit
def add(line, matrix, rows, factors):
    for at in range(0, len(rows), TOGETHER):
        add_rows(line, matrix, rows, at, factors, at)


@pytest.mark.parametrize("vectors", [1, 2, 7])
def test_sums_over_rows(vectors):
    rng = np.random.default_rng(vectors)
    matrix = rng.normal(size=(9, vectors * LANES)).astype(np.float32)
    rows = rng.integers(0, 9, 3 * TOGETHER)
    line = rng.normal(size=matrix.shape[1]).astype(np.float32)
    out = np.zeros(len(rows), dtype=np.float32)
    dots(line, matrix, rows, out)
    np.testing.assert_allclose(out, matrix[rows] @ line, rtol=1e-5, atol=1e-5)
    expected = line + out @ matrix[rows]
    add(line, matrix, rows, out)
    np.testing.assert_allclose(line, expected, rtol=1e-5, atol=1e-4)


def test_pulls_are_of_the_logistic_function_as_gensim_has_it():
    x = np.linspace(-7, 7, 1001, dtype=np.float32)
    rng = np.random.default_rng(0)
    labels, weights, likely = rng.random((3, len(x))).astype(np.float32)
    exact = 1 / (1 + np.exp(0.03 - 0.996 * x.astype(float)))
    inside = abs(x) < 6
    # The mean of gensim's table around a place, which is asked by whole numbers.
    index = np.floor((x + np.linspace(-0.5, 0.5, 201)[:, None] / 83 + 6) * 83)
    table = (1 / (1 + np.exp(6 - index * 12 / 1000))).mean(axis=0)
    np.testing.assert_allclose(exact[inside], table[inside], atol=5e-5)
    pulls = x.copy()
    pulled, bent = _pull(pulls, labels, weights, likely, np.float32(2.0))
    np.testing.assert_allclose(pulls, 2 * inside * (labels - weights * exact), atol=4e-6)
    assert pulled == pytest.approx(pulls.sum(dtype=float), rel=1e-4)
    slopes = 2 * inside * weights * exact * (1 - exact) * likely
    assert bent == pytest.approx(slopes.sum(), rel=1e-4)


@pytest.fixture
def frozen():
    """A model of three words with paths over six output vectors."""
    return FrozenModel(
        kept=np.array([1.0, 0.5, 0.25], dtype=np.float32),
        path_ends=np.array([0, 2, 5, 6], dtype=np.int64),
        path_nodes=np.array([5, 1, 5, 1, 3, 5], dtype=np.int64),
        path_codes=np.array([0, 1, 1, 0, 0, 1], dtype=np.uint8),
        shares=np.array([1.0, 0.75, 1.0], dtype=np.float32),
        output=np.zeros((6, LANES), dtype=np.float32),
        squares=np.zeros(6, dtype=np.float32),
        likely=np.arange(6, dtype=np.float32),
        negative=0,
        noise_curvature=0.0,
        noise_rows=np.zeros((1, 0), dtype=np.int64),
        noise_labels=np.zeros(0, dtype=np.float32),
        noise_weights=np.ones(0, dtype=np.float32),
        noise_likely=np.zeros((1, 0), dtype=np.float32),
        noise_errors=np.zeros((1, LANES), dtype=np.float32),
    )


def test_paths_are_merged_in_the_order_of_the_words(frozen):
    place = np.full(6, -1, dtype=np.int32)
    rows = np.full(10, 9, dtype=np.int64)
    labels, weights, likely = np.full((3, 10), np.nan, dtype=np.float32)
    words, counts = np.array([1, 2], dtype=np.int32), np.array([4, 8], dtype=np.float32)
    n, occurrences = _predictions(
        frozen, words, counts, place, rows, labels, weights, likely
    )  # 2 times word 1 (three quarters of its predictions) and 2 times word 2
    assert (n, occurrences) == (4, 4.0)
    np.testing.assert_array_equal(rows[:4], [5, 1, 3, 5])  # filled up to four
    np.testing.assert_array_equal(labels[:4], [0, 2, 2, 0])
    np.testing.assert_array_equal(weights[:4], [3.5, 1.5, 1.5, 0])
    np.testing.assert_array_equal(likely[:4], [5, 1, 3, 0])
    assert (place == -1).all()


@pytest.mark.parametrize("reach", [0.5, 3.0, 20.0, 90.0])
def test_steps_are_damped_chebyshev_polynomials(frozen, reach):
    """On a text of one prediction with label 1/2, of which the gradient is nearly linear."""
    u, weight = np.float32(0.01), np.float32(4000.0)
    output = np.zeros((6, LANES), dtype=np.float32)
    output[0, 0] = u
    rows = np.array([0] + [1] * (TOGETHER - 1))
    labels, weights = np.zeros((2, TOGETHER), dtype=np.float32)
    weights[0] = weight
    labels[0] = weight / (1 + np.exp(0.03))
    text = Predictions(rows, labels, weights, np.zeros_like(labels), 0.0)
    curvature = 0.996 * weight * u**2 / 4
    start = np.zeros(LANES, dtype=np.float32)
    start[0] = 1.0
    slope = np.zeros(LANES, dtype=np.float32)
    slope[0] = -curvature
    vector, work = np.zeros(LANES, dtype=np.float32), np.zeros((6, LANES), dtype=np.float32)
    time = reach / curvature
    factors = np.empty(32, dtype=np.float32)
    stages, _ = _advance(
        frozen._replace(output=output), text, start, slope, time, curvature, 0, work, factors,
        vector,
    )  # fmt: skip
    width = np.cosh(2.0 / stages)
    chebyshev = np.polynomial.chebyshev.Chebyshev([0] * stages + [1])
    rate = chebyshev(width) / chebyshev.deriv()(width)
    expected = chebyshev(width - rate * reach) / chebyshev(width)
    assert vector[0] == pytest.approx(expected, abs=0.01)
    assert abs(expected) < 1
