"""RankingData: feature rows of (query, document) pairs, their labels, names and provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from letor.checked_arrays import as_array
from letor.errors import InputError
from letor.mapped import filled_like, take_rows
from letor.missing import Missing
from letor.name_checks import check_distinct, positions_of
from letor.string_array import StringArray
from ltr_base.names import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

#: Provenance note on columns that were computed elsewhere (scores, vectors, logged features).
GIVEN = "given; not checked for leaks"

#: The key of a column's provenance with what decides its values: text analysis, parameters, fold.
#: Rankers record it and warn if rows to score were made with other settings.
SETTINGS = "settings"

_TYPES = {
    "X": np.float32, "y": np.float32, "query_index": np.int64, "positions": np.int64,
    "document_ids": object, "comments": object,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows of a LETOR file, in the order of the file.

    Rows of one query need not be adjacent: ``order`` and ``offsets`` give the grouped view that
    rankers and measures need, and results are returned in the original order of the rows.

    Attributes:
        X: float32 [n, p], feature values; NaN marks a missing value. If it is memory-mapped
            (``numpy.memmap``, see :mod:`letor.mapped`), so is the X of selections.
        y: float32 [n], relevance labels (0 = not relevant; -1 = unjudged in LETOR's ``-semi``).
        query_ids: distinct query ids as strings, in order of first appearance, length m.
        query_index: int64 [n], position in ``query_ids`` of each row's query.
        column_names: p distinct names; ``"1"``, ``"2"``, ... if a file gives none.
        document_ids: document id of each row (str, [n]; ``""`` where a row has none), or None.
        comments: bytes after ``#`` of each row, ``#`` included, line end excluded (bytes, [n];
            ``b""`` where a row has none), or None. Both are object arrays, or ``StringArray``,
            which behaves like one and creates Python objects on demand.
        provenance: for each column name, what it was computed from (definition, model file, fold,
            :data:`SETTINGS`); JSON-compatible. Columns without an entry have unknown origin.
        missing: judged documents and queries that have no row, which measures count; None if they
            are unknown.
        positions: int64 [n], or None: position (0 = top) at which each row was shown to the users
            whose clicks are its label. Needed by rankers that learn position bias; not stored in
            files.
    """

    X: NDArray[np.float32]
    y: NDArray[np.float32]
    query_ids: Sequence[str]
    query_index: NDArray[np.int64]
    column_names: Sequence[str]
    document_ids: NDArray[np.object_] | StringArray | None = None
    comments: NDArray[np.object_] | StringArray | None = None
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    missing: Missing | None = None
    positions: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name, dtype in _TYPES.items():
            object.__setattr__(self, name, as_array(name, getattr(self, name), dtype))
        check_texts("query_ids", self.query_ids)
        check_texts("column_names", self.column_names)
        n = len(self.y)
        if self.X.ndim != 2 or self.X.shape[0] != n:
            raise InputError(f"X has shape {self.X.shape}, but there are {n} labels")
        if len(self.column_names) != self.X.shape[1]:
            raise InputError(
                f"{len(self.column_names)} column names for {self.X.shape[1]} columns of X"
            )
        check_distinct(self.column_names)
        m = len(self.query_ids)
        q = self.query_index
        if len(q) and not 0 <= q.min() <= q.max() < m:
            raise InputError(f"query_index must lie within 0..{m - 1}, the positions of query_ids")
        if len(self.query_index) != n:
            raise InputError(f"query_index has {len(self.query_index)} entries for {n} rows")
        if len(set(self.query_ids)) != m:
            raise InputError("query_ids must be distinct; give rows of one query one query_index")
        for name in ("document_ids", "comments", "positions"):
            values = getattr(self, name)
            if values is not None and len(values) != n:
                raise InputError(f"{name} has {len(values)} entries for {n} rows")

    @classmethod
    def from_rows(
        cls,
        X: ArrayLike | Any,
        y: ArrayLike,
        qid: Sequence[Any] | NDArray[Any],
        *,
        column_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> RankingData:
        """Make a data set from an array or frame of features, with a label and query id per row.

        Args:
            X: numbers, [n, p].
            y: labels, [n].
            qid: query of each row, [n]; rows of a query need not be adjacent.
            column_names: default: those of the frame, or "1", "2", ...
            kwargs: further attributes of the class, such as ``document_ids``, [n].

        Warns:
            LetorWarning: whole numbers beyond 2^24 are rounded, or a query has a document twice.

        Raises:
            InputError: values are not numbers or infinite, a query id is missing, the lengths
                differ, or pandas objects differ in their index.
        """
        from letor.frames import check_same_index, labels_and_ids, matrix

        check_same_index({"X": X, "y": y, "qid": qid, **kwargs})
        values, names = matrix(X)
        given = kwargs.get("document_ids")
        labels, queries, kwargs["document_ids"] = labels_and_ids(y, qid, given, len(values))
        ids, index = distinct(queries)
        names = names or [str(j + 1) for j in range(values.shape[1])]
        if column_names is not None:
            check_texts("column_names", column_names)
            names = list(column_names)
        return cls(values, labels, ids, index, names, **kwargs)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        label: str = "label",
        qid: str = "qid",
        docno: str = "docno",
        features: Sequence[str] | None = None,
    ) -> RankingData:
        """Make a data set from a pandas, polars or Arrow frame; columns keep their names.

        Args:
            frame: one row per (query, document) pair, those of a query adjacent.
            label, qid: names of the columns of labels and query ids.
            docno: name of the column of document ids, which is optional.
            features: feature columns to take, in order; default: all others. NaN and null are
                missing values.

        Warns:
            LetorWarning: whole numbers beyond 2^24 are rounded, or a query has a document twice.

        Raises:
            InputError: a column is missing, named twice or not numeric, a label is missing, or the
                rows of a query are not adjacent.
        """
        from letor.frames import frame_rows

        rows = frame_rows(frame, label=label, qid=qid, docno=docno, features=features)
        return cls(rows.X, rows.y, *distinct(rows.qid), rows.names, rows.docno)

    from_pandas = from_polars = from_arrow = from_frame

    def to_arrow(self, *, label: str = "label", qid: str = "qid", docno: str = "docno") -> pa.Table:
        """Arrow table of query ids, document ids (if any), labels and features.

        Comments, provenance and ``missing`` are left out; ``write_parquet`` keeps them.

        Raises:
            InputError: a feature column has the name of one of the other three.
        """
        from letor.frames import make_table

        ids = {qid: [self.query_ids[i] for i in self.query_index.tolist()]}
        if self.document_ids is not None:
            ids[docno] = list(self.document_ids)
        return make_table(self.X, self.column_names, {**ids, label: self.y})

    def to_pandas(self, **names: str) -> pd.DataFrame:
        """Like :meth:`to_arrow`, as a pandas frame."""
        return self.to_arrow(**names).to_pandas()

    def __repr__(self) -> str:
        sizes = [(len(self), "row"), (self.n_queries, "query"), (self.X.shape[1], "column")]
        return f"<RankingData: {', '.join(counted(n, noun) for n, noun in sizes)}>"

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_queries(self) -> int:
        return len(self.query_ids)

    @cached_property
    def queries_without_rows(self) -> list[str]:
        """Ids of the judged queries of ``missing`` that have no row."""
        with_rows = set(self.query_ids)
        return (
            [] if self.missing is None else [q for q in self.missing.relevant if q not in with_rows]
        )

    @property
    def all_query_ids(self) -> list[str]:
        """``query_ids``, then ``queries_without_rows``."""
        return [*self.query_ids, *self.queries_without_rows]

    @property
    def coverage(self) -> str:
        """One line on the documents and queries without rows that measures count, if known."""
        if self.missing is None:
            return (
                "not known: whether relevant documents or queries lack a row; if any do, measures "
                "are too high"
            )
        return self.missing.summary(int((self.y >= 1).sum()), len(self.queries_without_rows))

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """int64 [n]: row numbers grouped by query, the rows of a query in file order."""
        return np.argsort(self.query_index, kind="stable").astype(np.int64, copy=False)

    @cached_property
    def group_sizes(self) -> NDArray[np.int64]:
        """int64 [m]: number of rows of each query of ``query_ids``."""
        return np.bincount(self.query_index, minlength=self.n_queries).astype(np.int64)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """int64 [m + 1]: query i owns ``order[offsets[i]:offsets[i + 1]]``."""
        return np.concatenate([[0], np.cumsum(self.group_sizes)]).astype(np.int64)

    @cached_property
    def document_ranks(self) -> NDArray[np.int64]:
        """int64 [n]: rank of each row's document id among all distinct ids, sorted as strings.

        Raises:
            InputError: the rows have no document ids.
        """
        if self.document_ids is None:
            raise InputError("ties are to be ordered by document ids, but the rows have none")
        ids, index = distinct(self.document_ids)
        place = np.empty(len(ids), np.int64)
        place[np.argsort(np.array(ids, dtype=object))] = np.arange(len(ids))
        return place[index]

    def column(self, name: str) -> NDArray[np.float32]:
        """float32 [n]: the values of one column."""
        return self.X[:, self._column_positions([name])[0]]

    def select_columns(self, names: Sequence[str]) -> RankingData:
        """The same rows with the named columns only, in the order given."""
        columns = self._column_positions(names)
        X = filled_like(
            self.X,
            (len(self), len(columns)),
            lambda rows: np.ascontiguousarray(self.X[rows, columns]),
        )
        provenance = {c: self.provenance[c] for c in names if c in self.provenance}
        return replace(self, X=X, column_names=list(names), provenance=provenance)

    def with_columns(
        self,
        names: Sequence[str],
        values: ArrayLike,
        provenance: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> RankingData:
        """The same rows with further columns appended.

        Args:
            names: a list of k new names.
            values: [n, k]; or [n] for a single column.
            provenance: of the new columns, by name.

        Raises:
            InputError: values have another shape, or are a pandas object with another index than
                0, 1, ..., n - 1, or a frame with the columns in another order; or a name is taken.
        """
        from letor.frames import check_row_order

        check_texts("names", names)
        check_row_order("values", values, len(self), names)
        given = np.asarray(values, dtype=np.float32)
        columns = given[:, np.newaxis] if given.ndim == len(names) == 1 else given
        if columns.shape != (len(self), len(names)):
            raise InputError(
                f"values have shape {given.shape}, must be {(len(self), len(names))}: a line per "
                "row of the data, a column per name"
            )
        return replace(
            self,
            X=filled_like(
                self.X,
                (len(self), self.X.shape[1] + len(names)),
                lambda rows: np.hstack([self.X[rows], columns[rows]]),
            ),
            column_names=[*self.column_names, *names],
            provenance={**self.provenance, **(provenance or {})},
        )

    def select_rows(self, rows: NDArray[Any]) -> RankingData:
        """The given rows (integer positions or boolean mask) in the order given; queries that lose
        all their rows are dropped, the others keep their relative order. If ``missing`` is known,
        relevant rows that remaining queries lose are added to it. A mask that is a pandas object
        must have the index 0, 1, ..., n - 1 (InputError)."""
        if getattr(rows, "dtype", None) == np.bool_:
            from letor.frames import check_row_order

            check_row_order("rows", rows, len(self))
        rows = np.arange(len(self))[rows]
        present, index = np.unique(self.query_index[rows], return_inverse=True)
        return replace(
            self,
            missing=self._missing_of(rows, present),
            X=take_rows(self.X, rows),
            y=self.y[rows],
            query_ids=[self.query_ids[i] for i in present],
            query_index=index.astype(np.int64),
            document_ids=None if self.document_ids is None else self.document_ids[rows],
            comments=None if self.comments is None else self.comments[rows],
            positions=None if self.positions is None else self.positions[rows],
        )

    def select_queries(self, query_ids: Sequence[str]) -> RankingData:
        """The rows of the named queries, in the order of this data set; queries known to have no
        rows may be named, too.

        Raises:
            InputError: a query id is not in the data, or not a string.
        """
        check_texts("query ids", query_ids)
        position = {q: i for i, q in enumerate(self.query_ids)}
        known = set(self.all_query_ids)
        unknown = [q for q in query_ids if q not in known]
        if unknown:
            raise InputError(
                f"{counted(len(unknown), 'query id')} not in the data: {', '.join(unknown[:5])}"
            )
        wanted = np.zeros(self.n_queries, dtype=bool)
        wanted[[position[q] for q in query_ids if q in position]] = True
        chosen = self.select_rows(wanted[self.query_index])
        if chosen.missing is None:
            return chosen
        return replace(chosen, missing=chosen.missing.only(query_ids))

    def _missing_of(self, rows: NDArray[np.int64], present: NDArray[np.int64]) -> Missing | None:
        """``missing`` of a selection of rows, whose queries have the positions ``present``."""
        if self.missing is None:
            return None
        kept = self.missing.only([self.query_ids[i] for i in present] + self.queries_without_rows)
        lost = (self.y >= 1) & np.isin(self.query_index, present)
        lost[rows] = False
        if not lost.any():
            return kept
        relevant = {query: dict(counts) for query, counts in kept.relevant.items()}
        for i, label in zip(self.query_index[lost].tolist(), self.y[lost].tolist(), strict=True):
            counts = relevant.setdefault(self.query_ids[i], {})
            counts[int(label)] = counts.get(int(label), 0) + 1
        return replace(kept, relevant=relevant)

    def _column_positions(self, names: Sequence[str]) -> list[int]:
        check_texts("columns", names)
        return positions_of(names, self.column_names, "the data")


def check_texts(what: str, ids: Iterable[Any]) -> None:
    """Raise InputError if an id is not a string, as 1 and "1" are not the same, or if they are one
    string, whose letters would be taken for ids."""
    if isinstance(ids, str):
        raise InputError(f"{what} must be a list of texts, such as [{ids!r}]")
    odd = next((i for i in ids if not isinstance(i, str)), None)
    if odd is not None:
        raise InputError(f"{what} must be text, got {odd!r}; write str(id)")


def distinct(values: Sequence[str] | NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct strings in order of first appearance, and each value's position among them."""
    position: dict[str, int] = {}
    index = np.fromiter(
        (position.setdefault(str(v), len(position)) for v in values),
        dtype=np.int64,
        count=len(values),
    )
    return list(position), index
