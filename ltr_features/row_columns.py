"""Columns for the rows of LETOR files, joined by query id and document id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.document_ids import needed_ids
from letor.errors import InputError
from letor.name_checks import check_distinct
from ltr_features.columns.base import ColumnFamily, check_families, computed
from ltr_features.columns.context import ColumnContext
from ltr_features.feature_table import family_provenance, missing_values
from ltr_features.remarks import family_remarks
from ltr_features.sources.letor_join import LetorJoin, join_letor
from ltr_features.text.collection import Collection, Judgements
from ltr_features.text.index import TermIndex


@dataclass(frozen=True, eq=False)
class RowColumns:
    """Columns of families for the rows of a file.

    Attributes:
        values: float32 [n rows, k]; 0 in rows without text.
        provenance: of the columns, by name.
        join: the rows that have texts.
        remarks: for the user, sentences without a full stop.
    """

    values: NDArray[np.float32]
    provenance: Mapping[str, Mapping[str, Any]]
    join: LetorJoin
    remarks: Sequence[str]


def columns_of_rows(
    rows: RankingData,
    families: Sequence[ColumnFamily],
    context: ColumnContext | None = None,
    *,
    on_missing: Literal["raise", "zero"] = "raise",
) -> RowColumns:
    """Compute the families' columns for rows of a LETOR file.

    Args:
        rows: rows with document ids.
        context: the texts; None for families that read none (``reads_texts``).
        on_missing: see :func:`~.letor_join.join_letor`.

    Raises:
        InputError: two columns share a name, a family reads texts but there are none, or the rows
            cannot be joined.
    """
    check_distinct(name for family in families for name in family.column_names)
    remarks: list[str] = []
    if context is None:
        context = context_of_ids(rows, families)
    else:
        remarks = context.remarks
    check_families(families, context)
    join = join_letor(rows, context.collection, on_missing=on_missing)
    values = np.hstack([computed(family, context, join.pairs) for family in families])
    n_missing = missing_values(context, join.pairs, families)
    provenance = family_provenance(context, families, n_missing, len(join.pairs))
    return RowColumns(
        join.spread(values),
        provenance,
        join,
        [*remarks, *family_remarks(provenance)],
    )


def context_of_ids(rows: RankingData, families: Sequence[ColumnFamily]) -> ColumnContext:
    """The rows' queries and documents as a collection whose texts are not known.

    Raises:
        InputError: a family reads texts, or the rows have no document ids.
    """
    if readers := [family.name for family in families if family.reads_texts]:
        raise InputError(
            f"the columns of {', '.join(readers)} are computed from texts: name the workspace with "
            "the texts of the rows (--workspace), which `ltr-features index` makes"
        )
    ids = needed_ids(rows, "by which scores and vectors are joined")
    documents = list(dict.fromkeys(ids))
    collection = Collection(
        name="the rows",
        document_ids=documents,
        fields={},
        query_ids=list(rows.query_ids),
        query_texts=list(rows.query_ids),
        judgements=Judgements.none(),
    )
    return ColumnContext(collection, TermIndex.without_words(len(documents)))
