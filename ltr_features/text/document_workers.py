"""Make a workspace on the workers of a cluster, which count and write ranges of documents."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from letor.checked_arrays import check_array
from letor.errors import InputError, reading
from letor.files import atomic_path
from ltr_features.cluster import Cluster, connected, digest, software
from ltr_features.part_store import PartFolder
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection_files import write_documents
from ltr_features.text.stored_texts import FILE, block_sizes, read_blocks
from ltr_features.text.term_counts import CountedBlock, counted_blocks

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
    with connected(address, PartFolder(folder.resolve())) as cluster:
        yield DocumentWorkers(cluster, folder)
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
        arrays: dict[str, Any] = {}
        for field, block in counted_blocks([texts], tuple(texts), analyzer):
            # Runs have no spaces.
            runs = np.frombuffer(" ".join(block.runs).encode("utf-8"), np.uint8)
            found = block._asdict() | {"runs": runs}
            arrays |= {f"{field}.{name}": array for name, array in found.items()}
        with atomic_path(path) as partial, partial.open("wb") as file:
            np.savez(file, **arrays)
    return str(path)


def _read(path: Path) -> list[tuple[str, CountedBlock]]:
    """Read the blocks of a file with their fields, and check that their arrays fit each other."""
    with reading(path, "it is damaged: remove it and index the collection again"):
        blocks = []
        with np.load(path, allow_pickle=False) as arrays:
            for field in dict.fromkeys(name.partition(".")[0] for name in arrays.files):
                found = {name: arrays[f"{field}.{name}"] for name in CountedBlock._fields}
                runs = found.pop("runs").tobytes().decode("utf-8").split(" ")
                block = CountedBlock(runs, **found)
                _check(f"{path}, {field}", block)
                blocks.append((field, block))
        return blocks


def _check(name: str, block: CountedBlock) -> None:
    """Raise InputError for arrays that do not match each other."""
    n, most = len(block.numbers), len(block.runs) - 1
    check_array(f"{name}.numbers", block.numbers, np.int32, (None,), least=0, most=most)
    check_array(f"{name}.counts", block.counts, np.int32, (n,), least=1)
    check_array(f"{name}.sizes", block.sizes, np.int64, (None,), least=0, most=n)
    if block.sizes.sum() != n:
        raise InputError(f"{name}.sizes: must add up to {n}; it is damaged")
