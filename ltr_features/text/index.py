"""TermIndex: term counts of every stream over one vocabulary, stored in a folder."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.digests import write_digests
from letor.errors import InputError, reading
from letor.files import atomic_path, save_array
from letor.mapped import GrowingArray
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import STREAMS, Collection
from ltr_features.text.index_files import (
    HEADER,
    POSTINGS,
    check_counts,
    map_array,
    read_header,
    read_postings,
    read_words,
)
from ltr_features.text.stream_counts import StreamCounts
from ltr_features.text.term_counts import (
    BLOCK_CHARACTERS,
    CountedBlock,
    count_streams,
    count_terms,
    merge_counted,
    renumbered,
)
from ssi_models.vocabulary import Vocabulary

#: The derived stream: all streams of a document together.
WHOLE = "whole"

_ROWS = 2**14  # documents at a time

#: Raised whenever the files of a stored index change.
INDEX_VERSION = 1


#: What of a stream is stored.
_ARRAYS = (
    "ends", "terms", "counts", "lengths", "document_frequency", "collection_frequency",
)  # fmt: skip


class TermIndex:
    """Term counts of a collection's streams over one shared vocabulary.

    Make one by ``build``, ``build_from_blocks`` or ``open``.

    Attributes:
        analyzer: the recipe by which texts became tokens.
        vocabulary: the tokens of all streams, in code point order.
        streams: the streams that the collection has, in the order of ``STREAMS``. The derived
            stream ``"whole"`` is their sum and always exists besides.
    """

    def __init__(
        self, analyzer: Analyzer, vocabulary: Vocabulary, counts: Mapping[str, StreamCounts]
    ) -> None:
        self.analyzer = analyzer
        self.vocabulary = vocabulary
        self.streams = tuple(stream for stream in STREAMS if stream in counts)
        self._counts = dict(counts)
        self._matrices: dict[str, csr_matrix] = {}

    @classmethod
    def build(
        cls,
        collection: Collection,
        analyzer: Analyzer | None = None,
        *,
        threads: int | None = None,
        counted: Iterable[tuple[str, CountedBlock]] | None = None,
    ) -> TermIndex:
        """Analyse and count all streams of a collection.

        Args:
            collection: the documents, row i of which is row i of every count matrix.
            analyzer: the recipe; None for the default one.
            threads: worker threads; None for one per core. The index is the same for any number.
            counted: the documents' counts by the recipe, where others have made them, for
                :func:`~ltr_features.text.term_counts.merge_counted`.

        Raises:
            InputError: the collection has no streams, a text is no string, or no text has a word.
        """
        if counted is None:
            index = cls.build_from_blocks(_slices(collection), analyzer, threads=threads)
        else:
            analyzer, streams = analyzer or Analyzer(), _streams(collection)
            made = merge_counted(counted, streams, analyzer, threads=threads)
            index = cls._of_counts(analyzer, streams, *made)
        if not len(index.vocabulary):
            raise InputError(
                f"collection {collection.name!r}: no document has a word; check which fields are "
                "read as its text, and how the text is analysed"
            )
        return index

    @classmethod
    def build_from_blocks(
        cls,
        blocks: Iterable[Mapping[str, Sequence[str]]],
        analyzer: Analyzer | None = None,
        *,
        threads: int | None = None,
    ) -> TermIndex:
        """Analyse and count documents that come in blocks; only the counts are kept in memory.

        Args:
            blocks: for each block of documents, the texts of every stream, one per document. All
                blocks have the same streams.
            analyzer: the recipe; None for the default one.
            threads: worker threads; None for one per core.

        Raises:
            InputError: no blocks, no streams, an unknown stream, or blocks that do not match.
        """
        analyzer = analyzer or Analyzer()
        rest = iter(blocks)
        first = next(rest, None)
        if not first:
            raise InputError("an index needs documents with at least one stream, found none")
        unknown = sorted(set(first) - set(STREAMS))
        if unknown:
            raise InputError(f"unknown streams {', '.join(unknown)}; use {', '.join(STREAMS)}")
        streams = tuple(stream for stream in STREAMS if stream in first)
        made = count_streams(_chain(first, rest), streams, analyzer, threads=threads)
        return cls._of_counts(analyzer, streams, *made)

    @classmethod
    def _of_counts(
        cls,
        analyzer: Analyzer,
        streams: Sequence[str],
        words: Sequence[str],
        matrices: Sequence[csr_matrix],
    ) -> TermIndex:
        named = _with_whole(streams, matrices)
        counts = {stream: StreamCounts.from_matrix(matrix) for stream, matrix in named.items()}
        counts.setdefault(WHOLE, counts[streams[0]])
        return cls(analyzer, Vocabulary(words), counts)

    def of_added(self, collection: Collection, *, threads: int | None = None) -> TermIndex:
        """The counts of other documents under this index's vocabulary and statistics. Words that
        the vocabulary lacks count in documents' lengths alone.

        Args:
            collection: the documents, with all streams of this index.

        Raises:
            InputError: a stream is missing, or a text is no string.
        """
        words, matrices = count_streams(
            _slices(collection), self.streams, self.analyzer, threads=threads
        )
        rows, counts = self.vocabulary.rows(words), {}
        for stream, matrix in _with_whole(self.streams, matrices).items():
            known = renumbered(matrix, rows, len(self.vocabulary))
            counts[stream] = replace(
                StreamCounts.from_matrix(known),
                lengths=StreamCounts.from_matrix(matrix).lengths,
                document_frequency=self.document_frequency(stream),
                collection_frequency=self.collection_frequency(stream),
                unknown=np.diff(matrix.indptr).astype(np.int64) - np.diff(known.indptr),
                statistics=self.stream(stream),
            )
        counts.setdefault(WHOLE, counts[self.streams[0]])
        return TermIndex(self.analyzer, self.vocabulary, counts)

    @property
    def n_documents(self) -> int:
        return len(self._counts[WHOLE].lengths)

    def __contains__(self, stream: object) -> bool:
        return stream in self._counts

    def stream(self, stream: str) -> StreamCounts:
        """Counts and statistics of a stream, or of ``"whole"``.

        Raises:
            InputError: the index has no such stream.
        """
        if stream not in self._counts:
            raise InputError(
                f"the index has no stream {stream!r}; it has {', '.join((*self.streams, WHOLE))}"
            )
        return self._counts[stream]

    def counts(self, stream: str) -> csr_matrix:
        """int32 [n_documents, V]: how often each word occurs in the stream of each document."""
        part = self.stream(stream)
        if stream not in self._matrices:
            shape = (self.n_documents, len(self.vocabulary))
            matrix = csr_matrix((part.counts, part.terms, part.ends), shape=shape, copy=False)
            matrix.has_canonical_format = True
            self._matrices[stream] = matrix
        return self._matrices[stream]

    def lengths(self, stream: str) -> NDArray[np.int64]:
        """int64 [n_documents]: tokens of each document in the stream."""
        return self.stream(stream).lengths

    def document_frequency(self, stream: str) -> NDArray[np.int64]:
        """int64 [V]: documents whose stream has the word."""
        return self.stream(stream).document_frequency

    def collection_frequency(self, stream: str) -> NDArray[np.int64]:
        """int64 [V]: occurrences of the word in the stream."""
        return self.stream(stream).collection_frequency

    def query_counts(self, texts: Sequence[str], *, threads: int | None = None) -> csr_matrix:
        """int32 [len(texts), V], columns sorted: counts of texts, analysed by this index's recipe;
        words that no document has are left out."""
        return self.known_counts(*count_terms(texts, self.analyzer, threads=threads))

    def known_counts(self, words: Sequence[str], counts: csr_matrix) -> csr_matrix:
        """int32 [n, V], columns sorted: the counts [n, len(words)] of words in code point order,
        columns sorted, by this index's columns; words that no document has are left out."""
        # Both vocabularies are in code point order, so the columns stay sorted.
        return renumbered(counts, self.vocabulary.rows(words), len(self.vocabulary))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder, replacing an index that is there, in one step at the end.

        Raises:
            InputError: the folder exists and holds something other than an index, or the counts
                are of documents that were added.
            OSError: the folder cannot be written.
        """
        folder = Path(folder)
        if self.stream(WHOLE).statistics is not None:
            raise InputError(
                "the index of added documents is not stored; it is made of their texts"
            )
        if folder.is_dir() and any(folder.iterdir()) and not (folder / HEADER).exists():
            raise InputError(f"{folder}: is not an index folder and not empty; name another folder")
        with atomic_path(folder, kind="folder") as partial:
            partial.mkdir()
            encoded = [word.encode("utf-8") for word in self.vocabulary.words]
            lengths = np.array([len(word) for word in encoded], dtype=np.int64)
            save_array(partial / "word_lengths.npy", lengths)
            save_array(partial / "words.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))
            for stream in self._stored_streams():
                for name in _ARRAYS:
                    array = getattr(self._counts[stream], name)
                    save_array(partial / f"{stream}.{name}.npy", np.asarray(array))
            for name, array in self.stream(WHOLE).postings._asdict().items():
                save_array(partial / f"{POSTINGS}.{name}.npy", array)
            header = json.dumps(self._header(), indent=1)
            (partial / HEADER).write_text(header, encoding="utf-8")
            write_digests(partial)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> TermIndex:
        """Open a stored index; arrays are memory-mapped, changes to them never reach the files.

        Raises:
            InputError: no index there, an incomplete one, or one of another version.
        """
        folder = Path(folder)
        with reading(folder, "it is damaged: build the index again"):
            return cls._read(folder)

    @classmethod
    def _read(cls, folder: Path) -> TermIndex:
        header = read_header(folder, INDEX_VERSION, (*STREAMS, WHOLE))
        with reading(folder / HEADER, "it is damaged: build the index again"):
            analyzer = Analyzer.from_json(header["analyzer"])
        words = read_words(folder, header)
        counts = {}
        for stream in header["stored_streams"]:
            arrays: dict[str, Any] = {
                name: map_array(folder, f"{stream}.{name}.npy") for name in _ARRAYS
            }
            check_counts(folder, stream, arrays, header)
            counts[stream] = StreamCounts(**arrays)
        counts.setdefault(WHOLE, counts[header["stored_streams"][0]])
        postings = read_postings(folder, len(counts[WHOLE].terms), header)
        counts[WHOLE] = replace(counts[WHOLE], stored_postings=postings)
        index = cls(analyzer, Vocabulary(words), counts)
        for name in ("analyzer_fingerprint", "unicode_version", "vocabulary_fingerprint"):
            here, stored = index._header()[name], header.get(name)
            if stored != here:
                raise InputError(
                    f"{folder}: the index was made with {name} {stored}, here it is {here}; build "
                    "it again"
                )
        return index

    def _stored_streams(self) -> tuple[str, ...]:
        # With one stream the whole is that stream.
        return self.streams if len(self.streams) == 1 else (*self.streams, WHOLE)

    def _header(self) -> dict[str, Any]:
        return {
            "format": "ltr-features term index",
            "version": INDEX_VERSION,
            "analyzer": self.analyzer.to_json(),
            "analyzer_fingerprint": self.analyzer.fingerprint,
            "unicode_version": unicodedata.unidata_version,
            "vocabulary_fingerprint": self.vocabulary.fingerprint,
            "n_documents": self.n_documents,
            "n_words": len(self.vocabulary),
            "stored_streams": list(self._stored_streams()),
            "n_entries": {s: len(self._counts[s].terms) for s in self._stored_streams()},
        }

    @cached_property
    def fingerprint(self) -> str:
        """Identifies recipe and vocabulary: what a model that was trained on this index needs."""
        return f"{self.analyzer.fingerprint[:16]}-{self.vocabulary.fingerprint[:16]}"


def _with_whole(streams: Sequence[str], matrices: Sequence[csr_matrix]) -> dict[str, csr_matrix]:
    """The counts by stream, and of several streams those of the whole."""
    named = dict(zip(streams, matrices, strict=True))
    if len(streams) > 1:
        named[WHOLE] = _summed(matrices)
    return named


def _summed(matrices: Sequence[csr_matrix]) -> csr_matrix:
    """Their sum, rows at a time: many entries lie on the disk."""
    terms, counts, sizes = GrowingArray(np.int32), GrowingArray(np.int32), [np.zeros(1, np.int64)]
    n_documents = matrices[0].shape[0]
    for first in range(0, n_documents, _ROWS):
        block, *others = (matrix[first : first + _ROWS] for matrix in matrices)
        for other in others:
            block = block + other
        terms.append(block.indices)
        counts.append(block.data)
        sizes.append(np.diff(block.indptr))
    ends = np.cumsum(np.concatenate(sizes))
    whole = csr_matrix((counts.taken(), terms.taken(), ends), shape=matrices[0].shape)
    whole.has_canonical_format = True
    return whole


def _streams(collection: Collection) -> tuple[str, ...]:
    """The streams of a collection, in the order of ``STREAMS``."""
    if not collection.streams:
        raise InputError(f"collection {collection.name!r} has no streams to index")
    return tuple(stream for stream in STREAMS if stream in collection.streams)


def _slices(collection: Collection) -> Iterator[Mapping[str, list[str]]]:
    """The documents of a collection in blocks of about BLOCK_CHARACTERS characters per stream."""
    streams = _streams(collection)
    block: dict[str, list[str]] = {stream: [] for stream in streams}
    of_streams, characters = [collection.streams[stream] for stream in streams], 0
    for document, *texts in zip(collection.document_ids, *of_streams, strict=True):
        for (stream, of_block), text in zip(block.items(), texts, strict=True):
            if not isinstance(text, str):
                raise InputError(
                    f"collection {collection.name!r}: {stream} of document {document!r} is "
                    f"{text!r}, not text; use '' where there is none"
                )
            of_block.append(text)
        characters += max(map(len, texts))
        if characters >= BLOCK_CHARACTERS:
            yield block
            block, characters = {stream: [] for stream in block}, 0
    if any(block.values()):
        yield block


def _chain(
    first: Mapping[str, Sequence[str]], rest: Iterator[Mapping[str, Sequence[str]]]
) -> Iterator[Mapping[str, Sequence[str]]]:
    yield first
    for number, block in enumerate(rest, start=1):
        if set(block) != set(first):
            raise InputError(
                f"block {number} of documents has the streams {', '.join(sorted(block))}; "
                f"block 0 had {', '.join(sorted(first))}"
            )
        yield block
