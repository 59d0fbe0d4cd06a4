"""Column families: what a feature column is, and where families are found.

A family is registered by name, ours in ``_BUILT_IN``, those of other packages through the entry
point group ``ltr_features.columns`` (value: ``module:Class``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.parameters import check_values
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.index import TermIndex
from ltr_features.text.term_counts import count_terms

T = TypeVar("T")

ENTRY_POINT_GROUP = "ltr_features.columns"

_BUILT_IN = {
    "letor46": "ltr_features.columns.letor46:Letor46",
    "vsm": "ltr_features.columns.term_space:VectorSpace",
    "w2v-word": "ltr_features.columns.word_embeddings:WordEmbeddingWord",
    "d2v-word": "ltr_features.columns.doc_embeddings:DocumentEmbeddingWord",
    "d2v-chunk": "ltr_features.columns.doc_embeddings:DocumentEmbeddingChunk",
    "w2v-entity": "ltr_features.columns.entities:WordEmbeddingEntity",
    "d2v-entity": "ltr_features.columns.entities:DocumentEmbeddingEntity",
    "ensan2017": "ltr_features.columns.ensan2017:Ensan2017",
    "entity-overlap": "ltr_features.columns.entities:EntityOverlap",
    "scores": "ltr_features.columns.given_scores:GivenScores",
    "vectors": "ltr_features.columns.given_vectors:GivenVectors",
}


@dataclass(frozen=True)
class ColumnSpec:
    """The declaration of one column.

    Attributes:
        name: distinct within the family, e.g. ``bm25_title``.
        description: one line; the formula where there is one.
        unit: what the number counts or measures (``tokens``, ``nats``, ``links``, ...).
        value_range: the values that can occur, e.g. ``>= 0``.
        reference: the paper that defines the column.
        stream: the stream that it reads, or None.
        letor_id: number in LETOR 4.0's list of 46, or None.
    """

    name: str
    description: str
    unit: str
    value_range: str
    reference: str
    stream: str | None = None
    letor_id: int | None = None


@dataclass(frozen=True, eq=False)
class ColumnContext:
    """What a family computes from.

    Attributes:
        collection: documents, queries and links.
        index: the term counts of the collection's documents.
        threads: worker threads; None for one per core. Columns do not depend on it.

    Raises:
        InputError: the index belongs to another collection.
    """

    collection: Collection
    index: TermIndex
    threads: int | None = None
    _of_documents: dict[Any, Any] = field(default_factory=dict, repr=False)
    _of_queries: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.index.n_documents != self.collection.n_documents:
            raise InputError(
                f"the index has {self.index.n_documents} documents, collection "
                f"{self.collection.name!r} has {self.collection.n_documents}: build the index again"
            )

    @cached_property
    def query_words(self) -> tuple[list[str], csr_matrix]:
        """The words of the queries in code point order, those that no document has among them, and
        their occurrences, int32 [n_queries, n words], columns sorted."""
        return count_terms(self.collection.query_texts, self.index.analyzer, threads=self.threads)

    @cached_property
    def query_counts(self) -> csr_matrix:
        """int32 [n_queries, V], columns sorted: how often each word of the index occurs in the
        queries."""
        return self.index.known_counts(*self.query_words)

    def check(self, pairs: Pairs) -> None:
        """Raise InputError if a pair lies outside the collection."""
        pairs.check(self.collection.n_queries, self.collection.n_documents)

    def for_queries(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> ColumnContext:
        """The context of the same documents and other queries (without judgements); what was
        computed of the documents is shared.

        Raises:
            InputError: ids that are not distinct, or not as many as texts.
        """
        collection = self.collection.with_queries(texts, ids)
        return ColumnContext(collection, self.index, self.threads, self._of_documents)

    def once(self, key: Any, compute: Callable[[], T]) -> T:
        """``compute()``, remembered for these documents: for what depends on no query, such as
        PageRank."""
        return _remembered(self._of_documents, key, compute)

    def once_for_queries(self, key: Any, compute: Callable[[], T]) -> T:
        """``compute()``, remembered for these documents and queries."""
        return _remembered(self._of_queries, key, compute)


def _remembered(known: dict[Any, Any], key: Any, compute: Callable[[], T]) -> T:
    if key not in known:
        known[key] = compute()
    value: T = known[key]
    return value


class ColumnFamily(ABC):
    """Columns that are computed together.

    A column's value depends on its (query, document) pair and on the context only, never on the
    other pairs of the call: any batch gives the same numbers.

    Attributes:
        name: the family's name in the registry.
        description: one line.
        reference: the paper or report that defines the family.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    reference: ClassVar[str]

    @property
    def trained_on(self) -> str:
        """What the columns were learned from, for their provenance; never labels."""
        return "nothing: counts of the collection"

    @property
    def remarks(self) -> Sequence[str]:
        """What the user must hear of how the columns were learned, see
        :attr:`ssi_models.base.MatchingModel.remarks`."""
        return ()

    @property
    @abstractmethod
    def columns(self) -> Sequence[ColumnSpec]:
        """The declared columns, in the order of ``compute``."""

    @abstractmethod
    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        """float32 [len(pairs), len(columns)], finite.

        Raises:
            InputError: a pair lies outside the collection, or the context lacks something that
                the family cannot do without.
        """

    def check(self, context: ColumnContext) -> None:  # noqa: B027, most can always be computed
        """Raise InputError if ``compute`` could not be done here; asked of all families before any
        of them computes."""

    def absent(self, context: ColumnContext) -> dict[str, str]:
        """Columns that are 0 throughout because the collection lacks their source, with the
        reason: name to one line."""
        return {}

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    def select(self, values: NDArray[np.float32], names: Sequence[str]) -> NDArray[np.float32]:
        """The named columns of a result of ``compute``, in the order given.

        Raises:
            InputError: the family has no such column.
        """
        position = {name: j for j, name in enumerate(self.column_names)}
        unknown = [name for name in names if name not in position]
        if unknown:
            raise InputError(
                f"column family {self.name!r} has no column {', '.join(unknown)}; it has "
                f"{', '.join(position)}"
            )
        return np.ascontiguousarray(values[:, [position[name] for name in names]])


def families() -> dict[str, type[ColumnFamily]]:
    """All registered families by name, ours first.

    Raises:
        InputError: an entry point of an installed package cannot be loaded.
    """
    found = {name: _load(target) for name, target in _BUILT_IN.items()}
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda p: p.name):
        if point.name in found:
            continue
        try:
            found[point.name] = point.load()
        except Exception as error:
            raise InputError(
                f"column family {point.name!r} ({point.value}) cannot be loaded: {error}; "
                "mend or remove the package that brings it"
            ) from error
    return found


def get_family(name: str, **options: Any) -> ColumnFamily:
    """A family by name; ``options`` are its constructor's parameters.

    Raises:
        InputError: no family of that name, or an option that it does not have.
    """
    known = families()
    if name not in known:
        raise InputError(f"no column family {name!r}; there are {', '.join(known)}")
    check_values(known[name], options, f"column family {name!r}")
    try:
        return known[name](**options)
    except TypeError as error:
        raise InputError(f"column family {name!r}: {error}") from None


def column_table(
    family: ColumnFamily, context: ColumnContext | None = None
) -> list[dict[str, str]]:
    """One row per column, for listings: family, letor_id, name, stream, unit, range, description,
    reference, and note, which says why a column is 0 throughout in this context."""
    absent = {} if context is None else family.absent(context)
    return [
        {
            "family": family.name,
            "letor_id": "" if column.letor_id is None else str(column.letor_id),
            "name": column.name,
            "stream": column.stream or "",
            "unit": column.unit,
            "range": column.value_range,
            "description": column.description,
            "reference": column.reference,
            "note": absent.get(column.name, ""),
        }
        for column in family.columns
    ]


def _load(target: str) -> type[ColumnFamily]:
    module, _, attribute = target.partition(":")
    family: type[ColumnFamily] = getattr(import_module(module), attribute)
    return family
