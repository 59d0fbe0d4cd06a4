"""RankBoost: boosting of thresholds on single columns over pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from letor.checked_arrays import check_array, check_finite
from letor.dataset import RankingData
from letor.kernels.rank_boosting import potentials, threshold_sums
from letor.rankers.array_ranker import ArrayRanker, BestOf
from letor.rankers.base import Choices, Ranges

# A step that orders all pairs has an infinite weight in the paper.
_LARGEST = 1.0 - 1e-6


@dataclass(eq=False, repr=False)
class RankBoost(ArrayRanker):
    """A sum of steps [column > threshold], chosen one by one for pairs that are ordered badly.

    In each round pairs (i, j) with label i > label j weigh D(i, j) ~ exp(f(j) - f(i)), and the step
    h with the largest r = sum D(i, j) (h(i) - h(j)) is added with alpha = 1/2 ln [(1+r) / (1-r)].
    r is a sum over rows of the potential sum_j D(i, j) - sum_j D(j, i) where the step is 1.

    Args:
        n_rounds: maximum number of steps.
        n_thresholds: maximum number of thresholds per column: between all distinct values if there
            are few enough, otherwise at quantiles.
        learning_rate: factor of each alpha; 1 in the paper.
        query_weights: initial weights, equal for all ``pairs`` (so that long queries dominate), or
            for all ``queries``.
        descending: whether steps may count negatively; otherwise larger values are better.
        measure: measure for early stopping, a name that ``letor.measures.parse_measure`` knows.
        early_stopping_rounds: rounds without improvement after which training stops.
        normalise: ``raw+zscore`` shows each column as it is and as z-score within its query; or
            ``none``, ``minmax``, ``zscore`` or ``standard``, see :mod:`letor.normalise`.

    Source: Freund, Iyer, Schapire, Singer, "An efficient boosting algorithm for combining
    preferences", JMLR 2003, sections 3.2 and 3.3.
    """

    name: ClassVar[str] = "rankboost"
    stopping: ClassVar[tuple[str, ...]] = ("measure", "early_stopping_rounds")
    ranges: ClassVar[Ranges] = {
        "n_rounds": (1, 1_000_000),
        "n_thresholds": (1, 255),
        "learning_rate": (1e-6, 1.0),
        "early_stopping_rounds": (1, 2**31 - 1),
    }
    choices: ClassVar[Choices] = {"query_weights": ("pairs", "queries")}

    n_rounds: int = 500
    n_thresholds: int = 255
    learning_rate: float = 1.0
    query_weights: Literal["pairs", "queries"] = "queries"
    descending: bool = False
    measure: str = "ndcg@10"
    early_stopping_rounds: int = 150
    normalise: str = "raw+zscore"

    def _learn(self, train: RankingData, valid: RankingData | None) -> None:
        grades, levels = np.unique(train.y, return_inverse=True)
        levels = levels.astype(np.int64)
        weight = np.ones(train.n_queries)
        if self.query_weights == "queries":
            n_pairs = _pairs(levels, len(grades), train.query_index, train.n_queries)
            weight = 1.0 / n_pairs
        thresholds = [_thresholds(column, int(self.n_thresholds)) for column in train.X.T]
        bins = np.stack(
            [np.searchsorted(t, x, side="left") for t, x in zip(thresholds, train.X.T, strict=True)]
        ).astype(np.uint8)
        n_bins = np.array([len(t) + 1 for t in thresholds])
        sums = np.empty((len(bins), n_bins.max()))
        held = None if valid is None else self._evaluator(valid)
        best = BestOf(held, self.early_stopping_rounds, self._finished)
        scores = np.zeros(len(train))
        valid_scores = np.zeros(0 if valid is None else len(valid))
        steps: list[tuple[int, np.float32, float]] = []
        for _ in range(self.n_rounds):
            potential, total = potentials(scores, levels, len(grades), train.offsets, weight)
            if total == 0:  # all pairs are in order, so clearly that their weights have vanished
                break
            j, b, low_j, low_b = threshold_sums(potential, bins, n_bins, sums)
            if self.descending and -sums[low_j, low_b] > sums[j, b]:
                j, b = low_j, low_b
            r = sums[j, b] / total
            if r == 0 or (r < 0 and not self.descending):
                break
            alpha = self.learning_rate * np.arctanh(np.clip(r, -_LARGEST, _LARGEST))
            steps.append((j, thresholds[j][b], alpha))
            scores += alpha * (bins[j] > b)
            if valid is not None:
                valid_scores += alpha * (valid.X[:, j] > thresholds[j][b])
            best.improves(valid_scores)
            if best.should_stop:
                break
        if valid is not None:
            steps = steps[: best.best + 1]
        self._model = {
            "column": np.array([step[0] for step in steps], dtype=np.int64),
            "threshold": np.array([step[1] for step in steps], dtype=np.float32),
            "alpha": np.array([step[2] for step in steps], dtype=np.float64),
            "n_columns": np.array([train.X.shape[1]], dtype=np.int64),
        }
        self.validation_curve_ = best.curve

    def _score(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        columns, scores = np.ascontiguousarray(X.T), np.zeros(len(X))
        steps = (self._model[name] for name in ("column", "threshold", "alpha"))
        for column, threshold, alpha in zip(*steps, strict=True):
            scores += alpha * (columns[column] > threshold)
        return scores

    def _check_model(self, path: Path, n_columns: int) -> None:
        model, n_steps = self._model, len(self._model["alpha"])
        wanted = {"alpha": np.float64, "threshold": np.float32}
        for name, dtype in wanted.items():
            check_finite(f"{path}: {name}", model[name], dtype, (n_steps,))
        n = model["n_columns"]
        check_array(f"{path}: n_columns", n, np.int64, (1,), least=n_columns, most=n_columns)
        last = n_columns - 1
        check_array(f"{path}: column", model["column"], np.int64, (n_steps,), least=0, most=last)

    def _importance_of_learned(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        column, n = self._model["column"], int(self._model["n_columns"][0])
        gain = np.bincount(column, weights=np.abs(self._model["alpha"]), minlength=n)
        return gain.astype(np.float64), np.bincount(column, minlength=n).astype(np.int64)


def _thresholds(column: NDArray[np.float32], most: int) -> NDArray[np.float32]:
    """Thresholds t, ascending; a row is above t if x > t. Each is a value of the column or lies
    half way to the next one, so that both sides have rows."""
    ordered = np.sort(column)
    values = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(values) - 1 > most:
        places = (np.arange(1, most + 1, dtype=np.int64) * len(ordered)) // (most + 1)
        values = np.unique(np.append(ordered[places], values[-1]))
    middle = values[:-1] + (values[1:] - values[:-1]) / 2
    return np.where(middle < values[1:], middle, values[:-1])


def _pairs(
    levels: NDArray[np.int64], n_levels: int, query: NDArray[np.int64], n_queries: int
) -> NDArray[np.float64]:
    """float64 [m]: number of pairs with different labels in each query."""
    counts = np.zeros((n_queries, n_levels))
    np.add.at(counts, (query, levels), 1.0)
    return (counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)) / 2
