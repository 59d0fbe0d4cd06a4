"""TermIndex: term counts of every field over one vocabulary, which can be stored in a folder."""

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
from letor.files import atomic_path, check_replaced, save_array
from letor.mapped import GrowingArray
from ltr_base.slices import slices
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import FIELDS, Collection
from ltr_features.text.field_counts import FieldCounts
from ltr_features.text.index_files import (
    HEADER,
    POSTINGS,
    check_counts,
    map_array,
    read_header,
    read_postings,
    read_words,
)
from ltr_features.text.term_counts import (
    CountedBlock,
    count_fields,
    count_terms,
    merge_counted,
    renumbered,
)
from ssi_models.vocabulary import Vocabulary

#: The derived field: all fields of a document together.
WHOLE = "whole"

#: Characters of a field, and documents, that are held at a time.
BLOCK_CHARACTERS, _ROWS = 2**23, 2**14

#: Increased whenever the files of a stored index change.
INDEX_VERSION = 1

#: The stored arrays of a field.
_ARRAYS = (
    "ends", "terms", "counts", "lengths", "document_frequency", "collection_frequency",
)  # fmt: skip


class TermIndex:
    """Term counts of a collection's fields over one shared vocabulary.

    Make one with ``build`` or ``open``.

    Attributes:
        analyzer: the recipe that turned texts into tokens.
        vocabulary: the tokens of all fields, in code point order.
        fields: the fields that the collection has, in the order of ``FIELDS``. In addition, there
            is always the derived field ``"whole"``, their sum.
    """

    def __init__(
        self,
        analyzer: Analyzer,
        vocabulary: Vocabulary,
        counts: Mapping[str, FieldCounts],
        added: tuple[Sequence[str], Mapping[str, csr_matrix]] | None = None,
    ) -> None:
        self.analyzer = analyzer
        self.vocabulary = vocabulary
        self.fields = tuple(field for field in FIELDS if field in counts)
        self._counts = dict(counts)
        self._added = added  # of added documents, all their words, with counts by field
        self._matrices: dict[str, csr_matrix] = {}

    @classmethod
    def build(
        cls,
        collection: Collection,
        analyzer: Analyzer | None = None,
        *,
        counted: Iterable[tuple[str, CountedBlock]] | None = None,
    ) -> TermIndex:
        """Analyse and count all fields of a collection.

        Args:
            collection: the documents, row i of which is row i of every count matrix.
            analyzer: the recipe; None for the default one.
            counted: the documents' counts by the recipe, if they have been made elsewhere, for
                :func:`~ltr_features.text.term_counts.merge_counted`.

        Raises:
            InputError: the collection has no fields, a text is not a string, or no text has words.
        """
        analyzer, fields = analyzer or Analyzer(), _fields(collection)
        if counted is None:
            words, matrices = count_fields(_slices(collection), fields, analyzer)
        else:
            words, matrices = merge_counted(counted, fields, analyzer)
        named = _with_whole(fields, matrices)
        counts = {field: FieldCounts.from_matrix(matrix) for field, matrix in named.items()}
        counts.setdefault(WHOLE, counts[fields[0]])
        index = cls(analyzer, Vocabulary(words), counts)
        if not len(index.vocabulary):
            raise InputError(
                f"collection {collection.name!r}: no document has a word; check which fields are "
                "read as text, and how text is analysed"
            )
        return index

    @classmethod
    def without_words(cls, n_documents: int) -> TermIndex:
        """The index of documents whose texts are not known."""
        counts = FieldCounts.from_matrix(csr_matrix((n_documents, 0), dtype=np.int32))
        return cls(Analyzer(), Vocabulary([]), {WHOLE: counts})

    def of_added(self, collection: Collection) -> TermIndex:
        """An index of added documents with the vocabulary and statistics of this one. Words that
        the vocabulary lacks count towards the documents' lengths, and in :meth:`every_word`.

        Args:
            collection: the documents, with all fields of this index.

        Raises:
            InputError: a field is missing, or a text is not a string.
        """
        words, matrices = count_fields(_slices(collection), self.fields, self.analyzer)
        rows, counts = self.vocabulary.rows(words), {}
        every = {WHOLE: matrices[0], **_with_whole(self.fields, matrices)}
        for field, matrix in every.items():
            known = renumbered(matrix, rows, len(self.vocabulary))
            counts[field] = replace(
                FieldCounts.from_matrix(known),
                lengths=FieldCounts.from_matrix(matrix).lengths,
                document_frequency=self.field(field).document_frequency,
                collection_frequency=self.field(field).collection_frequency,
                unknown=np.diff(matrix.indptr).astype(np.int64) - np.diff(known.indptr),
                statistics=self.field(field),
            )
        return TermIndex(self.analyzer, self.vocabulary, counts, (words, every))

    @property
    def n_documents(self) -> int:
        return len(self._counts[WHOLE].lengths)

    def __contains__(self, field: object) -> bool:
        return field in self._counts

    def field(self, field: str) -> FieldCounts:
        """Counts and statistics of a field, or of ``"whole"``.

        Raises:
            InputError: the index has no such field.
        """
        if field not in self._counts:
            raise InputError(
                f"the index has no field {field!r}; it has {', '.join((*self.fields, WHOLE))}"
            )
        return self._counts[field]

    def counts(self, field: str) -> csr_matrix:
        """int32 [n_documents, V]: how often each word occurs in the field of each document."""
        part = self.field(field)
        if field not in self._matrices:
            shape = (self.n_documents, len(self.vocabulary))
            matrix = csr_matrix((part.counts, part.terms, part.ends), shape=shape, copy=False)
            matrix.has_canonical_format = True
            self._matrices[field] = matrix
        return self._matrices[field]

    def every_word(self, field: str) -> tuple[Sequence[str], csr_matrix]:
        """All words of the documents in code point order, and int32 [n_documents, n words], how
        often each occurs in the field: those of the vocabulary or, of added documents, their own,
        with those that the vocabulary lacks."""
        counts = self.counts(field)
        if self._added is None:
            return self.vocabulary, counts
        words, by_field = self._added
        return words, by_field[field]

    def query_counts(self, texts: Sequence[str]) -> csr_matrix:
        """int32 [len(texts), V], columns sorted: word counts of texts, analysed by this index's
        recipe; words that occur in no document are left out."""
        return self.known_counts(*count_terms(texts, self.analyzer))

    def known_counts(self, words: Sequence[str], counts: csr_matrix) -> csr_matrix:
        """int32 [n, V], columns sorted: counts [n, len(words)] of words in code point order, with
        sorted columns, over this index's columns; words that occur in no document are left out."""
        # Both vocabularies are in code point order, so the columns stay sorted.
        return renumbered(counts, self.vocabulary.rows(words), len(self.vocabulary))

    @property
    def word_codes(self) -> NDArray[np.uint64]:
        """uint64 [n_documents]: equal for documents that have the same words equally often in each
        field but the url, where copies differ; 0 for documents without a word there."""
        draw = np.random.default_rng(0)
        codes = np.zeros(self.n_documents, np.uint64)
        for field in self.fields:
            weights = draw.integers(2**64, size=len(self.vocabulary), dtype=np.uint64)
            if field != "url":
                codes += self.field(field).codes(weights)
        return codes

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the index to a folder, replacing an existing index in one step at the end.

        Raises:
            InputError: the folder holds something other than an index, or this is an index of
                added documents.
            OSError: the folder cannot be written.
        """
        folder = Path(folder)
        if self.field(WHOLE).statistics is not None:
            raise InputError(
                "an index of added documents cannot be stored; make it from their texts"
            )
        check_replaced(folder, HEADER, "index")
        with atomic_path(folder, kind="folder") as partial:
            partial.mkdir()
            encoded = [word.encode("utf-8") for word in self.vocabulary.words]
            lengths = np.array([len(word) for word in encoded], dtype=np.int64)
            save_array(partial / "word_lengths.npy", lengths)
            save_array(partial / "words.npy", np.frombuffer(b"".join(encoded), dtype=np.uint8))
            for field in self._stored_fields():
                for name in _ARRAYS:
                    array = getattr(self._counts[field], name)
                    save_array(partial / f"{field}.{name}.npy", np.asarray(array))
            for name, array in self.field(WHOLE).postings._asdict().items():
                save_array(partial / f"{POSTINGS}.{name}.npy", array)
            header = json.dumps(self._header(), indent=1)
            (partial / HEADER).write_text(header, encoding="utf-8", newline="\n")
            write_digests(partial)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> TermIndex:
        """Open a stored index. Arrays are memory-mapped; changes to them never reach the files.

        Raises:
            InputError: there is no index, or it is incomplete, damaged or of another version.
        """
        folder = Path(folder)
        with reading(folder, "it is damaged: build the index again"):
            return cls._read(folder)

    @classmethod
    def _read(cls, folder: Path) -> TermIndex:
        header = read_header(folder, INDEX_VERSION, (*FIELDS, WHOLE))
        with reading(folder / HEADER, "it is damaged: build the index again"):
            analyzer = Analyzer.from_json(header["analyzer"])
        words = read_words(folder, header)
        counts = {}
        for field in header["stored_streams"]:
            arrays: dict[str, Any] = {
                name: map_array(folder, f"{field}.{name}.npy") for name in _ARRAYS
            }
            check_counts(folder, field, arrays, header)
            counts[field] = FieldCounts(**arrays)
        counts.setdefault(WHOLE, counts[header["stored_streams"][0]])
        postings = read_postings(folder, len(counts[WHOLE].terms), header)
        counts[WHOLE] = replace(counts[WHOLE], stored_postings=postings)
        index = cls(analyzer, Vocabulary(words), counts)
        for name in ("analyzer_fingerprint", "unicode_version", "vocabulary_fingerprint"):
            here, stored = index._header()[name], header.get(name)
            if stored != here:
                raise InputError(
                    f"{folder}: the index was made with {name} {stored}, but here it is {here}; "
                    "build it again"
                )
        return index

    def _stored_fields(self) -> tuple[str, ...]:
        # A single field is the same as the whole document.
        return self.fields if len(self.fields) == 1 else (*self.fields, WHOLE)

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
            "stored_streams": list(self._stored_fields()),
            "n_entries": {s: len(self._counts[s].terms) for s in self._stored_fields()},
        }

    @cached_property
    def fingerprint(self) -> str:
        """Identifies recipe and vocabulary, which must fit a model trained on this index."""
        return f"{self.analyzer.fingerprint[:16]}-{self.vocabulary.fingerprint[:16]}"


def _with_whole(fields: Sequence[str], matrices: Sequence[csr_matrix]) -> dict[str, csr_matrix]:
    """The counts by field, and those of the whole document if there are several fields."""
    named = dict(zip(fields, matrices, strict=True))
    if len(fields) > 1:
        named[WHOLE] = _summed(matrices)
    return named


def _summed(matrices: Sequence[csr_matrix]) -> csr_matrix:
    """The sum of matrices, by blocks of rows; many entries are held on disk."""
    terms, counts, sizes = GrowingArray(np.int32), GrowingArray(np.int32), [np.zeros(1, np.int64)]
    for rows in slices(matrices[0].shape[0], _ROWS):
        block, *others = (matrix[rows] for matrix in matrices)
        for other in others:
            block = block + other
        terms.append(block.indices)
        counts.append(block.data)
        sizes.append(np.diff(block.indptr))
    ends = np.cumsum(np.concatenate(sizes))
    whole = csr_matrix((counts.taken(), terms.taken(), ends), shape=matrices[0].shape)
    whole.has_canonical_format = True
    return whole


def _fields(collection: Collection) -> tuple[str, ...]:
    """The fields of a collection, in the order of ``FIELDS``."""
    if not collection.fields:
        raise InputError(f"collection {collection.name!r} has no fields to index")
    return tuple(field for field in FIELDS if field in collection.fields)


def _slices(collection: Collection) -> Iterator[Mapping[str, list[str]]]:
    """Yield the documents of a collection in blocks of about BLOCK_CHARACTERS per field."""
    fields = _fields(collection)
    block: dict[str, list[str]] = {field: [] for field in fields}
    columns, characters = [collection.fields[field] for field in fields], 0
    for document, *texts in zip(collection.document_ids, *columns, strict=True):
        for (field, block_texts), text in zip(block.items(), texts, strict=True):
            if not isinstance(text, str):
                raise InputError(
                    f"collection {collection.name!r}: {field} of document {document!r} is "
                    f"{text!r}, not text; use '' for a missing text"
                )
            block_texts.append(text)
        characters += max(map(len, texts))
        if characters >= BLOCK_CHARACTERS:
            yield block
            block, characters = {field: [] for field in block}, 0
    if any(block.values()):
        yield block
