"""Ranking measures whose definition is spelt out: the same ranking is worth 0.23, 0.50 or 0.78.

A ``MeasureDefinition`` names everything on which tools disagree: the gain of a label, the discount
of a rank, the cut-off, what a query without relevant documents and one with fewer documents than
the cut-off count, and how equal scores are ordered. ``evaluate`` prints one ranking under many
definitions side by side.

All measures here are over judged lists: the ideal ranking and the number of relevant documents
come from the rows of the query.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from letor.dataset import RankingData
from letor.errors import InputError
from letor.kernels import measures as kernels

Kind = Literal["ndcg", "mean_ndcg", "ap", "precision", "rr"]
Gain = Literal["exponential", "linear"] | tuple[float, ...]
Discount = Literal["log2", "letor"]
Empty = Literal["zero", "one", "skip"]
Short = Literal["pad", "zero"]
Ties = Literal["input", "docid", "worst", "best"]

_NAMES = {"ndcg": "NDCG", "mean_ndcg": "MeanNDCG", "ap": "MAP", "precision": "P", "rr": "MRR"}
_CHOICES = {
    "kind": tuple(_NAMES),
    "discount": ("log2", "letor"),
    "empty": ("zero", "one", "skip"),
    "short": ("pad", "zero"),
    "ties": ("input", "docid", "worst", "best"),
}
_NO_CUTOFF = np.iinfo(np.int64).max


@dataclass(frozen=True)
class MeasureDefinition:
    """One measure, with every choice on which tools disagree.

    Attributes:
        kind: ``ndcg``; ``mean_ndcg`` (NDCG@k averaged over k = 1 .. documents of the query); ``ap``
            (average precision); ``precision``; ``rr`` (reciprocal rank of the first relevant one).
        cutoff: ranks below it do not count; None for the whole list.
        gain: of label l: ``exponential`` 2^l - 1, ``linear`` l, or a tuple with the gain of labels
            0, 1, 2, ... (not decreasing).
        discount: ``log2``: 1 / log2(rank + 1); ``letor``: 1 at ranks 1 and 2, then 1 / log2(rank),
            as in the official LETOR scripts.
        empty: a query without relevant documents (NDCG: without gain) counts ``zero`` or ``one``
            in the mean, or is left out (``skip``).
        short: NDCG@k of a query with fewer than k documents: ``pad`` scores what is there; ``zero``
            counts 0, a quirk of the official LETOR scripts.
        relevant_from: least label that counts as relevant (ap, precision, rr).
        ties: order of documents with equal scores: ``input`` rows as they come (LETOR scripts,
            RankLib); ``docid`` descending document id (trec_eval); ``worst`` and ``best`` by
            label, the bounds between which every other rule lies.
        known_as: who computes the measure this way; for tables only.
    """

    kind: Kind
    cutoff: int | None = None
    gain: Gain = "exponential"
    discount: Discount = "log2"
    empty: Empty = "zero"
    short: Short = "pad"
    relevant_from: int = 1
    ties: Ties = "input"
    known_as: str = ""

    def __post_init__(self) -> None:
        for parameter, choices in _CHOICES.items():
            value = getattr(self, parameter)
            if value not in choices:
                raise InputError(f"{parameter}={value!r}: choose from {', '.join(choices)}")
        if self.cutoff is not None and self.cutoff < 1:
            raise InputError(f"cutoff={self.cutoff}: give a rank of 1 or more, or None")
        if self.kind == "mean_ndcg" and self.cutoff is not None:
            raise InputError(f"cutoff={self.cutoff}: MeanNDCG averages over all ranks, without one")
        if self.kind == "precision" and self.cutoff is None:
            raise InputError("precision needs a cutoff")
        if isinstance(self.gain, str):
            if self.gain not in ("exponential", "linear"):
                raise InputError(f"gain={self.gain!r}: choose exponential, linear or a tuple")
        elif any(a > b for a, b in zip(self.gain, self.gain[1:], strict=False)):
            raise InputError(f"gain={self.gain}: gains must not decrease with the label")

    @property
    def name(self) -> str:
        """Short name, such as NDCG@10."""
        return _NAMES[self.kind] + ("" if self.cutoff is None else f"@{self.cutoff}")

    @property
    def definition(self) -> str:
        """The whole definition in one line."""
        parts = [self.name]
        if self.kind in ("ndcg", "mean_ndcg"):
            named = {"exponential": "2^label - 1", "linear": "label"}
            gain = named[self.gain] if isinstance(self.gain, str) else f"{list(self.gain)}[label]"
            log2, letor = "1/log2(rank + 1)", "1 at ranks 1 and 2, then 1/log2(rank)"
            parts += [f"gain {gain}", f"discount {log2 if self.discount == 'log2' else letor}"]
            if self.kind == "ndcg" and self.short == "zero":
                parts.append(f"queries of fewer than {self.cutoff} documents count 0")
        else:
            parts.append(f"relevant from label {self.relevant_from}")
        empty = {"zero": "count 0", "one": "count 1", "skip": "are left out"}[self.empty]
        ties = {"input": "in input order", "docid": "by descending document id"}
        parts += [
            f"queries without relevant documents {empty}",
            f"ties {ties.get(self.ties, self.ties + ' case')}",
        ]
        return ", ".join(parts)


def parse_measure(text: str) -> MeasureDefinition:
    """A measure by name: ``ndcg@10``, ``meanndcg``, ``map``, ``p@5``, ``mrr``, ``map@100``.

    Without a prefix: exponential gain, discount 1/log2(rank + 1), empty queries count 0. A prefix
    chooses another convention: ``letor4:`` and ``mslr:`` the official scripts, ``linear:`` gain =
    label, ``one:`` and ``skip:`` the rule for empty queries.

    Raises:
        InputError: the text names no measure.
    """
    pattern = r"(?:(letor4|mslr|linear|one|skip):)?(ndcg|meanndcg|map|p|mrr)(?:@([1-9]\d*))?"
    match = re.fullmatch(pattern, text.strip().lower())
    if match is None:
        raise InputError(
            f"measure {text!r} is unknown: give ndcg@10, meanndcg, map, p@5 or mrr, with prefix "
            "letor4:, mslr:, linear:, one: or skip: for another convention"
        )
    prefix, word, cutoff = match.groups()
    kinds: dict[str, Kind] = {
        "ndcg": "ndcg", "meanndcg": "mean_ndcg", "map": "ap", "p": "precision", "mrr": "rr",
    }  # fmt: skip
    base = MeasureDefinition(kinds[word], int(cutoff) if cutoff else None)
    if prefix in ("letor4", "mslr"):
        return _official(base, prefix)
    choices: dict[str | None, MeasureDefinition] = {
        None: base,
        "linear": replace(base, gain="linear"),
        "one": replace(base, empty="one"),
        "skip": replace(base, empty="skip"),
    }
    return choices[prefix]


def _official(base: MeasureDefinition, script: str) -> MeasureDefinition:
    if script == "letor4":
        known_as, relevant_from = "LETOR 4.0 script", 1
    else:
        known_as, relevant_from = "MSLR script", 2
    return replace(
        base, discount="letor", short="zero", relevant_from=relevant_from, known_as=known_as
    )


def official_measures(script: Literal["letor4", "mslr"] = "letor4") -> list[MeasureDefinition]:
    """P@1-10, MAP, NDCG@1-10 and MeanNDCG of the official evaluation script, in its order.

    ``letor4`` is Eval-Score-4.0.pl (relevant = label 1 and above), ``mslr`` the script of
    MSLR-WEB10K and -WEB30K (the same formulas, relevant = label 2 and above).
    """
    ranks = range(1, 11)
    definitions = [
        *[MeasureDefinition("precision", k) for k in ranks],
        MeasureDefinition("ap"),
        *[MeasureDefinition("ndcg", k) for k in ranks],
        MeasureDefinition("mean_ndcg"),
    ]
    return [_official(d, script) for d in definitions]


def conventions(cutoff: int = 10) -> list[MeasureDefinition]:
    """The definitions that circulate in papers and tools, for ``evaluate`` side by side."""
    ndcg = MeasureDefinition("ndcg", cutoff, known_as="RankLib, ranx ndcg_burges")
    return [
        _official(ndcg, "letor4"),
        ndcg,
        replace(ndcg, empty="one", known_as="LightGBM, XGBoost, allRank"),
        replace(ndcg, empty="skip", known_as="empty queries dropped"),
        replace(ndcg, gain="linear", known_as="ranx ndcg"),
        replace(ndcg, gain="linear", ties="docid", known_as="trec_eval, ir_measures"),
        replace(ndcg, ties="worst", known_as="bound: ties against the ranker"),
        replace(ndcg, ties="best", known_as="bound: ties for the ranker"),
        _official(MeasureDefinition("mean_ndcg"), "letor4"),
        _official(MeasureDefinition("ap"), "letor4"),
        _official(MeasureDefinition("ap"), "mslr"),
        MeasureDefinition("ap", empty="skip", known_as="empty queries dropped"),
        _official(MeasureDefinition("precision", cutoff), "letor4"),
        MeasureDefinition("rr", known_as="ranx"),
    ]


class Evaluator:
    """One measure over fixed rows: labels are prepared once, then any number of score vectors.

    Args:
        definition: the measure.
        data: rows with labels of 0 or more.

    Raises:
        InputError: labels are negative or not finite, have no gain in the definition's tuple, or
            the tie rule needs document ids that the data lacks.
    """

    def __init__(self, definition: MeasureDefinition, data: RankingData) -> None:
        self.definition = definition
        self._offsets = data.offsets
        self._rows = _tie_order(definition.ties, data)
        self._sizes = data.group_sizes
        labels = data.y.astype(np.float64)
        _check_labels(labels)
        cutoff = definition.cutoff
        self._cutoff = _NO_CUTOFF if cutoff is None else cutoff
        if definition.kind in ("ndcg", "mean_ndcg"):
            self._value = _gains(definition.gain, labels)
            self._discounts = _discounts(definition.discount, int(self._sizes.max(initial=0)))
            best = kernels.rank_rows(self._value, self._rows, self._offsets)
            self._ideal = self._value[best]
            self._best = kernels.dcg(self._ideal, self._offsets, self._discounts, self._cutoff)
            self._empty = np.zeros(data.n_queries, dtype=bool)
            has_rows = self._sizes > 0
            self._empty[~has_rows] = True
            self._empty[has_rows] = self._ideal[self._offsets[:-1][has_rows]] <= 0
        else:
            self._value = (labels >= definition.relevant_from).astype(np.float64)
            found = np.bincount(data.query_index, weights=self._value, minlength=data.n_queries)
            self._empty = found == 0

    @property
    def n_empty(self) -> int:
        """Number of queries without relevant documents (NDCG: without gain)."""
        return int(self._empty.sum())

    def per_query(self, scores: ArrayLike) -> NDArray[np.float64]:
        """float64 [m]: the value of each query in the order of ``data.query_ids``; NaN for those
        that the empty rule leaves out.

        Args:
            scores: [n] in the order of the rows; larger is better.

        Raises:
            InputError: the number of scores is not that of the rows, or one is NaN.
        """
        return self.of_ranking(self.rank(scores))

    def mean(self, scores: ArrayLike) -> float:
        """Mean over the queries that count; NaN if none does."""
        return mean_of(self.per_query(scores))

    def rank(self, scores: ArrayLike) -> NDArray[np.int64]:
        """int64 [n]: row numbers grouped by query, best first."""
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != self._rows.shape:
            raise InputError(f"scores have shape {scores.shape} for {len(self._rows)} rows")
        if np.isnan(scores).any():
            raise InputError(f"{int(np.isnan(scores).sum())} scores are NaN, the first in row "
                             f"{int(np.argmax(np.isnan(scores)))}")  # fmt: skip
        return kernels.rank_rows(scores, self._rows, self._offsets)

    def of_ranking(self, ranked: NDArray[np.int64]) -> NDArray[np.float64]:
        """Like ``per_query`` for the rows ranked by ``rank``."""
        definition, value = self.definition, self._value[ranked]
        if definition.kind == "ndcg":
            total = kernels.dcg(value, self._offsets, self._discounts, self._cutoff)
            result = total / np.where(self._empty, 1.0, self._best)
            if definition.short == "zero" and definition.cutoff is not None:
                result[self._sizes < definition.cutoff] = 0.0
        elif definition.kind == "mean_ndcg":
            result = kernels.mean_ndcg(value, self._ideal, self._offsets, self._discounts)
        elif definition.kind == "ap":
            result = kernels.average_precision(value > 0, self._offsets, self._cutoff)
        else:
            count, first = kernels.hits(value > 0, self._offsets, self._cutoff)
            if definition.kind == "precision":
                result = count / self._cutoff
            else:
                result = np.where(first > 0, 1.0 / np.maximum(first, 1), 0.0)
        result[self._empty] = {"zero": 0.0, "one": 1.0, "skip": np.nan}[definition.empty]
        return result


def per_query(
    data: RankingData, scores: ArrayLike, definitions: Sequence[MeasureDefinition]
) -> pd.DataFrame:
    """Values of every query under every definition.

    Returns:
        DataFrame [m, len(definitions)] of float64, indexed by query id (``qid``); columns are the
        definitions' names in the order given. Queries that an empty rule leaves out are NaN.
    """
    evaluators = [Evaluator(d, data) for d in definitions]
    values = _values(evaluators, scores)
    columns = [d.name for d in definitions]
    index = pd.Index(list(data.query_ids), name="qid")
    return pd.DataFrame(values, index=index, columns=columns)


def evaluate(
    data: RankingData,
    scores: ArrayLike,
    definitions: Sequence[MeasureDefinition] | None = None,
) -> pd.DataFrame:
    """One ranking under many definitions, side by side (``conventions()`` by default).

    Returns:
        DataFrame with a row per definition and columns ``measure``, ``value`` (mean over queries),
        ``queries`` (how many the mean is over), ``empty`` (queries without relevant documents, or
        for NDCG without gain), ``known_as`` and ``definition``.
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
            "known_as": [d.known_as for d in definitions],
            "definition": [d.definition for d in definitions],
        }
    )


def mean_of(values: NDArray[np.float64]) -> float:
    """Mean of the values that are not NaN, in their order; NaN if there are none."""
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else math.nan


def _values(evaluators: Sequence[Evaluator], scores: ArrayLike) -> NDArray[np.float64]:
    """float64 [m, len(evaluators)]; each tie rule sorts only once."""
    rankings: dict[str, NDArray[np.int64]] = {}
    columns = []
    for evaluator in evaluators:
        ties = evaluator.definition.ties
        if ties not in rankings:
            rankings[ties] = evaluator.rank(scores)
        columns.append(evaluator.of_ranking(rankings[ties]))
    return np.column_stack(columns)


def _tie_order(ties: Ties, data: RankingData) -> NDArray[np.int64]:
    """int64 [n]: rows grouped by query, each query's in the order that ties are to keep."""
    if ties == "input":
        return data.order
    if ties == "docid":
        if data.document_ids is None:
            raise InputError("ties='docid' needs document ids; the rows have none")
        _, key = np.unique(np.asarray(data.document_ids, dtype=str), return_inverse=True)
        return np.lexsort((-key, data.query_index)).astype(np.int64)
    sign = 1 if ties == "worst" else -1
    return np.lexsort((sign * data.y, data.query_index)).astype(np.int64)


def _check_labels(labels: NDArray[np.float64]) -> None:
    bad = ~(labels >= 0) | np.isinf(labels)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{int(bad.sum())} labels are negative or not finite (row {row}: {labels[row]:g}); "
            "drop unjudged rows or set their label to 0 first"
        )


def _gains(gain: Gain, labels: NDArray[np.float64]) -> NDArray[np.float64]:
    if gain == "linear":
        return labels
    if gain == "exponential":
        if labels.max(initial=0.0) > 1000:
            raise InputError(
                f"label {labels.max():g} is too large for the exponential gain 2^label - 1: use "
                "gain='linear' (labels of LETOR's '-list' files are positions, not grades)"
            )
        return np.exp2(labels) - 1.0
    whole = labels.astype(np.int64)
    if np.any(whole != labels) or whole.max(initial=0) >= len(gain):
        raise InputError(f"gain gives labels 0 to {len(gain) - 1}, but labels go up to "
                         f"{labels.max(initial=0.0):g} or are not whole numbers")  # fmt: skip
    return np.asarray(gain, dtype=np.float64)[whole]


def _discounts(discount: Discount, length: int) -> NDArray[np.float64]:
    rank = np.arange(1, length + 1, dtype=np.float64)
    if discount == "log2":
        return 1.0 / np.log2(rank + 1.0)
    return 1.0 / np.maximum(np.log2(rank), 1.0)
