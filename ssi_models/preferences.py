"""Preferences: which documents are relevant to which query, and how much."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class Preferences:
    """Graded relevant pairs. A document is preferred over every document of a lower grade, and
    documents that are not listed have grade 0 (the pairwise preferences R of Bai et al., eq. 4).

    Attributes:
        query: int64 [n], row of the query matrix.
        document: int64 [n], row of the document matrix.
        grade: float32 [n], greater than 0.
        n_queries, n_documents: number of rows of the two matrices.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.float32]
    n_queries: int
    n_documents: int

    @classmethod
    def from_pairs(
        cls,
        query: ArrayLike,
        document: ArrayLike,
        grade: ArrayLike | None = None,
        *,
        n_queries: int,
        n_documents: int,
    ) -> Preferences:
        """Check and sort pairs; pairs of grade 0 or less are dropped.

        Raises:
            ValueError: rows outside the matrices, arrays of different length, a pair given twice
                with different grades, or no pair of positive grade.
        """
        q = np.asarray(query, dtype=np.int64)
        d = np.asarray(document, dtype=np.int64)
        g = np.ones(len(q), np.float32) if grade is None else np.asarray(grade, dtype=np.float32)
        if not len(q) == len(d) == len(g):
            raise ValueError(f"query, document, grade have lengths {len(q)}, {len(d)}, {len(g)}")
        for name, rows, limit in (("query", q, n_queries), ("document", d, n_documents)):
            outside = (rows < 0) | (rows >= limit)
            if outside.any():
                at = int(np.flatnonzero(outside)[0])
                raise ValueError(
                    f"preference {at}: {name} row {rows[at]} is outside 0..{limit - 1}"
                )
        if not np.isfinite(g).all():
            at = int(np.flatnonzero(~np.isfinite(g))[0])
            raise ValueError(f"preference {at}: grade is {g[at]}")
        positive = g > 0
        if not positive.any():
            raise ValueError("no preference has a grade above 0: there is nothing to learn from")
        q, d, g = q[positive], d[positive], g[positive]
        order = np.lexsort((d, q))
        q, d, g = q[order], d[order], g[order]
        same = (q[1:] == q[:-1]) & (d[1:] == d[:-1])
        if (same & (g[1:] != g[:-1])).any():
            at = int(np.flatnonzero(same & (g[1:] != g[:-1]))[0])
            raise ValueError(f"query row {q[at]}, document row {d[at]}: two different grades")
        first = np.concatenate([[True], ~same])
        return cls(q[first], d[first], g[first], int(n_queries), int(n_documents))

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [n_queries + 1]: query i owns pairs ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.query, np.arange(self.n_queries + 1)).astype(np.int64)

    @property
    def queries(self) -> NDArray[np.int64]:
        """int64: the rows of the queries that have at least one relevant document."""
        return np.flatnonzero(np.diff(self.offsets))

    def only(self, queries: NDArray[np.int64]) -> Preferences:
        """The preferences of the given query rows (shapes unchanged)."""
        wanted = np.zeros(self.n_queries, dtype=bool)
        wanted[queries] = True
        keep = wanted[self.query]
        return Preferences(
            self.query[keep],
            self.document[keep],
            self.grade[keep],
            self.n_queries,
            self.n_documents,
        )
