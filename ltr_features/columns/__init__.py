"""Feature columns: the classes of the column families, imported on first use.

from ltr_features.columns import Letor46, VectorSpace, WordEmbeddingWord
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ltr_base.lazy_names import declared_names, lazy_names

if TYPE_CHECKING:  # `as` marks a name as re-exported
    from ltr_features.columns.base import ColumnFamily as ColumnFamily
    from ltr_features.columns.base import ColumnSpec as ColumnSpec
    from ltr_features.columns.context import ColumnContext as ColumnContext
    from ltr_features.columns.doc_embeddings import DocumentEmbeddingChunk as DocumentEmbeddingChunk
    from ltr_features.columns.doc_embeddings import DocumentEmbeddingWord as DocumentEmbeddingWord
    from ltr_features.columns.document_numbers import DocumentNumbers as DocumentNumbers
    from ltr_features.columns.ensan2017 import Ensan2017 as Ensan2017
    from ltr_features.columns.entities import DocumentEmbeddingEntity as DocumentEmbeddingEntity
    from ltr_features.columns.entities import EntityOverlap as EntityOverlap
    from ltr_features.columns.entities import WordEmbeddingEntity as WordEmbeddingEntity
    from ltr_features.columns.given_scores import GivenScores as GivenScores
    from ltr_features.columns.given_vectors import GivenVectors as GivenVectors
    from ltr_features.columns.learned import LearnedColumn as LearnedColumn
    from ltr_features.columns.letor46 import Letor46 as Letor46
    from ltr_features.columns.registry import families as families
    from ltr_features.columns.registry import get_family as get_family
    from ltr_features.columns.term_space import LetterSpace as LetterSpace
    from ltr_features.columns.term_space import VectorSpace as VectorSpace
    from ltr_features.columns.word_embeddings import WordEmbeddingWord as WordEmbeddingWord

_HOMES = declared_names(__file__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
