"""Feature columns: the families by the names of their classes, imported when first used.

from ltr_features.columns import Letor46, VectorSpace, WordEmbeddingWord
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import lazy_names

if TYPE_CHECKING:
    from ltr_features.columns.base import ColumnFamily, ColumnSpec
    from ltr_features.columns.context import ColumnContext
    from ltr_features.columns.doc_embeddings import DocumentEmbeddingChunk, DocumentEmbeddingWord
    from ltr_features.columns.ensan2017 import Ensan2017
    from ltr_features.columns.entities import (
        DocumentEmbeddingEntity,
        EntityOverlap,
        WordEmbeddingEntity,
    )
    from ltr_features.columns.given_scores import GivenScores
    from ltr_features.columns.given_vectors import GivenVectors
    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.columns.letor46 import Letor46
    from ltr_features.columns.registry import families, get_family
    from ltr_features.columns.term_space import LetterSpace, VectorSpace
    from ltr_features.columns.word_embeddings import WordEmbeddingWord

_HOMES = {
    "ColumnContext": ".context",
    "ColumnFamily": ".base",
    "ColumnSpec": ".base",
    "DocumentEmbeddingChunk": ".doc_embeddings",
    "DocumentEmbeddingEntity": ".entities",
    "DocumentEmbeddingWord": ".doc_embeddings",
    "Ensan2017": ".ensan2017",
    "EntityOverlap": ".entities",
    "GivenScores": ".given_scores",
    "GivenVectors": ".given_vectors",
    "LearnedColumn": ".learned",
    "Letor46": ".letor46",
    "LetterSpace": ".term_space",
    "VectorSpace": ".term_space",
    "WordEmbeddingEntity": ".entities",
    "WordEmbeddingWord": ".word_embeddings",
    "families": ".registry",
    "get_family": ".registry",
}

__all__ = [
    "ColumnContext",
    "ColumnFamily",
    "ColumnSpec",
    "DocumentEmbeddingChunk",
    "DocumentEmbeddingEntity",
    "DocumentEmbeddingWord",
    "Ensan2017",
    "EntityOverlap",
    "GivenScores",
    "GivenVectors",
    "LearnedColumn",
    "Letor46",
    "LetterSpace",
    "VectorSpace",
    "WordEmbeddingEntity",
    "WordEmbeddingWord",
    "families",
    "get_family",
]


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
