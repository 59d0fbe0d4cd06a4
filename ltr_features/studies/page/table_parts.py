"""Columns that the tables of a study share: numbers, differences and intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd

from ltr_features.studies.page.report import Study
from ltr_features.studies.page.tables import Cell, Column, Table
from ltr_features.studies.page.verdicts import minus, outcome_of, percent, signed, value

#: A row of a data frame.
Record: TypeAlias = Mapping[str, Any]
#: A column: its heading and the function that makes its cells of records, most often rows.
Part: TypeAlias = tuple[Column | str, Callable[[Any], Cell | str]]


def table_of(
    name: str, parts: Sequence[Part], records: Sequence[Any], caption: str = "", style: str = ""
) -> Table:
    """A table with a row for each record and a column for each part."""
    rows = [[show(record) for _, show in parts] for record in records]
    return Table(name, [heading for heading, _ in parts], rows, caption, style)


def number(
    title: str, key: str, show: Callable[[Any], str], note: str = "", note_key: str = ""
) -> Part:
    """A column of numbers ("–" if missing), optionally with another number in the notes."""

    def cell(row: Record) -> Cell:
        noted = bool(note) and not pd.isna(row[note_key])
        other = row[note_key] if noted else None
        shown = show(other) if noted and note.endswith("{}") else other
        text = "–" if pd.isna(row[key]) else show(row[key])
        return Cell(text, note.format(shown) if noted else "", strong=key == "p_corrected")

    return title, cell


def difference(key: str, title: str, relative: str = "") -> Part:
    """A column of differences, optionally with relative differences in the notes."""
    return title, lambda row: Cell(
        signed(row[key]),
        percent(row[relative]) if relative else "",
        outcome_of(row, key).style,
        strong=True,
        marks=outcome_of(row, key).mark,
    )


def interval(
    study: Study, records: Sequence[Record], middle: str, note: str = "", note_key: str = ""
) -> Part:
    """A column of intervals, as text and drawn to the scale of the records if there are any."""
    ends = [abs(r[name]) for r in records for name in ("low", "high", middle)]
    limit = max((float(x) for x in ends if x == x), default=0.0)

    def cell(row: Record) -> Cell:
        if pd.isna(row["low"]):
            return Cell("–")
        low, mean, high = (float(row[name]) for name in ("low", middle, "high"))
        span = (low / limit, mean / limit, high / limit) if limit > 0 else None
        noted = note and not pd.isna(row[note_key])
        remark, style = note.format(row[note_key]) if noted else "", outcome_of(row, middle).style
        return Cell(f"{signed(low)} to {signed(high)}", remark, style, span=span)

    return f"{study.test.confidence_text} interval", cell


QUERIES = number("Queries", "n_queries", "{:,}".format)
MEANS = number("Baseline", "baseline_mean", value), number("System", "system_mean", value)


def two(x: float) -> str:
    """A number with two decimals and a sign."""
    return minus(f"{x:+.2f}")
