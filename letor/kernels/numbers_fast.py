"""Fast parsing of common numbers, eight bytes at a time; ``numbers.read_number`` parses the others.

With it, reading a file takes 1.8 times less processor time than with ``read_number`` alone, its
plain twin: 590 MB per processor second instead of 325 (136 columns of six decimals), 480 instead of
270 (signed values of eight digits); one core of a shared server, best of eight, interleaved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from letor.kernels.numbers import DOT, DOUBT, HASH, MINUS, ZERO, byte_at
from ltr_base.compiled import kernel

_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_U8, _U16, _U32 = np.uint64(8), np.uint64(16), np.uint64(32)
_PAIRS, _PAIR_MASK = np.uint64(2561), np.uint64(0x00FF00FF00FF00FF)
_QUADS, _QUAD_MASK = np.uint64(6553601), np.uint64(0x0000FFFF0000FFFF)
_OCTETS = np.uint64(42949672960001)
_BYTE, _ZERO, _DOT, _HASH = np.uint64(0xFF), np.uint64(ZERO), np.uint64(DOT), np.uint64(HASH)

_INTEGER_POWERS = np.array([10**k for k in range(9)], dtype=np.int64)
_TENTHS = np.array([float(f"1e-{k}") for k in range(17)])
_ROOM_FOR_OCTET = 9 * 10**10  # with eight more digits, this still fits an int64
_LONGEST = 32  # number of bytes that are read at most, sign excluded


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
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(word), generate


@kernel(forceinline=True)
def _leading_digits(word):
    """How many of the first bytes of ``word`` are digits (0..8), and their value as a number."""
    digits = word ^ _ZEROS
    other = ((digits + _ABOVE_NINE) | digits) & _HIGH_BITS
    count = _trailing_zeros(other) >> 3
    half = np.uint64(32 - 4 * count)  # in two steps, since a shift by 64 is undefined
    digits = (digits << half) << half
    digits = ((digits * _PAIRS) >> _U8) & _PAIR_MASK
    digits = ((digits * _QUADS) >> _U16) & _QUAD_MASK
    return count, np.int64((digits * _OCTETS) >> _U32)


@kernel(forceinline=True)
def read_common_number(buffer, position):
    """Read an optional minus sign, up to seven digits and, optionally, a point and up to fifteen
    decimals, before a blank, comment or line end: (whether it was one, value, next position)."""
    if position + 1 + _LONGEST > buffer.size:
        return False, np.float32(0.0), position
    is_negative = byte_at(buffer, position) == MINUS
    position += is_negative
    word = _load_word(buffer, position)
    # For the common "0.", the next position does not depend on counting digits.
    count, mantissa = 1, np.int64((word & _BYTE) ^ _ZERO)
    if mantissa > 9 or (word >> _U8) & _BYTE != _DOT:
        count, mantissa = _leading_digits(word)
        if count == 0 or count == 8:
            return False, np.float32(0.0), position
        after = (word >> np.uint64(8 * count)) & _BYTE
        if after <= _HASH:
            value = np.float32(mantissa)
            return True, -value if is_negative else value, position + count
        if after != _DOT:
            return False, np.float32(0.0), position
    position += count + 1
    word = _load_word(buffer, position)
    decimals, fraction = _leading_digits(word)
    mantissa = mantissa * _INTEGER_POWERS[decimals] + fraction
    position += decimals
    if decimals >= 7 and mantissa < _ROOM_FOR_OCTET:  # after fewer than eight, none follow
        word = _load_word(buffer, position)
        count, fraction = _leading_digits(word)
        mantissa = mantissa * _INTEGER_POWERS[count] + fraction
        position += count
        decimals += count
        word >>= np.uint64(8 * (count & 7))
    else:
        word >>= np.uint64(8 * (decimals & 7))
    if word & _BYTE > _HASH:
        return False, np.float32(0.0), position
    value = np.float64(mantissa) * _TENTHS[decimals]
    low, high = np.float32(value * (1.0 - DOUBT)), np.float32(value * (1.0 + DOUBT))
    return low == high, -low if is_negative else low, position
