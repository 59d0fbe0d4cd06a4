"""Kernel over bags of vectors: maximum cosines of pairs."""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel


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
