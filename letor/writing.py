"""Write LETOR / SVMlight text, and append columns to such files without touching the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray

from letor.compression import open_input, open_output
from letor.dataset import RankingData
from letor.errors import InputError
from letor.files import atomic_path
from letor.kernels import layout
from letor.kernels import svmlight_writing as kernels
from letor.parser import Rows, parse, settle_doubtful_rows
from letor.string_array import StringArray
from ltr_base.parallel import map_blocks
from ltr_base.slices import slices

_BLOCK_BYTES = 1 << 22
_READ_BYTES = 1 << 24
#: Larger ids of a file that columns are appended to are mistakes.
_MAX_COLUMNS = 1_000_000
_NO_ID = re.compile(r"[\s\x00-\x20#]")
_NOTHING = np.frombuffer(b"", dtype=np.uint8)


def write_letor(
    data: RankingData,
    path: str | os.PathLike[str],
    *,
    digits: int | None = None,
    line_end: Literal["\n", "\r\n"] = "\n",
    threads: int | None = None,
) -> None:
    """Write a data set as LETOR / SVMlight text; .gz, .bz2 and .zst are compressed.

    Columns are numbered 1 to p in their order; NaN values are left out (``read_letor`` with
    ``missing=nan`` restores them). Comments are written as they are; without comments, document
    ids become ``#docid = ID``. LETOR text has no place for column names and provenance: Parquet
    keeps those.

    Args:
        data: the rows, written in their order.
        path: the file; it appears only once it is complete.
        digits: decimals of the values (0 to 12; LETOR has 6), or None for the shortest text that
            reads back as the same float32.
        line_end: LF, or CRLF as in LETOR's own files.
        threads: number of threads; default: all cores. The file does not depend on it.

    Raises:
        InputError: an infinite value, one too large for fixed decimals, a label that is not
            finite, or a query id, document id or comment that the format cannot hold.
    """
    if digits is not None and not 0 <= digits <= kernels.MAX_FIXED_DIGITS:
        raise InputError(f"digits={digits}: must be 0 to {kernels.MAX_FIXED_DIGITS}, or None")
    if line_end not in ("\n", "\r\n"):
        raise InputError(f"line_end={line_end!r}: choose LF or CRLF")
    finite = np.isfinite(data.y)
    if not finite.all():
        raise InputError(f"row {int(np.argmin(finite))}: the label is not finite")
    queries = StringArray.from_values(data.query_ids)
    _check_words(queries, "query id")
    comments = _comments(data)
    if line_end == "\n" and np.any(_last_bytes(comments) == ord("\r")):
        raise InputError("a comment ends in CR, which LF makes a part of the line end; strip it")
    end = np.frombuffer(line_end.encode(), dtype=np.uint8)

    def write_block(rows: slice) -> memoryview:
        heads, head_spans = _heads(data.y[rows], data.query_index[rows], queries)
        tails = comments[rows]
        return _format(
            (heads, head_spans),
            (tails.buffer, tails.spans),
            data.X[rows],
            data.column_names,
            first_id=1,
            digits=digits,
            line_end=end,
            row=rows.start,
        )

    row_size = _pair_size(data.X.shape[1], digits) * data.X.shape[1] + 100
    blocks = slices(len(data), _BLOCK_BYTES // row_size)
    with atomic_path(path) as temporary, open_output(temporary, Path(path).suffix) as stream:
        stream.writelines(map_blocks(write_block, blocks, threads))


def append_columns(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    values: NDArray[np.floating],
    *,
    first_id: int | None = None,
    threads: int | None = None,
) -> list[int]:
    """Copy a LETOR file, appending columns to its rows; everything else is kept byte for byte.

    The new ``id:value`` pairs go before the comment or line end; the text before them, the
    comment, the line end, blank lines and comment lines stay as they are. The file is read twice
    (once to check all of it) in pieces, so that it may be larger than memory. NaN is left out.

    Args:
        source: the file, plain or compressed.
        target: the new file, plain or compressed; may be the same path.
        values: float32 [n, k], row i for the i-th row of the file; it may be memory-mapped.
        first_id: id of the first new column; default: the largest id of the file + 1.
        threads: number of threads; default: all cores.

    Returns:
        The ids of the new columns.

    Raises:
        InputError: a bad line; ids not below ``first_id``; a number of rows that differs from
            that of ``values``; or an infinite value.
    """
    n, largest = _survey(source, threads)
    first_id = largest + 1 if first_id is None else first_id
    if first_id <= largest:
        raise InputError(f"first_id={first_id}: {source} has a column {largest} already")
    if values.ndim != 2 or len(values) != n:
        raise InputError(f"values have shape {values.shape}, but {source} has {n} rows")
    row = 0
    with atomic_path(target) as temporary, open_output(temporary, Path(target).suffix) as stream:
        for buffer in _line_buffers(source):
            rows = parse(buffer, width=0, max_columns=_MAX_COLUMNS, threads=threads)
            list(settle_doubtful_rows(rows))
            added = values[row : row + len(rows.y)]
            _write_appended(stream, rows, added, first_id, row, threads)
            row += len(rows.y)
    return list(range(first_id, first_id + values.shape[1]))


def check_ids(ids: Sequence[str], what: str) -> None:
    """Check that LETOR text and TREC files can hold ids, before time is spent on the work.

    Args:
        ids: document or query ids. what: their kind, for the message: "document id".

    Raises:
        InputError: an id is empty, or has a blank, a control character or '#'.
    """
    if all(ids) and not _NO_ID.search("".join(ids)):
        return
    wrong, *others = (word for word in ids if not word or _NO_ID.search(word))
    more, rename = (f" and {len(others):,} more", "them, the first") if others else ("", "it,")
    raise InputError(
        f"{what} {wrong!r}{more}: LETOR text and TREC files need ids without blanks or '#'; rename "
        f"{rename} to {_NO_ID.sub('_', wrong) or '_'!r} for example"
    )


def _check_words(words: StringArray, what: str) -> None:
    """Raise InputError for words that a LETOR line cannot hold."""
    used = words.buffer
    if np.any((used <= 32) | (used == ord("#"))) or np.any(words.start == words.stop):
        for word in words:
            if not word or any(c <= " " or c == "#" for c in word):
                raise InputError(
                    f"{what} {word!r}: LETOR text needs one without blanks or '#', unlike .parquet"
                )


def _comments(data: RankingData) -> StringArray:
    """The comment of each row, checked; made from document ids if the data has no comments."""
    if data.comments is None and data.document_ids is None:
        nowhere = np.zeros(len(data), dtype=np.int64)
        return StringArray(_NOTHING, nowhere, nowhere, is_text=False)
    if data.comments is None:
        ids = () if data.document_ids is None else data.document_ids
        _check_words(StringArray.from_values([d or "-" for d in ids]), "document id")
        values = [f"#docid = {d}" if d else "" for d in ids]
        return StringArray.from_values(values)
    comments = StringArray.from_values(data.comments)
    present = comments.start < comments.stop
    if np.any(comments.buffer[comments.start[present]] != ord("#")):
        raise InputError("a comment does not begin with '#'")
    if np.any(comments.buffer == ord("\n")):
        raise InputError("a comment has a line feed")
    return comments


def _last_bytes(texts: StringArray) -> NDArray[np.uint8]:
    """uint8: the last byte of each text that has one."""
    return texts.buffer[texts.stop[texts.start < texts.stop] - 1]


def _heads(
    y: NDArray[np.float32], query_index: NDArray[np.int64], queries: StringArray
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    y = np.require(y, np.float32, ["C", "W"])
    query_index = np.require(query_index, np.int64, ["C", "W"])
    lengths = queries.stop - queries.start
    room = len(y) * (kernels.MAX_NUMBER_LENGTH + 6) + int(lengths[query_index].sum())
    heads = np.empty(room, dtype=np.uint8)
    spans = np.empty((len(y), 2), dtype=np.int64)
    bits = y.view(np.uint32)
    kernels.write_heads(y, bits, query_index, queries.buffer, queries.spans, heads, spans)
    heads.flags.writeable = False
    return heads, spans


def _pair_size(largest_id: int, digits: int | None) -> int:
    """Largest number of bytes that `` id:value`` may take."""
    number = kernels.MAX_NUMBER_LENGTH if digits is None else kernels.MAX_FIXED_LENGTH
    return 2 + len(str(largest_id)) + number


def _format(
    heads: tuple[NDArray[np.uint8], NDArray[np.int64]],
    tails: tuple[NDArray[np.uint8], NDArray[np.int64]],
    values: NDArray[np.floating],
    names: Sequence[str],
    *,
    first_id: int,
    digits: int | None,
    line_end: NDArray[np.uint8],
    row: int,
) -> memoryview:
    """The text of a block of rows; ``row`` and ``names`` serve the error message."""
    values = np.require(values, np.float32, ["C", "W"])
    n, k = values.shape
    room = n * k * _pair_size(first_id + k, digits) + n * (1 + line_end.size)
    room += sum(int((spans[:, 1] - spans[:, 0]).sum()) for _, spans in (heads, tails))
    out = np.empty(room, dtype=np.uint8)
    fixed = -1 if digits is None else digits
    length, i, j = kernels.write_rows(
        *heads, *tails, values, values.view(np.uint32), first_id, fixed, line_end, out
    )
    if length < 0:
        raise InputError(
            f"row {row + i}, column {names[j]}: LETOR text cannot hold {values[i, j]}"
            + (f" with {digits} decimals; use digits=None" if np.isfinite(values[i, j]) else "")
        )
    return out[:length].data


def _line_buffers(path: str | os.PathLike[str]) -> Iterator[NDArray[np.uint8]]:
    """A file's content in pieces of whole lines."""
    with open_input(path) as stream:
        while piece := stream.read(_READ_BYTES):
            yield np.frombuffer(piece + stream.readline(), dtype=np.uint8)


def _survey(path: str | os.PathLike[str], threads: int | None) -> tuple[int, int]:
    """Check all lines of a file: (number of rows, largest id)."""
    n = largest = lines = 0
    for buffer in _line_buffers(path):
        rows = parse(buffer, width=0, max_columns=_MAX_COLUMNS, threads=threads)
        for bad in settle_doubtful_rows(rows, line=lines + 1):
            raise InputError(f"{path}, {bad}")
        n += len(rows.y)
        largest = max(largest, rows.largest)
        lines += int(np.count_nonzero(buffer == ord("\n")))
    return n, largest


def _write_appended(
    stream: IO[bytes],
    rows: Rows,
    values: NDArray[np.floating],
    first_id: int,
    row: int,
    threads: int | None,
) -> None:
    """Write a piece of the source with its rows' new values."""
    cut, stop = rows.spans[:, layout.CUT], rows.spans[:, layout.LINE_STOP]
    # What lies between the end of a row and the cut of the next (line end, other lines, data)
    # is the head of the next.
    heads = np.stack([np.concatenate([[0], stop[:-1]])[: len(stop)], cut], axis=1)
    tails = np.stack([cut, stop], axis=1)
    names = [str(first_id + j) for j in range(values.shape[1])]

    def write_block(part: slice) -> memoryview:
        return _format(
            (rows.buffer, heads[part]),
            (rows.buffer, tails[part]),
            values[part],
            names,
            first_id=first_id,
            digits=None,
            line_end=_NOTHING,
            row=row + part.start,
        )

    mean_size = rows.buffer.size // max(len(cut), 1) + 30 * len(names)
    blocks = slices(len(cut), _BLOCK_BYTES // (mean_size + 1))
    stream.writelines(map_blocks(write_block, blocks, threads))
    stream.write(rows.buffer[stop[-1] if len(stop) else 0 :].tobytes())
