"""ClickLog: a click log, aggregated to distinct results and distinct pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.text.collection import places_of, rows_of

#: Positions that a log may have; more are a slip, or not a list that anybody reads.
MAX_POSITIONS = 1_000
#: Pairs (query, document) as one number: the query above, the document in the lower bits.
_DOCUMENT_BITS = 32


@dataclass(frozen=True, eq=False)
class Pages:
    """Result pages, each distinct one once, those of a query together; page i owns rows
    ``offsets[i]:offsets[i + 1]``.

    Attributes:
        offsets: int64 [s + 1].
        pair: int64 [n], row of the result's pair in the log.
        position: int64 [n], from 0 on, ascending within a page.
        click: bool [n].
        count: int64 [s], how often the page was seen with just these clicks.
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
        """int64 [s]: number within its page of the last clicked row, -1 where none is clicked."""
        return _extreme_click(self, np.maximum, -1)

    @cached_property
    def first_click(self) -> NDArray[np.int64]:
        """int64 [s]: number within its page of the first clicked row; the page's number of rows
        where none is clicked."""
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
        """int64 [n]: number of each row within its page, from 0 on."""
        return np.arange(len(self.pair)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))


def _extreme_click(pages: Pages, choose: np.ufunc, none: int) -> NDArray[np.int64]:
    values = np.where(pages.click, pages.place, none)
    return np.asarray(choose.reduceat(values, pages.offsets[:-1])) if len(pages) else pages.count


@dataclass(frozen=True, eq=False)
class ClickLog:
    """What a click log says, without its sessions: how often each result was shown and clicked.

    Attributes:
        query_ids: distinct queries (normalised texts, or ids as they were), in order of first
            appearance, length m.
        document_ids: distinct documents, likewise.
        pair_query, pair_document: int64 [P], the distinct pairs that were shown, by rows of
            ``query_ids`` and ``document_ids``; ascending.
        result_pair, result_position: int64 [R], the distinct (pair, position), ascending;
            positions from 0 on.
        shown, clicked: int64 [R], on how many pages the result was shown, on how many clicked.
        pages: the distinct pages, or None where a log has counts alone.
        n_pages: how many pages were seen; 0 where that is not known.
        description: how the log came about (files, rules, counts); JSON-compatible, no texts.

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

    def __post_init__(self) -> None:
        n = len(self.shown)
        for name in ("result_pair", "result_position", "clicked"):
            if len(getattr(self, name)) != n:
                raise InputError(f"click log: {name} and shown differ in length")
        if n == 0:
            raise InputError("click log: no result was shown; is the log empty, or all left out?")
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
        """Positions 0 .. n_positions - 1 occur, not necessarily all of them."""
        return int(self.result_position.max()) + 1

    @property
    def n_pages(self) -> int:
        return 0 if self.pages is None else int(self.pages.count.sum())

    def needed_pages(self, who: str) -> Pages:
        """The pages.

        Raises:
            InputError: the log has counts alone.
        """
        if self.pages is None:
            raise InputError(
                f"{who} learns from whole result pages, and this log has counts alone: give rows "
                "with a session or time, or use the models ctr and pbm"
            )
        return self.pages

    def by_position(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """float64 [n_positions]: sums of a value per result by position."""
        sums = np.bincount(self.result_position, weights=values, minlength=self.n_positions)
        return sums.astype(np.float64, copy=False)

    def by_pair(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """float64 [P]: sums of a value per result by pair."""
        sums = np.bincount(self.result_pair, weights=values, minlength=self.n_pairs)
        return sums.astype(np.float64, copy=False)

    def rows_of(self, other: ClickLog) -> NDArray[np.int64]:
        """int64 [pairs of other]: the row of each of the other log's pairs here, -1 for none."""
        if other is self:
            return np.arange(self.n_pairs)
        query = rows_of(other.query_ids, self.query_ids)
        document = rows_of(other.document_ids, self.document_ids)
        q, d = query[other.pair_query], document[other.pair_document]
        mine = pair_keys(self.pair_query, self.pair_document)
        keys = np.where((q < 0) | (d < 0), -1, pair_keys(q, d))
        return places_of(keys, mine)


def pair_keys(query: NDArray[np.int64], document: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number per pair, in the pairs' order."""
    return (query.astype(np.int64) << _DOCUMENT_BITS) | document


def _split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return keys >> _DOCUMENT_BITS, keys & ((1 << _DOCUMENT_BITS) - 1)


class LogBuilder:
    """Aggregates rows of result pages into a :class:`ClickLog`, block by block.

    Memory holds the distinct results (pair and position) and, with ``pages``, the distinct pages,
    not the rows: a page that is seen again costs nothing.

    Args:
        pages: keep distinct pages; without, models of whole pages cannot be fitted.
    """

    def __init__(self, *, pages: bool = True) -> None:
        self._pages: dict[bytes, int] | None = {} if pages else None
        self._totals = _Totals()
        self._pairs: dict[int, int] = {}

    def add_pages(
        self,
        query: NDArray[np.int64],
        document: NDArray[np.int64],
        position: NDArray[np.int64],
        click: NDArray[np.bool_],
        offsets: NDArray[np.int64],
    ) -> None:
        """Take whole pages.

        Args:
            query, document: int64 [n], numbers that stand for ids. position: int64 [n], from 0
                on, ascending within a page. click: bool [n].
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
        """Take counts of results, int64 [n] each; a result may come again, counts are added."""
        keys, inverse = np.unique(pair_keys(query, document), return_inverse=True)
        codes = [self._pairs.setdefault(key, len(self._pairs)) for key in keys.tolist()]
        code = np.array(codes, np.int64)[inverse]
        self._totals.add(code * MAX_POSITIONS + position, np.stack([shown, clicked], axis=1))

    def finish(
        self, query_ids: Sequence[str], document_ids: Sequence[str], description: Mapping[str, Any]
    ) -> ClickLog:
        """The log of all that was added; ids by their numbers."""
        if self._pages is None:
            keys = np.array(list(self._pairs), np.int64)
            codes, counts = self._totals.sums()
            code, position = np.divmod(codes, MAX_POSITIONS)
            return _log_of(query_ids, document_ids, keys[code], position, counts, description)
        content = np.frombuffer(b"".join(self._pages), np.int64).reshape(-1, 2)
        sizes = np.array([len(page) for page in self._pages], np.int64) // 16
        return log_of_pages(
            query_ids,
            document_ids,
            *_split_keys(content[:, 0]),
            content[:, 1] >> 1,
            (content[:, 1] & 1).astype(bool),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.fromiter(self._pages.values(), np.int64, len(self._pages)),
            description,
        )


def log_of_pages(
    query_ids: Sequence[str],
    document_ids: Sequence[str],
    query: NDArray[np.int64],
    document: NDArray[np.int64],
    position: NDArray[np.int64],
    click: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    count: NDArray[np.int64],
    description: Mapping[str, Any],
) -> ClickLog:
    """A log of pages, each with how often it was seen; arguments as in ``LogBuilder.add_pages``."""
    order = np.argsort(query[offsets[:-1]], kind="stable")
    sizes = np.diff(offsets)[order]
    count, start = count[order], offsets[:-1][order]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], sizes)
    position, click = position[rows], click[rows]
    keys = pair_keys(query[rows], document[rows])
    times = np.repeat(count, np.diff(offsets))
    counts = np.stack([times, times * click], axis=1)
    log = _log_of(query_ids, document_ids, keys, position, counts, description)
    pair = np.searchsorted(pair_keys(log.pair_query, log.pair_document), keys)
    pages = Pages(offsets, pair, position, click, count)
    object.__setattr__(log, "pages", pages)
    return log


def _log_of(
    query_ids: Sequence[str],
    document_ids: Sequence[str],
    keys: NDArray[np.int64],
    position: NDArray[np.int64],
    counts: NDArray[np.int64],
    description: Mapping[str, Any],
) -> ClickLog:
    """A log of results whose counts, int64 [n, 2] of shown and clicked, are added by key and
    position."""
    distinct, pair = np.unique(keys, return_inverse=True)
    totals = _Totals()
    totals.add(pair * MAX_POSITIONS + position, counts)
    results, sums = totals.sums()
    at, place = np.divmod(results, MAX_POSITIONS)
    query, document = _split_keys(distinct)
    return ClickLog(
        query_ids, document_ids, query, document, at, place, sums[:, 0], sums[:, 1],
        description=description,
    )  # fmt: skip


class _Totals:
    """Sums by key of what comes in blocks; a block is merged when the waiting ones are as large as
    the sums, so that each row is moved a few times however many blocks there are."""

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.int64)
        self._sums = np.zeros((0, 2), np.int64)
        self._waiting: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._n_waiting = 0

    def add(self, keys: NDArray[np.int64], values: NDArray[np.int64]) -> None:
        """Add values, int64 [n, 2], to the sums of their keys."""
        keys, values = _summed(keys, values)
        self._waiting.append((keys, values))
        self._n_waiting += len(keys)
        if self._n_waiting > max(1 << 16, len(self._keys)):
            self._merge()

    def sums(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Keys, ascending, and their sums [keys, 2]."""
        self._merge()
        return self._keys, self._sums

    def _merge(self) -> None:
        blocks = [(self._keys, self._sums), *self._waiting]
        self._keys, self._sums = _summed(
            np.concatenate([keys for keys, _ in blocks]),
            np.concatenate([values for _, values in blocks]),
        )
        self._waiting, self._n_waiting = [], 0


def _summed(
    keys: NDArray[np.int64], values: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if not len(first):
        return keys, values[:0].astype(np.int64)
    return keys[first], np.add.reduceat(values[order].astype(np.int64), first, axis=0)
