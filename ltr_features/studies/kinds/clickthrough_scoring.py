"""Test rankings of a fitted model: weights tuned on one half of the queries for the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ltr_features.studies.kinds.clickthrough_tasks import Task
from ssi_models.base import MatchingModel
from ssi_models.mixing import cross_validated_mixture
from ssi_models.projections.baselines import VSM
from ssi_models.topics.language_model import LanguageModel
from ssi_models.topics.mixture import cross_validate


@dataclass(frozen=True)
class Grids:
    """The weights that are tried, see :class:`clickthrough.config.ClickthroughConfig`."""

    lambda1: Sequence[float]
    lambda2: Sequence[float]
    weights: Sequence[float]


class NDCG:
    """NDCG of rankings of all documents, per query.

    Gain 2^grade - 1, discount 1 / log2(rank + 1); unjudged documents have grade 0, queries without
    relevant documents 0; equal scores (to 1e-10) go by ascending document row.

    Args:
        n_queries, n_documents: the shape of the scores.
        query, document, grade: int64 [n], the judgements.
    """

    def __init__(
        self,
        n_queries: int,
        n_documents: int,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        grade: NDArray[np.int64],
        cutoffs: Sequence[int],
    ) -> None:
        self.cutoffs = tuple(cutoffs)
        self._depth = min(max(cutoffs), n_documents)
        self._gain = np.zeros((n_queries, n_documents))
        self._gain[query, document] = 2.0**grade - 1
        self._discount = 1 / np.log2(np.arange(2, self._depth + 2))
        self._ideal = self._sums(-np.sort(-self._gain, axis=1)[:, : self._depth])

    def all(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [n_queries, cutoffs] of scores, float64 [n_queries, n_documents] or flat."""
        key = scores.reshape(self._gain.shape) - 1e-10 * np.arange(self._gain.shape[1])
        best = np.argpartition(-key, self._depth - 1, axis=1)[:, : self._depth]
        order = np.argsort(-np.take_along_axis(key, best, axis=1), axis=1, kind="stable")
        ranked = np.take_along_axis(best, order, axis=1)
        gained = self._sums(np.take_along_axis(self._gain, ranked, axis=1))
        return np.divide(gained, self._ideal, out=np.zeros_like(gained), where=self._ideal > 0)

    def last(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [n_queries] at the last cutoff."""
        return self.all(scores)[:, -1]

    def _sums(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.cumsum(gains * self._discount, axis=1)
        return sums[:, np.minimum(self.cutoffs, self._depth) - 1]


def ranked(
    model: MatchingModel, task: Task, mixed: bool, grids: Grids, cutoffs: Sequence[int]
) -> tuple[pd.DataFrame, list[list[float]]]:
    """Rank all titles for the test queries.

    Returns:
        NDCG per query (rows) and cutoff; the weights that each half was scored with: (lambda1,
        lambda2), or the weight of the tf-idf cosine, or none.
    """
    m, n = task.T.shape[0], task.D.shape[0]
    ndcg = NDCG(m, n, task.query, task.document, task.grade, cutoffs)
    query = np.repeat(np.arange(m), n)
    Q, T, D = task.matrices(model.inputs)
    chosen: list[list[float]] = []
    if isinstance(model, LanguageModel):
        parts = model.probabilities(T, D, query, np.tile(np.arange(n), m))
        lambda2 = grids.lambda2 if mixed else (0.0,)
        found = cross_validate(
            parts, ndcg.last, query, task.half, lambda1=grids.lambda1, lambda2=lambda2
        )
        scores, chosen = found.scores, [list(pair) for pair in found.weights.values()]
    else:
        scores = model.cache(D).scores(T).astype(np.float64).ravel()
        if mixed:
            plain = VSM().fit(Q, D, task.train).cache(D).scores(T).ravel()
            mixture = cross_validated_mixture(
                plain, scores, ndcg.last, query, task.half, alphas=grids.weights
            )
            scores, chosen = mixture.scores, [[alpha] for alpha in mixture.alphas.values()]
    values = pd.DataFrame(ndcg.all(scores), columns=[f"NDCG@{k}" for k in cutoffs])
    values.insert(0, "query", task.query_ids)
    return values, chosen
