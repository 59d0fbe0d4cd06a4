"""Kernels for translation tables and for matching words.

A table of t(q | w) is CSR by query word: row q holds its title words w, ascending, and t(q | w).
"""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel


@kernel()
def count_translations(
    q_indptr, q_owner, q_counts, d_indptr, d_indices, d_counts, document, null,
    t_indptr, t_indices, t_values, expected, value, start, stop,
):  # fmt: skip
    """E-step of IBM Model 1 for query words start..stop: expected counts c(q | w).

    All pairs that contain a query word are visited together, so that only its row of the table is
    needed, as a dense vector over the title words.

    Args:
        q_indptr, q_owner, q_counts: CSR by query word: pairs that contain it, and n(q, pair).
        d_indptr, d_indices, d_counts: CSR of titles. document: int64 [n_pairs].
        null: number of the NULL word (the table's last column), which each title contains once.
        expected: float64 [nnz of the table], written.
        value: float64 [words], written: sum of n(q, i) log sum_w n(w, d_i) t(q | w).
    """
    t = np.zeros(null + 1)
    c = np.zeros(null + 1)
    for q in range(start, stop):
        for p in range(t_indptr[q], t_indptr[q + 1]):
            t[t_indices[p]] = t_values[p]
        value[q] = 0.0
        for p in range(q_indptr[q], q_indptr[q + 1]):
            d = document[q_owner[p]]
            total = t[null]
            for e in range(d_indptr[d], d_indptr[d + 1]):
                total += d_counts[e] * t[d_indices[e]]
            if total <= 0.0:
                continue
            r = q_counts[p] / total
            c[null] += r * t[null]
            for e in range(d_indptr[d], d_indptr[d + 1]):
                c[d_indices[e]] += r * d_counts[e] * t[d_indices[e]]
            value[q] += q_counts[p] * np.log(total)
        for p in range(t_indptr[q], t_indptr[q + 1]):
            expected[p] = c[t_indices[p]]
            t[t_indices[p]] = 0.0
            c[t_indices[p]] = 0.0


@kernel()
def translation_probabilities(
    q_indptr, q_indices, d_indptr, d_indices, d_counts, lengths, query, document, offsets,
    t_indptr, t_indices, t_values, n_words, out, start, stop,
):  # fmt: skip
    """out[offsets[i] + j] = sum_w t(q_j | w) n(w, d) / |d| for word j of query[i], d = document[i].

    The identity as table gives the title's own word frequencies. Consecutive pairs of one query
    are visited together, with a row of the table as a dense vector over the title words.
    """
    t = np.zeros(n_words + 1)
    i = start
    while i < stop:
        after = i + 1
        while after < stop and query[after] == query[i]:
            after += 1
        first = q_indptr[query[i]]
        for p in range(first, q_indptr[query[i] + 1]):
            row = q_indices[p]
            for f in range(t_indptr[row], t_indptr[row + 1]):
                t[t_indices[f]] = t_values[f]
            for pair in range(i, after):
                d = document[pair]
                total = 0.0
                for e in range(d_indptr[d], d_indptr[d + 1]):
                    total += d_counts[e] * t[d_indices[e]]
                out[offsets[pair] + p - first] = total / lengths[d] if lengths[d] > 0.0 else 0.0
            for f in range(t_indptr[row], t_indptr[row + 1]):
                t[t_indices[f]] = 0.0
        i = after
