"""Rows that are written as Parquet while they come, in blocks of whole queries."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from letor.dataset import RankingData
from letor.errors import InputError
from letor.files import atomic_path
from letor.missing import Missing
from letor.string_array import encode

#: Where a file says what its rows are, in which version, and what stands beside the columns of X.
KEY, VERSION = b"letor", 1
ROLES = ("label", "query_id", "document_id", "comment")
_BLOCK_BYTES = 1 << 24  # of float32 values in a row group


class ParquetRows:
    """A file as of :func:`write_parquet` that is written while rows come, a block at a time: the
    same bytes for any blocks of the same rows. It appears when the ``with`` block ends without an
    error.

    Args:
        path, compression: see there.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, compression: Literal["lz4", "zstd", "none"] = "lz4"
    ) -> None:
        self._path, self._compression = Path(path), compression
        self._stack = ExitStack()
        self._writer: pq.ParquetWriter | None = None
        self._waiting: pa.Table | None = None
        self._ends = np.zeros(0, np.int64)  # of waiting rows, before which the query changes
        self._query_ids: list[str] = []
        self._relevant: dict[str, Mapping[int, int]] = {}
        self._unjudged: set[str] = set()
        self._knows_missing = True

    def __enter__(self) -> Self:
        self._partial = self._stack.enter_context(atomic_path(self._path))
        return self

    def add(self, data: RankingData) -> None:
        """Write the rows of further queries, with the columns and the provenance of the first ones;
        or keep them until there are enough for a row group.

        Raises:
            InputError: a column name is empty, provenance is no JSON, other columns than before, a
                query whose rows were added before, or ids that are no valid UTF-8 where those
                before were.
        """
        if self._writer is None:
            self._begin(data)
        if list(data.column_names) != self._names:
            raise InputError(f"{self._path}: rows of other columns than those before")
        table = self._table(data)
        waiting = 0 if self._waiting is None else len(self._waiting)
        changes = np.append(np.flatnonzero(np.diff(data.query_index)) + 1, len(data))
        self._ends = np.concatenate([self._ends, waiting + changes[changes > 0]])
        self._waiting = table if self._waiting is None else pa.concat_tables([self._waiting, table])
        self._query_ids += map(str, data.query_ids)
        if data.missing is None:
            self._knows_missing = False
        else:
            self._relevant |= data.missing.relevant
            self._unjudged |= data.missing.unjudged
        self._write_groups()

    @property
    def missing(self) -> Missing | None:
        """What is missing of all rows so far, queries without rows first, in an order that does not
        depend on the blocks; None where it is not known of some."""
        if not self._knows_missing:
            return None
        with_rows = set(self._query_ids)
        order = [query for query in self._relevant if query not in with_rows]
        order += [query for query in self._query_ids if query in self._relevant]
        relevant = {query: self._relevant[query] for query in order}
        return Missing(relevant, frozenset(self._unjudged))

    def _begin(self, data: RankingData) -> None:
        """Open the file, whose columns are those of the data."""
        self._names = list(data.column_names)
        self._roles = _role_names(data)
        self._provenance = dict(data.provenance)
        self._schema = self._table(data).schema
        self._metadata()  # what cannot be written is refused before rows are
        self._size = max(1024, _BLOCK_BYTES // (4 * max(1, len(self._names))))
        self._writer = self._stack.enter_context(
            pq.ParquetWriter(
                self._partial,
                _with_dictionary(self._schema, self._roles["query_id"]),
                compression=self._compression,
                use_dictionary=[self._roles["query_id"]],
                write_statistics=False,
            )
        )

    def _table(self, data: RankingData) -> pa.Table:
        queries = _texts(data.query_ids).take(pa.array(data.query_index))
        extra = {"label": pa.array(np.asarray(data.y, np.float32)), "query_id": queries}
        if data.document_ids is not None:
            extra["document_id"] = _texts(data.document_ids)
        if data.comments is not None:
            extra["comment"] = pa.array([bytes(c) for c in data.comments], pa.large_binary())
        columns = [pa.array(column) for column in np.ascontiguousarray(data.X.T, np.float32)]
        fields = [pa.field(str(c), pa.float32(), nullable=False) for c in self._names]
        for role, values in extra.items():
            columns.append(values)
            fields.append(pa.field(self._roles[role], values.type, nullable=False))
        table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
        if self._writer is not None and table.schema != self._schema:
            raise InputError(f"{self._path}: rows with other ids or comments than those before")
        return table

    def _write_groups(self, *, last: bool = False) -> None:
        """Write the row groups that are complete, or all that is left. A group has ``size`` rows or
        more (the last may have fewer), and ends where the query changes."""
        if self._waiting is None or self._writer is None:
            return
        start, n = 0, len(self._waiting)
        while start < n and (last or start + self._size <= n):
            end = int(self._ends[np.searchsorted(self._ends, min(start + self._size, n))])
            group = self._waiting.slice(start, end - start).combine_chunks()
            place = group.schema.get_field_index(self._roles["query_id"])
            ids = group.column(place).dictionary_encode()
            group = group.set_column(place, self._writer.schema.field(place), ids)
            self._writer.write_table(group, row_group_size=len(group))
            start = end
        if start:
            # A copy: a slice would keep all that was written in memory.
            self._waiting = self._waiting.slice(start).take(pa.array(np.arange(n - start)))
            self._ends = self._ends[self._ends > start] - start

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> bool | None:
        if kind is None and self._writer is not None:
            self._write_groups(last=True)
            self._writer.add_key_value_metadata({KEY: self._metadata()})
        return self._stack.__exit__(kind, *error)

    def _metadata(self) -> bytes:
        """What a file says of its rows.

        Raises:
            InputError: provenance that is no JSON.
        """
        if len(set(self._query_ids)) != len(self._query_ids):
            raise InputError(f"{self._path}: rows of a query in several blocks")
        meta: dict[str, Any] = {
            "version": VERSION,
            "columns": list(map(str, self._names)),
            "query_ids": self._query_ids,
            "provenance": self._provenance,
            "roles": self._roles,
        }
        if (missing := self.missing) is not None:
            meta["missing"] = missing.to_json()
        try:
            return json.dumps(meta).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"provenance must be JSON-compatible: {error}") from error


def _with_dictionary(schema: pa.Schema, name: str) -> pa.Schema:
    """The schema with a dictionary of texts in place of a column of texts."""
    place = schema.get_field_index(name)
    kind = pa.dictionary(pa.int32(), schema.field(place).type)
    return schema.set(place, pa.field(name, kind, nullable=False))


def _role_names(data: RankingData) -> dict[str, str]:
    """Names of the columns beside X: theirs, with underscores where X has such a name."""
    taken = {str(name) for name in data.column_names}
    if "" in taken:
        raise InputError("a column name is empty: give it one")
    names = {}
    for role in ROLES:
        if getattr(data, f"{role}s", 0) is None:  # document_ids, comments
            continue
        names[role] = role
        while names[role] in taken:
            names[role] += "_"
    return names


def _texts(values: Iterable[str]) -> pa.Array:
    """An Arrow array of strings; of bytes where a string is no valid UTF-8."""
    values = list(values)
    try:
        return pa.array(values, pa.large_string())
    except UnicodeEncodeError:
        return pa.array([encode(value) for value in values], pa.large_binary())
