"""Similarities of query and document vectors that another model made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from letor.dataset import GIVEN
from letor.errors import InputError
from ltr_base.slices import slices
from ltr_features.columns.base import ColumnFamily, ColumnSpec, rows_without
from ltr_features.columns.context import ColumnContext
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import known_rows

if TYPE_CHECKING:
    from ltr_features.embeddings.id_vectors import IdVectors

#: Pairs compared at once, so that memory-mapped vectors are never in memory as a whole.
_BLOCK = 8192
_SPECS = {
    "cosine": ("q'd / (|q| |d|), 0 where one of them is 0", "-1 to 1"),
    "dot": ("q'd", "any"),
    "distance": ("Euclidean distance |q - d|", ">= 0"),
}


@dataclass(frozen=True)
class GivenVectors(ColumnFamily):
    """Cosine, dot product or distance of a query's and a document's vector.

    Attributes:
        queries, documents: files of vectors, see :func:`~.id_vectors.read_id_vectors`.
        query_ids, document_ids: files of the vectors' ids, if the vector files have none.
        prefix: prefix of the columns' names: ``<prefix>_cosine``.
        measures: the similarities to compute, a column for each.
        missing: the value of a pair whose query or document has no vector. By default such a pair
            counts as unrelated: 0, as distance sqrt(2) |q|, which is that of a vector of the
            query's length at right angles to it (0 for all pairs of a query without a vector).

    Raises:
        InputError: a file cannot be read, or the vectors of queries and documents differ in
            width.
    """

    name = "vectors"
    description = "Similarity of vectors of queries and documents that another model made"
    reference = "given"
    trained_on = GIVEN
    knows_new_queries = False
    reads_texts = False

    queries: str | os.PathLike[str] | None = None
    documents: str | os.PathLike[str] | None = None
    query_ids: str | os.PathLike[str] | None = None
    document_ids: str | os.PathLike[str] | None = None
    prefix: str = "vectors"
    measures: Sequence[Literal["cosine", "dot", "distance"]] = ("cosine",)
    missing: float | None = None
    _read: dict[str, IdVectors] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        unknown = [name for name in self.measures if name not in _SPECS]
        if unknown or not self.measures or len(set(self.measures)) < len(self.measures):
            raise InputError(
                f"vectors: measures must be some of {', '.join(_SPECS)}, got {list(self.measures)}"
            )
        if self.missing is not None and not np.isfinite(np.float32(self.missing)):
            raise InputError(f"vectors: missing must be finite, got {self.missing}")
        if self.queries is None or self.documents is None:
            return  # enough for listings; ``check`` reports the missing file
        self._read.update(self._from_files())

    def __getstate__(self) -> dict[str, Any]:
        """Without the vectors, which may be larger than memory: another process reads the files."""
        return {**self.__dict__, "_read": {}}

    @property
    def columns(self) -> Sequence[ColumnSpec]:
        return [
            ColumnSpec(
                f"{self.prefix}_{name}", _SPECS[name][0], "as given", _SPECS[name][1], "given"
            )
            for name in self.measures
        ]

    @classmethod
    def file_beside(cls, path: Path) -> Path | None:
        """The ids of the rows, if the file is an array."""
        from ltr_features.embeddings.id_vectors import ids_beside

        return ids_beside(path)

    def check(self, context: ColumnContext) -> None:
        """Raise InputError if a file is not named, or has no vector for the collection."""
        if self.queries is None or self.documents is None:
            raise InputError(
                "vectors: name both files, queries = 'queries.npy' and documents = 'documents.npy' "
                "in TOML, --option vectors.queries=queries.npy on the command line"
            )
        self._rows(context, "query")
        self._rows(context, "document")

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        query, document = self._rows_of(context, pairs)
        known = np.flatnonzero((query >= 0) & (document >= 0))
        result = np.full((len(pairs), len(self.measures)), self.missing or 0, dtype=np.float32)
        for rows in slices(len(known), _BLOCK):
            block = known[rows]
            q = self._vectors(context, "query", query[block])
            d = self._vectors(context, "document", document[block])
            for j, name in enumerate(self.measures):
                result[block, j] = _similarity(name, q, d)
        if self.missing is None and "distance" in self.measures:
            j, alone = self.measures.index("distance"), (query >= 0) & (document < 0)
            result[alone, j] = np.sqrt(2) * self._lengths(context, query[alone])
        return result

    def _lengths(self, context: ColumnContext, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64 [n]: the length of the query vector in each row, each row read once."""
        distinct, at = np.unique(rows, return_inverse=True)
        vectors = self._vectors(context, "query", distinct)
        return np.sqrt(_products(vectors, vectors))[at]

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        query, document = self._rows_of(context, pairs)
        return [int(((query < 0) | (document < 0)).sum())] * len(self.measures)

    def column_settings(self, context: ColumnContext, column: str) -> dict[str, Any]:
        return self.settings(context) | {"missing": self._substitute(column)}

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        substitute = self._substitute(column)
        value = substitute if isinstance(substitute, str) else f"{substitute:g}"
        return f"{rows_without('vectors', n_missing, n)} and get {value}"

    def _substitute(self, column: str) -> float | str:
        """What a pair without vectors gets, in words unless it is one number."""
        if self.missing is None and column == f"{self.prefix}_distance":
            return "the distance of unrelated vectors"
        return self.missing or 0

    def _rows_of(
        self, context: ColumnContext, pairs: Pairs
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of each pair's vectors in the two files, -1 where there is none."""
        query, document = self._rows(context, "query"), self._rows(context, "document")
        return query[pairs.query], document[pairs.document]

    def _rows(self, context: ColumnContext, side: str) -> NDArray[np.int64]:
        """int64: the row of each query's or document's vector in its file, -1 if it has none."""
        vectors, collection = self._files(context)[side], context.collection
        cached = context.cached_for_queries if side == "query" else context.cached
        wanted = collection.query_ids if side == "query" else collection.document_ids

        def find() -> NDArray[np.int64]:
            found = known_rows(vectors.ids, wanted, vectors.path, side)
            rows = np.full(len(wanted), -1, dtype=np.int64)
            rows[found[found >= 0]] = np.flatnonzero(found >= 0)
            return rows

        return cached((self, side), find)

    def _files(self, context: ColumnContext) -> dict[str, IdVectors]:
        """The vectors of queries and documents. A process that was sent the family reads them once
        for all its blocks."""
        return self._read or context.cached((self, "files"), self._from_files)

    def _from_files(self) -> dict[str, IdVectors]:
        from ltr_features.embeddings.id_vectors import read_id_vectors

        assert self.queries is not None
        assert self.documents is not None
        query = read_id_vectors(self.queries, self.query_ids)
        document = read_id_vectors(self.documents, self.document_ids)
        if query.width != document.width:
            raise InputError(
                f"vectors: {self.queries} has {query.width} numbers a row, {self.documents} "
                f"{document.width}; they must come from one model"
            )
        return {"query": query, "document": document}

    def _vectors(
        self, context: ColumnContext, side: str, rows: NDArray[np.int64]
    ) -> NDArray[np.float64] | sp.csr_matrix:
        """float64 [n, width], finite; CSR if either file is sparse."""
        files = self._files(context)
        vectors = files[side]
        chosen = vectors.rows[rows].astype(np.float64)
        if any(sp.issparse(other.rows) for other in files.values()):
            chosen = sp.csr_matrix(chosen)
        finite = np.isfinite(np.asarray(chosen.sum(axis=1)).ravel())
        if not finite.all():
            row = int(rows[np.argmin(finite)])
            raise InputError(
                f"{vectors.path}, row {row + 1}: the vector of {side} {vectors.ids[row]!r} has a "
                "number that is not finite; compute it again or leave it out"
            )
        return chosen

    def __hash__(self) -> int:
        return hash((str(self.queries), str(self.documents), self.prefix, tuple(self.measures)))


def _similarity(name: str, q: Any, d: Any) -> NDArray[np.float64]:
    """float64 [n]: the similarity of row i of q and row i of d, both dense or both CSR."""
    if name == "distance":
        difference = q - d
        return np.sqrt(_products(difference, difference))
    products = _products(q, d)
    if name == "dot":
        return products
    norms = np.sqrt(_products(q, q) * _products(d, d))
    return np.clip(np.divide(products, norms, out=np.zeros(len(norms)), where=norms > 0), -1, 1)


def _products(a: Any, b: Any) -> NDArray[np.float64]:
    """float64 [n]: inner products of row i of a and row i of b."""
    products = a.multiply(b) if sp.issparse(a) else a * b
    return np.asarray(products.sum(axis=1)).ravel()
