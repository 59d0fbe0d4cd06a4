"""Read click logs in the schema of OpenSearch's User Behavior Insights: queries and events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from letor.errors import InputError, reading
from ltr_base.names import listed
from ltr_features.clicks.log import MAX_POSITIONS, ClickLog, LogBuilder
from ltr_features.clicks.rules import LogRules, log_files, unclicked_files
from ltr_features.clicks.tables import BadRows
from ltr_features.clicks.times import LogTimes, Time, time_of
from ltr_features.parameters import check_choice
from ltr_features.sources.input_files import Paths
from ltr_features.text.records import json_lines

_PAGES_AT_ONCE = 10_000
#: A query, its hits by number, and whether each was clicked.
_Page: TypeAlias = tuple[int, list[int], list[bool]]


@dataclass
class _Click:
    """The first click on an object for a query: number of the events file and line in it, time in
    seconds, and the position by the event, if it says."""

    place: tuple[int, int]
    time: float
    ordinal: int | None


def read_ubi(
    queries: Paths,
    events: Paths,
    *,
    rules: LogRules | None = None,
    on_unknown: str = "raise",
    on_bad_row: str = "raise",
) -> ClickLog:
    """Read exports of the indexes ``ubi_queries`` and ``ubi_events``, as JSON lines (documents, or
    hits that hold them as ``_source``; also .gz, .bz2, .zst).

    A record of ``queries`` is a page: ``query_response_hit_ids`` were shown in this order, the
    first at position 0. A repeated ``query_id`` counts once, and a query without hits does not
    count. A record of ``events`` whose ``action_name`` is one of ``rules.actions`` is a click on
    ``event_attributes.object.object_id`` for its ``query_id``; several clicks on an object count as
    one. Clicks without ``query_id`` and other events are counted and left out. Clicks are matched
    to pages by id alone: those with a time before their page (clocks differ) count, too, and the
    description gives their number, and that of clicks whose ``event_attributes.position.ordinal``
    is not the place of the hit (counted from 0 or from 1, as most of them are): pages that go on
    with a query's results seem to begin at position 0. Clicks are held in memory, queries are
    streamed.

    Args:
        queries, events: one or several files of each, folders or patterns, see :func:`files_of`. A
            click may be in a file of another day than its page.
        rules: as for rows; a page's time is its ``timestamp``, its session its ``client_id``.
        on_unknown: "raise" or "skip" (and count) clicks on pages, or on objects of a page, that
            ``queries`` does not have.
        on_bad_row: "raise" or "skip" records of queries or events that cannot be read, as for rows.

    Raises:
        InputError: no such file, a line that is not a JSON object or lacks a field, a duplicate
            object on a page, clicks on results that were not shown, or no event is a click; file
            and line are named, without texts of queries.

    Source: User Behavior Insights, index schemas of version 1.
    """
    rules = rules or LogRules()
    check_choice("on_unknown", on_unknown, ("raise", "skip"))
    reader = _Ubi(queries, events, rules, on_bad_row)
    reader.read_events()
    reader.read_queries()
    return reader.finish(on_unknown)


class _Ubi:
    def __init__(self, queries: Paths, events: Paths, rules: LogRules, on_bad_row: str) -> None:
        self._on_bad_row = on_bad_row
        # Apart, as many good events would outweigh the bad queries.
        self._bad_queries = BadRows(on_bad_row, "records of queries")
        self._bad_events = BadRows(on_bad_row, "records of events")
        self.queries, self.events, self.rules = log_files(queries), log_files(events), rules
        self.counts: dict[str, int] = {}
        self._clicks: dict[str, dict[str, _Click]] = {}
        self._clicked: Counter[Path] = Counter()  # by file of the pages
        self._shifts: Counter[int] = Counter()  # ordinals of clicks less the places of their hits
        self._times = LogTimes(rules.since, rules.until)
        self._builder = LogBuilder(pages=rules.pages)
        self._query: dict[str, int] = {}
        self._document: dict[str, int] = {}

    def read_events(self) -> None:
        others: Counter[str] = Counter()
        for at, where, event in _records(self.events, self._bad_events):
            with self._bad_events.record(where):
                action = _text(where, event, "action_name")
                if action in self.rules.actions:
                    self._add_click(at, where, event)
                else:
                    others[action] += 1
        self._bad_events.check()
        names = listed([f"{name} ({n:,})" for name, n in others.most_common()], 5)
        if others and not self._clicks:
            raise InputError(
                f"{_named(self.events)}: no event is a click ({', '.join(self.rules.actions)}); "
                f"there are {names}; name those that are clicks by the rule actions"
            )
        if others:
            self._count(f"events that are no clicks, left out: {names}", others.total())

    def _add_click(self, at: tuple[int, int], where: str, event: Mapping[str, Any]) -> None:
        query_id = event.get("query_id")
        if query_id is None or query_id == "":  # the number 0 is an id
            self._count("clicks without a query_id, left out")
            return
        attributes = event.get("event_attributes")
        attributes = attributes if isinstance(attributes, Mapping) else {}
        target = attributes.get("object")
        if not isinstance(target, Mapping):
            raise InputError(f"{where}: a click without event_attributes.object")
        object_id = _text(where, target, "object_id")
        click = _Click(at, _time(where, event).seconds, _ordinal(attributes))
        known = self._clicks.setdefault(str(query_id), {}).setdefault(object_id, click)
        self._count("clicks")
        if known is not click:
            self._count("clicks on an object clicked before, counted as one")

    def read_queries(self) -> None:
        robots = self._robots()
        seen: set[str] = set()
        pages: list[_Page] = []
        for (file, _), where, record in _records(self.queries, self._bad_queries):
            with self._bad_queries.record(where):
                query_id = _text(where, record, "query_id")
                if query_id in seen:
                    self._count("pages with the query_id of another, left out")
                    continue
                seen.add(query_id)
                if page := self._page(where, query_id, record, robots):
                    pages.append(page)
                    self._clicked[self.queries[file]] += sum(page[2])
            if len(pages) == _PAGES_AT_ONCE:
                self._add(pages)
                pages = []
        self._bad_queries.check()
        self._add(pages)

    def _page(
        self, where: str, query_id: str, record: Mapping[str, Any], robots: set[str]
    ) -> _Page | None:
        """Query, hits, and whether each was clicked; None for a page that is left out."""
        clicks = self._clicks.pop(query_id, {})  # they go with a bad page
        hits, time = self._hits(where, record), _time(where, record)
        self._times.check(time, where)
        if not self._times.chosen(np.array(time.seconds)):
            self._count("pages of another time, left out")
            return None
        if _client(record) in robots:
            self._count("pages of sessions with too many pages, left out")
            return None
        missing = set(clicks) - set(hits)
        if missing:  # `finish` reports these
            self._clicks[query_id] = {hit: clicks[hit] for hit in missing}
        if not hits:
            self._count("pages without results, left out")
            return None
        text, hits = self._query_text(where, record), hits[: self.rules.depth]
        clicked = [hit in clicks for hit in hits]
        if self.rules.max_clicks is not None and sum(clicked) > self.rules.max_clicks:
            self._count("pages with too many clicks, left out")
            return None
        early = sum(clicks[hit].time < time.seconds for hit in hits if hit in clicks)
        self._count("clicks stamped before their page, counted all the same", early)
        for place, hit in enumerate(hits):
            if hit in clicks and (ordinal := clicks[hit].ordinal) is not None:
                self._shifts[ordinal - place] += 1
        self._count("pages")
        code = [self._document.setdefault(hit, len(self._document)) for hit in hits]
        return self._query.setdefault(text, len(self._query)), code, clicked

    def finish(self, on_unknown: str) -> ClickLog:
        unknown = [c.place for clicks in self._clicks.values() for c in clicks.values()]
        if unknown and on_unknown == "raise":
            file, line = min(unknown)
            lacks = "does not have" if len(self.queries) == 1 else "do not have"
            raise InputError(
                f"{self.events[file]}, line {line}: a click on a page or result that "
                f"{_named(self.queries)} {lacks} ({len(unknown):,} in all); add the queries, or "
                "skip such clicks: --on-unknown skip (of the source clicks: on_unknown=skip)"
            )
        self._count("clicks without a showing, left out", len(unknown))
        first = max((0, 1), key=lambda number: self._shifts[number])
        self._count(
            "clicks whose position.ordinal is not the place of the hit, as on second pages",
            self._shifts.total() - self._shifts[first],
        )
        description = {
            "source": "OpenSearch UBI",
            "files": len(self.queries),
            "files of events": len(self.events),
            **self.counts,
            **self._bad_events.facts,
            **self._bad_queries.facts,
            **unclicked_files(self._clicked),
            "positions": "from 0 (the order of the hits)",
            **self._times.facts,
            "queries": self.rules.queries_in_words,
        }
        with reading(_named(self.queries)):
            return self._builder.finish(list(self._query), list(self._document), description)

    def _query_text(self, where: str, page: Mapping[str, Any]) -> str:
        text = _text(where, page, "user_query")
        text = self.rules.query_rule(text) if self.rules.query_rule else text
        if not text:
            raise InputError(f"{where}: user_query is empty")
        return text

    def _hits(self, where: str, page: Mapping[str, Any]) -> list[str]:
        hits = page.get("query_response_hit_ids")
        if not isinstance(hits, list):
            raise InputError(f"{where}: query_response_hit_ids is not a list")
        ids = [str(hit) for hit in hits]
        if len(set(ids)) != len(ids):
            raise InputError(f"{where}: query_response_hit_ids has an object twice")
        if self.rules.depth is None and len(ids) > MAX_POSITIONS:
            raise InputError(f"{where}: {len(ids)} hits; give a depth to leave out those below")
        return ids

    def _robots(self) -> set[str]:
        """The clients with too many pages."""
        if self.rules.max_pages is None:
            return set()
        records = _records(self.queries, BadRows(self._on_bad_row))
        pages = Counter(client for _, _, page in records if (client := _client(page)))
        return {client for client, n in pages.items() if n > self.rules.max_pages}

    def _add(self, pages: list[_Page]) -> None:
        if not pages:
            return
        sizes = [len(documents) for _, documents, _ in pages]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._builder.add_pages(
            np.repeat(np.array([query for query, _, _ in pages], np.int64), sizes),
            np.array([d for _, documents, _ in pages for d in documents], np.int64),
            np.arange(offsets[-1]) - np.repeat(offsets[:-1], sizes),
            np.array([c for _, _, clicked in pages for c in clicked], dtype=bool),
            offsets,
        )

    def _count(self, what: str, n: int = 1) -> None:
        if n:
            self.counts[what] = self.counts.get(what, 0) + n


def _named(files: list[Path]) -> str:
    return listed([str(file) for file in files], 3)


def _records(
    files: list[Path], bad: BadRows
) -> Iterator[tuple[tuple[int, int], str, Mapping[str, Any]]]:
    """Each record, with the number of its file and its line in it, and the two in words."""
    for file, path in enumerate(files):
        for line, record in json_lines(path, on_bad_line=bad.damaged(path)):
            yield (file, line), f"{path}, line {line}", _source(record)


def _source(record: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = record.get("_source")
    return inner if isinstance(inner, Mapping) else record


def _text(where: str, record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if value is None or isinstance(value, (list, dict)):
        raise InputError(f"{where}: {key} is {'missing' if value is None else 'not text'}")
    return str(value)


def _client(page: Mapping[str, Any]) -> str:
    """Whom a page was shown to, by a text or a number; "" if it does not say."""
    client = page.get("client_id")
    return str(client) if isinstance(client, str | int) else ""


def _ordinal(attributes: Mapping[str, Any]) -> int | None:
    position = attributes.get("position")
    ordinal = position.get("ordinal") if isinstance(position, Mapping) else None
    return ordinal if isinstance(ordinal, int) else None


def _time(where: str, record: Mapping[str, Any]) -> Time:
    if record.get("timestamp") is None:
        raise InputError(f"{where}: timestamp is missing")
    time = time_of(str(record["timestamp"]))
    if math.isnan(time.number):
        raise InputError(f"{where}: timestamp is neither a number nor a time (ISO 8601)")
    return time
