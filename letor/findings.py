"""Checks of a LETOR file: what will cause trouble, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.kernels.numbers import HUGE, INFINITE, NAN_TEXT, NULL
from letor.lines import BadLine

MAX_LIGHTGBM_LABEL = 30  # LightGBM's default label_gain has 31 entries: 0 to 2^30 - 1
LISTED = 20  # lines, columns or labels that a message lists

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing found in a file.

    Attributes:
        level: ``"error"`` (readers fail or drop rows), ``"warning"`` (results may be wrong),
            ``"note"`` (good to know).
        code: a stable short name, such as ``"constant-columns"``.
        message: what was found and where.
        advice: what to do about it.
        columns: ids of the columns concerned.
        lines: 1-based numbers of lines concerned, at most 20.
    """

    level: Level
    code: str
    message: str
    advice: str
    columns: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()


@dataclass
class Inspected:
    """A file while it is looked at: rows as parsed, the good ones as data, statistics."""

    data: RankingData
    bad: list[BadLine]
    buffer: NDArray[np.uint8]
    line_start: NDArray[np.int64]  # [n], byte position of each row
    kinds: NDArray[np.int64]  # [5, p], values absent, NULL, nan, infinite, huge
    low: NDArray[np.float32]  # [m, p], least value of each query and column, NaN if none
    high: NDArray[np.float32]
    columns: list[dict[str, Any]]  # names and provenance from the file beside, if there is one

    def lines(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        """Line numbers of the first rows of a list."""
        starts = self.line_start[np.sort(rows)[:LISTED]].tolist()
        feed = ord("\n")
        pieces = pairwise([0, *starts])
        counts = [int(np.count_nonzero(self.buffer[a:b] == feed)) for a, b in pieces]
        return tuple(np.cumsum([1, *counts])[1:].tolist())


def _check_lines(file: Inspected) -> Iterator[Finding]:
    if file.bad:
        yield Finding(
            "error",
            "malformed-lines",
            f"{len(file.bad):,} malformed lines",
            'mend them, or leave them out with on_error="skip" (--on-error skip)',
            lines=tuple(line.number for line in file.bad[:LISTED]),
        )


def _check_values(file: Inspected) -> Iterator[Finding]:
    advice: dict[int, tuple[Level, str, str, str]] = {
        NULL: (
            "warning",
            "null",
            "NULL",
            "read as the least value of the column within the query (LETOR's MIN rule); "
            'null="nan" keeps them missing',
        ),
        NAN_TEXT: ("error", "nan", "nan", 'non_finite="nan" reads them as missing'),
        INFINITE: ("error", "infinite", "infinite", 'non_finite="nan" reads them as missing'),
        HUGE: (
            "error",
            "huge",
            "beyond float32 (3.4e38)",
            'Istella marks missing values by 1.797e308: non_finite="nan" reads them as missing',
        ),
    }
    for kind, (level, code, name, what_to_do) in advice.items():
        counts = file.kinds[kind - NULL + 1]
        if counts.any():
            columns = _ids(counts > 0)
            message = f"{int(counts.sum()):,} values are {name}, in {_list_columns(columns)}"
            yield Finding(level, code, message, what_to_do, columns)


def _check_absent(file: Inspected) -> Iterator[Finding]:
    absent, n = file.kinds[0], len(file.data)
    never = absent == n
    if never.any():
        yield Finding(
            "warning",
            "gaps",
            f"ids that no line gives: {_list_columns(_ids(never))}",
            "if columns were left out on purpose, renumber the rest; readers allocate the gaps",
            _ids(never),
        )
    sometimes = int(absent[~never].sum())
    if sometimes:
        share = sometimes / (n * max(1, int((~never).sum())))
        yield Finding(
            "note",
            "sparse",
            f"sparse: {share:.1%} of the values are not given",
            "they are read as 0; missing=nan keeps them missing",
        )


def _check_labels(file: Inspected) -> Iterator[Finding]:
    y = file.data.y
    if np.any(y != np.rint(y)):
        yield Finding(
            "warning",
            "fractional-labels",
            f"{int(np.sum(y != np.rint(y))):,} labels are no whole numbers",
            "rankers and NDCG gains expect grades 0, 1, 2, ...: round or bin them",
            lines=file.lines(np.flatnonzero(y != np.rint(y))),
        )
    if np.any(y < 0):
        yield Finding(
            "warning",
            "negative-labels",
            f"{int(np.sum(y < 0)):,} labels are negative",
            "-1 means unjudged in LETOR's semi-supervised sets: leave these rows out of training "
            "and evaluation",
            lines=file.lines(np.flatnonzero(y < 0)),
        )
    if _labels_are_ranks(file.data):
        yield Finding(
            "warning",
            "list-labels",
            "the labels of each query are a permutation: this is a listwise (-list) file, whose "
            "labels are ranks, not grades",
            "use the file with graded labels, or bin the ranks into a few grades",
        )
    if np.any(y > MAX_LIGHTGBM_LABEL):
        yield Finding(
            "warning",
            "large-labels",
            f"labels up to {y.max():g}: LightGBM's default gain table ends at "
            f"{MAX_LIGHTGBM_LABEL}, and 2^label leaves all others without weight",
            "bin the labels into a few grades, or give LightGBM a label_gain",
            lines=file.lines(np.flatnonzero(y > MAX_LIGHTGBM_LABEL)),
        )
    if np.all(y == y[0]):
        yield Finding(
            "warning",
            "one-label",
            f"all labels are {y[0]:g}",
            "nothing can be learned or measured: check that labels were joined to the rows",
        )


def _labels_are_ranks(data: RankingData) -> bool:
    """Whether nearly all queries of three or more rows have consecutive, distinct labels."""
    n_queries = n_ranks = 0
    for i in range(data.n_queries):
        labels = np.sort(data.y[data.order[data.offsets[i] : data.offsets[i + 1]]])
        if len(labels) >= 3:
            n_queries += 1
            n_ranks += bool(np.all(np.diff(labels) == 1))
    # Grades 0, 1, 2 on three rows can be consecutive by chance.
    return bool(data.y.max() > 2) and n_queries > 1 and n_ranks >= 0.95 * n_queries


def _check_groups(file: Inspected) -> Iterator[Finding]:
    index = file.data.query_index
    starts = np.flatnonzero(np.concatenate([[True], index[1:] != index[:-1]]))
    again = np.ones(len(starts), dtype=bool)
    again[np.unique(index[starts], return_index=True)[1]] = False
    if again.any():
        queries = len(np.unique(index[starts[again]]))
        yield Finding(
            "warning",
            "split-groups",
            f"the rows of {queries:,} queries are not adjacent",
            "this package takes them as they are; LightGBM, RankLib and XGBoost do not: sort the "
            "file by query for them",
            lines=file.lines(starts[again]),
        )
    single = int(np.sum(file.data.group_sizes == 1))
    if single:
        yield Finding(
            "note",
            "single-document-queries",
            f"{single:,} queries have one document only",
            "they cannot be ranked wrongly and flatter every measure; consider leaving them out",
        )


def _check_columns(file: Inspected) -> Iterator[Finding]:
    low = np.fmin.reduce(file.low, axis=0)
    high = np.fmax.reduce(file.high, axis=0)
    zero = (low == 0) & (high == 0)
    constant = (low == high) & ~zero
    within = np.all((file.low == file.high) | np.isnan(file.low), axis=0)
    within &= (low != high) & ~np.isnan(low)
    # Values that a line does not give are read as 0 and make the others vary.
    given = file.kinds[0] == 0
    constant &= given
    within &= given
    for code, found, what, advice in (
        ("zero-columns", zero, "0 in all rows", "the stream or resource behind them was empty"),
        ("constant-columns", constant, "constant", "they carry nothing: drop them"),
        (
            "query-columns",
            within,
            "constant within every query",
            "alone they cannot rank; they help only in combination with others",
        ),
    ):
        if found.any():
            columns = _ids(found)
            level: Level = "note" if code == "query-columns" else "warning"
            yield Finding(level, code, f"{_list_columns(columns)}: {what}", advice, columns)


def _check_remarks(file: Inspected) -> Iterator[Finding]:
    for number, column in enumerate(file.columns, start=1):
        remarks = column.get("remarks")
        for remark in remarks if isinstance(remarks, list) else []:
            yield Finding(
                "warning",
                "column-remarks",
                f"column {number} ({column['name']}): {remark}",
                "measure a ranker with and without the column before you rely on it",
                (number,),
            )


def _check_documents(file: Inspected) -> Iterator[Finding]:
    data = file.data
    if data.document_ids is None:
        return
    seen: set[tuple[int, str]] = set()
    twice, unnamed = [], 0
    for row, pair in enumerate(zip(data.query_index.tolist(), data.document_ids, strict=True)):
        unnamed += not pair[1]
        if pair[1] and pair in seen:
            twice.append(row)
        seen.add(pair)
    if twice:
        yield Finding(
            "warning",
            "duplicate-documents",
            f"{len(twice):,} rows repeat a document of their query",
            "keep one row per query and document: repeated ones count twice in every measure",
            lines=file.lines(np.array(twice, dtype=np.int64)),
        )
    if unnamed:
        yield Finding(
            "warning",
            "unnamed-documents",
            f"{unnamed:,} rows name no document, others do",
            "joins by document id will miss them: complete the comments",
        )


def _ids(found: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple((np.flatnonzero(found) + 1).tolist())


def _list_columns(ids: tuple[int, ...]) -> str:
    """Ids as people write them: ``column 7``, ``5 columns (1-3, 6, 9)``."""
    runs: list[list[int]] = []
    for i in ids:
        if runs and i == runs[-1][1] + 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    shown = ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs[:LISTED])
    shown += ", ..." if len(runs) > LISTED else ""
    return f"column {shown}" if len(ids) == 1 else f"{len(ids):,} columns ({shown})"


CHECKS = (
    _check_lines,
    _check_values,
    _check_absent,
    _check_labels,
    _check_groups,
    _check_columns,
    _check_remarks,
    _check_documents,
)
