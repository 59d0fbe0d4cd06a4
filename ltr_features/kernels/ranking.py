"""Kernels over the term index: BM25 retrieval, and the term columns of query-document pairs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel


class QueryTerms(NamedTuple):
    """Queries in compressed rows, and what the collection's field knows of their terms.

    Attributes:
        ends: int64 [m + 1]. terms, counts: int32, terms increasing within a query.
        idf, background, log_background: float64, idf, p(t|C) and its logarithm for each entry;
            entries with p(t|C) = 0 are left out.
    """

    ends: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.int32]
    idf: NDArray[np.float64]
    background: NDArray[np.float64]
    log_background: NDArray[np.float64]


class FieldTerms(NamedTuple):
    """One field of the documents, see :class:`ltr_features.text.field_counts.FieldCounts`."""

    ends: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    distinct: NDArray[np.int64]
    mean_length: float


class WeightedQueries(NamedTuple):
    """Queries in compressed rows: float64 ``weights`` of 0 or more for int32 ``terms``."""

    ends: NDArray[np.int64]
    terms: NDArray[np.int32]
    weights: NDArray[np.float64]


class Scratch(NamedTuple):
    """Room for one search.

    Attributes:
        total, touched: float64 and int32 [number of documents]; total is 0 before and after.
        heap_scores, heap_documents: float64 and int32 [depth]; depth is the greatest number of
            documents per query.
    """

    total: NDArray[np.float64]
    touched: NDArray[np.int32]
    heap_scores: NDArray[np.float64]
    heap_documents: NDArray[np.int32]


@kernel()
def _find_term(terms, low, high, term):
    """The first position in the increasing ``terms[low:high]`` whose term is not below ``term``."""
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def term_columns(pair_queries, pair_documents, queries, field, parameters, out):
    """TF, IDF, TF*IDF, DL, BM25, LMIR.ABS, LMIR.DIR and LMIR.JM of one field, in one pass.

    Args:
        pair_queries, pair_documents: int64 [n].
        queries: :class:`QueryTerms`. field: :class:`FieldTerms`.
        parameters: float64 [6], k1, b, k3, delta, mu, lambda (see Letor46).
        out: float32 [n, 8], written.
    """
    query_ends, query_terms, query_counts, idf, background, log_background = queries
    ends, terms, counts, lengths, distinct, mean_length = field
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
            # Query terms increase, so each search continues where the last one ended.
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
def _worse(score, document, other_score, other_document):
    """Whether a document ranks below another: a lower score, or an equal score and a later row."""
    return score < other_score or (score == other_score and document > other_document)


@kernel()
def _sift_up(scores, documents, at, score, document):
    """Insert an element into a heap with the worst at the top and a free place ``at`` its end."""
    while at > 0:
        above = (at - 1) >> 1
        if _worse(scores[above], documents[above], score, document):
            break
        scores[at] = scores[above]
        documents[at] = documents[above]
        at = above
    scores[at] = score
    documents[at] = document


@kernel()
def _sift_down(scores, documents, size, score, document):
    """Replace the top of a heap of ``size`` elements by another element."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        right = below + 1
        if right < size and _worse(
            scores[right], documents[right], scores[below], documents[below]
        ):
            below = right
        if _worse(score, document, scores[below], documents[below]):
            break
        scores[at] = scores[below]
        documents[at] = documents[below]
        at = below
    scores[at] = score
    documents[at] = document


@kernel()
def top_documents(
    first, last, queries, postings, saturation, k1, scratch, sizes, found, found_scores
):
    """Find the best documents of queries first..last-1 by BM25.

    Args:
        queries: :class:`WeightedQueries`. scratch: :class:`Scratch`.
        postings: see :class:`ltr_features.text.field_counts.Postings`.
        saturation, k1: see :class:`ltr_features.text.bm25.BM25`.
        sizes: int64 [last - first], written: the number of documents of each query.
        found, found_scores: int32 and float64 [(last - first) depth], written: the documents and
            their scores, query by query, best first, ties by increasing document. Documents that
            have none of a query's terms are left out.

    Returns:
        The number of documents found.
    """
    query_ends, query_terms, weights = queries
    ends, documents, counts = postings
    total, touched, heap_scores, heap_documents = scratch
    depth = len(heap_scores)
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
                c = counts[k]
                total[document] += weight * (c * (k1 + 1.0) / (c + saturation[document]))
        size = np.int64(0)  # a literal 0 would compile the heap functions a second time
        for k in range(n_touched):
            document = touched[k]
            score = total[document]
            total[document] = 0.0
            if size < depth:
                _sift_up(heap_scores, heap_documents, size, score, document)
                size += 1
            elif _worse(heap_scores[0], heap_documents[0], score, document):
                _sift_down(heap_scores, heap_documents, size, score, document)
        for rank in range(size - 1, -1, -1):
            found_scores[n_found + rank] = heap_scores[0]
            found[n_found + rank] = heap_documents[0]
            _sift_down(heap_scores, heap_documents, rank, heap_scores[rank], heap_documents[rank])
        sizes[query - first] = size
        n_found += size
    return n_found
