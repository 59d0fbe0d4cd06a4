"""Ids and texts of documents in memory-mapped Arrow files."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from letor.errors import InputError, reading
from ltr_base.machine import temporary_folder_named
from ltr_base.slices import slices
from ltr_features.text.arrow_texts import StoredTexts
from ltr_features.text.collection import FIELDS, Collection

if TYPE_CHECKING:
    import pyarrow as pa

#: The file in a collection's folder; ``corpus.jsonl`` there has the same documents.
FILE = "corpus.arrow"
_ID = "_id"
_BLOCK = 4096  # documents
#: Number of characters that are held in memory before they are written.
_HELD = 1 << 26


class DocumentTexts:
    """Collects the texts of documents one after the other. Many texts are held in temporary files
    (in ``TMPDIR``), which are deleted together with the texts.

    Args:
        fields: fields to have even if no document has text for them; other fields are added with
            their first text.
    """

    def __init__(self, fields: Sequence[str] = ()) -> None:
        self._waiting: dict[str, list[str]] = {field: [] for field in fields}
        self._written: list[pa.Table] = []
        self._n_waiting = self._n_characters = self._n_written = 0

    def __len__(self) -> int:
        return self._n_written + self._n_waiting

    def add(self, texts: Mapping[str, str]) -> None:
        """Add the next document's texts by field; missing ones are empty.

        Raises:
            OSError: the disk is full; the error names the folder.
        """
        for field, text in texts.items():
            if text and field not in self._waiting:
                self._waiting[field] = [""] * self._n_waiting
        for field, waiting in self._waiting.items():
            waiting.append(texts.get(field, ""))
            self._n_characters += len(waiting[-1])
        self._n_waiting += 1
        if self._n_characters >= _HELD:
            self._write()

    def fields(self, rows: Sequence[int] | None = None) -> dict[str, Sequence[str]]:
        """The texts by field, in the order of ``FIELDS``: one for each document, or for each of
        the given rows, whose texts are held in memory unless these are all rows."""
        by_field: dict[str, Sequence[str]] = {**self._waiting}
        if self._written:
            self._write()
            by_field = {field: StoredTexts(self._column(field)) for field in self._waiting}
        if rows is not None and len(rows) < len(self):
            by_field = {field: [texts[row] for row in rows] for field, texts in by_field.items()}
        return {field: by_field[field] for field in FIELDS if field in by_field}

    def _column(self, field: str) -> pa.ChunkedArray:
        import pyarrow as pa

        none = pa.scalar("", pa.large_string())
        return pa.chunked_array(
            [
                part[field].chunk(0) if field in part.column_names else pa.repeat(none, len(part))
                for part in self._written
            ]
        )

    def _write(self) -> None:
        """Move the waiting texts to the disk."""
        import pyarrow as pa

        if not self._n_waiting:
            return
        arrays = [pa.array(texts, pa.large_string()) for texts in self._waiting.values()]
        batch = pa.record_batch(arrays, names=list(self._waiting))
        with temporary_folder_named(), tempfile.TemporaryFile() as file:
            with pa.ipc.new_stream(file, batch.schema) as writer:
                writer.write_batch(batch)
            mapped = np.memmap(file, np.uint8, "r")
        self._written.append(pa.ipc.open_stream(pa.py_buffer(mapped)).read_all())
        self._n_written += self._n_waiting
        self._n_waiting = self._n_characters = 0
        self._waiting = {field: [] for field in self._waiting}


def save_documents(collection: Collection, folder: Path) -> None:
    """Write the documents' ids and texts into an existing folder."""
    import pyarrow as pa

    columns = {_ID: collection.document_ids, **collection.fields}
    schema = pa.schema([pa.field(name, pa.large_string(), nullable=False) for name in columns])
    with pa.OSFile(str(folder / FILE), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for rows in slices(collection.n_documents, _BLOCK):
            arrays = [_arrow(texts, rows) for texts in columns.values()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _arrow(texts: Sequence[str], rows: slice) -> pa.Array:
    import pyarrow as pa

    if isinstance(texts, StoredTexts):
        return texts.arrow(rows.start, rows.stop)
    return pa.array(texts[rows], pa.large_string())


def block_sizes(folder: Path) -> list[int]:
    """The number of bytes of each block of documents that :func:`save_documents` wrote."""
    import pyarrow as pa

    with pa.memory_map(str(folder / FILE)) as file:
        reader = pa.ipc.open_file(file)
        return [reader.get_batch(block).nbytes for block in range(reader.num_record_batches)]


def read_blocks(folder: Path, first: int, last: int) -> tuple[list[str], dict[str, list[str]], str]:
    """The ids and the texts by field of a folder's blocks of documents ``first`` to ``last``
    (exclusive), and a digest of their content.

    Raises:
        InputError: the file is missing or damaged.
    """
    import pyarrow as pa

    path = folder / FILE
    with reading(path, "it is damaged: make the collection again"):
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        blocks = [reader.get_batch(block) for block in range(first, last)]
        for block in blocks:
            block.validate(full=True)
        content = hashlib.sha256(reader.schema.serialize())
        for block in blocks:
            content.update(block.serialize())
        table = pa.Table.from_batches(blocks, reader.schema)
        ids, *texts = (column.to_pylist() for column in table.columns)
        return ids, dict(zip(table.column_names[1:], texts, strict=True)), content.hexdigest()


def open_documents(folder: Path) -> tuple[StoredTexts, dict[str, StoredTexts]] | None:
    """The ids of the documents, and their texts by field; None if the folder has no such file.

    The whole file is checked here, so that damaged texts do not turn up later.

    Raises:
        InputError: the file is damaged.
    """
    import pyarrow as pa

    path = folder / FILE
    if not path.is_file():
        return None
    with reading(path, "it is damaged: make the collection again"):
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
        names = table.column_names
        if names[:1] != [_ID] or not set(names[1:]) <= set(FIELDS):
            raise InputError(f"{path}: unexpected columns {', '.join(names)}")
        for field, column in zip(table.schema, table.columns, strict=True):
            if field.type != pa.large_string() or column.null_count:
                raise InputError(f"{path}: column {field.name} does not hold texts")
        return StoredTexts(table[_ID]), {name: StoredTexts(table[name]) for name in names[1:]}
