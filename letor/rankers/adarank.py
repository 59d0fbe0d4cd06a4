"""AdaRank: boosting of single columns for any measure between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.rankers.array_ranker import BestOf, LinearRanker
from letor.rankers.base import Choices, Ranges

# A column that ranks every query perfectly has an infinite weight in the paper.
_LARGEST = 1.0 - 1e-9


@dataclass(eq=False, repr=False)
class AdaRank(LinearRanker):
    """A sum of columns, chosen one by one for queries that are ranked badly so far.

    In each round the column with the largest sum_i P(i) E(i, column) is taken with the weight
    alpha = 1/2 ln [sum_i P(i) (1 + E(i, column)) / sum_i P(i) (1 - E(i, column))], and P is
    recomputed from the E of the whole ranker; E is the measure of a query. E of every column is
    computed once.

    Args:
        n_rounds: maximum number of columns added.
        measure: E, and the measure for early stopping; the paper uses ``ndcg@10`` and ``map``
            (``map`` needs rows with label 0).
        update: ``paper`` P(i) = exp(-E(i, ranker)) / sum; ``multiplied`` P(i) <- P(i) exp(-alpha
            E(i, ranker)) / sum, which moves further from the uniform weights.
        max_repeats: how often a column may be chosen, so that others get their turn.
        descending: whether columns may count negatively, too; otherwise larger values are better.
        early_stopping_rounds: rounds without improvement after which training stops.
        normalise: ``none``, ``minmax``, ``zscore``, ``raw+zscore`` or ``standard``. Sums of
            columns need a common scale within each query.

    Source: Xu, Li, "AdaRank: a boosting algorithm for information retrieval", SIGIR 2007, fig. 1.
    """

    name: ClassVar[str] = "adarank"
    stopping: ClassVar[tuple[str, ...]] = ("early_stopping_rounds",)
    ranges: ClassVar[Ranges] = {
        "n_rounds": (1, 1_000_000),
        "max_repeats": (1, 1_000_000),
        "early_stopping_rounds": (1, 2**31 - 1),
    }
    choices: ClassVar[Choices] = {"update": ("paper", "multiplied")}

    n_rounds: int = 300
    measure: str = "ndcg@10"
    update: Literal["paper", "multiplied"] = "paper"
    max_repeats: int = 5
    descending: bool = True
    early_stopping_rounds: int = 100
    normalise: str = "minmax"

    def _learn(self, train: RankingData, valid: RankingData | None) -> None:
        evaluator = self._evaluator(train)
        columns = _signed(train.X, self.descending)
        of_columns = np.stack([evaluator.per_query(column) for column in columns])
        counted = ~np.isnan(of_columns[0])  # the measure leaves out the other queries
        of_columns = np.where(counted, of_columns, 0.0)
        held_out = None if valid is None else _signed(valid.X, self.descending)
        held = None if valid is None else self._evaluator(valid)
        best = BestOf(held, self.early_stopping_rounds, self._finished)
        weights = np.zeros(len(columns))
        best_weights, taken = weights.copy(), np.zeros(len(columns), dtype=np.int64)
        scores = np.zeros(len(train))
        valid_scores = np.zeros(0 if valid is None else len(valid))
        P = counted / counted.sum()
        for _ in range(self.n_rounds):
            value = np.where(taken < self.max_repeats, of_columns @ P, -1.0)
            chosen = int(value.argmax())
            if value[chosen] <= 0:
                break
            alpha = np.arctanh(min(value[chosen], _LARGEST))  # = 1/2 ln [(1 + v) / (1 - v)]
            weights[chosen] += alpha
            taken[chosen] += 1
            scores += alpha * columns[chosen]
            E = np.where(counted, evaluator.per_query(scores), np.inf)
            P = np.exp(-E) if self.update == "paper" else P * np.exp(-alpha * E)
            P /= P.sum()
            if held_out is not None:
                valid_scores += alpha * held_out[chosen]
            if best.improves(valid_scores):
                best_weights = weights.copy()
            if best.should_stop:
                break
        half = train.X.shape[1]
        if self.descending:
            best_weights = best_weights[:half] - best_weights[half:]
        self._model = {"weights": best_weights}
        self.validation_curve_ = best.curve


def _signed(X: NDArray[np.float32], both: bool) -> NDArray[np.float64]:
    """float64 [p or 2p, n]: the columns, then (if ``both``) the negated ones."""
    columns = np.ascontiguousarray(X.T, dtype=np.float64)
    return np.vstack([columns, -columns]) if both else columns
