"""Kernels over the term index: BM25 retrieval, and the term columns of (query, document) pairs."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
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
    mean_length,
    k1,
    b,
    k3,
    delta,
    mu,
    lam,
    out,
):
    """TF, IDF, TF*IDF, DL, BM25, LMIR.ABS, LMIR.DIR and LMIR.JM of one stream, in one pass.

    Args:
        pair_queries, pair_documents: int64 [n].
        query_ends, query_terms, query_counts: queries in compressed rows, terms increasing.
        idf, background, log_background: float64, idf, p(t|C) and its logarithm for each entry of
            the queries; entries with p(t|C) = 0 are left out.
        ends, terms, counts, lengths, mean_length: the stream (see StreamCounts).
        k1, b, k3, delta, mu, lam: parameters (see Letor46).
        out: float32 [n, 8], written.
    """
    log_mu = math.log(mu)
    log_lam = math.log(lam)
    for i in range(len(pair_queries)):
        query = pair_queries[i]
        document = pair_documents[i]
        low = ends[document]
        high = ends[document + 1]
        length = lengths[document]
        # An empty stream has no model of its own: |d|_u / |d| counts as 1, c / |d| as 0.
        distinct_share = (high - low) / length if length > 0 else 1.0
        inverse_length = 1.0 / length if length > 0 else 0.0
        saturation = k1 * (1.0 - b + b * length / mean_length) if mean_length > 0 else k1
        log_abs = math.log(delta * distinct_share)
        log_dir = math.log(mu + length)
        tf = 0.0
        idf_sum = 0.0
        tf_idf = 0.0
        bm25 = 0.0
        lmir_abs = 0.0
        lmir_dir = 0.0
        lmir_jm = 0.0
        for j in range(query_ends[query], query_ends[query + 1]):
            p = background[j]
            if p == 0.0:
                continue
            term = query_terms[j]
            repeats = query_counts[j]
            # Query terms increase, so the search goes on from where the last one ended.
            top = high
            while low < top:
                middle = (low + top) >> 1
                if terms[middle] < term:
                    low = middle + 1
                else:
                    top = middle
            idf_sum += idf[j]
            if low < high and terms[low] == term:
                c = float(counts[low])
                tf += c
                tf_idf += c * idf[j]
                bm25 += (
                    idf[j]
                    * (c * (k1 + 1.0) / (c + saturation))
                    * ((k3 + 1.0) * repeats / (k3 + repeats))
                )
                seen = max(c - delta, 0.0) * inverse_length
                lmir_abs += repeats * math.log(seen + delta * distinct_share * p)
                lmir_dir += repeats * (math.log(c + mu * p) - log_dir)
                lmir_jm += repeats * math.log((1.0 - lam) * c * inverse_length + lam * p)
            else:
                log_p = log_background[j]
                lmir_abs += repeats * (log_abs + log_p)
                lmir_dir += repeats * (log_mu + log_p - log_dir)
                lmir_jm += repeats * (log_lam + log_p)
        out[i, 0] = tf
        out[i, 1] = idf_sum
        out[i, 2] = tf_idf
        out[i, 3] = length
        out[i, 4] = bm25
        out[i, 5] = lmir_abs
        out[i, 6] = lmir_dir
        out[i, 7] = lmir_jm


@njit(cache=True, nogil=True)
def top_documents(first, last, query_ends, query_terms, weights, ends, documents, scores, depth, n):
    """The best documents of queries first..last-1 by a sum of stored scores.

    Args:
        query_ends, query_terms: queries in compressed rows.
        weights: float64, weight of each entry of the queries, 0 or more.
        ends, documents, scores: for each term, its documents (int32, increasing) and their scores
            (float64, greater than 0).
        depth: most documents per query.
        n: number of documents.

    Returns:
        sizes: int64 [last - first]; found: int32 and their scores: float64, query by query, best
        first, ties by increasing document. Documents that no term reaches are left out.
    """
    sizes = np.zeros(last - first, np.int64)
    found = np.empty((last - first) * depth, np.int32)
    found_scores = np.empty((last - first) * depth, np.float64)
    total = np.zeros(n, np.float64)
    touched = np.empty(n, np.int32)
    heap_scores = np.empty(depth, np.float64)
    heap_documents = np.empty(depth, np.int32)
    n_found = 0
    for query in range(first, last):
        n_touched = 0
        for j in range(query_ends[query], query_ends[query + 1]):
            weight = weights[j]
            if weight == 0.0:
                continue
            for k in range(ends[query_terms[j]], ends[query_terms[j] + 1]):
                document = documents[k]
                if total[document] == 0.0:
                    touched[n_touched] = document
                    n_touched += 1
                total[document] += weight * scores[k]
        # A heap of the best so far, the worst of them (low score, then late row) at its top.
        size = 0
        for k in range(n_touched):
            document = touched[k]
            score = total[document]
            total[document] = 0.0
            if size < depth:
                at = size
                size += 1
                while at > 0:
                    above = (at - 1) >> 1
                    if heap_scores[above] < score or (
                        heap_scores[above] == score and heap_documents[above] > document
                    ):
                        break
                    heap_scores[at] = heap_scores[above]
                    heap_documents[at] = heap_documents[above]
                    at = above
                heap_scores[at] = score
                heap_documents[at] = document
            elif heap_scores[0] < score or (
                heap_scores[0] == score and heap_documents[0] > document
            ):
                _sift_down(heap_scores, heap_documents, size, score, document)
        for rank in range(size - 1, -1, -1):
            found_scores[n_found + rank] = heap_scores[0]
            found[n_found + rank] = heap_documents[0]
            _sift_down(heap_scores, heap_documents, rank, heap_scores[rank], heap_documents[rank])
        sizes[query - first] = size
        n_found += size
    return sizes, found[:n_found].copy(), found_scores[:n_found].copy()


@njit(cache=True, nogil=True)
def _sift_down(heap_scores, heap_documents, size, score, document):
    """Put (score, document) in the place of the top of a heap of ``size`` elements."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size and (
            heap_scores[right] < heap_scores[below]
            or (
                heap_scores[right] == heap_scores[below]
                and heap_documents[right] > heap_documents[below]
            )
        ):
            below = right
        if score < heap_scores[below] or (
            score == heap_scores[below] and document > heap_documents[below]
        ):
            break
        heap_scores[at] = heap_scores[below]
        heap_documents[at] = heap_documents[below]
        at = below
    heap_scores[at] = score
    heap_documents[at] = document
