"""Mixtures of two scores, with a factor chosen by the labels of other queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
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
    """Share of (d+, d-) pairs that are ordered wrongly; ties count half. 0 if there are none."""
    if not len(positive):
        return 0.0
    return float(np.mean(positive < negative) + 0.5 * np.mean(positive == negative))


def best_mixture(
    scores: PairScores,
    preferences: Preferences,
    candidates: NDArray[np.int64],
    alphas: Sequence[float],
    seed: int,
    excluded: NDArray[np.int64] | None = None,
) -> float:
    """The alpha for which alpha a + (1 - alpha) b has the lowest rank loss on training triples; the
    first of equally good ones, also where there is no triple, as all candidates are relevant.

    Args:
        scores: returns the scores a and b of (query rows, document rows).
        preferences, candidates, excluded: what the triples are drawn from.
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


def choose_alpha(model: Any, data: Any, preferences: Preferences) -> None:
    """Set ``model.alpha_`` [1], the factor with which a fitted model mixes two scores (1 and 0 give
    one of them alone), by :func:`best_mixture` of training pairs of the data, which have Q, D,
    candidates and excluded documents."""

    def scores(
        query: NDArray[np.int64], document: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        out = []
        for alpha in (1.0, 0.0):
            model.alpha_ = np.array([alpha], np.float32)
            out.append(CachedDocuments(model, data.D).pairs(data.Q, query, document))
        return out[0], out[1]

    pool, excluded = data.candidates, data.excluded
    alpha = best_mixture(scores, preferences, pool, ALPHAS, model.seed, excluded)
    model.alpha_ = np.array([alpha], np.float32)


def chosen_by_others(values: ArrayLike, folds: ArrayLike) -> dict[int, int]:
    """For each fold, the choice (of a factor, of weights) with the highest mean on the queries of
    the other folds (2 folds in Gao, Toutanova, Yih, SIGIR 2011); ties go to the first choice.

    Args:
        values: float64 [n_choices, n_queries], a measure of each query by each choice.
        folds: int64 [n_queries], a fold label per query.

    Returns:
        The number of the choice by fold label, ascending.

    Raises:
        ValueError: fewer than two folds.
    """
    measured, fold = np.asarray(values), np.asarray(folds)
    labels = np.unique(fold)
    if len(labels) < 2:
        raise ValueError(f"cross-validation needs two folds or more, got {labels.tolist()}")
    return {
        label: int(measured[:, fold != label].mean(axis=1).argmax()) for label in labels.tolist()
    }
