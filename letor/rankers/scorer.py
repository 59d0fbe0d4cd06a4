"""Ranking measures as scikit-learn scorers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning
from letor.evaluation import Evaluator
from letor.measures import choosing_measure, parse_measure
from letor.rankers.base import Ranker
from ltr_base.user_warning import warn_user


@dataclass(frozen=True)
class RankingScorer:
    """``scorer(estimator, X, y)``: mean over queries of a measure of the estimator's ranking, with
    equal scores in random order.

    The estimator is a ranker, a Pipeline that ends with one, a search over one, or anything whose
    ``predict`` gives scores.
    """

    measure: str
    qid: Any

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        qid = self._queries_of(X)
        data = RankingData.from_rows(np.empty((len(X), 0)), y, qid)
        scores = np.asarray(_scores(estimator, X, qid))  # in the order of X, whatever its index
        return Evaluator(choosing_measure(self.measure), data).mean(scores)

    def _queries_of(self, X: Any) -> Any:
        """The query of each row of X."""
        by_index = isinstance(self.qid, pd.Series) and hasattr(X, "index")
        if by_index and self.qid.index.is_unique:
            unknown = ~X.index.isin(self.qid.index)
            if unknown.any():
                raise InputError(f"qid has no entry for the row {X.index[unknown][0]} of X")
            queries = self.qid.loc[X.index]
            _warn_of_split_queries(self.qid, queries)
            return queries
        if len(self.qid) != len(X):
            advice = (
                "X must be a pandas DataFrame and qid a Series with its index (of an array: "
                "pd.DataFrame(X), pd.Series(qid))"
            )
            if by_index:
                advice = "the index of X and qid must have no label twice: frame.reset_index()"
            raise InputError(
                f"qid has {len(self.qid)} entries, X has {len(X)} rows: for parts of X, as in "
                f"cross-validation, {advice}"
            )
        return self.qid


def ranking_scorer(measure: str = "ndcg@10", qid: Any = None) -> RankingScorer:
    """A scorer for ``permutation_importance``, ``cross_val_score`` and the like.

    Args:
        measure: a name that ``letor.measures.parse_measure`` knows.
        qid: the query of each row of X; or a pandas Series with the index of a frame, so that X
            may be any queries of the frame.

    The scorer warns (LetorWarning) if X has some rows of a query, but not all: a search that splits
    queries between folds evaluates them on less than their candidates, and trains on the rest.

    Raises:
        InputError: the measure is unknown, or qid is not given.
    """
    parse_measure(measure)
    if qid is None:
        raise InputError("qid: give the query of each row; ranking measures are computed by query")
    return RankingScorer(measure, qid)


def _warn_of_split_queries(qid: pd.Series, of_part: pd.Series) -> None:
    """Warn if a part of a frame has some rows of a query, but not all."""
    sizes = of_part[~of_part.index.duplicated()].value_counts()
    of_all = qid.value_counts()[sizes.index]
    split = sizes < of_all
    if split.any():
        query = split.idxmax()
        warn_user(
            f"ranking_scorer: the part to score has {sizes[query]} of {of_all[query]} rows of the "
            f"query {query}: do not split queries, cv=GroupKFold(...) with groups=qid, or give "
            "qid without rows that are left out on purpose",
            LetorWarning,
        )


def _scores(estimator: Any, X: Any, qid: Any) -> Any:
    estimator = getattr(estimator, "best_estimator_", estimator)
    steps = getattr(estimator, "steps", None)
    if steps is not None:  # a Pipeline does not pass qid on to predict
        X = estimator[:-1].transform(X) if len(steps) > 1 else X
        estimator = estimator[-1]
    return estimator.predict(X, qid=qid) if isinstance(estimator, Ranker) else estimator.predict(X)
