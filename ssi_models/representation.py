"""Scores as inner products of representations, each of a dense and a sparse part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ltr_base.blas import one_blas_thread
from ssi_models.kernels.sparse import pair_dots, pair_products
from ssi_models.matrices import arrays, side_by_side, take_rows, with_data
from ssi_models.parallel import Workers

_BLOCK = 2**25  # floats of query representations held at a time
_FEW = 4096  # pairs that one thread scores


@dataclass(frozen=True, eq=False)
class Representation:
    """Representations of n texts; f(q, d) = dense_q . dense_d + sparse_q . sparse_d.

    Attributes:
        dense: float32 [n, N], or None.
        sparse: checked CSR [n, W] (:func:`ssi_models.matrices.check_csr`), or None.
    """

    dense: NDArray[np.float32] | None = None
    sparse: sp.csr_matrix | None = None


def scaled(parts: Representation, factor: float) -> Representation:
    """The representations, multiplied by a factor."""
    dense = None if parts.dense is None else parts.dense * np.float32(factor)
    sparse = parts.sparse
    if sparse is not None:
        sparse = with_data(sparse, sparse.data * np.float32(factor))
    return Representation(dense, sparse)


def joined(a: Representation, b: Representation) -> Representation:
    """Representations whose inner product is the sum of those of a and of b.

    Both sides of a model must join the same kinds of parts, in the same order.
    """
    dense = [part.dense for part in (a, b) if part.dense is not None]
    sparse = [part.sparse for part in (a, b) if part.sparse is not None]
    return Representation(
        np.concatenate(dense, axis=1) if dense else None,
        side_by_side(sparse) if sparse else None,
    )


def _checked(model: Any, what: str, parts: Representation, n: int) -> Representation:
    """A model's representation of n texts; others are refused, which kernels would read out of
    bounds."""
    fault = "" if isinstance(parts, Representation) else f"returned {type(parts).__name__}"
    if not fault and parts.dense is not None:
        fault = _fault_of_dense(parts.dense, n)
    if not fault and parts.sparse is not None:
        fault = _fault_of_sparse(parts.sparse, n)
    if fault:
        raise ValueError(
            f"{type(model).__name__}.{what}_representation {fault}; it must return a "
            f"Representation of all {n} texts"
        )
    return parts


def _fault_of_dense(dense: NDArray[np.float32], n: int) -> str:
    """What is wrong with the dense part of n texts; "" if nothing is."""
    if not isinstance(dense, np.ndarray) or dense.dtype != np.float32 or dense.ndim != 2:
        return "has a dense part that is not an array float32 [n, N]"
    if len(dense) != n:
        return f"has {len(dense)} dense rows"
    return "" if np.isfinite(dense).all() else "has a dense part with values that are not finite"


def _fault_of_sparse(sparse: sp.csr_matrix, n: int) -> str:
    """What is wrong with the sparse part of n texts; "" if nothing is."""
    if not sp.issparse(sparse) or sparse.format != "csr":
        return "has a sparse part that is not a CSR matrix"
    if sparse.shape[0] != n or len(sparse.indptr) != n + 1:
        return f"has {sparse.shape[0]} sparse rows"
    columns = sparse.indices
    if len(columns) and not 0 <= columns.min() <= columns.max() < sparse.shape[1]:
        return f"has entries outside the {sparse.shape[1]} columns of its sparse part"
    return ""


def _check_widths(queries: Representation, documents: Representation) -> None:
    for q, d in ((queries.dense, documents.dense), (queries.sparse, documents.sparse)):
        if q is not None and d is not None and q.shape[1] != d.shape[1]:
            raise ValueError(
                f"queries are represented by {q.shape[1]} numbers, documents by {d.shape[1]}; the "
                "model is damaged"
            )


def _add_products(
    queries: Representation,
    documents: Representation,
    query: NDArray[np.int64],
    document: NDArray[np.int64],
    out: NDArray[np.float64],
    workers: Workers,
) -> None:
    _check_widths(queries, documents)

    def work(start: int, stop: int) -> None:
        if queries.sparse is not None and documents.sparse is not None:
            dense = np.zeros(queries.sparse.shape[1])
            q, d = arrays(queries.sparse), arrays(documents.sparse)
            pair_products(q, d, query, document, dense, out, start, stop)
        if queries.dense is not None and documents.dense is not None:
            pair_dots(queries.dense, documents.dense, query, document, out, start, stop)

    workers.split(work, len(query))


class CachedDocuments:
    """Documents ready to be ranked for any query: ``model.cache(D)``.

    The dense parts are kept as they are, the sparse ones indexed by term, so that a query
    costs one matrix product and the postings of its words.

    Args:
        model: a fitted :class:`ssi_models.base.MatchingModel`. D: float32 CSR [n, V], as it is
            scored with.
    """

    def __init__(self, model: Any, D: sp.csr_matrix) -> None:
        self._model = model
        self._words = np.unique(D.indices).astype(np.int64)
        self.n_documents = D.shape[0]
        self._parts = _checked(
            model, "document", model.document_representation(D), self.n_documents
        )

    @cached_property
    def _postings(self) -> sp.csr_matrix | None:
        return None if self._parts.sparse is None else sp.csr_matrix(self._parts.sparse.T)

    def _of_queries(self, Q: sp.csr_matrix) -> Representation:
        parts = self._model.query_representation(Q, self._words)
        return _checked(self._model, "query", parts, Q.shape[0])

    def pairs(
        self,
        Q: sp.csr_matrix,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        *,
        excluded: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """f of each pair of a row of checked queries and a document: float32 [n_pairs],
        bit-identical to :meth:`MatchingModel.score`."""
        model, documents = self._model, self._parts
        Q = model.expanded(Q, excluded)
        out = np.zeros(len(query))
        # Starting threads costs more than scoring a few thousand pairs.
        with Workers(model.threads if len(query) > _FEW else 1) as workers:
            if not model.expands_queries:
                _add_products(self._of_queries(Q), documents, query, document, out, workers)
                return out.astype(np.float32)
            asked, local = np.unique(query, return_inverse=True)
            size = max(1, _BLOCK // max(1, len(self._words)))
            for start in range(0, len(asked), size):
                chosen = np.flatnonzero((local >= start) & (local < start + size))
                parts = self._of_queries(take_rows(Q, asked[start : start + size]))
                part = np.zeros(len(chosen))
                rows = local[chosen] - start
                _add_products(parts, documents, rows, document[chosen], part, workers)
                out[chosen] = part
        return out.astype(np.float32)

    @one_blas_thread()
    def scores(self, Q: sp.csr_matrix, *, excluded: ArrayLike | None = None) -> NDArray[np.float32]:
        """f of every query with every document: float32 [m, n_documents].

        Equal to :meth:`MatchingModel.score` within float32 rounding.

        Args:
            excluded: int64 [m], see :meth:`MatchingModel.expanded`.

        Raises:
            ValueError: wrong number of columns.
        """
        Q = self._model.expanded(self._model.check_queries(Q), excluded)
        queries = self._of_queries(Q)
        _check_widths(queries, self._parts)
        out = np.zeros((Q.shape[0], self.n_documents), np.float32)
        if queries.dense is not None and self._parts.dense is not None:
            out += queries.dense @ self._parts.dense.T
        if queries.sparse is not None and self._postings is not None:
            out += (queries.sparse @ self._postings).toarray()
        return out

    @one_blas_thread()
    def top(self, Q: sp.csr_matrix, n: int) -> list[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """(rows, scores) of the n best documents for each query, best first, ties by row."""
        best = []
        for i in range(Q.shape[0]):
            scores = self.scores(Q[i : i + 1])[0]
            rows = np.argsort(-scores, kind="stable")[:n]
            best.append((rows, scores[rows]))
        return best
