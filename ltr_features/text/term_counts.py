"""Count the terms of texts over one vocabulary.

The result does not depend on the division into blocks: words are sorted by code point, and columns
increase within a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from letor.mapped import GrowingArray
from ltr_base.machine import available_cores
from ltr_base.names import quoted
from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.text.analyzer import Analyzer

_TEXTS, _ROWS = 2**10, 2**14  # texts that are counted at a time, and rows that are merged
_THREADS = 4  # more would wait for each other, as only one folds texts at a time


def count_terms(
    texts: Sequence[str], analyzer: Analyzer | None = None
) -> tuple[list[str], csr_matrix]:
    """Count the tokens of each text.

    Args:
        texts: raw texts.
        analyzer: the recipe; None for the default one.

    Returns:
        The distinct tokens in code point order, and int32 counts [len(texts), n words].

    Raises:
        InputError: a text is not a string, or one stands in place of them.
    """
    if isinstance(texts, str):
        raise InputError(f"expected a sequence of texts, got the text {quoted(texts)}")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"text {number} is {type(text).__name__}, not a string; use '' for a missing text"
            )
    blocks = ({"text": texts[rows]} for rows in slices(len(texts), _TEXTS))
    words, (counts,) = count_fields(blocks, ("text",), analyzer)
    return words, counts


def renumbered(matrix: csr_matrix, columns: NDArray[np.integer], width: int) -> csr_matrix:
    """A matrix [n, width] in which column j of the given one becomes column ``columns[j]``. The
    order within a row is kept. Columns with number -1 are dropped; columns with the same number
    stay separate entries until ``sum_duplicates``."""
    numbers = columns.astype(np.int32)[matrix.indices]
    kept = numbers >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
    return csr_matrix((matrix.data[kept], numbers[kept], ends), shape=(matrix.shape[0], width))


def count_fields(
    blocks: Iterable[Mapping[str, Sequence[str]]],
    fields: Sequence[str],
    analyzer: Analyzer | None = None,
) -> tuple[list[str], list[csr_matrix]]:
    """Count the tokens of documents that come in blocks, over one vocabulary of all fields.

    Memory is bounded by the vocabulary and a block; long arrays of counts are held on disk.

    Args:
        blocks: for each block of documents, the texts of every field, one string per document.
        fields: the fields to count; each block has all of them.
        analyzer: the recipe; None for the default one.

    Returns:
        The distinct tokens in code point order, and for each field int32 counts [n, n words].
    """
    analyzer = analyzer or Analyzer()
    return merge_counted(counted_blocks(blocks, fields, analyzer), fields, analyzer)


class CountedBlock(NamedTuple):
    """Counts of the runs of some texts of a field, see :meth:`Analyzer.folded`.

    Attributes:
        runs: the distinct runs.
        sizes: int64 [number of texts], number of distinct runs of each text.
        numbers: int32 [nnz], the runs of one text after the other, as places in ``runs``.
        counts: int32 [nnz], how often the text has them, 1 or more.
    """

    runs: list[str]
    sizes: NDArray[np.int64]
    numbers: NDArray[np.int32]
    counts: NDArray[np.int32]


def counted_blocks(
    blocks: Iterable[Mapping[str, Sequence[str]]], fields: Sequence[str], analyzer: Analyzer
) -> Iterator[tuple[str, CountedBlock]]:
    """Yield each field of each block with its counts; see :func:`count_fields`."""

    def counted(block: Mapping[str, Sequence[str]]) -> list[CountedBlock]:
        return [_counted(list(map(analyzer.folded, block[field]))) for field in fields]

    threads = min(available_cores(), _THREADS)
    for of_fields in map_blocks(counted, blocks, threads):
        yield from zip(fields, of_fields, strict=True)


def _counted(folded: Sequence[str]) -> CountedBlock:
    """The counts of folded texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    split = pc.ascii_split_whitespace(pa.array(folded, pa.large_string()))
    runs = split.flatten().dictionary_encode()
    entries = np.ones(len(runs), np.int32), np.array(runs.indices), np.array(split.offsets)
    matrix = csr_matrix(entries, shape=(len(folded), len(runs.dictionary)))
    matrix.sum_duplicates()
    sizes = np.diff(matrix.indptr).astype(np.int64)
    return CountedBlock(runs.dictionary.to_pylist(), sizes, matrix.indices, matrix.data)


def merge_counted(
    blocks: Iterable[tuple[str, CountedBlock]], fields: Sequence[str], analyzer: Analyzer
) -> tuple[list[str], list[csr_matrix]]:
    """Merge the counts of blocks over one vocabulary; returns the same as :func:`count_fields`.

    Args:
        blocks: each with its field; the blocks of a field in the order of its texts.
        fields, analyzer: as for :func:`count_fields`.
    """
    number: dict[str, int] = defaultdict(count().__next__)
    counted = {field: _Counted() for field in fields}
    for field, block in blocks:
        numbers = np.fromiter(map(number.__getitem__, block.runs), np.int32, len(block.runs))
        counted[field].add(block._replace(numbers=numbers[block.numbers]))
    words, columns = _columns(list(number), analyzer)
    return words, [counted.pop(field).matrix(columns, len(words)) for field in fields]


class _Counted:
    """The concatenated entries of a field's counted blocks; long arrays are held on disk."""

    def __init__(self) -> None:
        self._sizes = [np.zeros(0, np.int64)]
        self._numbers, self._counts = GrowingArray(np.int32), GrowingArray(np.int32)

    def add(self, block: CountedBlock) -> None:
        self._sizes.append(block.sizes)
        self._numbers.append(block.numbers)
        self._counts.append(block.counts)

    def matrix(self, columns: NDArray[np.int32], width: int) -> csr_matrix:
        """The counts [n, width], with run j in column ``columns[j]``, or nowhere if that is -1."""
        numbers, counts = self._numbers.taken(), self._counts.taken()
        ends = np.append(0, np.cumsum(np.concatenate(self._sizes)))
        sizes, n = [np.zeros(1, np.int64)], 0
        for rows in slices(len(ends) - 1, _ROWS):
            begin, end = ends[[rows.start, rows.stop]]
            parts = counts[begin:end], numbers[begin:end], ends[rows.start : rows.stop + 1] - begin
            block = csr_matrix(parts, shape=(rows.stop - rows.start, len(columns)))
            block = renumbered(block, columns, width)
            block.sum_duplicates()
            # In place: a block has no more entries than before.
            numbers[n : n + block.nnz], counts[n : n + block.nnz] = block.indices, block.data
            sizes.append(np.diff(block.indptr))
            n += block.nnz
        ends = np.cumsum(np.concatenate(sizes), dtype=np.int64)
        matrix = csr_matrix((counts[:n], numbers[:n], ends), shape=(len(ends) - 1, width))
        matrix.has_canonical_format = True
        return matrix


def _columns(runs: list[str], analyzer: Analyzer) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct tokens of the runs, sorted, and the column of each run's token, or -1."""
    terms = analyzer.terms(runs)
    words = sorted({term for term in terms if term is not None})
    column: dict[str | None, int] = {None: -1, **{word: j for j, word in enumerate(words)}}
    return words, np.array([column[term] for term in terms], np.int32)
