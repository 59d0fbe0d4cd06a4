"""Remarks on trained columns, told once for all folds."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ssi_models.remarks import FitWarning

_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?")


class ColumnWarning(FitWarning):
    """A column's model learned nothing, diverged or had little to learn from, or its scores of
    training rows are unlike those of other rows."""


def warn_of(sentences: Iterable[str]) -> None:
    """Warn the caller of the caller, once for each sentence."""
    for sentence in sentences:
        warnings.warn(sentence, ColumnWarning, stacklevel=3)


def told_once(folds: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """Remarks on the columns of all folds as sentences, those of a column together: "ssi, Fold1
    and Fold3: kept its start ...". Remarks that differ in numbers alone are one, with the least
    and the greatest: "134 to 136 queries".

    Args:
        folds: for each fold the provenance of its columns, see
            :func:`ltr_features.columns.out_of_fold.column_facts`.
    """
    # By column and text between the numbers: the folds, and the numbers of each.
    found: dict[str, dict[tuple[str, ...], dict[str, list[str]]]] = {}
    for fold, columns in folds.items():
        for name, facts in columns.items():
            for remark in facts.get("remarks", ()):
                kinds = found.setdefault(name, {})
                kinds.setdefault(tuple(_NUMBER.split(remark)), {})[fold] = _NUMBER.findall(remark)
    return [
        f"{name}, {_folds_in_words(list(numbers), len(folds))}: "
        + _joined(texts, list(numbers.values()))
        for name, kinds in found.items()
        for texts, numbers in kinds.items()
    ]


def _joined(texts: Sequence[str], numbers: Sequence[Sequence[str]]) -> str:
    """The texts with the ranges of the numbers between them."""
    ranges = ["", *map(_range, zip(*numbers, strict=True))]
    return "".join(number + text for number, text in zip(ranges, texts, strict=True))


def _range(numbers: Sequence[str]) -> str:
    least, most = (of(numbers, key=lambda n: float(n.replace(",", ""))) for of in (min, max))
    return least if least == most else f"{least} to {most}"


def _folds_in_words(names: Sequence[str], n_folds: int) -> str:
    if len(names) == n_folds > 2:
        return f"all {n_folds} folds"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
