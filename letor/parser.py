"""LETOR text to arrays: kernels over chunks of lines, then line by line, slowly, the doubtful rest:
exact numbers for good lines, reasons for bad ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from letor.kernels import layout
from letor.kernels.numbers import HUGE, INFINITE, NAN_TEXT, NULL, NUMBER, find_line_feed
from ltr_base.machine import available_cores

CHUNK_BYTES = 1 << 22  # fixed, so that nothing depends on the number of threads
#: Shorter texts are read line by line, in less time than the kernels take to be loaded (and far
#: less than they take to be compiled, on a machine that has not run them yet).
KERNELS_FROM_BYTES = 1 << 16
#: Lines that are kept until they are stored.
_STORED_AT_ONCE = 1 << 12
_SAMPLE_BYTES = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# What X holds while reading for a value that is absent, NULL, nan, infinite or beyond float32:
# NaNs told apart by their payload, in the order of the kinds of letor.kernels.numbers.
MARK_BITS = 0x7FC00000 + np.arange(5, dtype=np.uint32)
NULL_BITS = MARK_BITS[1]

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

_LONGEST_NUMBER = 1000  # characters; the time of exact rounding grows with their square
EXPECTED = "a line is `label qid:ID id:value id:value ... #comment`"


#: So many bad lines are too many where they are most of the lines so far.
MANY_BAD_LINES = 100_000
#: Bytes that columns may take in any case, and how many times the bytes of the text.
_ALWAYS_TAKEN, _LARGEST_MULTIPLE = 2**28, 64


@dataclass
class Rows:
    """Rows as parsed, before options are applied.

    Attributes:
        buffer: uint8, the text.
        marks: float32 [5], what is stored for absent, NULL, nan, infinite, huge.
        limit: rows with larger ids are layout.BAD.
        refused: flags that make a row layout.BAD.
        growing: whether ``X`` takes as many columns as the rows have.
        stored: bytes of the file.
        largest: the largest id of a row that is not layout.BAD.
        X, y: float32 [n, p] and [n]; ``X`` holds marks (``MARK_BITS``).
        spans: int64 [n, 5], positions in ``buffer`` (see letor.kernels.svmlight).
        flags: uint8 [n], bits layout.BAD, layout.HAS_NULL, layout.HAS_NON_FINITE, SAME_QUERY.
    """

    buffer: NDArray[np.uint8]
    marks: NDArray[np.float32]
    limit: int
    refused: int
    growing: bool
    stored: int
    largest: int = 0
    X: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    y: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, dtype=np.float32))
    spans: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 5), dtype=np.int64))
    flags: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, dtype=np.uint8))


def parse(
    buffer: NDArray[np.uint8],
    *,
    missing: float = np.nan,
    width: int | None = None,
    max_columns: int,
    refuse_non_finite: bool = False,
    stored: int | None = None,
    threads: int | None = None,
) -> Rows:
    """Run the parsing kernels over the chunks of a buffer; all rows of a short one are left to
    :func:`settle_doubtful_rows`.

    Args:
        buffer: uint8, the text.
        missing: 0 or NaN, stored where a line does not give a column.
        width: number of columns to store; default: the largest id.
        max_columns: rows with larger ids are flagged layout.BAD.
        refuse_non_finite: whether rows with nan, infinite or huge values are flagged layout.BAD.
        stored: bytes of the file, if it is compressed.
        threads: number of threads; default: all cores.
    """
    marks = MARK_BITS.view(np.float32).copy()
    if missing == 0:
        marks[0] = 0
    refused = layout.HAS_NON_FINITE if refuse_non_finite else 0
    start = len(_BYTE_ORDER_MARK) if buffer[:3].tobytes() == _BYTE_ORDER_MARK else 0
    like = Rows(buffer, marks, max_columns, refused, width is None, stored or buffer.size)
    if buffer.size < KERNELS_FROM_BYTES:
        return _all_doubtful(like, start, width)
    from letor.kernels import svmlight as kernels  # with numba

    chunks = _line_chunks(buffer, start, CHUNK_BYTES)
    with ThreadPoolExecutor(threads or available_cores()) as pool:
        counts = list(pool.map(lambda chunk: kernels.count_rows(buffer, *chunk), chunks))
        first = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).tolist()
        rows = _empty_rows(like, first[-1])
        wanted = _sampled_width(rows, start) if width is None else width
        while True:
            if width is None:
                _check_size(rows, wanted)
            rows.X = np.empty((first[-1], wanted), dtype=np.float32)
            rows.largest = max(pool.map(partial(_read, rows), chunks, first), default=0)
            if not rows.growing or rows.largest <= wanted:
                return rows
            wanted = rows.largest


def _check_size(rows: Rows, width: int) -> None:
    """Refuse one large id in a file of many short rows: absent values take memory, too."""
    n = len(rows.y)
    size = 4 * n * width
    # Values that all stand in the text take less than it, however well it is packed.
    if size <= max(_ALWAYS_TAKEN, _LARGEST_MULTIPLE * rows.stored, rows.buffer.size):
        return
    narrow = settle_doubtful_rows(parse(rows.buffer, width=0, max_columns=width - 1))
    at = next((line.number for line in narrow if "is above max_columns" in line.reason), "?")
    raise InputError(
        f"line {at} has the column {width}: {n:,} rows of so many columns take "
        f"{size / 2**30:.1f} GiB, {size // rows.stored} times the file; mend the line, lower "
        "max_columns, or say by n_columns that the rows really have so many"
    )


def settle_doubtful_rows(rows: Rows, *, line: int = 1) -> Iterator[BadLine]:
    """Parse the rows flagged BAD once more, slowly: good ones are stored and lose their flag, bad
    ones are yielded, in the order of the file. ``line`` is the number of the first line."""
    number, counted = line, 0
    parsed: list[tuple[int, ParsedLine]] = []
    for row in map(int, np.flatnonzero(rows.flags & layout.BAD)):
        start, stop = rows.spans[row, [layout.LINE_START, layout.LINE_STOP]].tolist()
        number += int(np.count_nonzero(rows.buffer[counted:start] == ord("\n")))
        counted = start
        text = rows.buffer[start:stop].tobytes()
        try:
            parsed.append((row, parse_line(text, rows.limit, refuse_non_finite=bool(rows.refused))))
        except LineError as error:
            yield BadLine(number, shown(text), str(error))
        if len(parsed) == _STORED_AT_ONCE:
            _store(rows, parsed)
            parsed = []
    _store(rows, parsed)


def bad_lines(rows: Rows) -> list[BadLine]:
    """All that :func:`settle_doubtful_rows` refuses.

    Raises:
        InputError: they are many, and most of the lines so far.
    """
    bad = []
    for line in settle_doubtful_rows(rows):
        bad.append(line)
        if len(bad) > max(MANY_BAD_LINES, line.number // 2):
            raise InputError(
                f"{len(bad):,} of the first {line.number:,} lines are bad: this is hardly LETOR "
                f"text; the first is {bad[0]}"
            )
    return bad


def _all_doubtful(like: Rows, start: int, width: int | None) -> Rows:
    """The rows of a text, unread."""
    spans = []
    for line in like.buffer[start:].tobytes().split(b"\n"):
        text = line.removesuffix(b"\r")
        if text.lstrip(b" \t")[:1] not in (b"", b"#"):
            spans.append((start, start + len(text)))
        start += len(line) + 1
    rows = _empty_rows(like, len(spans))
    rows.X = np.zeros((len(spans), width or 0), dtype=np.float32)
    rows.flags[:] = layout.BAD
    rows.spans[:, [layout.LINE_START, layout.LINE_STOP]] = np.reshape(spans, (-1, 2))
    return rows


def _empty_rows(like: Rows, n: int) -> Rows:
    return replace(
        like,
        X=np.empty((n, 0), dtype=np.float32),
        y=np.empty(n, dtype=np.float32),
        spans=np.empty((n, layout.N_SPANS), dtype=np.int64),
        flags=np.empty(n, dtype=np.uint8),
    )


def _read(rows: Rows, chunk: tuple[int, int], first: int) -> int:
    from letor.kernels import svmlight as kernels

    arrays = layout.RowArrays(rows.X, rows.y, rows.spans, rows.flags)
    return kernels.read_rows(
        rows.buffer, *chunk, first, rows.limit, rows.refused, rows.marks, arrays
    )


def _line_chunks(buffer: NDArray[np.uint8], start: int, size: int) -> list[tuple[int, int]]:
    """Cut a buffer into pieces of whole lines, about ``size`` bytes each."""
    chunks = []
    while start < buffer.size:
        stop = min(find_line_feed(buffer, start + size - 1) + 1, buffer.size)
        chunks.append((start, stop))
        start = stop
    return chunks


def _sampled_width(rows: Rows, start: int) -> int:
    """The largest id in the first, middle and last lines: nearly always that of the file."""
    from letor.kernels import svmlight as kernels

    buffer, width = rows.buffer, 0
    for position in (start, buffer.size // 2, buffer.size - _SAMPLE_BYTES):
        position = find_line_feed(buffer, position) + 1 if position > start else start
        stop = min(find_line_feed(buffer, position + _SAMPLE_BYTES) + 1, buffer.size)
        if position < stop:
            sample = _empty_rows(rows, kernels.count_rows(buffer, position, stop))
            width = max(width, _read(sample, (position, stop), 0))
    return width


def _store(rows: Rows, parsed: list[tuple[int, ParsedLine]]) -> None:
    """Put slowly parsed lines where the kernel would have put them."""
    largest = max((line.columns[-1] for _, line in parsed if line.columns), default=0)
    rows.largest = max(rows.largest, largest)
    extra = largest - rows.X.shape[1]
    if rows.growing and extra > 0:
        _check_size(rows, largest)
        rows.X = np.pad(rows.X, ((0, 0), (0, extra)), constant_values=rows.marks[0])
    for row, line in parsed:
        rows.y[row] = line.label
        rows.X[row] = rows.marks[0]
        flag = 0
        for column, value, kind in zip(line.columns, line.values, line.kinds, strict=True):
            if kind != NUMBER:
                flag |= layout.HAS_NULL if kind == NULL else layout.HAS_NON_FINITE
                value = rows.marks[kind - NULL + 1]
            if column <= rows.X.shape[1]:
                rows.X[row, column - 1] = value
        start = rows.spans[row, layout.LINE_START]
        rows.spans[row, layout.QUERY_START] = start + line.query[0]
        rows.spans[row, layout.QUERY_STOP] = start + line.query[1]
        rows.spans[row, layout.CUT] = start + line.cut
        rows.flags[row] = flag


@dataclass(frozen=True)
class BadLine:
    """A line that was refused.

    Attributes:
        number: 1-based line number.
        text: the line, shortened to 160 characters, bytes that are not ASCII escaped.
        reason: what is wrong with it and what to do.
    """

    number: int
    text: str
    reason: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.reason}; the line: {self.text}"


class LineError(ValueError):
    """Why a line is refused."""


@dataclass(frozen=True)
class ParsedLine:
    """A line's content; spans are byte positions in it.

    ``kinds`` tells for each value whether it is a NUMBER, NULL, NAN_TEXT, INFINITE or HUGE.
    """

    label: np.float32
    query: tuple[int, int]
    columns: list[int]
    values: list[np.float32]
    kinds: list[int]
    cut: int


def shown(text: bytes) -> str:
    """A line or token as error messages show it."""
    short = text if len(text) <= _SHOWN else text[:_SHOWN] + b" ..."
    return short.decode("ascii", "backslashreplace").replace("\r", "\\r").replace("\0", "\\0")


def parse_line(line: bytes, max_columns: int, *, refuse_non_finite: bool = True) -> ParsedLine:
    """Parse a line given without its line end; it is neither blank nor a comment alone.

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
        raise LineError(f"no qid after the label, {found}: {EXPECTED}")
    if words[1] == b"qid:" or min(words[1]) < 32:
        raise LineError(f"the query id in '{shown(words[1])}' is empty or has control characters")
    columns: list[int] = []
    values: list[np.float32] = []
    kinds: list[int] = []
    for word in words[2:]:
        column = _parse_column(word, columns[-1] if columns else 0, max_columns)
        kind, value = parse_value(word[word.index(b":") + 1 :])
        if kind is None:
            raise LineError(f"'{shown(word)}' has no number after the colon")
        if refuse_non_finite and kind not in (NUMBER, NULL):
            raise LineError(
                f"'{shown(word)}' is {_KIND_NAMES[kind]}; read with non_finite=\"nan\" if it "
                "marks a missing value"
            )
        columns.append(column)
        values.append(value)
        kinds.append(kind)
    return ParsedLine(label, (tokens[1][0] + 4, tokens[1][1]), columns, values, kinds, cut)


def _parse_label(word: bytes) -> np.float32:
    kind, label = parse_value(word)
    if kind is None:
        raise LineError(f"the label '{shown(word)}' is not a number: {EXPECTED}")
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
        raise LineError(f"'{shown(word)}': column ids start at 1; add 1 to every id of this file")
    if len(digits) > 18 or int(digits) > max_columns:
        raise LineError(
            f"'{shown(word)}': the id is above max_columns={max_columns}; raise it if the file "
            "really has so many columns"
        )
    column = int(digits)
    if column <= previous:
        fault = "is given twice" if column == previous else f"follows id {previous}"
        raise LineError(f"'{shown(word)}': id {column} {fault}; ids must increase along a line")
    return column


def parse_value(word: bytes) -> tuple[int | None, np.float32]:
    """(kind, float32) of a number's text, the kind None if it is none."""
    if word == b"NULL":
        return NULL, np.float32(0)
    name = word[1:] if word[:1] in (b"+", b"-") else word
    if name.lower() in _NAMES:
        return _NAMES[name.lower()], np.float32(0)
    if len(word) > _LONGEST_NUMBER or not _NUMBER.fullmatch(word):
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
    exact = Fraction(text)  # to double, then to float32: two roundings may end in a neighbour
    if abs(exact) >= _FLOAT32_LIMIT:
        return np.float32(np.copysign(np.inf, number))
    with np.errstate(over="ignore", under="ignore"):
        around = [near, *(np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))]
    finite = [value for value in around if np.isfinite(value)]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), v.view(np.uint32) & 1))
