"""The LETOR reader again, slowly: one regular expression per line, exact rational arithmetic."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
VALUE = rb"(?:" + NUMBER + rb"|NULL|[+-]?(?i:nan|inf|infinity))"
LINE = re.compile(
    rb"[ \t]*(" + NUMBER + rb")[ \t]+qid:([^\x00-\x20#]+)"
    rb"((?:[ \t]+[0-9]+:" + VALUE + rb")*)[ \t]*(#.*)?",
    re.DOTALL,
)
NO_ROW = re.compile(rb"[ \t]*(#.*)?", re.DOTALL)
DOCUMENT = re.compile(rb"(?<=[# \t])doc(id|no)[ \t]*=[ \t]*([^ \t]+)")


@dataclass
class Row:
    label: np.float32
    query: str
    values: dict[int, np.float32 | str]
    comment: bytes
    document: str


@dataclass
class File:
    rows: list[Row] = field(default_factory=list)
    bad_lines: list[int] = field(default_factory=list)


def float32(text: str) -> np.float32 | None:
    """The float32 nearest to a decimal number, ties to even; None beyond the largest."""
    number = Decimal(re.sub(r"(?<=[eE])([+-]?)0*([0-9]{7,})$", r"\g<1>9999999", text))
    sign = -1.0 if number.is_signed() else 1.0
    if number == 0 or number.adjusted() < -60:
        return np.float32(sign * 0.0)
    if number.adjusted() > 50:
        return None
    size = abs(Fraction(number))
    exponent = -149
    while size / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    rounded = round(size / Fraction(2) ** exponent) * Fraction(2) ** exponent
    return None if rounded >= 2**128 else np.float32(sign * float(rounded))


def read(data: bytes, *, allow_non_finite: bool, max_columns: int) -> File:
    """Rows of a file's bytes and the numbers of its bad lines; "NULL" and "nan" stay words."""
    result = File()
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, start=1):
        line = line.removesuffix(b"\r")
        if NO_ROW.fullmatch(line):
            continue
        row = read_line(line, allow_non_finite, max_columns)
        if row is None:
            result.bad_lines.append(number)
        else:
            result.rows.append(row)
    return result


def read_line(line: bytes, allow_non_finite: bool, max_columns: int) -> Row | None:
    match = LINE.fullmatch(line)
    if not match:
        return None
    label = float32(match[1].decode())
    values: dict[int, np.float32 | str] = {}
    last = 0
    for pair in match[3].split():
        name, _, text = pair.partition(b":")
        name = name.lstrip(b"0")
        if not name or len(name) > 9 or not last < int(name) <= max_columns:
            return None
        last = int(name)
        value: np.float32 | str | None = "NULL"
        if text != b"NULL":
            is_name = text.lower().lstrip(b"+-") in (b"nan", b"inf", b"infinity")
            value = None if is_name else float32(text.decode())
            if value is None and not allow_non_finite:
                return None
        values[last] = "nan" if value is None else value
    if label is None:
        return None
    comment = match[4] or b""
    documents = dict(reversed(DOCUMENT.findall(comment)))
    document = documents.get(b"no", documents.get(b"id", b""))
    return Row(
        label,
        match[2].decode("utf8", "surrogateescape"),
        values,
        comment,
        document.decode("utf8", "surrogateescape"),
    )


def table(file: File, missing: float, null: str) -> np.ndarray:
    """The float32 matrix of a file's rows, missing values and NULLs filled in."""
    width = max((max(row.values, default=0) for row in file.rows), default=0)
    X = np.full((len(file.rows), width), missing, dtype=np.float32)
    nulls = []
    for i, row in enumerate(file.rows):
        for column, value in row.values.items():
            X[i, column - 1] = np.nan if isinstance(value, str) else value
            if value == "NULL":
                nulls.append((i, column - 1))
    if null == "min":
        filled = X.copy()
        for i, j in nulls:
            same = [k for k, row in enumerate(file.rows) if row.query == file.rows[i].query]
            known = [X[k, j] for k in same if not np.isnan(X[k, j])]
            filled[i, j] = min(known, default=np.float32(0))
        return filled
    return X
