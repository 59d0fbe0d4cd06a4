"""Lists of documents, one per query: what a model is to order, and whom it learns to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssi_models.matrices import check_rows
from ssi_models.training.preferences import Preferences


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """For each query the documents that another system found for it, best first, which a model is
    to rank anew. A list may be empty.

    Attributes:
        offsets: int64 [m + 1]; query i owns ``document[offsets[i]:offsets[i + 1]]``.
        document: int64 [n], rows of the document matrix.
        n_documents: number of rows of that matrix.
    """

    offsets: NDArray[np.int64]
    document: NDArray[np.int64]
    n_documents: int

    @classmethod
    def from_pairs(
        cls, query: ArrayLike, document: ArrayLike, *, n_queries: int, n_documents: int
    ) -> Self:
        """Check pairs and group them by query; documents keep their order, and count once.

        Raises:
            ValueError: rows outside the matrices, or arrays of different length.
        """
        q = check_rows("query", query, n_queries)
        d = check_rows("document", document, n_documents)
        if len(q) != len(d):
            raise ValueError(f"query, document have lengths {len(q)}, {len(d)}")
        first = np.sort(np.unique(q * n_documents + d, return_index=True)[1])
        order = first[np.argsort(q[first], kind="stable")]
        offsets = np.searchsorted(q[order], np.arange(n_queries + 1)).astype(np.int64)
        return cls(offsets, d[order], int(n_documents))

    @classmethod
    def of_judged(cls, preferences: Preferences) -> Self:
        """The documents judged for each query, relevant or not."""
        offsets, document, _ = preferences.judged()
        return cls(offsets, document, preferences.n_documents)

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def query(self) -> NDArray[np.int64]:
        """int64 [n], the query of each document."""
        return np.repeat(np.arange(self.n_queries), np.diff(self.offsets))

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(offsets, document)."""
        return self.offsets, self.document

    def documents_of(self, query: int) -> NDArray[np.int64]:
        """int64: the list of a query row."""
        return self.document[self.offsets[query] : self.offsets[query + 1]]


@dataclass(frozen=True, eq=False)
class OwnNegatives:
    """What of each query's list may be its negative.

    Attributes:
        lists: without the documents that are judged as high as the query's best, or excluded.
        grade: float32 [n] of each document of the lists; 0 if it is not judged.
    """

    lists: CandidateLists
    grade: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        lists: CandidateLists,
        preferences: Preferences,
        excluded: NDArray[np.int64] | None = None,
    ) -> Self:
        """Of lists and preferences over the same rows."""
        offsets, document, judged = preferences.judged(excluded)
        n = preferences.n_documents
        owner = np.repeat(np.arange(preferences.n_queries), np.diff(offsets))
        # The higher grade last, so that of two the search from the right finds it: an excluded
        # document may be judged as well.
        order = np.lexsort((judged, owner * n + document))
        keys, judged = (owner * n + document)[order], judged[order]
        query = lists.query
        wanted = query * n + lists.document
        at = np.searchsorted(keys, wanted, side="right") - 1
        grade = np.where((at >= 0) & (keys[at] == wanted), judged[at], np.float32(0))
        best = np.full(preferences.n_queries, np.inf, np.float32)  # nothing to learn: no list
        best[preferences.queries] = np.maximum.reduceat(
            preferences.grade, preferences.offsets[preferences.queries]
        )
        kept = (grade < best[query]) & (best[query] < np.inf)
        offsets = np.searchsorted(query[kept], np.arange(lists.n_queries + 1)).astype(np.int64)
        return cls(CandidateLists(offsets, lists.document[kept], n), grade[kept])

    def sizes(self, query: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64 [B]: the number of documents that may be negatives of each query."""
        return self.lists.offsets[query + 1] - self.lists.offsets[query]

    def draw(
        self,
        query: NDArray[np.int64],
        grade: NDArray[np.float32],
        n: int,
        rng: np.random.Generator,
    ) -> NDArray[np.int64]:
        """int64 [B, n]: documents of the list of each pair's query that are judged below the
        pair's grade; -1 where the one drawn is not, or the list is empty.

        A query's pairs share them. They are equally spaced in the list, from a random rank on, so
        that they are of all its parts, and all different where it has n documents or more; of a
        shorter list, some are taken again. Each document is drawn as often as any other.
        """
        queries, place = np.unique(query, return_inverse=True)
        sizes = self.sizes(queries)[:, None]
        rank = ((np.arange(n) + rng.random((len(queries), 1))) * (sizes / n)).astype(np.int64)
        at = self.lists.offsets[queries][:, None] + np.minimum(rank, sizes - 1)
        found = np.where(sizes > 0, at, 0)[place]
        if not len(self.grade):
            return np.full(found.shape, -1, np.int64)
        usable = (sizes > 0)[place] & (self.grade[found] < grade[:, None])
        return np.where(usable, self.lists.document[found], -1)
