"""Parse columns of a click log: numbers, clicks, ids; and leave out rows that cannot be parsed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.names import listed
from ltr_features.parameters import check_choice
from ltr_features.sources.id_codes import refuse_empty
from ltr_features.sources.table_blocks import Block, ColumnName, blocks, texts
from ltr_features.text.records import OnBadLine, reason_of

_TRUE, _FALSE = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")
_PLAIN = {**dict.fromkeys(_TRUE, 1.0), **dict.fromkeys(_FALSE, 0.0)}
_SHOWN = 40  # characters of a value in messages
#: A larger share of bad rows means that something else is wrong.
_MOST_BAD = 0.05


class Kind(NamedTuple):
    """What the values of a column must be. ``parse`` gives a number, NaN for any other value, and
    ``other`` says what such a value is."""

    parse: Callable[[str], float]
    other: str


def whole(least: int) -> Kind:
    """Whole numbers from ``least``."""

    def parse(text: str) -> float:
        value = _whole(text)
        return value if value >= least else math.nan

    return Kind(parse, f"not a whole number >= {least}")


def _whole(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if value.is_integer() and abs(value) < 2**53 else math.nan


#: 0 or 1 (false, true), or numbers of clicks.
CLICKS = Kind(
    lambda text: _PLAIN[text] if text in _PLAIN else whole(0).parse(text),
    "neither 0 or 1, true or false, nor a number of clicks",
)
#: Ids and texts.
FILLED = Kind(lambda text: 0.0 if text.strip() else math.nan, "empty")


def numbers(block: Block, column: ColumnName, kind: Kind) -> NDArray[np.float64]:
    """float64 [n]: the values of a column as numbers.

    Raises:
        InputError: a value of another kind.
    """
    values, index = texts(block, column)
    parsed = np.array([kind.parse(value) for value in values], np.float64)
    bad = np.isnan(parsed)
    if bad.any():
        row = int(np.argmax(bad[index]))
        value = values[index[row]]
        shown = f"{value[:_SHOWN]}..." if len(value) > _SHOWN else value
        what = f"is {shown!r}, {kind.other}" if value.strip() else "is missing"
        raise InputError(f"{block.where(row)}: {column} {what}")
    return np.asarray(parsed[index])


def whole_numbers(block: Block, column: ColumnName, least: int) -> NDArray[np.int64]:
    """int64 [n]: a column of whole numbers.

    Raises:
        InputError: a value is not a whole number, or less than ``least``.
    """
    return numbers(block, column, whole(least)).astype(np.int64)


def hashes(block: Block, column: ColumnName) -> NDArray[np.uint64]:
    """uint64 [n]: hashes of texts, the same in every file and on every machine.

    Raises:
        InputError: an empty text.
    """
    values, index = texts(block, column)
    refuse_empty(block, column, values, index)
    hashed = pd.util.hash_array(np.array(values, dtype=object), categorize=False)
    return np.asarray(hashed)[index]


class BadRows:
    """Rows of a log that cannot be read: damaged lines, and values of another kind than their
    column's. With "raise" the readers of columns refuse the first; with "skip" they are left out
    and counted by reason.

    Attributes:
        skip: whether they are left out. what: what the rows are, for messages.

    Raises:
        InputError: ``rule`` is neither "raise" nor "skip".
    """

    def __init__(self, rule: str, what: str = "rows") -> None:
        check_choice("on_bad_row", rule, ("raise", "skip"))
        self.skip, self.what = rule == "skip", what
        self._n_good = 0
        self._n_bad: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._empty: list[str] = []

    def blocks(self, path: Path, kinds: Mapping[ColumnName, Kind]) -> Iterator[Block]:
        """Yield the columns of a file in blocks of rows, without bad rows if they are skipped."""
        n_rows, n_bad = 0, self._n_bad.total()
        for block in blocks(path, list(kinds), on_bad_line=self.damaged(path)):
            n_rows += len(block.line)
            if not self.skip:
                yield block
                continue
            good = np.ones(len(block.line), dtype=bool)
            for column, kind in kinds.items():
                good &= self._good(block, column, kind, good)
            if good.any():
                columns = {name: a.filter(pa.array(good)) for name, a in block.columns.items()}
                yield Block(path, block.line[good], columns)
            self._n_good += int(good.sum())
        if not n_rows and self._n_bad.total() == n_bad:
            self._empty.append(str(path))

    def damaged(self, path: Path) -> OnBadLine | None:
        """What counts the damaged lines of a file; None if the first is an error."""
        if not self.skip:
            return None
        return lambda line, reason: self._count(reason, 1, f"{path}, line {line}")

    @contextmanager
    def record(self, where: str) -> Iterator[None]:
        """Count a record as good, or leave it out if it is found bad (InputError)."""
        try:
            yield
            self._n_good += 1
        except InputError as error:
            if not self.skip:
                raise
            self._count(reason_of(error), 1, where)

    def leave_out(self, block: Block, bad: NDArray[np.bool_], reason: str) -> None:
        """Count good rows that turned out bad, bool [n]."""
        self._n_good -= int(bad.sum())
        self._count(reason, int(bad.sum()), block.where(int(np.argmax(bad))))

    def check(self) -> None:
        """Raise InputError if too large a share of the rows is bad."""
        n = self._n_bad.total()
        if n > _MOST_BAD * (n + self._n_good):
            found = "; ".join(f"{reason}: {told}" for reason, told in self._told().items())
            raise InputError(
                f"{n:,} of {n + self._n_good:,} {self.what} cannot be read, more than "
                f"{100 * _MOST_BAD:g} % ({found}): correct the log, or name other columns"
            )

    @property
    def facts(self) -> dict[str, Any]:
        """For the description: files without a row, and the number of bad rows by reason with the
        first of each."""
        empty = {"files without a row": listed(self._empty, 3)} if self._empty else {}
        return empty | ({f"bad {self.what}, left out": self._told()} if self._n_bad else {})

    def _told(self) -> dict[str, str]:
        return {why: f"{n:,}, the first in {self._first[why]}" for why, n in self._n_bad.items()}

    def _good(
        self, block: Block, column: ColumnName, kind: Kind, among: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """bool [n]: the rows whose value is of its kind; others ``among`` the rows are counted."""
        values, index = texts(block, column)
        bad = np.isnan([kind.parse(value) for value in values])
        empty = np.array([not value.strip() for value in values], dtype=bool)
        for which, what in ((bad & empty, "missing"), (bad & ~empty, kind.other)):
            rows = which[index] & among
            if rows.any():
                where = block.where(int(np.argmax(rows)))
                self._count(f"{column} is {what}", int(rows.sum()), where)
        return ~bad[index]

    def _count(self, reason: str, n: int, where: str) -> None:
        self._n_bad[reason] += n
        self._first.setdefault(reason, where)
