"""Parts of folds as Parquet files that refer to one file of all rows.

In a folder of folds, ``columns.parquet`` holds all rows with the columns that are the same in every
fold, in the format of :func:`letor.parquet.write_parquet`. ``Fold1/train.parquet`` and so on hold
the numbers (from 0) of the rows in a part, and the columns that the fold adds to them;
:func:`letor.parquet.read_parquet` reads both together.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from letor.arrow_rows import KEY, metadata_text
from letor.errors import InputError, reading
from letor.files import atomic_path
from letor.missing import Missing

#: The file of all rows, in the folder above that of a part.
ALL_ROWS = "columns.parquet"
_BLOCK_BYTES = 1 << 24  # size of a row group
_END = 8  # bytes of a Parquet file after its footer: the footer's length, and "PAR1"


def all_rows_path(part: str | os.PathLike[str]) -> Path:
    """The file of all rows that a part of a fold belongs to."""
    return Path(part).parent.parent / ALL_ROWS


def write_part(
    path: str | os.PathLike[str],
    has: NDArray[np.bool_],
    values: NDArray[np.float32],
    provenance: Mapping[str, Mapping[str, Any]],
    missing: Missing | None,
) -> None:
    """Write a part of a fold; the file of all rows must exist already. Values are read one row
    group at a time, so that they may be memory-mapped.

    Args:
        path: the file; it appears only once it is complete.
        has: bool [n], which of all rows are in the part; must select whole queries.
        values: float32 [n, k], the columns that the fold adds, for all rows.
        provenance: provenance of these columns, keyed by their names, in order.
        missing: judged documents and queries without a row in the part, if known.

    Raises:
        InputError: provenance is not JSON-compatible.
    """
    path, names = Path(path), list(provenance)
    number = "row"
    while number in names:
        number += "_"
    meta = {
        "columns": names,
        "provenance": dict(provenance),
        "part": {"row": number, "digest": footer_digest(all_rows_path(path))},
    }
    text = metadata_text(meta, missing)
    fields = [pa.field(number, pa.int64(), nullable=False)]
    fields += [pa.field(name, pa.float32(), nullable=False) for name in names]
    schema = pa.schema(fields, {KEY: text})
    step = max(1024, _BLOCK_BYTES // (4 * len(fields)))
    with (
        atomic_path(path) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            # Most differences of row numbers are 1: they take no space even uncompressed.
            compression={number: "NONE", **dict.fromkeys(names, "LZ4")},
            column_encoding={number: "DELTA_BINARY_PACKED"},
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        ) as writer,
    ):
        for first in range(0, len(has), step):
            rows = first + np.flatnonzero(has[first : first + step])
            if len(rows):
                columns = np.ascontiguousarray(values[rows].T)
                writer.write_table(pa.Table.from_arrays([rows, *columns], schema=schema))


def read_numbers(
    path: Path, file: pq.ParquetFile, part: Mapping[str, Any], all_rows: pq.FileMetaData
) -> NDArray[np.int64]:
    """int64: the numbers of a part's rows, ascending.

    Args:
        part: the entry "part" of its metadata. all_rows: metadata of the file of all rows.

    Raises:
        InputError: the numbers refer to another file of all rows, or are damaged.
    """
    home = all_rows_path(path)
    if footer_digest(home) != part["digest"]:
        raise InputError(f"{path}: its rows refer to another {home}; build the folds again")
    rows: NDArray[np.int64] = file.read(columns=[part["row"]])[part["row"]].to_numpy()
    inside = not len(rows) or 0 <= rows[0] <= rows[-1] < all_rows.num_rows
    if rows.dtype != np.int64 or not inside or np.any(rows[1:] <= rows[:-1]):
        raise InputError(f"{path}: its rows are not numbers of rows of {home} in ascending order")
    return rows


def footer_digest(path: Path) -> str:
    """SHA-256 of the footer of a Parquet file: its columns, metadata, and positions of all data.
    (Hashing all bytes would take as long as reading them.)

    Raises:
        InputError: the file cannot be read.
    """
    with reading(path), path.open("rb") as file:
        size = file.seek(-_END, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - length))
        return hashlib.sha256(file.read(length)).hexdigest()
