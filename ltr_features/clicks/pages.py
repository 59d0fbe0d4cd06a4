"""Build result pages from rows of shown results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError, reading
from ltr_base.names import listed
from ltr_features.clicks.log import BEGUN_ANEW, ClickLog, LogBuilder, pair_keys
from ltr_features.clicks.rules import FirstPosition, LogColumns, LogRules, unclicked_files
from ltr_features.clicks.tables import CLICKS, FILLED, BadRows, Kind, hashes, numbers, whole
from ltr_features.clicks.times import TIMES, LogTimes
from ltr_features.sources.id_codes import Codes
from ltr_features.sources.table_blocks import Block, ColumnName
from ltr_features.text.records import place

#: Maximum number of rows of one session and query, including duplicates.
_MOST_ROWS = 1_000_000
#: Seconds after which the same results are of another page, and no longer reloaded.
_PAUSE = 1800.0

#: A larger share of pages that go on with one of an earlier file means that rows are mixed.
_MOST_ON = 0.05
#: A row of the log, with query, document and session as numbers.
_ROW = np.dtype(
    [("line", np.int64), ("query", np.int64), ("document", np.int64), ("position", np.int64),
     ("clicks", np.int64), ("session", np.uint64), ("time", np.float64)]
)  # fmt: skip
_Rows: TypeAlias = NDArray[Any]


def _starts(rows: _Rows) -> NDArray[np.int64]:
    """Rows at which a run of rows of the same session and query begins."""
    run = rows[["session", "query"]]
    return np.flatnonzero(np.concatenate([[True], run[1:] != run[:-1]]))


def _page_starts(rows: _Rows, *, timed: bool) -> NDArray[np.int64]:
    """Rows at which a page begins: those of :func:`_starts`, and those whose position falls back or
    repeats within a run, if two documents of the run have the same position, or after a pause
    (``timed``: whether times are in seconds)."""
    starts = _starts(rows)
    run = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    position, document = rows["position"], rows["document"]
    order = np.lexsort((document, position, run))
    by_place = np.stack([run, position, document])[:, order]
    same_run, same_position, same_document = np.diff(by_place) == 0
    several = np.zeros(len(starts), dtype=bool)  # different pages
    several[run[order][1:][same_run & same_position & ~same_document]] = True
    duplicate = (np.diff(position) == 0) & (np.diff(document) == 0)
    other = several[run[1:]] & ~duplicate
    if timed:
        other |= np.abs(np.diff(rows["time"])) > _PAUSE
    begins = (np.diff(run) != 0) | (other & (np.diff(position) <= 0))
    return np.flatnonzero(np.concatenate([[True], begins]))


def _have_other_documents(rows: _Rows, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool [pages]: whether a page has none of the documents of the page before."""
    page = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
    shown = pair_keys(page, rows["document"])
    return ~np.logical_or.reduceat(np.isin(pair_keys(page - 1, rows["document"]), shown), starts)


@dataclass
class RowReader:
    """Reads rows of shown results into a log; see ``read_click_rows``."""

    paths: list[Path]
    columns: LogColumns
    rules: LogRules
    on_bad_row: str = "raise"
    counts: dict[str, int] = field(default_factory=dict)

    def read(self) -> ClickLog:
        paged = bool(self.columns.names["session"] or self.columns.names["time"])
        self._times = LogTimes(self.rules.since, self.rules.until)
        self._check(paged)
        self._bad = BadRows(self.on_bad_row)
        first = FirstPosition(self.rules)
        robots = self._look_ahead(first)
        self._query, self._document = Codes(self.rules.query_rule), Codes()
        builder = LogBuilder(pages=self.rules.pages and paged)
        mixed, clicked = _MixedPages(), Counter[Path]()
        for path, rows in self._runs(first, paged):
            clicked[path] += int(rows["clicks"].sum())
            if paged:
                mixed.see(path, rows)
            self._add(rows, robots, builder)
        self.counts |= mixed.counts()
        self._bad.check()
        description = {
            "source": "rows of shown results",
            "files": len(self.paths),
            **self.columns.facts,
            **self.counts,
            **self._bad.facts,
            **unclicked_files(clicked),
            **first.facts,
            **self._times.facts,
            "queries": self.rules.queries_in_words,
        }
        with reading(listed([str(path) for path in self.paths], 3)):
            return builder.finish(
                list(self._query.number), list(self._document.number), description
            )

    def _check(self, paged: bool) -> None:
        for name in ("max_clicks", "max_pages"):
            if getattr(self.rules, name) is not None and not paged:
                raise InputError(f"{name} needs pages: name the column of the session or the time")
        if self.rules.max_pages is not None and not self.columns.names["session"]:
            raise InputError("max_pages needs sessions: name their column")
        if self._times.matter and not self.columns.names["time"]:
            raise InputError(
                "since and until need times: name their column (clicks commands: --column "
                "time=..., elsewhere columns.time)"
            )

    def _look_ahead(self, first: FirstPosition) -> NDArray[np.uint64]:
        """Determine the first position, and return the sessions with too many pages."""
        limit = self.rules.max_pages
        first.seek(self.paths, self.columns.names["position"], BadRows(self.on_bad_row))
        if limit is None:
            return np.zeros(0, np.uint64)
        self._query, self._document = Codes(self.rules.query_rule), Codes()
        sessions = [
            rows["session"][_page_starts(rows, timed=self._times.real)]
            for _, rows in self._runs(first, True)
        ]
        every = np.concatenate([np.zeros(0, np.uint64), *sessions])
        session, times = np.unique(every, return_counts=True)
        self.counts.clear()
        self._bad = BadRows(self.on_bad_row)
        return session[times > limit]

    def _runs(self, first: FirstPosition, paged: bool) -> Iterator[tuple[Path, _Rows]]:
        """Yield whole runs, several at a time, with their file."""
        for path in self.paths:
            rest = np.zeros(0, _ROW)
            for block in self._bad.blocks(path, self._kinds(first)):
                rows = np.concatenate([rest, self._rows(block, first)])
                last = int(_starts(rows)[-1]) if paged and len(rows) else len(rows)
                whole, rest = rows[:last], rows[last:]
                if len(rest) > _MOST_ROWS:
                    raise InputError(
                        f"{path}, line {rest['line'][0]}: a page of more than {_MOST_ROWS:,} rows; "
                        "is the column of the session the right one?"
                    )
                if len(whole):
                    yield path, whole
            if len(rest):
                yield path, rest

    def _kinds(self, first: FirstPosition) -> dict[ColumnName, Kind]:
        """The columns, and what their values must be."""
        kinds = {
            "query": FILLED,
            "document": FILLED,
            "position": whole(first.first),
            "clicked": CLICKS,
            "session": FILLED,
            "time": TIMES,
        }
        names = self.columns.names
        # A time may be the same column as another key, and has the narrower values.
        return {names[key]: kind for key, kind in kinds.items() if names[key]}

    def _rows(self, block: Block, first: FirstPosition) -> _Rows:
        names = self.columns.names
        position, kept = first.places(block, names["position"])
        clicked = numbers(block, names["clicked"], CLICKS).astype(np.int64)
        query = self._query.of(block, names["query"])
        document = self._document.of(block, names["document"])
        time = self._times.of(block, names["time"]) if names["time"] else np.zeros(len(query))
        if names["session"]:
            session = hashes(block, names["session"])
        elif names["time"]:
            session = (time + 0.0).view(np.uint64)
        else:
            session = np.arange(len(query), dtype=np.uint64)
        self._count("rows", len(query))
        self._count("rows below the depth, left out", int((~kept).sum()))
        columns = (block.line, query, document, position, clicked, session, time)
        return np.rec.fromarrays(columns, dtype=_ROW).view(np.ndarray)[kept]

    def _add(self, rows: _Rows, robots: NDArray[np.uint64], builder: LogBuilder) -> None:
        if not (self.columns.names["session"] or self.columns.names["time"]):
            builder.add_counts(
                rows["query"], rows["document"], rows["position"], np.ones(len(rows), np.int64),
                rows["clicks"] > 0,
            )  # fmt: skip
            return
        starts = _page_starts(rows, timed=self._times.real)
        again = ~np.isin(starts, _starts(rows))
        self._count("pages of the session and query of the page before", int(again.sum()))
        chosen = self._times.chosen(np.minimum.reduceat(rows["time"], starts))
        self._count("pages of another time, left out", int((~chosen).sum()))
        human = ~np.isin(rows["session"][starts], robots)
        self._count("pages of sessions with too many pages, left out", int((chosen & ~human).sum()))
        chosen &= human
        anew = again & chosen & _have_other_documents(rows, starts)
        self._count(BEGUN_ANEW, int(anew.sum()))
        page = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(rows))))
        rows, page = rows[chosen[page]], page[chosen[page]]
        rows, page = self._without_duplicates(rows, page)
        if self.rules.max_clicks is not None:
            n_clicks = np.bincount(page, weights=rows["clicks"] > 0, minlength=len(starts))
            calm = n_clicks <= self.rules.max_clicks
            self._count("pages with too many clicks, left out", int((chosen & ~calm).sum()))
            rows, page = rows[calm[page]], page[calm[page]]
        self._count("rows with several clicks, counted as one", int((rows["clicks"] > 1).sum()))
        begins = np.flatnonzero(np.diff(page, prepend=-1))
        self._count("pages", len(begins))
        n_deeper = int((rows["position"][begins] > 0).sum())
        self._count("pages that do not begin at the first position", n_deeper)
        builder.add_pages(
            rows["query"], rows["document"], rows["position"], rows["clicks"] > 0,
            np.append(begins, len(rows)),
        )  # fmt: skip

    def _without_duplicates(
        self, rows: _Rows, page: NDArray[np.int64]
    ) -> tuple[_Rows, NDArray[np.int64]]:
        """The rows ordered by page and position, without duplicates of a result on a page."""
        order = np.lexsort((rows["document"], rows["position"], page))
        rows, page = rows[order], page[order]
        again = (page[1:] == page[:-1]) & (rows["position"][1:] == rows["position"][:-1])
        starts = np.flatnonzero(np.concatenate([[True], ~again])[: len(page)])
        if len(starts) < len(page):
            self._count("duplicate rows of a page, counted once", len(page) - len(starts))
            n_clicks = np.maximum.reduceat(rows["clicks"], starts)
            rows, page = rows[starts], page[starts]
            rows["clicks"] = n_clicks
        return rows, page

    def _count(self, what: str, n: int) -> None:
        if n or what in ("rows", "pages"):
            self.counts[what] = self.counts.get(what, 0) + n


class _MixedPages:
    """Detects runs that continue a page after rows of another one, and files that repeat another.

    It keeps 8 bytes per page, a hash of session and query, in sorted arrays of doubling sizes,
    which keep look-ups cheap.
    """

    def __init__(self) -> None:
        self._known: list[NDArray[np.uint64]] = []  # those of the file that is being read
        self._earlier: list[NDArray[np.uint64]] = []
        self._n_pages: Counter[Path] = Counter()
        self._n_again: Counter[Path] = Counter()
        self._n_on: Counter[Path] = Counter()
        self._first_on = ""

    def counts(self) -> dict[str, int]:
        """Numbers, as far as there are any, of pages whose session and query an earlier file has,
        too, and of those among them that go on there, as at midnight.

        Raises:
            InputError: too many pages go on, or a file has none but the former.
        """
        n_on = self._n_on.total()
        if n_on > _MOST_ON * self._n_pages.total():
            raise _mixed(self._first_on)
        for path, n in self._n_again.items():
            if n == self._n_pages[path] > self._n_on[path]:
                raise InputError(
                    f"{path}: an earlier file has all its {n:,} pages, by session and query; is it "
                    "the same log? Name it once"
                )
        found = {
            "pages with the session and query of one in an earlier file": self._n_again.total(),
            "pages that go on with one of an earlier file, as at midnight": n_on,
        }
        return {what: n for what, n in found.items() if n}

    def see(self, path: Path, rows: _Rows) -> None:
        """Check and remember the runs of a file.

        Raises:
            InputError: a run continues an earlier page of the file, or has late clicks on one of
                another file.
        """
        if path not in self._n_pages:
            for some in self._known:
                _remember(self._earlier, some)
            self._known = []
        starts = _starts(rows)
        with np.errstate(over="ignore"):
            query = rows["query"][starts].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            session: NDArray[np.uint64] = rows["session"][starts]
            key = session ^ (query + (query >> np.uint64(29)))
        first = np.minimum.reduceat(rows["position"], starts)
        repeated = pd.Series(key).duplicated().to_numpy() | _knows(self._known, key)
        again = _knows(self._earlier, key)
        late = again & (np.minimum.reduceat(rows["clicks"], starts) > 0)  # clicks alone
        broken = (repeated | late) & (first > 0)
        if broken.any():
            raise _mixed(place(path, rows["line"][starts[np.argmax(broken)]]))
        on = again & (first > 0)
        if on.any():
            self._first_on = self._first_on or place(path, rows["line"][starts[np.argmax(on)]])
        self._n_pages[path] += len(key)
        self._n_again[path] += int(again.sum())
        self._n_on[path] += int(on.sum())
        _remember(self._known, np.unique(key))


def _mixed(where: str) -> InputError:
    return InputError(
        f"{where}: goes on with a page that ended before; rows of a page must be adjacent, in one "
        "file: sort the log by session, then query, time (if it has one) and position (clicked "
        "results alone are no pages: read such a log as ratings, by index table)"
    )


def _remember(known: list[NDArray[np.uint64]], keys: NDArray[np.uint64]) -> None:
    """Add a sorted array to some, which are merged so that each has twice the size of the next."""
    known.append(keys)
    while len(known) > 1 and len(known[-1]) * 2 > len(known[-2]):
        known[-2:] = [np.union1d(*known[-2:])]


def _knows(known: list[NDArray[np.uint64]], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """bool [n]: whether one of the sorted arrays has each key."""
    found = np.zeros(len(keys), dtype=bool)
    for some in known:
        at = np.minimum(np.searchsorted(some, keys), len(some) - 1)
        found |= some[at] == keys
    return found
