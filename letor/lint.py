"""Validation of LETOR files: their content, what will cause trouble, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.column_names import names_path, read_names
from letor.compression import read_buffer
from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.folds import has_pairs
from letor.kernels import layout
from letor.kernels.numbers import EXACT_IN_FLOAT32, HUGE, INFINITE, NAN_TEXT, NULL
from letor.line import BadLine
from letor.lint_labels import BLOCK, descending_queries, labels_are_ranks, ordered_as_labels
from letor.lint_rules import LEVELS, RULES, Finding
from letor.parquet import read_parquet
from letor.parser import MARK_BITS, Rows, bad_lines, parse
from letor.svmlight import MAX_COLUMNS, assemble, check_is_text
from ltr_base.names import counted, rounded
from ltr_base.slices import group_ranges, slices

_LISTED = 20  # lines, columns or labels that a message lists


def _finding(
    code: str,
    concerned: NDArray[np.bool_] | None = None,
    lines: tuple[int, ...] = (),
    **values: Any,
) -> Finding:
    """The finding of a rule; ``concerned``: bool [p], the columns that it is about."""
    rule = RULES[code]
    ids = () if concerned is None else tuple((np.flatnonzero(concerned) + 1).tolist())
    message = rule.message.format(columns=_list_columns(ids), **values)
    return Finding(rule.level, code, message, rule.advice, ids, lines)


@dataclass(frozen=True)
class Validation:
    """Summary of a file of rows, and the findings of its validation.

    Attributes:
        path: the file.
        rows, queries, columns: counts; ``columns`` is the largest id.
        documents: number of distinct document ids, None if comments name none.
        labels: number of rows of each label, in ascending order of labels.
        rows_per_query: least, median and greatest number of rows of a query.
        queries_without_relevant: number of queries that have no label above 0.
        bad_lines: the malformed lines.
        findings: ordered by level, then by check.
    """

    path: str
    rows: int
    queries: int
    columns: int
    documents: int | None
    labels: dict[float, int]
    rows_per_query: tuple[int, float, int]
    queries_without_relevant: int
    bad_lines: Sequence[BadLine]
    findings: list[Finding]

    @property
    def is_readable(self) -> bool:
        """Whether ``read_rows`` reads the whole file with its defaults."""
        return all(finding.level != "error" for finding in self.findings)


def validate(
    path: str | os.PathLike[str], *, max_columns: int = MAX_COLUMNS, threads: int | None = None
) -> Validation:
    """Check a LETOR file, and the names and remarks of its columns in its side file, if there is
    one; or a Parquet file of rows.

    Raises:
        InputError: no such file, damaged compression, not a single good line, as
            :func:`~letor.parser.bad_lines`, or a damaged side file; or as
            :func:`~letor.parquet.read_parquet`.
    """
    if Path(path).suffix == ".parquet":
        check_is_text(path, max_columns)
        file, checks = _inspected_parquet(Path(path), threads), _CHECKS_OF_PARQUET
    else:
        file, checks = _inspected_text(Path(path), max_columns, threads), _CHECKS
    data = file.data
    findings = [finding for check in checks for finding in check(file)]
    labels, counts = np.unique(data.y, return_counts=True)
    relevant = np.bincount(data.query_index, weights=data.y > 0, minlength=data.n_queries)
    sizes = data.group_sizes
    return Validation(
        path=str(path),
        rows=len(data),
        queries=data.n_queries,
        columns=data.X.shape[1],
        documents=None if data.document_ids is None else len(set(data.document_ids) - {""}),
        labels=dict(zip(labels.tolist(), counts.tolist(), strict=True)),
        rows_per_query=(int(sizes.min()), float(np.median(sizes)), int(sizes.max())),
        queries_without_relevant=int((relevant == 0).sum()),
        bad_lines=file.bad,
        findings=sorted(findings, key=lambda finding: LEVELS.index(finding.level)),
    )


def _inspected_text(path: Path, max_columns: int, threads: int | None) -> Inspected:
    with reading(path):
        buffer, stored = read_buffer(path), os.stat(path).st_size
        rows = parse(buffer, max_columns=max_columns, stored=stored, threads=threads)
        bad = bad_lines(rows)
    good = rows.flags & layout.BAD == 0
    if not good.any():
        raise InputError(f"{path}: no rows{f'; {bad[0]}' if bad else ''}")
    kinds = _count_kinds(rows, good)
    line_start = rows.spans[good, layout.LINE_START]
    data = assemble(rows, use_minimum=False, comments=True)
    side_file = names_path(path)
    columns = read_names(side_file) if side_file.is_file() else []
    return Inspected(
        data, kinds, *_ranges(data), columns, bad, rows.buffer, line_start, side_file.name
    )


def _inspected_parquet(path: Path, threads: int | None) -> Inspected:
    data = read_parquet(path, threads=threads)
    if not len(data):
        raise InputError(f"{path}: no rows")
    kinds = np.zeros((len(MARK_BITS), data.X.shape[1]), np.int64)
    for rows in slices(len(data), BLOCK):
        kinds[0] += np.isnan(data.X[rows]).sum(axis=0)
        kinds[INFINITE - NULL + 1] += np.isinf(data.X[rows]).sum(axis=0)
    columns = [{"name": name, **data.provenance.get(name, {})} for name in data.column_names]
    return Inspected(data, kinds, *_ranges(data), columns)


def render(validation: Validation) -> str:
    """Format a validation as human-readable text."""
    v = validation
    least, median, most = v.rows_per_query
    documents = "none named" if v.documents is None else f"{v.documents:,} distinct"
    lines = [
        v.path,
        f"  {counted(v.rows, 'row')}, {counted(v.queries, 'query')}, "
        f"{counted(v.columns, 'column')}; documents: {documents}",
        f"  rows per query: {least:,} to {most:,}, median {median:,.1f}; "
        f"queries without a relevant document: {v.queries_without_relevant:,}",
        "  labels: " + _histogram(v.labels),
    ]
    for finding in v.findings:
        lines.append(f"  {finding.level}: {finding.message}")
        lines.append(f"      {finding.advice}")
        if finding.code == "malformed-lines":
            lines += [f"      {line}" for line in v.bad_lines[:_LISTED]]
    if not v.findings:
        lines.append("  no problems found")
    return "\n".join(lines)


def _histogram(labels: dict[float, int]) -> str:
    shown = [f"{label:g}: {count:,}" for label, count in list(labels.items())[:_LISTED]]
    return ", ".join(shown) + (f", ... {len(labels):,} in all" if len(labels) > _LISTED else "")


def _count_kinds(rows: Rows, good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64 [5, p]: how many values of each column are absent, NULL, nan, infinite, huge."""
    kinds = np.zeros((len(MARK_BITS), rows.X.shape[1]), dtype=np.int64)
    for block in slices(len(rows.y), BLOCK):
        X = rows.X[block][good[block]]
        if np.isnan(X).any():
            bits = X.view(np.uint32)
            kinds += [(bits == mark).sum(axis=0) for mark in MARK_BITS]
    return kinds


def _ranges(data: RankingData) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32 [m, p] twice: least and greatest value of each column within each query."""
    shape = (data.n_queries, data.X.shape[1])
    low, high = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
    for first, last in group_ranges(data.offsets, BLOCK):
        X = data.X[data.order[data.offsets[first] : data.offsets[last]]]
        starts = data.offsets[first:last] - data.offsets[first]
        low[first:last] = np.fmin.reduceat(X, starts, axis=0)
        high[first:last] = np.fmax.reduceat(X, starts, axis=0)
    return low, high


@dataclass
class Inspected:
    """Input of the checks: the good rows of a file as data, statistics, and, of LETOR text, its
    bad lines and where the others are."""

    data: RankingData
    kinds: NDArray[np.int64]  # [5, p], values absent (of Parquet missing), NULL, nan, inf., huge
    low: NDArray[np.float32]  # [m, p], least value of each query and column, NaN if none
    high: NDArray[np.float32]
    columns: list[dict[str, Any]]  # names and provenance, of LETOR text if there is a side file
    bad: Sequence[BadLine] = ()
    buffer: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    line_start: NDArray[np.int64] | None = None  # [n], byte position of each row
    side_file: str = ""  # its name

    def lines(self, rows: NDArray[np.int64]) -> tuple[int, ...]:
        """Line numbers of the first of the given rows; of Parquet, their own numbers from 1."""
        first = np.sort(rows)[:_LISTED]
        if self.line_start is None:
            return tuple((first + 1).tolist())
        feed = ord("\n")
        pieces = pairwise([0, *self.line_start[first].tolist()])
        counts = [int(np.count_nonzero(self.buffer[a:b] == feed)) for a, b in pieces]
        return tuple(np.cumsum([1, *counts])[1:].tolist())


def _check_lines(file: Inspected) -> Iterator[Finding]:
    if file.bad:
        numbers = tuple(line.number for line in file.bad[:_LISTED])
        yield _finding("malformed-lines", lines=numbers, n=len(file.bad))


def _check_end(file: Inspected) -> Iterator[Finding]:
    """Whether the last line is cut off: it has no line end, and lacks what all others have."""
    assert file.line_start is not None
    data, last = file.data, file.buffer[file.line_start[-1] :].tobytes()
    if len(data) == 1 or b"\n" in last:
        return
    text, comment, _ = last.partition(b"#")
    absent = data.X.shape[1] - len(text.split()[2:])
    uncommented = data.comments is not None and not comment and sum(not c for c in data.comments)
    if 0 < absent == file.kinds[0].sum() or uncommented == 1:
        yield _finding("cut-off", lines=file.lines(np.array([len(data) - 1])))


def _check_values(file: Inspected) -> Iterator[Finding]:
    codes = {NULL: "null", NAN_TEXT: "nan", INFINITE: "infinite", HUGE: "huge"}
    for kind, code in codes.items():
        counts = file.kinds[kind - NULL + 1]
        if counts.any():
            yield _finding(code, counts > 0, n=int(counts.sum()))


def _check_absent(file: Inspected) -> Iterator[Finding]:
    absent, n = file.kinds[0], len(file.data)
    never = absent == n
    if never.any():
        yield _finding("gaps", never)
    sometimes = int(absent[~never].sum())
    if sometimes:
        yield _finding("sparse", share=sometimes / (n * max(1, int((~never).sum()))))


def _check_missing(file: Inspected) -> Iterator[Finding]:
    """Missing and infinite values of Parquet."""
    missing, n = file.kinds[0], len(file.data)
    infinite = file.kinds[INFINITE - NULL + 1]
    if infinite.any():
        yield _finding("infinite-values", infinite > 0, n=int(infinite.sum()))
    if (missing == n).any():
        yield _finding("no-values", missing == n)
    some = (missing > 0) & (missing < n)
    if some.any():
        yield _finding("missing-values", some, n=int(missing[some].sum()))


def _check_labels(file: Inspected) -> Iterator[Finding]:
    y = file.data.y
    for code, bad in (("fractional-labels", y != np.rint(y)), ("negative-labels", y < 0)):
        if bad.any():
            yield _finding(code, lines=file.lines(np.flatnonzero(bad)), n=int(bad.sum()))
    if labels_are_ranks(file.data):
        yield _finding("list-labels")
    elif 1 <= y.min() < y.max():
        yield _finding("no-label-0", least=y.min())
    if np.any(y > 30):
        lines = file.lines(np.flatnonzero(y > 30))
        yield _finding("large-labels", lines=lines, largest=y.max())
    if np.all(y == y[0]):
        yield _finding("one-label", label=y[0])
    elif not has_pairs(file.data).any():
        yield _finding("equal-labels")


def _check_order(file: Inspected) -> Iterator[Finding]:
    n, mixed = descending_queries(file.data)
    # Five queries are rarely in this order by chance, even of three rows each.
    if n >= 5 and n > 0.9 * mixed:
        yield _finding("descending-labels", n=n, mixed=mixed)
    as_labels = ordered_as_labels(file.data)
    if as_labels.any():
        yield _finding("label-order", as_labels)


def _check_groups(file: Inspected) -> Iterator[Finding]:
    index = file.data.query_index
    starts = np.flatnonzero(np.concatenate([[True], index[1:] != index[:-1]]))
    again = np.ones(len(starts), dtype=bool)
    again[np.unique(index[starts], return_index=True)[1]] = False
    if again.any():
        n = len(np.unique(index[starts[again]]))
        yield _finding("split-groups", lines=file.lines(starts[again]), n=n)
    single = int(np.sum(file.data.group_sizes == 1))
    if single:
        yield _finding("single-document-queries", n=single)


def _check_ids(file: Inspected) -> Iterator[Finding]:
    for remark in rounded(query=file.data.query_ids, document=file.data.document_ids):
        yield _finding("rounded-ids", remark=remark)


def _check_columns(file: Inspected) -> Iterator[Finding]:
    low = np.fmin.reduce(file.low, axis=0)
    high = np.fmax.reduce(file.high, axis=0)
    zero = (low == 0) & (high == 0)
    within = np.all((file.low == file.high) | np.isnan(file.low), axis=0)
    within &= (low != high) & ~np.isnan(low)
    # Absent values are read as 0, so that a column with absent values is not constant.
    given = file.kinds[0] == 0
    largest = np.fmax(np.abs(low), np.abs(high))
    found = {
        "zero-columns": zero,
        "constant-columns": (low == high) & ~zero & given,
        "query-columns": within & given,
        "large-values": np.isfinite(largest) & (largest > EXACT_IN_FLOAT32),
    }
    yield from (_finding(code, columns) for code, columns in found.items() if columns.any())


def _check_names(file: Inspected) -> Iterator[Finding]:
    n_names, n_columns = len(file.columns), file.data.X.shape[1]
    if 0 < n_names != n_columns:
        code = "too-few-names" if n_names < n_columns else "too-many-names"
        yield _finding(code, side_file=file.side_file, n_names=n_names, n_columns=n_columns)


def _check_remarks(file: Inspected) -> Iterator[Finding]:
    places: dict[str, list[int]] = {}
    for place, column in enumerate(file.columns):
        remarks = column.get("remarks")
        for remark in dict.fromkeys(remarks if isinstance(remarks, list) else []):
            places.setdefault(remark, []).append(place)
    for remark, found in places.items():
        concerned = np.isin(np.arange(len(file.columns)), found)
        name = f" ({file.columns[found[0]]['name']})" if len(found) == 1 else ""
        yield _finding("column-remarks", concerned, name=name, remark=remark)


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
        lines = file.lines(np.array(twice, dtype=np.int64))
        yield _finding("duplicate-documents", lines=lines, n=len(twice))
    if unnamed:
        yield _finding("unnamed-documents", n=unnamed)


_Checks = tuple[Callable[[Inspected], Iterator[Finding]], ...]
_CHECKS_OF_ROWS: _Checks = (
    _check_labels, _check_order, _check_groups, _check_ids, _check_columns, _check_names,
    _check_remarks, _check_documents,
)  # fmt: skip
_CHECKS: _Checks = (_check_lines, _check_end, _check_values, _check_absent, *_CHECKS_OF_ROWS)
_CHECKS_OF_PARQUET: _Checks = (_check_missing, *_CHECKS_OF_ROWS)


def _list_columns(ids: tuple[int, ...]) -> str:
    """Column ids in short form: ``column 7``, ``5 columns (1-3, 6, 9)``."""
    runs: list[list[int]] = []
    for i in ids:
        if runs and i == runs[-1][1] + 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    shown = ", ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs[:_LISTED])
    shown += ", ..." if len(runs) > _LISTED else ""
    return f"column {shown}" if len(ids) == 1 else f"{len(ids):,} columns ({shown})"
