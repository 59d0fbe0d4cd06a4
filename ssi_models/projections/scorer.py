"""The trainable form of S2Net: cosines of a batch's texts and their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.parallel import Workers
from ssi_models.projections.cosine import unit_rows
from ssi_models.projections.tuples import through_unit_rows
from ssi_models.sampling import Batch
from ssi_models.tables import BatchRows, Space, Table


@dataclass(frozen=True, eq=False)
class BatchTexts:
    """The distinct texts of a batch, each embedded once.

    Attributes:
        queries: int64 [u] and documents: int64 [n], distinct rows.
        order, starts: the batch's pairs by query and grade; query i owns
            ``order[starts[i]:starts[i + 1]]``.
        positive_of: int64 [B], negative_of: int64 [K]: places among the documents.
    """

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    positive_of: NDArray[np.int64]
    negative_of: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch) -> BatchTexts:
        order = np.lexsort((batch.grade, batch.query))
        queries, starts = np.unique(batch.query[order], return_index=True)
        both = np.concatenate([batch.positive, batch.negatives])
        documents, place = np.unique(both, return_inverse=True)
        n = len(batch.positive)
        return cls(queries, documents, order, np.append(starts, n), place[:n], place[n:])


class CosineScorer:
    """f(q, d) = cos(A_q'q, A_d'd), and gradient ascent on sums of it.

    Args:
        Q, D: checked matrices. query, document: the tables A_q and A_d, which may be one.
    """

    def __init__(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, query: Table, document: Table, workers: Workers
    ) -> None:
        self.Q, self.D = Space(Q), Space(D)
        self.query, self.document, self.workers = query, document, workers

    @property
    def tables(self) -> dict[str, Table]:
        if self.query is self.document:
            return {"A_q": self.query}
        return {"A_q": self.query, "A_d": self.document}

    def parameters(self) -> dict[str, NDArray[np.float32]]:
        return {name: table.values for name, table in self.tables.items()}

    def state(self) -> dict[str, NDArray[Any]]:
        accumulators = {f"{n}_accumulator": t.accumulator for n, t in self.tables.items()}
        return self.parameters() | accumulators

    def cosines(self, texts: BatchTexts) -> NDArray[np.float32]:
        """float32 [u, n] of a batch's queries and documents."""
        self._texts = texts
        self._Hq, self._inverse_q = self._unit(self.query, self.Q, texts.queries)
        self._Hd, self._inverse_d = self._unit(self.document, self.D, texts.documents)
        return self._Hq @ self._Hd.T

    def ascend(self, C: NDArray[np.float32]) -> None:
        """A step up the sum of C_ij cos(query i, document j) over the texts of ``cosines``."""
        G_q = through_unit_rows(C @ self._Hd, self._Hq, self._inverse_q)
        G_d = through_unit_rows(C.T @ self._Hq, self._Hd, self._inverse_d)
        for table, space, rows, G in (
            (self.query, self.Q, self._texts.queries, G_q),
            (self.document, self.D, self._texts.documents, G_d),
        ):
            batch: BatchRows = space.rows(rows)
            table.ascend(batch, G, self.workers)
            batch.close()

    def lexical_matrix(self, queries: NDArray[np.int64], documents: NDArray[np.int64]) -> None:
        return None

    def learned_matrix(
        self, queries: NDArray[np.int64], documents: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """f of all given queries and documents: float32 [m, p]."""
        Hq, _ = self._unit(self.query, self.Q, queries)
        Hd, _ = self._unit(self.document, self.D, documents)
        return Hq @ Hd.T

    def _unit(
        self, table: Table, space: Space, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return unit_rows(table.embed(space.X, rows, self.workers))
