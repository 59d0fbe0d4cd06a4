"""Train the models that a learned column needs, each of them once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError, naming
from ltr_base.source_code import code_of_others
from ltr_features.columns.base import computed
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fitted import FittedColumn, model_texts
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.term_space import TermSpace
from ltr_features.text.collection import Pairs
from ssi_models.base import MatchingModel
from ssi_models.matrices import arrays
from ssi_models.parallel import Executor
from ssi_models.parameters import digest_of
from ssi_models.training.candidate_lists import CandidateLists
from ssi_models.training.loop import divergence_in_remarks
from ssi_models.training.preferences import Preferences


class TrainedColumn:
    """Scores of a column by models of given training queries, each trained once and kept on disk.

    Only judgements of the training queries are used; negatives are documents that are relevant to
    some training query, so that a document without any label is never pushed down for lacking one.
    A model that learns from documents alone is the same for all training queries. Columns that
    differ only in parameters of scoring (the weight of word matching) share their models.

    Args:
        context: collection, index and queries.
        recipe: the recipe of the column.
        folder: where fitted models are kept; a model found there is loaded, not trained again.
        hold_out_groups: hold out whole query groups for early stopping (for splits by group).
        candidates: the pairs that the column is to rank, for recipes with ``list_share``, whose
            models also learn from the documents of a query's own list.
        on_progress: called with (model key, finished epoch or iteration).

    Attributes:
        executor: processes that share the work of one fit, see
            :attr:`ssi_models.base.MatchingModel.executor`; None for this process alone.
        threads: number of threads of a fit; by default that of the recipe.

    Raises:
        InputError: the collection lacks the field, or candidates are missing.
    """

    executor: Executor | None = None
    threads: int | None = None

    def __init__(
        self,
        context: ColumnContext,
        recipe: LearnedColumn,
        folder: Path,
        *,
        hold_out_groups: bool = False,
        candidates: Pairs | None = None,
        on_progress: Callable[[str, Any], None] | None = None,
    ) -> None:
        recipe.check_texts(context)
        self.context = context
        self.recipe = recipe
        self.folder = folder
        if recipe.learns_from_lists and candidates is None:
            raise InputError(f"column {recipe.name!r}: list_share needs candidates")
        self.hold_out_groups = hold_out_groups
        self.candidates = candidates if recipe.learns_from_lists else None
        self.on_progress = on_progress

    def __call__(self, train_queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float32]:
        """float32 [n]: scores of the pairs by the model of ``train_queries`` only."""
        return computed(self.fitted(train_queries), self.context, pairs)[:, 0]

    def fitted(
        self,
        train_queries: NDArray[np.int64],
        train_parts: Sequence[NDArray[np.int64]] | None = None,
    ) -> FittedColumn:
        """The column of the model for a set of query rows; it can score other queries too.

        Args:
            train_parts: the same rows as parts of a fold, to get the fold's model of all parts.
        """
        return FittedColumn(self.recipe, self.fold_model(train_parts or [train_queries]))

    def model(self, train_queries: NDArray[np.int64]) -> MatchingModel:
        """The model for a set of query rows, loaded if it is in the folder, else trained."""
        return self.fold_model([train_queries])

    def fold_model(self, train_parts: Sequence[NDArray[np.int64]]) -> MatchingModel:
        """The first of :meth:`fold_models`, the model of all parts; the others need not exist."""
        path = self.fold_paths(train_parts)[0]
        if not path.exists():
            self.fit_fold(train_parts)
        return self.recipe.kind.load(path)

    def fold_models(self, train_parts: Sequence[NDArray[np.int64]]) -> list[MatchingModel]:
        """The model of all parts, and for each part a model of the others, loaded if they are in
        the folder, else trained together, see :meth:`ssi_models.base.MatchingModel.fit_parts`.

        They keep the same epoch and the same weights, chosen by the judgements of all training
        queries; apart from these few numbers, no model sees judgements of the part that it scores.
        """
        self.fit_fold(train_parts)
        models = [self.recipe.kind.load(path) for path in self.fold_paths(train_parts)]
        return models * (1 + len(train_parts)) if self._unlabelled else models

    def fit_fold(self, train_parts: Sequence[NDArray[np.int64]]) -> None:
        """Fit the models of :meth:`fold_models` into the folder, if they are not there; of a single
        part, the :meth:`model` of its queries."""
        train, paths = np.sort(np.concatenate(train_parts)), self.fold_paths(train_parts)
        if all(path.exists() for path in paths):
            return
        model, texts, preferences, options = self._prepared(train, paths[0])
        data = texts.Q, texts.D, preferences
        parts = train_parts if len(paths) > 1 else []
        for part in parts:
            self.preferences(np.setdiff1d(train, part))  # raises if there are none
        with self._naming, divergence_in_remarks():
            if parts:
                models = [model, *model.fit_parts(*data, parts, **options)]
            else:
                models = [model.fit(*data, groups=self._groups, **options)]
        for fitted, path in zip(models, paths, strict=True):
            fitted.save(path)

    def fold_paths(self, train_parts: Sequence[NDArray[np.int64]]) -> list[Path]:
        """The files of :meth:`fold_models`; a single one if all models are the same, or of a single
        part."""
        train = np.sort(np.concatenate(train_parts))
        if self._unlabelled or len(train_parts) == 1:
            return [self.path(train)]
        return [self.path(train, train_parts, number) for number in range(1 + len(train_parts))]

    def _prepared(
        self, train_queries: NDArray[np.int64], path: Path
    ) -> tuple[MatchingModel, TermSpace, Preferences, dict[str, Any]]:
        """A model to be fitted, the texts and preferences to fit it on, and options of the fit."""
        context, report = self.context, self.on_progress
        preferences = _no_preferences(context)
        if not self._unlabelled:
            preferences = self.preferences(train_queries)
        texts = model_texts(context, self.recipe)
        self.folder.mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {
            "excluded": context.collection.query_sources,
            "candidates": None if self._unlabelled else "relevant",
            "vocabulary": texts.vocabulary,
            "weighting": texts.weighting,
            "recipe": context.index.analyzer.canonical,
            "checkpoint": path.with_suffix(".checkpoint"),
            "callback": None if report is None else lambda event: report(path.stem, event),
        }
        if self.candidates is not None:
            options["candidate_lists"] = CandidateLists.from_pairs(
                self.candidates.query,
                self.candidates.document,
                n_queries=context.collection.n_queries,
                n_documents=context.collection.n_documents,
            )
        model = self.recipe.new_model()
        model.executor = self.executor
        if self.threads is not None and "threads" in model.get_params():
            model.set_params(threads=self.threads)
        return model, texts, preferences, options

    def preferences(self, train_queries: NDArray[np.int64]) -> Preferences:
        """The relevant pairs of the given query rows, without those that are pairs of the other
        queries the other way round.

        Raises:
            InputError: there are none.
        """
        preferences = self._learned(train_queries)
        if not len(preferences):
            raise InputError(
                f"column {self.recipe.name!r}: none of its training queries has a relevant "
                f"document ({len(train_queries):,} in all), so {self.recipe.kind.name} cannot "
                "learn: judge queries, or use a model that learns from the texts alone (lsa, or "
                "plsa with a number for lambda2)"
            )
        return preferences

    def _learned(self, train_queries: NDArray[np.int64]) -> Preferences:
        every, sources = self._preferences, self.context.collection.query_sources
        return every.only(train_queries).without_reversed(every.without(train_queries), sources)

    def path(
        self,
        train_queries: NDArray[np.int64],
        train_parts: Sequence[NDArray[np.int64]] = (),
        number: int = 0,
    ) -> Path:
        """The model's file, named after the model and a digest of everything that it is made from:
        texts, judgements, settings and code, but not the names of column and collection.

        Args:
            train_parts, number: for a fold's model, its parts and position in :meth:`fold_models`.
        """
        queries = self.context.collection.query_ids

        def ids(rows: NDArray[np.int64]) -> list[str]:
            return [] if self._unlabelled else [queries[row] for row in np.unique(rows).tolist()]

        # Including defaults, which other code may change. A weight that the fit chooses is part of
        # the model, even if only scoring reads it.
        scoring, params = self.recipe.kind.scoring_params, self.recipe.new_model().get_params()
        made_of: list[Any] = [
            ids(train_queries),
            sorted((k, v) for k, v in params.items() if k not in scoring or v == "auto"),
            self.recipe.field,
            self.recipe.min_document_frequency,
            self.context.index.fingerprint,
            self._documents_digest,
            "" if self._unlabelled else self._queries_digest(train_queries),
        ]
        if self.recipe.terms != "words":
            made_of.append(self.recipe.terms)
        if not isinstance(self.recipe.model, str):
            made_of.append(f"{self.recipe.kind.__module__}.{self.recipe.kind.__qualname__}")
        made_of += self._code
        if train_parts:
            made_of.append([number, *map(ids, train_parts)])
        if self.candidates is not None:
            lists = np.stack([self.candidates.query, self.candidates.document])
            made_of.append(hashlib.sha256(lists.tobytes()).hexdigest())
        digest = hashlib.sha256(json.dumps(made_of, default=repr).encode()).hexdigest()
        return self.folder / f"{self.recipe.kind.name}-{digest[:12]}.safetensors"

    @cached_property
    def _code(self) -> list[str]:
        """This software's version, and a digest of a model's class that is not part of it."""
        return [version("ltr-features"), code_of_others(self.recipe.kind)]

    @cached_property
    def _documents_digest(self) -> str:
        return digest_of([], arrays(model_texts(self.context, self.recipe).D))

    def _queries_digest(self, train_queries: NDArray[np.int64]) -> str:
        """Digest of what is learned from the given query rows: their texts, judgements, sources,
        and groups if those are held out."""
        rows, collection = np.unique(train_queries), self.context.collection
        judgements = collection.judgements
        used = np.isin(judgements.query, rows)
        judged = [judgements.query[used], judgements.document[used], judgements.grade[used]]
        texts = arrays(model_texts(self.context, self.recipe).Q[rows])
        sources = collection.query_sources
        kinds = [sources is not None, self._groups is not None]
        given = [np.asarray(x)[rows] for x in (sources, self._groups) if x is not None]
        learned, every = self._learned(rows), self._preferences.only(rows)
        if len(learned) < len(every):
            given += [learned.query, learned.document]
        if len(learned.rejected_query) < len(every.rejected_query):
            given += [learned.rejected_query, learned.rejected_document]
        return digest_of(kinds, [*texts, *judged, *given])

    @property
    def _naming(self) -> AbstractContextManager[None]:
        return naming(f"model {self.recipe.kind.name!r} of column {self.recipe.name!r}")

    @property
    def _unlabelled(self) -> bool:
        return not self.recipe.looks_at_labels

    @cached_property
    def _preferences(self) -> Preferences:
        collection = self.context.collection
        if not (collection.judgements.grade > 0).any():
            return _no_preferences(self.context)
        return Preferences.from_pairs(
            collection.judgements.query,
            collection.judgements.document,
            collection.judgements.grade,
            n_queries=collection.n_queries,
            n_documents=collection.n_documents,
        )

    @cached_property
    def _groups(self) -> NDArray[np.int64] | None:
        return self.context.collection.kept_together(by_group=self.hold_out_groups)


class FoldColumn:
    """A column in one fold: a scorer for :func:`ltr_features.columns.out_of_fold.fold_scores`.

    Args:
        column: the column. train_parts: the parts of the fold's training queries.
    """

    def __init__(self, column: TrainedColumn, train_parts: Sequence[NDArray[np.int64]]) -> None:
        self.column, self.train_parts = column, train_parts

    def __call__(self, train_queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float32]:
        """float32 [n]: scores of the pairs by the model of these training queries."""
        fitted = self._by_queries[train_queries.tobytes()]
        return computed(fitted, self.column.context, pairs)[:, 0]

    @cached_property
    def models(self) -> list[MatchingModel]:
        """The model of all parts, and for each part the model of the others."""
        return self.column.fold_models(self.train_parts)

    @cached_property
    def _by_queries(self) -> dict[bytes, FittedColumn]:
        train = np.sort(np.concatenate(self.train_parts))
        seen = [train, *(np.setdiff1d(train, part) for part in self.train_parts)]
        return {
            rows.tobytes(): FittedColumn(self.column.recipe, model)
            for rows, model in zip(seen, self.models, strict=True)
        }


def _no_preferences(context: ColumnContext) -> Preferences:
    none = np.zeros(0, np.int64)
    n_queries, n_documents = context.collection.n_queries, context.collection.n_documents
    return Preferences(none, none, np.zeros(0, np.float32), n_queries, n_documents)
