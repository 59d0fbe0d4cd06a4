"""Collection: documents with text fields, queries, relevance judgements and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.checked_arrays import as_array
from letor.dataset import check_texts
from letor.errors import InputError
from ltr_base.former import former_names, warn_of_former
from ltr_base.names import counted, repeated
from ltr_features.text.arrow_texts import StoredTexts
from ltr_features.text.id_rows import (
    are_reversed,
    by_position,
    check_of_queries,
    check_rows,
    ids_of,
    keep_integers,
    rows_of,
)
from ltr_features.text.markup import html_share, without_markup
from ltr_features.text.query_texts import begins_within, connected, normalised, same_text_remark
from ltr_features.text.source_remarks import (
    drawn_remark,
    html_remarks,
    own_text_remarks,
    source_remarks,
)

#: Text fields that a document may have. ``whole`` (all of them together) is derived.
FIELDS = ("body", "anchor", "title", "url", "keywords", "description")
#: Former keys of files and settings, and their present names.
FORMER_KEYS = {"stream": "field"}
#: Number of texts that are searched for HTML, and of queries for the text of their document.
_SEARCHED = 1_000
#: Name in the description of the number of judgements of queries' own documents.
_OWN_JUDGED = "judgements of documents that their query was made from, left out"


class _Rows:
    """Base of parallel arrays of rows, int64 [n], which cannot be changed."""

    def __post_init__(self) -> None:
        keep_integers(self, type(self).__name__.lower())

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))


@dataclass(frozen=True, eq=False)
class Judgements(_Rows):
    """Relevance judgements as three parallel arrays, which cannot be changed.

    Attributes:
        query: int64 [n], row of the query in ``Collection.query_ids``.
        document: int64 [n], row of the document in ``Collection.document_ids``.
        grade: int64 [n], relevance grade (0 or below: judged not relevant).

    Raises:
        InputError: these are not integer arrays, or they differ in length.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.int64]

    @classmethod
    def none(cls) -> Judgements:
        """No judgements."""
        return cls(*np.zeros((3, 0), dtype=np.int64))

    def where(self, kept: NDArray[np.bool_]) -> Judgements:
        """Those of a mask, bool [n]."""
        return Judgements(self.query[kept], self.document[kept], self.grade[kept])

    def of_queries(self, first: int, last: int) -> Judgements:
        """The judgements of queries ``first`` to ``last`` (exclusive)."""
        return self.where((self.query >= first) & (self.query < last))


@dataclass(frozen=True, eq=False)
class Links(_Rows):
    """Links between documents: int64 [n] rows of ``Collection.document_ids`` (duplicates kept), in
    arrays that cannot be changed.

    Raises:
        InputError: these are not integer arrays, or they differ in length.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pairs(_Rows):
    """(query, document) pairs, in any order, as two parallel arrays, which cannot be changed.

    Attributes:
        query: int64 [n], row of the query in ``Collection.query_ids``.
        document: int64 [n], row of the document in ``Collection.document_ids``.

    Raises:
        InputError: these are not integer arrays, or they differ in length.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]

    def select(self, chosen: NDArray[Any] | slice) -> Pairs:
        """Some of the pairs, by their places or a mask."""
        return Pairs(self.query[chosen], self.document[chosen])

    def check(self, n_queries: int, n_documents: int) -> None:
        """Raise InputError if a row lies outside the collection."""
        check_rows("pairs.query", self.query, n_queries)
        check_rows("pairs.document", self.document, n_documents)


@former_names(streams="fields")
@dataclass(frozen=True, eq=False)
class Collection:
    """A text collection as raw text, in memory or, for a workspace, memory-mapped
    (:class:`~.arrow_texts.StoredTexts`); term counts are in a ``TermIndex``.

    Attributes:
        name: short name, shown in reports.
        document_ids: distinct strings, one per document.
        fields: maps field names (a subset of ``FIELDS``) to the raw texts, one per document; a
            document without that field has ``""``.
        query_ids: distinct strings, one per query.
        query_texts: raw query texts, parallel to ``query_ids``.
        judgements: graded judgements; unjudged pairs count as not relevant.
        links: links between documents, or None if the collection has none.
        query_sources: int64 [n_queries], the document that each query was made from (-1: none); or
            None. It is no candidate for the query, judgements of it are left out (``description``
            counts them), and otherwise it is a document: see ``remarks``; ``withheld`` is better.
        query_groups: a label per query; splits "by group" keep queries of one group together (made
            from one article, for example); or None.
        query_times: float64 [n_queries], when each query was asked, as numbers that grow with time,
            for splits "by time", which need one of each query; or None.
        withheld: what was left out of the documents because the queries were drawn from it, or
            None. Anything else made from the same texts (a knowledge base) must leave it out too.
        description: how the collection was made (files, rules, counts); JSON-compatible.

    Raises:
        InputError: these contradict each other, or all judgements are of their queries' sources.
    """

    name: str
    document_ids: Sequence[str]
    fields: Mapping[str, Sequence[str]]
    query_ids: Sequence[str]
    query_texts: Sequence[str]
    judgements: Judgements
    links: Links | None = None
    query_sources: NDArray[np.int64] | None = None
    query_groups: Sequence[str] | None = None
    query_times: NDArray[np.float64] | None = None
    withheld: str | None = None
    description: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        sizes = f"{counted(self.n_documents, 'document')}, {counted(self.n_queries, 'query')}"
        judged = counted(len(self.judgements), "judgement")
        return f"<Collection {self.name!r}: {sizes}, {judged}>"

    def __post_init__(self) -> None:
        fields = {name: by_position(values) for name, values in self.fields.items()}
        object.__setattr__(self, "fields", fields)
        for name in ("document_ids", "query_ids", "query_texts", "query_groups"):
            object.__setattr__(self, name, by_position(getattr(self, name)))
        for name, dtype in (("query_sources", np.int64), ("query_times", np.float64)):
            object.__setattr__(self, name, as_array(name, getattr(self, name), dtype))
        unknown = sorted(set(self.fields) - set(FIELDS))
        if unknown:
            raise InputError(
                f"collection {self.name!r}: unknown fields {', '.join(unknown)}; "
                f"use {', '.join(FIELDS)}"
            )
        if len(self.document_ids) == 0:
            raise InputError(f"collection {self.name!r} has no documents")
        for name, texts in self.fields.items():
            if len(texts) != len(self.document_ids):
                raise InputError(
                    f"collection {self.name!r}: field {name!r} has {len(texts)} texts for "
                    f"{len(self.document_ids)} documents"
                )
            if isinstance(texts, str):
                raise InputError(
                    f"collection {self.name!r}: field {name!r} must be a list of texts, got the "
                    f"text {texts!r}"
                )
        self._check_ids("document", self.document_ids)
        self._check_queries()
        check_rows("judgements.query", self.judgements.query, len(self.query_ids))
        check_rows("judgements.document", self.judgements.document, len(self.document_ids))
        self._check_grades()
        for name in ("query_sources", "query_groups", "query_times"):
            check_of_queries(
                f"collection {self.name!r}: {name}", getattr(self, name), self.query_ids
            )
        if self.query_sources is not None:
            check_rows("query_sources", self.query_sources, len(self.document_ids), least=-1)
            self._leave_out_own(self.query_sources)
        if self.links is not None:
            check_rows("links.source", self.links.source, len(self.document_ids))
            check_rows("links.target", self.links.target, len(self.document_ids))

    def _leave_out_own(self, sources: NDArray[np.int64]) -> None:
        """Leave out judgements of the documents that queries were made from, which no ranking can
        show: they would lower every measure, and teach models what a copy is."""
        own = self.judgements.document == sources[self.judgements.query]
        if n := int(own.sum()):
            if own.all():
                raise InputError(
                    f"collection {self.name!r}: all judgements are of the document that the query "
                    "was made from, which is not ranked for it; if it is to be found, give no "
                    "sources; otherwise judge others, too"
                )
            object.__setattr__(self, "judgements", self.judgements.where(~own))
            object.__setattr__(self, "description", {**self.description, _OWN_JUDGED: n})

    def without_judgements(self) -> Collection:
        """The same documents and queries."""
        return self._with(judgements=Judgements.none())

    def _with(self, **values: Any) -> Collection:
        """A copy with other attributes, which are not checked."""
        other = copy(self)
        for name, value in values.items():
            object.__setattr__(other, name, value)
        return other

    def with_queries(self, texts: Sequence[str], ids: Sequence[str] | None = None) -> Collection:
        """The same documents with other queries, which have no judgements. The cost does not
        depend on the number of documents.

        Args:
            texts: the queries. ids: distinct ids; numbers from 1 by default.

        Raises:
            InputError: the ids are not distinct or not as many as the texts, or these are no list.
        """
        if isinstance(texts, str):  # whose letters would be taken for queries
            raise InputError(f"with_queries: texts must be a list of texts, such as [{texts!r}]")
        other = self.without_judgements()._with(
            query_texts=list(texts),
            query_ids=[str(n + 1) for n in range(len(texts))] if ids is None else list(ids),
            query_sources=None,
            query_groups=None,
            query_times=None,
        )
        other._check_queries()
        return other

    def of_queries(self, first: int, last: int) -> Collection:
        """The same documents with the query rows ``first`` to ``last`` (exclusive) and their
        judgements."""
        other = self.with_queries(self.query_texts[first:last], self.query_ids[first:last])
        judged = self.judgements.of_queries(first, last)
        values: dict[str, Any] = {
            "judgements": Judgements(judged.query - first, judged.document, judged.grade)
        }
        for name in ("query_sources", "query_groups", "query_times"):
            of_all = getattr(self, name)
            values[name] = None if of_all is None else of_all[first:last]
        return other._with(**values)

    def _check_queries(self) -> None:
        if len(self.query_ids) != len(self.query_texts):
            raise InputError(
                f"collection {self.name!r}: {len(self.query_ids)} query ids for "
                f"{len(self.query_texts)} query texts"
            )
        self._check_ids("query", self.query_ids)
        for query, text in zip(self.query_ids, self.query_texts, strict=True):
            if not isinstance(text, str):
                raise InputError(
                    f"collection {self.name!r}: the text of query {query!r} is {text!r}, not text"
                )

    def _check_grades(self) -> None:
        judged = self.judgements
        key = judged.query * self.n_documents + judged.document
        order = np.argsort(key, kind="stable")
        differs = (np.diff(key[order]) == 0) & (np.diff(judged.grade[order]) != 0)
        if differs.any():
            first = order[np.flatnonzero(differs)[0]]
            raise InputError(
                f"collection {self.name!r}: query {self.query_ids[judged.query[first]]!r} and "
                f"document {self.document_ids[judged.document[first]]!r} are judged twice, by "
                "different grades; keep one of them"
            )

    def _check_ids(self, what: str, ids: Sequence[str]) -> None:
        if isinstance(ids, StoredTexts) and ids.distinct:
            return
        check_texts(f"collection {self.name!r}: {what} ids", ids)
        if len(set(ids)) != len(ids):
            twice = repeated(ids)[0]
            raise InputError(f"collection {self.name!r}: {what} id {twice!r} occurs twice")

    def kept_together(self, *, by_group: bool = False) -> NDArray[np.int64] | None:
        """int64 [n_queries]: labels for splitting the queries into folds or held-out parts, where
        one side would give the other away: queries of the same text (see :func:`normalised`) have
        the same label, and ``by_group`` those of the same group. None if all labels differ.
        """
        names: list[Sequence[str]] = [[normalised(text) for text in self.query_texts]]
        if by_group and self.query_groups is not None:
            names.append(self.query_groups)
        labels = connected(names)
        return labels if len(np.unique(labels)) < self.n_queries else None

    @property
    def remarks(self) -> list[str]:
        """Remarks that concern every column of the collection, sentences without a full stop: on
        clicks that grades are inferred from; that queries were drawn from texts that models have
        seen or have the same text, that documents are relevant to each other or contain HTML."""
        found = source_remarks(self.description)
        if self.query_sources is not None and (n := int((self.query_sources >= 0).sum())):
            found.append(drawn_remark(n, self.n_queries))
            judged, relevant = self.judgements, self.judgements.grade > 0
            ends = (self.query_sources[judged.query[relevant]], judged.document[relevant])
            if both := int(are_reversed(ends, ends, self.n_documents).sum()):
                found.append(
                    f"{both:,} of {len(ends[0]):,} relevant pairs are relevant the other way "
                    "round, too: models learn none whose reverse is held out or tested"
                )
        found += own_text_remarks(self.own_text_share)
        found += html_remarks(self.html_share, self.query_html_share)
        if (labels := self.kept_together()) is not None:
            found.append(
                f"{same_text_remark(labels)}: new folds keep such queries together, except folds "
                "by time or of given parts"
            )
        return found

    @cached_property
    def own_text_share(self) -> float:
        """The share of queries that were most likely made from the document of the same id, which
        is not judged relevant to them nor known as their source; among some spread over all."""
        rows = _spread(self.n_queries)
        own = rows_of(ids_of(rows, self.query_ids), self.document_ids)
        keys = self.judgements.query * self.n_documents + self.judgements.document
        relevant = np.isin(rows * self.n_documents + own, keys[self.judgements.grade > 0])
        untold, n = (own >= 0) & ~relevant, len(rows)
        if self.query_sources is not None:
            untold &= self.query_sources[rows] != own
        rows, own = rows[untold], own[untold]
        fields = (map(without_markup, ids_of(own, of)) for of in self.fields.values())
        asked = map(without_markup, ids_of(rows, self.query_texts))
        texts = zip(asked, zip(*fields, strict=True), strict=True)
        return sum(begins_within(*pair) for pair in texts) / max(n, 1)

    @cached_property
    def html_share(self) -> float:
        """The share of documents that contain HTML, among some spread over the collection."""
        rows = _spread(self.n_documents)
        texts = [ids_of(rows, of) for name, of in self.fields.items() if name != "url"]
        return html_share(zip(*texts, strict=True))

    @cached_property
    def query_html_share(self) -> float:
        """The share of queries that contain HTML, among some spread over all."""
        return html_share([text] for text in ids_of(_spread(self.n_queries), self.query_texts))

    @property
    def streams(self) -> Mapping[str, Sequence[str]]:
        """The former name of ``fields``, for one release."""
        warn_of_former("Collection.streams is called fields now")
        return self.fields

    @property
    def n_documents(self) -> int:
        return len(self.document_ids)

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)


def _spread(n: int) -> NDArray[np.int64]:
    """Some of n rows, spread over all."""
    return np.unique(np.linspace(0, max(n - 1, 0), _SEARCHED).astype(np.int64))[:n]
