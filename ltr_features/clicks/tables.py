"""Columns of a click log's files, block by block: CSV, TSV, JSON lines, Parquet."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.sources.table import table_batches, table_format
from ltr_features.text.records import text_lines

_JSON_LINES = 1 << 16
_TRUE, _FALSE = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")


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


def whole_numbers(block: Block, column: str, least: int) -> NDArray[np.int64]:
    """int64 [n]: a column of whole numbers.

    Raises:
        InputError: a value that is none, or less than ``least``.
    """
    values, index = texts(block, column)
    parsed = np.array([_whole(value) for value in values], np.float64)
    bad = ~(parsed >= least)
    if bad.any():
        row = int(np.argmax(bad[index]))
        what = "missing" if not values[index[row]].strip() else f"no whole number >= {least}"
        raise InputError(f"{block.where(row)}: {column} is {what}")
    return np.asarray(parsed.astype(np.int64)[index])


def _whole(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return float("nan")
    return value if value.is_integer() and abs(value) < 2**53 else float("nan")


def clicks(block: Block, column: str) -> NDArray[np.int64]:
    """int64 [n]: 0 or 1 (false, true), or a number of clicks.

    Raises:
        InputError: another value.
    """
    values, index = texts(block, column)
    plain = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
    parsed = np.array([plain[v] if v in plain else _whole(v) for v in values], np.float64)
    bad = ~(parsed >= 0)
    if bad.any():
        row = int(np.argmax(bad[index]))
        raise InputError(
            f"{block.where(row)}: {column} is neither 0 or 1, true or false, nor a number of clicks"
        )
    return np.asarray(parsed.astype(np.int64)[index])


def seconds(block: Block, column: str) -> NDArray[np.float64]:
    """float64 [n]: times as numbers, as they are, or ISO 8601 (UTC where no zone is named) as
    seconds since 1970.

    Raises:
        InputError: a value that is neither.
    """
    values, index = texts(block, column)
    parsed = np.array([time_of(value) for value in values], np.float64)
    if np.isnan(parsed[index]).any():
        row = int(np.argmax(np.isnan(parsed[index])))
        raise InputError(f"{block.where(row)}: {column} is neither a number nor a time (ISO 8601)")
    return np.asarray(parsed[index])


def time_of(text: str) -> float:
    """A time as a number, or NaN; see :func:`seconds`."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return float("nan")
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def hashes(block: Block, column: str) -> NDArray[np.uint64]:
    """uint64 [n]: the same number for the same text, in every file and on every machine.

    Raises:
        InputError: an empty text.
    """
    values, index = texts(block, column)
    _refuse_empty(block, column, values, index)
    hashed = pd.util.hash_array(np.array(values, dtype=object), categorize=False)
    return np.asarray(hashed)[index]


def _refuse_empty(
    block: Block, column: str, values: Sequence[str], index: NDArray[np.int64]
) -> None:
    empty = np.array([not value for value in values], dtype=bool)
    if empty[index].any():
        raise InputError(f"{block.where(int(np.argmax(empty[index])))}: {column} is empty")


def normalised(query: str) -> str:
    """A query's text by the rule of this package: Unicode NFKC, case folded, blanks around it
    dropped and those within made one."""
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split())


@dataclass
class Codes:
    """Numbers for ids, in order of first appearance.

    Attributes:
        number: of each id.
        normalise: ids are texts of queries, to be normalised first.
    """

    normalise: bool = False
    number: dict[str, int] = field(default_factory=dict)

    def of(self, block: Block, column: str) -> NDArray[np.int64]:
        """int64 [n]: the numbers of a column's ids.

        Raises:
            InputError: an empty one.
        """
        values, index = texts(block, column)
        ids = [normalised(v) for v in values] if self.normalise else values
        _refuse_empty(block, column, ids, index)
        codes = np.array([self.number.setdefault(i, len(self.number)) for i in ids], np.int64)
        return codes[index]
