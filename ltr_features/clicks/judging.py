"""Judgements from clicks: grades with a minimum of evidence, weighted pairs, propensities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import chdtrc

from letor.dataset import RankingData
from letor.document_ids import needed_ids
from letor.errors import InputError
from ltr_features.clicks.base import Array, ClickModel
from ltr_features.clicks.log import ClickLog
from ltr_features.parameters import check_range
from ltr_features.text.id_rows import rows_of

#: The grade of pairs with too little evidence.
UNJUDGED = -1
#: A p-value from which on differences between pairs are called chance.
CHANCE = 0.05


@dataclass(frozen=True)
class ClickJudgements:
    """Judgements of the pairs of a log by a click model.

    Pairs that are not better than average get grade 0, others the nearest of ``n_grades`` equally
    spaced values from there to ``scale``. Users also click on what is not relevant: if grades began
    at relevance 0, most results that were ever shown would count as relevant, so that measures
    would reward the ranking that showed them.

    Attributes:
        model: a fitted click model.
        min_evidence: number of examinations (estimates may be fractional) that a pair needs; > 0.
        n_grades: number of grades, 2 or more.
        scale: relevance of the best grade, in (0, 1]; None for the 99th percentile of the relevance
            of pairs with enough evidence.

    Raises:
        InputError: a value out of range, a model that is not fitted, or no pair with enough
            evidence.
    """

    model: ClickModel
    min_evidence: float = 10.0
    n_grades: int = 5
    scale: float | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.model, "log_"):
            raise InputError(f"{type(self.model).__name__} is not fitted: call fit first")
        check_grading(self.min_evidence, self.n_grades, self.scale)
        if not self.enough.any():
            best = float(self.model.evidence_.max())
            if best >= self.min_evidence:
                raise InputError(
                    f"the log does not determine the relevance of any pair with "
                    f"{self.min_evidence:g} examinations (no standard error is finite): fit the "
                    "model with a prior, take another one, or let the ranking vary"
                )
            raise InputError(
                f"no pair has {self.min_evidence:g} examinations, the most are {best:.1f}; lower "
                "min_evidence, or get more clicks"
            )
        if self.scale is not None and self.scale <= self.average:
            raise InputError(
                f"scale must be above {self.average:.4g}, the average relevance, up to which the "
                f"grade is 0; got {self.scale:g}"
            )

    @property
    def log(self) -> ClickLog:
        return self.model.log_

    @cached_property
    def enough(self) -> NDArray[np.bool_]:
        """bool [pairs]: which pairs have enough evidence and a finite standard error."""
        return (self.model.evidence_ >= self.min_evidence) & np.isfinite(
            self.model.relevance_error_
        )

    @property
    def best(self) -> float:
        """The relevance of the best grade."""
        if self.scale is not None:
            return self.scale
        return max(float(np.quantile(self.model.relevance_[self.enough], 0.99)), 1e-9)

    @property
    def average(self) -> float:
        """The relevance up to which the grade is 0: the mean of the pairs with enough evidence or,
        if it is lower, of all examinations. The former is high if only good results are shown
        often, the latter if a few frequent queries have good ones."""
        relevance, evidence = self.model.relevance_, self.model.evidence_
        return min(
            float(relevance[self.enough].mean()), float(np.average(relevance, weights=evidence))
        )

    @cached_property
    def grade(self) -> NDArray[np.int64]:
        """int64 [pairs]: 0 .. n_grades - 1, or -1 where there is too little evidence."""
        above, most = self.model.relevance_ - self.average, self.best - self.average
        share = np.clip(above / max(most, 1e-9), 0.0, 1.0)
        grade = np.floor((self.n_grades - 1) * share + 0.5).astype(np.int64)
        return np.where(self.enough, grade, UNJUDGED)

    @property
    def thin_queries(self) -> list[int]:
        """Rows of queries with fewer than two judged pairs, from which nothing can be learned."""
        judged = np.bincount(
            self.log.pair_query, weights=self.enough, minlength=len(self.log.query_ids)
        )
        return [int(row) for row in np.flatnonzero(judged < 2)]

    @property
    def remarks(self) -> list[str]:
        """The model's remarks, and one if relevance varies no more than by chance."""
        n, p = int(self.enough.sum()), self._chance
        if p < CHANCE:
            return list(self.model.remarks_)
        return [
            *self.model.remarks_,
            f"the relevance of the {n:,} pairs with enough evidence varies no more than by chance "
            f"(p = {p:.2f}): differences between their grades may mean nothing; get more clicks",
        ]

    @property
    def _chance(self) -> float:
        """p-value of Pearson's chi-squared test that all pairs with enough evidence are equally
        relevant; 0 if they cannot be told apart, such as those that are each alone at a position.

        If they are, they are clicked alike at the same position, by users of any click model. The
        estimates of a model could not be tested so: the prior draws them to each other. A pair
        loses a degree of freedom where it is all that was shown at its positions, which their
        rates are estimated from."""
        log = self.log
        shown, clicked = np.where(self.enough[log.result_pair], (log.shown, log.clicked), 0)
        at_position = np.maximum(log.by_position(shown), 1)
        rate = (log.by_position(clicked) / at_position)[log.result_position]
        variance = shown * rate * (1 - rate)
        own_share = shown / at_position[log.result_position]
        of_pair = log.by_pair(variance)
        varies = of_pair > 0
        if not varies.any():  # nobody clicked, or on everything
            return float(self.enough.sum() > 1)
        squares = log.by_pair(clicked - shown * rate)[varies] ** 2 / of_pair[varies]
        freedom = (1 - log.by_pair(variance * own_share)[varies] / of_pair[varies]).sum()
        if freedom < 1e-9:
            return 0.0
        least = max(freedom, 1.0)  # two pairs at several positions: the sum has one square
        return float(chdtrc(least, squares.sum() * least / freedom))

    def frame(self) -> pd.DataFrame:
        """A row per pair of the log: ``query``, ``document`` (ids), ``shown``, ``clicked`` (int64),
        ``evidence``, ``relevance``, ``standard_error`` (float64), ``grade`` (int64, -1: none)."""
        log = self.log
        queries = np.asarray(log.query_ids, dtype=object)
        documents = np.asarray(log.document_ids, dtype=object)
        return pd.DataFrame(
            {
                "query": queries[log.pair_query],
                "document": documents[log.pair_document],
                "shown": log.by_pair(log.shown).astype(np.int64),
                "clicked": log.by_pair(log.clicked).astype(np.int64),
                "evidence": self.model.evidence_,
                "relevance": self.model.relevance_,
                "standard_error": self.model.relevance_error_,
                "grade": self.grade,
            }
        )

    def label(self, data: RankingData) -> RankingData:
        """The rows of a LETOR data set whose pairs have a grade, labelled with it; queries and
        documents are matched by id, those of a log of texts also by the ids made from these.

        Raises:
            InputError: rows without document ids, or no row has a grade.
        """
        rows = _rows_of_pairs(self.log, data)
        has_row = rows >= 0
        grade = np.full(len(data), UNJUDGED, np.float32)
        grade[rows[has_row]] = self.grade[has_row]
        if not has_row.any():
            raise InputError("no row is in the log: do the ids of the log and of the rows agree?")
        if not (grade >= 0).any():
            raise InputError(
                f"none of the {int(has_row.sum()):,} rows in the log has enough evidence for a "
                "grade: get more clicks, or lower min_evidence"
            )
        return replace(data, y=grade, missing=None).select_rows(grade >= 0)


def check_grading(min_evidence: float, n_grades: int, scale: float | None) -> None:
    """Raise InputError for values that :class:`ClickJudgements` takes of no log."""
    if not (np.isfinite(min_evidence) and min_evidence > 0):
        raise InputError(f"min_evidence (--min-evidence) must be above 0, got {min_evidence}")
    if not (isinstance(n_grades, Integral) and 2 <= n_grades <= 1000):
        raise InputError(f"n_grades (--grades) must lie within 2 and 1000, got {n_grades}")
    if scale is not None and not 0 < scale <= 1:
        raise InputError(f"scale must be in (0, 1], got {scale}")


def click_rows(log: ClickLog, data: RankingData) -> RankingData:
    """Result pages as rows, for rankers that learn from raw clicks and correct for position bias
    (``LambdaMART(position_bias=True)``, ``XGBoostLambdaMART(lambdarank_unbiased=True)``): each page
    with a click and a skip becomes a query, as often as it was seen; labels are its clicks, 0 or 1,
    and ``positions`` are where its rows were shown.

    Args:
        log: a log with pages. data: rows of its (query, document) pairs, matched by ids; results
            without a row are left out.

    Raises:
        InputError: rows without document ids, or no page is left.
    """
    pages = log.needed_pages("click_rows")
    found = _rows_of_pairs(log, data)[pages.pair]
    usable = found >= 0
    starts = pages.offsets[:-1]
    n_clicks = np.add.reduceat((usable & pages.click).astype(np.int64), starts)
    n_skips = np.add.reduceat((usable & ~pages.click).astype(np.int64), starts)
    times = np.where((n_clicks > 0) & (n_skips > 0), pages.count, 0)
    shown = np.repeat(np.arange(len(pages)), times)
    sizes = np.diff(pages.offsets)[shown]
    ends = np.cumsum(sizes)
    row = np.arange(int(sizes.sum())) + np.repeat(starts[shown] - (ends - sizes), sizes)
    index = np.repeat(np.arange(len(shown)), sizes)
    row, index = row[usable[row]], index[usable[row]]
    if not len(row):
        raise InputError("no page has a click and a skip on rows of the data: do the ids agree?")
    return RankingData(
        data.X[found[row]],
        pages.click[row].astype(np.float32),
        [f"page{number + 1}" for number in range(len(shown))],
        index,
        list(data.column_names),
        positions=pages.position[row],
    )


def _rows_of_pairs(log: ClickLog, data: RankingData) -> NDArray[np.int64]:
    """int64 [pairs]: the data row of each pair of the log, matched by ids; -1 for none."""
    ids = needed_ids(data, "by which their clicks are found")
    query = log.rows_of_queries(data.query_ids)[data.query_index]
    document = rows_of(map(str, ids), log.document_ids)
    pair = log.rows_of_pairs(query, document)
    rows = np.full(log.n_pairs, -1)
    rows[pair[pair >= 0]] = np.flatnonzero(pair >= 0)
    return rows


def inverse_propensity(examination: Array, *, largest: float = 100.0) -> Array:
    """float64 [positions]: 1 / examination, the weight of a click at each position that makes up
    for users who did not look; at most ``largest``, since rare clicks with huge weights are noise
    (clipping: Joachims, Swaminathan, Schnabel, WSDM 2017, section 4). 0 where examination is NaN.

    Raises:
        InputError: an examination outside [0, 1], or ``largest`` below 1.
    """
    check_range("largest", largest, 1)
    known = np.isfinite(examination)
    if (examination[known] < 0).any() or (examination[known] > 1).any():
        raise InputError("examination must lie within 0 and 1")
    weight = 1 / np.maximum(np.where(known, examination, 1.0), 1 / largest)
    return np.where(known, weight, 0.0)


@dataclass(frozen=True)
class WeightedPairs:
    """Pairs that are good by their clicks, with weights for matching models.

    Attributes:
        query, document: int64 [n], rows of the log's queries and documents, ascending.
        weight: float32 [n], above 0, with mean 1.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    weight: NDArray[np.float32]


def weighted_pairs(
    judgements: ClickJudgements, *, errors_above: float = 1.0, largest: float = 100.0
) -> WeightedPairs:
    """Pairs that are likely better than the average shown result, weighted by their clicks, each
    divided by the examination of its position: the expected clicks if all users looked at all
    results (Joachims, Swaminathan, Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM
    2017, equation 4).

    After enough sessions nearly every result has been clicked by somebody. So only clicked pairs
    with enough evidence are taken whose relevance is above the mean over all examinations of the
    log by ``errors_above`` standard errors; by chance, about one in six results of average
    relevance is above it by one standard error, one in 44 by two.

    Args:
        errors_above: number of standard errors; minus infinity takes every clicked pair.
        largest: upper bound of the weights of clicks, see :func:`inverse_propensity`.

    Raises:
        InputError: ``errors_above`` is not a number; no pair is left.
    """
    if np.isnan(errors_above):
        raise InputError("errors_above must be a number, got nan")
    log, model = judgements.log, judgements.model
    weight = inverse_propensity(model.examination_, largest=largest)
    clicks = log.by_pair(log.clicked * weight[log.result_position])
    known = judgements.enough & (clicks > 0)
    mean = np.average(model.relevance_, weights=model.evidence_)
    with np.errstate(invalid="ignore"):  # infinity times 0
        better = model.relevance_ - errors_above * model.relevance_error_ > mean
    chosen = np.flatnonzero(known & (better | (errors_above == -np.inf)))
    if not len(chosen):
        raise InputError(
            f"of {int(known.sum()):,} clicked pairs with enough evidence none is better than the "
            f"average result by its standard error times {errors_above:g}: get more clicks, or "
            "lower errors_above of weighted_pairs"
        )
    value = clicks[chosen] / clicks[chosen].mean()
    return WeightedPairs(
        log.pair_query[chosen], log.pair_document[chosen], value.astype(np.float32)
    )


def describe(judgements: ClickJudgements) -> dict[str, Any]:
    """Counts and settings of the judgements; JSON-compatible."""
    grades = judgements.grade[judgements.grade >= 0]
    return {
        "queries": len(judgements.log.query_ids),
        "queries with fewer than two judged documents": len(judgements.thin_queries),
        "pairs": judgements.log.n_pairs,
        "pairs with enough evidence": int(judgements.enough.sum()),
        "minimum of evidence": judgements.min_evidence,
        "relevance up to which the grade is 0": round(judgements.average, 6),
        "relevance of the best grade": round(judgements.best, 6),
        "pairs by grade": np.bincount(grades, minlength=judgements.n_grades).tolist(),
    }
