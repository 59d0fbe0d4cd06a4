"""Numbers of documents as columns: prices, ratings, popularity."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.dataset import GIVEN
from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, ColumnSpec, rows_without, substitutes
from ltr_features.columns.context import ColumnContext
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import known_rows, rows_of

if TYPE_CHECKING:
    from ltr_features.sources.table_rows import Numbers


@dataclass(frozen=True)
class DocumentNumbers(ColumnFamily):
    """A column for each number that a table has of documents, the same for every query. Documents
    that are added later have the numbers that the table has of them.

    Attributes:
        file: a table with a row per document, see :func:`~.table_rows.read_document_numbers`.
        document: its column of document ids, if that has no usual name.
        numbers: the columns that are taken; by default all that hold numbers.
        missing: the value of a document that has none; or a mapping from names of columns to such
            values, where other columns have 0.

    Raises:
        InputError: the file cannot be read, or ``missing`` names no column or is not finite.
    """

    name: ClassVar[str] = "numbers"
    description: ClassVar[str] = "Numbers of documents, such as prices, from a table"
    reference: ClassVar[str] = "given"
    trained_on = GIVEN
    reads_texts: ClassVar[bool] = False
    knows_added: ClassVar[bool] = True

    file: str | os.PathLike[str] | None = None
    document: str | None = None
    numbers: Sequence[str] = ()
    missing: float | Mapping[str, float] = 0.0

    def __post_init__(self) -> None:
        self._substitutes  # noqa: B018, read the file before anything expensive

    @cached_property
    def _substitutes(self) -> dict[str, float]:
        return substitutes(self, 0.0)

    @property
    def columns(self) -> Sequence[ColumnSpec]:
        if self._found is None:
            return []
        return [
            ColumnSpec(
                column.lower().replace(" ", "_"),
                f"{column} of the document in {Path(self.file or '').name}",
                "as given", "any", "given",
            )
            for column in self._found.columns
        ]  # fmt: skip

    def check(self, context: ColumnContext) -> None:
        """Raise InputError if no file is named, or it has no document of the collection."""
        if self._found is None:
            raise InputError(
                "numbers: name the table of documents: file = 'products.csv' in TOML, --option "
                "numbers.file=products.csv on the command line"
            )
        self._of_documents(context)

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        values = self._of_documents(context)[pairs.document]
        substitute = np.array([*self._substitutes.values()], dtype=np.float32)
        return np.where(np.isnan(values), substitute, values)

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        return np.isnan(self._of_documents(context)[pairs.document]).sum(0).tolist()

    def remarks_on_added(self, ids: Sequence[str]) -> list[str]:
        found = self._found
        assert found is not None  # check has refused it
        lacking = np.isnan(self._values(found, ids)).sum(axis=0).tolist()
        path = os.fspath(self.file or "")
        return [
            f"{name}: {n:,} of {len(ids):,} added documents have no number in {path} and get "
            f"{substitute:g}; a new build reads a new table"
            for (name, substitute), n in zip(self._substitutes.items(), lacking, strict=True)
            if n
        ]

    def column_settings(self, context: ColumnContext, column: str) -> dict[str, Any]:
        return self.settings(context) | {"missing": self._substitutes[column]}

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        return f"{rows_without('number', n_missing, n)} and get {self._substitutes[column]:g}"

    @cached_property
    def _found(self) -> Numbers | None:
        """What the file has. The import is slow, and listings read no file."""
        if self.file is None:
            return None
        from ltr_features.sources.table_rows import read_document_numbers

        return read_document_numbers(self.file, document=self.document, numbers=self.numbers)

    def _of_documents(self, context: ColumnContext) -> NDArray[np.float32]:
        """float32 [n_documents, n_columns], NaN where a document has no number."""
        found, ids = self._found, context.collection.document_ids
        assert found is not None  # check refuses it

        def find() -> NDArray[np.float32]:
            if context.base is None:  # else none of a few added documents may be known
                known_rows(found.documents, ids, self.file or "", "document")
            return self._values(found, ids)

        return context.cached((self, "numbers"), find)

    @staticmethod
    def _values(found: Numbers, ids: Sequence[str]) -> NDArray[np.float32]:
        """float32 [len(ids), n_columns], NaN where a document has no number."""
        rows = rows_of(found.documents, ids)
        values = np.full((len(ids), len(found.columns)), np.nan, np.float32)
        values[rows[rows >= 0]] = found.values[rows >= 0]
        return values

    def __hash__(self) -> int:
        return hash((os.fspath(self.file or ""), self.document, tuple(self.numbers)))
