"""Kernels for the margin ranking loss of a batch and for average precision."""

from __future__ import annotations

import numba as nb
import numpy as np


@nb.njit(cache=True, nogil=True)
def hinge_weights(
    positive_score, negative_score, query, grade, negatives, slot,
    judged_offsets, judged_document, judged_grade, margin, weight,
):  # fmt: skip
    """Margin ranking loss of each positive against all shared negatives.

    weight[b, k] = 1 where ``margin - f(q, d+) + f(q, d-) > 0``, else 0 (the negative derivative of
    the summed hinge by ``f(q, d+) - f(q, d-)``). A negative that is judged for the query with a
    grade at least that of d+ is no negative for it: its weight is 0.

    Args:
        positive_score: float32 [B]. negative_score: float32 [B, K].
        query: int64 [B]. grade: float32 [B], grade of each d+. negatives: int64 [K].
        slot: int32 [n_documents], all -1 on entry and on return.
        judged_offsets, judged_document, judged_grade: CSR of judged documents by query.
        weight: float32 [B, K], written.

    Returns:
        (summed hinge loss, number of violating tuples, number of tuples).
    """
    B, K = negative_score.shape
    for k in range(K):
        slot[negatives[k]] = k
    loss = 0.0
    violations = 0
    n_tuples = B * K
    for b in range(B):
        threshold = margin - positive_score[b]
        for k in range(K):
            weight[b, k] = 1.0
        for p in range(judged_offsets[query[b]], judged_offsets[query[b] + 1]):
            k = slot[judged_document[p]]
            if k >= 0 and judged_grade[p] >= grade[b] and weight[b, k] == 1.0:
                weight[b, k] = 0.0
                n_tuples -= 1
        for k in range(K):
            if weight[b, k] == 1.0:
                hinge = threshold + negative_score[b, k]
                if hinge > 0.0:
                    loss += hinge
                    violations += 1
                else:
                    weight[b, k] = 0.0
    for k in range(K):
        slot[negatives[k]] = -1
    return loss, violations, n_tuples


@nb.njit(cache=True, nogil=True)
def average_precision(scores, relevant, excluded, out):
    """Average precision of each row of ``scores`` (float32 [m, n]); ties count against us.

    ``relevant`` and ``excluded`` are bool [m, n]; excluded documents are not ranked. A query
    without relevant documents gets NaN. ``out`` is float64 [m].
    """
    m, n = scores.shape
    for i in range(m):
        n_relevant = 0
        for d in range(n):
            if relevant[i, d] and not excluded[i, d]:
                n_relevant += 1
        if n_relevant == 0:
            out[i] = np.nan
            continue
        values = np.empty(n_relevant, np.float64)
        r = 0
        for d in range(n):
            if relevant[i, d] and not excluded[i, d]:
                values[r] = scores[i, d]
                r += 1
        values.sort()
        # above[r]: irrelevant documents that rank before the relevant document with r-th value.
        above = np.zeros(n_relevant, np.int64)
        for d in range(n):
            if not relevant[i, d] and not excluded[i, d]:
                r = np.searchsorted(values, np.float64(scores[i, d]), side="right") - 1
                if r >= 0:
                    above[r] += 1
        total = 0.0
        before = 0
        for r in range(n_relevant - 1, -1, -1):
            before += above[r]
            found = n_relevant - r
            total += found / (found + before)
        out[i] = total / n_relevant
