"""Mixtures of two scores, with a factor chosen by the labels of other queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ssi_models.representation import CachedDocuments
from ssi_models.training.held_out import sample_triples
from ssi_models.training.preferences import Preferences

C = TypeVar("C")

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


def choose_alpha(
    model: Any,
    Q: sp.csr_matrix,
    D: sp.csr_matrix,
    preferences: Preferences,
    candidates: NDArray[np.int64],
    excluded: NDArray[np.int64] | None,
) -> None:
    """Set ``model.alpha_`` [1], the factor with which a fitted model mixes two scores (1 and 0 give
    one of them alone), by :func:`best_mixture`."""

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
class CrossValidated(Generic[C]):
    """Scores by mixtures that were chosen on other queries.

    Attributes:
        scores: float64 [n_pairs].
        choices: fold label -> the choice that its pairs were scored with.
    """

    scores: NDArray[np.float64]
    choices: dict[int, C]


def cross_validated(
    choices: Sequence[C],
    scores_of: Callable[[C], NDArray[np.float64]],
    measure: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    query_of_pair: ArrayLike,
    folds: ArrayLike,
) -> CrossValidated[C]:
    """Score each fold's queries with the choice that has the highest mean measure on the other
    folds (2 folds in Gao, Toutanova, Yih, SIGIR 2011); ties go to the first choice.

    Args:
        choices: the factors or weights to compare. scores_of: choice -> scores, float64 [n_pairs].
        measure: maps scores [n_pairs] to a value per query, float64 [n_queries].
        query_of_pair: int64 [n_pairs], position of the pair's query in the measure's result.
        folds: int64 [n_queries], a fold label per query.

    Raises:
        ValueError: fewer than two folds.
    """
    fold_of_query = np.asarray(folds)
    labels = np.unique(fold_of_query)
    if len(labels) < 2:
        raise ValueError(f"cross-validation needs two folds or more, got {labels.tolist()}")
    fold_of_pair = fold_of_query[np.asarray(query_of_pair)]
    values = np.array([measure(scores_of(choice)) for choice in choices])
    scores, chosen = np.zeros(len(fold_of_pair)), {}
    for label in labels.tolist():
        best = int(values[:, fold_of_query != label].mean(axis=1).argmax())
        chosen[label] = choices[best]
        rows = fold_of_pair == label
        scores[rows] = scores_of(choices[best])[rows]
    return CrossValidated(scores, chosen)
