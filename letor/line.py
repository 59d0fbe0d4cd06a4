"""Exact but slow parsing of one line of LETOR text, with the reason if the line is malformed."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from letor.kernels.numbers import HUGE, INFINITE, LONGEST_NUMBER, NAN_TEXT, NULL, NUMBER
from ltr_base.names import visible

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NAMES = {b"nan": NAN_TEXT, b"inf": INFINITE, b"infinity": INFINITE}
_KIND_NAMES = {
    NULL: "NULL",
    NAN_TEXT: "not a number",
    INFINITE: "infinite",
    HUGE: "beyond float32 (3.4e38)",
}
_FLOAT32_LIMIT = 2**128 - 2**103  # half-way between the largest float32 and 2^128
_SHOWN = 160

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
OF_A_TABLE = "`ltr-features convert` and RankingData.from_frame make rows of a table"
_SIZED = "if another file has the sizes of queries, name it NAME.query: `ltr-features convert`"
EXPECTED = "a line is `label qid:ID id:value id:value ... #comment`"


@dataclass(frozen=True)
class BadLine:
    """A malformed line.

    Attributes:
        number: 1-based line number.
        text: the line, shortened to 160 characters, with non-ASCII bytes escaped.
        reason: what is wrong with it and what to do.
    """

    number: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}; the line: {self.text}"


class LineError(ValueError):
    """A line is malformed; the message says how."""


@dataclass(frozen=True)
class ParsedLine:
    """The content of a line; spans are byte positions in it.

    ``kinds`` holds the kind of each value: NUMBER, NULL, NAN_TEXT, INFINITE or HUGE.
    """

    label: np.float32
    query: tuple[int, int]
    columns: list[int]
    values: list[np.float32]
    kinds: list[int]
    cut: int


def shown(text: bytes) -> str:
    """Format a line or token for an error message."""
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + b" ..."
    return visible(short.decode("ascii", "backslashreplace"))


def parse_line(line: bytes, max_columns: int, *, refuse_non_finite: bool = True) -> ParsedLine:
    """Parse a line given without its line end, which is neither blank nor only a comment.

    Raises:
        LineError: the line is malformed; the message says how.
    """
    hash_position = line.find(b"#")
    cut = len(line) if hash_position < 0 else hash_position
    tokens = [m.span() for m in re.finditer(rb"[^ \t]+", line[:cut])]
    words = [line[start:stop] for start, stop in tokens]
    if b"\r" in line[:cut]:
        raise LineError("a carriage return inside the line: convert the line ends to LF or CRLF")
    label = _parse_label(words[0])
    if len(words) == 1 or not words[1].startswith(b"qid:"):
        found = f"found '{shown(words[1])}'" if len(words) > 1 else "the line ends there"
        raise LineError(f"no qid after the label, {found}: {EXPECTED}; {_SIZED}")
    if words[1] == b"qid:" or min(words[1]) < 32:
        raise LineError(f"the query id in '{shown(words[1])}' is empty or has control characters")
    columns: list[int] = []
    values: list[np.float32] = []
    kinds: list[int] = []
    for word in words[2:]:
        column = _parse_column(word, columns[-1] if columns else 0, max_columns)
        kind, value = parse_value(word[word.index(b":") + 1 :])
        if kind is None:
            longest = f" (of at most {LONGEST_NUMBER:,} characters)" * (len(word) > LONGEST_NUMBER)
            raise LineError(f"'{shown(word)}' has no number{longest} after the colon")
        if refuse_non_finite and kind not in (NUMBER, NULL):
            raise LineError(
                f"'{shown(word)}' is {_KIND_NAMES[kind]}; read with non_finite=\"nan\" "
                "(--non-finite nan) if it marks a missing value"
            )
        columns.append(column)
        values.append(value)
        kinds.append(kind)
    return ParsedLine(label, (tokens[1][0] + 4, tokens[1][1]), columns, values, kinds, cut)


def _parse_label(word: bytes) -> np.float32:
    kind, label = parse_value(word)
    if kind is None:
        advice = f": {EXPECTED}"
        if word.startswith(_UTF16):
            advice = ", as the file is UTF-16: save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"
        elif b"," in word:
            advice += f"; {OF_A_TABLE}"
        raise LineError(f"the label '{shown(word)}' is not a number{advice}")
    if kind != NUMBER:
        raise LineError(f"the label '{shown(word)}' is {_KIND_NAMES[kind]}")
    return label


def _parse_column(word: bytes, previous: int, max_columns: int) -> int:
    name, colon, _ = word.partition(b":")
    if not colon or not re.fullmatch(rb"[0-9]+", name):
        if re.fullmatch(rb"-[0-9]+", name):
            raise LineError(f"'{shown(word)}': column ids start at 1")
        raise LineError(f"'{shown(word)}' is not `id:value`: {EXPECTED}")
    digits = name.lstrip(b"0")
    if not digits:
        raise LineError(
            f"'{shown(word)}': column ids start at 1; add 1 to every id of this file (scikit-learn "
            "writes them so by zero_based=False)"
        )
    if len(digits) > 18 or int(digits) > max_columns:
        raise LineError(
            f"'{shown(word)}': the id is above max_columns={max_columns} (or n_columns, if that is "
            "given); if the file really has so many columns, raise it (--max-columns), or convert "
            "the file to .parquet with `ltr-features convert --max-columns`"
        )
    column = int(digits)
    if column <= previous:
        fault = "is given twice" if column == previous else f"follows id {previous}"
        raise LineError(f"'{shown(word)}': id {column} {fault}; ids must increase along a line")
    return column


def parse_value(word: bytes) -> tuple[int | None, np.float32]:
    """Parse the text of a number: (kind, float32); the kind is None if it is not a number."""
    if word == b"NULL":
        return NULL, np.float32(0)
    name = word[1:] if word[:1] in (b"+", b"-") else word
    if name.lower() in _NAMES:
        return _NAMES[name.lower()], np.float32(0)
    if len(word) > LONGEST_NUMBER or not _NUMBER.fullmatch(word):
        return None, np.float32(0)
    number = nearest_float32(word.decode("ascii"))
    return (HUGE if np.isinf(number) else NUMBER), number


def nearest_float32(text: str) -> np.float32:
    """The float32 nearest to a decimal number, ties to even; infinite beyond the largest."""
    number = float(text)
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(number)
        sure = np.float32(number * (1 - 2**-52)) == np.float32(number * (1 + 2**-52))
    if sure or number == 0:
        return near
    exact = Fraction(text)  # rounding twice, to double and then float32, may give a neighbour
    if abs(exact) >= _FLOAT32_LIMIT:
        return np.float32(np.copysign(np.inf, number))
    with np.errstate(over="ignore", under="ignore"):
        around = [near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))]
    finite = [value for value in around if np.isfinite(value)]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), v.view(np.uint32) & 1))
