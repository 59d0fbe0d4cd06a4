"""Columns of tables, block by block: CSV, TSV, JSON lines, Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from letor.compression import text_lines
from letor.errors import InputError
from ltr_features.sources.table import table_batches, table_format

_JSON_LINES = 1 << 16


@dataclass(frozen=True)
class Block:
    """Rows of a file. ``columns``: Arrow arrays of n values; ``line``: int64 [n], of the file (of
    Parquet, rows from 1)."""

    path: Path
    line: NDArray[np.int64]
    columns: Mapping[str, pa.Array]

    def where(self, row: int) -> str:
        """A row's place, for messages."""
        return f"{self.path}, line {self.line[row]}"


def blocks(path: Path, columns: Sequence[str]) -> Iterator[Block]:
    """The named columns of a file, in blocks of rows.

    Raises:
        InputError: no such file, another suffix, a column that is missing, or a damaged file; the
            message holds nothing of the file's content.
    """
    kind = table_format(path)
    names = list(dict.fromkeys(columns))
    if kind == "json":
        yield from _json_blocks(path, names)
        return
    first = 1 if kind == "parquet" else 2
    for batch in table_batches(path, kind, names):
        line = np.arange(first, first + batch.num_rows, dtype=np.int64)
        first += batch.num_rows
        if batch.num_rows:
            yield Block(path, line, {name: batch.column(name) for name in names})


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, JSON object) of each line that is not blank.

    Raises:
        InputError: a line that is no JSON object; it is not quoted, as it may hold a query.
    """
    for number, line in text_lines(path):
        if not line or line.isspace():
            continue
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {number}: not a JSON object")
        yield number, record


def _json_blocks(path: Path, names: Sequence[str]) -> Iterator[Block]:
    lines: list[int] = []
    values: dict[str, list[str]] = {name: [] for name in names}
    for number, record in records(path):
        for name in names:
            values[name].append(json_text(path, number, record, name))
        lines.append(number)
        if len(lines) == _JSON_LINES:
            yield _block_of(path, lines, values)
            lines, values = [], {name: [] for name in names}
    if lines:
        yield _block_of(path, lines, values)


def _block_of(path: Path, lines: list[int], values: Mapping[str, list[str]]) -> Block:
    columns = {name: pa.array(column, pa.string()) for name, column in values.items()}
    return Block(path, np.array(lines, np.int64), columns)


def json_text(path: Path, number: int, record: Mapping[str, Any], key: str) -> str:
    """A value of a JSON object as text, ``""`` for null.

    Raises:
        InputError: no such key, or a list or object.
    """
    if key not in record:
        raise InputError(f"{path}, line {number}: {key} is missing")
    value = record[key]
    if isinstance(value, (list, dict)):
        raise InputError(
            f"{path}, line {number}: {key} is a JSON {type(value).__name__}, expected text"
        )
    return "" if value is None else str(value)


def texts(block: Block, column: str) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct values of a column as text (missing: ``""``), and int64 [n], which it is.

    Raises:
        InputError: a column of lists, or of anything else that is no text or number.
    """
    array = block.columns[column]
    if not pa.types.is_string(array.type):
        try:
            array = pc.cast(array, pa.string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"{block.path}: column {column} holds {array.type}; text or numbers are expected"
            ) from None
    encoded = pc.fill_null(array, "").dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def refuse_empty(
    block: Block, column: str, values: Sequence[str], index: NDArray[np.int64]
) -> None:
    """Raise InputError naming the first row whose value is empty; ``values`` and ``index`` as of
    :func:`texts`."""
    empty = np.array([not value for value in values], dtype=bool)
    if empty[index].any():
        raise InputError(f"{block.where(int(np.argmax(empty[index])))}: {column} is empty")


@dataclass
class Codes:
    """Numbers for ids, in order of first appearance.

    Attributes:
        number: of each id.
        rule: what is done to an id first; nothing by default.
    """

    rule: Callable[[str], str] | None = None
    number: dict[str, int] = field(default_factory=dict)

    def of(self, block: Block, column: str) -> NDArray[np.int64]:
        """int64 [n]: the numbers of a column's ids.

        Raises:
            InputError: an empty one.
        """
        values, index = texts(block, column)
        ids = values if self.rule is None else list(map(self.rule, values))
        refuse_empty(block, column, ids, index)
        codes = np.array([self.number.setdefault(i, len(self.number)) for i in ids], np.int64)
        return codes[index]
