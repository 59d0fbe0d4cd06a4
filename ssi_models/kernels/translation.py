"""Kernels for translation tables and for matching words.

Matrices are CSR (:class:`ssi_models.kernels.sparse.Csr`). Row q of a table of t(q | w) holds the
title words w of query word q, ascending.
"""

from __future__ import annotations

import numpy as np

from ltr_base.compiled import kernel


@kernel()
def count_translations(by_word, D, document, null, table, expected, value, start, stop):
    """E-step of IBM Model 1 for query words start..stop: expected counts c(q | w).

    All pairs that contain a query word are visited together, so that only its row of the table is
    needed, as a dense vector over the title words.

    Args:
        by_word: n(q, pair) of query words by pairs. D: n(w, d) of titles by words.
        document: int64 [n_pairs], rows of D.
        null: number of the NULL word (the table's last column), which each title contains once.
        expected: float64 [nnz of the table], written.
        value: float64 [words], written: sum of n(q, i) log sum_w n(w, d_i) t(q | w).
    """
    q_indptr, q_owner, q_counts = by_word
    d_indptr, d_indices, d_counts = D
    t_indptr, t_indices, t_values = table
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
    Q, D, lengths, query, document, offsets, table, n_words, out, start, stop
):
    """out[offsets[i] + j] = sum_w t(q_j | w) n(w, d) / |d| for word j of query[i], d = document[i].

    Q and D are n(q, query) and n(w, d), ``lengths`` float64 the documents' |d|.
    The identity as table gives the title's own word frequencies. Consecutive pairs of one query
    are visited together, with a row of the table as a dense vector over the title words.
    """
    q_indptr, q_indices, _ = Q
    d_indptr, d_indices, d_counts = D
    t_indptr, t_indices, t_values = table
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
