"""Candidate lists: the documents that another system found for each query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ssi_models.matrices import check_rows
from ssi_models.training.preferences import Preferences


@dataclass(frozen=True, eq=False)
class CandidateLists:
    """For each query, the documents that another system found for it, best first, for a model to
    rank again. A list may be empty.

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
        """Check pairs and group them by query; documents keep their order, without repetitions.

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

    def documents_of(self, query: int) -> NDArray[np.int64]:
        """int64: the list of a query row."""
        return self.document[self.offsets[query] : self.offsets[query + 1]]
