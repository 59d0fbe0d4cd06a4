"""Preferences: which documents are relevant to which query, and how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ltr_base.arrays import keep_read_only
from ltr_base.labels import first_unlabelled
from ltr_base.names import counted
from ssi_models.kernels.pair_losses import Judged
from ssi_models.matrices import check_rows


def _no_rows() -> NDArray[np.int64]:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Preferences:
    """Graded relevant pairs, which cannot be changed. A document is preferred over every document
    of a lower grade, and documents that are not listed have grade 0 (the tuples R of Bai et
    al., eq. 8).

    Attributes:
        query: int64 [n], row of the query matrix, ascending.
        document: int64 [n], row of the document matrix, ascending for each query.
        grade: float32 [n], greater than 0.
        n_queries, n_documents: number of rows of the two matrices.
        rejected_query, rejected_document: int64 [r], pairs that were given with grade 0 or less:
            judged not relevant, whereas most documents are not judged at all.
        weight: float32 [n], greater than 0, how much each pair counts in training (clicks, say), or
            None if all count alike. Validation ignores weights.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.float32]
    n_queries: int
    n_documents: int
    rejected_query: NDArray[np.int64] = field(default_factory=_no_rows)
    rejected_document: NDArray[np.int64] = field(default_factory=_no_rows)
    weight: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        keep_read_only(self)

    @classmethod
    def from_pairs(
        cls,
        query: ArrayLike,
        document: ArrayLike,
        grade: ArrayLike | None = None,
        *,
        n_queries: int,
        n_documents: int,
        weight: ArrayLike | None = None,
    ) -> Preferences:
        """Check and sort pairs. Weights of pairs of grade 0 or less have no effect.

        Raises:
            ValueError: rows outside the matrices, arrays of different length, a grade that is not
                finite, a weight that is not finite and above 0, a pair given twice with different
                grades or weights, or no pair of positive grade.
        """
        q = check_rows("query", query, n_queries)
        d = check_rows("document", document, n_documents)
        g = np.ones(len(q), np.float32) if grade is None else np.asarray(grade, dtype=np.float32)
        if not q.shape == d.shape == g.shape:
            raise ValueError(f"query, document, grade have shapes {q.shape}, {d.shape}, {g.shape}")
        if not np.isfinite(g).all():
            at = int(np.flatnonzero(~np.isfinite(g))[0])
            raise ValueError(f"preference {at}: grade is {g[at]}")
        if not (g > 0).any():
            raise ValueError("no preference has a grade above 0: there is nothing to learn from")
        w = np.ones(len(q), np.float32) if weight is None else np.asarray(weight, np.float32)
        if w.shape != q.shape:
            raise ValueError(f"weight has shape {w.shape} for {len(q)} pairs")
        if not (np.isfinite(w) & (w > 0)).all():
            at = int(np.argmin(np.isfinite(w) & (w > 0)))
            raise ValueError(f"preference {at}: weight is {w[at]}, must be above 0")
        order = np.lexsort((d, q))
        q, d, g, w = q[order], d[order], np.maximum(g[order], 0), w[order]
        same = (q[1:] == q[:-1]) & (d[1:] == d[:-1])
        for name, values in (("grades", g), ("weights", w)):
            if (differ := same & (values[1:] != values[:-1])).any():
                at = int(np.argmax(differ))
                raise ValueError(f"query row {q[at]}, document row {d[at]}: two different {name}")
        first = np.concatenate([[True], ~same])
        relevant, rejected = first & (g > 0), first & (g == 0)
        return cls(
            q[relevant],
            d[relevant],
            g[relevant],
            int(n_queries),
            int(n_documents),
            q[rejected],
            d[rejected],
            None if weight is None else w[relevant],
        )

    def __repr__(self) -> str:
        return (
            f"<Preferences: {counted(len(self), 'relevant pair')} of "
            f"{counted(len(self.queries), 'query')}; {self.n_queries:,} query rows, "
            f"{self.n_documents:,} document rows>"
        )

    def __len__(self) -> int:
        return len(self.query)

    @property
    def weights(self) -> tuple[NDArray[np.float32], ...]:
        """The weights to add to a digest; empty if all pairs count alike."""
        return () if self.weight is None else (self.weight,)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [n_queries + 1]: query i owns pairs ``offsets[i]:offsets[i + 1]``."""
        return np.searchsorted(self.query, np.arange(self.n_queries + 1)).astype(np.int64)

    @property
    def queries(self) -> NDArray[np.int64]:
        """int64: the rows of the queries that have at least one relevant document."""
        return np.flatnonzero(np.diff(self.offsets))

    def documents_of(self, query: int) -> NDArray[np.int64]:
        """int64, ascending: the relevant documents of a query row."""
        return self.document[self.offsets[query] : self.offsets[query + 1]]

    def only(self, queries: NDArray[np.int64]) -> Preferences:
        """The preferences of the given query rows (shapes unchanged)."""
        wanted = np.zeros(self.n_queries, dtype=bool)
        wanted[queries] = True
        return self._chosen(wanted[self.query], wanted[self.rejected_query])

    def without(
        self, queries: NDArray[np.int64], sources: NDArray[np.int64] | None = None
    ) -> Preferences:
        """The preferences of all but the given query rows (shapes unchanged), see
        :meth:`without_reversed`."""
        others = self.only(np.setdiff1d(np.arange(self.n_queries), queries))
        return others.without_reversed(self.only(queries), sources)

    def without_reversed(
        self, held_out: Preferences, sources: NDArray[np.int64] | None
    ) -> Preferences:
        """The preferences without relevant pairs that are held-out ones the other way round, and
        without rejected pairs that are: where queries are documents themselves, as with links, one
        direction gives the other away.

        Args:
            sources: int64 [n_queries], the document that each query was made from, -1 for none; or
                None: all pairs are kept.
        """
        if sources is None:
            return self
        n = self.n_documents

        def reverse(
            query: NDArray[np.int64],
            document: NDArray[np.int64],
            held_query: NDArray[np.int64],
            held_document: NDArray[np.int64],
        ) -> NDArray[np.bool_]:
            """Which pairs are held-out ones the other way round."""
            own, other = sources[query], sources[held_query]
            known = other >= 0
            there = held_document[known] * n + other[known]
            return (own >= 0) & np.isin(own * n + document, there)

        relevant = reverse(self.query, self.document, held_out.query, held_out.document)
        rejected = reverse(
            self.rejected_query,
            self.rejected_document,
            held_out.rejected_query,
            held_out.rejected_document,
        )
        return self._chosen(~relevant, ~rejected)

    def pairs(self, chosen: NDArray[np.int64]) -> Preferences:
        """Only the given relevant pairs (ascending pair numbers); rejected pairs are kept."""
        return self._chosen(chosen, slice(None))

    def _chosen(self, relevant: Any, rejected: Any) -> Preferences:
        """Select relevant and rejected pairs, each by indices, a mask or a slice."""
        return replace(
            self,
            query=self.query[relevant],
            document=self.document[relevant],
            grade=self.grade[relevant],
            rejected_query=self.rejected_query[rejected],
            rejected_document=self.rejected_document[rejected],
            weight=None if self.weight is None else self.weight[relevant],
        )

    def as_high(
        self, query: NDArray[np.int64], document: NDArray[np.int64], grade: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Whether documents, arrays of any shape, are relevant to their queries with at least the
        given grades."""
        keys = self.query * self.n_documents + self.document  # ascending
        wanted = query * self.n_documents + document
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return (keys[at] == wanted) & (self.grade[at] >= grade)

    def judged(self, excluded: NDArray[np.int64] | None = None) -> Judged:
        """All judged documents by query.

        Rejected documents have grade 0; ``excluded`` names a document per query (or -1) that gets
        the grade infinity, so that nothing is preferred over it.
        """
        has = _no_rows() if excluded is None else np.flatnonzero(excluded >= 0)
        barred = _no_rows() if excluded is None else excluded[has]
        query = np.concatenate([has, self.query, self.rejected_query])
        document = np.concatenate([barred, self.document, self.rejected_document])
        infinite = np.full(len(has), np.inf, np.float32)
        zero = np.zeros(len(self.rejected_query), np.float32)
        grade = np.concatenate([infinite, self.grade, zero])
        order = np.argsort(query, kind="stable")
        offsets = np.searchsorted(query[order], np.arange(self.n_queries + 1)).astype(np.int64)
        return Judged(offsets, document[order], grade[order])


def check_preferences(preferences: object) -> None:
    """Raise TypeError, naming the constructor to call, unless given :class:`Preferences`."""
    if not isinstance(preferences, Preferences):
        raise TypeError(
            f"preferences must be ssi_models.Preferences, got {type(preferences)}; "
            "make them with Preferences.from_pairs(query_rows, document_rows, grades, "
            "n_queries=..., n_documents=...)"
        )


def check_shapes(Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences) -> None:
    """Raise ValueError if preferences were made for other matrices."""
    check_preferences(preferences)
    if (preferences.n_queries, preferences.n_documents) != (Q.shape[0], D.shape[0]):
        raise ValueError(
            f"preferences are over {preferences.n_queries} x {preferences.n_documents} rows, "
            f"Q and D have {Q.shape[0]} x {D.shape[0]}"
        )


def check_excluded(
    excluded: ArrayLike | None, n_queries: int, n_documents: int | None = None
) -> NDArray[np.int64] | None:
    """The row of the document that each query was drawn from, int64 [n_queries], -1 for none; None
    if ``excluded`` is None.

    Args:
        n_documents: number of document rows, which limits the rows; None for no limit.

    Raises:
        ValueError: not a row, or -1, for each query.
    """
    if excluded is None:
        return None
    given = np.asarray(excluded)
    if given.shape != (n_queries,):
        raise ValueError(f"excluded has shape {given.shape} for {n_queries} queries")
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"excluded must be whole row numbers, -1 for none, got {given.dtype}")
    limit = int(given.max(initial=-1)) + 1 if n_documents is None else n_documents
    outside = (given < -1) | (given >= limit)
    if outside.any():
        at = int(np.argmax(outside))
        raise ValueError(f"excluded[{at}] is row {given[at]}, outside -1..{limit - 1}")
    return given.astype(np.int64, copy=False)


def check_groups(groups: ArrayLike, n_queries: int) -> NDArray[Any]:
    """The labels as an array [n_queries]. Raises ValueError unless there is one for each query."""
    labels = np.asarray(groups)
    if labels.shape != (n_queries,):
        raise ValueError(f"groups has shape {labels.shape} for {n_queries} queries")
    # As objects: among texts, numpy makes NaN a text.
    if (row := first_unlabelled(np.asarray(groups, dtype=object))) is not None:
        raise ValueError(
            f"groups: query {row} has none; give a group of its own to each query "
            "that belongs with no other"
        )
    return labels


def check_constraints(
    name: str,
    preferences: Preferences,
    *,
    weighs_pairs: bool = False,
    groups: ArrayLike | None = None,
    excluded: ArrayLike | None = None,
    candidates: ArrayLike | str | None = None,
    candidate_lists: Any = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Check the constraints given to a model that learns from no lists of negatives; returns the
    candidates and excluded documents. A model that draws no negatives satisfies them anyway.

    Args:
        name: name of the model, for messages. weighs_pairs: whether it learns from pair weights.

    Raises:
        ValueError: a constraint does not fit the preferences, or lists or weights are given that
            the model would ignore.
    """
    if preferences.weight is not None and not weighs_pairs:
        raise ValueError(
            f"{name} learns alike from all pairs, and these have weights; use a model of the SSI "
            "family, s2net, bltm or wtm, or give no weights"
        )
    if candidate_lists is not None:
        raise ValueError(
            f"candidate_lists: {name} learns from no negatives of a list; leave them out"
        )
    if groups is not None:
        check_groups(groups, preferences.n_queries)
    barred = check_excluded(excluded, preferences.n_queries, preferences.n_documents)
    return candidate_rows(candidates, preferences), barred


def candidate_rows(
    candidates: ArrayLike | str | None, preferences: Preferences
) -> NDArray[np.int64]:
    """The document rows that may be negatives, int64, ascending: the given ones; all (None); or
    those that are relevant to a query of the preferences ("relevant").

    Raises:
        ValueError: rows outside the matrix, a word other than "relevant", or no row at all.
    """
    if isinstance(candidates, str):
        if candidates != "relevant":
            raise ValueError(f"candidates {candidates!r} is unknown; give rows, or 'relevant'")
        return np.unique(preferences.document)
    every = preferences.n_documents
    pool = (
        np.arange(every)
        if candidates is None
        else np.unique(check_rows("candidates", candidates, every))
    )
    if not len(pool):
        raise ValueError("candidates is empty; at least one document must be a negative")
    return pool


def check_parts(
    parts: Sequence[NDArray[np.int64]], preferences: Preferences, excluded: ArrayLike | None = None
) -> NDArray[np.int64] | None:
    """Raise ValueError unless there are two or more disjoint parts of the query rows, and each
    leaves preferences of other queries to learn from. Returns ``excluded``, checked."""
    check_preferences(preferences)
    if len(parts) < 2:
        raise ValueError(f"{len(parts)} part of the queries; two or more are needed")
    rows = check_rows("parts", np.concatenate(parts), preferences.n_queries)
    if len(np.unique(rows)) < len(rows):
        raise ValueError("the parts share a query")
    sources = check_excluded(excluded, preferences.n_queries, preferences.n_documents)
    for number, part in enumerate(parts):
        if not len(np.setdiff1d(preferences.queries, part)):
            raise ValueError(
                f"part {number} has all queries with relevant documents: no others are left to "
                "learn from"
            )
        check_any_left(preferences.without(part, sources))
    return sources


def check_any_left(training: Preferences) -> None:
    """Raise ValueError if no pair is left once held-out ones and their reverses are taken away."""
    if not len(training):
        raise ValueError(
            "all relevant pairs are held out, as they are or the other way round: there is nothing "
            "to learn from; give more pairs, of other documents"
        )
