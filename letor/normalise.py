"""Normalisation of feature columns, fitted with a ranker, saved with it and applied at scoring.

The per-query kinds need no statistics of the training rows; ``StandardScore`` does. All keep NaN
(missing) and map a column without spread to 0, so that it is harmless.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError
from letor.kernels.normalise import query_minmax, query_zscore
from letor.mapped import ROWS_AT_ONCE, empty_array
from ltr_base.names import listed
from ltr_base.slices import group_ranges


class Normaliser(ABC):
    """Maps feature rows to feature rows in the same order."""

    name: ClassVar[str]
    by_query: ClassVar[bool] = False  # whether a row's values depend on the others of its query
    copies: ClassVar[int] = 1  # number of values that a column becomes

    def fit(self, data: RankingData) -> Self:
        """Learn what the normaliser needs from the training rows (most kinds need nothing)."""
        return self

    @abstractmethod
    def transform(self, data: RankingData) -> RankingData:
        """The same rows with normalised X, of ``copies`` times as many columns; ``data`` is not
        modified."""

    def state(self) -> dict[str, Any]:
        """JSON-compatible state from which ``normaliser_from_state`` restores the normaliser."""
        return {"name": self.name}


class NoNormaliser(Normaliser):
    """Leaves columns unchanged."""

    name = "none"

    def transform(self, data: RankingData) -> RankingData:
        return data


class QueryMinMax(Normaliser):
    """(x - min) / (max - min) over the rows of a query; a constant column becomes 0.

    The "QueryLevelNorm" of LETOR 3.0 and 4.0, and RankLib's ``-norm linear``. Minimum and
    maximum are those of the finite values; +inf becomes 1 and -inf 0.
    """

    name = "minmax"
    by_query = True

    def transform(self, data: RankingData) -> RankingData:
        return replace(data, X=_by_query(query_minmax, data))


class QueryZScore(Normaliser):
    """(x - mean) / standard deviation over the rows of a query; a constant column becomes 0.

    RankLib's ``-norm zscore``, with the population standard deviation (division by n).
    Infinite values are ignored and become NaN.
    """

    name = "zscore"
    by_query = True

    def transform(self, data: RankingData) -> RankingData:
        return replace(data, X=_by_query(query_zscore, data))


class RawAndZScore(Normaliser):
    """The columns as they are, followed by their z-scores within the query, see
    :class:`QueryZScore`.

    For trees, which split by the one or the other. Some columns mean the same for every query
    (PageRank), others only in comparison with the query's other documents (BM25, whose size
    depends on the number of words in the query).
    """

    name = "raw+zscore"
    by_query = True
    copies = 2

    def transform(self, data: RankingData) -> RankingData:
        names = [*data.column_names, *(f"z-score of {name}" for name in data.column_names)]
        return replace(data, X=_by_query(_raw_and_zscore, data, self.copies), column_names=names)


class StandardScore(Normaliser):
    """(x - mean) / standard deviation over all training rows, the usual input of neural rankers.

    Infinite values are ignored in the statistics and become NaN.
    """

    name = "standard"

    def __init__(self) -> None:
        self._columns: list[str] | None = None
        self._mean = np.empty(0)
        self._deviation = np.empty(0)

    def fit(self, data: RankingData) -> Self:
        X = np.where(np.isfinite(data.X), data.X, np.nan).astype(np.float64)
        seen = np.maximum(np.count_nonzero(~np.isnan(X), axis=0), 1)
        mean = np.nansum(X, axis=0) / seen
        deviation = np.sqrt(np.nansum((X - mean) ** 2, axis=0) / seen)
        # By rounding, a constant column may have a tiny spread, about 1e-17: take it as 0.
        constant = deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300)
        self._columns = list(data.column_names)
        self._mean = mean
        self._deviation = np.where(constant, 0.0, deviation)
        return self

    def transform(self, data: RankingData) -> RankingData:
        if self._columns is None:
            raise InputError("normaliser 'standard' is not fitted: call fit with training rows")
        if list(data.column_names) != self._columns:
            raise InputError(
                "normaliser 'standard' was fitted on other columns: "
                f"{listed(self._columns, 10)}; these rows have "
                f"{listed(data.column_names, 10)}"
            )
        X = np.where(np.isfinite(data.X), data.X, np.nan).astype(np.float64) - self._mean
        spread = self._deviation > 0
        X[:, spread] /= self._deviation[spread]
        X[:, ~spread] *= 0.0
        return replace(data, X=X.astype(np.float32))

    def state(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "columns": self._columns,
            "mean": self._mean.tolist(),
            "deviation": self._deviation.tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> StandardScore:
        """Restore a normaliser from its ``state()``."""
        restored = cls()
        restored._columns = list(state["columns"])
        restored._mean = np.asarray(state["mean"], dtype=np.float64)
        restored._deviation = np.asarray(state["deviation"], dtype=np.float64)
        n = len(restored._columns)
        for name, values in (("mean", restored._mean), ("deviation", restored._deviation)):
            if values.shape != (n,) or not np.isfinite(values).all():
                raise InputError(f"normaliser 'standard': {name} must have {n} finite numbers")
        return restored


NORMALISERS: dict[str, type[Normaliser]] = {
    kind.name: kind
    for kind in (NoNormaliser, QueryMinMax, QueryZScore, RawAndZScore, StandardScore)
}


def get_normaliser(name: str) -> Normaliser:
    """A new, unfitted normaliser by name: none, minmax, zscore, raw+zscore or standard.

    Raises:
        InputError: there is no normaliser of that name.
    """
    if name not in NORMALISERS:
        raise InputError(f"normaliser {name!r} is unknown; choose from {', '.join(NORMALISERS)}")
    return NORMALISERS[name]()


def normaliser_from_state(state: Mapping[str, Any]) -> Normaliser:
    """Restore a normaliser from its ``state()``."""
    if state["name"] == StandardScore.name:
        return StandardScore.from_state(state)
    return get_normaliser(state["name"])


def _raw_and_zscore(
    X: NDArray[np.float32], order: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.float32]:
    return np.hstack([X, query_zscore(X, order, offsets)])


def _by_query(
    kernel: Callable[..., NDArray[np.float32]], data: RankingData, copies: int = 1
) -> NDArray[np.float32]:
    """The kernel's values of all rows; memory-mapped, from a new file, if X is."""
    if not isinstance(data.X, np.memmap):
        return kernel(np.ascontiguousarray(data.X, dtype=np.float32), data.order, data.offsets)
    result = empty_array((len(data), copies * data.X.shape[1]), memory=0)
    for first, end in group_ranges(data.offsets, ROWS_AT_ONCE):
        rows = data.order[data.offsets[first] : data.offsets[end]]
        offsets = data.offsets[first : end + 1] - data.offsets[first]
        result[rows] = kernel(data.X[rows], np.arange(len(rows)), offsets)
    return result


def query_blocks(data: RankingData) -> Iterator[tuple[Any, RankingData]]:
    """The rows in blocks of whole queries, with the numbers of these rows, so that what is made of
    a block takes little memory. Few rows are one block; of several, none has comments or knows of
    missing documents."""
    blocks = list(group_ranges(data.offsets, ROWS_AT_ONCE))
    if len(blocks) == 1:
        yield slice(None), data
        return
    plain = replace(data, comments=None, missing=None)
    for first, end in blocks:
        rows = data.order[data.offsets[first] : data.offsets[end]]
        yield rows, plain.select_rows(rows)
