"""Kernels over the term index: BM25 retrieval, and the term columns of (query, document) pairs."""

from __future__ import annotations

import math

from ltr_base.compiled import kernel


@kernel()
def _find_term(terms, low, high, term):
    """First position in ``terms[low:high]``, which increases, that is not less than ``term``."""
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def term_columns(
    pair_queries,
    pair_documents,
    query_ends,
    query_terms,
    query_counts,
    idf,
    background,
    log_background,
    ends,
    terms,
    counts,
    lengths,
    distinct,
    mean_length,
    parameters,
    out,
):
    """TF, IDF, TF*IDF, DL, BM25, LMIR.ABS, LMIR.DIR and LMIR.JM of one field, in one pass.

    Args:
        pair_queries, pair_documents: int64 [n].
        query_ends, query_terms, query_counts: queries in compressed rows, terms increasing.
        idf, background, log_background: float64, idf, p(t|C) and its logarithm for each entry of
            the queries; entries with p(t|C) = 0 are left out.
        ends, terms, counts, lengths, distinct, mean_length: the field (see FieldCounts).
        parameters: float64 [6], k1, b, k3, delta, mu, lambda (see Letor46).
        out: float32 [n, 8], written.
    """
    k1, b, k3, delta, mu, lam = parameters
    log_mu = math.log(mu)
    log_lam = math.log(lam)
    for i in range(len(pair_queries)):
        at = ends[pair_documents[i]]
        high = ends[pair_documents[i] + 1]
        length = lengths[pair_documents[i]]
        # An empty field has no model of its own: |d|_u / |d| counts as 1, c / |d| as 0.
        distinct_share = distinct[pair_documents[i]] / length if length > 0 else 1.0
        inverse_length = 1.0 / length if length > 0 else 0.0
        saturation = k1 * (1.0 - b + b * length / mean_length) if mean_length > 0 else k1
        log_abs = math.log(delta * distinct_share)
        log_dir = math.log(mu + length)
        tf = idf_sum = tf_idf = bm25 = lmir_abs = lmir_dir = lmir_jm = 0.0
        for j in range(query_ends[pair_queries[i]], query_ends[pair_queries[i] + 1]):
            p = background[j]
            if p == 0.0:
                continue
            repeats = query_counts[j]
            idf_sum += idf[j]
            # Query terms increase, so the search goes on from where the last one ended.
            at = _find_term(terms, at, high, query_terms[j])
            if at < high and terms[at] == query_terms[j]:
                c = float(counts[at])
                tf += c
                tf_idf += c * idf[j]
                document_part = c * (k1 + 1.0) / (c + saturation)
                bm25 += idf[j] * document_part * ((k3 + 1.0) * repeats / (k3 + repeats))
                seen = max(c - delta, 0.0) * inverse_length
                lmir_abs += repeats * math.log(seen + delta * distinct_share * p)
                lmir_dir += repeats * (math.log(c + mu * p) - log_dir)
                lmir_jm += repeats * math.log((1.0 - lam) * c * inverse_length + lam * p)
            else:
                lmir_abs += repeats * (log_abs + log_background[j])
                lmir_dir += repeats * (log_mu + log_background[j] - log_dir)
                lmir_jm += repeats * (log_lam + log_background[j])
        out[i, 0] = tf
        out[i, 1] = idf_sum
        out[i, 2] = tf_idf
        out[i, 3] = length
        out[i, 4] = bm25
        out[i, 5] = lmir_abs
        out[i, 6] = lmir_dir
        out[i, 7] = lmir_jm


@kernel()
def bm25_scores(terms, weights, ends, documents, counts, saturation, k1, total, found, scores):
    """The BM25 scores of the documents that have a term of one query.

    Args:
        terms, weights: int32 and float64 (0 or more) of the query's entries.
        ends, documents, counts: for each term, its documents (int32, increasing) and how often
            they have it (int32, 1 or more).
        saturation, k1: see :class:`ltr_features.text.bm25.BM25`.
        total: float64 [number of documents], to work with; 0 on entry and on return.
        found, scores: int32 and float64 [number of documents], written: the documents that a term
            reaches, in no order, and their scores.

    Returns:
        How many documents were found.
    """
    n = 0
    for j in range(len(terms)):
        if weights[j] == 0.0:
            continue
        for k in range(ends[terms[j]], ends[terms[j] + 1]):
            document = documents[k]
            if total[document] == 0.0:
                found[n] = document
                n += 1
            c = counts[k]
            total[document] += weights[j] * (c * (k1 + 1.0) / (c + saturation[document]))
    for i in range(n):
        scores[i] = total[found[i]]
        total[found[i]] = 0.0
    return n
