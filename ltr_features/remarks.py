"""Remarks on trained columns and rankers, merged over all folds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

from letor.dataset import GIVEN, RankingData
from letor.folds import Fold, has_pairs
from ltr_base.names import counted, in_words, listed
from ltr_base.user_warning import warn_user
from ssi_models.remarks import FitWarning

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


class ColumnWarning(FitWarning):
    """A column's model learned nothing, diverged or had little to learn from, or it scores training
    rows unlike other rows."""


def warn_of(sentences: Iterable[str]) -> None:
    """Issue a warning for each sentence."""
    for sentence in sentences:
        warn_user(sentence, ColumnWarning)


def grouped_remarks(folds: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Remarks on the columns of all folds as sentences, grouped by column: "ssi, Fold1 and Fold3:
    did not improve ...". Remarks that differ only in numbers are merged, see :func:`alike`.

    Args:
        folds: for each fold the provenance of its columns, see
            :func:`ltr_features.columns.out_of_fold.column_facts`.
    """
    found = []
    for name in dict.fromkeys(name for columns in folds.values() for name in columns):
        remarks = (
            (fold, remark)
            for fold, columns in folds.items()
            for remark in columns.get(name, {}).get("remarks", ())
        )
        found += [
            f"{name}, {_folds_in_words([*dict.fromkeys(owners)], len(folds))}: {remark}"
            for owners, remark in alike(remarks)
        ]
    return found


def family_remarks(provenance: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Remarks on the columns of families as sentences, each once, with its families, and the
    columns where it is not about all of a family: "numbers (stars): 3 of 5 rows have no number".

    Args:
        provenance: of the columns, see :func:`ltr_features.feature_table.family_provenance`.
    """
    n_columns = Counter(notes.get("family") for notes in provenance.values())
    owners: dict[str, dict[str, list[str]]] = {}
    for name, notes in provenance.items():
        for remark in notes.get("remarks", ()):
            owners.setdefault(remark, {}).setdefault(notes["family"], []).append(name)
    return [
        " and ".join(
            family if len(names) == n_columns[family] else f"{family} ({listed(names, 3)})"
            for family, names in families.items()
        )
        + f": {remark}"
        for remark, families in owners.items()
    ]


def ranker_remarks(fits: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """What rankers say of their fits, each remark once, with the number of fits that it is about:
    "words (4 of 15 fits): learned nothing ...".

    Args:
        fits: name and remarks of every fitted ranker.
    """
    fitted = [*fits]
    n_fits = Counter(name for name, _ in fitted)
    told = alike((name, remark) for name, remarks in fitted for remark in remarks)
    return [
        ", ".join(f"{name} ({n} of {counted(n_fits[name], 'fit')})" for name, n in found.items())
        + f": {remark}"
        for found, remark in ((Counter(owners), remark) for owners, remark in told)
    ]


def nothing_to_rank(data: RankingData, folds: Sequence[Fold]) -> list[str]:
    """Remarks on folds whose training or validation rows no ranker can use.

    Args:
        data: the rows of all folds. folds: their queries, ids of ``data``.
    """
    usable = set(compress(data.all_query_ids, has_pairs(data).tolist()))
    told = []
    for part in ("training", "validation"):
        queries = {f.name: f.train if part == "training" else f.validation for f in folds}
        if names := [name for name, of in queries.items() if usable.isdisjoint(of)]:
            told.append(
                f"{_folds_in_words(names, len(folds))}: no {part} query has rows of two different "
                f"labels, as rankers need; of all {counted(len(data.all_query_ids), 'query')} "
                f"{len(usable)} have: judge more queries, or find more candidates"
            )
    return told


def given_remark(provenance: Mapping[str, Mapping[str, Any]], used: Collection[str]) -> list[str]:
    """A remark on columns that were made elsewhere, if any of those that are used was.

    Args:
        provenance: of the columns. used: names of columns.
    """
    given = [
        name
        for name, notes in provenance.items()
        if name in used and notes.get("trained on") == GIVEN
    ]
    if not given:
        return []
    return [
        f"given columns ({listed(given, 3)}): if their source saw judgements of the test queries, "
        "which cannot be checked, a gain is worth nothing"
    ]


def alike(remarks: Iterable[tuple[str, str]]) -> list[tuple[list[str], str]]:
    """Merge remarks that differ only in numbers, with the range of each number: "134 to 136
    queries".

    Args:
        remarks: pairs of an owner and its remark.

    Returns:
        For each merged remark its owners, in order, and its text.
    """
    # By the text between the numbers.
    found: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for owner, remark in remarks:
        found.setdefault(tuple(_NUMBER.split(remark)), []).append((owner, _NUMBER.findall(remark)))
    return [
        ([owner for owner, _ in group], _joined(texts, [numbers for _, numbers in group]))
        for texts, group in found.items()
    ]


def _joined(texts: Sequence[str], numbers: Sequence[Sequence[str]]) -> str:
    """The texts with the ranges of the numbers between them."""
    ranges = ["", *map(_range, zip(*numbers, strict=True))]
    return "".join(number + text for number, text in zip(ranges, texts, strict=True))


def _range(numbers: Sequence[str]) -> str:
    least, most = (pick(numbers, key=lambda n: float(n.replace(",", ""))) for pick in (min, max))
    return least if least == most else f"{least} to {most}"


def _folds_in_words(names: Sequence[str], n_folds: int) -> str:
    if len(names) == n_folds > 2:
        return f"all {n_folds} folds"
    return in_words(names)
