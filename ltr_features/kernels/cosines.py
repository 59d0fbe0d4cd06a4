"""Kernels over bags of vectors: their means, and average and maximum cosines of pairs."""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel


@kernel()
def known_members(ends, members, weights, units, out_ends, out_members, out_means):
    """Keep the members of bags that have a positive weight and a vector, and average each bag.

    Args:
        ends, members, weights: bags in compressed rows, int64, int32, float64.
        units: float32 [m, d], the members' vectors, 0 where unknown.
        out_ends: int64 [n + 1]; out_members: int32, as long as ``members``; out_means: float32
            [n, d], weighted means: written.

    Returns:
        The number of kept members.
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


@kernel()
def bag_maxima(asked, documents, ends, members, units, best, out):
    """The greatest dot product of a row of ``asked`` and a member of each document; ``out`` is left
    unchanged for documents without members.

    Args:
        asked: float32 [a, d], a > 0.
        documents: int64 [n].
        ends, members: documents in compressed rows, int64 and int32.
        units: float32 [m, d].
        best: float32 [m], the greatest product of each unit, at most 1; -2 if not yet known;
            written.
        out: float32 [n], written.
    """
    _greatest_dots(asked, units, _unknown_members(documents, ends, members, best), best)
    for i in range(len(documents)):
        greatest = np.float32(-2.0)
        for at in range(ends[documents[i]], ends[documents[i] + 1]):
            greatest = max(greatest, best[members[at]])
            if greatest == 1.0:
                break
        if greatest > -1.5:
            out[i] = greatest


@kernel()
def _unknown_members(documents, ends, members, best):
    """The distinct members whose product is not yet in ``best``. Documents with a member of product
    1 are skipped: no other member can be closer."""
    most = 0
    for document in documents:
        most += ends[document + 1] - ends[document]
    unknown = np.empty(min(most, len(best)), dtype=np.int32)
    n = 0
    for document in documents:
        closest = False
        for at in range(ends[document], ends[document + 1]):
            if best[members[at]] == 1.0:
                closest = True
                break
        if not closest:
            for at in range(ends[document], ends[document + 1]):
                if best[members[at]] == -2.0:
                    best[members[at]] = -1.0
                    unknown[n] = members[at]
                    n += 1
    return unknown[:n]


@kernel(fastmath={"reassoc", "contract", "nsz"})
def _greatest_dots(rows, units, chosen, best):
    """best[m] = the greatest product of a row and unit m, -1 to 1, for the chosen units."""
    for member in chosen:
        unit, greatest = units[member], np.float32(-1.0)
        for j in range(len(rows)):
            row, product = rows[j], np.float32(0.0)
            for k in range(len(row)):
                product += row[k] * unit[k]
            greatest = max(greatest, product)
        best[member] = min(greatest, np.float32(1.0))


@kernel(fastmath={"reassoc", "contract", "nsz"})
def row_dots(left_rows, right_rows, left, right, out):
    """out[i] = left[left_rows[i]] . right[right_rows[i]], summed in float64, clipped to -1..1.

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
