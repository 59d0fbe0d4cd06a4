"""Evaluation of rankings by fully specified measures, see :mod:`letor.measures`.

A ranking is given by scores of judged rows, or by a run that qrels judge. The ideal ranking and the
number of relevant documents include documents known to have no row (``RankingData.missing``), such
as judged documents that a run did not retrieve.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor import rank_sums
from letor.dataset import RankingData
from letor.errors import InputError
from letor.frames import check_row_order
from letor.judged_runs import judged_rows
from letor.measures import Discount, Gain, MeasureDefinition, Ties, conventions, parse_measure

_EMPTY_VALUE = {"zero": 0.0, "one": 1.0, "skip": math.nan}
_NO_CUTOFF = np.iinfo(np.int64).max


class Evaluator:
    """One measure on fixed rows: labels are prepared once, for any number of score vectors.

    Relevant documents and queries known to have no row (``data.missing``) count: in the ideal
    ranking, in the number of relevant documents, and in the mean.

    Args:
        definition: the measure.
        data: rows with labels of 0 or more.

    Attributes:
        without_rows: float64 [r], the values of ``data.queries_without_rows``: 0, or as the empty
            rule says.
        n_empty: number of queries without relevant documents (NDCG: without gain).
        n_missing: number of relevant documents (NDCG: with gain) without a row.

    Raises:
        InputError: labels are negative or not finite, have no gain in the definition's tuple, or
            the tie rule needs document ids that the data lacks.
    """

    def __init__(self, definition: MeasureDefinition, data: RankingData) -> None:
        self.definition = definition
        self._offsets = data.offsets
        self._rows = _tie_order(definition.ties, data)
        self._sizes = data.group_sizes
        cutoff = definition.cutoff
        self._cutoff = _NO_CUTOFF if cutoff is None else cutoff
        judged = _Judged.of(data)
        _check_labels(judged.label)
        value = _values_of_labels(definition, judged.label)
        if definition.kind in ("ndcg", "mean_ndcg"):
            self._prepare_ideal(value, judged)
        self._value = value[: len(data)]
        n_relevant = np.bincount(judged.query, weights=value > 0, minlength=len(judged.sizes))
        with_rows, rest = np.split(n_relevant, [data.n_queries])
        self._relevant = with_rows.astype(np.int64)
        self.n_missing = int((value[len(data) :] > 0).sum())
        unjudged = frozenset() if data.missing is None else data.missing.unjudged
        self._unjudged = np.fromiter((q in unjudged for q in data.query_ids), dtype=bool)
        self.without_rows = np.where(rest > 0, 0.0, _EMPTY_VALUE[definition.empty])
        self.n_empty = int((with_rows[~self._unjudged] == 0).sum())
        self.n_empty += int((rest == 0).sum())

    def _prepare_ideal(self, value: NDArray[np.float64], judged: _Judged) -> None:
        """Rank the documents of each query with rows ideally, including those without a row."""
        m = len(self._sizes)
        sizes = judged.sizes[:m]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.argsort(judged.query, kind="stable")[: offsets[-1]]
        ideal = value[rank_sums.rank_rows(value, rows, offsets)]
        self._discounts = _discounts(self.definition.discount, int(sizes.max(initial=0)))
        self._best = rank_sums.dcg(ideal, offsets, self._discounts, self._cutoff)
        rank = np.arange(len(ideal)) - np.repeat(offsets[:-1], sizes)
        self._ideal = ideal[rank < np.repeat(self._sizes, sizes)]

    def per_query(self, scores: ArrayLike) -> NDArray[np.float64]:
        """float64 [m]: the value of each query in the order of ``data.query_ids``; NaN for queries
        that the empty rule leaves out or that are known to be unjudged.

        Args:
            scores: [n] in the order of the rows; larger is better.

        Raises:
            InputError: the number of scores differs from that of the rows, a score is NaN or no
                number, or the scores are a pandas Series with another index than 0, 1, ..., n - 1.
        """
        return self.of_ranking(self.rank(scores))

    def mean(self, scores: ArrayLike) -> float:
        """Mean over all queries that count, including those without rows; NaN if none does."""
        return mean_of(np.concatenate([self.per_query(scores), self.without_rows]))

    def rank(self, scores: ArrayLike) -> NDArray[np.int64]:
        """int64 [n]: row numbers grouped by query, best first."""
        check_row_order("scores", scores, len(self._rows))
        if np.ma.is_masked(scores):
            raise InputError("scores have masked values: each row needs a score")
        try:
            scores = np.asarray(scores, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"scores of rows must be {len(self._rows):,} numbers, in the order of the rows: "
                f"{error}; a run is judged by qrels"
            ) from None
        if self.definition.ties == "docid":
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        if scores.shape != self._rows.shape:
            raise InputError(f"scores have shape {scores.shape} for {len(self._rows)} rows")
        if np.isnan(scores).any():
            raise InputError(f"NaN scores: {int(np.isnan(scores).sum())}, the first in row "
                             f"{int(np.argmax(np.isnan(scores)))}")  # fmt: skip
        return rank_sums.rank_rows(scores, self._rows, self._offsets)

    def of_ranking(self, ranked: NDArray[np.int64]) -> NDArray[np.float64]:
        """Like ``per_query``, for a ranking returned by ``rank``."""
        result = self._computed(self._value[ranked])
        result[self._relevant == 0] = _EMPTY_VALUE[self.definition.empty]
        result[self._unjudged] = np.nan
        return result

    def _computed(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """The measure of each query, from the values of its documents in ranked order; undefined
        for queries without relevant documents."""
        definition, offsets, cutoff = self.definition, self._offsets, self._cutoff
        kind, relevant = definition.kind, np.maximum(self._relevant, 1)
        if kind == "ndcg":
            result = rank_sums.dcg(value, offsets, self._discounts, cutoff)
            result /= np.where(self._relevant == 0, 1.0, self._best)
            if definition.short == "zero":
                result[self._sizes < (definition.cutoff or 0)] = 0.0
            return result
        if kind == "mean_ndcg":
            return rank_sums.mean_ndcg(value, self._ideal, offsets, self._discounts)
        if kind == "ap":
            return rank_sums.average_precision(value > 0, offsets, relevant, cutoff)
        if kind == "err":
            return rank_sums.expected_reciprocal_rank(value, offsets, cutoff)
        count, first = rank_sums.hits(value > 0, offsets, cutoff)
        if kind == "rr":
            return np.where(first > 0, 1.0 / np.maximum(first, 1), 0.0)
        return count / (cutoff if kind == "precision" else relevant)


@dataclass(frozen=True, eq=False)
class _Judged:
    """All documents that measures count: those with a row, then those without.

    Attributes:
        label: float64 [n + k]. query: int64 [n + k], the position of each document's query in
            ``data.all_query_ids``.
        sizes: int64 [m + r], number of documents of each of these queries.
    """

    label: NDArray[np.float64]
    query: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, data: RankingData) -> _Judged:
        label, query = data.y.astype(np.float64), data.query_index
        ids = data.all_query_ids
        if data.missing is not None:
            position = {q: i for i, q in enumerate(ids)}
            lost = [
                (position[q], grade, count)
                for q, counts in data.missing.relevant.items()
                for grade, count in counts.items()
            ]
            queries, grades, counts = np.array(lost, dtype=np.int64).reshape(-1, 3).T
            label = np.concatenate([label, np.repeat(grades, counts)])
            query = np.concatenate([query, np.repeat(queries, counts)])
        return cls(label, query, np.bincount(query, minlength=len(ids)))


def evaluate(
    judged: RankingData | Any,
    ranking: ArrayLike | Any,
    measures: str | MeasureDefinition | Iterable[str | MeasureDefinition] = (
        "NDCG@10",
        "MAP",
        "P@10",
    ),
    *,
    ties: Ties | None = None,
) -> pd.DataFrame:
    """Evaluate a ranking for each query: scored rows, or a run judged by qrels.

    Args:
        judged: labelled rows; or qrels: a frame with columns ``qid``, ``docno`` and ``label``
            (whole numbers; below 1 = not relevant), a ``ranx.Qrels``, or ``{qid: {docno: label}}``.
        ranking: for rows, their scores [n], larger is better; for qrels, a run: a frame with
            columns ``qid``, ``docno`` and ``score``, a ``ranx.Run``, or ``{qid: {docno: score}}``.
        measures: names as in :func:`letor.measures.parse_measure`, or definitions; or a single one.
        ties: tie rule of the measures given by name; default: ``input`` for rows,
            ``docid-ascending`` for runs. Definitions have their own.

    Returns:
        Frame of float64 values in [0, 1] with index ``qid`` (strings) and a column per measure,
        named as given. For rows: the queries in order of first appearance, then
        ``queries_without_rows``. For qrels: all judged queries in order of first appearance; those
        without a row in the run have 0, and unjudged queries are left out. Values that an empty
        rule leaves out, or of queries known to be unjudged, are NaN, which pandas' ``mean`` skips.

    Raises:
        InputError: unknown measure, missing column, duplicate pair, label that is not a whole
            number, NaN score, a run that shares no query with the judgements, or scores of rows as
            a pandas Series with another index than 0, 1, ..., n - 1.
    """
    if isinstance(measures, str | MeasureDefinition):
        measures = [measures]
    measures = list(measures)
    if not measures:
        raise InputError("no measure was named")
    is_run = not isinstance(judged, RankingData)
    ties = ties or ("docid-ascending" if is_run else "input")
    definitions = [
        m if isinstance(m, MeasureDefinition) else replace(parse_measure(m), ties=ties)
        for m in measures
    ]
    queries = None
    if is_run:
        judged, ranking, queries = judged_rows(judged, ranking)
    values = pd.DataFrame(
        _values([Evaluator(d, judged) for d in definitions], ranking),
        index=pd.Index(judged.all_query_ids, name="qid"),
        columns=[m.name if isinstance(m, MeasureDefinition) else m for m in measures],
    )
    return values if queries is None else values.reindex(queries)


def side_by_side(
    data: RankingData,
    scores: ArrayLike,
    definitions: Sequence[MeasureDefinition] | None = None,
) -> pd.DataFrame:
    """Evaluate one ranking by many definitions (``conventions()`` by default).

    Returns:
        DataFrame with a row per definition and columns ``measure``, ``value`` (mean over queries),
        ``queries`` (how many the mean is over), ``empty`` (queries without relevant documents, or
        for NDCG without gain), ``missing`` (relevant documents without a row, which count; NA if
        ``data.missing`` is unknown: values are then too high if there are any), ``known_as`` and
        ``definition``.
    """
    definitions = conventions() if definitions is None else definitions
    if data.document_ids is None:
        definitions = [d for d in definitions if d.ties != "docid"]
    evaluators = [Evaluator(d, data) for d in definitions]
    values = _values(evaluators, scores)
    return pd.DataFrame(
        {
            "measure": [d.name for d in definitions],
            "value": [mean_of(column) for column in values.T],
            "queries": np.count_nonzero(~np.isnan(values), axis=0),
            "empty": [e.n_empty for e in evaluators],
            "missing": pd.array(
                [None if data.missing is None else e.n_missing for e in evaluators], dtype="Int64"
            ),
            "known_as": [d.known_as for d in definitions],
            "definition": [d.definition for d in definitions],
        }
    )


def measurable(
    definitions: Sequence[MeasureDefinition], labels: ArrayLike
) -> tuple[list[MeasureDefinition], dict[str, list[str]]]:
    """The definitions that the labels allow, and the names of the others by what is wrong: labels
    that are too large for an exponential gain do not keep P or MAP from being computed.

    Raises:
        InputError: the labels allow none.
    """
    allowed: list[MeasureDefinition] = []
    refused: dict[str, list[str]] = {}
    for definition in definitions:
        try:
            _values_of_labels(definition, np.asarray(labels, np.float64))
        except InputError as error:
            refused.setdefault(str(error), []).append(definition.name)
        else:
            allowed.append(definition)
    if not allowed:
        raise InputError(next(iter(refused)))
    return allowed, refused


def check_measurable(definitions: Iterable[MeasureDefinition], labels: ArrayLike) -> None:
    """Raise InputError if the labels do not allow one of the measures, naming it."""
    for definition in definitions:
        try:
            _values_of_labels(definition, np.asarray(labels, np.float64))
        except InputError as error:
            raise InputError(f"measure {definition.name}: {error}") from None


def mean_of(values: NDArray[np.float64]) -> float:
    """Mean of the values that are not NaN, in their order; NaN if there are none."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else math.nan


def _values(evaluators: Sequence[Evaluator], scores: ArrayLike) -> NDArray[np.float64]:
    """float64 [m + r, len(evaluators)]: all values; scores are sorted once per tie rule."""
    rankings: dict[str, NDArray[np.int64]] = {}
    columns = []
    for evaluator in evaluators:
        ties = evaluator.definition.ties
        if ties not in rankings:
            rankings[ties] = evaluator.rank(scores)
        values = evaluator.of_ranking(rankings[ties])
        columns.append(np.concatenate([values, evaluator.without_rows]))
    return np.column_stack(columns)


def _tie_order(ties: Ties, data: RankingData) -> NDArray[np.int64]:
    """int64 [n]: rows grouped by query and, within a query, in the order that ties keep."""
    if ties == "input":
        return data.order
    key: NDArray[Any]
    if ties in ("docid", "docid-ascending"):
        key = data.document_ranks if ties == "docid-ascending" else -data.document_ranks
    elif ties == "random":
        key = np.random.default_rng(0).random(len(data))
    else:
        key = data.y if ties == "worst" else -data.y
    return np.lexsort((key, data.query_index)).astype(np.int64)


def _values_of_labels(
    definition: MeasureDefinition, labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """float64 [n]: the gain of each label, the probability that it ends the search (err), or
    whether it is relevant."""
    if definition.kind in ("ndcg", "mean_ndcg"):
        return _gains(definition.gain, labels)
    if definition.kind != "err":
        return (labels >= definition.relevant_from).astype(np.float64)
    if labels.max(initial=0.0) > definition.top_label:
        raise InputError(
            f"label {labels.max():g} is above {definition.top_label}, the largest that ERR is "
            f"defined for: leave ERR out, map the labels to 0 to {definition.top_label}, or in "
            "Python give a MeasureDefinition with a larger top_label"
        )
    return (np.exp2(labels) - 1.0) / 2.0**definition.top_label


def _check_labels(labels: NDArray[np.float64]) -> None:
    bad = ~(labels >= 0) | np.isinf(labels)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"negative labels, or not finite: {int(bad.sum())} (row {row}: {labels[row]:g}); "
            "drop unjudged rows or set their label to 0 first"
        )


def _gains(gain: Gain, labels: NDArray[np.float64]) -> NDArray[np.float64]:
    if gain == "linear":
        return labels
    if gain == "exponential":
        if labels.max(initial=0.0) > 1000:
            raise InputError(
                f"label {labels.max():g} is too large for the exponential gain 2^label - 1: bin "
                "the labels, or take the label as gain, NDCG-linear@10 (--param measure=... of a "
                "ranker); labels of LETOR's '-list' files are positions, not grades"
            )
        return np.exp2(labels) - 1.0
    whole = labels.astype(np.int64)
    if np.any(whole != labels) or whole.max(initial=0) >= len(gain):
        raise InputError(f"gain is for labels 0 to {len(gain) - 1}, but labels go up to "
                         f"{labels.max(initial=0.0):g} or are not whole numbers")  # fmt: skip
    return np.asarray(gain, dtype=np.float64)[whole]


def _discounts(discount: Discount, length: int) -> NDArray[np.float64]:
    rank = np.arange(1, length + 1, dtype=np.float64)
    if discount == "log2":
        return 1.0 / np.log2(rank + 1.0)
    return 1.0 / np.maximum(np.log2(rank), 1.0)
