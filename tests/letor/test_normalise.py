"""Normalisers against plain per-query loops, and their states."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from letor.dataset import RankingData
from letor.errors import InputError
from letor.mapped import empty_array
from letor.normalise import NORMALISERS, get_normaliser, normaliser_from_state


def data_of(X, query):
    return RankingData.from_rows(X, np.zeros(len(query)), query)


def twin(name, X, query):
    """Column by column, query by query."""
    result = np.empty_like(X)
    for q in set(query):
        rows = [i for i, other in enumerate(query) if other == q]
        for j in range(X.shape[1]):
            x = X[rows, j].astype(np.float64)
            low, spread = (x.min(), np.ptp(x)) if name == "minmax" else (x.mean(), x.std())
            result[rows, j] = 0 if np.ptp(x) == 0 else (x - low) / spread
    return result


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float32, (9, 3), elements=st.floats(-1e6, 1e6, width=32)),
    st.lists(st.sampled_from("abcd"), min_size=9, max_size=9),
)
@pytest.mark.parametrize("name", ["minmax", "zscore"])
def test_per_query_kinds_equal_their_twins(name, X, query):
    before = X.copy()
    found = get_normaliser(name).transform(data_of(X, query)).X
    expected = twin(name, X, query)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
    np.testing.assert_array_equal(X, before)


def test_raw_and_zscore_are_both():
    X, query = np.float32([[1, 5], [10, 0], [3, 5], [2, 4]]), ["a", "b", "a", "a"]
    data = data_of(X, query)
    found = get_normaliser("raw+zscore").transform(data)
    zscore = get_normaliser("zscore").transform(data).X
    np.testing.assert_array_equal(found.X, np.hstack([X, zscore]))
    assert found.column_names == ["1", "2", "z-score of 1", "z-score of 2"]


@pytest.mark.parametrize("name", ["minmax", "zscore", "raw+zscore"])
def test_memory_mapped_rows_stay_mapped_with_the_same_values(name):
    rng = np.random.default_rng(0)
    X, query = rng.random((60, 3), np.float32), rng.integers(0, 9, 60).astype(str)
    mapped = empty_array(X.shape, memory=0)
    mapped[:] = X
    found = get_normaliser(name).transform(replace(data_of(X, query), X=mapped)).X
    assert isinstance(found, np.memmap)
    np.testing.assert_array_equal(found, get_normaliser(name).transform(data_of(X, query)).X)


def test_minmax_by_hand():
    """A constant column and a query of one row become 0; two queries do not mix."""
    X = [[1, 5], [10, 0], [3, 5], [2, 5]]
    found = get_normaliser("minmax").transform(data_of(X, ["a", "b", "a", "a"])).X
    assert found.tolist() == [[0, 0], [0, 0], [1, 0], [0.5, 0]]


@pytest.mark.parametrize("name", sorted(NORMALISERS))
def test_a_query_may_have_no_rows(name):
    data = replace(data_of([[1.0], [2.0]], ["a", "a"]), query_ids=["a", "b"])
    found = get_normaliser(name).fit(data).transform(data).X
    assert found[1, 0] - found[0, 0] == (2 if name in ("zscore", "standard") else 1)


def test_missing_and_infinite_values():
    nan, inf = np.nan, np.inf
    data = data_of(np.zeros((5, 2)), ["a"] * 5)
    data.X[:, 0] = nan, 1, 3, inf, -inf
    data.X[:, 1] = nan, 0.1, 0.1, inf, -inf
    minmax, zscore = (get_normaliser(name).transform(data).X.T for name in ("minmax", "zscore"))
    np.testing.assert_array_equal(minmax, [[nan, 0, 1, 1, 0], [nan, 0, 0, 1, 0]])
    np.testing.assert_array_equal(zscore, [[nan, -1, 1, nan, nan], [nan, 0, 0, nan, nan]])
    standard = get_normaliser("standard").fit(data)
    np.testing.assert_array_equal(standard.transform(data).X[:, 0], [nan, -1, 1, nan, nan])


def test_standard_uses_the_training_rows():
    train = data_of([[0, 0.1], [2, 0.1]] * 5, ["a", "b"] * 5)
    fitted = get_normaliser("standard").fit(train)
    found = fitted.transform(data_of([[3, 7]], ["z"])).X
    assert found.tolist() == [[2, 0]], "mean 1, deviation 1; a constant training column is 0"


def test_standard_refuses_other_columns_and_unfitted_use():
    with pytest.raises(InputError, match="not fitted"):
        get_normaliser("standard").transform(data_of([[1]], ["a"]))
    fitted = get_normaliser("standard").fit(data_of([[1]], ["a"]))
    other = RankingData.from_rows([[1]], [0], ["a"], column_names=["bm25"])
    with pytest.raises(InputError, match="bm25"):
        fitted.transform(other)


@pytest.mark.parametrize("name", sorted(NORMALISERS))
def test_state_survives_json_bit_for_bit(name):
    rng = np.random.default_rng(0)
    data = data_of(rng.normal(size=(30, 4)), rng.integers(0, 5, 30))
    fitted = get_normaliser(name).fit(data)
    again = normaliser_from_state(json.loads(json.dumps(fitted.state())))
    assert again.name == name
    np.testing.assert_array_equal(again.transform(data).X, fitted.transform(data).X)


def test_unknown_name():
    with pytest.raises(InputError, match="'max' is unknown; choose from none, minmax"):
        get_normaliser("max")


@pytest.mark.filterwarnings("error")
def test_a_training_column_without_values_is_harmless():
    """Missing throughout in training, it tells nothing: what comes later becomes 0."""
    X = np.array([[np.nan, 1], [np.nan, 3]], np.float32)
    train = RankingData.from_rows(X, [0, 1], ["a", "a"])
    later = RankingData.from_rows(np.array([[5, 2], [np.nan, np.nan]]), [0, 1], ["a", "a"])
    for name in NORMALISERS:
        if name != "none":
            found = get_normaliser(name).fit(train).transform(train).X
            assert np.isnan(found[:, 0]).all()
            assert np.isfinite(found[:, 1]).all()
    fitted = get_normaliser("standard").fit(train)
    np.testing.assert_array_equal(fitted.transform(later).X, [[0, 0], [np.nan, np.nan]])


def test_a_training_column_of_one_value_is_centred_on_it():
    X = np.array([[4], [np.nan], [np.nan]], np.float32)
    fitted = get_normaliser("standard").fit(RankingData.from_rows(X, [0, 1, 0], ["a"] * 3))
    assert (fitted.state()["mean"], fitted.state()["deviation"]) == ([4.0], [0.0])
