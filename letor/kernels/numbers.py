"""Bytes of a text buffer, eight at a time, and numbers read from them.

Reading past the end of a buffer yields line feeds, so that the end of a file ends its last line.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LINE_FEED, CARRIAGE_RETURN, SPACE, TAB, HASH = 10, 13, 32, 9, 35
PLUS, MINUS, DOT, ZERO, COLON, EQUALS = 43, 45, 46, 48, 58, 61

# What read_number found besides a number that float32 holds.
NUMBER, MALFORMED, NULL, NAN_TEXT, INFINITE, HUGE = 0, 1, 2, 3, 4, 5

_LINE_FEEDS = np.uint64(0x0A0A0A0A0A0A0A0A)
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x0101010101010101)
_U8, _U16, _U32 = np.uint64(8), np.uint64(16), np.uint64(32)
_PAIRS, _PAIR_MASK = np.uint64(2561), np.uint64(0x00FF00FF00FF00FF)
_QUADS, _QUAD_MASK = np.uint64(6553601), np.uint64(0x0000FFFF0000FFFF)
_OCTETS = np.uint64(42949672960001)

_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(71)])
_INTEGER_POWERS = np.array([10**k for k in range(9)], dtype=np.int64)
_TENTHS = np.array([float(f"1e-{k}") for k in range(17)])
_BYTE, _ZERO, _DOT, _HASH = np.uint64(0xFF), np.uint64(ZERO), np.uint64(DOT), np.uint64(HASH)
_EXACT_IN_DOUBLE = 2**53
_ROOM_FOR_DIGIT = 9 * 10**17  # ten times this, plus nine, is an int64
_ROOM_FOR_OCTET = 9 * 10**10
_FLOAT32_LIMIT = float(2.0**128 - 2.0**103)  # from here on, rounding to float32 gives infinity
# A digit string cut at 18 digits, times a power of ten, each correctly rounded, is within this
# relative distance of the exact value (three roundings of 2^-53 and some slack).
_DOUBT = 2.0**-50


@intrinsic
def _load_word(typing_context: Any, buffer: Any, position: Any) -> Any:
    """Eight bytes from ``position`` on, the first in the lowest byte; no bounds check."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        word = builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(buffer, position), generate


@intrinsic
def _load_byte(typing_context: Any, buffer: Any, position: Any) -> Any:
    """The byte at ``position``; no bounds check, no wrap-around of negative positions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte = builder.load(builder.gep(data, [arguments[1]]))
        return builder.zext(byte, ir.IntType(64))

    return types.int64(buffer, position), generate


@intrinsic
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(word), generate


@njit(cache=True, nogil=True, forceinline=True)
def word_at(buffer, position):
    """The eight bytes at ``position`` as one uint64, line feeds beyond the end."""
    if position + 8 <= buffer.size:
        return _load_word(buffer, position)
    word = _LINE_FEEDS
    for i in range(buffer.size - position):
        shift = np.uint64(8 * i)
        word = (word & ~(np.uint64(255) << shift)) | (np.uint64(buffer[position + i]) << shift)
    return word


@njit(cache=True, nogil=True, forceinline=True)
def byte_at(buffer, position):
    """The byte at ``position``, a line feed beyond the end."""
    if position < buffer.size:
        return _load_byte(buffer, position)
    return LINE_FEED


@njit(cache=True, nogil=True)
def find_line_feed(buffer, position):
    """Position of the first line feed at or after ``position``; the buffer's size if none."""
    while position < buffer.size:
        difference = word_at(buffer, position) ^ _LINE_FEEDS
        # The lowest zero byte of ``difference`` is the lowest byte whose high bit is set here.
        found = (difference - _LOW_BITS) & ~difference & _HIGH_BITS
        if found:
            return min(position + (_trailing_zeros(found) >> 3), buffer.size)
        position += 8
    return buffer.size


@njit(cache=True, nogil=True, forceinline=True)
def leading_digits(word):
    """How many of the first bytes of ``word`` are digits (0..8), and their value as a number."""
    digits = word ^ _ZEROS
    other = ((digits + _ABOVE_NINE) | digits) & _HIGH_BITS
    count = _trailing_zeros(other) >> 3
    half = np.uint64(32 - 4 * count)  # in two steps, since a shift by 64 is undefined
    digits = (digits << half) << half
    digits = ((digits * _PAIRS) >> _U8) & _PAIR_MASK
    digits = ((digits * _QUADS) >> _U16) & _QUAD_MASK
    return count, np.int64((digits * _OCTETS) >> _U32)


@njit(cache=True, nogil=True, forceinline=True)
def _read_digits(buffer, position, mantissa):
    """Append a run of digits to ``mantissa``: (mantissa, digits appended, digits dropped, next)."""
    start, dropped = position, 0
    while True:
        if mantissa > _ROOM_FOR_OCTET:
            break
        count, value = leading_digits(word_at(buffer, position))
        mantissa = mantissa * _INTEGER_POWERS[count] + value
        position += count
        if count < 8:
            return mantissa, position - start, 0, position
    digit = byte_at(buffer, position) - ZERO
    while 0 <= digit <= 9:
        if mantissa <= _ROOM_FOR_DIGIT:
            mantissa = mantissa * 10 + digit
        else:
            dropped += 1
        position += 1
        digit = byte_at(buffer, position) - ZERO
    return mantissa, position - start - dropped, dropped, position


@njit(cache=True, nogil=True, forceinline=True)
def _read_exponent(buffer, position):
    """The decimal exponent at ``e`` or ``E``: (exponent, next), next = -1 if malformed."""
    position += 1
    sign = byte_at(buffer, position)
    position += sign in (PLUS, MINUS)
    start, exponent = position, 0
    digit = byte_at(buffer, position) - ZERO
    while 0 <= digit <= 9:
        exponent = min(exponent * 10 + digit, 10**12)
        position += 1
        digit = byte_at(buffer, position) - ZERO
    if position == start:
        return 0, np.int64(-1)
    return (-exponent if sign == MINUS else exponent), position


@njit(cache=True, nogil=True, forceinline=True)
def _lower_case_matches(buffer, position, text):
    for i in range(len(text)):  # noqa: SIM110
        if byte_at(buffer, position + i) | 32 != text[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _read_name(buffer, position, signed):
    """NULL, nan, inf or infinity, the last three in any case: (kind, next)."""
    if (
        not signed
        and byte_at(buffer, position) == 78
        and byte_at(buffer, position + 1) == 85
        and byte_at(buffer, position + 2) == 76
        and byte_at(buffer, position + 3) == 76
    ):
        return NULL, position + 4
    if _lower_case_matches(buffer, position, b"nan"):
        return NAN_TEXT, position + 3
    if _lower_case_matches(buffer, position, b"infinity"):
        return INFINITE, position + 8
    if _lower_case_matches(buffer, position, b"inf"):
        return INFINITE, position + 3
    return MALFORMED, position


@njit(cache=True, nogil=True, forceinline=True)
def _scale_whole(mantissa, exponent, value):
    """Whole numbers between two float32, as in ``16777217.0``: decided where double is exact."""
    is_exact = mantissa < _EXACT_IN_DOUBLE and -15 <= exponent < 0 and value == np.floor(value)
    if is_exact and value * _POWERS_OF_TEN[-exponent] == np.float64(mantissa):
        return NUMBER, np.float32(value)
    return MALFORMED, np.float32(0.0)


@njit(cache=True, nogil=True, forceinline=True)
def _scale(mantissa, exponent):
    """mantissa * 10^exponent as float32: (kind, value); MALFORMED where double cannot decide."""
    if mantissa == 0:
        return NUMBER, np.float32(0.0)
    if exponent == 0 and mantissa < _EXACT_IN_DOUBLE:
        return NUMBER, np.float32(mantissa)
    if exponent < -65:  # below half of the smallest float32
        return NUMBER, np.float32(0.0)
    if exponent > 38:
        return HUGE, np.float32(0.0)
    if exponent <= 0:
        value = np.float64(mantissa) / _POWERS_OF_TEN[-exponent]
    else:
        value = np.float64(mantissa) * _POWERS_OF_TEN[exponent]
    low, high = np.float32(value * (1.0 - _DOUBT)), np.float32(value * (1.0 + _DOUBT))
    if low != high:
        return _scale_whole(mantissa, exponent, value)
    if value >= _FLOAT32_LIMIT:
        return HUGE, low
    return NUMBER, low


@njit(cache=True, nogil=True)
def read_number(buffer, position):
    """Read the number at ``position``: (kind, float32 value, next position).

    Any decimal text with an optional sign, point and exponent, correctly rounded (half to even).
    ``kind`` is NUMBER, NULL, NAN_TEXT, INFINITE, HUGE (beyond float32), or MALFORMED: no number,
    or one so close to the middle of two float32 that double arithmetic cannot tell (about one
    in 10^7 of long ones); the caller then decides with exact arithmetic.
    """
    first = byte_at(buffer, position)
    signed = first in (MINUS, PLUS)
    position += signed
    start = position
    mantissa, digits, dropped, position = _read_digits(buffer, position, 0)
    exponent = dropped
    digits += dropped
    if byte_at(buffer, position) == DOT:
        mantissa, fraction, ignored, position = _read_digits(buffer, position + 1, mantissa)
        exponent -= fraction
        digits += fraction + ignored
    if digits == 0:
        if position > start:
            return MALFORMED, np.float32(0.0), position
        kind, position = _read_name(buffer, position, signed)
        return kind, np.float32(0.0), position
    if byte_at(buffer, position) | 32 == 101:
        power, position = _read_exponent(buffer, position)
        if position < 0:
            return MALFORMED, np.float32(0.0), start
        exponent += power
    kind, value = _scale(mantissa, exponent)
    return kind, (-value if first == MINUS else value), position


@njit(cache=True, nogil=True, forceinline=True)
def read_common_number(buffer, position):
    """The usual forms of a number before a blank, comment or line end: up to seven digits, then
    perhaps a point and up to fifteen decimals: (is it one, value, next position).

    Equals ``read_number``, which decides all else. Two things make it fast: eight digits become a
    number at a time, and the position after ``0.`` does not wait for their count.
    """
    if position + 32 > buffer.size:
        return False, np.float32(0.0), position
    word = _load_word(buffer, position)
    count, mantissa = 1, np.int64((word & _BYTE) ^ _ZERO)
    if mantissa > 9 or (word >> _U8) & _BYTE != _DOT:
        count, mantissa = leading_digits(word)
        if count == 0 or count == 8:
            return False, np.float32(0.0), position
        after = (word >> np.uint64(8 * count)) & _BYTE
        if after <= _HASH:
            return True, np.float32(mantissa), position + count
        if after != _DOT:
            return False, np.float32(0.0), position
    position += count + 1
    word = _load_word(buffer, position)
    decimals, fraction = leading_digits(word)
    mantissa = mantissa * _INTEGER_POWERS[decimals] + fraction
    position += decimals
    if decimals >= 7 and mantissa < _ROOM_FOR_OCTET:  # after fewer than eight, none follow
        word = _load_word(buffer, position)
        count, fraction = leading_digits(word)
        mantissa = mantissa * _INTEGER_POWERS[count] + fraction
        position += count
        decimals += count
        word >>= np.uint64(8 * (count & 7))
    else:
        word >>= np.uint64(8 * (decimals & 7))
    if word & _BYTE > _HASH:
        return False, np.float32(0.0), position
    value = np.float64(mantissa) * _TENTHS[decimals]
    low, high = np.float32(value * (1.0 - _DOUBT)), np.float32(value * (1.0 + _DOUBT))
    return low == high, low, position
