"""The trainable form of S2Net: cosines of a batch's texts and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.parallel import Workers
from ssi_models.projections.cosine import unit_rows
from ssi_models.projections.tuples import through_unit_rows
from ssi_models.sampling import Batch
from ssi_models.tables import BatchRows, Space, Table


class CosineScorer:
    """f(q, d) = cos(A_q'q, A_d'd); a :class:`ssi_models.scorers.Scorer`.

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

    def scores(self, batch: Batch) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self._texts = texts = batch.texts
        self._Hq, self._inverse_q = self._unit(self.query, self.Q, texts.queries)
        self._Hd, self._inverse_d = self._unit(self.document, self.D, texts.documents)
        own = self._Hq[texts.query_of], self._Hd[texts.positive_of]
        positive = np.einsum("bk,bk->b", *own)
        return positive, (self._Hq @ self._Hd[: texts.n_negatives].T)[texts.query_of]

    def ascend(self, A: NDArray[np.float32]) -> None:
        C = self._texts.slopes(A)
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
        Hq, _ = self._unit(self.query, self.Q, queries)
        Hd, _ = self._unit(self.document, self.D, documents)
        return Hq @ Hd.T

    def _unit(
        self, table: Table, space: Space, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return unit_rows(table.embed(space.X, rows, self.workers))
