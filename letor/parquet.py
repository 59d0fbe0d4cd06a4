"""Ranking data as Parquet: several times smaller and faster than text, and with provenance."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from letor.arrow_rows import KEY, ROLES, VERSION, ArrowRows
from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.files import check_is_file
from letor.mapped import empty_array
from letor.missing import Missing
from letor.name_checks import check_distinct
from letor.parquet_parts import all_rows_path, read_numbers
from letor.parquet_rows import ParquetRows
from letor.string_array import StringArray, encode
from ltr_base.machine import available_cores

#: Limit on the memory of values: a number of bytes or, if larger, a multiple of the file's size.
#: (LZ4, the default here, compresses zeros 255-fold.)
_ALWAYS_TAKEN, _LARGEST_MULTIPLE = 2**28, 256
_ADVICE = "it is not a readable Parquet file of LETOR rows"
#: A value that was changed on disk is told, by the checksums of ``write_parquet``.
_opened = partial(pq.ParquetFile, memory_map=True, page_checksum_verification=True)


def write_parquet(
    data: RankingData,
    path: str | os.PathLike[str],
    *,
    compression: Literal["lz4", "zstd", "none"] = "lz4",
) -> None:
    """Write a data set as Parquet.

    Each column of X becomes a float32 column of its name; ``label``, ``query_id``,
    ``document_id`` and ``comment`` follow (with underscores appended where a column has that
    name). Names, query order, provenance and ``missing`` are stored in the schema's metadata, so
    that ``read_parquet`` restores the data set exactly, and other tools can read the table. Row
    groups end where the query changes.

    Args:
        data: the rows, written in their order.
        path: the file; it appears only once it is complete.
        compression: ``"lz4"`` is read fastest, ``"zstd"`` is smaller.

    Raises:
        InputError: a column name is empty or not Unicode text, or provenance is not
            JSON-compatible.
    """
    with ParquetRows(path, compression=compression) as rows:
        rows.add(ArrowRows.of(data))


def read_parquet(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    qid: str | None = None,
    docno: str = "docno",
    features: Sequence[str] | None = None,
    comments: bool = True,
    threads: int | None = None,
    memory: int | None = None,
    rows: slice | None = None,
) -> RankingData:
    """Read a file of ``write_parquet``, a part of a fold (:mod:`letor.parquet_parts`), or any
    other Parquet file, whose label and query columns must be named.

    Args:
        path: the file.
        label, qid: columns of labels and query ids, in a file that ``write_parquet`` did not write.
        docno: column of document ids in such a file, which is optional.
        features: names of the columns of X to read, in the order wanted; default: all.
        comments: whether to read comments and document ids of a file of ``write_parquet``.
        threads: number of threads; default: all cores.
        memory: for a file of ``write_parquet``, if X takes more bytes than this, it is kept in a
            temporary file, see :mod:`letor.mapped`; None = never.
        rows: for a file of ``write_parquet`` or a part of a fold, the range of rows to read.

    Raises:
        InputError: no such file, not a Parquet file, a column that it lacks, or as
            ``RankingData.from_frame``.
    """
    path = Path(path)
    check_is_file(path)
    with reading(path, _ADVICE):
        if label is not None or qid is not None:
            return _read_declared(path, label or "label", qid or "qid", docno, features)
        return _read_ours(path, features, comments, threads, memory, rows or slice(None))


def read_ids(path: str | os.PathLike[str]) -> Iterator[RankingData]:
    """Iterate over a file of ``write_parquet``, some queries at a time, without X and comments.

    Raises:
        InputError: the file cannot be read.
    """
    path = Path(path)
    with reading(path, _ADVICE), _opened(path) as file:
        roles = _checked_metadata(path, file.metadata)["roles"]
        wanted = {role: roles[role] for role in ROLES[:3] if role in roles}
        for i in range(file.num_row_groups):  # which end where the query changes
            group = file.read_row_group(i, columns=list(wanted.values()), use_threads=False)
            table = {role: group[name].combine_chunks() for role, name in wanted.items()}
            queries, ids = table["query_id"], table.get("document_id")
            present, index = np.unique(queries.indices.to_numpy(), return_inverse=True)
            words = _packed(queries.dictionary, is_text=True)
            yield RankingData(
                np.empty((len(group), 0), np.float32),
                table["label"].to_numpy().astype(np.float32),
                [words[i] for i in present.tolist()],
                index.astype(np.int64),
                [],
                None if ids is None else _packed(ids, is_text=True),
            )


def check_parquet_size(
    path: str | os.PathLike[str], metadata: pq.FileMetaData, value_bytes: int = 4
) -> None:
    """Check the number of values before they are read: equal values take no space in a file.

    Args:
        value_bytes: bytes that each value takes in memory.

    Raises:
        InputError: the values would take far more memory than the size of the file.
    """
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    columns = range(metadata.num_columns)
    n = sum(group.column(j).num_values for group in groups for j in columns)
    uncompressed = sum(group.total_byte_size for group in groups)
    _check_memory(path, max(value_bytes * n, uncompressed))


def plain_texts(path: str | os.PathLike[str], array: pa.Array) -> pa.Array:
    """Decode an array that was read as a dictionary of strings; return any other unchanged.

    Raises:
        InputError: the strings, which the file holds only once, would take too much memory.
    """
    if not pa.types.is_dictionary(array.type) or pa.types.is_nested(array.type.value_type):
        return array
    if pa.types.is_primitive(array.type.value_type):
        return array.dictionary_decode()
    lengths = pc.take(pc.binary_length(array.dictionary), array.indices)
    _check_memory(path, pc.sum(lengths).as_py() or 0)
    return array.dictionary_decode()


def _check_memory(path: str | os.PathLike[str], n_bytes: int) -> None:
    """Raise InputError if the content of a file takes far more memory than the size of the file."""
    size = os.stat(path).st_size
    if n_bytes > max(_ALWAYS_TAKEN, _LARGEST_MULTIPLE * size):
        raise InputError(
            f"{path}: its {size:,} bytes expand to {n_bytes / 2**30:.1f} GiB in memory; if you "
            "trust the file, split it, or rewrite it without compression and dictionaries"
        )


def _read_ours(
    path: Path,
    features: Sequence[str] | None,
    comments: bool,
    threads: int | None,
    memory: int | None,
    rows: slice,
) -> RankingData:
    """Rows of a file that :func:`write_parquet` wrote, or a part of a fold."""
    with _opened(path) as file:
        check_parquet_size(path, file.metadata)
        meta = _checked_metadata(path, file.metadata)
        if "part" not in meta:
            whole = _Source(path, file, meta, np.arange(file.metadata.num_rows)[rows])
            return _read_rows([whole], features, comments, threads, memory)
        home = all_rows_path(path)
        if not home.is_file():
            raise InputError(
                f"{path}: a part of a fold, whose rows are in {home}, which does not exist; keep "
                "the folder of the folds together"
            )
        with reading(home, _ADVICE):
            shared = _opened(home)
        with shared:
            with reading(home, _ADVICE):
                check_parquet_size(home, shared.metadata)
                home_meta = _checked_metadata(home, shared.metadata)
            numbers = read_numbers(path, file, meta["part"], shared.metadata)
            all_rows = _Source(home, shared, home_meta, numbers[rows])
            part = _Source(path, file, meta, np.arange(len(numbers))[rows])
            return _read_rows([all_rows, part], features, comments, threads, memory)


def _read_rows(
    sources: Sequence[_Source],
    features: Sequence[str] | None,
    comments: bool,
    threads: int | None,
    memory: int | None,
) -> RankingData:
    """Rows whose columns are in one file or in two; everything else is in the first one, except
    for ``missing``, which is in the last."""
    first, last = sources[0], sources[-1]
    known = [name for source in sources for name in source.meta["columns"]]
    names = known if features is None else list(features)
    missing = [name for name in names if name not in set(known)]
    if missing:
        raise InputError(f"{last.path}: no columns {', '.join(missing)}")
    X = empty_array((len(first.rows), len(names)), memory=memory)
    for source in sources:
        source.read_values(names, X, threads)
    roles = first.meta["roles"]
    wanted = [role for role in ROLES if role in roles and (comments or role in ROLES[:2])]
    table = first.read_columns([roles[role] for role in wanted[:2]])
    table |= first.read_texts([roles[role] for role in wanted[2:]])
    query_ids = first.meta["query_ids"]
    index = _query_index(table[roles["query_id"]], query_ids)
    if len(first.rows) < first.file.metadata.num_rows:  # queries of other parts
        present = np.unique(index)
        query_ids, index = [query_ids[i] for i in present], np.searchsorted(present, index)
    texts = {r: _packed(table[roles[r]], is_text=r == "document_id") for r in wanted[2:]}
    provenance = {name: notes for s in sources for name, notes in s.meta["provenance"].items()}
    return RankingData(
        X,
        table[roles["label"]].to_numpy().astype(np.float32),
        query_ids,
        index,
        names,
        texts.get("document_id"),
        texts.get("comment"),
        {name: provenance[name] for name in names if name in provenance},
        Missing.from_json(last.meta["missing"]) if "missing" in last.meta else None,
    )


def _read_declared(
    path: Path, label: str, qid: str, docno: str, features: Sequence[str] | None
) -> RankingData:
    """Rows of a file that another program wrote."""
    metadata = pq.read_metadata(path)
    check_parquet_size(path, metadata)
    known = metadata.schema.to_arrow_schema().names
    wanted = known if features is None else {label, qid, docno, *features}
    read = [name for name in known if name in wanted]
    check_distinct(read)
    table = pq.read_table(path, columns=read, page_checksum_verification=True)
    return RankingData.from_arrow(table, label=label, qid=qid, docno=docno, features=features)


def _checked_metadata(path: Path, metadata: pq.FileMetaData) -> dict[str, Any]:
    text = (metadata.metadata or {}).get(KEY)
    if text is None:
        raise InputError(
            f"{path}: not written by write_parquet (no 'letor' metadata): make rows of it by "
            "`ltr-features convert`, or name its columns of labels and queries, "
            "read_parquet(path, label=..., qid=...)"
        )
    meta: dict[str, Any] = json.loads(text)
    texts = meta["columns"] if "part" in meta else [*meta["columns"], *meta["query_ids"]]
    if not all(isinstance(text, str) for text in texts):
        raise InputError("names of columns or queries are not strings")
    if meta["version"] > VERSION:
        raise InputError(f"{path}: written by a newer version (format {meta['version']})")
    return meta


@dataclass
class _Source:
    """An open file of :func:`write_parquet`, or part of a fold, and the rows to read from it.

    Attributes:
        path, file: the file and its reader. meta: its description of its rows.
        rows: int64, numbers of the rows to read, ascending.
    """

    path: Path
    file: pq.ParquetFile
    meta: Mapping[str, Any]
    rows: NDArray[np.int64]

    def read_values(
        self, names: Sequence[str], X: NDArray[np.float32], threads: int | None
    ) -> None:
        """Fill the columns of X that this file has, with row groups in parallel."""
        stored = set(self.meta["columns"])
        places = [j for j, name in enumerate(names) if name in stored]
        if not places:
            return
        read, meta = [names[j] for j in places], self.file.metadata
        adjacent = places[-1] - places[0] + 1 == len(places)
        targets: Any = slice(places[0], places[-1] + 1) if adjacent else places

        def read_group(i: int, chosen: Any, to: slice) -> None:
            # one reader per row group: readers are not shared between threads
            reader = _opened(self.path, metadata=meta)
            table = reader.read_row_group(i, columns=read, use_threads=False)
            columns = np.empty((len(read), to.stop - to.start), dtype=np.float32)
            for j, name in enumerate(read):
                columns[j] = table.column(name).combine_chunks().to_numpy()[chosen]
            X[to, targets] = columns.T

        with reading(self.path, _ADVICE), ThreadPoolExecutor(threads or available_cores()) as pool:
            list(pool.map(lambda group: read_group(*group), self._groups()))

    def read_columns(self, names: list[str]) -> dict[str, pa.Array]:
        """Read columns by name."""
        with reading(self.path, _ADVICE):
            return self._columns(self.file, names)

    def read_texts(self, names: list[str]) -> dict[str, pa.Array]:
        """Read columns of strings; those written as dictionaries (by another program) are checked
        for size before they are decoded."""
        metadata = self.file.metadata
        places = {metadata.schema.column(j).path: j for j in range(metadata.num_columns)}
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        as_dictionaries = [
            name
            for name in names
            if any(group.column(places[name]).has_dictionary_page for group in groups)
        ]
        with (
            reading(self.path, _ADVICE),
            _opened(self.path, read_dictionary=as_dictionaries) as file,
        ):
            table = self._columns(file, names)
            return {name: plain_texts(self.path, column) for name, column in table.items()}

    def _columns(self, file: pq.ParquetFile, names: list[str]) -> dict[str, pa.Array]:
        tables = [file.schema_arrow.empty_table().select(names)]
        for i, chosen, _ in self._groups():
            group = file.read_row_group(i, columns=names, use_threads=False)
            tables.append(group if isinstance(chosen, slice) else group.take(chosen))
        table = pa.concat_tables(tables)
        return {name: table.column(name).unify_dictionaries().combine_chunks() for name in names}

    def _groups(self) -> Iterator[tuple[int, Any, slice]]:
        """Row groups to read: (number, which of its rows, their positions in the result)."""
        meta, start = self.file.metadata, 0
        for i in range(meta.num_row_groups):
            stop = start + meta.row_group(i).num_rows
            to = slice(*np.searchsorted(self.rows, [start, stop]).tolist())
            if to.stop - to.start == stop - start:
                yield i, slice(None), to
            elif to.start < to.stop:
                yield i, self.rows[to] - start, to
            start = stop


def _packed(values: pa.Array, *, is_text: bool) -> StringArray:
    """An Arrow array of strings or bytes as a StringArray, without copying."""
    large = values.type in (pa.large_string(), pa.large_binary())
    if not large and values.type not in (pa.string(), pa.binary()):
        raise InputError(f"a column of ids or comments holds {values.type}")
    _, offsets, content = values.buffers()
    stored = np.frombuffer(offsets, dtype=np.int64 if large else np.int32)
    edges: NDArray[np.int64] = stored[values.offset :][: len(values) + 1].astype(np.int64)
    buffer = np.frombuffer(content if content is not None else b"", dtype=np.uint8)
    return StringArray(buffer, edges[:-1], edges[1:], is_text=is_text)


def _query_index(values: pa.Array, query_ids: list[str]) -> NDArray[np.int64]:
    """Position of each row's query in ``query_ids``."""
    position = {encode(query): i for i, query in enumerate(query_ids)}
    words = _packed(values.dictionary, is_text=False)
    renumbered = np.array([position[word] for word in words], dtype=np.int64)
    return renumbered[values.indices.to_numpy()]
