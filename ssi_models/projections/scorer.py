"""The trainable form of S2Net: cosines of a batch's texts and their gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.sparse import embed_rows
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
        query_of: int64 [B], places among the queries.
        positive_of: int64 [B], negative_of: int64 [K], places among the documents.
    """

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    query_of: NDArray[np.int64]
    positive_of: NDArray[np.int64]
    negative_of: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch) -> BatchTexts:
        n = len(batch.query)
        order = np.lexsort((batch.grade, batch.query))
        queries, query_of = np.unique(batch.query, return_inverse=True)
        starts = np.searchsorted(batch.query[order], queries)
        both = np.concatenate([batch.positive, batch.negatives])
        documents, place = np.unique(both, return_inverse=True)
        starts = np.append(starts, n).astype(np.int64)
        return cls(queries, documents, order, starts, query_of, place[:n], place[n:])


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

    def begin_epoch(self) -> None:
        """Called before an epoch's first step; the tables may have been changed since the last."""

    def cosines(self, texts: BatchTexts) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Of each pair, float32 [B]; of each query with each negative, float32 [u, K]."""
        self._texts = texts
        self._Hq, self._inverse_q = self._unit(self.query, self.Q, texts.queries)
        self._Hd, self._inverse_d = self._unit(self.document, self.D, texts.documents)
        own = self._Hq[texts.query_of], self._Hd[texts.positive_of]
        self._negatives = self._Hd[texts.negative_of]
        return np.einsum("bk,bk->b", *own), self._Hq @ self._negatives.T

    def ascend(self, pull: NDArray[np.float32], C: NDArray[np.float32]) -> None:
        """A step up the sum of pull_b cos(pair b) + C_ik cos(query i, negative k) over the texts of
        ``cosines``."""
        texts = self._texts
        G_q = self._sums(texts.order, texts.starts, texts.positive_of, pull, self._Hd)
        G_q += C @ self._negatives
        order = np.argsort(texts.positive_of, kind="stable")
        starts = np.searchsorted(texts.positive_of[order], np.arange(len(texts.documents) + 1))
        G_d = self._sums(order, starts.astype(np.int64), texts.query_of, pull, self._Hq)
        G_d[texts.negative_of] += C.T @ self._Hq
        G_q = through_unit_rows(G_q, self._Hq, self._inverse_q)
        G_d = through_unit_rows(G_d, self._Hd, self._inverse_d)
        for table, space, rows, G in (
            (self.query, self.Q, texts.queries, G_q),
            (self.document, self.D, texts.documents, G_d),
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

    def _sums(
        self,
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        row: NDArray[np.int64],
        weight: NDArray[np.float32],
        H: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """out[i] = sum of weight[b] H[row[b]] over b in order[starts[i]:starts[i + 1]]."""
        out = np.empty((len(starts) - 1, H.shape[1]), np.float32)
        rows, columns = np.arange(len(out)), row[order].astype(np.int32)
        self.workers.split(
            lambda a, b: embed_rows(starts, columns, weight[order], rows, H, out, a, b), len(out)
        )
        return out
