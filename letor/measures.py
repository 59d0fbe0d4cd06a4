"""Fully specified ranking measures: by definition, the same ranking scores 0.23, 0.50 or 0.78.

A ``MeasureDefinition`` fixes everything on which tools disagree: the gain of a label, the discount
of a rank, the cut-off, the value of queries without relevant documents and of queries with fewer
documents than the cut-off, and the order of equal scores. :func:`letor.evaluation.evaluate`
computes measures per query, :func:`letor.evaluation.side_by_side` compares definitions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, get_args

from letor.errors import InputError
from ltr_base.names import close_names

Kind = Literal["ndcg", "mean_ndcg", "ap", "precision", "recall", "rr", "err"]
Gain = Literal["exponential", "linear"] | tuple[float, ...]
Discount = Literal["log2", "letor"]
Empty = Literal["zero", "one", "skip"]
Short = Literal["pad", "zero"]
Ties = Literal["input", "docid", "docid-ascending", "worst", "best", "random"]

_NAMES: dict[Kind, str] = {
    "ndcg": "NDCG", "mean_ndcg": "MeanNDCG", "ap": "MAP", "precision": "P", "recall": "Recall",
    "rr": "MRR", "err": "ERR",
}  # fmt: skip
_CHOICES = {"kind": Kind, "discount": Discount, "empty": Empty, "short": Short, "ties": Ties}
_PREFIXES = ("letor4", "mslr", "linear", "one", "skip")
#: The kinds that only tell relevant documents from others, by ``relevant_from``.
_BINARY: tuple[Kind, ...] = ("ap", "precision", "recall", "rr")

# {top}: "the first k documents"
_IDEAL = (
    "divided by the same sum for the ideal ranking of all judged documents, including those that "
    "the candidate pool missed"
)
_RELEVANT = "the number of all relevant documents, including those that the candidate pool missed"
_DCG = f"Sum over {{top}} of the gain {{gain}} times the discount {{discount}}, {_IDEAL}"
_FORMULAS: dict[Kind, str] = {
    "ndcg": _DCG,
    "mean_ndcg": f"Mean over all cut-offs k = 1, 2, ... of NDCG@k: {_DCG[0].lower()}{_DCG[1:]}",
    "ap": "Mean over queries of the average precision: precision at the rank of each relevant "
    f"document among {{top}}, summed and divided by {_RELEVANT}",
    "precision": "Number of relevant documents among {top}, divided by {k} even if fewer were "
    "retrieved",
    "recall": f"Number of relevant documents among {{top}}, divided by {_RELEVANT}",
    "rr": "Mean over queries of 1 / rank of the first relevant document among {top}, 0 if there is "
    "none",
    "err": "Expected value of 1 / rank at which a reader of {top} stops, who stops at each with "
    "probability (2^label - 1) / 2^{top_label}",
}

#: What differs from a definition that ranx is known for.
_TIES_OF_RANX = (
    " (in ranx as its sort leaves them, which is not stable: with ties its values differ)"
)

#: Rules for all measures that reports compute from qrels and runs; shown with their definitions.
RUN_RULES = (
    "A document with label 1 or more is relevant, or from the label on that a measure's name says "
    "(rel=2); one without judgement, or with a label below 0, counts as label 0. A query without "
    "relevant documents counts 0 and stays in the mean; so does a query for which nothing was "
    "retrieved. A query without any judgement is left out. Equal scores are ordered by document "
    "id, ascending."
)


@dataclass(frozen=True)
class MeasureDefinition:
    """One measure, with every choice on which tools disagree.

    Attributes:
        kind: ``ndcg``; ``mean_ndcg`` (NDCG@k averaged over k = 1 .. documents of the query); ``ap``
            (average precision); ``precision``; ``recall``; ``rr`` (reciprocal rank of the first
            relevant one); ``err`` (expected reciprocal rank: Chapelle, Metzler, Zhang, Grinspan,
            CIKM 2009).
        cutoff: ranks below it do not count; None for the whole list.
        gain: of label l: ``exponential`` 2^l - 1, ``linear`` l, or a tuple with the gain of labels
            0, 1, 2, ... (0 or more, not decreasing).
        discount: ``log2``: 1 / log2(rank + 1); ``letor``: 1 at ranks 1 and 2, then 1 / log2(rank),
            as in the official LETOR scripts.
        empty: a query without relevant documents (NDCG: without gain) counts ``zero`` or ``one``
            in the mean, or is left out (``skip``).
        short: NDCG@k of a query with fewer than k documents: ``pad`` scores those it has; ``zero``
            counts 0, a quirk of the official LETOR scripts.
        relevant_from: least label that counts as relevant (ap, precision, recall, rr).
        ties: order of documents with equal scores: ``input`` rows as they come (LETOR scripts,
            RankLib); ``docid`` descending document id, where scores are equal as float32
            (trec_eval), ``docid-ascending`` ascending (reports); ``worst`` and ``best`` by label,
            the bounds between which every rule for equal scores lies; ``random`` an order drawn by
            a fixed seed (choice of rankers).
        top_label: largest possible label (err); 4 in TREC's gdeval and in RankLib.
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
    top_label: int = 4
    known_as: str = ""

    def __post_init__(self) -> None:
        for parameter, choices in _CHOICES.items():
            value, known = getattr(self, parameter), get_args(choices)
            if value not in known:
                raise InputError(f"{parameter}={value!r}: choose from {', '.join(known)}")
        if self.cutoff is not None and self.cutoff < 1:
            raise InputError(f"cutoff={self.cutoff}: give a rank of 1 or more, or None")
        if self.kind == "mean_ndcg" and self.cutoff is not None:
            raise InputError(f"cutoff={self.cutoff}: MeanNDCG averages over all ranks, without one")
        if self.kind in ("precision", "recall") and self.cutoff is None:
            name = _NAMES[self.kind]
            raise InputError(f"{self.kind} needs a positive cut-off, for example {name}@10")
        if self.top_label < 1:
            raise InputError(f"top_label={self.top_label}: give a label of 1 or more")
        if isinstance(self.gain, str):
            if self.gain not in ("exponential", "linear"):
                raise InputError(f"gain={self.gain!r}: choose exponential, linear or a tuple")
        else:
            check_gains(self.gain)

    @property
    def name(self) -> str:
        """Short name, such as NDCG@10 or P(rel=2)@10."""
        rel = f"(rel={self.relevant_from})" if self._names_label else ""
        return f"{_NAMES[self.kind]}{rel}" + ("" if self.cutoff is None else f"@{self.cutoff}")

    @property
    def _names_label(self) -> bool:
        """Whether the name says from which label on a document is relevant."""
        return self.kind in _BINARY and self.relevant_from != 1 and not self.known_as

    @property
    def formula(self) -> str:
        """Description of the computation in one sentence."""
        top = f"the first {self.cutoff} documents" if self.cutoff else "all ranked documents"
        gain, discount = self._gain_and_discount()
        formula = _FORMULAS[self.kind].format(
            top=top, k=self.cutoff, gain=gain, discount=discount, top_label=self.top_label
        )
        relevant = f" Relevant: label {self.relevant_from} or more." if self._names_label else ""
        return f"{formula}.{relevant}"

    @property
    def definition(self) -> str:
        """The whole definition in one line."""
        parts = [self.name]
        if self.kind in ("ndcg", "mean_ndcg"):
            gain, discount = self._gain_and_discount()
            parts += [f"gain {gain}", f"discount {discount.replace(' / ', '/')}"]
            if self.kind == "ndcg" and self.short == "zero":
                parts.append(f"queries of fewer than {self.cutoff} documents count 0")
        elif self.kind == "err":
            parts.append(f"probability to stop (2^label - 1)/2^{self.top_label}")
        else:
            parts.append(f"relevant from label {self.relevant_from}")
        empty = {"zero": "count 0", "one": "count 1", "skip": "are left out"}[self.empty]
        ties = {
            "input": "in input order" + (_TIES_OF_RANX if "ranx" in self.known_as else ""),
            "docid": "in float32 by descending document id",
            "docid-ascending": "by ascending document id",
            "random": "in random order",
        }
        parts += [
            f"queries without relevant documents {empty}",
            f"ties {ties.get(self.ties, self.ties + ' case')}",
        ]
        return ", ".join(parts)

    def _gain_and_discount(self) -> tuple[str, str]:
        named = {"exponential": "2^label - 1", "linear": "label"}
        gain = named[self.gain] if isinstance(self.gain, str) else f"{list(self.gain)}[label]"
        if self.discount == "log2":
            return gain, "1 / log2(rank + 1)"
        return gain, "1 at ranks 1 and 2, then 1 / log2(rank)"


def check_gains(gains: Sequence[float]) -> None:
    """Raise InputError unless gains of labels 0, 1, 2, ... are finite, 0 or more, and do not
    decrease."""
    try:
        good = all(a <= b < math.inf for a, b in pairwise((0.0, *gains)))
    except TypeError:
        good = False
    if not good:
        raise InputError(
            f"gain={gains!r}: gains must be numbers of 0 or more that do not decrease with the "
            "label"
        )


def parse_measure(text: str) -> MeasureDefinition:
    """A measure by name: ``ndcg@10``, ``ndcg-linear@10`` (gain = label), ``meanndcg``, ``map``,
    ``p@5``, ``recall@20``, ``mrr``, ``err@20``, ``map@100``; case is ignored. ``map(rel=2)`` and
    ``p(rel=2)@5`` count documents as relevant from label 2 on, as TREC's deep learning tracks do.

    Without a prefix: exponential gain, discount 1/log2(rank + 1), empty queries count 0. A prefix
    chooses another convention: ``letor4:`` and ``mslr:`` the official scripts, ``linear:`` gain =
    label, ``one:`` and ``skip:`` the rule for empty queries.

    Raises:
        InputError: the text names no measure, or its cut-off is missing or not positive.
    """
    if not isinstance(text, str):
        raise InputError(f"a measure is named by a text such as 'ndcg@10', got {text!r}")
    return _parsed(text, _PREFIXES)


def _parsed(text: str, prefixes: Sequence[str]) -> MeasureDefinition:
    prefix, _, name = text.strip().lower().rpartition(":")
    word, at, cutoff = name.partition("@")
    if rel := re.fullmatch(r"(.*)\(rel=([1-9]\d*)\)", word):
        word = rel[1]
    kinds = {known.lower(): kind for kind, known in _NAMES.items()}
    linear = prefix == "linear" or word == "ndcg-linear"
    kind = kinds.get("ndcg" if word == "ndcg-linear" else word)
    if kind is None or prefix not in ("", *prefixes):
        raise InputError(_unknown(text, word, at + cutoff, prefixes))
    if at and not re.fullmatch(r"[1-9]\d*", cutoff):
        raise InputError(
            f"measure {text!r} needs a positive cut-off, for example {_NAMES[kind]}@10"
        )
    base = MeasureDefinition(kind, int(cutoff) if at else None)
    if rel:
        if kind not in _BINARY or prefix in ("letor4", "mslr"):
            binary = ", ".join(_NAMES[known] for known in _BINARY)
            raise InputError(
                f"measure {text!r}: (rel={rel[2]}) is for {binary}, without letor4: or mslr:; the "
                "others count every label"
            )
        base = replace(base, relevant_from=int(rel[2]))
    if prefix in ("letor4", "mslr"):
        return _official(base, prefix)
    empty: Empty = "one" if prefix == "one" else "skip" if prefix == "skip" else "zero"
    return replace(base, gain="linear" if linear else "exponential", empty=empty)


def run_measure(name: str) -> MeasureDefinition:
    """A measure by name, as reports compute it from qrels and a run: by ``RUN_RULES``.

    Raises:
        InputError: as :func:`parse_measure`, or the name has a prefix for another convention.
    """
    if ":" in name:
        raise InputError(f"measure {name!r}: reports have one convention, give it without a prefix")
    return replace(_parsed(name, ()), ties="docid-ascending")


def tie_bounds(measure: MeasureDefinition) -> list[MeasureDefinition]:
    """The measure with equal scores in the worst and in the best order."""
    return [replace(measure, ties="worst"), replace(measure, ties="best")]


def choosing_measure(name: str) -> MeasureDefinition:
    """A measure by name, as rankers and their parameters are chosen by it: with equal scores in
    random order. In a file sorted by label, its order would make a ranker perfect that cannot tell
    rows apart.

    Raises:
        InputError: as :func:`parse_measure`.
    """
    return replace(parse_measure(name), ties="random")


def measure_problems(tested: Sequence[str], further: Sequence[str] = ()) -> Iterator[str]:
    """Reasons why a report cannot use some measures: an unknown name, or two names of one measure
    among those that are ``tested``, which would count twice in corrections."""
    first: dict[MeasureDefinition, str] = {}
    for number, name in enumerate([*tested, *(m for m in further if m not in tested)]):
        try:
            definition = run_measure(name)
        except InputError as error:
            yield str(error)
            continue
        if number < len(tested) and definition in first:
            yield f"measures {first[definition]!r} and {name!r} are the same: leave one out"
        first.setdefault(definition, name)


def _unknown(text: str, word: str, cutoff: str, prefixes: Sequence[str]) -> str:
    known = [*_NAMES.values(), "NDCG-linear"]
    near = close_names(word, known)
    hint = f"; did you mean {near[0]}{cutoff}?" if near else ""
    listed = ", ".join(f"{prefix}:" for prefix in prefixes)
    other = f" and with prefix {listed} for another convention" if listed else ""
    return (
        f"measure {text!r} is unknown; known are {', '.join(known)}, with @k for a cut-off{other}"
        f"{hint}"
    )


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
    """The definitions in use by papers and tools, for :func:`letor.evaluation.side_by_side`."""
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
        MeasureDefinition("ap", ties="docid", known_as="trec_eval, ir_measures"),
        MeasureDefinition("ap", empty="skip", known_as="empty queries dropped"),
        _official(MeasureDefinition("precision", cutoff), "letor4"),
        MeasureDefinition("precision", cutoff, ties="docid", known_as="trec_eval, ir_measures"),
        MeasureDefinition("rr", known_as="ranx"),
    ]
