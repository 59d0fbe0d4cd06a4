"""Kernels that write LETOR/SVMlight lines; numbers as the shortest text that reads back equal."""

from __future__ import annotations

import numpy as np

from letor.kernels.numbers import COLON, DOT, MINUS, SPACE, TAB, ZERO
from letor.kernels.shortest_decimal import shortest_decimal
from ltr_base.compiled import kernel

MAX_FIXED_DIGITS = 12  # a float32 times 10^12 is exact in double: 24 + 28 bits
MAX_NUMBER_LENGTH = 17  # of the shortest text, sign included
MAX_FIXED_LENGTH = 33  # sign, 19 digits, point, 12 decimals

_INTEGER_POWERS = np.array([10**k for k in range(19)], dtype=np.int64)
_DOUBLE_POWERS = 10.0 ** np.arange(MAX_FIXED_DIGITS + 1)
_FIXED_LIMIT = 9.0e18
# Typed, since kernels are compiled separately for each literal that they are called with.
_ZERO, _ONE, _SHORTEST = np.int64(0), np.int64(1), np.int64(-1)


@kernel(forceinline=True)
def _count_digits(number):
    count = 1
    while count < 19 and number >= _INTEGER_POWERS[count]:
        count += 1
    return count


@kernel(forceinline=True)
def _write_digits(out, position, number, count):
    """Write the last ``count`` digits of a number, with leading zeros."""
    for i in range(position + count - 1, position - 1, -1):
        out[i] = ZERO + number % 10
        number //= 10
    return position + count


@kernel(forceinline=True)
def _write_integer(out, position, number):
    return _write_digits(out, position, number, _count_digits(number))


@kernel(forceinline=True)
def _write_decimal(out, position, digits, exponent):
    """Write digits * 10^exponent, plainly or as d.ddde-xx, whichever suits its size."""
    while digits % 10 == 0:
        digits //= 10
        exponent += 1
    count = _count_digits(digits)
    point = count + exponent
    if 0 < point <= 9 and exponent >= 0:
        return _write_integer(out, position, digits * _INTEGER_POWERS[exponent])
    if 0 < point <= 9:
        whole = digits // _INTEGER_POWERS[-exponent]
        position = _write_digits(out, position, whole, point)
        out[position] = DOT
        return _write_digits(out, position + 1, digits, -exponent)
    if -5 < point <= 0:
        out[position] = ZERO
        out[position + 1] = DOT
        return _write_digits(out, position + 2, digits, -exponent)
    position = _write_digits(out, position, digits // _INTEGER_POWERS[count - 1], _ONE)
    if count > 1:
        out[position] = DOT
        position = _write_digits(out, position + 1, digits, count - 1)
    out[position] = 101  # e
    position += 1
    if point < 1:
        out[position] = MINUS
        position += 1
    return _write_integer(out, position, abs(point - 1))


@kernel(forceinline=True)
def write_number(out, position, value, bits, fixed):
    """Write a float32 (``bits``: its bit pattern): the next position, -1 if it cannot be written.

    ``fixed`` is the number of decimals, rounded half to even as printf does, or -1 for the
    shortest text that reads back equal.
    """
    if bits >> 31:
        out[position] = MINUS
        position += 1
        bits &= 0x7FFFFFFF
        value = -value
    if bits >= 0x7F800000:
        return np.int64(-1)
    if fixed < 0:
        if bits == 0:
            out[position] = ZERO
            return position + 1
        digits, exponent = shortest_decimal(bits)
        return _write_decimal(out, position, digits, exponent)
    scaled = np.float64(value) * _DOUBLE_POWERS[fixed]
    if scaled > _FIXED_LIMIT:
        return np.int64(-1)
    number = np.int64(np.rint(scaled))
    position = _write_integer(out, position, number // _INTEGER_POWERS[fixed])
    if fixed > 0:
        out[position] = DOT
        position = _write_digits(out, position + 1, number, fixed)
    return position


@kernel(forceinline=True)
def _copy(source, start, stop, out, position):
    piece, target = source[start:stop], out[position : position + stop - start]
    for i in range(piece.size):
        target[i] = piece[i]
    return position + piece.size


@kernel(forceinline=True)
def _is_blank(byte):
    return byte in (SPACE, TAB)


@kernel()
def write_heads(y, bits, query_index, query_text, query_spans, out, spans):
    """Write ``label qid:ID `` of each row into ``out``; ``spans`` (int64 [n, 2]) says where."""
    position = np.int64(0)
    for i in range(y.size):
        spans[i, 0] = position
        position = write_number(out, position, y[i], np.int64(bits[i]), _SHORTEST)
        for byte in (SPACE, 113, 105, 100, COLON):  # " qid:"
            out[position] = byte
            position += 1
        q = query_index[i]
        position = _copy(query_text, query_spans[q, 0], query_spans[q, 1], out, position)
        out[position] = SPACE
        position += 1
        spans[i, 1] = position


@kernel()
def write_rows(heads, head_spans, tails, tail_spans, values, bits, first_id, fixed, line_end, out):
    """Write rows as head, ``id:value`` of the values that are not NaN, tail, line end.

    Blanks are added where needed: before a value, and between the last value and a tail.

    Args:
        heads, tails: uint8, texts that hold the beginnings and ends of the rows.
        head_spans, tail_spans: int64 [n, 2], their positions.
        values, bits: float32 and uint32 [n, k], the same numbers.
        first_id: id of the first value.
        fixed: as in ``write_number``.
        line_end: uint8, may be empty.
        out: uint8, output, large enough.

    Returns:
        (length, 0, 0), or (-1, row, column) of a value that ``write_number`` refuses.
    """
    position = np.int64(0)
    for i in range(values.shape[0]):
        position = _copy(heads, head_spans[i, 0], head_spans[i, 1], out, position)
        start = position
        for j in range(values.shape[1]):
            if np.isnan(values[i, j]):
                continue
            if position == 0 or not _is_blank(out[position - 1]):
                out[position] = SPACE
                position += 1
            position = _write_integer(out, position, first_id + j)
            out[position] = COLON
            position = write_number(out, position + 1, values[i, j], np.int64(bits[i, j]), fixed)
            if position < 0:
                return position, i, j
        if position > start and tail_spans[i, 1] > tail_spans[i, 0]:
            out[position] = SPACE
            position += 1
        position = _copy(tails, tail_spans[i, 0], tail_spans[i, 1], out, position)
        position = _copy(line_end, _ZERO, line_end.size, out, position)
    return position, 0, 0
