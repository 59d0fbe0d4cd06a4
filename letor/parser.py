"""Parsing of LETOR text: kernels over chunks of lines, then doubtful lines exactly, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from letor.kernels import layout
from letor.kernels.numbers import NULL, NUMBER, find_line_feed
from letor.line import BadLine, LineError, ParsedLine, parse_line, shown
from ltr_base.parallel import thread_count

CHUNK_BYTES = 1 << 22  # fixed, so that nothing depends on the number of threads
#: Shorter texts are parsed line by line, which takes less time than loading the kernels (and far
#: less than compiling them, on a machine that has not run them yet).
KERNELS_FROM_BYTES = 1 << 16
#: Number of exactly parsed lines that are collected before they are stored.
_STORED_AT_ONCE = 1 << 12
_SAMPLE_BYTES = 1 << 16
_ROW_BEHIND_CR = re.compile(rb"\r[ \t]*[^\s#]+[ \t]+qid:")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# What X holds while reading for a value that is absent, NULL, nan, infinite or beyond float32:
# NaNs with different payloads, in the order of the kinds in letor.kernels.numbers.
MARK_BITS = 0x7FC00000 + np.arange(5, dtype=np.uint32)
NULL_BITS = MARK_BITS[1]

#: Parsing stops at more bad lines than this, if they are most of the lines so far.
MANY_BAD_LINES = 100_000
#: Limit on the memory of X: a number of bytes or, if larger, a multiple of the size of the file.
_ALWAYS_TAKEN, _LARGEST_MULTIPLE = 2**28, 64


@dataclass
class Rows:
    """Rows as parsed, before options are applied.

    Attributes:
        buffer: uint8, the text.
        marks: float32 [5], what is stored for absent, NULL, nan, infinite, huge.
        limit: rows with larger ids are layout.BAD.
        refused: flags that make a row layout.BAD.
        growing: whether ``X`` gets as many columns as the rows have.
        stored: size of the file in bytes.
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
    """Run the parsing kernels over the chunks of a buffer; all rows of a short buffer are left to
    :func:`settle_doubtful_rows`.

    Args:
        buffer: uint8, the text.
        missing: 0 or NaN, the value of columns absent from a line.
        width: number of columns to store; default: the largest id.
        max_columns: rows with larger ids are flagged layout.BAD.
        refuse_non_finite: whether rows with nan, infinite or huge values are flagged layout.BAD.
        stored: size of the file in bytes, if it is compressed.
        threads: number of threads; default: all cores.

    Raises:
        InputError: lines end with CR alone, or the rows take far more memory than the text.
    """
    n_threads = thread_count(threads)
    marks = MARK_BITS.view(np.float32).copy()
    if missing == 0:
        marks[0] = 0
    refused = layout.HAS_NON_FINITE if refuse_non_finite else 0
    start = len(_BYTE_ORDER_MARK) if buffer[:3].tobytes() == _BYTE_ORDER_MARK else 0
    _check_line_ends(buffer)
    like = Rows(buffer, marks, max_columns, refused, width is None, stored or buffer.size)
    if buffer.size < KERNELS_FROM_BYTES:
        return _all_doubtful(like, start, width)
    from letor.kernels import svmlight as kernels  # with numba

    chunks = _line_chunks(buffer, start, CHUNK_BYTES)
    with ThreadPoolExecutor(n_threads) as pool:
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


def _check_line_ends(buffer: NDArray[np.uint8]) -> None:
    """Raise InputError if lines end with CR alone: all would be one line, and those behind its
    first ``#`` a comment."""
    head = buffer[:CHUNK_BYTES].tobytes().rstrip(b"\n")
    if b"\n" not in head and _ROW_BEHIND_CR.search(head):
        raise InputError(
            "the lines end with CR alone, as on old Macs; convert the line ends to LF (by tr "
            "'\\r' '\\n', for example)"
        )


def _check_size(rows: Rows, width: int) -> None:
    """Raise InputError if a large id in a file of many short rows makes X too large."""
    n = len(rows.y)
    size = 4 * n * width
    # If every value is in the text, X takes less memory than it, however small the file.
    if size <= max(_ALWAYS_TAKEN, _LARGEST_MULTIPLE * rows.stored, rows.buffer.size):
        return
    narrow = settle_doubtful_rows(parse(rows.buffer, width=0, max_columns=width - 1))
    number = next((line.number for line in narrow if "is above max_columns" in line.reason), "?")
    raise InputError(
        f"line {number} has the column {width}: {n:,} rows of so many columns take "
        f"{size / 2**30:.1f} GiB, {size // rows.stored} times the file; correct the line, lower "
        "max_columns (--max-columns), or set n_columns if the rows really have so many"
    )


def settle_doubtful_rows(rows: Rows, *, line: int = 1) -> Iterator[BadLine]:
    """Parse the rows flagged BAD again, exactly: good ones are stored and lose their flag, bad ones
    are yielded in the order of the file. ``line`` is the number of the first line."""
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
    """All lines that :func:`settle_doubtful_rows` finds malformed.

    Raises:
        InputError: more than ``MANY_BAD_LINES`` lines are bad, and most of the lines so far.
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
    """All rows of a text, flagged BAD without being parsed."""
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
    """The largest id in the first, middle and last lines, nearly always that of the whole file."""
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
    """Store exactly parsed lines as the kernel would have done."""
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
