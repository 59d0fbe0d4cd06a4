"""ClickLog: a click log, aggregated to distinct results and distinct pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.names import counted
from ltr_features.text.id_rows import places_of, rows_of
from ltr_features.text.query_texts import ids_of_texts

#: Number of positions that a log may have; nobody reads longer lists, so more are a mistake.
MAX_POSITIONS = 1_000
#: A share of pages with a single row, or without the first position, that is worth a remark.
_FRAGMENTS = 0.9
#: A page with as many results of which each was clicked is a robot's.
_ALL_CLICKED = 5
#: A share of all clicks on odd pages that is worth a remark.
_ODD = 0.05
#: In the description: pages after one of their session and query that begin at the first position
#: with other documents.
BEGUN_ANEW = "pages of the session and query of the page before, with none of its documents"
#: What the description of a log says of queries that are texts.
NORMALISED = "normalised texts"
#: A (query, document) pair as one number: the document in so many lower bits, the query above.
_DOCUMENT_BITS = 32


@dataclass(frozen=True, eq=False)
class Pages:
    """Distinct result pages, grouped by query; page i has rows ``offsets[i]:offsets[i + 1]``.

    Attributes:
        offsets: int64 [s + 1].
        pair: int64 [n], row of the result's pair in the log.
        position: int64 [n], from 0, ascending within a page.
        click: bool [n].
        count: int64 [s], how often the page was seen with exactly these clicks.
    """

    offsets: NDArray[np.int64]
    pair: NDArray[np.int64]
    position: NDArray[np.int64]
    click: NDArray[np.bool_]
    count: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.count)

    @cached_property
    def row_count(self) -> NDArray[np.int64]:
        """int64 [n]: the count of each row's page."""
        return np.repeat(self.count, np.diff(self.offsets))

    @cached_property
    def last_click(self) -> NDArray[np.int64]:
        """int64 [s]: number within its page of the last clicked row, -1 if none is clicked."""
        return _extreme_click(self, np.maximum, -1)

    @cached_property
    def first_click(self) -> NDArray[np.int64]:
        """int64 [s]: number within its page of the first clicked row; the page's number of rows if
        none is clicked."""
        none = np.iinfo(np.int64).max
        return np.minimum(_extreme_click(self, np.minimum, none), np.diff(self.offsets))

    @cached_property
    def row_page(self) -> NDArray[np.int64]:
        """int64 [n]: the page of each row."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def is_end(self) -> NDArray[np.bool_]:
        """bool [n]: whether the row is the last one of its page."""
        end = np.zeros(len(self.pair), dtype=bool)
        end[self.offsets[1:] - 1] = True
        return end

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """int64 [n]: number of each row within its page, from 0."""
        return np.arange(len(self.pair)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))


def _extreme_click(pages: Pages, choose: np.ufunc, none: int) -> NDArray[np.int64]:
    values = np.where(pages.click, pages.place, none)
    return np.asarray(choose.reduceat(values, pages.offsets[:-1])) if len(pages) else pages.count


@dataclass(frozen=True, eq=False)
class ClickLog:
    """An aggregated click log, without sessions: how often each result was shown and clicked.

    Attributes:
        query_ids: distinct queries (normalised texts, or ids as they were), in order of first
            appearance, length m.
        document_ids: distinct documents, likewise.
        pair_query, pair_document: int64 [P], the distinct pairs that were shown, as rows of
            ``query_ids`` and ``document_ids``; ascending.
        result_pair, result_position: int64 [R], the distinct (pair, position), ascending;
            positions from 0.
        shown, clicked: int64 [R], number of pages on which the result was shown, and clicked.
        pages: the distinct pages, or None if the log has only counts.
        n_pages: number of pages seen; 0 if unknown.
        description: origin of the log (files, rules, counts); JSON-compatible, no texts.

    Raises:
        InputError: more clicks than showings, rows outside the arrays, or lengths that differ.
    """

    query_ids: Sequence[str]
    document_ids: Sequence[str]
    pair_query: NDArray[np.int64]
    pair_document: NDArray[np.int64]
    result_pair: NDArray[np.int64]
    result_position: NDArray[np.int64]
    shown: NDArray[np.int64]
    clicked: NDArray[np.int64]
    pages: Pages | None = None
    description: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:  # without the queries, which are what people typed
        sizes = f"{counted(len(self.query_ids), 'query')}, {counted(self.n_pairs, 'pair')} shown"
        return f"<ClickLog: {sizes}, {counted(int(self.clicked.sum()), 'click')}>"

    def __post_init__(self) -> None:
        n = len(self.shown)
        for name in ("result_pair", "result_position", "clicked"):
            if len(getattr(self, name)) != n:
                raise InputError(f"click log: {name} and shown differ in length")
        if n == 0:
            raise InputError(
                "click log: no result was shown: it is empty, or since, until (--split) or other "
                "rules leave out all of it"
            )
        if (self.clicked > self.shown).any() or (self.clicked < 0).any():
            raise InputError("click log: a result is clicked more often than it is shown")
        if self.result_position.min() < 0 or self.result_position.max() >= MAX_POSITIONS:
            raise InputError(f"click log: positions must lie within 0..{MAX_POSITIONS - 1}")
        if self.result_pair.min() < 0 or self.result_pair.max() >= self.n_pairs:
            raise InputError(f"click log: result_pair must lie within 0..{self.n_pairs - 1}")

    @property
    def n_pairs(self) -> int:
        return len(self.pair_query)

    @property
    def n_positions(self) -> int:
        """The largest position plus 1; positions below it need not all occur."""
        return int(self.result_position.max()) + 1

    @property
    def n_pages(self) -> int:
        return 0 if self.pages is None else int(self.pages.count.sum())

    @property
    def has_texts(self) -> bool:
        """Whether ``query_ids`` are normalised texts."""
        return self.description.get("queries", NORMALISED) == NORMALISED

    @cached_property
    def made_ids(self) -> list[str]:
        """The ids of the queries in judgements and collections made from the log: those of their
        texts (see ``ids_of_texts``), or the log's own."""
        return ids_of_texts(self.query_ids) if self.has_texts else list(self.query_ids)

    def rows_of_queries(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """int64 [n]: the row of each query, named as in ``query_ids`` or ``made_ids``; -1 for
        none."""
        rows = rows_of(ids, self.query_ids)
        return np.where(rows < 0, rows_of(ids, self.made_ids), rows) if self.has_texts else rows

    @property
    def remarks(self) -> list[str]:
        """Remarks on the log for users, sentences without a full stop."""
        found = self._remarks_on_pages
        if (n := self.description.get(BEGUN_ANEW, 0)) > _ODD * self.n_pages:
            found.append(
                f"{n:,} of {self.n_pages:,} pages have the session and query of the page before "
                "and none of its documents: if they are second pages, their positions must go on "
                "(11, 12, ...), not begin anew"
            )
        if (self.clicked < self.shown).any():
            return [*found, *self._remarks_on_clicks]
        return [
            "every result that was shown was clicked: the results that were not clicked seem to be "
            "missing from the log, and without them clicks cannot tell relevance from position; "
            "add the results that were shown and not clicked",
            *found,
        ]

    @property
    def _remarks_on_pages(self) -> list[str]:
        """A remark if nearly all pages are fragments: the column that tells them apart is wrong."""
        if self.pages is None or self.n_positions == 1:
            return []
        single = np.diff(self.pages.offsets) == 1
        deeper = self.pages.position[self.pages.offsets[:-1]] > 0
        for are, what in (
            (single, "have a single row"),
            (deeper, "begin below the first position"),
        ):
            share = self.pages.count[are].sum() / self.n_pages
            if share > _FRAGMENTS:
                return [
                    f"{100 * share:.0f} % of the pages {what}: the column of the session (or of "
                    "the time, in a log without sessions) seems to tell rows apart, not pages; "
                    "name one that the rows of a page have in common"
                    + (
                        "; or few rows have position 0, by mistake: set the rule first_position=1"
                        if are is deeper
                        else ""
                    )
                ]
        return []

    @property
    def _remarks_on_clicks(self) -> list[str]:
        """Remarks if many clicks are on pages on which nobody could have clicked so."""
        if self.pages is None:
            return []
        starts, size = self.pages.offsets[:-1], np.diff(self.pages.offsets)
        n_clicks = np.add.reduceat(self.pages.click.astype(np.int64), starts)
        every = n_clicks == size
        found = []
        for pages, told in (
            (
                every & (size >= _ALL_CLICKED),
                f"with {_ALL_CLICKED} or more results of which every one was clicked, as robots "
                "do: leave them out by the rules max_clicks and max_pages",
            ),
            (
                every & (size == 1) & (self.pages.position[starts] > 0),
                "of a single result below the first position: the results shown with it seem to "
                "be missing; add them, or leave such clicks out",
            ),
        ):
            n = int(self.pages.count[pages].sum())
            share = (self.pages.count * n_clicks)[pages].sum() / max(self.clicked.sum(), 1)
            if share >= _ODD:
                found.append(f"{100 * share:.0f} % of all clicks are on pages ({n:,}) {told}")
        return found

    def needed_pages(self, who: str) -> Pages:
        """The pages, for a model or function named ``who``.

        Raises:
            InputError: the log has only counts.
        """
        if self.pages is None:
            raise InputError(
                f"{who} learns from whole result pages, and this log has only counts: give rows "
                "with a session or time, or use the models ctr and pbm"
            )
        return self.pages

    def by_position(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """float64 [n_positions]: sums of the results' values by position."""
        sums = np.bincount(self.result_position, weights=values, minlength=self.n_positions)
        return sums.astype(np.float64, copy=False)

    def by_pair(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """float64 [P]: sums of the results' values by pair."""
        sums = np.bincount(self.result_pair, weights=values, minlength=self.n_pairs)
        return sums.astype(np.float64, copy=False)

    def rows_of(self, other: ClickLog) -> NDArray[np.int64]:
        """int64 [pairs of other]: the row in this log of each pair of the other, -1 for none."""
        if other is self:
            return np.arange(self.n_pairs)
        query = rows_of(other.query_ids, self.query_ids)
        document = rows_of(other.document_ids, self.document_ids)
        return self.rows_of_pairs(query[other.pair_query], document[other.pair_document])

    def rows_of_pairs(
        self, query: NDArray[np.int64], document: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """int64 [n]: the row of each pair, given by rows of ``query_ids`` and ``document_ids``; -1
        if it was not shown, or either row is -1."""
        keys = np.where((query < 0) | (document < 0), -1, pair_keys(query, document))
        return places_of(keys, pair_keys(self.pair_query, self.pair_document))


def pair_keys(query: NDArray[np.int64], document: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number per pair, in the pairs' order."""
    return (query.astype(np.int64) << _DOCUMENT_BITS) | document


class LogBuilder:
    """Aggregates rows of result pages into a :class:`ClickLog`, block by block.

    Memory holds the distinct results (pair and position) and, with ``pages``, the distinct pages,
    not the rows: a page that is seen again costs nothing.

    Args:
        pages: whether to keep distinct pages, which models of whole pages need.
    """

    def __init__(self, *, pages: bool = True) -> None:
        self._pages: dict[bytes, int] | None = {} if pages else None
        self._counts: list[NDArray[np.int64]] = [np.zeros((0, 4), np.int64)]
        self._n_waiting = 0

    def add_pages(
        self,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        position: NDArray[np.int64],
        click: NDArray[np.bool_],
        offsets: NDArray[np.int64],
    ) -> None:
        """Add whole pages.

        Args:
            query, document: int64 [n], numbers that stand for ids. position: int64 [n], from 0,
                ascending within a page. click: bool [n].
            offsets: int64 [pages + 1], rows of each page.
        """
        if self._pages is None:
            self.add_counts(query, document, position, np.ones(len(query), np.int64), click)
            return
        row = np.stack([pair_keys(query, document), (position << 1) | click], axis=1)
        content, size = row.tobytes(), row.strides[0]
        for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            page = content[start * size : stop * size]
            self._pages[page] = self._pages.get(page, 0) + 1

    def add_counts(
        self,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        position: NDArray[np.int64],
        shown: NDArray[np.int64],
        clicked: NDArray[Any],
    ) -> None:
        """Add counts of results, int64 [n] each; counts of the same result are summed."""
        block = _added_up(np.stack([pair_keys(query, document), position, shown, clicked], axis=1))
        self._counts.append(block)
        self._n_waiting += len(block)
        # Merging at doubling sizes moves each row only a few times, however many blocks there are.
        if self._n_waiting > max(1 << 16, len(self._counts[0])):
            self._counts = [_added_up(np.concatenate(self._counts))]
            self._n_waiting = 0

    def finish(
        self, query_ids: Sequence[str], document_ids: Sequence[str], description: Mapping[str, Any]
    ) -> ClickLog:
        """The log of everything that was added; ``query_ids`` and ``document_ids`` by number."""
        if self._pages is None:
            return _log_of(query_ids, document_ids, np.concatenate(self._counts), description)
        rows = np.frombuffer(b"".join(self._pages), np.int64).reshape(-1, 2)
        sizes = np.array([len(page) for page in self._pages], np.int64) // 16
        count = np.fromiter(self._pages.values(), np.int64, len(self._pages))
        first = np.cumsum(sizes) - sizes
        order = np.argsort(rows[first, 0] >> _DOCUMENT_BITS, kind="stable")  # by query
        sizes, count = sizes[order], count[order]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = rows[np.arange(offsets[-1]) + np.repeat(first[order] - offsets[:-1], sizes)]
        keys, position, click = rows[:, 0], rows[:, 1] >> 1, (rows[:, 1] & 1).astype(bool)
        times = np.repeat(count, sizes)
        counts = np.stack([keys, position, times, times * click], axis=1)
        log = _log_of(query_ids, document_ids, counts, description)
        pair = np.unique(keys, return_inverse=True)[1]
        return replace(log, pages=Pages(offsets, pair, position, click, count))


def _log_of(
    query_ids: Sequence[str],
    document_ids: Sequence[str],
    counts: NDArray[np.int64],
    description: Mapping[str, Any],
) -> ClickLog:
    """A log without pages, of the ids that it shows: those of pages that rules left out are not
    counted. ``counts`` has the columns of :func:`_added_up`."""
    keys, position, shown, clicked = (column.copy() for column in _added_up(counts).T)
    distinct, pair = np.unique(keys, return_inverse=True)
    queries, query = np.unique(distinct >> _DOCUMENT_BITS, return_inverse=True)
    found = distinct & ((1 << _DOCUMENT_BITS) - 1)
    documents, document = np.unique(found, return_inverse=True)
    return ClickLog(
        [query_ids[i] for i in queries.tolist()], [document_ids[i] for i in documents.tolist()],
        query, document, pair, position, shown, clicked, description=description,
    )  # fmt: skip


def _added_up(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum the counts of each (pair, position): rows of pair, position, shown and clicked, int64
    [n, 4], ascending."""
    counts = counts[np.lexsort((counts[:, 1], counts[:, 0]))]
    first = np.flatnonzero(np.diff(counts[:, :2], axis=0, prepend=-1).any(axis=1))
    return np.hstack([counts[first, :2], np.add.reduceat(counts[:, 2:], first, axis=0)])
