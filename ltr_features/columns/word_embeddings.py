"""Cosines of word vectors: the columns "word embedding, word" of Ensan et al. 2017, Table 1.

Rules (field s of document d, query q; occurrences count, so a word twice weighs twice):

- average: mean of cos(u, v) over all pairs of an occurrence u in q and an occurrence v in s;
- maximum: the greatest of them;
- words without a vector are left out of both; words of the query that no document has do count;
- 0 where q or s is empty or has no word with a vector, and where the collection lacks s.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.embeddings.cosines import Bags, cosines
from ltr_features.embeddings.settings import TrainingSettings
from ltr_features.embeddings.vectors import SUFFIX, WordVectors, served_tokens
from ltr_features.text.collection import Pairs

#: The fields of the paper's Table 1, in its order.
EMBEDDING_FIELDS = ("body", "title", "keywords", "description")

ENSAN = "Ensan et al. 2017, CIKM, Table 1"

#: As ``vectors``: train on the collection.
TRAIN = "train"


@dataclass(frozen=True)
class WordVectorSource:
    """Where word vectors come from.

    Attributes:
        vectors: a file (see :meth:`WordVectors.load`), or ``"train"``: train on the collection. A
            file of :meth:`WordVectors.save` is mapped into memory; any other is read again for
            later queries with words that no document has, which takes seconds.
        dimension, epochs, window, min_count, negative, seed: of training, see
            :class:`ltr_features.embeddings.settings.TrainingSettings`.
        folder: where trained vectors are kept and looked for; None keeps them in memory only.

    Raises:
        InputError: no such file, or a setting of training outside its range.
    """

    vectors: str = TRAIN
    dimension: int = 100
    epochs: int = 10
    window: int = 5
    min_count: int = 2
    negative: int = 5
    seed: int = 1
    folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        TrainingSettings.of(self)  # checks them
        if self.vectors != TRAIN and not Path(self.vectors).is_file():
            raise InputError(
                f"vectors: no file {self.vectors}; name a vector file, or {TRAIN!r} to train on "
                "the collection"
            )

    @property
    def trained_on(self) -> str:
        """For the provenance of columns."""
        if self.vectors == TRAIN:
            return "text of all documents, no labels"
        return f"vectors of {Path(self.vectors).name}, no labels"

    def load(self, context: ColumnContext, tokens: list[str]) -> NDArray[np.float32]:
        """float32 [len(tokens), dimension]: unit vectors, 0 for tokens without one.

        Vectors are trained on the documents' texts once per context, and once per folder.
        """
        context = context.learned_from
        if self.vectors == TRAIN:
            key = ("word vectors", *(getattr(self, part.name) for part in fields(WordVectorSource)))
            return context.cached(key, lambda: self._train(context)).rows_for(tokens)
        analyzer = context.index.analyzer
        if Path(self.vectors).suffix != SUFFIX:
            return WordVectors.load(self.vectors, tokens, analyzer).rows_for(tokens)
        # Mapped into memory: kept open for the words of later queries.
        key = ("word vectors", self.vectors)
        mapped = context.cached(key, lambda: WordVectors.load(self.vectors))
        served = context.cached((*key, "tokens"), lambda: served_tokens(mapped.words, analyzer))
        rows = np.fromiter((served.get(token, -1) for token in tokens), dtype=np.int64)
        units = np.zeros((len(rows), mapped.dimension), dtype=np.float32)
        units[rows >= 0] = mapped.units[rows[rows >= 0]]
        return units

    def _train(self, context: ColumnContext) -> WordVectors:
        # gensim takes seconds to import; files do not need it.
        from ltr_features.embeddings import training

        return training.trained(
            WordVectors,
            training.train_word_vectors,
            context.collection,
            context.index.analyzer,
            TrainingSettings.of(self),
            self.folder,
        )


class FieldCosines(ColumnFamily):
    """Average and maximum cosine of the vectors of a query and of each of the four fields, 0 for
    fields that the collection lacks: ``PREFIX_avg_body``, ``PREFIX_max_body`` and so on.

    Attributes:
        compared: what is paired, with ``{field}`` in it.
    """

    knows_added: ClassVar[bool] = True
    reference: ClassVar[str] = ENSAN
    compared: ClassVar[str]

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(
            ColumnSpec(
                f"{self.name.replace('-', '_')}_{short}_{field}",
                f"{called} cosine between {self.compared.format(field=field)}",
                "cosine",
                "-1 to 1",
                ENSAN,
                field,
            )
            for field in EMBEDDING_FIELDS
            for short, called in (("avg", "average"), ("max", "maximum"))
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        asked = context.cached_for_queries((self, "queries"), lambda: self._queries(context))
        stored = context.cached((self, "fields"), lambda: self._fields(context))
        values = np.zeros((len(pairs), len(EMBEDDING_FIELDS), 2), dtype=np.float32)
        places = [EMBEDDING_FIELDS.index(field) for field in stored]
        found = cosines(asked, list(stored.values()), pairs.query, pairs.document, context.threads)
        values[:, places] = found.reshape(len(pairs), len(places), 2)
        return values.reshape(len(pairs), 2 * len(EMBEDDING_FIELDS))

    @abstractmethod
    def _queries(self, context: ColumnContext) -> Bags:
        """The vectors of each query."""

    @abstractmethod
    def _fields(self, context: ColumnContext) -> Mapping[str, Bags]:
        """The vectors of each document's fields, by field, of those that the collection has."""


@dataclass(frozen=True)
class WordEmbeddingWord(WordVectorSource, FieldCosines):
    """Average and maximum cosine of the words of query and field."""

    name: ClassVar[str] = "w2v-word"
    description: ClassVar[str] = "average and maximum cosine of word vectors, query against field"
    compared: ClassVar[str] = "words of the query and words of the {field}"

    def _queries(self, context: ColumnContext) -> Bags:
        words, counts = context.query_words
        vocabulary = context.index.vocabulary
        units = self._document_units(context)
        rows = vocabulary.rows(words)
        vectors = units[np.maximum(rows, 0)]
        new = np.flatnonzero(rows < 0)
        if len(new):
            vectors[new] = self.load(context, [words[i] for i in new.tolist()])
        return Bags.over(counts, vectors, rows)

    def _fields(self, context: ColumnContext) -> dict[str, Bags]:
        units, index = self._document_units(context), context.index
        present = [field for field in EMBEDDING_FIELDS if field in index]
        return {field: Bags.over(index.counts(field), units) for field in present}

    def _document_units(self, context: ColumnContext) -> NDArray[np.float32]:
        """float32 [V, dimension]: the vectors of the index's words, found once."""
        words = context.index.vocabulary
        return context.learned_from.cached((self, "units"), lambda: self.load(context, list(words)))
