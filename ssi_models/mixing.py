"""Mixing two scores by a factor that the training labels choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ssi_models.preferences import Preferences
from ssi_models.validation import sample_triples

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
) -> float:
    """The alpha for which alpha a + (1 - alpha) b has the lowest rank loss on training triples.

    Args:
        scores: gives the scores a and b of (query rows, document rows).
        preferences, candidates: what triples are drawn from.
    """
    query, positive, negative = sample_triples(preferences, candidates, N_TRIPLES, seed)
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
