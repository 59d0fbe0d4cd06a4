"""Rules for reading rows of a click log: names of columns, positions, and what to leave out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from letor.compression import COMPRESSED, open_input
from letor.digests import file_digest
from letor.errors import InputError, reading
from ltr_base.names import listed
from ltr_features.clicks.log import MAX_POSITIONS, NORMALISED
from ltr_features.clicks.tables import BadRows, whole, whole_numbers
from ltr_features.clicks.times import time_of
from ltr_features.parameters import check_choice
from ltr_features.sources.arrow_tables import are_names, column_list
from ltr_features.sources.files import QUERY_TEXT_NAMES
from ltr_features.sources.input_files import Paths, files_of, suffixes
from ltr_features.sources.score_tables import DOCUMENT_NAMES, QUERY_IDS
from ltr_features.sources.table_blocks import Block, ColumnName, table_columns
from ltr_features.sources.usual_names import add_usual, columns_in_words
from ltr_features.text.query_texts import normalised

#: Usual names of columns, in lower case without punctuation; a time must be named explicitly.
_USUAL: dict[str, tuple[str, ...]] = {
    "query": ("query", *QUERY_TEXT_NAMES, *QUERY_IDS),
    "document": ("document", *DOCUMENT_NAMES),
    "position": ("position", "rank"),
    "clicked": ("clicked", "click", "clicks"),
    "session": ("session", "sessionid"),
    "time": (),
    "shown": ("shown", "impressions"),
}


@dataclass(frozen=True)
class LogRules:
    """Rules for filtering and normalising a log's rows; the description states their effects.

    Attributes:
        queries: "text": queries are texts, which are normalised (Unicode NFKC, case folded, spaces
            at the ends removed and spaces within merged); "id": ids, taken as they are.
        first_position: number of the first position in the log, 0 or 1; None for the smallest one
            that occurs, which must be 0 or 1 (positions are then read once more).
        depth: number of top positions to keep; None keeps all and refuses positions beyond 1,000.
        since, until: keep only pages with since <= time < until (ISO 8601, or numbers); the time of
            a page is that of its earliest row. Numbers are taken as seconds, milliseconds,
            microseconds or nanoseconds since 1970, whichever lies between 1990 and 2100, and can be
            compared with dates; the times of a log must have one unit. Other numbers can be
            compared with such numbers only.
        max_clicks: leave out pages with more clicked results (a robot that follows all links); only
            those within the depth are counted.
        max_pages: leave out sessions with more pages (a robot that searches all day). The files
            are then read twice.
        pages: keep distinct pages, which all models except ctr and pbm need.
        actions: one or several names of UBI events that are clicks.

    Raises:
        InputError: a value out of range.
    """

    queries: Literal["text", "id"] = "text"
    first_position: int | None = None
    depth: int | None = None
    since: str | float | None = None
    until: str | float | None = None
    max_clicks: int | None = None
    max_pages: int | None = None
    pages: bool = True
    actions: str | Sequence[str] = ("click", "item_click")

    @property
    def query_rule(self) -> Callable[[str], str] | None:
        """The function that normalises a query; None if queries are ids."""
        return normalised if self.queries == "text" else None

    @property
    def queries_in_words(self) -> str:
        """What a log's ``query_ids`` are, for its description."""
        return NORMALISED if self.queries == "text" else "ids"

    def __post_init__(self) -> None:
        given = [self.actions] if isinstance(self.actions, str) else list(self.actions)
        object.__setattr__(self, "actions", tuple(given))
        if not given or not all(isinstance(name, str) and name for name in given):
            raise InputError(f"actions must be names of events, got {self.actions!r}")
        check_choice("queries", self.queries, ("text", "id"))
        if self.first_position not in (None, 0, 1):
            raise InputError(f"first_position must be 0 or 1, got {self.first_position!r}")
        for name in ("depth", "max_clicks", "max_pages"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Integral) and int(value) >= 1):
                raise InputError(f"{name} must be a whole number of 1 or more, got {value!r}")
        if self.depth is not None and self.depth > MAX_POSITIONS:
            raise InputError(f"depth must be at most {MAX_POSITIONS}, got {self.depth}")
        for name in ("since", "until"):
            value = getattr(self, name)
            if value is not None and math.isnan(time_of(str(value)).number):
                raise InputError(f"{name} is neither a number nor a time (ISO 8601): {value!r}")
        ends = [time_of(str(v)).seconds for v in (self.since, self.until) if v is not None]
        if len(ends) == 2 and ends[0] >= ends[1]:
            raise InputError(
                f"since={self.since} is not before until={self.until}: no page is left"
            )


def log_files(paths: Paths) -> list[Path]:
    """The files of a log, see :func:`files_of`.

    Raises:
        InputError: no path is given, or a frame in its place, or two files have the same content,
            compressed or not; or as :func:`files_of`.
    """
    if hasattr(paths, "columns"):
        raise InputError(
            "click logs are read from files: save the frame, frame.to_parquet('log.parquet'), and "
            "name the file"
        )
    if not (files := files_of(paths)):
        raise InputError("no click log: name at least one file")
    if len(files) > 1:
        seen: dict[str, Path] = {}
        for path in files:
            with reading(path):
                first = seen.setdefault(content_digest(path), path)
                again = first is not path and _has_rows(path)
            if again:
                raise InputError(f"{path}: the same log as {first}, so clicks would count twice")
    return files


def content_digest(path: Path) -> str:
    """The SHA-256 of what a file holds, unpacked if it is compressed, as hexadecimal digits."""
    if path.suffix not in COMPRESSED:
        return file_digest(path)
    with open_input(path) as content:
        return hashlib.file_digest(cast(Any, content), "sha256").hexdigest()


def _has_rows(path: Path) -> bool:
    """Whether a file has more than the header that it should have by its name."""
    if ".parquet" in suffixes(path):
        return pq.read_metadata(path).num_rows > 0
    with open_input(path) as content:
        lines = [line for line in islice(content, 2) if line.strip()]
    return len(lines) > bool({".csv", ".tsv"}.intersection(suffixes(path)))


def unclicked_files(n_clicks: Mapping[Path, int]) -> dict[str, str]:
    """For the description, given the number of clicks of each file: those of some files seem to be
    missing."""
    files = [str(path) for path, n in n_clicks.items() if not n]
    return {"files without a click": listed(files, 3)} if 0 < len(files) < len(n_clicks) else {}


class LogColumns(NamedTuple):
    """The columns of a log. ``names``: the name of each column by key, ``""`` for none. ``facts``:
    for the description, columns found by names other than their keys, and those left out."""

    names: dict[str, ColumnName]
    facts: dict[str, str]


def log_columns(
    paths: Sequence[Path],
    columns: Mapping[str, ColumnName] | None,
    wanted: Sequence[str],
    *,
    lenient: bool = False,
) -> LogColumns:
    """The wanted columns of a log's files: those given, completed by those with usual names in the
    first file. ``lenient``: whether damaged lines are ignored.

    Raises:
        InputError: an unknown key in ``columns``, or a required column is missing in a file.
    """
    path = paths[0]
    names = dict(columns or {})
    unknown = sorted(set(names) - set(_USUAL))
    if unknown:
        raise InputError(f"columns: {', '.join(unknown)} unknown; use {', '.join(_USUAL)}")
    absent = [key for key, name in names.items() if not name and key not in ("session", "time")]
    if absent:
        raise InputError(f"columns: {', '.join(absent)} must have a name")
    time = names.pop("time", "")  # may be the same column as another key
    if not are_names([name for name in (*names.values(), time) if name]):  # numbers
        return LogColumns({**{key: key for key in wanted}, **names, "time": time}, {})
    present = table_columns(path, lenient=lenient)
    added = add_usual(names, present, {key: _USUAL[key] for key in wanted})
    if absent := [key for key in wanted if key not in names]:
        raise InputError(
            f"{path}: the columns are {column_list(present)}; none has a usual name for "
            f"{', '.join(absent)}: name it (clicks judge: --column {absent[0]}=..., elsewhere "
            f"columns.{absent[0]}=...), or if the file has no header line, give all columns by "
            "number, 1, 2, ..."
            + ("; 'session=' is for a log without sessions" if "session" in absent else "")
        )
    other = {key: name for key, name in added.items() if name != key}
    facts = {"columns, by their usual names": columns_in_words(other)} if other else {}
    if unused := [name for name in present if name not in (*names.values(), time)]:
        facts["columns left out"] = column_list(unused)
    for later in paths[1:]:
        present = table_columns(later, lenient=lenient)
        if lost := [key for key in wanted if names[key] and names[key] not in present]:
            raise InputError(
                f"{later}: the columns are {column_list(present)}; {names[lost[0]]!r}, the "
                f"{lost[0]} in the first file, {path}, is not one of them: rename it, as all files "
                "of a log need the same columns"
            )
    return LogColumns({**names, "time": time}, facts)


class FirstPosition:
    """The number of a log's first position: given, or the smallest that occurs."""

    def __init__(self, rules: LogRules) -> None:
        self._depth = rules.depth
        self._given = rules.first_position is not None
        self.first = rules.first_position or 0
        self._least: dict[Path, int] = {}  # by file with rows

    def seek(self, paths: Sequence[Path], column: ColumnName, bad: BadRows) -> None:
        """Find the smallest position in the files, unless the first position is given.

        Args:
            bad: what becomes of rows whose position cannot be read.

        Raises:
            InputError: the smallest position is neither 0 nor 1.
        """
        if self._given:
            return
        least, where = math.inf, ""
        for path in paths:
            for block in bad.blocks(path, {column: whole(0)}):
                position = whole_numbers(block, column, 0)
                row = int(position.argmin())
                lowest = int(position[row])
                self._least[path] = min(lowest, self._least.get(path, lowest))
                if lowest < least:
                    least, where = lowest, block.where(row)
        if least > 1 and where:
            raise InputError(
                f"{where}: the least position of the log is {least}; if it counts from 0 or 1, say "
                "so (first_position), else change its positions"
            )
        self.first = int(least) if where else 1

    def places(
        self, block: Block, column: ColumnName
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Positions from 0, int64 [n], and whether each row is within the depth, bool [n].

        Raises:
            InputError: a position is not a whole number, less than the first position, or beyond
                1,000 without a depth.
        """
        place = whole_numbers(block, column, self.first) - self.first
        kept = place < (MAX_POSITIONS if self._depth is None else self._depth)
        if self._depth is None and not kept.all():
            raise InputError(
                f"{block.where(int(np.argmin(kept)))}: position {int(place.max()) + self.first} "
                f"is beyond {MAX_POSITIONS}; give a depth to leave such rows out"
            )
        return place, kept

    @property
    def facts(self) -> dict[str, str]:
        """For the description: how positions count, and the files that may count in another way."""
        words = f"from {self.first} ({'given' if self._given else 'the least that occurs'})"
        others = [str(path) for path, least in self._least.items() if least > self.first]
        named = {f"files without a position {self.first}": listed(others, 3)} if others else {}
        return {"positions": words, **named}
