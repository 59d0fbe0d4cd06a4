"""Checks of the names of columns, which frames, tables and files share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from letor.errors import InputError
from ltr_base.names import repeated


def check_distinct(names: Sequence[str]) -> None:
    """Raise InputError if two columns have the same name."""
    if twice := repeated(names):
        raise InputError(f"column names given twice: {', '.join(twice)}; rename them")


def check_unicode(names: Iterable[str]) -> None:
    """Raise InputError for a name that UTF-8 cannot hold: bytes that are no text were read as text
    (half of a surrogate pair)."""
    for name in names:
        if any("\ud800" <= c <= "\udfff" for c in str(name)):
            raise InputError(f"column {name!a} is not Unicode text: rename it")
