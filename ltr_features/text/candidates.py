"""Candidate pools: the documents to rank for each query, chosen without its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.kernels.ranking import Scratch, WeightedQueries, top_documents
from ltr_features.parameters import check_range
from ltr_features.text.bm25 import BM25, inverse_document_frequency
from ltr_features.text.collection import Judgements, Pairs
from ltr_features.text.index import WHOLE, TermIndex

#: Queries per block of work.
_BLOCK = 256


class BM25Retriever:
    """BM25 retrieval over one field of an index.

    Args:
        index: the term index.
        field: the field to search; ``"whole"`` is all fields together.
        bm25: the parameters.

    Raises:
        InputError: the index has no such field.
    """

    def __init__(self, index: TermIndex, field: str = WHOLE, bm25: BM25 | None = None) -> None:
        self.bm25 = bm25 or BM25()
        counts = index.field(field)
        self._n_documents, self._n_words = index.n_documents, len(index.vocabulary)
        self._postings = counts.postings
        self._saturation = self.bm25.saturation(counts)
        self._idf = inverse_document_frequency(counts)

    def top(
        self, query_counts: csr_matrix, depth: int, *, threads: int | None = None
    ) -> tuple[Pairs, NDArray[np.float64]]:
        """Retrieve the best documents of each query.

        Args:
            query_counts: [m, V], see ``TermIndex.query_counts``.
            depth: greatest number of documents per query.
            threads: number of worker threads; None for one per core.

        Returns:
            Pairs, query by query, best document first (equal scores: by increasing row), and
            their scores, float64 [n]. A document that shares no informative word (idf > 0) with
            the query is not retrieved, so a query may have fewer than ``depth`` pairs, or none.

        Raises:
            InputError: ``depth`` below 1, or counts over another vocabulary.
        """
        check_range("pool depth", depth, 1)
        if query_counts.shape[1] != self._n_words:
            raise InputError(
                f"query counts have {query_counts.shape[1]} columns, the index has "
                f"{self._n_words} words: analyse the queries with TermIndex.query_counts"
            )
        depth = min(depth, self._n_documents)
        ends = query_counts.indptr.astype(np.int64)
        terms = query_counts.indices.astype(np.int32)
        weights = self._idf[terms] * self.bm25.query_parts(query_counts.data)
        queries = WeightedQueries(ends, terms, weights)

        def search(block: slice) -> tuple[NDArray, NDArray, NDArray]:
            # Allocated here: numba would have to compile each allocation.
            n, m = self._n_documents, block.stop - block.start
            scratch = Scratch(
                np.zeros(n), np.empty(n, np.int32), np.empty(depth), np.empty(depth, np.int32)
            )
            sizes, found, found_scores = (
                np.zeros(m, np.int64), np.empty(m * depth, np.int32), np.empty(m * depth),
            )  # fmt: skip
            n_found = top_documents(
                block.start, block.stop, queries, self._postings, self._saturation,
                float(self.bm25.k1), scratch, sizes, found, found_scores,
            )  # fmt: skip
            return sizes, found[:n_found].copy(), found_scores[:n_found].copy()

        results = list(map_blocks(search, slices(query_counts.shape[0], _BLOCK), threads))
        sizes = np.concatenate([np.zeros(0, np.int64), *(part[0] for part in results)])
        documents = np.concatenate([np.zeros(0, np.int32), *(part[1] for part in results)])
        scores = np.concatenate([np.zeros(0), *(part[2] for part in results)])
        rows = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        return Pairs(rows, documents.astype(np.int64)), scores


@dataclass(frozen=True)
class PoolRecall:
    """The recall of a pool: how many of the relevant documents it holds.

    Attributes:
        mean: mean recall of the queries with relevant documents; NaN if there are none.
        n_relevant: number of relevant (query, document) pairs.
        n_found: number of relevant pairs in the pool.
    """

    mean: float
    n_relevant: int
    n_found: int


def candidate_recall(pairs: Pairs, judgements: Judgements, n_queries: int) -> PoolRecall:
    """Compute the recall of a pool.

    Args:
        pairs: the pool.
        judgements: graded judgements; a pair judged more than once counts once.
        n_queries: number of queries of the collection.
    """
    relevant = judgements.grade > 0
    # Row pairs as one int64 key: queries * documents stays far below 2 ** 63.
    most = 1 + max(
        int(part.max()) for part in (pairs.document, judgements.document, np.zeros(1)) if len(part)
    )
    wanted = np.unique(judgements.query[relevant] * most + judgements.document[relevant])
    found = np.isin(wanted, pairs.query * most + pairs.document)
    n_relevant = np.bincount(wanted // most, minlength=n_queries)
    n_found = np.bincount(wanted[found] // most, minlength=n_queries)
    asked = n_relevant > 0
    of_queries = n_found[asked] / n_relevant[asked]
    mean = float(of_queries.mean()) if asked.any() else float("nan")
    return PoolRecall(mean, int(n_relevant.sum()), int(n_found.sum()))
