"""Kernels over embeddings: cosines of bags of vectors, and doc2vec inference."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def bag_maxima(documents, ends, terms, best, out):
    """The greatest ``best[t]`` over the entries t of each document; untouched without entries.

    Args:
        documents: int64 [n].
        ends, terms: documents in compressed rows, int64 and int32.
        best: float32 [V], cosines.
        out: float32 [n], written.
    """
    for i in range(len(documents)):
        greatest = -2.0
        for at in range(ends[documents[i]], ends[documents[i] + 1]):
            value = best[terms[at]]
            if value > greatest:
                greatest = value
        if greatest > -2.0:
            out[i] = greatest


@njit(cache=True, nogil=True)
def row_dots(left_rows, right_rows, left, right, out):
    """out[i] = left[left_rows[i]] . right[right_rows[i]], summed in float64.

    Args:
        left_rows, right_rows: int64 [n].
        left, right: float32 [*, d].
        out: float32 [n], written.
    """
    for i in range(len(left_rows)):
        a, b = left_rows[i], right_rows[i]
        total = 0.0
        for k in range(left.shape[1]):
            total += left[a, k] * right[b, k]
        out[i] = total
