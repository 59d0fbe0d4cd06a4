"""The input of column families: a collection and its index, in memory or as a workspace folder."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from letor.digests import write_digests
from letor.errors import InputError, reading
from letor.files import atomic_path, check_replaced, read_json, write_json
from ltr_base.former import warn_of_former
from ltr_base.names import counted, listed, quoted
from ltr_features.text.analyzer import BY_LETTERS, Analyzer
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.collection_files import load_collection, save_collection
from ltr_features.text.document_workers import DocumentWorkers
from ltr_features.text.index import TermIndex
from ltr_features.text.stored_texts import save_documents
from ltr_features.text.term_counts import count_terms
from ssi_models.matrices import kept_from_changes

T = TypeVar("T")

#: From this share on, query words that occur in no document are worth a remark.
MANY_UNKNOWN = 0.1
#: From this share on, queries with letters or numbers that are too short for words are.
_MANY_SHORT = 0.05
#: Letters that are words of their own in English, but name nothing.
_NO_NAMES = frozenset("ai")
#: What parts letters that are one word: apostrophes, and the points of abbreviations.
_WITHIN_WORDS = re.compile(r"['\u2019]|(?<=[^\W\d_])\.")
_SYNONYMS_ADVICE = "add them to documents as synonyms"
_STEMMER_ADVICE = "if they are other forms, take a stemmer (index --stemmer)"
_LETTERS_ADVICE = f"if they are other spellings, compare letters: {BY_LETTERS}"
_MARK = "workspace.json"
_VERSION = 1


class _Memory:
    """A cache that computes the value of each key once, even if several threads ask at a time."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self._locks: dict[Any, Lock] = {}

    def value(self, key: Any, compute: Callable[[], T]) -> T:
        if key not in self._values:
            with self._locks.setdefault(key, Lock()):
                if key not in self._values:
                    self._values[key] = compute()
        return self._values[key]

    def __reduce__(self) -> tuple[type[_Memory], tuple[()]]:
        """Copies begin empty: locks cannot be copied, and values are computed again."""
        return _Memory, ()


@dataclass(frozen=True, eq=False)
class ColumnContext:
    """The input of a column family, with a cache of intermediate results.

    Attributes:
        collection: documents, queries and links.
        index: the term counts of the collection's documents.
        threads: number of worker threads; None for one per core. Columns do not depend on it.
        base: for added documents, the context of those that they were added to; None otherwise.
            See :attr:`learned_from`.
        folder: the workspace that the context was opened from, or None.

    Raises:
        InputError: the index belongs to another collection.
    """

    collection: Collection
    index: TermIndex
    threads: int | None = None
    base: ColumnContext | None = None
    folder: Path | None = None
    _of_documents: _Memory = field(default_factory=_Memory, repr=False)
    _of_queries: _Memory = field(default_factory=_Memory, repr=False)

    def __post_init__(self) -> None:
        if self.index.n_documents != self.collection.n_documents:
            raise InputError(
                f"the index has {self.index.n_documents} documents, collection "
                f"{self.collection.name!r} has {self.collection.n_documents}: build the index again"
            )

    @classmethod
    def of(
        cls,
        given: Collection | ColumnContext,
        analyzer: Analyzer | None = None,
        *,
        threads: int | None = None,
    ) -> ColumnContext:
        """The context of a collection, which is indexed; a context is returned as it is.

        Raises:
            InputError: it is neither, or the analyzer is none.
        """
        if not isinstance(analyzer, Analyzer | None):
            raise InputError(
                f"analyzer must be an Analyzer, such as Analyzer(stopwords='english'), got "
                f"{analyzer!r}"
            )
        if isinstance(given, ColumnContext):
            return given
        if not isinstance(given, Collection):
            raise InputError(
                f"collection must be a Collection, got {type(given).__name__}; read one with "
                "read_collection, from tables too: read_collection('table', documents=..., ...)"
            )
        return cls(given, TermIndex.build(given, analyzer), threads=threads)

    @cached_property
    def query_words(self) -> tuple[list[str], csr_matrix]:
        """The words of the queries in code point order, including words that occur in no document,
        and their counts, int32 [n_queries, n words], columns sorted, read-only."""
        words, counts = count_terms(self.collection.query_texts, self.index.analyzer)
        return words, kept_from_changes(counts)

    @cached_property
    def query_counts(self) -> csr_matrix:
        """int32 [n_queries, V], columns sorted, read-only: how often each word of the index occurs
        in each query."""
        return kept_from_changes(self.index.known_counts(*self.query_words))

    @property
    def remarks(self) -> list[str]:
        """Remarks that concern every column, sentences without a full stop: those of the
        collection, :attr:`unknown_words`, :attr:`without_words` and :attr:`short_words`."""
        return [
            *self.collection.remarks, *self.unknown_words, *self.without_words, *self.short_words,
        ]  # fmt: skip

    @property
    def without_words(self) -> list[str]:
        """A remark, without a full stop, if queries have no word at all, such as C++ or ???."""
        texts, analyzer = self.collection.query_texts, self.index.analyzer
        none = np.flatnonzero(np.diff(self.query_words[1].indptr) == 0)
        if not len(none):
            return []
        shown = listed([quoted(texts[row]) for row in none[:3].tolist()], 3)
        told = (
            f"{len(none):,} of {counted(len(texts), 'query')} have no word (such as {shown}), so "
            "that BM25 finds no candidate and no column of words knows them"
        )
        shorter = replace(analyzer, min_length=1)
        if any(shorter.tokens(texts[row]) for row in none.tolist()):
            told += "; keep single letters and digits by index --min-length 1"
        return [told]

    @property
    def short_words(self) -> list[str]:
        """A remark, without a full stop, if many queries have letters or digits that are too short
        for words, such as the size S or 1/2, at least one in twenty words (a long text has some).
        Articles, and letters parted by an apostrophe or by the points of an abbreviation, do not
        count."""
        analyzer, texts = self.index.analyzer, self.collection.query_texts
        if analyzer.min_length == 1:
            return []
        short = re.compile(rf"(?<![^\W_])[^\W_]{{1,{analyzer.min_length - 1}}}(?![^\W_])")
        shorter = replace(analyzer, min_length=1)
        whole = (_WITHIN_WORDS.sub("", text) for text in texts if short.search(text))
        lost: list[set[str]] = []
        for text in whole:
            words = {*shorter.tokens(text)}
            short_ones = words - {*analyzer.tokens(text)} - _NO_NAMES
            lost += [short_ones] if len(short_ones) >= _MANY_SHORT * len(words) else []
        n = sum(map(bool, lost))
        if not n or n < _MANY_SHORT * len(texts):
            return []
        frequent = Counter(word for words in lost for word in sorted(words))
        shown = ", ".join(word for word, _ in frequent.most_common(3))
        return [
            f"{100 * n / len(texts):.0f} % of the queries have letters or digits that are too "
            f"short for words (most often {shown}), so that sizes like S and L or 1/2 and 3/4 do "
            "not differ: if they matter, keep them by index --min-length 1"
        ]

    @property
    def unknown_words(self) -> list[str]:
        """A remark, without a full stop, if many of the queries' words occur in no document."""
        words, counts = self.query_words
        asked = np.asarray(counts.sum(axis=0)).ravel()
        unknown = self.index.vocabulary.rows(words) < 0
        share = asked[unknown].sum() / max(asked.sum(), 1)
        if share < MANY_UNKNOWN:
            return []
        lost = np.where(unknown, asked, 0)
        frequent = ", ".join(words[i] for i in np.argsort(-lost, kind="stable")[:3] if lost[i])
        analyzer, advised = self.index.analyzer, Counter[str]()
        forms = [] if analyzer.stemmer else [_STEMMER_ADVICE]
        usual = "; ".join([_SYNONYMS_ADVICE, *forms, _LETTERS_ADVICE])
        for i in np.flatnonzero(unknown):
            advised[analyzer.unsegmented(words[i]) or usual] += int(asked[i])
        advice = advised.most_common(1)[0][0]
        return [
            f"{100 * share:.0f} % of the words in queries occur in no document (most often "
            f"{frequent}), so that no column of words can match them, and no model learn them but "
            f"those with vocabularies of their own for queries and documents; {advice}"
        ]

    @property
    def learned_from(self) -> ColumnContext:
        """The context that statistics, vocabularies, vectors and links are learned from: this one,
        or for added documents the one that they were added to."""
        return self if self.base is None else self.base

    @cached_property
    def unjudged(self) -> ColumnContext:
        """This context without judgements, as families see it: none can give a label away."""
        if not len(self.collection.judgements):
            return self
        other = copy(self)
        object.__setattr__(other, "collection", self.collection.without_judgements())
        object.__setattr__(other, "base", self.base and self.base.unjudged)
        return other

    def of_added(self, collection: Collection) -> ColumnContext:
        """The context of documents that are added to these. Their columns are those that they
        would have in this collection if everything learned from documents ignored them.

        Raises:
            InputError: see :meth:`TermIndex.of_added`.
        """
        index = self.index.of_added(collection)
        return ColumnContext(collection, index, self.threads, base=self)

    def check(self, pairs: Pairs) -> None:
        """Raise InputError if a pair lies outside the collection."""
        pairs.check(self.collection.n_queries, self.collection.n_documents)

    def for_queries(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> ColumnContext:
        """The context of the same documents and other queries (without judgements); everything
        cached for the documents is shared.

        Raises:
            InputError: the ids are not distinct, or not as many as the texts.
        """
        collection = self.collection.with_queries(texts, ids)
        return self._with_queries(collection)

    def of_queries(self, first: int, last: int) -> ColumnContext:
        """The context of the query rows ``first`` to ``last`` (exclusive), with their judgements;
        everything cached for the documents is shared."""
        return self._with_queries(self.collection.of_queries(first, last))

    def _with_queries(self, collection: Collection) -> ColumnContext:
        return ColumnContext(
            collection, self.index, self.threads, self.base, _of_documents=self._of_documents
        )

    def cached(self, key: Any, compute: Callable[[], T]) -> T:
        """The result of ``compute()``, cached for these documents; for values that depend on no
        query, such as PageRank. The key must say, for all families, whose value it is and of which
        parameters."""
        return self._of_documents.value(key, compute)

    def cached_for_queries(self, key: Any, compute: Callable[[], T]) -> T:
        """The result of ``compute()``, cached for these documents and queries."""
        return self._of_queries.value(key, compute)

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """The old name of :meth:`cached`, for one release."""
        warn_of_former("ColumnContext.once is called cached now")
        return self.cached(key, compute)


def make_workspace(
    collection: Collection,
    folder: str | os.PathLike[str],
    *,
    analyzer: Analyzer | None = None,
    index: TermIndex | None = None,
    workers: DocumentWorkers | None = None,
) -> Path:
    """Write ``collection/`` (BEIR's layout, and its documents as Arrow) and ``index/`` into a new
    folder.

    Args:
        analyzer: how text is analysed; not used with ``index``, an existing index.
        workers: processes that count and write the documents, from
            :func:`~ltr_features.text.document_workers.documents_on`; None for this process. The
            workspace does not depend on it.

    An existing workspace is replaced when the new one is complete; a folder that holds anything
    else is left untouched.

    Raises:
        InputError: the folder holds something else, or the collection has no words.
    """
    folder = Path(folder)
    check_target(folder)
    with atomic_path(folder, kind="folder") as partial:
        (partial / "collection").mkdir(parents=True)
        documents = partial / "collection"
        save_documents(collection, documents)
        lines = workers.lines(documents) if workers else None
        save_collection(collection, documents, lines=lines)
        if index is None:
            analyzer = analyzer or Analyzer()
            counted = workers.counted(documents, analyzer) if workers else None
            index = TermIndex.build(collection, analyzer, counted=counted)
        index.save(partial / "index")
        write_json(partial / _MARK, {"version": _VERSION})
        write_digests(partial)
    return folder


def check_target(folder: str | os.PathLike[str]) -> None:
    """Raise InputError if a workspace cannot be made there; call it before a long read."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a workspace is a folder: name another path")
    check_replaced(folder, _MARK, "workspace")


def is_workspace(folder: Path) -> bool:
    """Whether a folder was made by :func:`make_workspace`."""
    return (folder / _MARK).is_file()


def open_workspace(folder: str | os.PathLike[str], *, threads: int | None = None) -> ColumnContext:
    """The context of a workspace's own queries; the index is memory-mapped.

    Raises:
        InputError: the folder is not a workspace, was made by a newer version, or is damaged.
    """
    folder = Path(folder)
    try:
        version = read_json(folder / _MARK)["version"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder} is not a workspace; make one: ltr-features index SOURCE ... --out {folder}"
        ) from None
    with reading(folder, "the workspace is damaged: index the collection again"):
        if version > _VERSION:
            raise InputError(f"{folder} was made by a newer version of this program; update it")
        collection = load_collection(folder / "collection")
        index = TermIndex.open(folder / "index")
        return ColumnContext(collection, index, threads=threads, folder=folder)
