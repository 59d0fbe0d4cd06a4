"""Rankings of a task's titles by a fitted model, with weights for each half of the test queries
tuned on the other half."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ltr_base.slices import slices
from ltr_features.studies.kinds.clickthrough_config import ClickthroughConfig
from ltr_features.studies.kinds.clickthrough_tasks import Task
from ssi_models.base import MatchingModel
from ssi_models.mixing import chosen_by_others
from ssi_models.projections.baselines import VSM
from ssi_models.topics.language_model import CachedTitles, LanguageModel

#: Number of pairs of a query and a title that are scored at a time.
_PAIRS = 2**22


class NDCG:
    """NDCG of rankings of all documents, per query.

    Gain 2^grade - 1, discount 1 / log2(rank + 1); unjudged documents have grade 0, queries without
    relevant documents NDCG 0; equal scores (to 1e-10) are ordered by document row.

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
        """float64 [n_queries, cutoffs] for scores, float64 [n_queries, n_documents]."""
        key = scores - 1e-10 * np.arange(self._gain.shape[1])
        best = np.argpartition(-key, self._depth - 1, axis=1)[:, : self._depth]
        order = np.argsort(-np.take_along_axis(key, best, axis=1), axis=1, kind="stable")
        ranked = np.take_along_axis(best, order, axis=1)
        gained = self._sums(np.take_along_axis(self._gain, ranked, axis=1))
        return np.divide(gained, self._ideal, out=np.zeros_like(gained), where=self._ideal > 0)

    def _sums(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.cumsum(gains * self._discount, axis=1)
        return sums[:, np.minimum(self.cutoffs, self._depth) - 1]


def ranked(
    model: MatchingModel, task: Task, mixed: bool, config: ClickthroughConfig
) -> tuple[pd.DataFrame, list[list[float]]]:
    """Rank all titles for the test queries, some queries at a time.

    Args:
        mixed: whether to mix the model with word matching. config: has the weights to try.

    Returns:
        NDCG per query (rows) and cutoff; and the weights with which each half was scored: (lambda1,
        lambda2), or the weight of the tf-idf cosine, or none.
    """
    m, n = task.T.shape[0], task.D.shape[0]
    language = isinstance(model, LanguageModel)
    weights, scores = (_of_language_model if language else _of_rows)(model, task, mixed, config)
    values = np.empty((len(weights), m, len(config.cutoffs)))
    for rows in slices(m, _PAIRS // n):
        asked = (task.query >= rows.start) & (task.query < rows.stop)
        judged = task.query[asked] - rows.start, task.document[asked], task.grade[asked]
        ndcg = NDCG(min(rows.stop, m) - rows.start, n, *judged, config.cutoffs)
        own = np.flatnonzero(task.source[rows] >= 0)
        for found, of_weight in zip(values, scores(rows), strict=True):
            of_weight[own, task.source[rows][own]] = -np.inf
            found[rows] = ndcg.all(of_weight)
    best = chosen_by_others(values[:, :, -1], task.half)
    row = np.array([best[half] for half in task.half.tolist()])
    table = pd.DataFrame(values[row, np.arange(m)], columns=list(config.measures))
    table.insert(0, "query", task.query_ids)
    return table, [weights[i] for i in best.values() if weights[i]]


#: Weights to try, and the scores by each of them of the queries of a slice with all titles, float64
#: [m, n].
_Mixtures: TypeAlias = tuple[list[list[float]], Callable[[slice], Iterator[NDArray[np.float64]]]]


def _of_language_model(
    model: MatchingModel, task: Task, mixed: bool, config: ClickthroughConfig
) -> _Mixtures:
    titles = model.cache(task.D)
    assert isinstance(titles, CachedTitles)
    n = task.D.shape[0]
    weights = [list(pair) for pair in product(config.lambda1, config.lambda2 if mixed else (0.0,))]

    def scores(rows: slice) -> Iterator[NDArray[np.float64]]:
        query = np.arange(task.T.shape[0])[rows]
        every = np.repeat(query, n), np.tile(np.arange(n), len(query))
        parts = titles.probabilities(task.T, *every)
        for pair in weights:
            yield parts.log_likelihood(*pair).reshape(len(query), n)

    return weights, scores


def _of_rows(
    model: MatchingModel, task: Task, mixed: bool, config: ClickthroughConfig
) -> _Mixtures:
    Q, T, D = task.matrices(model.inputs)
    own, words = model.cache(D), VSM().fit(Q, D, task.train).cache(D)

    def scores(rows: slice) -> Iterator[NDArray[np.float64]]:
        learned = own.scores(T[rows], excluded=task.source[rows]).astype(np.float64)
        if not mixed:
            yield learned
            return
        plain = words.scores(T[rows]).astype(np.float64)
        for alpha in config.weights:
            yield alpha * plain + (1 - alpha) * learned

    return [[alpha] for alpha in config.weights] if mixed else [[]], scores
