"""Find the columns of a table by usual names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Headers of a data frame's index: in CSV, in a frame that was read from that, and in Parquet.
_UNNAMED = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")


def find_columns(names: Sequence[str], *usual: Sequence[str]) -> list[str] | None:
    """For each list of usual names the first one that a table has, with no column used twice; None
    if one of them is not found. Case and punctuation are ignored: ``query-id`` is ``queryid``."""
    plain = {plain_name(name): name for name in reversed(names)}
    found: list[str] = []
    for known in usual:
        matches = (plain[name] for name in known if name in plain)
        name = next((name for name in matches if name not in found), None)
        if name is None:
            return None
        found.append(name)
    return found


def add_usual(
    columns: dict[str, Any], names: Sequence[str], usual: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Add a table's columns with usual names to ``columns``, where not given; returns those added.

    Args:
        columns: columns by key, changed in place.
        names: the table's columns. usual: for each key, usual names of its column.
    """
    added: dict[str, str] = {}
    for what, known in usual.items():
        left = [name for name in names if name not in columns.values()]
        if what not in columns and (found := find_columns(left, known)) is not None:
            columns[what] = added[what] = found[0]
    return added


def columns_in_words(columns: Mapping[str, Any]) -> str:
    """Columns by key as text, for a description."""
    return ", ".join(f"{what} {name!r}" for what, name in columns.items())


def plain_name(name: str) -> str:
    """A column's name in lower case, without punctuation."""
    return "".join(c for c in name.lower() if c.isalnum())


def is_unnamed(name: object) -> bool:
    """Whether a column has no name of its own, such as the index of a data frame."""
    return _UNNAMED.fullmatch(str(name)) is not None
