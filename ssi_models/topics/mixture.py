"""The two-level mixture of language models, and the choice of its weights by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssi_models.mixing import chosen_on_other_folds

#: Weights that are compared where the caller names none.
WEIGHTS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_TINY = 1e-12  # the probability of a word where every part of the mixture gives 0


@dataclass(frozen=True, eq=False)
class TermProbabilities:
    """What the parts of the mixture give each query term of each pair.

    Attributes:
        offsets: int64 [n_pairs + 1]; pair i owns terms ``offsets[i]:offsets[i + 1]``.
        counts: float32 [n_terms], n(w, q).
        background, unigram, model: float64 [n_terms]: P(w|C), n(w, d) / |d|, and P(w|d) of the
            topic or translation model.
    """

    offsets: NDArray[np.int64]
    counts: NDArray[np.float32]
    background: NDArray[np.float64]
    unigram: NDArray[np.float64]
    model: NDArray[np.float64]

    def mixed(self, lambda1: float, lambda2: float) -> NDArray[np.float64]:
        """P(w|d) = l1 P(w|C) + (1 - l1) (l2 P_uni(w|d) + (1 - l2) P_model(w|d)): float64 [n_terms]
        (Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search",
        eq. 15, 16)."""
        document = lambda2 * self.unigram + (1 - lambda2) * self.model
        return lambda1 * self.background + (1 - lambda1) * document

    def log_likelihood(self, lambda1: float, lambda2: float) -> NDArray[np.float64]:
        """float64 [n_pairs]: log P(q|d) / |q| under the mixture, see :meth:`mean_log`."""
        return self.mean_log(self.mixed(lambda1, lambda2))

    def mean_log(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean log probability per query term, see :func:`log_of`; 0 for a query without words."""
        n_pairs = len(self.offsets) - 1
        owner = np.repeat(np.arange(n_pairs), np.diff(self.offsets))
        logs = self.counts * log_of(probabilities)
        sums = np.bincount(owner, logs, minlength=n_pairs)
        return sums / np.maximum(np.bincount(owner, self.counts, minlength=n_pairs), _TINY)


def log_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithms; probabilities below 1e-12 count as 1e-12."""
    return np.log(np.maximum(probabilities, _TINY))


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Scores by mixtures whose weights were chosen on other queries.

    Attributes:
        scores: float64 [n_pairs].
        weights: fold label -> (lambda1, lambda2) that its pairs were scored with.
    """

    scores: NDArray[np.float64]
    weights: dict[int, tuple[float, float]]


def tune(
    probabilities: TermProbabilities,
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    queries: ArrayLike | None = None,
    *,
    lambda1: Sequence[float] = WEIGHTS,
    lambda2: Sequence[float] = WEIGHTS,
) -> tuple[float, float]:
    """The weights of the grid with the highest mean measure; ties go to the first.

    Args:
        measure: takes scores [n_pairs], gives a value per query, float64 [n_queries].
        queries: positions in the measure's result that count; all by default.
    """
    best = best_of(measured(probabilities, measure, lambda1, lambda2), queries)
    return list(product(lambda1, lambda2))[best]


def cross_validate(
    probabilities: TermProbabilities,
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    query_of_pair: ArrayLike,
    folds: ArrayLike,
    *,
    lambda1: Sequence[float] = WEIGHTS,
    lambda2: Sequence[float] = WEIGHTS,
) -> CrossValidated:
    """Score each fold's queries with the weights that are best on the other folds (2 in the
    paper).

    Args:
        measure: see :func:`tune`.
        query_of_pair: int64 [n_pairs], position of the pair's query in the measure's result.
        folds: int64 [n_queries], a fold label per query.

    Raises:
        ValueError: fewer than two folds.
    """
    table = measured(probabilities, measure, lambda1, lambda2)
    grid = list(product(lambda1, lambda2))
    scores, weights = np.zeros(len(probabilities.offsets) - 1), {}
    for label, best, rows in chosen_on_other_folds(table, query_of_pair, folds):
        weights[label] = grid[best]
        scores[rows] = probabilities.log_likelihood(*grid[best])[rows]
    return CrossValidated(scores, weights)


def measured(
    probabilities: TermProbabilities,
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    lambda1: Sequence[float],
    lambda2: Sequence[float],
) -> NDArray[np.float64]:
    """The measure per weights of the grid and query: float64 [grid, n_queries]."""
    return np.array(
        [measure(probabilities.log_likelihood(a, b)) for a, b in product(lambda1, lambda2)]
    )


def best_of(table: NDArray[np.float64], queries: ArrayLike | None) -> int:
    """The row with the highest mean over the given columns."""
    chosen = table if queries is None else table[:, np.asarray(queries)]
    return int(chosen.mean(axis=1).argmax())
