"""Columns from the entities that queries and documents mention.

Cosines of entity abstracts are the columns "word embedding, entity" and "document embedding,
entity" of Ensan et al. 2017, Table 1; overlaps are ours, beside them.

Rules (stream s of document d, query q):

- the entities of a text are a set: those of its mentions with rho and link probability of at least
  the thresholds; one that the knowledge base lacks is left out. The thresholds of queries and
  documents differ by default: a query with one mention has rho <= 1/2 of its link probability;
- ``w2v-entity``: average and maximum cosine over pairs of an occurrence of a word in the abstracts
  of q's entities and one in the abstracts of s's;
- ``d2v-entity``: average and maximum cosine over pairs of an entity of q and one of s, by the
  doc2vec vectors of their abstracts;
- 0 where q or s has no entity (or none whose abstract has a known word), and where the collection
  lacks s.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.collection import Pairs
from ltr_features.columns.doc_embeddings import Doc2VecSource
from ltr_features.columns.registry import ColumnContext, ColumnFamily, ColumnSpec
from ltr_features.columns.word_embeddings import (
    EMBEDDING_STREAMS,
    ENSAN,
    WordVectorSource,
    absent_streams,
    cosine_columns,
    stream_cosines,
)
from ltr_features.embeddings.cosines import Bags
from ltr_features.entities.knowledge import KnowledgeBase
from ltr_features.entities.linker import EntityLinker
from ltr_features.entities.of_dump import EXCERPT_NAME, base_of_dump, dump_path
from ltr_features.entities.replay import StoredAnnotations
from ltr_features.entities.tagme_service import TagmeService
from ltr_features.entities.wikipedia_linker import WikipediaLinker
from ltr_features.term_counts import count_terms, renumbered
from ssi_models.kernels.sparse import pair_products
from ssi_models.vocabulary import Vocabulary

LINKERS = ("wikipedia", "tagme", "stored")


@dataclass(frozen=True)
class EntitySource:
    """Where entities and their abstracts come from.

    Attributes:
        knowledge: folder of the knowledge base (``ltr-features wikipedia``).
        dump: instead of ``knowledge``, a small dump of Wikipedia whose knowledge base is made when
            it is first needed, or ``"wikipedia-excerpt"``, the one installed with gensim.
        linker: ``"wikipedia"`` (offline, by the knowledge base), ``"tagme"`` (the service) or
            ``"stored"``.
        annotations: of ``"tagme"`` the cache, of ``"stored"`` the file of annotations.
        min_rho, min_rho_query: least rho of mentions in documents and in queries, 0 to 1.
        min_link_probability: least link probability of mentions, 0 to 1.
        folder: where knowledge bases made of dumps are kept and looked for; None keeps none.

    Raises:
        InputError: an unknown linker, a threshold outside its range, or files that are not there.
    """

    knowledge: str | os.PathLike[str] | None = None
    linker: str = "wikipedia"
    annotations: str | os.PathLike[str] | None = None
    min_rho: float = 0.1
    min_rho_query: float = 0.0
    min_link_probability: float = 0.0
    dump: str | None = None
    folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.linker not in LINKERS:
            raise InputError(f"linker: no {self.linker!r}; there are {', '.join(LINKERS)}")
        for name in ("min_rho", "min_rho_query", "min_link_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 0 to 1")
        if self.linker != "wikipedia" and self.annotations is None:
            raise InputError(f"annotations: the linker {self.linker!r} needs the name of a file")
        if self.knowledge is not None and self.dump is not None:
            raise InputError("knowledge and dump are both given; give one of them")
        if self.knowledge is not None:
            KnowledgeBase.open(self.knowledge)
        if self.dump is not None:
            dump_path(self.dump)

    @property
    def entity_key(self) -> tuple[str | None, ...]:
        """Equal for sources that link alike."""
        where = str(self.knowledge or self.dump)
        return ("entities", where, self.linker, str(self.annotations))

    def base(self, context: ColumnContext) -> KnowledgeBase:
        """The knowledge base, opened once per context."""
        return context.once((self.entity_key, "base"), self._open)

    def _open(self) -> KnowledgeBase:
        if self.knowledge is not None:
            return KnowledgeBase.open(self.knowledge)
        if self.dump is not None:
            return base_of_dump(self.dump, self.folder)
        raise InputError(
            "entity columns need a knowledge base: make one with ltr-features wikipedia "
            "DUMP.xml.bz2 --out kb/ and name it by the option knowledge, or name a small dump "
            f"({EXCERPT_NAME!r}) by the option dump"
        )

    def make_linker(self, context: ColumnContext) -> EntityLinker:
        """The linker of these options."""
        if self.linker == "stored":
            return StoredAnnotations(self.annotations or "")
        if self.linker == "tagme":
            return TagmeService(self.annotations or "")
        # Opening its statistics costs more than linking a query.
        return context.once(
            (self.entity_key, "linker"),
            lambda: WikipediaLinker(self.base(context).path, threads=context.threads),
        )

    def query_entities(self, context: ColumnContext) -> EntitySets:
        """The entities of the queries."""
        key = (self.entity_key, "queries")
        raw = context.once_for_queries(key, lambda: self._link(context, ["queries"]))
        thresholds = (self.min_rho_query, self.min_link_probability)
        return context.once_for_queries((key, thresholds), lambda: raw.sets("queries", *thresholds))

    def stream_entities(self, context: ColumnContext, stream: str) -> EntitySets:
        """The entities of the documents' streams; all streams are linked together."""
        present = [s for s in EMBEDDING_STREAMS if s in context.index]
        key = (self.entity_key, "documents")
        raw = context.once(key, lambda: self._link(context, present))
        return raw.sets(stream, self.min_rho, self.min_link_probability)

    def linked_streams(self, context: ColumnContext) -> dict[str, EntitySets]:
        """The entities of each of the paper's streams that the collection has."""
        present = [stream for stream in EMBEDDING_STREAMS if stream in context.index]
        return context.once(
            (self.entity_key, "streams", self.min_rho, self.min_link_probability),
            lambda: {stream: self.stream_entities(context, stream) for stream in present},
        )

    def document_entities(self, context: ColumnContext) -> NDArray[np.int64]:
        """The entities that the documents' bags are over."""
        for linked in self.linked_streams(context).values():
            return linked.entities
        return np.zeros(0, dtype=np.int64)

    def _link(self, context: ColumnContext, parts: Sequence[str]) -> _LinkedTexts:
        base, linker = self.base(context), self.make_linker(context)
        columns: dict[str, NDArray[np.float64]] = {}
        sizes = {}
        for part in parts:
            of_queries = part == "queries"
            collection = context.collection
            texts = collection.query_texts if of_queries else collection.streams[part]
            linked = linker.link(texts)
            rows = base.rows([m.entity for mentions in linked for m in mentions])
            scores = [(m.rho, m.link_probability) for mentions in linked for m in mentions]
            counts = [len(mentions) for mentions in linked]
            text = np.repeat(np.arange(len(counts)), counts)
            columns[part] = np.column_stack([text, rows, np.reshape(scores, (-1, 2))])
            sizes[part] = len(counts)
        known = [column[column[:, 1] >= 0, 1] for column in columns.values()]
        entities = np.unique(np.concatenate([np.zeros(0), *known])).astype(np.int64)
        return _LinkedTexts(entities, columns, sizes)


@dataclass(frozen=True, eq=False)
class EntitySets:
    """The entities of texts.

    Attributes:
        entities: int64 [m], rows of the knowledge base, rising.
        bags: float32 [n texts, m], 1 where a text has the entity.
    """

    entities: NDArray[np.int64]
    bags: csr_matrix


@dataclass(frozen=True, eq=False)
class _LinkedTexts:
    """Raw mentions by part: columns text, row of the knowledge base, rho, link probability."""

    entities: NDArray[np.int64]
    mentions: dict[str, NDArray[np.float64]]
    sizes: dict[str, int]

    def sets(self, part: str, min_rho: float, min_probability: float) -> EntitySets:
        text, row, rho, probability = self.mentions[part].T
        kept = (row >= 0) & (rho >= min_rho) & (probability >= min_probability)
        column = np.searchsorted(self.entities, row[kept].astype(np.int64))
        n, width = self.sizes[part], len(self.entities)
        places = np.unique(text[kept].astype(np.int64) * width + column)
        ends = (
            np.searchsorted(places, np.arange(n + 1) * width)
            if width
            else np.zeros(n + 1, np.int64)
        )
        ones = np.ones(len(places), dtype=np.float32)
        bags = csr_matrix((ones, places % max(width, 1), ends), shape=(n, width))
        return EntitySets(self.entities, bags)


class _Abstracts(NamedTuple):
    """Abstracts of entities as bags of words: counts int32 [n, W], and the words' unit vectors."""

    counts: csr_matrix
    words: Vocabulary
    units: NDArray[np.float32]


@dataclass(frozen=True)
class WordEmbeddingEntity(EntitySource, WordVectorSource, ColumnFamily):
    """Average and maximum cosine of the words of the abstracts of query's and stream's entities."""

    name: ClassVar[str] = "w2v-entity"
    description: ClassVar[str] = "cosines of word vectors, abstracts of the entities mentioned"
    reference: ClassVar[str] = ENSAN

    def __post_init__(self) -> None:
        EntitySource.__post_init__(self)
        WordVectorSource.__post_init__(self)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return cosine_columns(
            "w2v_entity",
            "words in the abstracts of the query's entities and of entities in the {stream}",
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        asked = context.once_for_queries((self, "queries"), lambda: self._queries(context))
        stored = context.once((self, "streams"), lambda: self._streams(context))
        return stream_cosines(context, asked, stored, pairs)

    def absent(self, context: ColumnContext) -> dict[str, str]:
        return absent_streams(self, context)

    def _queries(self, context: ColumnContext) -> Bags:
        linked, stored = self.query_entities(context), self._document_abstracts(context)
        rows = _places(linked.entities, self.document_entities(context))
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
        # A query needs few of the documents' vectors.
        used, members = np.unique(counts.indices, return_inverse=True)
        seen = used < n_words
        units = np.concatenate([stored.units[used[seen]], unseen[used[~seen] - n_words]])
        bags = csr_matrix((counts.data, members, counts.indptr), shape=(n, len(used)))
        return Bags.over(bags, units, np.where(seen, used, -1))

    def _streams(self, context: ColumnContext) -> dict[str, Bags]:
        counts, _, units = self._document_abstracts(context)
        linked = self.linked_streams(context)
        return {name: Bags.over(part.bags @ counts, units) for name, part in linked.items()}

    def _document_abstracts(self, context: ColumnContext) -> _Abstracts:
        entities = self.document_entities(context)
        return context.once((self, "abstracts"), lambda: self._abstracts(context, entities))

    def _abstracts(self, context: ColumnContext, entities: NDArray[np.int64]) -> _Abstracts:
        texts = list(self.base(context).abstracts[entities])
        words, counts = count_terms(texts, context.index.analyzer, threads=context.threads)
        return _Abstracts(csr_matrix(counts), Vocabulary(words), self.load(context, words))


@dataclass(frozen=True)
class DocumentEmbeddingEntity(EntitySource, Doc2VecSource, ColumnFamily):
    """Average and maximum cosine of the doc2vec vectors of the abstracts of query's and stream's
    entities."""

    name: ClassVar[str] = "d2v-entity"
    description: ClassVar[str] = "cosines of doc2vec vectors, abstracts of the entities mentioned"
    reference: ClassVar[str] = ENSAN

    def __post_init__(self) -> None:
        EntitySource.__post_init__(self)
        Doc2VecSource.__post_init__(self)

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return cosine_columns(
            "d2v_entity", "the abstracts of the query's entities and of entities in the {stream}"
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        asked = context.once_for_queries((self, "queries"), lambda: self._queries(context))
        stored = context.once((self, "streams"), lambda: self._streams(context))
        return stream_cosines(context, asked, stored, pairs)

    def absent(self, context: ColumnContext) -> dict[str, str]:
        return absent_streams(self, context)

    def _queries(self, context: ColumnContext) -> Bags:
        linked, stored = self.query_entities(context), self._document_vectors(context)
        rows = _places(linked.entities, self.document_entities(context))
        units = np.zeros((len(rows), stored.shape[1]), dtype=np.float32)
        new = rows < 0
        units[~new] = stored[rows[~new]]
        if new.any():
            units[new] = self._abstract_vectors(context, linked.entities[new])
        return Bags.over(linked.bags, units, rows)

    def _streams(self, context: ColumnContext) -> dict[str, Bags]:
        units, linked = self._document_vectors(context), self.linked_streams(context)
        return {name: Bags.over(part.bags, units) for name, part in linked.items()}

    def _document_vectors(self, context: ColumnContext) -> NDArray[np.float32]:
        entities = self.document_entities(context)
        return context.once((self, "vectors"), lambda: self._abstract_vectors(context, entities))

    def _abstract_vectors(
        self, context: ColumnContext, entities: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        texts = list(self.base(context).abstracts[entities])
        words, counts = count_terms(texts, context.index.analyzer, threads=context.threads)
        return self.text_vectors(context, words, counts)


def _places(wanted: NDArray[np.int64], rising: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [len(wanted)]: where each number is among distinct rising ones; -1 where it is not."""
    places = np.searchsorted(rising, wanted)
    found = places < len(rising)
    found[found] = rising[places[found]] == wanted[found]
    return np.where(found, places, -1)


@dataclass(frozen=True)
class EntityOverlap(EntitySource, ColumnFamily):
    """How many of the query's entities a stream mentions."""

    name: ClassVar[str] = "entity-overlap"
    description: ClassVar[str] = "entities of the query that a stream mentions: number and share"
    reference: ClassVar[str] = "none: entities shared, beside the paper's columns"

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(
            ColumnSpec(
                f"entity_{short}_{stream}",
                f"{called} of the query's entities that the {stream} mentions",
                unit,
                value_range,
                self.reference,
                stream,
            )
            for stream in EMBEDDING_STREAMS
            for short, called, unit, value_range in (
                ("shared", "number", "entities", ">= 0"),
                ("covered", "share", "share", "0 to 1"),
            )
        )

    @property
    def trained_on(self) -> str:
        return "nothing: entities of queries and documents"

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        queries = self.query_entities(context)
        values = np.zeros((len(pairs), len(self.columns)), dtype=np.float32)
        sizes = np.diff(queries.bags.indptr)[pairs.query]
        for stream, documents in self.linked_streams(context).items():
            n_entities = len(documents.entities)
            rows = _places(queries.entities, documents.entities)
            asked, held = renumbered(queries.bags, rows, n_entities), documents.bags
            shared = np.zeros(len(pairs))
            pair_products(
                *(asked.indptr.astype(np.int64), asked.indices, asked.data),
                *(held.indptr.astype(np.int64), held.indices, held.data),
                *(pairs.query, pairs.document, np.zeros(n_entities), shared, 0, len(pairs)),
            )
            position = 2 * EMBEDDING_STREAMS.index(stream)
            values[:, position] = shared
            values[:, position + 1] = shared / np.maximum(sizes, 1)
        return values

    def absent(self, context: ColumnContext) -> dict[str, str]:
        return absent_streams(self, context)
