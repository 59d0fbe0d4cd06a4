"""Folds that need not fit in memory: the table's file of all rows (:mod:`ltr_features.blocks`), and
a file for each part of a fold with its row numbers and the columns of the fold's models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from letor.column_names import names_path
from letor.dataset import RankingData
from letor.folds import Fold
from letor.mapped import GrowingArray
from letor.missing import Missing
from letor.parquet import read_ids
from letor.parquet_parts import ALL_ROWS, write_part
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fold_fits import FitAll
from ltr_features.columns.learned import LearnedColumn
from ltr_features.feature_table import FoldTable, learned_columns
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.id_rows import finder

#: The parts of a fold, and the names of their files.
PARTS = {"train": "train", "validation": "vali", "test": "test"}
_NAMES = 2**18  # document ids that are looked up together


def write_folds(
    context: ColumnContext,
    columns: Sequence[LearnedColumn],
    folds: Sequence[Fold],
    folder: Path,
    *,
    missing: Missing,
    memory: int,
    on_progress: Callable[[str, Any], None] | None = None,
    fit: FitAll | None = None,
) -> Iterator[FoldTable]:
    """Write the parts of each fold as Parquet, ``Fold1/train.parquet`` and so on: the rows and
    values of :func:`~.feature_table.learned_columns`, whatever the memory.

    Args:
        context: the collection and the index that the rows were made from.
        columns: columns of models to train.
        folds: all folds. folder: their folder; it must hold the file of all rows,
            ``columns.parquet``, by :func:`~.blocks.write_columns`. Models are kept in ``models``.
        missing: relevant documents and judged queries without rows, of all queries.
        memory: approximate number of bytes for the rows that are scored at a time. What models
            hold about the documents comes on top, and 16 bytes per row if models learn from the
            candidates.
        on_progress, fit: see :func:`~.feature_table.learned_columns`.

    Yields:
        Each fold, after its parts are written.

    Raises:
        InputError: see :func:`~.feature_table.learned_columns`.
    """
    paths = cleared_parts(folder, folds, ".parquet")
    table, pairs = _stored(context.collection, folder / ALL_ROWS, missing, memory)
    made = learned_columns(
        context, table, columns, folds,
        pairs=pairs, folder=folder / "models", memory=memory,
        on_progress=on_progress, fit=fit,
    )  # fmt: skip
    for fold in made:
        for part, path in zip(PARTS, paths[fold.fold.name], strict=True):
            write_part(path, fold.has(part), fold.values, fold.provenance, fold.missing(part))
        yield fold


def cleared_parts(folder: Path, folds: Sequence[Fold], suffix: str) -> dict[str, list[Path]]:
    """The files of each fold's parts, without those of an earlier build: its parts, or the rows
    that they refer to, would mix with those of a build that ends early."""
    paths = part_paths(folder, folds, suffix)
    for path in chain.from_iterable(paths.values()):
        path.unlink(missing_ok=True)
        if suffix == ".txt":
            names_path(path).unlink(missing_ok=True)
    return paths


def clear_incomplete(folder: Path, folds: Sequence[Fold]) -> None:
    """Remove the files of a build that has ended early, which would be read as fewer folds."""
    for suffix in (".txt", ".parquet"):
        written = chain.from_iterable(part_paths(folder, folds, suffix).values())
        if not all(path.exists() for path in written):
            cleared_parts(folder, folds, suffix)
    for fold in folds:
        with suppress(OSError):  # it has files, or was not made
            (folder / fold.name).rmdir()


def part_paths(folder: Path, folds: Sequence[Fold], suffix: str) -> dict[str, list[Path]]:
    """The files of each fold's parts, in the order of ``PARTS``, by its name."""
    return {f.name: [folder / f.name / f"{p}{suffix}" for p in PARTS.values()] for f in folds}


def _stored(
    collection: Collection, path: Path, missing: Missing, memory: int
) -> tuple[RankingData, Pairs]:
    """The rows of a file without their columns, and their pairs, in temporary files if they do not
    fit into ``memory``."""
    of_document, of_query = finder(collection.document_ids), finder(collection.query_ids)
    labels = GrowingArray(np.float32, memory=memory // 16)
    index, query, document = (GrowingArray(np.int64, memory=memory // 16) for _ in range(3))
    query_ids: list[str] = []
    names: list[str] = []  # of documents
    for some in read_ids(path):
        labels.append(some.y)
        index.append(len(query_ids) + some.query_index)
        query_ids += some.query_ids
        query.append(of_query(some.query_ids)[some.query_index])
        names += some.document_ids or ()
        if len(names) >= _NAMES:
            document.append(of_document(names))
            names = []
    document.append(of_document(names))
    pairs = Pairs(query.taken(), document.taken())
    X = np.empty((len(pairs), 0), np.float32)
    table = RankingData(X, labels.taken(), query_ids, index.taken(), [], missing=missing)
    return table, pairs
