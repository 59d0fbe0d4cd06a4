"""Word counts of a field of each document, and the statistics that ranking needs of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.mapped import empty_array
from ltr_base.arrays import keep_read_only
from ltr_base.slices import slices

_ROWS = 2**14  # documents at a time


class Postings(NamedTuple):
    """Term counts in the order of terms.

    Attributes:
        ends: int64 [V + 1], term t owns entries ``ends[t]:ends[t + 1]``.
        documents: int32 [nnz], increasing within a term.
        counts: int32 [nnz], 1 or more.
    """

    ends: NDArray[np.int64]
    documents: NDArray[np.int32]
    counts: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class FieldCounts:
    """Term counts of one field in compressed rows, and the statistics that ranking needs. The
    arrays are read-only.

    Attributes:
        ends: int64 [n_documents + 1], document i owns entries ``ends[i]:ends[i + 1]``.
        terms: int32 [nnz], columns of the vocabulary, increasing within a document.
        counts: int32 [nnz], 1 or more.
        lengths: int64 [n_documents], number of tokens of the document in this field.
        document_frequency: int64 [V], number of documents that have the word in this field.
        collection_frequency: int64 [V], occurrences of the word in this field.
        unknown: int64 [n_documents], number of distinct words of the document that the vocabulary
            lacks, whose tokens ``lengths`` include; None if there are none.
        statistics: the field of the documents that ``document_frequency``,
            ``collection_frequency`` and values derived from them describe; None if it is this one.
        stored_postings: the entries by term, if they were stored with the counts.
    """

    ends: NDArray[np.int64]
    terms: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.int64]
    document_frequency: NDArray[np.int64]
    collection_frequency: NDArray[np.int64]
    unknown: NDArray[np.int64] | None = None
    statistics: FieldCounts | None = None
    stored_postings: Postings | None = None

    def __post_init__(self) -> None:
        keep_read_only(self)  # column families share them

    @classmethod
    def from_matrix(cls, matrix: csr_matrix) -> FieldCounts:
        """Use the counts of a matrix (int32 [n, V], columns sorted) and derive the statistics."""
        n, n_words = matrix.shape
        ends = matrix.indptr.astype(np.int64)
        lengths = np.zeros(n, np.int64)
        frequencies = np.zeros((2, n_words), np.int64)
        for rows, entries in _blocks(ends):
            terms, counts = matrix.indices[entries], matrix.data[entries]
            totals = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
            lengths[rows] = np.diff(totals[ends[rows.start : rows.stop + 1] - entries.start])
            # Exact: float64 sums of counts stay below 2 ** 53.
            frequencies += np.array(
                [np.bincount(terms, weights, n_words) for weights in (None, counts)], np.int64
            )
        return cls(
            ends=ends,
            terms=matrix.indices.astype(np.int32, copy=False),
            counts=matrix.data.astype(np.int32, copy=False),
            lengths=lengths,
            document_frequency=frequencies[0],
            collection_frequency=frequencies[1],
        )

    @cached_property
    def postings(self) -> Postings:
        """The entries by term."""
        if self.stored_postings is not None:
            return self.stored_postings
        n_words = len(self.document_frequency)
        ends = np.zeros(n_words + 1, np.int64)
        for _, entries in _blocks(self.ends):
            ends[1:] += np.bincount(self.terms[entries], minlength=n_words)
        np.cumsum(ends, out=ends)
        documents, counts = (empty_array(self.terms.shape, np.int32) for _ in range(2))
        free = ends[:-1].copy()  # the position of each term's next entry
        for rows, entries in _blocks(self.ends):
            block_ends = self.ends[rows.start : rows.stop + 1] - entries.start
            block = csr_matrix(
                (self.counts[entries], self.terms[entries], block_ends),
                shape=(rows.stop - rows.start, n_words),
            ).tocsc()
            sizes = np.diff(block.indptr)
            places = np.arange(len(block.data)) + np.repeat(free - block.indptr[:-1], sizes)
            documents[places], counts[places] = block.indices + rows.start, block.data
            free += sizes
        return Postings(ends, np.asarray(documents), np.asarray(counts))

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """int64 [n_documents]: number of distinct tokens of each document."""
        known = np.diff(self.ends)
        return known if self.unknown is None else known + self.unknown

    def codes(self, weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """uint64 [n_documents]: the sum of the weights, uint64 [V], of each document's words.
        Documents of the same words, each equally often, have the same; others, for random weights,
        by chance only."""
        codes = np.zeros(len(self.ends) - 1, np.uint64)
        for rows, entries in _blocks(self.ends):
            summed = np.cumsum(
                self.counts[entries].astype(np.uint64) * weights[self.terms[entries]]
            )
            before = np.concatenate([np.zeros(1, np.uint64), summed])
            codes[rows] = np.diff(before[self.ends[rows.start : rows.stop + 1] - entries.start])
        return codes

    @property
    def n_documents(self) -> int:
        """Number of documents that the statistics describe."""
        return len((self.statistics or self).lengths)

    @cached_property
    def n_tokens(self) -> int:
        """Number of tokens of all documents that the statistics describe."""
        return int((self.statistics or self).lengths.sum())

    @property
    def mean_length(self) -> float:
        """Mean number of tokens of the documents that the statistics describe, including empty
        ones."""
        return self.n_tokens / self.n_documents if self.n_documents else 0.0


def _blocks(ends: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    """Yield some rows at a time, and their entries: arrays over all entries would take several
    times the memory of the counts."""
    for rows in slices(len(ends) - 1, _ROWS):
        yield rows, slice(int(ends[rows.start]), int(ends[rows.stop]))
