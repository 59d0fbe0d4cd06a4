"""Sources of word vectors and doc2vec models: a file, or training on the collection."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, n_without, rows_without
from ltr_features.columns.context import MANY_UNKNOWN, ColumnContext
from ltr_features.embeddings.doc2vec import Doc2Vec
from ltr_features.embeddings.settings import TRAINED_ON, TrainingSettings
from ltr_features.embeddings.vectors import SUFFIX, WordVectors, served_tokens, unit_rows
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import examples
from ltr_features.text.index import WHOLE
from ltr_features.text.term_counts import renumbered

#: Given instead of a file name: train on the collection.
TRAIN = "train"


@dataclass(frozen=True, kw_only=True)
class _Source:
    """Parameters of both sources; a subclass adds the file, by the parameter in ``_parameter``."""

    dimension: int = 100
    epochs: int = 10
    min_count: int = 2
    negative: int = 5
    seed: int = 1
    folder: str | os.PathLike[str] | None = None

    _parameter: ClassVar[str]
    _called: ClassVar[str]
    _kind: ClassVar[type[WordVectors] | type[Doc2Vec]]

    def __post_init__(self) -> None:
        settings = TrainingSettings.of(self)  # checks them
        if self._file == TRAIN:
            return
        if not Path(self._file).is_file():
            raise InputError(
                f"{self._parameter}: no file {self._file}; name a {self._called}, or {TRAIN!r} to "
                "train on the collection"
            )
        if changed := settings.changed_from(TrainingSettings.of(type(self))):
            raise InputError(
                f"{', '.join(changed)}: {self._parameter} names {self._file}, which is trained "
                "already; leave out one of the two"
            )

    @classmethod
    def without_unused(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options without the training settings, if they name a file."""
        if options.get(cls._parameter, TRAIN) == TRAIN:
            return dict(options)
        return {k: v for k, v in options.items() if k not in TrainingSettings.names()}

    @property
    def trained_on(self) -> str:
        """What the vectors were learned from, for the provenance of columns."""
        return TRAINED_ON if self._file == TRAIN else f"{self._given}, no labels"

    @property
    def _given(self) -> str:
        return f"{self._called} {Path(self._file).name}"

    @property
    def _file(self) -> str:
        return getattr(self, self._parameter)

    @property
    def model_key(self) -> tuple[object, ...]:
        """A cache key that is equal for sources of the same vectors or model."""
        return (self._called, self._file, self.folder, *astuple(TrainingSettings.of(self)))

    def check_abstracts(
        self, context: ColumnContext, words: Sequence[str], vectors: NDArray[np.float32]
    ) -> None:
        """Raise InputError if a file knows no word of the abstracts of the documents' entities, so
        that all their vectors are 0, unless these documents were added to others."""
        if self._file != TRAIN and context.base is None and len(words) and not vectors.any():
            raise InputError(
                f"{self._parameter}: {self._file} has no word of the abstracts of the documents' "
                f"entities ({examples(words)}); name one of the knowledge base's language"
            )

    def save_learned(self, context: ColumnContext, folder: Path) -> None:
        path = self._stored(folder)
        if self._file == TRAIN and not path.is_file():  # families may share what is trained
            self._trained(context).save(path)

    def load_learned(self, context: ColumnContext, folder: Path) -> None:
        path = self._stored(folder)
        if self._file == TRAIN and path.is_file():
            context.cached(self.model_key, lambda: self._kind.load(path))

    def _stored(self, folder: Path) -> Path:
        settings = "-".join(map(str, astuple(TrainingSettings.of(self))))
        return folder / f"{self._kind.__name__.lower()}-{settings}{SUFFIX}"

    def _trained(self, context: ColumnContext) -> Any:
        """The vectors or model of the documents' texts: trained once per context, and once per
        folder, or those that :meth:`load_learned` found."""
        kind: Any = self._kind

        def train() -> Any:
            # gensim takes seconds to import; files do not need it.
            from ltr_features.embeddings.training import trained

            analyzer, settings = context.index.analyzer, TrainingSettings.of(self)
            return trained(kind, context.collection, analyzer, settings, self.folder)

        return context.cached(self.model_key, train)


class KnownWords(_Source, ColumnFamily):
    """A family that compares the words of queries and documents, as far as its source knows them:
    it tells how far that is."""

    @abstractmethod
    def known_words(self, context: ColumnContext) -> NDArray[np.bool_]:
        """bool [V]: whether the source knows each word of the index."""

    @abstractmethod
    def known_queries(self, context: ColumnContext) -> NDArray[np.bool_]:
        """bool [n_queries]: whether the source knows a word of each query."""

    def check(self, context: ColumnContext) -> None:
        """Raise InputError if a file knows no word of the documents."""
        if self._file != TRAIN and not self.known_words(context).any():
            raise InputError(
                f"{self._parameter}: {self._file} has no word of the documents "
                f"({examples(self._unknown(context)[1])}); name one of the texts' language"
            )

    def remarks_on(self, context: ColumnContext) -> list[str]:
        if self._file == TRAIN:
            return []
        share, words = self._unknown(context)
        if share < MANY_UNKNOWN:
            return []
        return [
            f"{self._given} lacks {100 * share:.0f} % of the words in documents, counted with "
            f"repetitions ({examples(words)}), and they are left out; take one that was made of "
            "texts like these"
        ]

    def _unknown(self, context: ColumnContext) -> tuple[float, list[str]]:
        """The share of the occurrences in documents that the source does not know, and the words,
        the most frequent first."""
        index = context.learned_from.index
        occurrences = index.field(WHOLE).collection_frequency
        lost = np.where(self.known_words(context), 0, occurrences)
        frequent = np.argsort(-lost, kind="stable")[: np.count_nonzero(lost)]
        words = list(index.vocabulary)
        return lost.sum() / occurrences.sum(), [words[i] for i in frequent[:4].tolist()]

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        # The source lacks nothing of a text that has no words.
        _, asked = context.query_words
        queries = context.cached_for_queries(
            (self, "known queries"),
            lambda: self.known_queries(context) | (np.diff(asked.indptr) == 0),
        )
        documents = context.cached((self, "known documents"), lambda: self._documents_of(context))
        return [n_without(queries, documents, pairs)] * len(self.columns)

    def _documents_of(self, context: ColumnContext) -> NDArray[np.bool_]:
        index = context.index
        known = index.counts(WHOLE) @ self.known_words(context) > 0
        return np.asarray(known | (index.field(WHOLE).lengths == 0))

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        without = rows_without("known word in the query, or none in the document", n_missing, n)
        advice = (
            f"words that occur less than {self.min_count} times are unknown: lower min_count, or "
            f"name a {self._called} that was made of more texts"
            if self._file == TRAIN
            else f"is the {self._given} of the texts' language?"
        )
        return f"{without}, and get 0; {advice}"


@dataclass(frozen=True)
class WordVectorSource(_Source):
    """The source of word vectors: a file, or training on the collection.

    Attributes:
        vectors: a file (see :meth:`WordVectors.load`), or ``"train"`` to train on the collection. A
            file written by :meth:`WordVectors.save` is memory-mapped; any other is read again for
            later queries with words that occur in no document, which takes seconds.
        dimension, epochs, window, min_count, negative, seed: training settings, see
            :class:`ltr_features.embeddings.settings.TrainingSettings`.
        folder: where trained vectors are stored and looked up; None keeps them in memory only.

    Raises:
        InputError: there is no such file, a training setting is out of range, or both are given.
    """

    vectors: str = TRAIN
    window: int = 5

    _parameter: ClassVar[str] = "vectors"
    _called: ClassVar[str] = "vector file"
    _kind = WordVectors

    def load(self, context: ColumnContext, tokens: list[str]) -> NDArray[np.float32]:
        """float32 [len(tokens), dimension]: unit vectors, 0 for tokens without a vector.

        Vectors are trained on the documents' texts once per context, and once per folder.
        """
        context = context.learned_from
        if self.vectors == TRAIN:
            trained: WordVectors = self._trained(context)
            return trained.rows_for(tokens)
        analyzer = context.index.analyzer
        if Path(self.vectors).suffix != SUFFIX:
            return WordVectors.load(self.vectors, tokens, analyzer).rows_for(tokens)
        # Memory-mapped, and kept open for the words of later queries.
        key = ("word vectors", self.vectors)
        mapped = context.cached(key, lambda: WordVectors.load(self.vectors))
        served = context.cached((*key, "tokens"), lambda: served_tokens(mapped.words, analyzer))
        rows = np.fromiter((served.get(token, -1) for token in tokens), dtype=np.int64)
        units = np.zeros((len(rows), mapped.dimension), dtype=np.float32)
        units[rows >= 0] = mapped.units[rows[rows >= 0]]
        return units


@dataclass(frozen=True)
class Doc2VecSource(_Source):
    """The source of a doc2vec model: a file, or training on the collection.

    Attributes:
        model: a file written by :meth:`Doc2Vec.save`, or ``"train"`` to train on the collection.
        dimension, epochs, min_count, negative, seed: training settings, see
            :class:`ltr_features.embeddings.settings.TrainingSettings`; negative = 0 trains by
            hierarchical softmax.
        folder: where trained models are stored and looked up; None keeps them in memory only.

    Raises:
        InputError: there is no such file, a training setting is out of range, or both are given.
    """

    model: str = TRAIN
    epochs: int = 20

    _parameter: ClassVar[str] = "model"
    _called: ClassVar[str] = "doc2vec model"
    _kind = Doc2Vec

    def load(self, context: ColumnContext) -> Doc2Vec:
        """The model, trained on the documents' texts once per context, and once per folder."""
        context = context.learned_from
        if self.model == TRAIN:
            return self._trained(context)
        return context.cached(self.model_key, lambda: Doc2Vec.load(self.model))

    def text_vectors(
        self, context: ColumnContext, tokens: Sequence[str], bags: csr_matrix
    ) -> NDArray[np.float32]:
        """float32 [n, dimension]: the unit vectors of texts given as bags of tokens; 0 for a text
        without known words.

        Args:
            tokens: the tokens that the columns of ``bags`` stand for, made by the index's analyzer.
                The model's words serve them by the rules of :meth:`WordVectors.load`.
            bags: [n, len(tokens)], counts.
        """
        model = self.load(context)
        counts = renumbered(bags, self.word_rows(context, tokens), len(model.words))
        counts.sum_duplicates()  # several tokens may be served by one word
        return unit_rows(model.infer(counts, context.threads))

    def word_rows(self, context: ColumnContext, tokens: Iterable[str]) -> NDArray[np.int64]:
        """int64: the row of the model's word that serves each token, -1 if none does."""
        model, analyzer = self.load(context), context.index.analyzer
        served = context.learned_from.cached(
            (model, "tokens"), lambda: served_tokens(model.words, analyzer)
        )
        return np.fromiter((served.get(token, -1) for token in tokens), dtype=np.int64)

    def field_vectors(self, context: ColumnContext, field: str) -> NDArray[np.float32]:
        """float32 [n_documents, dimension], see :meth:`text_vectors`."""
        index = context.index
        return context.cached(
            (self.model_key, field),
            lambda: self.text_vectors(context, index.vocabulary, index.counts(field)),
        )

    def query_vectors(self, context: ColumnContext) -> NDArray[np.float32]:
        """float32 [n_queries, dimension], see :meth:`text_vectors`."""
        words, counts = context.query_words
        return context.cached_for_queries(
            (self.model_key, "queries"), lambda: self.text_vectors(context, words, counts)
        )
