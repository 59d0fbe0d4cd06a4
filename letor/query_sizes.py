"""Rows without query ids, whose queries are told by their sizes in a second file: the text files of
LightGBM and XGBoost."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from letor.compression import text_lines
from letor.errors import InputError
from ltr_base.names import counted

#: Endings of the file of sizes, added to the name of the file of rows.
_ENDINGS = (".query", ".group")


def query_sizes(path: Path) -> list[int] | None:
    """The number of rows of each query, from the file ``NAME.query`` (LightGBM) or ``NAME.group``
    (XGBoost) beside ``path``, one on each line; None if neither is there.

    Raises:
        InputError: a line is not a whole number.
    """
    beside = [path.with_name(path.name + ending) for ending in _ENDINGS]
    found = next((other for other in beside if other.is_file()), None)
    if found is None:
        return None
    sizes = []
    for number, line in text_lines(found):
        if not line.strip().isdecimal():
            raise InputError(
                f"{found}, line {number}: {line[:40]!r} is not the number of rows of a query"
            )
        sizes.append(int(line))
    return sizes


def with_query_ids(buffer: NDArray[np.uint8], sizes: Sequence[int]) -> NDArray[np.uint8]:
    """Text of rows with query ids 1, 2, ... after the labels; lines keep their numbers.

    Args:
        buffer: text whose lines are ``label id:value ...``.
        sizes: number of rows of each query, in order.

    Raises:
        InputError: the text has another number of rows.
    """
    lines = buffer.tobytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    rows = [i for i, line in enumerate(lines) if line.split(b"#", 1)[0].strip()]
    if len(rows) != sum(sizes):
        queries = counted(len(sizes), "query")
        raise InputError(f"{len(rows):,} rows, but the sizes of {queries} sum to {sum(sizes):,}")
    for place, query in zip(rows, np.repeat(np.arange(len(sizes)), sizes).tolist(), strict=True):
        label, *values = lines[place].split(maxsplit=1)
        lines[place] = b" ".join([label, b"qid:%d" % (query + 1), *values])
    return np.frombuffer(b"\n".join(lines), np.uint8)
