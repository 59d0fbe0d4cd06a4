"""The feature table: candidate rows, their columns, and the columns that each fold adds.

The table holds the columns that do not learn from labels, once for all folds. A fold consists of
row numbers of the table and the columns of trained models. These are made, without leaks, only by
:func:`learned_columns`, which ``FeatureBuilder``, ``columns build`` and ``run`` share.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.dataset import SETTINGS, RankingData
from letor.errors import InputError, naming
from letor.folds import Fold
from letor.mapped import empty_array
from letor.missing import Missing
from letor.name_checks import check_distinct
from ltr_base.names import counted
from ltr_base.parallel import side_by_side
from ltr_base.slices import slices
from ltr_features.columns.base import ColumnFamily, check_families, computed
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fold_fits import FitAll, fit_folds
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import (
    check_parts,
    column_facts,
    fold_scores,
    keep_groups,
    train_parts,
)
from ltr_features.columns.trained import FoldColumn, TrainedColumn
from ltr_features.remarks import warn_of
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.id_rows import examples, ids_of, places_of, rows_of

#: The key of a column's provenance with the number of its rows that have a substitute.
N_MISSING = "rows without a value"
#: Bytes that a row takes while it is scored.
_SCORED_BYTES = 100


def build_columns(
    context: ColumnContext,
    pairs: Pairs,
    families: Sequence[ColumnFamily],
    *,
    origins: Sequence[str] | None = None,
    queries: range | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> RankingData:
    """Build rows for the pairs, in their order, with the families' columns and the judged grades.

    Args:
        context: the collection and its index.
        pairs: the candidates. families: column families.
        origins: the sources of each pair, for the comments; see
            :attr:`~.candidates.Candidates.origins`.
        queries: the query rows that the pairs belong to; all by default. Judgements of other
            queries are not reported as ``missing``.
        on_progress: called from any thread when a family begins, with its name, the number of
            families that began before it, and the number of all families.

    Returns:
        Labels: see :func:`grades`. Comments: ``#docid = ID``. Relevant
        documents and judged queries without a pair are ``missing``, so that measures count them.
        Provenance per column: family, definition, reference, and what it was trained on.

    Raises:
        InputError: two columns have the same name; a pair outside the collection; a family cannot
            compute its columns, or computes something else.
    """
    context.check(pairs)
    check_distinct(name for family in families for name in family.column_names)
    check_families(families, context)

    def values(place: int) -> NDArray[np.float32]:
        if on_progress is not None:
            on_progress(families[place].name, place, len(families))
        return computed(families[place], context, pairs)

    parts = side_by_side(values, range(len(families)), context.threads)
    provenance = family_provenance(
        context, families, missing_values(context, pairs, families), len(pairs)
    )
    collection = context.collection
    query_ids = np.array(collection.query_ids, dtype=object)
    document_ids = ids_of(pairs.document, collection.document_ids)
    present, index = np.unique(pairs.query, return_inverse=True)
    return RankingData(
        X=np.hstack(parts) if parts else np.empty((len(pairs), 0), np.float32),
        y=grades(collection, pairs).astype(np.float32),
        query_ids=query_ids[present].tolist(),
        query_index=index.astype(np.int64),
        column_names=list(provenance),
        document_ids=document_ids,
        comments=None if origins is None else _comments(document_ids, origins),
        provenance=provenance,
        missing=missing_rows(collection, pairs, queries),
    )


def _comments(document_ids: NDArray[np.object_], origins: Sequence[str]) -> NDArray[np.object_]:
    rows = zip(document_ids, origins, strict=True)
    return np.array([f"#docid = {name} from = {origin}".encode() for name, origin in rows], object)


def missing_rows(collection: Collection, pairs: Pairs, queries: range | None = None) -> Missing:
    """Relevant documents and judged queries without pairs, and queries of the pairs without
    judgements; ``queries`` limits this to some of the judged queries."""
    judged = collection.judgements
    if queries is not None:
        judged = judged.of_queries(queries.start, queries.stop)
    n = collection.n_documents
    rows = np.sort(pairs.query * n + pairs.document)
    has_row = places_of(judged.query * n + judged.document, rows) >= 0
    lost = ~has_row & (judged.grade >= 1)
    ids, with_rows = collection.query_ids, set(pairs.query.tolist())
    relevant: dict[str, dict[int, int]] = {
        ids[row]: {} for row in np.unique(judged.query).tolist() if row not in with_rows
    }
    for row, grade in zip(judged.query[lost].tolist(), judged.grade[lost].tolist(), strict=True):
        counts = relevant.setdefault(ids[row], {})
        counts[grade] = counts.get(grade, 0) + 1
    unjudged = with_rows - set(judged.query.tolist())
    return Missing(relevant, frozenset(ids[row] for row in unjudged))


def missing_values(
    context: ColumnContext, pairs: Pairs, families: Sequence[ColumnFamily]
) -> dict[str, int]:
    """For each column the number of pairs with a substitute, see
    :meth:`~.columns.base.ColumnFamily.n_missing`."""
    counts: dict[str, int] = {}
    for family in families:
        with naming(f"column family {family.name!r}"):
            found = family.n_missing(context, pairs)
            counts |= zip(family.column_names, found, strict=True)
    return counts


def warn_of_new_queries(
    context: ColumnContext, pairs: Pairs, families: Sequence[ColumnFamily]
) -> None:
    """Warn of queries without a value in any row, in columns whose sources know no new queries."""
    limited = [family for family in families if not family.knows_new_queries]
    if not limited:
        return
    order = np.argsort(pairs.query, kind="stable")
    changes = np.flatnonzero(np.diff(pairs.query[order])) + 1
    unknown: dict[str, list[str]] = {}
    for rows in np.split(order, changes) if len(order) else []:
        of_query = pairs.select(rows)
        query = context.collection.query_ids[of_query.query[0]]
        for name, n in missing_values(context, of_query, limited).items():
            if n == len(rows):
                unknown.setdefault(name, []).append(query)
    n_queries = len(changes) + 1
    warn_of(
        f"{name}: nothing is given for {len(ids):,} of {counted(n_queries, 'query')} "
        f"({examples(ids)}); their rows get what stands for missing values"
        for name, ids in unknown.items()
    )


def family_provenance(
    context: ColumnContext, families: Sequence[ColumnFamily], n_missing: Mapping[str, int], n: int
) -> dict[str, dict[str, Any]]:
    """Provenance of the families' columns, by their names in order, in a table of ``n`` rows; see
    :func:`missing_values`."""
    provenance: dict[str, dict[str, Any]] = {}
    for family in families:
        with naming(f"column family {family.name!r}"):
            absent, names = dict(family.absent(context)), family.column_names
            settings = {name: family.column_settings(context, name) for name in names}
            json.dumps(settings)  # before it is a file's turn
            of_family, on_texts = family.remarks, family.remarks_on(context)
        if isinstance(of_family, str):
            raise InputError(
                f"column family {family.name!r}: remarks must be a list of sentences, got "
                f"{of_family!r}"
            )
        for column in family.columns:
            name, remarks = column.name, [*of_family, *on_texts]
            notes = provenance[name] = {
                "family": family.name,
                "description": column.description,
                "reference": column.reference,
                "trained on": family.trained_on,
                SETTINGS: settings[name],
            }
            if name in absent:
                notes["absent"] = absent[name]
            if n_missing.get(name):
                notes[N_MISSING] = n_missing[name]
                remarks.append(family.missing_remark(name, n_missing[name], n))
            if remarks:
                notes["remarks"] = remarks
    return provenance


def grades(collection: Collection, pairs: Pairs) -> NDArray[np.int64]:
    """int64 [n]: the judged grade of each pair, 0 where it is not judged or below 0."""
    judged = collection.judgements
    key = judged.query * collection.n_documents + judged.document
    order = np.argsort(key, kind="stable")
    wanted = pairs.query * collection.n_documents + pairs.document
    at = places_of(wanted, key[order])
    result = np.zeros(len(pairs), dtype=np.int64)
    result[at >= 0] = judged.grade[order][at[at >= 0]]
    return np.maximum(result, 0)


def table_pairs(collection: Collection, table: RankingData) -> Pairs:
    """The (query, document) pair of each row of a table, as rows of the collection.

    Raises:
        InputError: the table has no document ids, or belongs to another collection.
    """
    if table.document_ids is None:
        raise InputError("the table has no document ids, so its rows cannot be scored")
    queries = rows_of(table.query_ids, collection.query_ids)
    documents = rows_of(table.document_ids, collection.document_ids)
    for ids, rows in ((table.query_ids, queries), (table.document_ids, documents)):
        if len(rows) and rows.min() < 0:
            raise InputError(
                f"the table is not of collection {collection.name!r}, which has no "
                f"{ids[int(np.argmin(rows))]!r}"
            )
    return Pairs(queries[table.query_index], documents)


@dataclass(frozen=True, eq=False)
class FoldTable:
    """A fold of a table: its queries, and the columns that the fold adds to all rows.

    Attributes:
        table: rows and columns of all folds; shared, not copied.
        fold: the training, validation and test queries; queries that the table does not know have
            no rows and are left out.
        values: float32 [len(table), n columns], the added columns.
        provenance: provenance of the added columns, by name, in their order.
    """

    table: RankingData
    fold: Fold
    values: NDArray[np.float32]
    provenance: Mapping[str, Mapping[str, Any]]

    def has(self, part: str) -> NDArray[np.bool_]:
        """bool [len(table)]: whether each row is in a part ("train", "validation" or "test")."""
        queries = set(getattr(self.fold, part))
        wanted = np.array([query in queries for query in self.table.query_ids], dtype=bool)
        return wanted[self.table.query_index]

    def missing(self, part: str) -> Missing | None:
        """The documents and queries missing from a part, or None if unknown."""
        known = self.fold.only(self.table.all_query_ids)
        missing = self.table.missing
        return None if missing is None else missing.only(getattr(known, part))

    def part(self, part: str) -> RankingData:
        """The rows of a part with all columns, and what is known to be missing from it."""
        known = self.fold.only(self.table.all_query_ids)
        rows = self.table.select_queries(getattr(known, part))
        values = self.values[self.has(part)]
        return rows.with_columns(list(self.provenance), values, self.provenance)

    def parts(self) -> tuple[RankingData, RankingData, RankingData]:
        """The training, validation and test rows."""
        return self.part("train"), self.part("validation"), self.part("test")


def learned_columns(
    context: ColumnContext,
    table: RankingData,
    columns: Sequence[LearnedColumn],
    folds: Sequence[Fold],
    *,
    only: Sequence[Fold] | None = None,
    pairs: Pairs | None = None,
    folder: Path | None = None,
    by_group: bool | None = None,
    n_parts: int | None = None,
    memory: int | None = None,
    on_progress: Callable[[str, Any], None] | None = None,
    fit: FitAll | None = None,
) -> Iterator[FoldTable]:
    """Yield each fold with the columns of trained models; no row is scored by a model that saw its
    label, see :func:`ltr_features.columns.out_of_fold.fold_scores`.

    Args:
        context: the collection and the index that the table was made from.
        table: rows of the candidates, as :func:`build_columns` makes them.
        columns: the columns to add.
        folds: all folds; every part is the test part of one of them.
        only: the folds to make, in their order; all by default.
        pairs: the pairs of the table's rows, if known; the table needs no document ids then.
        folder: where fitted models are kept; an existing model is loaded instead of being trained
            again. By default models are not kept.
        by_group: hold out whole query groups for early stopping; by default if the folds keep
            groups together.
        n_parts: number of parts of the training queries that are scored out of fold; by default
            one for each fold whose test queries are among them.
        memory: bytes, half for the rows that are scored at a time and half for the values; larger
            values are held in a temporary file, see :mod:`letor.mapped`. By default all rows are
            scored at once.
        on_progress: called from any thread with (model key, finished epoch or iteration).
        fit: fits the models of all columns and folds beforehand; by default
            :func:`ltr_features.columns.fold_fits.fit_folds`. Others need ``folder``, see
            :func:`ltr_features.column_workers.fits_on`.

    Raises:
        InputError: a fold trains on fewer than two parts, has an unknown query, or nothing can be
            learned from its training queries.
    """
    pairs = table_pairs(context.collection, table) if pairs is None else pairs
    by_group = keep_groups(context.collection, folds) if by_group is None else by_group
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory() as kept:
        trained = [
            TrainedColumn(
                context,
                column,
                Path(kept),
                hold_out_groups=by_group,
                candidates=pairs,
                on_progress=on_progress,
            )
            for column in columns
        ]
        wanted = folds if only is None else only
        of_folds = [train_parts(context.collection, folds, fold, n_parts) for fold in wanted]
        for parts in of_folds if columns else ():
            check_parts(parts)
        if fit is None:
            fit_folds(trained, of_folds, threads=context.threads, memory=memory)
        else:
            fit(trained, of_folds)
        for fold, parts in zip(wanted, of_folds, strict=True):
            held = None if memory is None else memory // 2
            at_a_time = len(table) if held is None else held // _SCORED_BYTES
            values = empty_array((len(table), len(trained)), memory=held)
            provenance = {}
            for position, column in enumerate(trained):
                of_fold = FoldColumn(column, parts)
                for rows in slices(len(table), at_a_time):
                    values[rows, position] = fold_scores(of_fold, pairs.select(rows), parts)
                facts = column_facts(of_fold, values[:, position], pairs)
                provenance[column.recipe.name] = (
                    column.recipe.provenance_in(context, fold.name) | facts
                )
            yield FoldTable(table, fold, values, provenance)
