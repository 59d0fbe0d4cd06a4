"""The source of the entities of queries and documents: a knowledge base and a linker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, rows_without
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.field_cosines import EMBEDDING_FIELDS
from ltr_features.entities.knowledge import KnowledgeBase
from ltr_features.entities.linker import EntityLinker
from ltr_features.entities.of_dump import EXCERPT_NAME, base_of_dump, dump_path
from ltr_features.entities.replay import StoredAnnotations
from ltr_features.entities.tagme_service import LANGUAGES, TagmeService
from ltr_features.entities.wikipedia_linker import WikipediaLinker
from ltr_features.parameters import check_choice, check_range
from ltr_features.text.id_rows import examples

LINKERS = ("wikipedia", "tagme", "stored")


@dataclass(frozen=True)
class EntitySource(ColumnFamily):
    """The source of entities and their abstracts.

    Attributes:
        knowledge: folder of the knowledge base (made by ``ltr-features wikipedia``).
        dump: instead of ``knowledge``, a small dump of Wikipedia whose knowledge base is made when
            it is first needed, or ``"wikipedia-excerpt"``, the dump installed with gensim.
        linker: ``"wikipedia"`` (offline, by the knowledge base), ``"tagme"`` (the web service, in
            the knowledge base's language) or ``"stored"`` (annotations from a file).
        annotations: the cache file of ``"tagme"``, or the annotation file of ``"stored"``.
        min_rho, min_rho_query: least rho of mentions in documents and in queries, 0 to 1.
        min_link_probability: least link probability of mentions, 0 to 1.
        folder: where knowledge bases made from dumps are stored and looked up; None stores none.

    Raises:
        InputError: the linker is unknown, a threshold is out of range, or a file is missing.
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
        check_choice("linker", self.linker, LINKERS)
        for name in ("min_rho", "min_rho_query", "min_link_probability"):
            check_range(name, getattr(self, name), 0.0, 1.0)
        if self.linker != "wikipedia" and self.annotations is None:
            raise InputError(f"annotations: the linker {self.linker!r} needs the name of a file")
        if self.linker == "wikipedia" and self.annotations is not None:
            raise InputError(
                f"annotations: {str(self.annotations)!r} is not read by the linker 'wikipedia', "
                "which finds entities itself; name the linker 'stored' (your annotations) or "
                "'tagme' (answers that are kept), or leave out the file"
            )
        if self.knowledge is not None and self.dump is not None:
            raise InputError("knowledge and dump are both given; give one of them")
        if self.knowledge is not None:
            KnowledgeBase.open(self.knowledge)
        if self.dump is not None:
            dump_path(self.dump)

    @property
    def entity_key(self) -> tuple[str | None, ...]:
        """A cache key that is equal for sources that link alike."""
        where = str(self.knowledge or self.dump)
        return ("entities", where, self.linker, str(self.annotations))

    def check(self, context: ColumnContext) -> None:
        """Raise InputError if there is no usable knowledge base, see :meth:`base`, or not for the
        linker."""
        self.base(context)
        self.make_linker(context)

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        without = rows_without("known entity in the query, or none in the document", n_missing, n)
        return (
            f"{without}, and get 0; known are the articles of the knowledge base, by their titles "
            "and in its language"
        )

    def base(self, context: ColumnContext) -> KnowledgeBase:
        """The knowledge base, opened once per context.

        Raises:
            InputError: none is named, or it was made from texts that the collection's queries were
                drawn from.
        """
        context = context.learned_from
        withheld = context.collection.withheld
        return context.cached((self.entity_key, "base"), lambda: self._open(withheld))

    def _open(self, withheld: str | None) -> KnowledgeBase:
        if self.knowledge is not None:
            base = KnowledgeBase.open(self.knowledge)
        elif self.dump is not None:
            base = base_of_dump(
                self.dump, self.folder, withhold_query_sections=withheld is not None
            )
        else:
            raise InputError(
                "entity columns need a knowledge base: make one with ltr-features wikipedia "
                "DUMP.xml.bz2 --out kb/ and name it by the option knowledge, or name a small dump "
                f"({EXCERPT_NAME!r}) by the option dump"
            )
        if withheld not in (None, base.withheld):
            raise InputError(
                f"knowledge base {base.path} was made of whole articles, but queries are drawn "
                f"from {withheld}, which columns must not see; make it again with ltr-features "
                "wikipedia --no-query-sections"
            )
        return base

    def make_linker(self, context: ColumnContext) -> EntityLinker:
        """Make the linker that the options ask for."""
        if self.linker == "stored":
            return StoredAnnotations(self.annotations or "")
        if self.linker == "tagme":
            return TagmeService(self.annotations or "", language=self._language(context))
        # Opening its statistics costs more than linking a query.
        return context.learned_from.cached(
            (self.entity_key, "linker"),
            lambda: WikipediaLinker(self.base(context).path, threads=context.threads),
        )

    def _language(self, context: ColumnContext) -> str:
        base = self.base(context)
        language = base.language or "en"
        if language not in LANGUAGES:
            raise InputError(
                f"knowledge base {base.path} is of language {language!r}, which TAGME's service "
                f"lacks (it has {', '.join(LANGUAGES)}): link by linker='wikipedia'"
            )
        return language

    def query_entities(self, context: ColumnContext) -> EntitySets:
        """The entities of the queries."""
        key = (self.entity_key, "queries")
        raw = context.cached_for_queries(key, lambda: self._link(context, ["queries"]))
        thresholds = (self.min_rho_query, self.min_link_probability)
        return context.cached_for_queries(
            (key, thresholds), lambda: raw.sets("queries", *thresholds)
        )

    def linked_fields(self, context: ColumnContext) -> dict[str, EntitySets]:
        """The entities of the documents by field, for the paper's fields that the collection has;
        the fields are linked together and number their entities alike.

        Raises:
            InputError: no document mentions an entity of the knowledge base, unless these were
                added to others.
        """
        present = [field for field in EMBEDDING_FIELDS if field in context.index]
        key = (self.entity_key, "documents")
        raw = context.cached(key, lambda: self._link(context, present))
        if present and context.base is None and not len(raw.entities):
            titles = self.base(context).titles
            raise InputError(
                f"no document mentions an article of {self.knowledge or self.dump} "
                f"({examples(titles)}) by {self.make_linker(context).description}; is it of "
                "the texts' language, and are entities named by its titles?"
            )
        thresholds = (self.min_rho, self.min_link_probability)
        return context.cached(
            (key, thresholds), lambda: {field: raw.sets(field, *thresholds) for field in present}
        )

    def document_entities(self, context: ColumnContext) -> NDArray[np.int64]:
        """The entities that the columns of the documents' bags stand for, int64, ascending."""
        for linked in self.linked_fields(context).values():
            return linked.entities
        return np.zeros(0, dtype=np.int64)

    def _link(self, context: ColumnContext, parts: Sequence[str]) -> _LinkedTexts:
        base, linker = self.base(context), self.make_linker(context)
        columns: dict[str, NDArray[np.float64]] = {}
        sizes = {}
        for part in parts:
            collection = context.collection
            texts = collection.query_texts if part == "queries" else collection.fields[part]
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
    """The entities that each of several texts mentions.

    Attributes:
        entities: int64 [m], rows of the knowledge base, ascending.
        bags: float32 [n texts, m], 1 where a text mentions the entity.
    """

    entities: NDArray[np.int64]
    bags: csr_matrix


@dataclass(frozen=True, eq=False)
class _LinkedTexts:
    """Mentions by part, as columns: text, row of the knowledge base, rho, link probability."""

    entities: NDArray[np.int64]
    mentions: dict[str, NDArray[np.float64]]
    sizes: dict[str, int]

    def sets(self, part: str, min_rho: float, min_probability: float) -> EntitySets:
        text, row, rho, probability = self.mentions[part].T
        kept = (row >= 0) & (rho >= min_rho) & (probability >= min_probability)
        column = np.searchsorted(self.entities, row[kept].astype(np.int64))
        places = (text[kept].astype(np.int64), column)
        shape = (self.sizes[part], len(self.entities))
        bags = csr_matrix((np.ones(len(column), np.float32), places), shape=shape)
        bags.data[:] = 1  # also where a text mentions an entity several times
        return EntitySets(self.entities, bags)
