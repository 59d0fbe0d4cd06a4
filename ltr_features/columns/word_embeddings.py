"""Cosines of word vectors: the columns "word embedding, word" of Ensan et al. 2017, Table 1.

Rules (stream s of document d, query q; occurrences count, so a word twice weighs twice):

- average: mean of cos(u, v) over all pairs of an occurrence u in q and an occurrence v in s;
- maximum: the greatest of them;
- words without a vector are left out of both; words of the query that no document has do count;
- 0 where q or s is empty or has no word with a vector, and where the collection lacks s.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.collection import Pairs
from ltr_features.columns.registry import ColumnContext, ColumnFamily, ColumnSpec
from ltr_features.embeddings.cosines import average_cosines, maximum_cosines, mean_vectors
from ltr_features.embeddings.settings import TrainingSettings
from ltr_features.embeddings.vectors import SUFFIX, WordVectors
from ltr_features.term_counts import count_terms

#: The streams of the paper's Table 1, in its order.
EMBEDDING_STREAMS = ("body", "title", "keywords", "description")

ENSAN = "Ensan et al. 2017, CIKM, Table 1"

#: As ``vectors``: train on the collection.
TRAIN = "train"


@dataclass(frozen=True, eq=False)
class TextBags:
    """Queries and streams as bags over one list of tokens: the index's, then those that only
    queries have.

    Attributes:
        tokens: the words that the columns stand for.
        queries: int32 [n_queries, n tokens]: occurrences.
    """

    tokens: list[str]
    queries: csr_matrix
    _context: ColumnContext

    @classmethod
    def of(cls, context: ColumnContext) -> TextBags:
        """Made once per context."""
        return context.once_for_queries("text bags", lambda: cls._make(context))

    @classmethod
    def _make(cls, context: ColumnContext) -> TextBags:
        known = context.index.vocabulary
        words, counts = count_terms(
            context.collection.query_texts, context.index.analyzer, threads=context.threads
        )
        rows = known.rows(words)
        new = np.flatnonzero(rows < 0)
        rows[new] = len(known) + np.arange(len(new))
        tokens = [*known, *(words[i] for i in new.tolist())]
        queries = csr_matrix(
            (counts.data, rows[counts.indices], counts.indptr),
            shape=(counts.shape[0], len(tokens)),
        )
        queries.sort_indices()
        return cls(tokens, queries, context)

    def stream(self, stream: str) -> csr_matrix:
        """int32 [n_documents, n tokens]: occurrences in a stream."""
        counts = self._context.index.counts(stream)
        shape = (counts.shape[0], len(self.tokens))
        return csr_matrix((counts.data, counts.indices, counts.indptr), shape=shape)


@dataclass(frozen=True)
class WordVectorSource:
    """Where word vectors come from.

    Attributes:
        vectors: a file (see :meth:`WordVectors.load`), or ``"train"``: train on the collection.
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
        if self.vectors != TRAIN:
            found = WordVectors.load(self.vectors, tokens, context.index.analyzer)
            return found.rows_for(tokens)
        key = ("word vectors", *(getattr(self, part.name) for part in fields(WordVectorSource)))
        return context.once(key, lambda: self._train(context)).rows_for(tokens)

    def _train(self, context: ColumnContext) -> WordVectors:
        # gensim takes seconds to import; files do not need it.
        from ltr_features.embeddings import training

        settings = TrainingSettings.of(self)
        collection, analyzer = context.collection, context.index.analyzer
        if self.folder is None:
            return training.train_word_vectors(collection, analyzer, settings)
        key = training.training_key("word2vec", collection, analyzer, settings)
        path = Path(self.folder) / f"{key}{SUFFIX}"
        if not path.is_file():
            training.train_word_vectors(collection, analyzer, settings).save(path)
        return WordVectors.load(path)


@dataclass(frozen=True)
class WordEmbeddingWord(WordVectorSource, ColumnFamily):
    """Average and maximum cosine of the words of query and stream."""

    name: ClassVar[str] = "w2v-word"
    description: ClassVar[str] = "average and maximum cosine of word vectors, query against stream"
    reference: ClassVar[str] = ENSAN

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return cosine_columns("w2v_word", "words of the query and words of the {stream}")

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        bags = TextBags.of(context)
        units = context.once_for_queries((self, "units"), lambda: self._units(context, bags.tokens))
        values = np.zeros((len(pairs), len(self.columns)), dtype=np.float32)
        for position, stream in enumerate(EMBEDDING_STREAMS):
            if stream in context.index:
                part = bag_cosines(
                    context, (self, stream), bags.queries, bags.stream(stream), units, pairs
                )
                values[:, 2 * position : 2 * position + 2] = part
        return values

    def absent(self, context: ColumnContext) -> dict[str, str]:
        return absent_streams(self, context)

    def _units(self, context: ColumnContext, tokens: list[str]) -> NDArray[np.float32]:
        """Vectors of the documents' tokens, found once, then those that only queries have."""
        n = len(context.index.vocabulary)
        units = context.once((self, "units"), lambda: self.load(context, tokens[:n]))
        return units if len(tokens) == n else np.vstack([units, self.load(context, tokens[n:])])


def bag_cosines(
    context: ColumnContext,
    key: Hashable,
    queries: csr_matrix,
    documents: csr_matrix,
    units: NDArray[np.float32],
    pairs: Pairs,
) -> NDArray[np.float32]:
    """float32 [n, 2]: average and maximum cosine of the pairs' bags (see
    :mod:`ltr_features.embeddings.cosines`).

    Args:
        key: names the documents' bags and their vectors: their means are computed once for it, so
            that they must not depend on the queries.
        queries, documents: bags, [n_queries, V] and [n_documents, V].
        units: float32 [V, d].
    """
    query_means = context.once_for_queries(
        (key, "query means"), lambda: mean_vectors(queries, units)
    )
    means = context.once((key, "means"), lambda: mean_vectors(documents, units))
    rows = (pairs.query, pairs.document)
    values = np.empty((len(pairs), 2), dtype=np.float32)
    values[:, 0] = average_cosines(query_means, means, *rows, context.threads)
    values[:, 1] = maximum_cosines(queries, documents, units, *rows, context.threads)
    return values


def cosine_columns(prefix: str, compared: str) -> tuple[ColumnSpec, ...]:
    """Average and maximum for each of the four streams: ``PREFIX_avg_body`` and so on.

    Args:
        compared: what is paired, with ``{stream}`` in it.
    """
    return tuple(
        ColumnSpec(
            f"{prefix}_{short}_{stream}",
            f"{called} cosine between {compared.format(stream=stream)}",
            "cosine",
            "-1 to 1",
            ENSAN,
            stream,
        )
        for stream in EMBEDDING_STREAMS
        for short, called in (("avg", "average"), ("max", "maximum"))
    )


def absent_streams(family: ColumnFamily, context: ColumnContext) -> dict[str, str]:
    """The columns of streams that the collection lacks."""
    return {
        column.name: f"0: the collection has no stream {column.stream!r}"
        for column in family.columns
        if column.stream is not None and column.stream not in context.index
    }
