"""Cosines between bags of unit vectors: average and maximum over all pairs of members.

A bag is a row of a sparse matrix whose columns number the vectors: a text as its words, a document
as the entities it mentions, a body as its chunks.

    average(Q, D) = sum_ij w_i w_j cos(i, j) / (sum_i w_i  sum_j w_j)
                  = (sum_i w_i u_i / sum_i w_i) . (sum_j w_j u_j / sum_j w_j)
    maximum(Q, D) = max_ij cos(i, j) over members of positive weight

so the average costs one dot product per pair, and the maximum one matrix product per query, of its
vectors with all, and a look-up per member of a document. Members whose vector is 0 are unknown and
left out of both; a bag without known members has cosine 0 with everything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

from letor.errors import InputError
from ltr_features.kernels.embeddings import bag_maxima, row_dots
from ltr_features.parallel import map_blocks

_BLOCK = 1 << 14


def mean_vectors(bags: csr_matrix, units: NDArray[np.float32]) -> NDArray[np.float32]:
    """float32 [n, d]: the weighted mean of each bag's known unit vectors; 0 without any.

    Args:
        bags: [n, V], weights of 0 or more.
        units: float32 [V, d], unit rows, or 0 where unknown.
    """
    weights = bags.astype(np.float64)
    known = (np.einsum("ij,ij->i", units, units) > 0).astype(np.float64)
    totals = weights @ known
    sums = weights @ units.astype(np.float64)
    sums /= np.where(totals > 0, totals, 1.0)[:, None]
    return sums.astype(np.float32)


def average_cosines(
    query_means: NDArray[np.float32],
    document_means: NDArray[np.float32],
    queries: NDArray[np.int64],
    documents: NDArray[np.int64],
    threads: int | None = None,
) -> NDArray[np.float32]:
    """float32 [n], -1 to 1: dot products of the pairs' rows; with unit rows their cosines."""
    out = np.zeros(len(queries), dtype=np.float32)
    left, right = (np.ascontiguousarray(m, dtype=np.float32) for m in (query_means, document_means))
    rows = [np.ascontiguousarray(r, dtype=np.int64) for r in (queries, documents)]

    def compute(block: slice) -> None:
        row_dots(rows[0][block], rows[1][block], left, right, out[block])

    blocks = [slice(first, first + _BLOCK) for first in range(0, len(out), _BLOCK)]
    for _ in map_blocks(compute, blocks, threads):
        pass
    return np.clip(out, -1.0, 1.0)


def maximum_cosines(
    query_bags: csr_matrix,
    document_bags: csr_matrix,
    units: NDArray[np.float32],
    queries: NDArray[np.int64],
    documents: NDArray[np.int64],
    threads: int | None = None,
) -> NDArray[np.float32]:
    """float32 [n], -1 to 1: the greatest cosine between a member of the query's bag and one of
    the document's; 0 where either has no known member.

    Args:
        query_bags: [n_queries, V]. document_bags: [n_documents, V].
        units: float32 [V, d], unit rows, or 0 where unknown.
        queries, documents: int64 [n], rows of the bags.
        threads: worker threads; the result does not depend on them.

    Raises:
        InputError: the bags do not have one column per row of ``units``.
    """
    for bags in (query_bags, document_bags):
        if bags.shape[1] != len(units):
            raise InputError(f"bags over {bags.shape[1]} members for {len(units)} vectors")
    out = np.zeros(len(queries), dtype=np.float32)
    known = np.flatnonzero(np.einsum("ij,ij->i", units, units) > 0)
    compact = np.ascontiguousarray(units[known], dtype=np.float32)
    asked, stored = (_members(bags, known) for bags in (query_bags, document_bags))
    ends, terms = stored.indptr.astype(np.int64), stored.indices.astype(np.int32)
    order = np.argsort(queries, kind="stable")
    present, starts = np.unique(queries[order], return_index=True)
    groups = np.split(order, starts[1:])

    def compute(group: NDArray[np.int64]) -> None:
        query = queries[group[0]]
        members = asked.indices[asked.indptr[query] : asked.indptr[query + 1]]
        if len(members):
            best = (compact[members] @ compact.T).max(axis=0)
            values = np.zeros(len(group), dtype=np.float32)
            bag_maxima(documents[group].astype(np.int64), ends, terms, best, values)
            out[group] = values

    # Threads over queries; several inside each product would wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in map_blocks(compute, groups if len(present) else [], threads):
            pass
    return np.clip(out, -1.0, 1.0)


def _members(bags: csr_matrix, known: NDArray[np.int64]) -> csr_matrix:
    kept = csr_matrix(bags)[:, known]
    kept.eliminate_zeros()
    kept.sort_indices()
    return kept
