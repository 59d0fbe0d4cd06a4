"""A collection's documents as an Arrow file that is mapped into memory: texts become strings of
Python when they are asked for, and processes on a machine share what is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from letor.errors import InputError, reading
from ltr_features.text.collection import STREAMS, Collection

if TYPE_CHECKING:
    import pyarrow as pa

#: The file within a collection's folder; ``corpus.jsonl`` beside it has the same documents.
FILE = "corpus.arrow"
_ID = "_id"
_BLOCK = 4096  # documents


class StoredTexts(Sequence[str]):
    """The texts of a column, in order.

    Args:
        column: of strings without nulls.
    """

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, rows: int) -> str: ...
    @overload
    def __getitem__(self, rows: slice) -> list[str]: ...
    def __getitem__(self, rows: int | slice) -> str | list[str]:
        if isinstance(rows, slice):
            return [self[row] for row in range(*rows.indices(len(self)))]
        text: str = self._column[int(rows)].as_py()
        return text

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _BLOCK):
            yield from self._column.slice(first, _BLOCK).to_pylist()


def save_documents(collection: Collection, folder: Path) -> None:
    """Write the documents' ids and texts into an existing folder."""
    import pyarrow as pa

    columns = {_ID: collection.document_ids, **collection.streams}
    schema = pa.schema([pa.field(name, pa.large_string(), nullable=False) for name in columns])
    with pa.OSFile(str(folder / FILE), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for first in range(0, collection.n_documents, _BLOCK):
            arrays = [pa.array(texts[first : first + _BLOCK], pa.large_string())
                      for texts in columns.values()]  # fmt: skip
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def open_documents(folder: Path) -> tuple[list[str], dict[str, StoredTexts]] | None:
    """The ids of the documents, and their texts by stream; None where the folder has no such file.

    The whole file is looked at once, so that no damaged text is met later.

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
        if names[:1] != [_ID] or not set(names[1:]) <= set(STREAMS):
            raise InputError(f"{path}: columns {', '.join(names)}")
        for field, column in zip(table.schema, table.columns, strict=True):
            if field.type != pa.large_string() or column.null_count:
                raise InputError(f"{path}: column {field.name} does not hold texts")
        return table[_ID].to_pylist(), {name: StoredTexts(table[name]) for name in names[1:]}
