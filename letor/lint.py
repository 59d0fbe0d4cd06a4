"""What is in a LETOR file, and what in it will cause trouble."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from letor.column_names import names_path, read_names
from letor.compression import read_buffer
from letor.dataset import RankingData
from letor.errors import InputError
from letor.findings import CHECKS, LEVELS, LISTED, Finding, Inspected
from letor.kernels import svmlight as kernels
from letor.lines import BadLine
from letor.parser import MARK_BITS, Rows, parse, settle_doubtful_rows
from letor.svmlight import MAX_COLUMNS, assemble

__all__ = ["Finding", "Validation", "render", "validate"]

_BLOCK = 1 << 12  # rows looked at together, so that no copy of X is made


@dataclass(frozen=True)
class Validation:
    """The content of a LETOR file and what was found in it.

    Attributes:
        path: the file.
        rows, queries, columns: counts; ``columns`` is the largest id.
        documents: number of distinct document ids, None where comments name none.
        labels: number of rows of each label, labels increasing.
        rows_per_query: least, median and greatest number of rows of a query.
        queries_without_relevant: number of queries that have no label above 0.
        bad_lines: the malformed lines.
        findings: in order of level, then of the checks.
    """

    path: str
    rows: int
    queries: int
    columns: int
    documents: int | None
    labels: dict[float, int]
    rows_per_query: tuple[int, float, int]
    queries_without_relevant: int
    bad_lines: list[BadLine]
    findings: list[Finding]

    @property
    def is_readable(self) -> bool:
        """Whether ``read_letor`` reads the whole file with its defaults."""
        return all(finding.level != "error" for finding in self.findings)


def validate(
    path: str | os.PathLike[str], *, max_columns: int = MAX_COLUMNS, threads: int | None = None
) -> Validation:
    """Look through a LETOR file, and what the file of names beside it says of its columns.

    Raises:
        InputError: no such file, damaged compression, not a single good line, or a damaged file
            of names.
    """
    rows = parse(read_buffer(path), max_columns=max_columns, threads=threads)
    bad = list(settle_doubtful_rows(rows))
    good = rows.flags & kernels.BAD == 0
    if not good.any():
        raise InputError(f"{path}: no rows{f'; {bad[0]}' if bad else ''}")
    kinds = _count_kinds(rows, good)
    line_start = rows.spans[good, kernels.LINE_START]
    data = assemble(rows, use_minimum=False, comments=True)
    beside = names_path(path)
    columns = read_names(beside) if beside.is_file() else []
    file = Inspected(data, bad, rows.buffer, line_start, kinds, *_ranges(data), columns)
    findings = [finding for check in CHECKS for finding in check(file)]
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
        bad_lines=bad,
        findings=sorted(findings, key=lambda finding: LEVELS.index(finding.level)),
    )


def render(validation: Validation) -> str:
    """A validation as text for people."""
    v = validation
    least, median, most = v.rows_per_query
    documents = "none named" if v.documents is None else f"{v.documents:,} distinct"
    lines = [
        v.path,
        f"  {v.rows:,} rows, {v.queries:,} queries, {v.columns:,} columns; documents: {documents}",
        f"  rows per query: {least:,} to {most:,}, median {median:,.1f}; "
        f"{v.queries_without_relevant:,} queries without a relevant document",
        "  labels: " + _histogram(v.labels),
    ]
    for finding in v.findings:
        lines.append(f"  {finding.level}: {finding.message}")
        lines.append(f"      {finding.advice}")
        if finding.code == "malformed-lines":
            lines += [f"      {line}" for line in v.bad_lines[:LISTED]]
    if not v.findings:
        lines.append("  nothing to mend")
    return "\n".join(lines)


def _histogram(labels: dict[float, int]) -> str:
    shown = [f"{label:g}: {count:,}" for label, count in list(labels.items())[:LISTED]]
    return ", ".join(shown) + (f", ... {len(labels):,} in all" if len(labels) > LISTED else "")


def _count_kinds(rows: Rows, good: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64 [5, p]: how many values of each column are absent, NULL, nan, infinite, huge."""
    kinds = np.zeros((len(MARK_BITS), rows.X.shape[1]), dtype=np.int64)
    for start in range(0, len(rows.y), _BLOCK):
        X = rows.X[start : start + _BLOCK][good[start : start + _BLOCK]]
        if np.isnan(X).any():
            bits = X.view(np.uint32)
            kinds += [(bits == mark).sum(axis=0) for mark in MARK_BITS]
    return kinds


def _ranges(data: RankingData) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32 [m, p] twice: least and greatest value of each column within each query."""
    shape = (data.n_queries, data.X.shape[1])
    low, high = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
    first = 0
    while first < data.n_queries:
        limit = data.offsets[first] + _BLOCK
        last = max(first + 1, int(np.searchsorted(data.offsets, limit, side="right")) - 1)
        X = data.X[data.order[data.offsets[first] : data.offsets[last]]]
        starts = data.offsets[first:last] - data.offsets[first]
        low[first:last] = np.fmin.reduceat(X, starts, axis=0)
        high[first:last] = np.fmax.reduceat(X, starts, axis=0)
        first = last
    return low, high
