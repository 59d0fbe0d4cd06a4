"""Make a workspace on the workers of a cluster, which count and write ranges of documents."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from letor.checked_arrays import check_array
from letor.errors import InputError, reading
from letor.files import atomic_path
from ltr_features.cluster import Cluster, connected, digest, software
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection_files import write_documents
from ltr_features.text.stored_texts import FILE, block_sizes, read_blocks
from ltr_features.text.term_counts import CountedBlock, count_units, units_of

#: Bytes of documents in one piece of work, which takes about half a second.
_RANGE_BYTES = 1 << 24


@contextmanager
def documents_on(address: str, folder: Path) -> Iterator[DocumentWorkers]:
    """The workers of a cluster, for :func:`ltr_features.columns.context.make_workspace`.

    Args:
        address: see :func:`~ltr_features.cluster.connected`.
        folder: folder for the workers' files, next to the workspace, under the path where workers
            see it; removed when the work is done.

    Raises:
        InputError: as for :func:`~ltr_features.cluster.connected`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with connected(address, folder) as cluster:
            yield DocumentWorkers(cluster, folder)
    except BaseException:
        with suppress(OSError):  # keep it if it has files, from which the next run continues
            folder.rmdir()
        raise
    shutil.rmtree(folder)


@dataclass(frozen=True)
class DocumentWorkers:
    """The workers of a cluster, and the folder that they write to."""

    cluster: Cluster
    folder: Path

    def lines(self, documents: Path) -> Iterator[Path]:
        """Yield files that together are the lines of the documents that
        :func:`~ltr_features.text.stored_texts.save_documents` wrote into a folder."""
        calls = ((part,) for part in self._ranges(documents))
        yield from map(Path, self.cluster.in_order(_write_lines, calls))

    def counted(self, documents: Path, analyzer: Analyzer) -> Iterator[tuple[str, CountedBlock]]:
        """Yield the counts of these documents, for
        :func:`~ltr_features.text.term_counts.merge_counted`."""
        calls = ((part, analyzer) for part in self._ranges(documents))
        for path in self.cluster.in_order(_write_counts, calls):
            yield from _read(Path(path))

    def _ranges(self, documents: Path) -> Iterator[_Range]:
        places = str(documents.resolve()), str(self.folder.resolve())
        for first, last in _cut(block_sizes(documents)):
            yield _Range(*places, first, last)


def _cut(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield ranges of blocks (first, last + 1) that have about _RANGE_BYTES bytes each."""
    first = n_bytes = 0
    for block, size in enumerate(sizes, start=1):
        n_bytes += size
        if n_bytes >= _RANGE_BYTES or block == len(sizes):
            yield first, block
            first, n_bytes = block, 0


@dataclass(frozen=True)
class _Range:
    """A range of the blocks in which documents are stored, as a piece of work.

    Attributes:
        documents: the folder of the documents. folder: the folder for results.
        first, last: the first block, and the one after the last.
    """

    documents: str
    folder: str
    first: int
    last: int

    def read(self) -> tuple[list[str], dict[str, list[str]], str]:
        """Ids, texts by field, and a key of their content and the software, for file names.

        Raises:
            InputError: this worker does not see the documents.
        """
        worker = f"worker on {socket.gethostname()}"
        if not (path := Path(self.documents) / FILE).is_file():
            raise InputError(f"{worker}: {path} is not there; keep the workspace on shared storage")
        ids, texts, content = read_blocks(path.parent, self.first, self.last)
        return ids, texts, f"{software()}, {content}"

    def file(self, made_of: str, suffix: str) -> Path:
        """The file for a result made from what ``made_of`` describes."""
        return Path(self.folder) / f"{digest(made_of.encode())}{suffix}"


def _write_lines(part: _Range) -> str:
    """Write the lines of some documents, unless they exist. Returns the file."""
    ids, texts, made_of = part.read()
    path = part.file(made_of, ".jsonl")
    if not path.is_file():
        with atomic_path(path) as partial:
            write_documents(partial, ids, texts)
    return str(path)


def _write_counts(part: _Range, analyzer: Analyzer) -> str:
    """Count some documents and write the counts, unless they exist. Returns the file."""
    _, texts, made_of = part.read()
    path = part.file(f"{made_of}, {analyzer.fingerprint}", ".npz")
    if not path.is_file():
        counted = count_units(units_of([texts], tuple(texts)), analyzer, threads=1)
        arrays = {
            f"{number}.{field}.{name}": array
            for number, (field, block) in enumerate(counted)
            for name, array in block._asdict().items()
        }
        with atomic_path(path) as partial, partial.open("wb") as file:
            np.savez(file, **arrays)
    return str(path)


def _read(path: Path) -> list[tuple[str, CountedBlock]]:
    """Read the blocks of a file with their fields, and check them, since kernels trust them."""
    with reading(path, "it is damaged: remove it and index the collection again"):
        blocks = []
        with np.load(path, allow_pickle=False) as arrays:
            for block in dict.fromkeys(name.rpartition(".")[0] for name in arrays.files):
                read = CountedBlock(*(arrays[f"{block}.{name}"] for name in CountedBlock._fields))
                _check(f"{path}, {block}", read)
                blocks.append((block.partition(".")[2], read))
        return blocks


def _check(name: str, block: CountedBlock) -> None:
    """Raise InputError for arrays that do not match each other."""
    n_words, n_entries = len(block.keys), len(block.entry_words)
    check_array(f"{name}.pool", block.pool, np.uint8, (None,))
    check_array(f"{name}.keys", block.keys, np.uint64, (None,))
    check_array(
        f"{name}.entry_words", block.entry_words, np.int32, (None,), least=0, most=n_words - 1
    )
    check_array(f"{name}.entry_counts", block.entry_counts, np.int32, (n_entries,), least=1)
    for array, shape, most, part in (
        (block.ends, (n_words + 1,), len(block.pool), "ends"),
        (block.row_ends, (None,), n_entries, "row_ends"),
    ):
        check_array(f"{name}.{part}", array, np.int64, shape, least=0, most=most, ascending=True)
        if array[:1].tolist() != [0] or array[-1] != most:
            raise InputError(f"{name}.{part}: must go from 0 to {most}; it is damaged")
