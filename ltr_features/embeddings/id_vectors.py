"""Read vectors of queries and documents that another model made, with their ids."""

from __future__ import annotations

import os
import zipfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import scipy.sparse as sp
from numpy.typing import NDArray
from safetensors.numpy import load_file

from letor.compression import check_unpacked, text_lines
from letor.errors import InputError, reading
from letor.parquet import check_parquet_size, plain_texts
from ltr_features.embeddings.vector_files import read_vectors

#: Suffixes of array files, whose ids are in a separate text file.
ARRAYS = (".npy", ".npz", ".safetensors")


class IdVectors(NamedTuple):
    """Dense or sparse vectors with ids.

    Attributes:
        ids: n distinct ids.
        rows: float [n, width], memory-mapped if the file is .npy; or CSR.
        path: the file.
    """

    ids: list[str]
    rows: NDArray[np.floating] | sp.csr_matrix
    path: Path

    @property
    def width(self) -> int:
        return int(self.rows.shape[1])


def ids_beside(path: str | os.PathLike[str]) -> Path | None:
    """The text file with the ids of an array file's rows, unless another one is named; None for
    files of other kinds, which have ids themselves."""
    path = Path(path)
    return path.with_suffix(".txt") if path.suffix in ARRAYS else None


def read_id_vectors(
    path: str | os.PathLike[str], ids: str | os.PathLike[str] | None = None
) -> IdVectors:
    """Read vectors and their ids; the numbers of memory-mapped files are not checked.

    Args:
        path: .npy (two axes), .npz (``scipy.sparse.save_npz``, for sparse models), .safetensors
            (one tensor), .parquet (a column of ids, text or integer, and one of lists of numbers);
            any other file is read in word2vec's or GloVe's format, whose words are the ids (a
            repeated id keeps its first vector).
        ids: for .npy, .npz and .safetensors: a text file with one id per line, in the order of the
            rows; by default the file of the same name with the suffix .txt.

    Raises:
        InputError: a file does not exist or does not have the format of its suffix, or there is
            not exactly one id per row, or an id is repeated, or ``ids`` is given for a file that
            has them itself; with the file and line, if any.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: no such file of vectors")
    beside = ids_beside(path)
    if ids is not None and beside is None:
        raise InputError(f"{path}: the file has the ids of its vectors; leave out {ids}")
    if path.suffix == ".parquet":
        with reading(path, "it cannot be read as Parquet"):
            names, rows = _from_parquet(path)
    elif beside is not None:
        with reading(path, f"it cannot be read as {path.suffix}"):
            rows = _array(path)
        names = _ids(Path(ids) if ids is not None else beside, path, rows.shape[0])
    else:
        names, rows = read_vectors(path)
    if len(set(names)) < len(names):
        twice = next(name for name, n in Counter(names).items() if n > 1)
        raise InputError(f"{path}: id {twice!r} has two vectors; keep one")
    return IdVectors(names, rows, path)


def _array(path: Path) -> NDArray[np.floating] | sp.csr_matrix:
    """The matrix in an array file."""
    if path.suffix == ".npy":
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    elif path.suffix == ".npz":
        with zipfile.ZipFile(path) as arrays:
            check_unpacked(path, sum(array.file_size for array in arrays.infolist()))
            if "format.npy" not in arrays.namelist():
                raise InputError(
                    f"{path}: holds arrays of np.savez, not a matrix of scipy.sparse.save_npz; "
                    "write the vectors by np.save, as .npy, and their ids beside them"
                )
        rows = sp.csr_matrix(sp.load_npz(path))
        rows.check_format(full_check=True)
    else:
        tensors = load_file(path)
        if len(tensors) != 1:
            raise InputError(f"{path}: must hold one tensor, but holds {sorted(tensors)}")
        (rows,) = tensors.values()
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise InputError(
            f"{path}: holds {rows.dtype} with {rows.ndim} axes, not numbers with a row per vector"
        )
    return rows


def _ids(path: Path, vectors: Path, n: int) -> list[str]:
    if not path.is_file():
        raise InputError(
            f"{vectors}: the ids of its {n:,} rows, one per line, are expected in {path}, which "
            "does not exist; name their file by query_ids or document_ids"
        )
    names = [line.strip() for _, line in text_lines(path)]
    if len(names) != n:
        raise InputError(f"{path}: {len(names):,} ids for the {n:,} rows of {vectors}")
    if "" in names:
        raise InputError(f"{path}, line {names.index('') + 1}: is empty; every row needs an id")
    return names


def _from_parquet(path: Path) -> tuple[list[str], NDArray[np.floating]]:
    metadata = pa.parquet.read_metadata(path)
    check_parquet_size(path, metadata, value_bytes=8)
    schema = metadata.schema.to_arrow_schema()
    lists = [f.name for f in schema if _is_list(f.type)]
    ids = [f.name for f in schema if _is_id(f.type)]
    if len(lists) != 1 or len(ids) != 1:
        raise InputError(
            f"{path}: must have one column of ids and one of lists of numbers; has "
            f"{', '.join(f'{f.name} ({f.type})' for f in schema)}"
        )
    texts = [ids[0]] if not pa.types.is_integer(schema.field(ids[0]).type) else []
    table = pa.parquet.read_table(path, columns=[ids[0], lists[0]], read_dictionary=texts)
    column = table[lists[0]].combine_chunks()
    widths = pa.compute.list_value_length(column).fill_null(0).to_numpy()
    null = table[ids[0]].is_null().to_numpy() | column.is_null().to_numpy(zero_copy_only=False)
    bad = np.flatnonzero(null | (widths != widths[:1]))
    if len(bad):
        raise InputError(
            f"{path}, row {bad[0] + 1}: every row must have an id and as many numbers as the first;"
            f" it has {widths[bad[0]]} in {lists[0]!r}, the first row {widths[0]}"
        )
    flat = column.flatten().to_numpy(zero_copy_only=False)
    rows = flat.reshape(len(column), -1 if len(column) else 0)
    names = plain_texts(path, table[ids[0]].unify_dictionaries().combine_chunks())
    return names.cast(pa.string()).to_pylist(), rows


def _is_id(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    return any(is_kind(kind) for is_kind in kinds)


def _is_list(kind: pa.DataType) -> bool:
    nested = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(kind) for is_kind in nested):
        return False
    return bool(pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type))
