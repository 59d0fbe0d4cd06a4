"""Columns from the entities that queries and documents mention.

Cosines of entity abstracts are the columns "word embedding, entity" and "document embedding,
entity" of Ensan et al. 2017, Table 1; the overlap columns are not from the paper.

Rules (field s of document d, query q):

- the entities of a text are a set: those of its mentions whose rho and link probability reach the
  thresholds, without entities that the knowledge base lacks. The rho thresholds of queries and
  documents differ by default: a query with one mention has rho <= 1/2 of its link probability;
- ``w2v-entity``: average and maximum cosine over pairs of a word occurrence in the abstracts of
  q's entities and one in the abstracts of s's entities;
- ``d2v-entity``: average and maximum cosine over pairs of an entity of q and one of s, by the
  doc2vec vectors of their abstracts;
- 0 where q or s has no entity (or none whose abstract has a known word), and where the collection
  lacks s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ltr_features.columns.base import NOTHING, ColumnSpec, having_members, n_without
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.entity_source import EntitySource
from ltr_features.columns.field_cosines import EMBEDDING_FIELDS, FieldCosines
from ltr_features.columns.term_space import row_products
from ltr_features.columns.vector_sources import Doc2VecSource, WordVectorSource
from ltr_features.embeddings.cosines import Bags
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import places_of
from ltr_features.text.term_counts import count_terms, renumbered
from ssi_models.vocabulary import Vocabulary


class _Abstracts(NamedTuple):
    """Abstracts of entities as bags of words: counts, int32 [n, W], and the words' unit vectors."""

    counts: csr_matrix
    words: Vocabulary
    units: NDArray[np.float32]


@dataclass(frozen=True)
class WordEmbeddingEntity(EntitySource, WordVectorSource, FieldCosines):
    """Average and maximum cosine of words in the abstracts of the query's and field's entities."""

    name: ClassVar[str] = "w2v-entity"
    description: ClassVar[str] = "cosines of word vectors, abstracts of the entities mentioned"
    compared: ClassVar[str] = (
        "words in the abstracts of the query's entities and of entities in the {field}"
    )

    def __post_init__(self) -> None:
        EntitySource.__post_init__(self)
        WordVectorSource.__post_init__(self)

    def _queries(self, context: ColumnContext) -> Bags:
        linked, stored = self.query_entities(context), self._document_abstracts(context)
        rows = places_of(linked.entities, self.document_entities(context))
        counts = renumbered(linked.bags, rows, stored.counts.shape[0]) @ stored.counts
        n, n_words, new = counts.shape[0], len(stored.words), rows < 0
        unseen = np.zeros((0, stored.units.shape[1]), dtype=np.float32)
        if new.any():
            more = self._abstracts(context, linked.entities[new])
            columns = stored.words.rows(more.words)
            unseen = more.units[columns < 0]
            columns[columns < 0] = n_words + np.arange(len(unseen))
            counts.resize((n, n_words + len(unseen)))
            counts += linked.bags[:, new] @ renumbered(more.counts, columns, counts.shape[1])
        counts.sort_indices()  # averages are summed in this order, whatever other queries mention
        # A query needs few of the documents' vectors.
        used, members = np.unique(counts.indices, return_inverse=True)
        seen = used < n_words
        units = np.concatenate([stored.units[used[seen]], unseen[used[~seen] - n_words]])
        bags = csr_matrix((counts.data, members, counts.indptr), shape=(n, len(used)))
        return Bags.over(bags, units, np.where(seen, used, -1))

    def _fields(self, context: ColumnContext) -> dict[str, Bags]:
        counts, _, units = self._document_abstracts(context)
        linked = self.linked_fields(context)
        return {name: Bags.over(part.bags @ counts, units) for name, part in linked.items()}

    def _document_abstracts(self, context: ColumnContext) -> _Abstracts:
        entities = self.document_entities(context)

        def known() -> _Abstracts:
            found = self._abstracts(context, entities)
            self.check_abstracts(context, list(found.words), found.units)
            return found

        return context.cached((self, "abstracts"), known)

    def _abstracts(self, context: ColumnContext, entities: NDArray[np.int64]) -> _Abstracts:
        texts = list(self.base(context).abstracts[entities])
        words, counts = count_terms(texts, context.index.analyzer)
        return _Abstracts(csr_matrix(counts), Vocabulary(words), self.load(context, words))


@dataclass(frozen=True)
class DocumentEmbeddingEntity(EntitySource, Doc2VecSource, FieldCosines):
    """Average and maximum cosine of the doc2vec vectors of abstracts of the query's and a field's
    entities."""

    name: ClassVar[str] = "d2v-entity"
    description: ClassVar[str] = "cosines of doc2vec vectors, abstracts of the entities mentioned"
    compared: ClassVar[str] = "the abstracts of the query's entities and of entities in the {field}"

    def __post_init__(self) -> None:
        EntitySource.__post_init__(self)
        Doc2VecSource.__post_init__(self)

    def _queries(self, context: ColumnContext) -> Bags:
        linked, stored = self.query_entities(context), self._document_vectors(context)
        rows = places_of(linked.entities, self.document_entities(context))
        units = np.zeros((len(rows), stored.shape[1]), dtype=np.float32)
        new = rows < 0
        units[~new] = stored[rows[~new]]
        if new.any():
            _, units[new] = self._abstract_vectors(context, linked.entities[new])
        return Bags.over(linked.bags, units, rows)

    def _fields(self, context: ColumnContext) -> dict[str, Bags]:
        units, linked = self._document_vectors(context), self.linked_fields(context)
        return {name: Bags.over(part.bags, units) for name, part in linked.items()}

    def _document_vectors(self, context: ColumnContext) -> NDArray[np.float32]:
        entities = self.document_entities(context)

        def known() -> NDArray[np.float32]:
            words, found = self._abstract_vectors(context, entities)
            self.check_abstracts(context, words, found)
            return found

        return context.cached((self, "vectors"), known)

    def _abstract_vectors(
        self, context: ColumnContext, entities: NDArray[np.int64]
    ) -> tuple[list[str], NDArray[np.float32]]:
        """The words of abstracts, and the vector of each abstract."""
        texts = list(self.base(context).abstracts[entities])
        words, counts = count_terms(texts, context.index.analyzer)
        return words, self.text_vectors(context, words, counts)


@dataclass(frozen=True)
class EntityOverlap(EntitySource):
    """How many of the query's entities a field mentions."""

    knows_added: ClassVar[bool] = True
    name: ClassVar[str] = "entity-overlap"
    description: ClassVar[str] = "entities of the query that a field mentions: number and share"
    reference: ClassVar[str] = "none: shared entities, in addition to the paper's columns"
    trained_on = f"{NOTHING}: entities of queries and documents"

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(
            ColumnSpec(
                f"entity_{short}_{field}",
                f"{called} of the query's entities that the {field} mentions",
                unit,
                value_range,
                self.reference,
                field,
            )
            for field in EMBEDDING_FIELDS
            for short, called, unit, value_range in (
                ("shared", "number", "entities", ">= 0"),
                ("covered", "share", "share", "0 to 1"),
            )
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        queries = self.query_entities(context)
        values = np.zeros((len(pairs), len(self.columns)), dtype=np.float32)
        sizes = np.diff(queries.bags.indptr)[pairs.query]
        for field, documents in self.linked_fields(context).items():
            rows = places_of(queries.entities, documents.entities)
            asked = renumbered(queries.bags, rows, len(documents.entities))
            shared = row_products(asked, documents.bags, pairs)
            position = 2 * EMBEDDING_FIELDS.index(field)
            values[:, position] = shared
            values[:, position + 1] = shared / np.maximum(sizes, 1)
        return values

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        collection, asked = context.collection, self.query_entities(context).bags.indptr
        ends = [linked.bags.indptr for linked in self.linked_fields(context).values()]
        queries = having_members([asked], collection.n_queries)
        documents = having_members(ends, collection.n_documents)
        return [n_without(queries, documents, pairs)] * len(self.columns)
