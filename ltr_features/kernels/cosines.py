"""Kernels over bags of vectors: their means, and average and greatest cosines of pairs."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def known_members(ends, members, weights, units, out_ends, out_members, out_means):
    """The members of bags that have a positive weight and a vector, and the bags' weighted means.

    Args:
        ends, members, weights: bags in compressed rows, int64, int32, float64.
        units: float32 [m, d], the members' vectors, 0 where unknown.
        out_ends: int64 [n + 1]; out_members: int32, as long as ``members``; out_means: float32
            [n, d]: written.

    Returns:
        How many members are left.
    """
    total = np.empty(units.shape[1], dtype=np.float64)
    kept = 0
    out_ends[0] = 0
    for i in range(len(ends) - 1):
        total[:] = 0.0
        weight = 0.0
        for at in range(ends[i], ends[i + 1]):
            member = members[at]
            unit = units[member]
            if weights[at] <= 0.0 or not unit.any():
                continue
            weight += weights[at]
            for k in range(len(total)):
                total[k] += weights[at] * np.float64(unit[k])
            out_members[kept] = member
            kept += 1
        out_ends[i + 1] = kept
        for k in range(len(total)):
            out_means[i, k] = total[k] / (weight if weight > 0.0 else 1.0)
    return kept


@njit(cache=True, nogil=True)
def bag_maxima(asked, documents, ends, members, units, best, out):
    """The greatest dot product of a row of ``asked`` and a member of each document; untouched
    without members.

    Args:
        asked: float32 [a, d], a > 0.
        documents: int64 [n].
        ends, members: documents in compressed rows, int64 and int32.
        units: float32 [m, d].
        best: float32 [m], the greatest product of each unit, at most 1; -2 where it is not known
            yet; written.
        out: float32 [n], written.
    """
    for i in range(len(documents)):
        first, last = ends[documents[i]], ends[documents[i] + 1]
        greatest = np.float32(-2.0)
        for at in range(first, last):
            greatest = max(greatest, best[members[at]])
            if greatest == 1.0:  # no other member is closer
                break
        if greatest < 1.0:
            for at in range(first, last):
                member = members[at]
                if best[member] < -1.5:
                    best[member] = _greatest_dot(asked, units[member])
                greatest = max(greatest, best[member])
        if greatest > -1.5:
            out[i] = greatest


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _greatest_dot(rows, unit):
    """Four rows at a time, so that the unit is read once for four products."""
    greatest = np.float32(-1.0)
    whole = len(rows) // 4 * 4
    for i in range(0, whole, 4):
        r0, r1, r2, r3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        x0 = np.float32(0.0)
        x1 = np.float32(0.0)
        x2 = np.float32(0.0)
        x3 = np.float32(0.0)
        for k in range(len(unit)):
            x0 += r0[k] * unit[k]
            x1 += r1[k] * unit[k]
            x2 += r2[k] * unit[k]
            x3 += r3[k] * unit[k]
        greatest = max(greatest, max(max(x0, x1), max(x2, x3)))
    for i in range(whole, len(rows)):
        r = rows[i]
        x = np.float32(0.0)
        for k in range(len(unit)):
            x += r[k] * unit[k]
        greatest = max(greatest, x)
    return min(greatest, np.float32(1.0))


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def row_dots(left_rows, right_rows, left, right, out):
    """out[i] = left[left_rows[i]] . right[right_rows[i]], summed in float64, at most 1 in size.

    Args:
        left_rows, right_rows: int64 [n].
        left, right: float32 [*, d].
        out: float32 [n], written.
    """
    for i in range(len(left_rows)):
        a, b = left[left_rows[i]], right[right_rows[i]]
        total = 0.0
        for k in range(len(a)):
            total += a[k] * b[k]
        out[i] = min(max(total, -1.0), 1.0)
