"""Read and write LETOR / SVMlight text, in parallel, with full validation, losing nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from letor.compression import COMPRESSED, read_buffer
from letor.dataset import RankingData, distinct
from letor.errors import InputError, LetorWarning, reading
from letor.kernels import layout
from letor.line import BadLine
from letor.parser import KERNELS_FROM_BYTES, NULL_BITS, Rows, bad_lines, parse, settle_doubtful_rows
from letor.query_sizes import with_query_ids
from letor.string_array import StringArray
from letor.writing import append_columns, write_letor
from ltr_base.names import counted
from ltr_base.parallel import thread_count
from ltr_base.user_warning import warn_user

__all__ = ["BadLine", "LetorWarning", "append_columns", "read_letor", "write_letor"]

MAX_COLUMNS = 10_000

#: ``docid = ID`` and ``docno = ID``, even if one of them is the ID of the other.
_DOCUMENT = re.compile(rb"(?:^|(?<=[# \t]))(?=doc(no|id)[ \t]*=[ \t]*([^ \t]+))")


def names_path(path: str | os.PathLike[str]) -> Path:
    """Path of a LETOR file's side file: ``train.columns.json`` for ``train.txt.zst``."""
    path = Path(path)
    stem = path.name
    for suffix in COMPRESSED:
        stem = stem.removesuffix(suffix)
    return path.parent / f"{stem.removesuffix('.txt')}.columns.json"


def read_letor(
    path: str | os.PathLike[str],
    *,
    missing: float = 0.0,
    null: Literal["min", "nan"] = "min",
    non_finite: Literal["raise", "nan"] = "raise",
    on_error: Literal["raise", "skip"] = "raise",
    rejected: list[BadLine] | None = None,
    n_columns: int | None = None,
    max_columns: int = MAX_COLUMNS,
    comments: bool = True,
    query_sizes: Sequence[int] | None = None,
    threads: int | None = None,
    side_file: bool = False,
) -> RankingData:
    """Read a LETOR / SVMlight file, plain or compressed (.gz, .bz2, .zst).

    A line is ``label qid:ID id:value id:value ... #comment``; ids start at 1 and increase; query
    ids are any text without blanks; LF and CRLF end lines; blank lines and comment lines are
    skipped; rows of a query need not be adjacent. Numbers are rounded correctly to float32.

    Args:
        path: the file.
        missing: value of columns absent from a line: 0 or NaN.
        null: ``"min"`` replaces ``NULL`` by the least value of the column within the query (the
            MIN version of LETOR 4.0; 0 if the query has only NULLs), ``"nan"`` by NaN.
        non_finite: what to do with ``nan``, ``inf`` and numbers beyond float32 (Istella marks
            missing values by 1.797e308): refuse the line, or read NaN.
        on_error: ``"raise"`` stops at the first bad line; ``"skip"`` leaves bad lines out and
            lists them in ``rejected``, or warns with their number if that is not given.
        rejected: receives a ``BadLine`` for each line left out.
        n_columns: number of columns of X; larger ids are errors. Default: the largest id.
        max_columns: ids above this are errors (so that a typo cannot allocate terabytes).
        comments: whether to keep comments and the document ids in them (``#docid = ID`` of
            LETOR, ``docno = ID`` of Terrier, which wins).
        query_sizes: number of rows of each query, for lines without ``qid:ID``, see
            :mod:`letor.query_sizes`; ids are then 1, 2, ...
        threads: number of threads; default: all cores. The result does not depend on it.
        side_file: whether the caller reads the side file, if there is one.

    Returns:
        The rows in file order; ``comments`` and ``document_ids`` are ``StringArray``, or None if
        no line has any.

    Warns:
        LetorWarning: lines were left out; or a side file beside the file gives names of columns and
            judged documents without a row, which :func:`letor.column_names.read_rows` reads.

    Raises:
        ValueError: fewer than one thread.
        InputError: no such file, damaged compression, no rows, or a bad line (with its number,
            text and reason).
    """
    if not side_file and names_path(path).is_file():
        warn_user(
            f"{path}: {names_path(path).name} is not read, so columns have only numbers, and "
            "measures do not count judged documents without a row; letor.read_rows reads both",
            LetorWarning,
        )
    _check_choices(null=null, non_finite=non_finite, on_error=on_error)
    _check_options(missing, n_columns, max_columns)
    thread_count(threads)
    limit = n_columns or max_columns
    with reading(path):
        buffer = read_buffer(path)
        if query_sizes is not None:
            buffer = with_query_ids(buffer, query_sizes)
        rows = parse(
            buffer,
            missing=missing,
            width=n_columns,
            max_columns=limit,
            refuse_non_finite=non_finite == "raise",
            stored=os.stat(path).st_size,
            threads=threads,
        )
        if on_error == "raise":
            for line in settle_doubtful_rows(rows):
                raise InputError(f"{path}, {line}")
        bad = bad_lines(rows)
    lines = counted(len(bad), "bad line")
    if rejected is not None:
        rejected.extend(bad)
    elif bad:
        message = f"{path}: {lines} left out; the first is {bad[0]}"
        warn_user(message, LetorWarning)
    if len(rows.y) == len(bad):
        raise InputError(f"{path}: no rows{f' but {lines}' if bad else ''}")
    return assemble(rows, use_minimum=null == "min", comments=comments)


def assemble(rows: Rows, *, use_minimum: bool, comments: bool) -> RankingData:
    """Make a data set of the rows that are not flagged BAD, with marks replaced."""
    query_ids, query_index = _number_queries(rows)
    X, y, spans, flags = rows.X, rows.y, rows.spans, rows.flags
    if np.any(flags & layout.BAD):
        kept = flags & layout.BAD == 0
        X, y, spans, query_index = X[kept], y[kept], spans[kept], query_index[kept]
    if np.any(flags & (layout.HAS_NULL | layout.HAS_NON_FINITE)):
        _replace_marks(X, query_index, use_minimum)
    texts, documents = _pack_comments(rows.buffer, spans) if comments else (None, None)
    names = [str(j + 1) for j in range(X.shape[1])]
    return RankingData(X, y, query_ids, query_index, names, documents, texts)


def _replace_marks(
    X: NDArray[np.float32], query_index: NDArray[np.int64], use_minimum: bool
) -> None:
    """Replace all marks by plain NaN, except that ``use_minimum`` replaces NULL by LETOR's MIN
    rule: the least value of its column within its query, 0 if there is none."""
    rows, columns = np.nonzero(X.view(np.uint32) == NULL_BITS)
    X[np.isnan(X)] = np.nan
    if use_minimum and len(rows):
        order = np.argsort(query_index, kind="stable")
        starts = np.flatnonzero(np.diff(query_index[order], prepend=-1))
        lowest = np.fmin.reduceat(X[order], starts, axis=0)
        X[rows, columns] = np.nan_to_num(lowest[query_index[rows], columns])


def _number_queries(rows: Rows) -> tuple[list[str], NDArray[np.int64]]:
    """The query ids in order of first appearance, and int64 [n], the position of each row's among
    them; undefined for rows flagged BAD."""
    bad = rows.flags & layout.BAD != 0
    begins = rows.flags & layout.SAME_QUERY == 0
    begins[1:] |= bad[:-1]
    begins &= ~bad
    start, stop = rows.spans[begins][:, [layout.QUERY_START, layout.QUERY_STOP]].T
    ids, index = distinct(StringArray(rows.buffer, start, stop, is_text=True))
    return ids, index[np.cumsum(begins) - 1]


def _pack_comments(
    buffer: NDArray[np.uint8], spans: NDArray[np.int64]
) -> tuple[StringArray | None, StringArray | None]:
    """Comments and document ids, copied so that they outlive the mapped file."""
    offsets = np.zeros(len(spans) + 1, dtype=np.int64)
    np.cumsum(spans[:, layout.LINE_STOP] - spans[:, layout.CUT], out=offsets[1:])
    if offsets[-1] == 0:
        return None, None
    packed = np.empty(offsets[-1], dtype=np.uint8)
    documents = np.empty((len(spans), 2), dtype=np.int64)
    if packed.size < KERNELS_FROM_BYTES:
        has_documents = _pack_plainly(buffer, spans, offsets, packed, documents)
    else:
        from letor.kernels.svmlight import pack_comments  # with numba

        has_documents = pack_comments(buffer, spans, offsets, packed, documents)
    packed.flags.writeable = False
    texts = StringArray(packed, offsets[:-1], offsets[1:], is_text=False)
    if not has_documents:
        return texts, None
    start, stop = np.ascontiguousarray(documents.T)
    return texts, StringArray(packed, start, stop, is_text=True)


def _pack_plainly(
    buffer: NDArray[np.uint8],
    spans: NDArray[np.int64],
    offsets: NDArray[np.int64],
    packed: NDArray[np.uint8],
    documents: NDArray[np.int64],
) -> bool:
    """Like :func:`letor.kernels.svmlight.pack_comments`, but without loading numba, for short
    texts."""
    for row, (start, stop) in enumerate(spans[:, [layout.CUT, layout.LINE_STOP]].tolist()):
        comment = buffer[start:stop].tobytes()
        packed[offsets[row] : offsets[row + 1]] = buffer[start:stop]
        found = {m[1]: m.span(2) for m in reversed(list(_DOCUMENT.finditer(comment)))}
        documents[row] = found.get(b"no") or found.get(b"id") or (0, 0)
    documents += offsets[:-1, None]
    return bool((documents[:, 0] < documents[:, 1]).any())


def _check_choices(**options: str) -> None:
    known = {"null": ("min", "nan"), "non_finite": ("raise", "nan"), "on_error": ("raise", "skip")}
    for name, value in options.items():
        if value not in known[name]:
            raise InputError(f"{name}={value!r}: choose {' or '.join(known[name])}")


def check_is_text(path: str | os.PathLike[str], max_columns: int) -> None:
    """Raise InputError if a limit of ids is given for a file that has none, not being LETOR text.

    Args:
        max_columns: the limit; ``MAX_COLUMNS`` is that of files whose limit is not given.
    """
    if max_columns != MAX_COLUMNS:
        raise InputError(
            f"{path}: max_columns (--max-columns) is for LETOR text, where a typo in an id would "
            "make columns: leave it out"
        )


def _check_options(missing: float, n_columns: int | None, max_columns: int) -> None:
    if not (missing == 0 or np.isnan(missing)):
        raise InputError(f"missing={missing}: columns that a line does not give are 0 or NaN")
    for name, value in (("n_columns", n_columns), ("max_columns", max_columns)):
        if value is not None and not 1 <= value < 10**8:
            raise InputError(f"{name}={value}: must be between 1 and 99,999,999")
