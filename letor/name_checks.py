"""Checks of the names of columns, which frames, tables and files share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from letor.errors import InputError
from ltr_base.names import is_unicode, repeated


def check_distinct(names: Sequence[str]) -> None:
    """Raise InputError if two columns have the same name."""
    if twice := repeated(names):
        raise InputError(f"column names given twice: {', '.join(twice)}; rename them")


def check_unicode(names: Iterable[str]) -> None:
    """Raise InputError for a name that has no UTF-8 encoding."""
    for name in names:
        if not is_unicode(str(name)):
            raise InputError(f"column {name!a} is not Unicode text: rename it")
