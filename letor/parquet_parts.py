"""Parts of folds as Parquet, beside one file of all rows.

Of folds in a folder, ``columns.parquet`` holds all rows with the columns that are the same in every
fold, as of :func:`letor.parquet.write_parquet`. ``Fold1/train.parquet`` and so on hold which of
these rows a part has, by their numbers from 0 on, and the columns that the fold adds to them;
:func:`letor.parquet.read_parquet` reads both together.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from letor.arrow_rows import KEY, VERSION
from letor.errors import InputError, reading
from letor.files import atomic_path
from letor.missing import Missing

#: The file of all rows, in the folder above that of a part.
ALL_ROWS = "columns.parquet"
_BLOCK_BYTES = 1 << 24  # of a row group
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
    """Write a part of a fold; the file of all rows is there already. Values are looked at a row
    group at a time, so that they may lie in a file that is mapped into memory.

    Args:
        path: the file; it appears when it is complete.
        has: bool [n], which of all rows the part has, those of whole queries.
        values: float32 [n, k], of all rows, the columns that the fold adds.
        provenance: of these columns, by their names, in order.
        missing: what is missing of the part, where it is known.

    Raises:
        InputError: provenance that is no JSON.
    """
    path, names = Path(path), list(provenance)
    number = "row"
    while number in names:
        number += "_"
    meta: dict[str, Any] = {
        "version": VERSION,
        "columns": names,
        "provenance": dict(provenance),
        "part": {"row": number, "digest": footer_digest(all_rows_path(path))},
    }
    if missing is not None:
        meta["missing"] = missing.to_json()
    try:
        text = json.dumps(meta)
    except (TypeError, ValueError) as error:
        raise InputError(f"provenance must be JSON-compatible: {error}") from error
    fields = [pa.field(number, pa.int64(), nullable=False)]
    fields += [pa.field(name, pa.float32(), nullable=False) for name in names]
    schema = pa.schema(fields, {KEY: text})
    step = max(1024, _BLOCK_BYTES // (4 * len(fields)))
    with (
        atomic_path(path) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            # Differences of row numbers take no room, uncompressed: most are 1.
            compression={number: "NONE", **dict.fromkeys(names, "LZ4")},
            column_encoding={number: "DELTA_BINARY_PACKED"},
            use_dictionary=False,
            write_statistics=False,
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
        part: what its metadata say of it. all_rows: of the file of all rows.

    Raises:
        InputError: they were numbered in another file, or are damaged.
    """
    home = all_rows_path(path)
    if footer_digest(home) != part["digest"]:
        raise InputError(f"{path}: its rows are of another {home} than this; build the folds again")
    rows: NDArray[np.int64] = file.read(columns=[part["row"]])[part["row"]].to_numpy()
    inside = not len(rows) or 0 <= rows[0] <= rows[-1] < all_rows.num_rows
    if rows.dtype != np.int64 or not inside or np.any(rows[1:] <= rows[:-1]):
        raise InputError(f"{path}: its rows are not numbers of rows of {home}, in their order")
    return rows


def footer_digest(path: Path) -> str:
    """SHA-256 of the footer of a Parquet file: its columns and metadata, and where everything
    stands. (That of all bytes would take as long as to read them.)

    Raises:
        InputError: the file cannot be read.
    """
    with reading(path), path.open("rb") as file:
        size = file.seek(-_END, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(0, size - length))
        return hashlib.sha256(file.read(length)).hexdigest()
