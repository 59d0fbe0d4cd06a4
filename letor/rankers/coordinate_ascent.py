"""Coordinate Ascent: a linear ranker that optimises the measure itself, one weight at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.evaluation import Evaluator
from letor.rankers.array_ranker import LinearRanker, linear_scores
from letor.rankers.base import Ranges

# Changes of a weight that are tried, as shares of the sum of all absolute weights.
_STEPS = np.array([0.01, 0.03, 0.1, 0.3, 1.0])


@dataclass(eq=False, repr=False)
class CoordinateAscent(LinearRanker):
    """Column weights, changed one at a time as long as the measure on the training rows improves.

    A sweep visits the columns in random order; the best of ten changes is kept if it improves the
    measure. The results of all starts compete on the validation rows or, without them, on the
    training rows.

    Args:
        n_restarts: number of starts: the first with equal weights, the others with random ones.
        n_sweeps: maximum number of sweeps per start.
        tolerance: a start ends when a sweep improves the measure by less than this.
        measure: the measure to optimise, a name that ``letor.measures.parse_measure`` knows.
        normalise: ``none``, ``minmax``, ``zscore``, ``raw+zscore`` or ``standard``.
        seed: seed of the order of columns and of the random starts.

    Source: Metzler, Croft, "Linear feature-based models for information retrieval", Information
    Retrieval 10, 2007, section 4.2.
    """

    name: ClassVar[str] = "coordinate-ascent"
    ranges: ClassVar[Ranges] = {
        "n_restarts": (1, 1000),
        "n_sweeps": (1, 10_000),
        "tolerance": (0.0, 1.0),
        "seed": (0, 2**31 - 1),
    }

    n_restarts: int = 2
    n_sweeps: int = 10
    tolerance: float = 0.001
    measure: str = "ndcg@10"
    normalise: str = "minmax"
    seed: int = 0

    def _learn(self, train: RankingData, valid: RankingData | None) -> None:
        columns = np.ascontiguousarray(train.X.T, dtype=np.float64)
        evaluator = self._evaluator(train)
        held_out = None if valid is None else self._evaluator(valid)
        best, best_weights, curve = -1.0, np.zeros(len(columns)), []
        for restart in range(self.n_restarts):
            rng = np.random.default_rng([self.seed, restart])
            weights = np.ones(len(columns)) if restart == 0 else rng.normal(size=len(columns))
            weights, value = self._climb(columns, weights / np.abs(weights).sum(), evaluator, rng)
            if valid is not None and held_out is not None:
                value = held_out.mean(linear_scores(valid.X, weights))
                curve.append(value)
            self._finished(restart + 1, curve[-1] if curve else None)
            if value > best:
                best, best_weights = value, weights
        self._model = {"weights": best_weights}
        self.validation_curve_ = curve

    def _climb(
        self,
        columns: NDArray[np.float64],
        weights: NDArray[np.float64],
        evaluator: Evaluator,
        rng: np.random.Generator,
    ) -> tuple[NDArray[np.float64], float]:
        """Weights after the sweeps that improve the measure by ``tolerance``, and the measure."""
        changes = np.concatenate([_STEPS, -_STEPS])
        scores = weights @ columns
        value = evaluator.mean(scores)
        for _ in range(self.n_sweeps):
            before = value
            for j in rng.permutation(len(columns)):
                values = [evaluator.mean(scores + change * columns[j]) for change in changes]
                i = int(np.argmax(values))
                if values[i] > value:
                    value = values[i]
                    weights[j] += changes[i]
                    total = np.abs(weights).sum()
                    weights = weights / (total if total > 0 else 1.0)
                    scores = weights @ columns
            if value - before < self.tolerance:
                break
        return weights, value
