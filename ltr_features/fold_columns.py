"""Columns of trained models for the folds of an existing LETOR data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from letor.column_names import append_named, read_rows, write_rows
from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning
from letor.fold_files import RowsDifferError, layout, part_files, read_folds
from letor.folds import Fold, k_fold, training_parts
from letor.name_checks import check_distinct
from letor.rankers.rows import check_whole_labels
from ltr_base.names import counted
from ltr_base.user_warning import warn_user
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import check_folds, separated, train_parts
from ltr_features.feature_table import learned_columns
from ltr_features.row_columns import RowColumns, columns_of_rows, context_of_ids
from ltr_features.sources.letor_join import LetorJoin, join_letor
from ltr_features.stored_folds import PARTS
from ltr_features.text.collection import Judgements

#: Parts of the training queries of a fold whose queries no other fold tests.
N_PARTS = 5


@dataclass(frozen=True, eq=False)
class FoldRows:
    """The rows of a data set with folds, and their texts.

    Attributes:
        path: a folder of one of the layouts of :func:`letor.fold_files.read_folds`; or a file.
        rows: all rows, each query once.
        folds: the folds of the files.
        join: the rows that have texts.
        context: the texts; its judgements are the labels of the rows.
        seed: seed of the parts of training queries that no other fold tests.
        options: how files are read, see :func:`letor.svmlight.read_letor`.
    """

    path: Path
    rows: RankingData
    folds: Sequence[Fold]
    join: LetorJoin
    context: ColumnContext
    seed: int
    options: Mapping[str, Any]

    @classmethod
    def read(
        cls,
        path: Path,
        context: ColumnContext | Sequence[ColumnFamily],
        *,
        n_folds: int = 5,
        on_missing: Literal["raise", "zero"] = "raise",
        seed: int = 0,
        **options: Any,
    ) -> FoldRows:
        """Read a folder, or a file, whose queries are dealt into folds.

        Args:
            context: the texts; judgements that it has are not used. Without texts, the families
                whose columns are to be made, which read none.
            n_folds: number of folds of a file, 4 or more; queries of one text stay together.
            on_missing: see :func:`~.letor_join.join_letor`.
            options: of :func:`letor.svmlight.read_letor`.

        Raises:
            InputError: as :func:`~letor.fold_files.read_folds` and :func:`~.letor_join.join_letor`;
                or a label is not a whole number.
        """
        folds: list[Fold] = []
        if path.is_dir():
            try:
                rows, folds = read_folds(path, **options)
            except RowsDifferError as error:
                raise InputError(
                    f"{error}; if they differ in columns of models, append all models to the rows "
                    "without them at once: --model ssi --model s2net"
                ) from None
        else:
            check_folds(n_folds)
            rows = read_rows(path, **options)
        check_whole_labels([rows], "a trained column", advice="")
        if not isinstance(context, ColumnContext):
            context = context_of_ids(rows, context)
        join = join_letor(rows, context.collection, on_missing=on_missing)
        labels = Judgements(*_strongest(join, rows.y[join.rows].astype(np.int64)))
        labelled = replace(context, collection=replace(context.collection, judgements=labels))
        options["n_columns"] = rows.X.shape[1]  # the last ones may be absent from a file
        data = cls(path, rows, folds, join, labelled, seed, options)
        if not folds:
            data = replace(data, folds=data._dealt(rows.all_query_ids, n_folds))
        return data

    @property
    def suffix(self) -> str:
        """The ending of the files that are written, as that of those read: .parquet or .txt."""
        if self._layout == "file":
            sources = [self.path]
        elif self._layout == "parts":
            sources = [*self.path.glob("[Ss]1.*")]
        else:
            sources = [*filter(None, part_files(self._home(self.folds[0])).values())]
        return ".parquet" if any(path.suffix == ".parquet" for path in sources) else ".txt"

    @property
    def _layout(self) -> str:
        return layout(self.path) if self.path.is_dir() else "file"

    def _home(self, fold: Fold) -> Path:
        return self.path if self._layout == "fold" else self.path / fold.name

    @cached_property
    def _with_text(self) -> RankingData:
        """The rows that have texts, without their columns."""
        return replace(self.rows, missing=None).select_columns([]).select_rows(self.join.rows)

    @cached_property
    def _folds_with_text(self) -> list[Fold]:
        """The folds of the queries that have texts, with the parts that models are trained on."""
        folds = [fold.only(self._with_text.query_ids) for fold in self.folds]
        return [self._with_parts(folds, fold) for fold in folds]

    @property
    def train_parts(self) -> list[list[NDArray[np.int64]]]:
        """For each fold, the rows of the context's queries in each part that models train on."""
        folds = self._folds_with_text
        return [train_parts(self.context.collection, folds, fold) for fold in folds]

    def columns(
        self,
        models: Sequence[LearnedColumn],
        families: Sequence[ColumnFamily] = (),
        *,
        models_folder: Path | None = None,
        on_progress: Callable[[str, Any], None] | None = None,
    ) -> Iterator[RowColumns]:
        """Yield for each fold the columns of all rows: those of the families, which are the same in
        all folds, and those of the models. No row is scored by a model that saw its label, see
        :func:`~.feature_table.learned_columns`; rows without text have 0.

        Raises:
            InputError: two columns share a name, or as :func:`~.feature_table.learned_columns`.
        """
        names = [name for family in families for name in family.column_names]
        check_distinct([*self.rows.column_names, *names, *(model.name for model in models)])
        same = RowColumns(np.empty((len(self.rows), 0), np.float32), {}, self.join, [])
        if families:
            same = columns_of_rows(self.rows, families, self.context, on_missing="zero")
        made = learned_columns(
            self.context,
            self._with_text,
            models,
            self._folds_with_text,
            pairs=self.join.pairs,
            folder=models_folder,
            on_progress=on_progress,
        )
        for fold in made:
            values = np.hstack([same.values, self.join.spread(fold.values)])
            twins = separated(self.context, [fold.fold])
            own = {
                name: {**notes, "remarks": [*notes.get("remarks", ()), *twins]} if twins else notes
                for name, notes in fold.provenance.items()
            }
            yield replace(same, values=values, provenance={**same.provenance, **own})

    def write(self, fold: Fold, columns: RowColumns, out: Path) -> list[Path]:
        """Write a fold's files with the columns appended to their rows, and return their paths.

        They are the files of the fold, with their names and, in LETOR text, every old byte; those
        of a file, or of a folder with S1, S2, ..., are written anew as train, vali and test.

        Raises:
            InputError: a file cannot be read any more, or not be written.
        """
        home = out if self._layout == "fold" else out / fold.name
        home.mkdir(parents=True, exist_ok=True)
        if self._layout in ("file", "parts"):
            wider = self.rows.with_columns(
                list(columns.provenance), columns.values, columns.provenance
            )
            targets = [home / f"{part}{self.suffix}" for part in PARTS.values()]
            for rows, target in zip(fold.split(wider), targets, strict=True):
                write_rows(rows, target, threads=self.context.threads)
            return targets
        targets = []
        for source in filter(None, part_files(self._home(fold)).values()):
            targets.append(home / source.name)
            values = columns.values[self._places(source)]
            append_named(source, targets[-1], values, columns.provenance, **self.options)
        return targets

    def _places(self, path: Path) -> NDArray[np.int64]:
        """int64 [n]: the place of each row of a file among all rows."""
        part = read_rows(path, **self.options)
        number = {query: i for i, query in enumerate(self.rows.query_ids)}
        order, offsets = self.rows.order, self.rows.offsets
        queries = [number[query] for query in part.query_ids]
        places = np.empty(len(part), np.int64)
        places[part.order] = np.concatenate(
            [np.zeros(0, np.int64), *(order[offsets[i] : offsets[i + 1]] for i in queries)]
        )
        return places

    def _with_parts(self, folds: Sequence[Fold], fold: Fold) -> Fold:
        """The fold; if no two or more others test all of its training queries, with parts of its
        own."""
        tested = training_parts(folds, fold)
        if len(tested) > 1 and set(chain.from_iterable(tested)) == set(fold.train):
            return fold
        return replace(fold, parts=[part.test for part in self._dealt(fold.train, N_PARTS)])

    def _dealt(self, queries: Sequence[str], n: int) -> list[Fold]:
        """Seeded folds of the queries; those of one text stay together."""
        collection = self.context.collection
        label = collection.kept_together()
        groups = None
        if label is not None:
            of = dict(zip(collection.query_ids, label.tolist(), strict=True))
            groups = [of.get(query, query) for query in queries]  # text, or none
        try:
            return k_fold(queries, n, seed=self.seed, groups=groups)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error


def _strongest(
    join: LetorJoin, grade: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Query, document and grade of each distinct pair; of several rows the largest grade, with a
    warning if they differ."""
    query, document = join.pairs.query, join.pairs.document
    order = np.lexsort((-grade, document, query))
    query, document, grade = query[order], document[order], grade[order]
    first = np.append(True, (np.diff(query) != 0) | (np.diff(document) != 0))
    if n := int(np.count_nonzero(~first[1:] & (np.diff(grade) != 0))):
        warn_user(
            f"{counted(n, 'row')} with another label than other rows of the same query and "
            "document: models learn from the largest",
            LetorWarning,
        )
    return query[first], document[first], grade[first]
