"""Common base of the rankers implemented here: canonical row order, models stored as arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import load, save

from letor.checked_arrays import check_array, check_finite
from letor.dataset import RankingData
from letor.digests import check_files
from letor.errors import InputError, reading
from letor.evaluation import Evaluator
from letor.folds import has_pairs
from letor.rankers.base import Ranker
from letor.rankers.rows import measured
from ltr_base.blas import one_blas_thread

MODEL_FILE = "model.safetensors"

# Replaces infinite values: large, but sums of its squares stay finite.
_LIMIT = 1e12


class ArrayRanker(Ranker):
    """A ranker whose fitted model is a set of arrays, kept in ``model.safetensors``.

    ``_learn`` gets rows whose order depends on their content only, without columns that are equal
    in all training rows and without queries that have no pair of different labels (nothing can be
    learned from them): neither the order of a file nor constant columns can change the model.
    Missing values are read as 0, the minimum after ``minmax`` and the mean after ``zscore``.

    Attributes:
        validation_curve_: value of ``measure`` on the validation rows after each step of training;
            empty without validation rows.
    """

    measure: str

    @abstractmethod
    def _learn(self, train: RankingData, valid: RankingData | None) -> None:
        """Set ``_model`` and ``validation_curve_``."""

    @abstractmethod
    def _score(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """float64 [n]; each row's score must not depend on the other rows."""

    @abstractmethod
    def _importance_of_learned(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Gain and splits of the columns that ``_learn`` saw."""

    def _fit(self, train: RankingData, valid: RankingData | None) -> None:
        columns = np.flatnonzero(np.ptp(finite(train.X), axis=0) > 0)
        if len(columns) == 0:
            raise InputError(
                "training rows: no column has two different values, so none can order rows: give "
                "other columns"
            )
        names = [train.column_names[j] for j in columns.tolist()]
        train = with_pairs(in_own_order(train.select_columns(names)))
        if valid is not None:
            valid = in_own_order(valid.select_columns(names))
        with one_blas_thread():
            self._learn(train, valid)
        self._columns = columns.astype(np.int64)

    def _predict(self, data: RankingData) -> NDArray[Any]:
        return self._score(finite(data.X[:, self._columns]))

    def _importance(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        gain = np.zeros(self._n_inputs)
        splits = np.zeros(self._n_inputs, dtype=np.int64)
        gain[self._columns], splits[self._columns] = self._importance_of_learned()
        return gain, splits

    def _evaluator(self, data: RankingData) -> Evaluator:
        return measured(self.measure, data)

    def _save(self, folder: Path) -> dict[str, Any]:
        arrays = {**self._model, "columns": self._columns}
        arrays = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
        (folder / MODEL_FILE).write_bytes(save(arrays))
        return {"validation_curve": self.validation_curve_}

    def _load(self, folder: Path, fitted: Mapping[str, Any]) -> None:
        path = folder / MODEL_FILE
        check_files(folder, MODEL_FILE)
        with reading(path, "restore the file, or train the ranker again"):
            self._model = dict(load(path.read_bytes()))
        try:
            columns = self._model.pop("columns")
            last = self._n_inputs - 1
            check_array(f"{path}: columns", columns, np.int64, (None,), least=0, most=last)
            self._columns = columns
            self._check_model(path, len(columns))
        except KeyError as error:
            raise InputError(f"{path}: the array {error} is missing; it is damaged") from None
        self.validation_curve_: list[float] = list(fitted["validation_curve"])

    @abstractmethod
    def _check_model(self, path: Path, n_columns: int) -> None:
        """Raise InputError for arrays of a damaged file that would lead kernels out of bounds."""

    _model: dict[str, NDArray[Any]]
    _columns: NDArray[np.int64]


class LinearRanker(ArrayRanker):
    """A ranker whose model is one weight per column."""

    def _score(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        return linear_scores(X, self._model["weights"])

    def _check_model(self, path: Path, n_columns: int) -> None:
        check_finite(f"{path}: weights", self._model["weights"], np.float64, (n_columns,))

    def _importance_of_learned(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        gain = np.abs(self._model["weights"])
        return gain, (gain > 0).astype(np.int64)


class BestOf:
    """Tracks the training step that is best on the validation rows; without them, the last step.

    Args:
        evaluator: evaluator of the validation rows, or None.
        patience: steps without improvement after which training should stop.
        finished: called with the number of each step, from 1, and its measure or None.
    """

    def __init__(
        self,
        evaluator: Evaluator | None,
        patience: int,
        finished: Callable[[int, float | None], None],
    ) -> None:
        self._evaluator, self._patience, self._finished = evaluator, patience, finished
        self._n_steps = 0
        self.curve: list[float] = []
        self.best = -1

    def improves(self, scores: ArrayLike | None) -> bool:
        """Record a step by its scores of the validation rows; whether it is the best so far."""
        self._n_steps += 1
        if self._evaluator is None or scores is None:
            self._finished(self._n_steps, None)
            return True
        self.curve.append(self._evaluator.mean(scores))
        self._finished(self._n_steps, self.curve[-1])
        if self.best < 0 or self.curve[-1] > self.curve[self.best]:
            self.best = len(self.curve) - 1
        return self.best == len(self.curve) - 1

    @property
    def should_stop(self) -> bool:
        return bool(self.curve) and len(self.curve) - 1 - self.best >= self._patience


def linear_scores(X: NDArray[np.float32], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64 [n]: X @ weights, summed in column order, independently of the other rows."""
    scores = np.zeros(len(X))
    for j in np.flatnonzero(weights):
        scores += weights[j] * X[:, j]
    return scores


def finite(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """X as float32 in C order, with missing values as 0 and infinite ones as large numbers."""
    X = np.ascontiguousarray(X, dtype=np.float32)
    return X if np.isfinite(X).all() else np.nan_to_num(X, posinf=_LIMIT, neginf=-_LIMIT)


def in_own_order(data: RankingData) -> RankingData:
    """The rows, made finite, ordered by query id and, within a query, by a digest of their values.

    The digest does not depend on labels, so that rows with equal scores are in random order.
    """
    X = finite(data.X)
    factors = np.random.default_rng(0).integers(1, 2**63, size=X.shape[1], dtype=np.uint64)
    digest = ((X + np.float32(0)).view(np.uint32) * factors).sum(axis=1, dtype=np.uint64)
    place = np.empty(data.n_queries, dtype=np.int64)
    place[np.argsort(np.asarray(data.query_ids, dtype=str), kind="stable")] = np.arange(
        data.n_queries
    )
    rows = np.lexsort((data.y, digest, place[data.query_index]))
    ids = [data.query_ids[i] for i in np.argsort(place).tolist()]
    return RankingData(X[rows], data.y[rows], ids, place[data.query_index[rows]],
                       data.column_names, missing=data.missing)  # fmt: skip


def with_pairs(data: RankingData) -> RankingData:
    """The queries that have two different labels."""
    return data.select_rows(has_pairs(data)[data.query_index])
