"""What a fitted feature builder does with documents: compute their columns, add and remove some."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.checked_arrays import as_array
from letor.dataset import check_texts
from letor.errors import InputError, NotFittedError
from letor.frames import check_whole, pandas_frame
from letor.ids import id_texts
from ltr_base.former import former_names
from ltr_features.added_documents import AddedDocuments, Documents
from ltr_features.candidate_kinds import Search
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fitted import FittedColumn
from ltr_features.columns.learned import LearnedColumn
from ltr_features.remarks import warn_of
from ltr_features.sources.files import title_in
from ltr_features.text.id_rows import rows_of


class FittedBuilder:
    """The part of :class:`~ltr_features.feature_builder.FeatureBuilder` that works once it is
    fitted; see there for the attributes."""

    families: list[ColumnFamily]
    models: tuple[LearnedColumn, ...]
    depth: int
    context_: ColumnContext
    fitted_: list[FittedColumn]
    searches_: Mapping[str, Search]
    added_: AddedDocuments | None = None

    @property
    def column_names(self) -> list[str]:
        """The features' names, in order."""
        families = [name for family in self.families for name in family.column_names]
        return [*families, *(recipe.name for recipe in self.models)]

    def only(self, columns: Collection[str]) -> Self:
        """A builder, fitted as this one is, with the families and models that make one of the
        columns at least; candidates stay those of all."""
        other = copy(self)
        other.families = [
            family
            for family in self.families
            if any(name in columns for name in family.column_names)
        ]
        other.models = tuple(recipe for recipe in self.models if recipe.name in columns)
        if hasattr(self, "fitted_"):
            other.fitted_ = [made for made in self.fitted_ if made.recipe.name in columns]
        return other

    def transform(self, frame: Any) -> pd.DataFrame:
        """Add the columns to the rows of a frame.

        Args:
            frame: a pandas, polars or Arrow frame with columns ``qid``, ``query`` (the text) and
                ``docno``; other columns are kept.

        Returns:
            A new pandas frame, in the order of ``frame``, with a float32 column per feature.

        Warns:
            ColumnWarning: given scores or vectors know some of the queries in no row.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
            InputError: a column is missing, an unknown document, a query id with two texts, or
                given scores or vectors that know none of the queries.
        """
        frame = pandas_frame(frame)
        values = self.matrix(frame)
        features = pd.DataFrame(values, columns=self.column_names, index=frame.index)
        clash = sorted(set(features) & set(frame))
        if clash:
            raise InputError(f"the frame has columns {', '.join(clash)} already; rename them")
        return pd.concat([frame, features], axis=1)

    def matrix(self, frame: Any) -> NDArray[np.float32]:
        """float32 [len(frame), n_columns]: the features alone; see :meth:`transform`."""
        frame = check_whole(pandas_frame(frame), ["qid", "query", "docno"])
        texts = frame[["qid", "query"]].drop_duplicates()
        if texts["qid"].duplicated().any():
            twice = texts.loc[texts["qid"].duplicated(), "qid"].iloc[0]
            raise InputError(f"query id {twice!r} has two different texts")
        ids = id_texts(texts["qid"], "qid")
        query = pd.Index(texts["qid"]).get_indexer(frame["qid"])
        docnos = id_texts(frame["docno"], "docno")
        return self.compute(texts["query"].tolist(), query, docnos, ids=ids)

    def compute(
        self,
        queries: Sequence[str],
        query: NDArray[np.integer],
        docnos: Sequence[str],
        *,
        ids: Sequence[str] | None = None,
    ) -> NDArray[np.float32]:
        """float32 [n, n_columns]: features of the rows (queries[query[i]], docnos[i]).

        Raises:
            NotFittedError: before ``fit`` or ``load``.
            InputError: an unknown document, or ``query`` holds something else than places.
        """
        check_texts("queries", queries)
        documents = self._documents
        columns: list[ColumnFamily] = [*self.families, *self.fitted_]
        rows = documents.rows(docnos)
        return documents.compute(columns, queries, ids, as_array("query", query, np.int64), rows)

    @former_names(streams="fields")
    def with_documents(self, ids: Sequence[str], fields: Mapping[str, Sequence[str]]) -> Self:
        """A new builder with documents added, or replaced if their ids exist already.

        Everything learned from documents stays as it is, see :mod:`ltr_features.added_documents`.
        This builder is not changed; the new one shares its data.

        Args:
            ids: distinct ids of documents.
            fields: their texts by field, as in a collection; fields not given are empty.

        Warns:
            ColumnWarning: a family's sources lack something of these documents.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
            InputError: a family cannot compute added documents, or the documents are invalid.
        """
        other = self._having(AddedDocuments.of(self._fitted_context(), ids, fields, self.added_))
        warn_of(remark for family in self.families for remark in family.remarks_on_added(ids))
        return other

    def without_documents(self, ids: Sequence[str]) -> Self:
        """A new builder without some documents, of the build or added. Everything learned from
        documents stays as it is, as in :meth:`with_documents`.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
            InputError: an unknown id, no document would be left, or a family cannot compute added
                documents.
        """
        gone = list(dict.fromkeys(ids))
        self._documents.rows(gone)
        if len(gone) == self.n_documents:
            raise InputError("no document would be left; make a new build")
        context = self._fitted_context()
        none = {next(iter(context.collection.fields)): [""] * len(gone)}
        return self._having(AddedDocuments.of(context, gone, none, self.added_, removed=gone))

    def _having(self, added: AddedDocuments) -> Self:
        added.check([*self.families, *self.fitted_, *self._search_models])
        other = copy(self)
        other.added_ = added
        other.__dict__.pop("_documents", None)
        other._prepare()
        return other

    def _prepare(self) -> None:
        """Prepare the documents, and fail early if columns and documents do not fit together."""
        self.compute([], np.zeros(0, np.int64), [])
        for model in self._search_models:
            self._documents.best("", 1, model)

    @property
    def _search_models(self) -> list[FittedColumn]:
        return [search.model for search in self.searches_.values() if search.model is not None]

    def best_documents(self, query: str, *, excluded: Sequence[str] = ()) -> list[str]:
        """Ids of the candidates of a query: the best documents by the first of ``searches_``, best
        first, then those that the second one adds, and so on, as in training; BM25's best ``depth``
        if there are none.

        Args:
            excluded: ids of documents that are not ranked: that which the query is, above all.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
            InputError: ``excluded`` is not a list of texts.
        """
        check_texts("excluded", excluded)
        barred, documents = set(excluded), self._documents
        found: dict[str, None] = {}
        for depth, model in self.searches_.values() or [Search(self.depth)]:
            best = documents.best(query, depth + len(barred), model)
            found.update(dict.fromkeys([one for one in best if one not in barred][:depth]))
        return [*found]

    def title(self, docno: str) -> str:
        """A document's title, or else the beginning of its body, for people; "" if it has neither
        or is unknown.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
        """
        contexts = [self._fitted_context()]
        if self.added_ is not None:
            contexts.insert(0, self.added_.context)
        for collection in (context.collection for context in contexts):
            [row] = rows_of([docno], collection.document_ids)
            if row >= 0:
                return title_in(collection.fields, row)
        return ""

    @property
    def n_documents(self) -> int:
        """Number of documents, including added ones, without removed ones."""
        return len(self._documents)

    def unknown_documents(self, docnos: Sequence[str]) -> list[str]:
        """Those of the ids that no document has, in the order given.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
        """
        return [docno for docno in docnos if docno not in self._documents]

    @property
    def document_ids(self) -> list[str]:
        """Ids of all documents, including added ones, without removed ones.

        Raises:
            NotFittedError: before ``fit`` or ``load``.
        """
        return list(self._documents)

    def _fitted_context(self) -> ColumnContext:
        if not hasattr(self, "context_"):
            raise NotFittedError("this FeatureBuilder is not fitted: call fit or load")
        return self.context_

    @cached_property
    def _documents(self) -> Documents:
        return Documents(self._fitted_context(), self.added_)
