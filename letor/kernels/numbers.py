"""Bytes of a text buffer, and numbers read from them.

Reading past the end of a buffer yields line feeds, so that the end of a file ends its last line.
"""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel

LINE_FEED, CARRIAGE_RETURN, SPACE, TAB, HASH = 10, 13, 32, 9, 35
PLUS, MINUS, DOT, ZERO, COLON, EQUALS = 43, 45, 46, 48, 58, 61

# Kinds of text that read_number distinguishes.
NUMBER, MALFORMED, NULL, NAN_TEXT, INFINITE, HUGE = 0, 1, 2, 3, 4, 5

_POWERS_OF_TEN = np.array([float(f"1e{k}") for k in range(71)])
_EXACT_IN_DOUBLE = 2**53
#: Characters of a number; the time of exact rounding grows with their square.
LONGEST_NUMBER = 1000
#: Whole numbers up to this are exact in float32.
EXACT_IN_FLOAT32 = 2**24
_ROOM_FOR_DIGIT = 9 * 10**17  # ten times this, plus nine, fits an int64
_FLOAT32_LIMIT = float(2.0**128 - 2.0**103)  # from here on, rounding to float32 gives infinity
# A digit string cut at 18 digits, times a power of ten, each correctly rounded, is within this
# relative distance of the exact value (three roundings of 2^-53 and some slack).
DOUBT = 2.0**-50


@kernel(forceinline=True)
def byte_at(buffer, position):
    """The byte at ``position``, a line feed beyond the end."""
    if position < buffer.size:
        return np.int64(buffer[np.uint64(position)])  # unsigned: no check for negative indices
    return LINE_FEED


@kernel()
def find_line_feed(buffer, position):
    """Position of the first line feed at or after ``position``, or else the buffer's size."""
    while position < buffer.size and byte_at(buffer, position) != LINE_FEED:
        position += 1
    return min(position, buffer.size)


@kernel(forceinline=True)
def _read_digits(buffer, position, mantissa):
    """Append a run of digits to ``mantissa``: (mantissa, digits appended, digits dropped, next)."""
    start, dropped = position, 0
    digit = byte_at(buffer, position) - ZERO
    while 0 <= digit <= 9:
        if mantissa <= _ROOM_FOR_DIGIT:
            mantissa = mantissa * 10 + digit
        else:
            dropped += 1
        position += 1
        digit = byte_at(buffer, position) - ZERO
    return mantissa, position - start - dropped, dropped, position


@kernel(forceinline=True)
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


@kernel(forceinline=True)
def _lower_case_matches(buffer, position, text):
    for i in range(len(text)):  # noqa: SIM110
        if byte_at(buffer, position + i) | 32 != text[i]:
            return False
    return True


@kernel()
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


@kernel(forceinline=True)
def _scale_whole(mantissa, exponent, value):
    """Round whole numbers between two float32, as ``16777217.0``, if they are exact in double."""
    is_exact = mantissa < _EXACT_IN_DOUBLE and -15 <= exponent < 0 and value == np.floor(value)
    if is_exact and value * _POWERS_OF_TEN[-exponent] == np.float64(mantissa):
        return NUMBER, np.float32(value)
    return MALFORMED, np.float32(0.0)


@kernel(forceinline=True)
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
    low, high = np.float32(value * (1.0 - DOUBT)), np.float32(value * (1.0 + DOUBT))
    if low != high:
        return _scale_whole(mantissa, exponent, value)
    if value >= _FLOAT32_LIMIT:
        return HUGE, low
    return NUMBER, low


@kernel()
def read_number(buffer, position):
    """Read the number at ``position``: (kind, float32 value, next position).

    Any decimal text with an optional sign, point and exponent, correctly rounded (half to even).
    ``kind`` is NUMBER, NULL, NAN_TEXT, INFINITE, HUGE (beyond float32), or MALFORMED: no number,
    one of more than LONGEST_NUMBER characters, or one so close to the middle of two float32 that
    double arithmetic cannot tell (about one in 10^7 of long ones); the caller then decides with
    exact arithmetic.
    """
    begin, first = position, byte_at(buffer, position)
    signed = first in (MINUS, PLUS)
    position += signed
    start = position
    mantissa, digits, dropped, position = _read_digits(buffer, position, np.int64(0))
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
    if position - begin > LONGEST_NUMBER:
        return MALFORMED, np.float32(0.0), position
    kind, value = _scale(mantissa, exponent)
    return kind, (-value if first == MINUS else value), position
