"""Cosines between bags of unit vectors: average and maximum over all pairs of members.

A bag is a row of a sparse matrix whose columns number the vectors: a text as its words, a document
as the entities it mentions, a body as its chunks.

    average(Q, D) = sum_ij w_i w_j cos(i, j) / (sum_i w_i  sum_j w_j)
                  = (sum_i w_i u_i / sum_i w_i) . (sum_j w_j u_j / sum_j w_j)
    maximum(Q, D) = max_ij cos(i, j) over members of positive weight

so the average costs one dot product per pair, and the maximum the products of a query's vectors
with each distinct member of its documents, and a look-up per member. Members whose vector is 0 are
unknown and left out of both; a bag without known members has cosine 0 with everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.kernels.embeddings import bag_maxima, row_dots
from ltr_features.parallel import map_blocks

_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Bags:
    """Bags of unit vectors, ready for cosines.

    Attributes:
        units: float32 [m, d], the known vectors.
        ends, members: int64 [n + 1] and int32: bag i has the rows ``members[ends[i]:ends[i + 1]]``
            of ``units``.
        means: float32 [n, d]: the weighted mean of each bag's known vectors; 0 without any.
    """

    units: NDArray[np.float32]
    ends: NDArray[np.int64]
    members: NDArray[np.int32]
    means: NDArray[np.float32]

    @classmethod
    def over(cls, matrices: Sequence[csr_matrix], units: NDArray[np.float32]) -> list[Bags]:
        """Several lists of bags over the same vectors.

        Args:
            matrices: of shapes [n, V], weights of 0 or more.
            units: float32 [V, d], unit rows, or 0 where unknown.

        Raises:
            InputError: a matrix does not have one column per row of ``units``.
        """
        known = np.flatnonzero(np.einsum("ij,ij->i", units, units) > 0)
        compact = np.ascontiguousarray(units[known], dtype=np.float32)
        result = []
        for matrix in matrices:
            if matrix.shape[1] != len(units):
                raise InputError(f"bags over {matrix.shape[1]} members for {len(units)} vectors")
            kept = csr_matrix(matrix)[:, known].astype(np.float64)
            kept.eliminate_zeros()
            kept.sort_indices()
            totals = np.asarray(kept.sum(axis=1))
            means = (kept @ compact.astype(np.float64)) / np.where(totals > 0, totals, 1.0)
            ends, members = kept.indptr.astype(np.int64), kept.indices.astype(np.int32)
            result.append(cls(compact, ends, members, means.astype(np.float32)))
        return result


def cosines(
    asked: Bags,
    stored: Sequence[Bags],
    queries: NDArray[np.int64],
    documents: NDArray[np.int64],
    threads: int | None = None,
) -> NDArray[np.float32]:
    """float32 [n, 2 len(stored)], -1 to 1: average and maximum cosine of the pairs' bags, for each
    list of documents' bags.

    Args:
        asked: the queries.
        stored: the documents, once or several times (their streams), over the same vectors.
        queries, documents: int64 [n], rows of the bags.
        threads: worker threads; the result does not depend on them.
    """
    out = np.zeros((len(queries), 2 * len(stored)), dtype=np.float32)
    for position, bags in enumerate(stored):
        rows = (queries, documents)
        out[:, 2 * position] = average_cosines(asked.means, bags.means, *rows, threads)
    order = np.argsort(queries, kind="stable")
    starts = np.flatnonzero(np.diff(queries[order], prepend=-1))
    groups = np.split(order, starts[1:]) if len(order) else []

    def compute(group: NDArray[np.int64]) -> None:
        query, rows = queries[group[0]], documents[group].astype(np.int64)
        members = asked.members[asked.ends[query] : asked.ends[query + 1]]
        if not len(members):
            return
        vectors = asked.units[members]
        # What streams share is computed once.
        best = np.full(len(stored[0].units), -2.0, dtype=np.float32)
        for position, bags in enumerate(stored):
            values = np.zeros(len(group), dtype=np.float32)
            bag_maxima(vectors, rows, bags.ends, bags.members, bags.units, best, values)
            out[group, 2 * position + 1] = values

    for _ in map_blocks(compute, groups if stored else [], threads):
        pass
    return out


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
