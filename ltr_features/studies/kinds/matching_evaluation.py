"""How well a model ranks: rank loss on triples, MAP and P@10, with standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr_features.studies.kinds.matching_tasks import Task
from ssi_models.base import MatchingModel

_BLOCK = 512  # queries scored at a time


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Measures of a model on a task.

    Attributes:
        queries: int64 [m], the test queries.
        average_precision, precision_at_10: float64 [m]; of documents with equal scores the
            irrelevant ones come first.
        rank_loss: share of the triples that are ordered wrongly; ties count half.
        rank_loss_error: its standard error over queries (triples of one query are not independent).
    """

    queries: NDArray[np.int64]
    average_precision: NDArray[np.float64]
    precision_at_10: NDArray[np.float64]
    rank_loss: float
    rank_loss_error: float

    def means(self) -> dict[str, float]:
        """Every measure and its standard error."""
        root = np.sqrt(len(self.queries))
        return {
            "rank_loss": self.rank_loss,
            "rank_loss_error": self.rank_loss_error,
            "map": float(self.average_precision.mean()),
            "map_error": float(self.average_precision.std(ddof=1) / root),
            "p10": float(self.precision_at_10.mean()),
            "p10_error": float(self.precision_at_10.std(ddof=1) / root),
        }


def evaluate(model: MatchingModel, task: Task) -> Evaluation:
    """Rank the task's database for its test queries."""
    cached = model.cache(task.D)
    query, positive, negative = task.triples
    queries = np.union1d(task.asked, query)
    wrong = np.empty(len(query))
    precision = np.empty((len(task.asked), 2))
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        scores = cached.scores(task.Q[block], excluded=task.excluded[block])
        at = np.flatnonzero((query >= block[0]) & (query <= block[-1]))
        row = np.searchsorted(block, query[at])
        difference = scores[row, positive[at]] - scores[row, negative[at]]
        wrong[at] = np.where(difference == 0, 0.5, difference < 0)
        for i, asked in enumerate(block):
            place = np.searchsorted(task.asked, asked)
            if place < len(task.asked) and task.asked[place] == asked:
                precision[place] = _precisions(task, asked, scores[i])
    deviation = np.bincount(query, wrong - wrong.mean(), minlength=task.Q.shape[0])
    return Evaluation(
        task.asked,
        precision[:, 0],
        precision[:, 1],
        float(wrong.mean()),
        float(np.sqrt((deviation**2).sum()) / len(wrong)),
    )


def ranked_documents(task: Task, query: int) -> NDArray[np.bool_]:
    """bool [n]: the documents that are ranked for a query: the database without the document that
    the query was made of and without the known answers."""
    ranked = np.zeros(task.D.shape[0], np.bool_)
    ranked[task.database] = True
    first, last = np.searchsorted(task.known_query, [query, query + 1])
    ranked[task.known_document[first:last]] = False
    if task.excluded[query] >= 0:
        ranked[task.excluded[query]] = False
    return ranked


def ranks_of_relevant(task: Task, query: int, scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Ranks (from 1, ascending) of the relevant documents of a test query.

    Args:
        scores: float32 [n], of all documents.
    """
    relevant = np.zeros(len(scores), np.bool_)
    relevant[task.test.document[slice(*task.test.offsets[query : query + 2])]] = True
    rows = np.flatnonzero(ranked_documents(task, query))
    order = np.lexsort((relevant[rows], -scores[rows]))
    return np.flatnonzero(relevant[rows][order]) + 1


def _precisions(task: Task, query: int, scores: NDArray[np.float32]) -> tuple[float, float]:
    """Average precision and P@10 of a test query."""
    ranks = ranks_of_relevant(task, query, scores)
    if not len(ranks):
        return 0.0, 0.0
    precision = np.arange(1, len(ranks) + 1) / ranks
    return float(precision.mean()), float((ranks <= 10).sum() / 10)
