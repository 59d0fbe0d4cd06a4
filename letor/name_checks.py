"""Checks of the names of columns, which rows, families, tables and files share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from letor.errors import InputError
from ltr_base.names import is_unicode, listed, repeated


def check_distinct(names: Iterable[str]) -> None:
    """Raise InputError if two columns have the same name."""
    if twice := repeated(names):
        raise InputError(f"two columns are called {', '.join(twice)}; rename one of them")


def check_unicode(names: Iterable[str]) -> None:
    """Raise InputError for a name that has no UTF-8 encoding."""
    for name in names:
        if not is_unicode(str(name)):
            raise InputError(f"column {name!a} is not Unicode text: rename it")


def positions_of(names: Sequence[str], known: Sequence[str], what: str) -> list[int]:
    """The places of columns among the known ones, in the order given.

    Args:
        what: what has the known columns, for the message.

    Raises:
        InputError: one is unknown.
    """
    place = {name: j for j, name in enumerate(known)}
    if unknown := [name for name in names if name not in place]:
        raise InputError(f"{what} has no column {', '.join(unknown)}; it has {listed(known, 60)}")
    return [place[name] for name in names]
