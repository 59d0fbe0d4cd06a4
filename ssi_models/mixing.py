"""Mixing two scores by a factor that labels of other queries choose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models.representation import CachedDocuments
from ssi_models.training.held_out import sample_triples
from ssi_models.training.preferences import Preferences

ALPHAS = tuple(round(0.05 * i, 2) for i in range(21))
N_TRIPLES = 20_000

PairScores = Callable[
    [NDArray[np.int64], NDArray[np.int64]], tuple[NDArray[np.float32], NDArray[np.float32]]
]


def rank_loss(positive: NDArray[np.floating], negative: NDArray[np.floating]) -> float:
    """Share of (d+, d-) pairs that are ordered wrongly; ties count half."""
    wrong = np.mean(positive < negative) + 0.5 * np.mean(positive == negative)
    return float(wrong)


def best_mixture(
    scores: PairScores,
    preferences: Preferences,
    candidates: NDArray[np.int64],
    alphas: Sequence[float],
    seed: int,
    excluded: NDArray[np.int64] | None = None,
) -> float:
    """The alpha for which alpha a + (1 - alpha) b has the lowest rank loss on training triples.

    Args:
        scores: gives the scores a and b of (query rows, document rows).
        preferences, candidates, excluded: what triples are drawn from.
    """
    query, positive, negative = sample_triples(preferences, candidates, N_TRIPLES, seed, excluded)
    a_positive, b_positive = scores(query, positive)
    a_negative, b_negative = scores(query, negative)
    losses = [
        rank_loss(
            alpha * a_positive + (1 - alpha) * b_positive,
            alpha * a_negative + (1 - alpha) * b_negative,
        )
        for alpha in alphas
    ]
    return alphas[int(np.argmin(losses))]


def choose_alpha(
    model: Any,
    Q: sp.csr_matrix,
    D: sp.csr_matrix,
    preferences: Preferences,
    candidates: NDArray[np.int64],
    excluded: NDArray[np.int64] | None,
) -> None:
    """Set ``model.alpha_`` [1], by which a fitted model mixes two scores (1 and 0 are each of them
    alone), by :func:`best_mixture`."""

    def scores(
        query: NDArray[np.int64], document: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        out = []
        for alpha in (1.0, 0.0):
            model.alpha_ = np.array([alpha], np.float32)
            out.append(CachedDocuments(model, D).pairs(Q, query, document))
        return out[0], out[1]

    alpha = best_mixture(scores, preferences, candidates, ALPHAS, model.seed, excluded)
    model.alpha_ = np.array([alpha], np.float32)


@dataclass(frozen=True, eq=False)
class CrossValidatedMixture:
    """Scores alpha a + (1 - alpha) b whose factors were chosen on other queries.

    Attributes:
        scores: float64 [n_pairs].
        alphas: fold label -> the factor that its pairs were scored with.
    """

    scores: NDArray[np.float64]
    alphas: dict[int, float]


def cross_validated_mixture(
    a: NDArray[np.floating],
    b: NDArray[np.floating],
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    query_of_pair: ArrayLike,
    folds: ArrayLike,
    *,
    alphas: Sequence[float] = ALPHAS,
) -> CrossValidatedMixture:
    """Score each fold's queries with the factor of the highest mean measure on the other folds
    (2 folds in Gao, Toutanova, Yih, SIGIR 2011); ties go to the first factor.

    Args:
        a, b: scores of each pair [n_pairs].
        measure: takes scores [n_pairs], gives a value per query, float64 [n_queries].
        query_of_pair: int64 [n_pairs], position of the pair's query in the measure's result.
        folds: int64 [n_queries], a fold label per query.

    Raises:
        ValueError: fewer than two folds.
    """
    first, second = a.astype(np.float64), b.astype(np.float64)
    mixed = [alpha * first + (1 - alpha) * second for alpha in alphas]
    values = np.array([measure(scores) for scores in mixed])
    scores, chosen = np.zeros(len(first)), {}
    for label, best, rows in chosen_on_other_folds(values, query_of_pair, folds):
        chosen[label] = alphas[best]
        scores[rows] = mixed[best][rows]
    return CrossValidatedMixture(scores, chosen)


def chosen_on_other_folds(
    values: NDArray[np.float64], query_of_pair: ArrayLike, folds: ArrayLike
) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """For each fold the choice that is best on the other folds' queries; ties go to the first.

    Args:
        values: float64 [n_choices, n_queries].
        query_of_pair, folds: see :func:`cross_validated_mixture`.

    Yields:
        The fold's label, the choice's row, and bool [n_pairs]: the pairs of the fold's queries.

    Raises:
        ValueError: fewer than two folds.
    """
    fold_of_query = np.asarray(folds)
    labels = np.unique(fold_of_query)
    if len(labels) < 2:
        raise ValueError(f"cross-validation needs two folds or more, got {labels.tolist()}")
    fold_of_pair = fold_of_query[np.asarray(query_of_pair)]
    for label in labels.tolist():
        best = int(values[:, fold_of_query != label].mean(axis=1).argmax())
        yield label, best, fold_of_pair == label
