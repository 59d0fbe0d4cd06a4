"""Cosines between bags of unit vectors: average and maximum over all pairs of members.

A bag is a row of a sparse matrix whose columns stand for vectors: a text as its words, a document
as the entities it mentions, a body as its chunks.

    average(Q, D) = sum_ij w_i w_j cos(i, j) / (sum_i w_i  sum_j w_j)
                  = (sum_i w_i u_i / sum_i w_i) . (sum_j w_j u_j / sum_j w_j)
    maximum(Q, D) = max_ij cos(i, j) over members of positive weight

so the average costs one dot product per pair, and the maximum costs the products of a query's
vectors with each distinct member of its documents, and a look-up per member. A member of both bags
has cosine 1 with itself, the greatest possible, and needs no product. Members whose vector is 0 are
unknown and left out of both; a bag without known members has cosine 0 with everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.kernels.cosines import bag_maxima, known_members, row_dots

_BLOCK = 1 << 14


@dataclass(frozen=True, eq=False)
class Bags:
    """Bags of unit vectors, ready for cosines.

    Attributes:
        units: float32 [m, d], the vectors.
        ends, members: int64 [n + 1] and int32: bag i has the rows ``members[ends[i]:ends[i + 1]]``
            of ``units``, which are not 0.
        means: float32 [n, d]: the weighted mean of each bag's known vectors; 0 if it has none.
        same: int64 [m], for bags of queries: the row of the documents' ``units`` with the same
            vector, -1 if there is none or it is unknown.
    """

    units: NDArray[np.float32]
    ends: NDArray[np.int64]
    members: NDArray[np.int32]
    means: NDArray[np.float32]
    same: NDArray[np.int64]

    @classmethod
    def over(
        cls,
        matrix: csr_matrix,
        units: NDArray[np.float32],
        same: NDArray[np.int64] | None = None,
    ) -> Bags:
        """Make bags of vectors.

        Args:
            matrix: [n, m], the members' weights, 0 or more.
            units: float32 [m, d], unit rows, or 0 where unknown.
            same: see the attribute; None for -1 throughout.

        Raises:
            InputError: the matrix does not have one column per row of ``units``.
        """
        n, m = matrix.shape
        if m != len(units):
            raise InputError(f"bags over {m} members for {len(units)} vectors")
        units = np.require(units, np.float32, ["C", "W"])  # the kernels are compiled for one type
        ends, members = np.empty(n + 1, np.int64), np.empty(matrix.nnz, np.int32)
        means = np.empty((n, units.shape[1]), dtype=np.float32)
        kept = known_members(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float64),
            *(units, ends, members, means),
        )
        same = np.full(m, -1) if same is None else same
        return cls(units, ends, members[:kept], means, same)


def cosines(
    asked: Bags,
    stored: Sequence[Bags],
    queries: NDArray[np.int64],
    documents: NDArray[np.int64],
    threads: int | None = None,
) -> NDArray[np.float32]:
    """float32 [n, 2 len(stored)], -1 to 1: average and maximum cosine of the pairs' bags, for each
    of the documents' lists of bags.

    Args:
        asked: the queries.
        stored: the documents' bags, a list per field, all over the same vectors.
        queries, documents: int64 [n], rows of the bags.
        threads: number of worker threads; the result does not depend on it.
    """
    out = np.zeros((len(queries), 2 * len(stored)), dtype=np.float32)
    for position, bags in enumerate(stored):
        rows = (queries, documents)
        out[:, 2 * position] = average_cosines(asked.means, bags.means, *rows, threads)
    order = np.argsort(queries, kind="stable")
    sorted_queries = queries[order]
    changes = np.flatnonzero(sorted_queries[1:] != sorted_queries[:-1]) + 1
    groups = np.split(order, changes) if len(order) else []

    def compute(group: NDArray[np.int64]) -> None:
        query, rows = queries[group[0]], documents[group].astype(np.int64)
        members = asked.members[asked.ends[query] : asked.ends[query + 1]]
        if not len(members):
            return
        vectors = asked.units[members]
        # Shared by the fields: the product of a member that several of them have is computed once.
        best = np.full(len(stored[0].units), -2.0, dtype=np.float32)
        same = asked.same[members]
        best[same[same >= 0]] = 1.0
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
    """float32 [n], -1 to 1: dot products of the pairs' rows; for unit rows, their cosines."""
    out = np.zeros(len(queries), dtype=np.float32)
    left, right = (np.ascontiguousarray(m, dtype=np.float32) for m in (query_means, document_means))
    rows = [np.ascontiguousarray(r, dtype=np.int64) for r in (queries, documents)]

    def compute(block: slice) -> None:
        row_dots(rows[0][block], rows[1][block], left, right, out[block])

    for _ in map_blocks(compute, slices(len(out), _BLOCK), threads):
        pass
    return out
