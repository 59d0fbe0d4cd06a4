"""Read tables (CSV, TSV, JSON lines or lists, Parquet) by columns or by rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from letor.compression import COMPRESSED, check_encoding
from letor.errors import InputError
from letor.files import check_is_file
from letor.frames import arrow_table
from ltr_features.sources.arrow_tables import (
    ColumnName,
    SeparatedValues,
    are_names,
    as_strings,
    check_columns,
    column_list,
    is_plain_list,
    joined_lists,
    numbered,
    parquet_batches,
    parquet_schema,
)
from ltr_features.sources.input_files import suffixes
from ltr_features.sources.usual_names import add_usual
from ltr_features.text.records import (
    OnBadLine,
    check_keys,
    flat,
    is_nested,
    json_lines,
    place,
    reason_of,
    text_value,
)

_JSON = (".jsonl", ".ndjson", ".json")
_SUFFIXES = (".csv", ".tsv", *_JSON, ".parquet")
#: Lines of a block, and characters of values after which it ends: documents may be long.
_JSON_LINES, _JSON_CHARACTERS = 1 << 16, 1 << 24


@dataclass(frozen=True)
class Block:
    """Rows of a file. ``columns``: Arrow arrays of n values, by name or number; ``line``: int64
    [n], lines of the file (in Parquet, rows counted from 1)."""

    path: Path | Frame
    line: NDArray[np.int64]
    columns: Mapping[Any, pa.Array]

    def where(self, row: int) -> str:
        """File and line of a row, see :func:`place`."""
        return place(self.path, self.line[row])


@dataclass(frozen=True)
class Frame:
    """A frame in memory, read as a table; rows count from 1. ``what`` it is of, for messages."""

    table: pa.Table
    what: str = ""
    name: str = "frame"

    def __str__(self) -> str:
        return f"the frame of {self.what}" if self.what else "the frame"


def table_of(given: Any, what: str = "") -> Path | Frame:
    """Convert a path, or a pandas, polars or Arrow frame, to what the functions here read; ``what``
    is a frame's name in messages.

    Raises:
        InputError: a list, or see :func:`letor.frames.arrow_table`.
    """
    if isinstance(given, Frame):
        return given
    if isinstance(given, (list, tuple)):
        raise InputError(f"{what or 'table'}: a list; name one file, and join several before")
    return Path(given) if isinstance(given, (str, os.PathLike)) else Frame(arrow_table(given), what)


def tables_of(given: Any, what: str) -> list[Path | Frame]:
    """What :func:`table_of` makes of one path or frame, or of each in a list; ``what`` names the
    option.

    Raises:
        InputError: an empty list, or as :func:`table_of`.
    """
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    if not several:
        raise InputError(f"{what}: an empty list; name a file")
    return [table_of(one, what) for one in several]


def table_format(path: Path) -> str:
    """The format of a table by its suffix: ".csv", ".tsv", ".jsonl" (JSON lines, or a list of
    objects) or ".parquet".

    Raises:
        InputError: another suffix.
    """
    found = suffixes(path)
    if found and found[-1] in COMPRESSED:
        found = found[:-1]
    if not found or found[-1] not in _SUFFIXES:
        raise InputError(
            f"{path}: the name must end in {', '.join(_SUFFIXES)}; save a spreadsheet as .csv"
        )
    return ".jsonl" if found[-1] in _JSON else found[-1]


def is_table(path: Path | Frame) -> bool:
    """Whether ``path`` is a frame, or a file with the suffix of a table."""
    if isinstance(path, Frame):
        return True
    return any(suffix in _SUFFIXES for suffix in suffixes(path)[-2:])


def table_columns(
    path: Path | Frame, encoding: str = "utf-8", *, lenient: bool = False
) -> list[str]:
    """The names of a table's columns; for JSON lines the keys of all objects, in order of first
    appearance, with those of nested objects as ``outer.inner``. ``lenient``: whether damaged lines
    are ignored.

    Raises:
        InputError: there are none, as the table is empty; see also :func:`blocks`.
    """
    if isinstance(path, Frame):
        names = list(path.table.column_names)
    elif (kind := table_format(path)) == ".jsonl":
        names = list(_keys(path, encoding, lenient).n_with)
    elif kind == ".parquet":
        names = list(parquet_schema(path).names)
    else:
        names = SeparatedValues(path, kind, encoding, _ignore if lenient else None).names
    if not names:
        raise InputError(f"{path}: the table is empty")
    return names


def absent_keys(
    path: Path | Frame, columns: Sequence[ColumnName], encoding: str = "utf-8"
) -> dict[ColumnName, str]:
    """For columns of JSON lines that some objects lack, how many: "1,203 of 3,000 objects"; empty
    for other tables."""
    if isinstance(path, Frame) or table_format(path) != ".jsonl":
        return {}
    keys = _keys(path, encoding)
    lost = {column: keys.n - keys.n_with[str(column)] for column in columns}
    return {column: f"{n:,} of {keys.n:,} objects" for column, n in lost.items() if n}


def nested_columns(path: Path | Frame, encoding: str = "utf-8") -> frozenset[str]:
    """The columns that hold objects or lists of such, which cannot be read as texts or numbers."""
    if isinstance(path, Path) and (kind := table_format(path)) != ".parquet":
        return _keys(path, encoding).nested if kind == ".jsonl" else frozenset()
    schema = path.table.schema if isinstance(path, Frame) else parquet_schema(path)
    nested = (f.name for f in schema if pa.types.is_nested(f.type) and not is_plain_list(f.type))
    return frozenset(nested)


class _Keys(NamedTuple):
    """Keys of JSON lines: how many objects have each, those with lists of objects or lists in some
    object, and the number of objects."""

    n_with: Counter[str]
    nested: frozenset[str]
    n: int


def _keys(path: Path, encoding: str, lenient: bool = False) -> _Keys:
    check_is_file(path)
    found = path.stat()
    return _counted_keys(path, encoding, lenient, (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=16)  # commands ask several times, and a million documents take seconds
def _counted_keys(path: Path, encoding: str, lenient: bool, version: tuple[int, ...]) -> _Keys:
    """The keys of one version of a file."""
    n_with: Counter[str] = Counter()
    nested: set[str] = set()
    n = 0
    for _, record in json_lines(path, (), encoding, on_bad_line=_ignore if lenient else None):
        values = flat(record)
        n_with.update(values.keys())
        nested.update(key for key, value in values.items() if is_nested(value))
        n += 1
    return _Keys(n_with, frozenset(nested), n)


def blocks(
    path: Path | Frame,
    columns: Sequence[ColumnName],
    *,
    encoding: str = "utf-8",
    optional: Sequence[ColumnName] = (),
    on_bad_line: OnBadLine | None = None,
) -> Iterator[Block]:
    """Yield columns of a file in blocks of rows; values of CSV, TSV and JSON lines are text.

    Args:
        path: the table.
        columns: names, or numbers throughout for CSV and TSV without a header line.
        encoding: encoding of text files that are not UTF-8.
        optional: columns of texts: a JSON object may lack the key (then ``""``), and lists of texts
            (such as bullet points) are joined by a space.
        on_bad_line: called with the number of each line that has another number of values, or is
            no JSON object with texts and numbers, and with the reason. Such lines are left out,
            keys may be absent anywhere, and in TSV quotes are ordinary characters. None: such a
            line is an error.

    Raises:
        InputError: no such file, another suffix, a missing column, or a damaged file; the message
            does not quote the file's content.
    """
    check_encoding(encoding)
    names = list(dict.fromkeys(columns))
    if isinstance(path, Path) and (kind := table_format(path)) in (".csv", ".tsv"):
        batches = SeparatedValues(path, kind, encoding, on_bad_line).batches(names)
    elif not are_names(names):
        raise InputError(f"{path}: column {names[0]}: columns have numbers only in CSV and TSV")
    elif isinstance(path, Frame):
        check_columns(path, path.table.column_names, names)
        batches = numbered(path.table.select(names).to_batches())
    elif kind == ".jsonl":
        keys = table_columns(path, encoding, lenient=on_bad_line is not None)
        nested = any("." in key for key in keys)
        hint = "; keys of nested objects are named outer.inner" if nested else ""
        check_columns(path, keys, names, hint)
        batches = _batches(_json_rows(path, names, optional, encoding, on_bad_line), names)
    else:
        batches = numbered(parquet_batches(path, names))
    for line, batch in batches:
        if batch.num_rows:
            found = {name: as_strings(batch.column(str(name))) for name in names}
            yield Block(
                path, line, found | {n: joined_lists(found[n]) for n in names if n in optional}
            )


def _ignore(number: int, reason: str) -> None:
    """For lines that another reader tells of."""


def rows(
    path: Path | Frame, columns: Sequence[ColumnName], **options: Any
) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, values of the columns as text) of each row; missing values are ``""``.

    Lines are those of the file where the rows begin; in Parquet, rows counted from 1. (Blank lines
    in TSV shift them.) For parameters and errors see :func:`blocks`; other lists are an InputError,
    too.
    """
    for block in blocks(path, columns, **options):
        values = []
        for column in columns:
            distinct, index = texts(block, column)
            values.append([distinct[i] for i in index.tolist()])
        for number, row in zip(block.line.tolist(), zip(*values, strict=True), strict=True):
            yield number, list(row)


def named_rows(
    path: Path | Frame,
    given: Mapping[str, ColumnName] | None,
    usual: Mapping[str, Sequence[str]],
    option: str,
    encoding: str = "utf-8",
    optional: Sequence[str] = (),
) -> Iterator[tuple[int, dict[str, str]]] | None:
    """(line, values by key) of each row of a table; None for other files, and for a .tsv whose
    first line does not have the usual names.

    Args:
        path: the file.
        given: columns by key; None if the caller has no option for them.
        usual: for each key, usual names of its column.
        option: the parameter ``given``, for messages. optional: keys that objects may lack.

    Raises:
        InputError: a column is neither given nor has a usual name; see also :func:`rows`.
    """
    wanted = dict(given or {})
    unknown = sorted(set(wanted) - {*usual, "text"})
    if unknown:
        raise InputError(f"{option}: {', '.join(unknown)} unknown; use {', '.join(usual)}")
    if not is_table(path):
        if given:
            raise InputError(f"{option}: {path} is not a table and has no columns")
        return None
    names = table_columns(path, encoding)
    add_usual(wanted, names, usual)
    if lost := [key for key in usual if key not in wanted]:
        if isinstance(path, Path) and table_format(path) == ".tsv" and not given:
            return None
        advice = f"call them {', '.join(usual[key][0] for key in lost)}"
        if given is not None:
            advice = f"name {', '.join(f'{option}.{key}=...' for key in lost)}"
        elif len(lost) == 1:
            advice = f"call it {' or '.join(usual[lost[0]])}"
        raise InputError(
            f"{path}: the columns are {column_list(names)}; none has a usual name for "
            f"{' or '.join(lost)}: {advice}"
        )
    absent = [wanted[key] for key in optional]
    found = rows(path, [*wanted.values()], encoding=encoding, optional=absent)
    return ((number, dict(zip(wanted, values, strict=True))) for number, values in found)


def _batches(
    rows: Iterator[tuple[Any, ...]], names: Sequence[ColumnName]
) -> Iterator[tuple[NDArray[np.int64], pa.RecordBatch]]:
    """Rows (line, texts) in batches, with their lines."""
    while chunk := list(_some(rows)):
        line, *values = zip(*chunk, strict=True)
        arrays = [pa.array(of_column, pa.string()) for of_column in values]
        yield np.array(line, np.int64), pa.RecordBatch.from_arrays(arrays, names)


def _some(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The next rows that make a block."""
    n_characters = 0
    for row in islice(rows, _JSON_LINES):
        yield row
        n_characters += sum(map(len, row[1:]))
        if n_characters >= _JSON_CHARACTERS:
            return


def _json_rows(
    path: Path,
    names: Sequence[str],
    optional: Sequence[ColumnName],
    encoding: str,
    on_bad_line: OnBadLine | None,
) -> Iterator[tuple[Any, ...]]:
    """The line and the values of each object; for ``optional`` and others see :func:`blocks`."""
    needed = [name for name in names if name not in optional and on_bad_line is None]
    for number, nested in json_lines(path, (), encoding, on_bad_line=on_bad_line):
        record = flat(nested)
        check_keys(path, number, record, needed)
        try:
            values = [
                text_value(path, number, record, name, lists=name in optional) for name in names
            ]
        except InputError as error:
            if on_bad_line is None:
                raise
            on_bad_line(number, reason_of(error))
            continue
        yield number, *values


def texts(block: Block, column: ColumnName) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct values of a column as text (missing: ``""``), and int64 [n], the index of each
    row's value among them.

    Raises:
        InputError: the column holds lists, or anything else that is neither text nor numbers.
    """
    encoded = pc.fill_null(written(block, column), "").dictionary_encode()
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices).astype(np.int64)


def written(block: Block, column: ColumnName) -> pa.Array:
    """A column as text, null where a value is missing (or NaN). Whole numbers that are floats, as
    pandas makes them where a merge leaves rows without a value, are written as integers are.

    Raises:
        InputError: see :func:`texts`.
    """
    array = block.columns[column]
    try:
        texts = pc.cast(array, pa.string())
        if not pa.types.is_floating(array.type):
            return texts
        numbers = pc.cast(array, pa.float64())
        exact = pc.less(pc.abs(numbers), 2.0**53)
        whole = pc.and_(exact, pc.equal(numbers, pc.trunc(numbers)))
        integers = pc.cast(pc.if_else(whole, numbers, 0.0), pa.int64())
        texts = pc.if_else(whole, pc.cast(integers, pa.string()), texts)
        return pc.if_else(pc.is_nan(numbers), None, texts)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"{block.path}: column {column} holds {array.type}; text or numbers are expected"
        ) from None
