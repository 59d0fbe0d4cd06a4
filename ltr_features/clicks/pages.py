"""Result pages from rows of shown results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError, reading
from ltr_base.names import listed
from ltr_features.clicks.log import ClickLog, LogBuilder
from ltr_features.clicks.rules import FirstPosition, LogColumns, LogRules
from ltr_features.clicks.tables import clicks, hashes, seconds
from ltr_features.sources.table_blocks import Block, Codes, ColumnName, blocks

#: Rows that one session and query may have, duplicates included.
_MOST_ROWS = 1_000_000


@dataclass
class _Seen:
    """Rows of one or more runs, which may go on in the next block."""

    block: Block
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    position: NDArray[np.int64]
    clicks: NDArray[np.int64]
    session: NDArray[np.uint64]
    time: NDArray[np.float64]

    _ARRAYS = ("query", "document", "position", "clicks", "session", "time")

    def __len__(self) -> int:
        return len(self.query)

    def take(self, rows: slice | NDArray[Any]) -> _Seen:
        block = replace(self.block, line=self.block.line[rows], columns={})
        return _Seen(block, *(getattr(self, name)[rows] for name in self._ARRAYS))

    def then(self, other: _Seen) -> _Seen:
        """These rows and then those."""
        line = np.concatenate([self.block.line, other.block.line])
        return _Seen(
            replace(self.block, line=line, columns={}),
            *(np.concatenate([getattr(x, n) for x in (self, other)]) for n in self._ARRAYS),
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Rows at which a run of one session and query begins."""
        same = (self.session[1:] == self.session[:-1]) & (self.query[1:] == self.query[:-1])
        return np.flatnonzero(np.concatenate([[True], ~same]))


@dataclass
class RowReader:
    """Reads rows of shown results into a log; see ``read_click_rows``."""

    paths: list[Path]
    columns: LogColumns
    rules: LogRules
    counts: dict[str, int] = field(default_factory=dict)

    def read(self) -> ClickLog:
        paged = bool(self.columns.names["session"] or self.columns.names["time"])
        self._check(paged)
        first = FirstPosition(self.rules)
        robots = self._look_ahead(first)
        self._query, self._document = Codes(self.rules.query_rule), Codes()
        builder = LogBuilder(pages=self.rules.pages and paged)
        mixed = _MixedPages()
        for seen in self._runs(first, paged):
            if paged:
                mixed.see(seen)
            self._add(seen, robots, builder)
        description = {
            "source": "rows of shown results",
            "files": len(self.paths),
            **self.columns.told,
            **self.counts,
            "positions": first.said,
            "queries": "normalised texts" if self.rules.queries == "text" else "ids",
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
        if self.rules.window != (-math.inf, math.inf) and not self.columns.names["time"]:
            raise InputError("since and until need times: name their column (columns.time)")

    def _look_ahead(self, first: FirstPosition) -> NDArray[np.uint64]:
        """Settle the first position; the sessions that have too many pages."""
        limit = self.rules.max_pages
        first.seek(self.paths, self.columns.names["position"])
        if limit is None:
            return np.zeros(0, np.uint64)
        self._query, self._document = Codes(self.rules.query_rule), Codes()
        sessions = [seen.session[seen.starts] for seen in self._runs(first, True)]
        every = np.concatenate([np.zeros(0, np.uint64), *sessions])
        session, times = np.unique(every, return_counts=True)
        self.counts.clear()
        return session[times > limit]

    def _runs(self, first: FirstPosition, paged: bool) -> Iterator[_Seen]:
        """Whole runs, several at a time."""
        for path in self.paths:
            rest: _Seen | None = None
            for block in blocks(path, self._wanted):
                seen = self._seen(block, first)
                if not paged:
                    yield seen
                    continue
                seen = seen if rest is None else rest.then(seen)
                last = int(seen.starts[-1]) if len(seen) else 0
                whole, rest = seen.take(slice(last)), seen.take(slice(last, None))
                if len(rest) > _MOST_ROWS:
                    raise InputError(
                        f"{rest.block.where(0)}: a page of more than {_MOST_ROWS:,} rows; is the "
                        "column of the session the right one?"
                    )
                if len(whole):
                    yield whole
            if rest is not None and len(rest):
                yield rest

    @property
    def _wanted(self) -> list[ColumnName]:
        keys = ("query", "document", "position", "clicked", "session", "time")
        return [self.columns.names[key] for key in keys if self.columns.names[key]]

    def _seen(self, block: Block, first: FirstPosition) -> _Seen:
        names = self.columns.names
        position, kept = first.places(block, names["position"])
        clicked = clicks(block, names["clicked"])
        query = self._query.of(block, names["query"])
        document = self._document.of(block, names["document"])
        time = seconds(block, names["time"]) if names["time"] else np.zeros(len(query))
        if names["session"]:
            session = hashes(block, names["session"])
        elif names["time"]:
            session = (time + 0.0).view(np.uint64)
        else:
            session = np.arange(len(query), dtype=np.uint64)
        self._count("rows", len(query))
        self._count("rows below the depth, left out", int((~kept).sum()))
        return _Seen(block, query, document, position, clicked, session, time).take(kept)

    def _add(self, seen: _Seen, robots: NDArray[np.uint64], builder: LogBuilder) -> None:
        if not (self.columns.names["session"] or self.columns.names["time"]):
            builder.add_counts(
                seen.query, seen.document, seen.position, np.ones(len(seen), np.int64),
                seen.clicks > 0,
            )  # fmt: skip
            return
        starts = seen.starts
        since, until = self.rules.window
        earliest = np.minimum.reduceat(seen.time, starts)
        chosen = (earliest >= since) & (earliest < until)
        self._count("pages of another time, left out", int((~chosen).sum()))
        human = ~np.isin(seen.session[starts], robots)
        self._count("pages of sessions with too many pages, left out", int((chosen & ~human).sum()))
        chosen &= human
        page = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(seen))))
        seen, page = seen.take(chosen[page]), page[chosen[page]]
        seen, page = self._without_duplicates(seen, page)
        if self.rules.max_clicks is not None:
            n_clicks = np.bincount(page, weights=seen.clicks > 0, minlength=len(starts))
            calm = n_clicks <= self.rules.max_clicks
            self._count("pages with too many clicks, left out", int((chosen & ~calm).sum()))
            seen, page = seen.take(calm[page]), page[calm[page]]
        self._count("rows with several clicks, counted as one", int((seen.clicks > 1).sum()))
        begins = np.flatnonzero(np.diff(page, prepend=-1))
        self._count("pages", len(begins))
        self._count(
            "pages that do not begin at the first position", int((seen.position[begins] > 0).sum())
        )
        builder.add_pages(
            seen.query, seen.document, seen.position, seen.clicks > 0, np.append(begins, len(seen))
        )

    def _without_duplicates(
        self, seen: _Seen, page: NDArray[np.int64]
    ) -> tuple[_Seen, NDArray[np.int64]]:
        """The rows by page and position, each result of a page once."""
        order = np.lexsort((seen.document, seen.position, page))
        seen, page = seen.take(order), page[order]
        again = (page[1:] == page[:-1]) & (seen.position[1:] == seen.position[:-1])
        other = again & (seen.document[1:] != seen.document[:-1])
        if other.any():
            at = np.flatnonzero(other)
            row = int(np.argmin(np.maximum(seen.block.line[at], seen.block.line[at + 1])))
            pair = seen.block.line[[at[row], at[row] + 1]]
            raise InputError(
                f"{seen.block.path}, line {pair.max()}: another document at the position of line "
                f"{pair.min()} on the same page; mend the log, or name a session or time that "
                "tells the pages apart"
            )
        starts = np.flatnonzero(np.concatenate([[True], ~again])[: len(page)])
        if len(starts) == len(page):
            return seen, page
        self._count("duplicate rows of a page, counted once", len(page) - len(starts))
        merged = seen.take(starts)
        merged.clicks = np.maximum.reduceat(seen.clicks, starts)
        return merged, page[starts]

    def _count(self, what: str, n: int) -> None:
        if n or what in ("rows", "pages"):
            self.counts[what] = self.counts.get(what, 0) + n


class _MixedPages:
    """Notices runs that go on with a page after rows of another one.

    Of each page it keeps 8 bytes, a hash of session and query; sorted arrays of doubling sizes
    keep the cost of looking up low.
    """

    def __init__(self) -> None:
        self._known: list[NDArray[np.uint64]] = []

    def see(self, seen: _Seen) -> None:
        """Take runs into account.

        Raises:
            InputError: one that goes on with a page.
        """
        if not len(seen):
            return
        starts = seen.starts
        with np.errstate(over="ignore"):
            query = seen.query[starts].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            key = seen.session[starts] ^ (query + (query >> np.uint64(29)))
        first = np.minimum.reduceat(seen.position, starts)
        repeated = _occurred_before(key) | self._knows(key)
        broken = repeated & (first > 0)
        if broken.any():
            row = int(starts[np.argmax(broken)])
            raise InputError(
                f"{seen.block.where(row)}: goes on with a page that ended before; rows of a page "
                "must be adjacent: sort the log by session, then query and position"
            )
        self._known.append(np.unique(key))
        while len(self._known) > 1 and len(self._known[-1]) * 2 > len(self._known[-2]):
            self._known[-2:] = [np.union1d(*self._known[-2:])]

    def _knows(self, key: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = np.zeros(len(key), dtype=bool)
        for known in self._known:
            at = np.minimum(np.searchsorted(known, key), len(known) - 1)
            found |= known[at] == key
        return found


def _occurred_before(values: NDArray[Any]) -> NDArray[np.bool_]:
    """bool [n]: whether the value stands further up, too."""
    before = np.ones(len(values), dtype=bool)
    before[np.unique(values, return_index=True)[1]] = False
    return before
