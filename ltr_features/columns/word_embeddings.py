"""Cosines of word vectors: the columns "word embedding, word" of Ensan et al. 2017, Table 1.

Rules (field s of document d, query q; occurrences count, so a repeated word weighs more):

- average: mean of cos(u, v) over all pairs of an occurrence u in q and an occurrence v in s;
- maximum: the greatest of these cosines;
- words without a vector are left out of both; query words that occur in no document do count;
- 0 where q or s is empty or has no word with a vector, and where the collection lacks s;
- trained vectors are those of gensim's skip-gram model with one worker, to which each field of a
  document except its URL is a sentence, documents in the order of their ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ltr_features.columns.context import ColumnContext
from ltr_features.columns.field_cosines import EMBEDDING_FIELDS, FieldCosines
from ltr_features.columns.vector_sources import KnownWords, WordVectorSource
from ltr_features.embeddings.cosines import Bags


@dataclass(frozen=True)
class WordEmbeddingWord(WordVectorSource, KnownWords, FieldCosines):
    """Average and maximum cosine between the words of the query and those of a field."""

    name: ClassVar[str] = "w2v-word"
    description: ClassVar[str] = "average and maximum cosine of word vectors, query against field"
    compared: ClassVar[str] = "words of the query and words of the {field}"

    def known_words(self, context: ColumnContext) -> NDArray[np.bool_]:
        return np.asarray(self._document_units(context).any(axis=1))

    def known_queries(self, context: ColumnContext) -> NDArray[np.bool_]:
        return np.diff(self._asked(context).ends) > 0

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
        """float32 [V, dimension]: the vectors of the index's words, loaded once."""
        words = context.index.vocabulary
        return context.learned_from.cached((self, "units"), lambda: self.load(context, list(words)))
