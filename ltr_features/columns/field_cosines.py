"""Cosines of the vectors of a query and of each of a document's fields, as in Ensan et al. 2017."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ltr_features.columns.base import ColumnFamily, ColumnSpec, having_members, n_without
from ltr_features.columns.context import ColumnContext
from ltr_features.embeddings.cosines import Bags, cosines
from ltr_features.text.collection import Pairs

#: The fields of the paper's Table 1, in its order.
EMBEDDING_FIELDS = ("body", "title", "keywords", "description")

ENSAN = "Ensan et al. 2017, CIKM, Table 1"


def cosine_column(name: str, description: str, field: str) -> ColumnSpec:
    """The declaration of one of the paper's columns."""
    return ColumnSpec(name, description, "cosine", "-1 to 1", ENSAN, field)


class FieldCosines(ColumnFamily):
    """Average and maximum cosine of the vectors of a query and of each of the four fields, 0 for
    fields that the collection lacks: ``PREFIX_avg_body``, ``PREFIX_max_body`` and so on.

    Attributes:
        compared: what the cosines compare, for column descriptions; contains ``{field}``.
    """

    knows_added: ClassVar[bool] = True
    reference: ClassVar[str] = ENSAN
    compared: ClassVar[str]

    @property
    def columns(self) -> tuple[ColumnSpec, ...]:
        return tuple(
            cosine_column(
                f"{self.name.replace('-', '_')}_{short}_{field}",
                f"{called} cosine between {self.compared.format(field=field)}",
                field,
            )
            for field in EMBEDDING_FIELDS
            for short, called in (("avg", "average"), ("max", "maximum"))
        )

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        asked, stored = self._asked(context), self._documents(context)
        values = np.zeros((len(pairs), len(EMBEDDING_FIELDS), 2), dtype=np.float32)
        places = [EMBEDDING_FIELDS.index(field) for field in stored]
        found = cosines(asked, list(stored.values()), pairs.query, pairs.document, context.threads)
        values[:, places] = found.reshape(len(pairs), len(places), 2)
        return values.reshape(len(pairs), 2 * len(EMBEDDING_FIELDS))

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        asked = having_members([self._asked(context).ends], context.collection.n_queries)
        ends = [bags.ends for bags in self._documents(context).values()]
        stored = having_members(ends, context.collection.n_documents)
        return [n_without(asked, stored, pairs)] * len(self.columns)

    def _documents(self, context: ColumnContext) -> Mapping[str, Bags]:
        return context.cached((self, "fields"), lambda: self._fields(context))

    def _asked(self, context: ColumnContext) -> Bags:
        return context.cached_for_queries((self, "queries"), lambda: self._queries(context))

    @abstractmethod
    def _queries(self, context: ColumnContext) -> Bags:
        """The vectors of each query."""

    @abstractmethod
    def _fields(self, context: ColumnContext) -> Mapping[str, Bags]:
        """The vectors of the documents, by field, for the fields that the collection has."""
