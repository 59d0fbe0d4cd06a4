"""Incremental writing of rows as Parquet, in blocks of whole queries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from letor.arrow_rows import KEY, ArrowRows
from letor.errors import InputError
from letor.files import atomic_path
from letor.missing import Missing

_BLOCK_BYTES = 1 << 24  # size of the float32 values in a row group


class ParquetRows:
    """Writes a file of :func:`write_parquet` from blocks of rows. The division into blocks does not
    change its bytes. The file appears when the ``with`` block ends without an error.

    Args:
        path, compression: as for :func:`write_parquet`.

    Attributes:
        provenance: provenance of the file's columns, where it is known once all rows are; None for
            that of the first rows.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, compression: Literal["lz4", "zstd", "none"] = "lz4"
    ) -> None:
        self._path, self._compression = Path(path), compression
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self._waiting: pa.Table | None = None
        self._ends = np.zeros(0, np.int64)  # end of each query of the waiting rows
        self._query_ids: list[str] = []
        self._relevant: dict[str, Mapping[int, int]] = {}
        self._unjudged: set[str] = set()
        self._knows_missing = True
        self.provenance: Mapping[str, Mapping[str, Any]] | None = None

    def __enter__(self) -> Self:
        self._partial = self._stack.enter_context(atomic_path(self._path))
        return self

    def add(self, rows: ArrowRows) -> None:
        """Add rows of further queries; they are written once they fill a row group.

        Raises:
            InputError: provenance is not JSON-compatible, the columns differ from those before, or
                ids are not valid UTF-8 although those before were.
        """
        queries = rows.roles["query_id"]
        place = rows.table.schema.get_field_index(queries)
        plain = rows.table.column(place).cast(rows.table.schema.field(place).type.value_type)
        field = pa.field(queries, plain.type, nullable=False)
        table = rows.table.set_column(place, field, plain)
        if self._writer is None:
            self._begin(rows, table.schema)
        if list(rows.names) != list(self._first.names):
            raise InputError(f"{self._path}: rows with other columns than those before")
        if table.schema != self._schema:
            raise InputError(f"{self._path}: rows with other ids or comments than those before")
        waiting = 0 if self._waiting is None else len(self._waiting)
        self._ends = np.concatenate([self._ends, waiting + rows.ends])
        self._waiting = table if self._waiting is None else pa.concat_tables([self._waiting, table])
        self._query_ids += map(str, rows.query_ids)
        if rows.missing is None:
            self._knows_missing = False
        else:
            self._relevant |= rows.missing.relevant
            self._unjudged |= rows.missing.unjudged
        self._write_groups()

    @property
    def missing(self) -> Missing | None:
        """Judged documents and queries without a row so far, queries without rows first, in an
        order that does not depend on the blocks; None if unknown for some rows."""
        if not self._knows_missing:
            return None
        with_rows = set(self._query_ids)
        order = [query for query in self._relevant if query not in with_rows]
        order += [query for query in self._query_ids if query in self._relevant]
        relevant = {query: self._relevant[query] for query in order}
        return Missing(relevant, frozenset(self._unjudged))

    def _begin(self, rows: ArrowRows, schema: pa.Schema) -> None:
        """Open the file, with the columns of the first rows."""
        self._first, self._schema = replace(rows, table=schema.empty_table()), schema
        self._queries = schema.get_field_index(rows.roles["query_id"])
        self._metadata()  # refuse provenance that cannot be written before writing rows
        self._size = max(1024, _BLOCK_BYTES // (4 * max(1, len(rows.names))))
        self._writer = self._stack.enter_context(
            pq.ParquetWriter(
                self._partial,
                _with_dictionary(schema, self._queries),
                compression=self._compression,
                use_dictionary=[rows.roles["query_id"]],
                write_statistics=False,
                write_page_checksum=True,
            )
        )

    def _write_groups(self, *, last: bool = False) -> None:
        """Write the row groups that are complete, or all remaining rows. A group has ``_size`` rows
        or more (the last may have fewer), and ends where the query changes."""
        if self._waiting is None or self._writer is None:
            return
        start, n = 0, len(self._waiting)
        while start < n and (last or start + self._size <= n):
            end = int(self._ends[np.searchsorted(self._ends, min(start + self._size, n))])
            group = self._waiting.slice(start, end - start).combine_chunks()
            ids = group.column(self._queries).dictionary_encode()
            field = self._writer.schema.field(self._queries)
            group = group.set_column(self._queries, field, ids)
            self._writer.write_table(group, row_group_size=len(group))
            start = end
        if start:
            # Copied, since a slice would keep the written rows in memory.
            self._waiting = self._waiting.slice(start).take(pa.array(np.arange(n - start)))
            self._ends = self._ends[self._ends > start] - start

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> bool | None:
        if kind is not None:
            return self._stack.__exit__(kind, *error)
        with self._stack:  # so that errors in the last rows discard the file, too
            if self._writer is not None:
                self._write_groups(last=True)
                self._writer.add_key_value_metadata({KEY: self._metadata()})
        return None

    def _metadata(self) -> str:
        """The description of all rows so far, as JSON."""
        if len(set(self._query_ids)) != len(self._query_ids):
            raise InputError(f"{self._path}: rows of a query in several blocks")
        provenance = self._first.provenance if self.provenance is None else self.provenance
        return replace(
            self._first, query_ids=self._query_ids, missing=self.missing, provenance=provenance
        ).metadata()


def _with_dictionary(schema: pa.Schema, place: int) -> pa.Schema:
    """The schema with a column of strings replaced by a dictionary of strings."""
    field = schema.field(place)
    kind = pa.dictionary(pa.int32(), field.type)
    return schema.set(place, pa.field(field.name, kind, nullable=False))
