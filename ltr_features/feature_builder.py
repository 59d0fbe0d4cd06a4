"""FeatureBuilder: one object that computes columns at training time and at serving time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from importlib.util import find_spec
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.errors import InputError, reading
from letor.folds import Fold
from letor.name_checks import check_distinct
from ltr_base.names import counted, listed, repeated
from ltr_base.parallel import thread_count
from ltr_features.added_documents import AddedDocuments
from ltr_features.candidate_kinds import BM25Candidates
from ltr_features.candidates import candidate_sources, choose_candidates
from ltr_features.column_workers import fits_on
from ltr_features.columns.base import ColumnFamily, check_families
from ltr_features.columns.context import ColumnContext, make_workspace
from ltr_features.columns.fitted import NO_FOLD
from ltr_features.columns.fold_fits import FitAll
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.out_of_fold import check_parts, keep_groups, separated, train_parts
from ltr_features.columns.registry import get_families
from ltr_features.columns.trained import TrainedColumn
from ltr_features.feature_files import read_features, save_features
from ltr_features.feature_table import build_columns, learned_columns
from ltr_features.fitted_builder import FittedBuilder
from ltr_features.part_store import part_store
from ltr_features.remarks import family_remarks, grouped_remarks, warn_of
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection

T = TypeVar("T")


class FeatureBuilder(FittedBuilder):
    """Computes columns of (query, document) rows of one collection, from families and models.

    Args:
        families: column families, as objects or names; or a mapping from names to parameters. By
            default ``letor46``.
        models: columns of models to train; they come after the families' columns.
        depth: number of candidates per query, the best by BM25; 100 by default.
        candidates: other sources of candidates for :meth:`folds`, ``{"bm25": {"depth": 100},
            "judged": {}}``, see :func:`ltr_features.candidates.candidate_sources`.
        models_folder: folder where trained models are kept and reused; by default none is kept.
        threads: worker threads; None for one per core. Numbers do not depend on it.
        scheduler: address of a Dask cluster whose workers fit the models of folds,
            "tcp://host:8786", or "local:N" for N processes here. ``models_folder`` must then be on
            storage that they share; numbers do not depend on the workers.
        parts: where workers put models if they do not see ``models_folder``: a folder that they
            see, or a URL, see :func:`ltr_features.part_store.part_store`. The collection must then
            be the context of a workspace that each machine has under the same path.
        progress: whether to show a progress bar (on stderr); None for notebooks only.

    Attributes:
        context_: collection, index and queries that the builder was fitted on.
        fitted_: a column per model, trained on the training queries.
        searches_: how to find candidates of new queries, by source; sources that have candidates of
            known queries alone (``judged``, ``run``, ...) have none.
        added_: documents that were added since, or None; see :meth:`with_documents`.

    Raises:
        InputError: an unknown family, an unknown parameter of one, or wrong arguments.
        ValueError: fewer than one thread.
    """

    def __init__(
        self,
        families: Sequence[str | ColumnFamily] | Mapping[str, Mapping[str, Any]] | None = None,
        models: Sequence[LearnedColumn] = (),
        *,
        depth: int | None = None,
        candidates: Mapping[str, Mapping[str, Any]] | None = None,
        models_folder: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        scheduler: str | None = None,
        parts: str | None = None,
        progress: bool | None = None,
    ) -> None:
        self.families = get_families(["letor46"] if families is None else families)
        self.models = tuple(models) if isinstance(models, Iterable) else ()
        if not isinstance(models, Iterable) or not all(
            isinstance(column, LearnedColumn) for column in self.models
        ):
            raise InputError("models must be a list of columns, [LearnedColumn('ssi', 'ssi')]")
        if depth is not None and not (
            isinstance(depth, Integral) and not isinstance(depth, bool) and depth >= 1
        ):
            raise InputError(f"depth must be a whole number, 1 or more, got {depth!r}")
        if candidates is not None and not isinstance(candidates, Mapping):
            raise InputError(
                "candidates must be sources with their options, {'bm25': {}}, got "
                f"{candidates!r}"
            )
        alone = {"bm25": {"depth": 100 if depth is None else depth}}
        self.candidates = alone if candidates is None else dict(candidates)
        sources = candidate_sources(self.candidates).values()
        known = next((s.depth for s in sources if isinstance(s, BM25Candidates)), depth)
        if depth is not None and known != depth:
            raise InputError(
                f"depth={depth}: candidates give BM25 the depth {known}; leave depth out"
            )
        self.depth: int = 100 if known is None else known
        self.models_folder = None if models_folder is None else Path(models_folder)
        thread_count(threads)  # a wrong number is told before a collection is indexed
        self.threads = threads
        self.scheduler = scheduler
        self.parts = parts
        self.progress = progress
        if scheduler is not None and self.models_folder is None:
            raise InputError(
                "scheduler: workers write models into models_folder: name one that all of them see"
            )
        if parts is not None and scheduler is None:
            raise InputError("parts: only workers make parts: give scheduler too")
        if not self.families and not self.models:
            raise InputError("a builder needs a family or a model")
        check_distinct(self.column_names)

    def fit(
        self,
        collection: Collection | ColumnContext,
        train_queries: Sequence[str] | None = None,
        *,
        folds: Sequence[Fold] = (),
        analyzer: Analyzer | None = None,
    ) -> Self:
        """Index the collection and train the models on the judgements of some of its queries.

        Args:
            collection: a collection, or the context of one that is indexed already.
            train_queries: ids of the queries whose judgements models may see; all by default.
                Never evaluate the result on these queries: see :meth:`folds`.
            folds: the folds given to :meth:`folds`, if ``train_queries`` are the training queries
                of one of them: the models are then those that scored its test rows, so that its
                ranker gets the columns that it was trained for. Without folds, each model holds
                out some of the training queries for early stopping.
            analyzer: how to analyse text; used if a collection is given.

        Warns:
            ColumnWarning: a model learned nothing, diverged, or had little to learn from.

        Raises:
            InputError: an unknown query id, training queries without a relevant document,
                training queries that are not those of one of the folds, or a family that cannot
                compute its columns for this collection.
        """
        _check_folds(folds)
        _check_file_names(self.models)
        context = ColumnContext.of(collection, analyzer, threads=self.threads)
        check_families(self.families, context)
        known = {query: row for row, query in enumerate(context.collection.query_ids)}
        wanted = list(known) if train_queries is None else list(train_queries)
        unknown = [query for query in wanted if query not in known]
        if unknown:
            raise InputError(f"train_queries: the collection has no query {unknown[0]!r}")
        rows = np.array(sorted(known[query] for query in wanted), dtype=np.int64)
        parts, of_fold = None, NO_FOLD
        if folds:
            fold = next((fold for fold in folds if set(fold.train) == set(wanted)), None)
            if fold is None:
                raise InputError("folds: train_queries are not the training queries of one of them")
            parts, of_fold = train_parts(context.collection, folds, fold), fold.name
            if any(recipe.looks_at_labels for recipe in self.models):
                check_parts(parts)
        listed = any(recipe.learns_from_lists for recipe in self.models)
        pairs = choose_candidates(context, self.candidates).pairs if listed else None
        by_group = keep_groups(context.collection, folds)
        kept = nullcontext(self.models_folder) if self.models_folder else TemporaryDirectory()
        with kept as folder:
            columns = [
                TrainedColumn(
                    context, recipe, Path(folder), hold_out_groups=by_group, candidates=pairs
                )
                for recipe in self.models
            ]
            if parts is not None and (fit := self._fits(context)) is not None:
                fit(columns, [parts])
            made = _tracked(columns, len(columns), "models", self.progress)
            fitted = [column.fitted(rows, parts) for column in made]
        for column in fitted:
            column.fold = of_fold
        sources = candidate_sources(self.candidates).items()
        searches = {name: source.search(context) for name, source in sources}
        self.searches_ = {name: found for name, found in searches.items() if found is not None}
        self.context_, self.fitted_, self.added_ = context, fitted, None
        self.__dict__.pop("_documents", None)  # those of an earlier fit
        of_families = [(family.name, family.remarks_on(context)) for family in self.families]
        of_models = [(column.name, column.remarks) for column in fitted]
        remarks = (
            f"{name}: {said}" for name, found in [*of_families, *of_models] for said in found
        )
        warn_of([*context.remarks, *dict.fromkeys(remarks)])
        return self

    def folds(
        self,
        collection: Collection | ColumnContext,
        folds: Sequence[Fold],
        *,
        analyzer: Analyzer | None = None,
    ) -> list[tuple[RankingData, RankingData, RankingData]]:
        """(training, validation, test) rows of each fold, without leaks.

        No row is scored by a model that saw its label (training rows are scored out of fold).
        Relevant documents that are not candidates, and queries without candidates, have no rows;
        they are ``missing``, and measures count them.

        Warns:
            ColumnWarning: a model learned nothing, diverged, or had little to learn from, or it
                scores training rows unlike other rows; once for all folds.

        Raises:
            InputError: there is no fold, no query has a candidate, or a fold trains on fewer than
                two parts.
        """
        _check_folds(folds)
        if not folds:
            raise InputError("folds: give one or more, k_fold(collection.query_ids, 5, seed=0)")
        context = ColumnContext.of(collection, analyzer, threads=self.threads)
        for recipe in self.models:
            recipe.check_for_folds(context)
        fit = self._fits(context)  # fails before the table is built if a store cannot be reached
        found = choose_candidates(context, self.candidates)
        table = build_columns(context, found.pairs, self.families, origins=found.origins)
        made = learned_columns(
            context, table, self.models, folds, folder=self.models_folder, fit=fit
        )
        result, notes = [], {}
        for fold in _tracked(made, len(folds), "folds", self.progress):
            result.append(fold.parts())
            notes[fold.fold.name] = fold.provenance
        of_candidates = found.remarks(context.collection)
        of_queries = [*context.remarks, *separated(context, folds)]
        of_families = family_remarks(table.provenance)
        warn_of([*of_queries, *of_candidates, *of_families, *grouped_remarks(notes)])
        return result

    def __sklearn_clone__(self) -> Self:
        """An unfitted builder with the same arguments, for ``sklearn.base.clone``."""
        made = copy(self)
        for fitted in ("context_", "fitted_", "searches_", "added_"):
            made.__dict__.pop(fitted, None)
        return made

    def __repr__(self) -> str:
        names, state = self.column_names, "fitted" if hasattr(self, "context_") else "not fitted"
        return f"<FeatureBuilder: {counted(len(names), 'column')} ({listed(names, 5)}), {state}>"

    def _repr_html_(self) -> str:
        """HTML for notebooks: the columns with their families and definitions."""
        specs = [(family.name, spec) for family in self.families for spec in family.columns]
        specs += [(recipe.kind.name, recipe.spec) for recipe in self.models]
        table = pd.DataFrame(
            [(spec.name, family, spec.unit, spec.description) for family, spec in specs],
            columns=["column", "family", "unit", "definition"],
        )
        return str(table.to_html(index=False))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the collection and its index, the fitted models and the recipes to a new folder.

        Raises:
            NotFittedError: before ``fit``.
            InputError: the folder holds something else.
        """
        settings = {"depth": self.depth, "candidates": self.candidates}
        context, fitted = self._fitted_context(), (self.fitted_, self.searches_)
        save_features(Path(folder), context, self.families, *fitted, settings, self.added_)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        *,
        families: Sequence[ColumnFamily] = (),
        models: Sequence[LearnedColumn] = (),
        threads: int | None = None,
    ) -> Self:
        """Read what :meth:`save` wrote.

        Args:
            families, models: those of the saved builder that cannot be restored by name: families
                that are not registered or were given objects, columns of models that are not.

        Raises:
            InputError: the folder holds no features or those of a newer version, or a family or
                model that must be given is not.
        """
        folder = Path(folder)
        with reading(folder, "it holds no saved features"):
            saved = read_features(folder, families, models, threads=threads)
            recipes = [column.recipe for column in saved.fitted]
            made = cls(saved.families, recipes, **saved.settings, threads=threads)
            made.context_, made.fitted_ = saved.context, saved.fitted
            made.searches_ = saved.searches
            made._prepare()
            if saved.has_added:
                made = made._having(AddedDocuments.load(made.context_, folder))
        return made

    def _fits(self, context: ColumnContext) -> FitAll | None:
        """A function that fits models on workers, which open a workspace; None to fit them here."""
        if self.scheduler is None or self.models_folder is None or not self.models:
            return None
        workspace = context.folder or make_workspace(
            context.collection, self.models_folder / "workspace", index=context.index
        )
        store = None if self.parts is None else part_store(self.parts, self.models_folder)
        return fits_on(self.scheduler, workspace, store)


def _check_folds(folds: Sequence[Fold]) -> None:
    """Raise InputError, before any work, unless these are folds."""
    if not isinstance(folds, Sequence) or not all(isinstance(fold, Fold) for fold in folds):
        raise InputError(
            f"folds must be a list of folds, as k_fold makes them, got {str(folds)[:80]}"
        )


def _check_file_names(models: Sequence[LearnedColumn]) -> None:
    """Raise InputError, before any work, for models that :meth:`FeatureBuilder.save` would write
    into one file on Windows and macOS."""
    if twice := repeated(column.name.casefold() for column in models):
        raise InputError(
            "models: the names of two columns, which become those of files, differ in case alone: "
            f"{twice[0]!r}; rename one"
        )


def _tracked(items: Iterable[T], total: int, what: str, shown: bool | None) -> Iterator[T]:
    """Yield the items, with a bar named ``what`` that shows how many are done and how long the rest
    will take; ``shown`` None is for notebooks only."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not (console.is_jupyter if shown is None else shown)
    if console.is_jupyter and find_spec("ipywidgets") is None:
        # rich would warn at each step, and draw nothing.
        console = Console(stderr=True, force_jupyter=False, force_terminal=True, width=80)
    yield from track(items, what, total, console=console, disable=hidden)
