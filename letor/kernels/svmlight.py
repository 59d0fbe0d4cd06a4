"""Kernels that read LETOR/SVMlight lines: ``label qid:ID id:value ... #comment``."""

from __future__ import annotations

import numpy as np

from letor.kernels.layout import (
    BAD,
    CUT,
    HAS_NON_FINITE,
    HAS_NULL,
    LINE_START,
    LINE_STOP,
    QUERY_START,
    QUERY_STOP,
    SAME_QUERY,
)
from letor.kernels.numbers import (
    CARRIAGE_RETURN,
    COLON,
    EQUALS,
    HASH,
    LINE_FEED,
    MALFORMED,
    NULL,
    NUMBER,
    SPACE,
    TAB,
    ZERO,
    byte_at,
    find_line_feed,
    read_number,
)
from letor.kernels.numbers_fast import read_common_number
from ltr_base.compiled import kernel

_QID = b"qid:"


@kernel(forceinline=True)
def _skip_blanks(buffer, position):
    while True:
        byte = byte_at(buffer, position)
        if byte not in (SPACE, TAB):
            return position
        position += 1


@kernel(forceinline=True)
def _ends_data(buffer, position):
    """Whether a comment or the line end (LF, CRLF) is at ``position``."""
    byte = byte_at(buffer, position)
    if byte == CARRIAGE_RETURN:
        return byte_at(buffer, position + 1) == LINE_FEED
    return byte in (HASH, LINE_FEED)


@kernel(forceinline=True)
def _is_row(buffer, position):
    """Whether the line that starts at ``position`` is neither blank nor only a comment."""
    return not _ends_data(buffer, _skip_blanks(buffer, position))


@kernel()
def count_rows(buffer, start, stop):
    """Number of lines in ``buffer[start:stop]`` that are neither blank nor only a comment.

    ``start`` begins a line and ``stop`` ends one. The first loop is vectorised; the second runs
    only if the first byte of some line leaves open whether it is a row.
    """
    lines, doubtful = 0, 0
    text = buffer[start:stop]
    for i in range(text.size - 1):
        ends = text[i] == LINE_FEED
        lines += ends
        doubtful += ends & (text[i + 1] <= HASH)
    if doubtful == 0 and byte_at(buffer, start) > HASH:
        return lines + 1
    rows, position = 0, start
    while position < stop:
        rows += _is_row(buffer, position)
        position = find_line_feed(buffer, position) + 1
    return rows


@kernel(forceinline=True)
def _read_query_id(buffer, position):
    """Span of the query id at ``position`` ("qid:ID"): (start, stop); stop = -1 if malformed."""
    for i in range(len(_QID)):
        if byte_at(buffer, position + i) != _QID[i]:
            return position, np.int64(-1)
    start = position + 4
    stop = start
    while byte_at(buffer, stop) > SPACE and byte_at(buffer, stop) != HASH:
        stop += 1
    if stop == start or not (byte_at(buffer, stop) in (SPACE, TAB) or _ends_data(buffer, stop)):
        return start, np.int64(-1)
    return start, stop


@kernel(forceinline=True)
def _same_text(buffer, start, stop, other_start, other_stop):
    if stop - start != other_stop - other_start:
        return False
    for i in range(stop - start):  # noqa: SIM110
        if buffer[start + i] != buffer[other_start + i]:
            return False
    return True


@kernel(forceinline=True)
def _read_column(buffer, position, max_columns):
    """The id at ``position`` and its colon: (id, position after the colon); id 0 if malformed."""
    column = 0
    digit = byte_at(buffer, position) - ZERO
    while 0 <= digit <= 9 and column <= max_columns:
        column = column * 10 + digit
        position += 1
        digit = byte_at(buffer, position) - ZERO
    return (column if digit == COLON - ZERO else 0), position + 1


@kernel(forceinline=True)
def _read_values(buffer, position, max_columns, marks, x):
    """The ``id:value`` pairs of a row: (next position or -1 if bad, flags, last id).

    Values are stored in ``x``, gaps as ``marks[0]``, text that is not a float32 as the mark of its
    kind; ids above ``x.size`` are checked and counted but not stored.
    """
    flags, last = 0, 0
    while not _ends_data(buffer, position):
        column, position = _read_column(buffer, position, max_columns)
        if column <= last or column > max_columns:
            return np.int64(-1), flags, last
        is_common, value, stop = read_common_number(buffer, position)
        if is_common:
            position = stop
        else:
            kind, value, position = read_number(buffer, position)
            if kind == MALFORMED:
                return np.int64(-1), flags, last
            if kind != NUMBER:
                value = marks[kind - NULL + 1]
                flags |= HAS_NULL if kind == NULL else HAS_NON_FINITE
        if column <= x.size:
            for j in range(last, column - 1):
                x[j] = marks[0]
            x[column - 1] = value
        last = column
        if byte_at(buffer, position) == SPACE:
            position += 1
        elif byte_at(buffer, position) != TAB and not _ends_data(buffer, position):
            return np.int64(-1), flags, last
        position = _skip_blanks(buffer, position)
    x[last:] = marks[0]
    return position, flags, last


@kernel(forceinline=True)
def _read_row(buffer, position, max_columns, marks, rows, row):
    """Read one row: (where the search for the line end continues, flags, last id)."""
    span = rows.spans[row]
    span[QUERY_START] = span[QUERY_STOP] = 0
    kind, label, stop = read_number(buffer, position)
    if kind != NUMBER or byte_at(buffer, stop) not in (SPACE, TAB):
        return position, BAD, 0
    rows.y[row] = label
    query_start, query_stop = _read_query_id(buffer, _skip_blanks(buffer, stop))
    if query_stop < 0:
        return position, BAD, 0
    span[QUERY_START], span[QUERY_STOP] = query_start, query_stop
    first = _skip_blanks(buffer, query_stop)
    stop, flags, last = _read_values(buffer, first, max_columns, marks, rows.X[row])
    if stop < 0:
        return query_stop, flags | BAD, last
    return stop, flags, last


@kernel()
def read_rows(buffer, start, stop, row, max_columns, refused, marks, rows):
    """Read the rows of the lines in ``buffer[start:stop]`` into rows ``row``, ``row`` + 1, ...

    Args:
        buffer: uint8, the text.
        start, stop: beginning of the first line and end of the last.
        row: number of the first row.
        max_columns: largest id allowed.
        refused: flags that make a row BAD.
        marks: float32 [5], stored for: id absent, NULL, nan, infinite, beyond float32.
        rows: RowArrays, output.

    Returns:
        The largest id of a row that is not BAD.
    """
    largest = 0
    query_start = query_stop = np.int64(0)
    while start < stop:
        first = _skip_blanks(buffer, start)
        if _ends_data(buffer, first):
            start = find_line_feed(buffer, first) + 1
            continue
        span = rows.spans[row]
        position, flag, last = _read_row(buffer, first, max_columns, marks, rows, row)
        end = find_line_feed(buffer, position)
        span[LINE_START], span[CUT] = start, position
        span[LINE_STOP] = end - (buffer[end - 1] == CARRIAGE_RETURN)
        if flag & refused:
            flag |= BAD
        if not flag & BAD:
            largest = max(largest, last)
        if _same_text(buffer, query_start, query_stop, span[QUERY_START], span[QUERY_STOP]):
            flag |= SAME_QUERY
        query_start, query_stop = span[QUERY_START], span[QUERY_STOP]
        rows.flags[row] = flag
        row += 1
        start = end + 1
    return largest


@kernel()
def pack_comments(buffer, spans, offsets, packed, document_spans):
    """Copy the comments side by side and find the document id of each.

    ``document_spans`` (int64 [n, 2], output) are positions in ``packed`` of the word after
    ``docno =`` or else ``docid =``; equal where there is none.
    """
    found = False
    for row in range(spans.shape[0]):
        start, length = spans[row, CUT], offsets[row + 1] - offsets[row]
        for i in range(length):
            packed[offsets[row] + i] = buffer[start + i]
        first, last = _find_document_id(packed, offsets[row], offsets[row + 1])
        document_spans[row, 0], document_spans[row, 1] = first, last
        found |= last > first
    return found


@kernel()
def _find_document_id(text, start, stop):
    found_start = found_stop = start
    position = start
    while position + 5 < stop:
        # "doc" at the start of a word; "id" or "no" follow
        if (
            text[position] == 100
            and text[position + 1] == 111
            and text[position + 2] == 99
            and (position == start or text[position - 1] in (HASH, SPACE, TAB))
        ):
            is_number = text[position + 3] == 110 and text[position + 4] == 111
            is_id = text[position + 3] == 105 and text[position + 4] == 100
            first, last = _word_after_equals(text, position + 5, stop)
            if last > first and (is_number or (is_id and found_stop == found_start)):
                found_start, found_stop = first, last
            if last > first and is_number:
                break
        position += 1
    return found_start, found_stop


@kernel()
def _word_after_equals(text, position, stop):
    """Span of the word after ``=`` at ``position``, blanks around the sign skipped."""
    while position < stop and text[position] in (SPACE, TAB):
        position += 1
    if position >= stop or text[position] != EQUALS:
        return position, position
    position += 1
    while position < stop and text[position] in (SPACE, TAB):
        position += 1
    first = position
    while position < stop and text[position] not in (SPACE, TAB):
        position += 1
    return first, position
