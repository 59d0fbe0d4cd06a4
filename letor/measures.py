"""Ranking measures whose definition is spelt out: the same ranking is worth 0.23, 0.50 or 0.78.

A ``MeasureDefinition`` names everything on which tools disagree: the gain of a label, the discount
of a rank, the cut-off, what a query without relevant documents and one with fewer documents than
the cut-off count, and how equal scores are ordered. :func:`letor.evaluation.evaluate` has one
ranking under many definitions side by side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from letor.errors import InputError

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
        MeasureDefinition("ap", ties="docid", known_as="trec_eval, ir_measures"),
        MeasureDefinition("ap", empty="skip", known_as="empty queries dropped"),
        _official(MeasureDefinition("precision", cutoff), "letor4"),
        MeasureDefinition("precision", cutoff, ties="docid", known_as="trec_eval, ir_measures"),
        MeasureDefinition("rr", known_as="ranx"),
    ]
