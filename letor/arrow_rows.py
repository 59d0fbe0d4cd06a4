"""Ranking data as an Arrow table, laid out as in the Parquet files, so that rows can be passed
between processes without creating a Python object for each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.files import atomic_path
from letor.missing import Missing
from letor.name_checks import check_unicode
from letor.string_array import encode

#: Key of the metadata that describes the rows, version of its format, columns besides those of X.
KEY, VERSION = b"letor", 1
ROLES = ("label", "query_id", "document_id", "comment")


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """Rows of whole queries as an Arrow table.

    Attributes:
        table: the columns of X (float32), then those of ``ROLES`` that the data has. Query ids are
            dictionary-encoded, with the values of ``query_ids`` in their order.
        names: names of the columns of X. roles: column name by role: the role itself, with
            underscores appended if X has a column of that name.
        query_ids, provenance, missing: as in ``RankingData``.
    """

    table: pa.Table
    names: Sequence[str]
    roles: Mapping[str, str]
    query_ids: Sequence[str]
    provenance: Mapping[str, Any]
    missing: Missing | None

    @classmethod
    def of(cls, data: RankingData) -> Self:
        """Convert a data set, keeping the order of its rows.

        Raises:
            InputError: a column name is empty, or not Unicode text.
        """
        names, roles = list(map(str, data.column_names)), _role_names(data)
        index = pa.array(data.query_index.astype(np.int32))
        queries = pa.DictionaryArray.from_arrays(index, _texts(data.query_ids))
        extra = {"label": pa.array(np.asarray(data.y, np.float32)), "query_id": queries}
        if data.document_ids is not None:
            extra["document_id"] = _texts(data.document_ids)
        if data.comments is not None:
            extra["comment"] = pa.array([bytes(c) for c in data.comments], pa.large_binary())
        columns = [pa.array(column) for column in np.ascontiguousarray(data.X.T, np.float32)]
        fields = [pa.field(name, pa.float32(), nullable=False) for name in names]
        for role, values in extra.items():
            columns.append(values)
            fields.append(pa.field(roles[role], values.type, nullable=False))
        table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
        return cls(table, names, roles, list(data.query_ids), dict(data.provenance), data.missing)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """int64: end (exclusive) of each run of rows with the same query."""
        index = self.table[self.roles["query_id"]].combine_chunks().indices.to_numpy()
        changes = np.append(np.flatnonzero(np.diff(index)) + 1, len(index))
        return changes[changes > 0]

    @property
    def n_relevant(self) -> int:
        """Number of rows with a label of 1 or more."""
        return int(pc.sum(pc.greater_equal(self.table[self.roles["label"]], 1.0)).as_py() or 0)

    @property
    def n_without_rows(self) -> int:
        """Number of judged queries that have no row."""
        relevant = {} if self.missing is None else self.missing.relevant
        return len(relevant.keys() - set(self.query_ids))

    def metadata(self) -> str:
        """Description of the rows as stored in files, see :func:`metadata_text`."""
        meta = {
            "columns": list(self.names),
            "query_ids": list(self.query_ids),
            "provenance": dict(self.provenance),
            "roles": dict(self.roles),
        }
        return metadata_text(meta, self.missing)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an Arrow file; it appears only once it is complete."""
        table = self.table.replace_schema_metadata({KEY: self.metadata()})
        with (
            atomic_path(path) as partial,
            pa.OSFile(str(partial), "wb") as file,
            pa.ipc.new_file(file, table.schema) as writer,
        ):
            writer.write_table(table)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a file written by :meth:`save`, memory-mapped.

        Raises:
            InputError: the file is damaged.
        """
        with reading(path, "it is not a readable block of rows; delete it"):
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            table.validate(full=True)
            meta = json.loads((table.schema.metadata or {})[KEY])
            missing = Missing.from_json(meta["missing"]) if "missing" in meta else None
            return cls(
                table.replace_schema_metadata(None),
                meta["columns"],
                meta["roles"],
                meta["query_ids"],
                meta["provenance"],
                missing,
            )


def metadata_text(meta: Mapping[str, Any], missing: Missing | None) -> str:
    """Description of rows as stored in files: JSON with the version of the format and what has no
    row, if known.

    Raises:
        InputError: provenance is not JSON-compatible.
    """
    last = {} if missing is None else {"missing": missing.to_json()}
    try:
        return json.dumps({"version": VERSION, **meta, **last})
    except (TypeError, ValueError) as error:
        raise InputError(f"provenance must be JSON-compatible: {error}") from error


def _role_names(data: RankingData) -> dict[str, str]:
    """Column name by role: the role itself, with underscores if X has a column of that name."""
    taken = {str(name) for name in data.column_names}
    if "" in taken:
        raise InputError("a column name is empty: name every column")
    check_unicode(taken)
    names = {}
    for role in ROLES:
        if getattr(data, f"{role}s", 0) is None:  # document_ids, comments
            continue
        names[role] = role
        while names[role] in taken:
            names[role] += "_"
    return names


def _texts(values: Iterable[str]) -> pa.Array:
    """An Arrow array of strings, or of bytes if a string is not valid UTF-8."""
    values = list(values)
    try:
        return pa.array(values, pa.large_string())
    except UnicodeEncodeError:
        return pa.array([encode(value) for value in values], pa.large_binary())
