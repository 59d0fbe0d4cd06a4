"""Cosines of doc2vec vectors: the columns "document embedding, word" and "chunk" of Ensan et al.
2017, Table 1.

Rules (field s of document d, query q):

- all vectors are inferred (see :mod:`ltr_features.embeddings.doc2vec`), those of documents too, so
  that queries and documents are treated alike and documents added later have the same vectors;
- chunks are windows of 10, 30 or 50 tokens of the body, without overlap; the last one may be
  shorter;
- words that the model does not know are skipped, but count towards a chunk's length; a text or
  chunk without a known word has no vector: its cosine is 0, and it is left out of average and
  maximum over chunks;
- 0 where the collection lacks the field;
- a trained model is gensim's PV-DBOW with one worker, to which all fields of a document except its
  URL are one text, documents in the order of their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, identity

from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.field_cosines import EMBEDDING_FIELDS, ENSAN, cosine_column
from ltr_features.columns.vector_sources import Doc2VecSource, KnownWords
from ltr_features.embeddings.cosines import Bags, average_cosines, cosines
from ltr_features.text.collection import Pairs

#: Lengths of chunks, in tokens.
CHUNK_LENGTHS = (10, 30, 50)


@dataclass(frozen=True)
class _OfWords(Doc2VecSource, KnownWords):
    """A doc2vec model that reads the texts themselves."""

    def known_words(self, context: ColumnContext) -> NDArray[np.bool_]:
        return self.word_rows(context, context.index.vocabulary) >= 0

    def known_queries(self, context: ColumnContext) -> NDArray[np.bool_]:
        words, counts = context.query_words
        return np.asarray(counts @ (self.word_rows(context, words) >= 0) > 0)


@dataclass(frozen=True)
class DocumentEmbeddingWord(_OfWords, ColumnFamily):
    """Cosine between the doc2vec vectors of the query and a field."""

    knows_added: ClassVar[bool] = True
    name: ClassVar[str] = "d2v-word"
    description: ClassVar[str] = "cosine of the doc2vec vectors of query and field"
    reference: ClassVar[str] = ENSAN

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(
            cosine_column(
                f"d2v_word_{field}",
                f"cosine between the doc2vec vectors of the query and the {field}",
                field,
            )
            for field in EMBEDDING_FIELDS
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        queries = self.query_vectors(context)
        values = np.zeros((len(pairs), len(EMBEDDING_FIELDS)), dtype=np.float32)
        for position, field in enumerate(EMBEDDING_FIELDS):
            if field in context.index:
                values[:, position] = average_cosines(
                    queries,
                    self.field_vectors(context, field),
                    pairs.query,
                    pairs.document,
                    context.threads,
                )
        return values


@dataclass(frozen=True)
class DocumentEmbeddingChunk(_OfWords, ColumnFamily):
    """Average and maximum cosine between the doc2vec vectors of the query and of body chunks."""

    knows_added: ClassVar[bool] = True
    name: ClassVar[str] = "d2v-chunk"
    description: ClassVar[str] = "average and maximum cosine of doc2vec vectors, query and chunks"
    reference: ClassVar[str] = ENSAN

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(
            cosine_column(
                f"d2v_chunk{length}_{short}_body",
                f"{called} cosine between the doc2vec vectors of the query and the chunks of "
                f"{length} words of the body",
                "body",
            )
            for length in CHUNK_LENGTHS
            for short, called in (("avg", "average"), ("max", "maximum"))
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        values = np.zeros((len(pairs), len(self.columns)), dtype=np.float32)
        if "body" not in context.index:
            return values
        asked = context.cached_for_queries((self, "queries"), lambda: self._queries(context))
        rows = (pairs.query, pairs.document)
        for position, length in enumerate(CHUNK_LENGTHS):
            chunks = partial(self._chunks, context, length)
            stored = context.cached((self, "chunks", length), chunks)
            part = cosines(asked, [stored], *rows, context.threads)
            values[:, 2 * position : 2 * position + 2] = part
        return values

    def _queries(self, context: ColumnContext) -> Bags:
        """The queries as bags of one vector each."""
        vectors = self.query_vectors(context)
        return Bags.over(identity(len(vectors), format="csr"), vectors)

    def _chunks(self, context: ColumnContext, length: int) -> Bags:
        """The documents as bags of chunks."""
        ends, tokens = self._body_tokens(context)
        chunk_ends, words = chunk_bags(ends, tokens, length, len(context.index.vocabulary))
        vectors = self.text_vectors(context, context.index.vocabulary, words)
        chunks = csr_matrix(
            (np.ones(len(vectors)), np.arange(len(vectors)), chunk_ends),
            shape=(len(ends) - 1, len(vectors)),
        )
        return Bags.over(chunks, vectors)

    def _body_tokens(self, context: ColumnContext) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The bodies as rows of the vocabulary: ends, int64 [n + 1], and tokens, int32."""

        def make() -> tuple[NDArray[np.int64], NDArray[np.int32]]:
            vocabulary, analyzer = context.index.vocabulary, context.index.analyzer
            parts = [
                vocabulary.rows(analyzer.tokens(text)).astype(np.int32)
                for text in context.collection.fields["body"]
            ]
            ends = np.cumsum([0, *map(len, parts)]).astype(np.int64)
            return ends, np.concatenate(parts)

        return context.cached("body tokens", make)


def chunk_bags(
    ends: NDArray[np.int64], tokens: NDArray[np.int32], length: int, n_words: int
) -> tuple[NDArray[np.int64], csr_matrix]:
    """Cut texts into chunks without overlap.

    Args:
        ends: int64 [n + 1], text i has ``tokens[ends[i]:ends[i + 1]]``.
        tokens: int32, 0 to n_words - 1; -1 for a word that only counts towards the length.
        length: tokens per chunk; the last chunk of a text may have fewer.

    Returns:
        The ends of each text's chunks, int64 [n + 1], and the word counts of the chunks, int32
        [n chunks, n_words].
    """
    sizes = np.diff(ends)
    chunk_ends = np.concatenate([[0], np.cumsum(-(-sizes // length))]).astype(np.int64)
    within = np.arange(len(tokens)) - np.repeat(ends[:-1], sizes)
    chunk = np.repeat(chunk_ends[:-1], sizes) + within // length
    chunk, tokens = chunk[tokens >= 0], tokens[tokens >= 0]
    bags = csr_matrix(
        (np.ones(len(tokens), dtype=np.int32), (chunk, tokens)),
        shape=(int(chunk_ends[-1]), n_words),
    )
    return chunk_ends, bags
