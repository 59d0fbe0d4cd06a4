"""Read CSV, TSV and Parquet with Arrow: names of columns, and batches of rows."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from letor.compression import open_for_arrow, text_lines
from letor.errors import InputError
from letor.files import check_is_file
from letor.parquet import check_parquet_size, plain_texts
from ltr_base.names import counted, listed
from ltr_features.text.records import OnBadLine, joined

#: Name of a column; or its number, from 1, in CSV or TSV without a header line.
ColumnName: TypeAlias = str | int
#: Arrow's message about a line with another number of columns.
_UNEVEN = re.compile(r"Expected \d+ columns, got \d+")
#: A value that is quoted as a whole.
_QUOTED_VALUE = '^"([^"]|"")*"$'
#: Up to the quote that closes a value; a doubled quote is a character of the value.
_TO_CLOSING_QUOTE = re.compile('(?:[^"]+|"")*+"')
_VALUE_BYTES = 32  # approximate size of a value in memory
_MOST_SHOWN = 50  # columns in messages
#: Rows of a batch of a Parquet file, and bytes after which it ends: documents may be long.
_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 1 << 24
_SHOWN = 40  # characters of a column's name in messages: without a header line it is a value


@dataclass(frozen=True)
class SeparatedValues:
    """A CSV or TSV file.

    If all lines of a TSV file have the same number of columns, quotes are ordinary characters
    except around a whole value, so that an inch mark does not swallow the rows up to the next one.
    Otherwise quotes may enclose separators and line ends, too; one that swallows rows is refused.

    Attributes:
        path: the file, perhaps compressed.
        suffix: ".csv" or ".tsv".
        encoding: encoding of the text if it is not UTF-8.
        on_bad_line: called with the number of each line that has another number of columns, which
            is left out then, and the reason; quotes in TSV are ordinary characters. None: such a
            line is an error.
    """

    path: Path
    suffix: str
    encoding: str = "utf-8"
    on_bad_line: OnBadLine | None = None

    @cached_property
    def separator(self) -> str:
        """The separator of values: a tab in TSV; in CSV a comma, or a semicolon or tab if the first
        line has one and no comma.

        Raises:
            InputError: see :attr:`names`.
        """
        if self.suffix == ".tsv":
            return "\t"
        return (*self._separators, ",")[0]

    @cached_property
    def _separators(self) -> list[str]:
        """Those that the first line has outside quotes: commas before semicolons and tabs."""
        _, first = next(text_lines(self.path, self.encoding), (0, ""))
        outside = re.sub('"[^"]*"', "", first)
        return [mark for mark in ",;\t" if mark in outside]

    @cached_property
    def names(self) -> list[str]:
        """The values of the first line.

        Raises:
            InputError: no such file, a damaged file, or bytes that are not in the encoding.
        """
        names = pa.array(self._written_names, pa.string())
        return (_unquoted(names) if self._is_plain else names).to_pylist()

    def batches(
        self, columns: Sequence[ColumnName]
    ) -> Iterator[tuple[NDArray[np.int64], pa.RecordBatch]]:
        """The lines of rows, int64 [n], and columns as text, in the given order. If all columns are
        numbers, the first line is a row.

        Raises:
            InputError: see :attr:`names`; a missing column; or a quote that is never closed, or
                closed in a later line where no value ends. The message quotes nothing of the rows.
        """
        if are_names(columns):
            hint = "; if the file has no header line, give numbers, 1, 2, ..., for all"
            check_columns(self.path, self.names, columns, hint)
            wanted = [self._written_names[self.names.index(column)] for column in columns]
        else:
            check_columns(self.path, range(1, len(self.names) + 1), columns)
            wanted = [f"f{int(column) - 1}" for column in columns]  # Arrow's names
        lines, left_out = self._lines_without_row(), list[int]()
        lines -= np.arange(len(lines))
        # Arrow numbers the rows that it leaves out only without threads.
        read = pa.csv.ReadOptions(
            autogenerate_column_names=not are_names(columns), use_threads=self.on_bad_line is None
        )
        # As text, ids such as 007 stay as they are written.
        types = dict.fromkeys(wanted, pa.string())

        def skip(row: pa.csv.InvalidRow) -> str:
            if self.on_bad_line is not None:
                left_out.append(row.number - len(left_out))
                line = int(_counting(np.array([row.number]), lines)[0])
                self.on_bad_line(line, "it has another number of values than the first line")
            return "skip"

        opened = self._reader(read, types, quoted=not self._is_plain, skip=skip)
        with self._named_line(), opened as reader:
            for row, batch in numbered(reader, 2 if are_names(columns) else 1):
                line = _counting(_counting(row, np.array(left_out, np.int64)), lines)
                arrays = [batch.column(name) for name in wanted]
                if self._is_plain:
                    arrays = [_unquoted(array) for array in arrays]
                yield line, pa.RecordBatch.from_arrays(arrays, names=list(map(str, columns)))

    @cached_property
    def _written_names(self) -> list[str]:
        read, quoted = pa.csv.ReadOptions(), not self._is_plain
        with self._named_line(), self._reader(read, {}, quoted=quoted) as reader:
            return list(reader.schema.names)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether the file is tab-separated and all lines have the same number of columns."""
        if self.separator != "\t" or self.on_bad_line:
            return self.separator == "\t"
        read = pa.csv.ReadOptions(autogenerate_column_names=True)
        try:
            with self._reader(read, {"f0": pa.binary()}, quoted=False, only=["f0"]) as reader:
                for _ in reader:
                    pass
        except InputError:
            return False
        return True

    def _lines_without_row(self) -> NDArray[np.int64]:
        """int64: numbers of the lines where no row begins: blank ones, and those that go on with a
        quoted value. Those of TSV whose quotes are ordinary characters are not looked for.

        Raises:
            InputError: a quote encloses line ends by mistake: Arrow takes everything up to the next
                quote, or to the end of the file, for one value.
        """
        found = array("q")
        opened = 0  # the line of the open quote; 0 if none is open
        for number, line in () if self._is_plain else text_lines(self.path, self.encoding):
            if opened or not line:
                found.append(number)
            at = 0 if '"' in line else -1  # start of the next value, or of the rest of an open one
            while at >= 0:
                if opened or line.startswith('"', at):
                    closing = _TO_CLOSING_QUOTE.match(line, at if opened else at + 1)
                    if closing is None:
                        opened = opened or number
                        break
                    at = closing.end()
                    if opened and line[at:].rstrip("\r") and line[at] != self.separator:
                        self._refuse_quote(opened, f"the next one, in line {number}, ends no value")
                    opened = 0
                at = line.find(self.separator, at) + 1 or -1
        if opened:
            self._refuse_quote(opened, "no other one closes it")
        return np.array(found, np.int64)

    def _refuse_quote(self, opened: int, why: str) -> None:
        raise InputError(
            f'{self.path}, line {opened}: a value begins with a quote ("), and {why}: the lines in '
            "between would be lost in it; write a quote that is part of a text twice, and one more "
            "before and after the whole value"
        )

    @contextmanager
    def _named_line(self) -> Iterator[None]:
        """Name the line with another number of columns than the first, which Arrow does not."""
        try:
            yield
        except _UnevenError:
            self._lines_without_row()  # a quote that swallows lines leaves them uneven, too
            lines = (line.rstrip("\r") for _, line in text_lines(self.path, self.encoding))
            values = csv.reader(lines, delimiter=self.separator)
            mark = "tab" if self.separator == "\t" else repr(self.separator)
            what = f"{self.path}: lines have different numbers of values, with a {mark} between two"
            advice = "put a value that has one in it in quotes"
            with suppress(csv.Error):  # a very long value
                expected = len(next(values))
                found = next((len(line) for line in values if len(line) not in (0, expected)), 0)
                if found:
                    what = (
                        f"{self.path}, line {values.line_num}: {counted(found, 'value')}, the "
                        f"first line has {expected}, with a {mark} between two"
                    )
                if 0 < found < expected:
                    advice = "complete the line if it is cut off"
            advice += "; remove the first line if it is a title"
            if self.suffix == ".csv" and (others := self._separators[1:]):
                advice += (
                    f"; if {others[0]!r} is to be between values, put names in the first line that "
                    f"have a {mark} in quotes"
                )
            raise InputError(f"{what}; {advice}") from None

    @contextmanager
    def _reader(
        self,
        read: pa.csv.ReadOptions,
        types: Mapping[str, pa.DataType],
        *,
        quoted: bool,
        only: Sequence[str] = (),
        skip: Callable[[pa.csv.InvalidRow], str] = lambda row: "skip",
    ) -> Iterator[pa.csv.CSVStreamingReader]:
        convert = pa.csv.ConvertOptions(
            column_types=types, include_columns=list(only), strings_can_be_null=False
        )

        parse = pa.csv.ParseOptions(
            delimiter=self.separator,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
            invalid_row_handler=skip if self.on_bad_line else None,
        )
        with (
            arrow_errors(self.path, self.encoding),
            open_for_arrow(self.path, self.encoding) as stream,
            pa.csv.open_csv(
                stream, read_options=read, parse_options=parse, convert_options=convert
            ) as reader,
        ):
            yield reader


def numbered(
    batches: Iterable[pa.RecordBatch], first: int = 1
) -> Iterator[tuple[NDArray[np.int64], pa.RecordBatch]]:
    """Batches with the numbers of their rows, int64 [n], counted from ``first``."""
    for batch in batches:
        yield np.arange(first, first + batch.num_rows, dtype=np.int64), batch
        first += batch.num_rows


def _counting(numbers: NDArray[np.int64], skipped: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [n]: numbers that were counted without others, counted with them; ``skipped``: of each
    of these, ascending, the number less those of them before it."""
    return numbers + np.searchsorted(skipped, numbers, side="right")


def parquet_schema(path: Path) -> pa.Schema:
    """The columns of a Parquet file, with their types.

    Raises:
        InputError: no such file, or a damaged one.
    """
    check_is_file(path)
    with arrow_errors(path):
        return pa.parquet.read_schema(path)


def parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Batches of rows of some columns of a Parquet file.

    Raises:
        InputError: see :func:`parquet_schema`; a missing column, or more than fits in memory.
    """
    check_is_file(path)
    with arrow_errors(path):
        metadata = pa.parquet.read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        check_columns(path, schema.names, columns)
        check_parquet_size(path, metadata, _VALUE_BYTES)
        # Dictionaries, as one long text may be the value of many rows.
        texts = [f.name for f in schema if f.type in (pa.string(), pa.large_string())]
        with pa.parquet.ParquetFile(path, read_dictionary=texts) as file:
            n_bytes = sum(metadata.row_group(g).total_byte_size for g in range(file.num_row_groups))
            n_rows = max(1, _BATCH_BYTES * metadata.num_rows // max(1, n_bytes))
            for batch in file.iter_batches(min(n_rows, _BATCH_ROWS), columns=list(columns)):
                arrays = [plain_texts(path, array) for array in batch.columns]
                yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def as_strings(values: pa.Array) -> pa.Array:
    """Texts of Arrow's other types, as polars writes, as strings; other values as they are."""
    is_other = pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type)
    return pc.cast(values, pa.string()) if is_other else values


def is_number(value: pa.Scalar) -> bool:
    """Whether Arrow reads a text as a number (``1_000`` is none)."""
    try:
        value.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def is_plain_list(kind: pa.DataType) -> bool:
    """Whether values are lists of texts or numbers."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list and not pa.types.is_nested(kind.value_type)


def joined_lists(values: pa.Array) -> pa.Array:
    """Lists of texts or numbers as texts; other values as they are."""
    if not is_plain_list(values.type):
        return values
    return pa.array([None if v is None else joined(v) for v in values.to_pylist()], pa.string())


def check_columns(
    table: Any, found: Sequence[ColumnName], wanted: Sequence[ColumnName], hint: str = ""
) -> None:
    """Raise InputError if a table lacks a wanted column, or has two columns of that name."""
    absent = ", ".join(str(column) for column in wanted if column not in found)
    if absent:
        raise InputError(f"{table}: no column {absent}; it has {column_list(found)}{hint}")
    twice = [column for column in wanted if list(found).count(column) > 1]
    if twice:
        raise InputError(f"{table}: two columns are called {twice[0]}; rename one of them")


def are_names(columns: Sequence[ColumnName]) -> TypeGuard[Sequence[str]]:
    """Whether columns are given by name, and not by number for files without a header line."""
    return not columns or any(isinstance(column, str) for column in columns)


def column_list(names: Sequence[ColumnName]) -> str:
    """Names for a message, with long ones, and long lists, cut."""
    cut = (f"{n[:_SHOWN]}..." if isinstance(n, str) and len(n) > _SHOWN else n for n in names)
    return listed([*map(repr, cut)], _MOST_SHOWN)


class _UnevenError(InputError):
    """A line has another number of columns than the first."""


@contextmanager
def arrow_errors(path: Path, encoding: str | None = None) -> Iterator[None]:
    """Raise Arrow's errors as InputError; messages of uneven lines, which Arrow quotes, are dropped
    because a line may be a user's query."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged files raise anything
        if encoding is not None and "UTF8" in str(error):
            for _ in text_lines(path, encoding):  # raises an error that names the line
                pass
        is_invalid = isinstance(error, pa.ArrowInvalid)
        if is_invalid and _UNEVEN.search(str(error)):
            raise _UnevenError(path) from None
        reason = str(error) if is_invalid else type(error).__name__
        raise InputError(f"{path}: cannot be read as a table: {reason}") from None


def _unquoted(values: pa.Array) -> pa.Array:
    """The values without the quotes around them, and with doubled quotes inside made single."""
    quoted = pc.match_substring_regex(values, _QUOTED_VALUE)
    if not pc.any(quoted).as_py():
        return values
    inner = pc.replace_substring(pc.utf8_slice_codeunits(values, 1, -1), '""', '"')
    return pc.if_else(quoted, inner, values)
