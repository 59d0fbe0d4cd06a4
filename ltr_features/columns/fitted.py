"""The column of a fitted model, in memory or as two files: the model, and notes on the queries
whose judgements it was trained on."""

from __future__ import annotations

import os
from collections.abc import Collection as IdCollection
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError, LetorWarning
from letor.files import atomic_path, read_json, write_json
from ltr_base.names import listed
from ltr_base.user_warning import warn_user
from ltr_features.columns.base import ColumnFamily, ColumnSpec
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.learned import NO_LABELS, LearnedColumn
from ltr_features.columns.term_space import TermSpace
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.index import TermIndex
from ltr_features.text.query_texts import normalised
from ssi_models.base import MatchingModel
from ssi_models.registry import load_model
from ssi_models.representation import CachedDocuments

#: The fold of a model that learned from other queries than the training queries of one.
NO_FOLD = "none"


def model_texts(context: ColumnContext, recipe: LearnedColumn) -> TermSpace:
    """The queries and documents of a context as the rows that a column's model is fitted on and
    scores."""
    if recipe.kind.inputs == "counts":
        return TermSpace.counts(context, recipe.field, recipe.terms)
    return TermSpace.of(
        context, recipe.min_document_frequency, recipe.field, recipe.terms, recipe.heaviest
    )


class FittedColumn(ColumnFamily):
    """The column of one fitted model, for any queries that it was not trained on.

    Args:
        recipe: the recipe of the column. model: the fitted model.
        fold: the name of the fold whose training judgements the model learned from, NO_FOLD for
            those of other queries, None if it is unknown.

    Raises:
        InputError: the model is not of the recipe's kind.
    """

    def __init__(
        self, recipe: LearnedColumn, model: MatchingModel, *, fold: str | None = None
    ) -> None:
        if not isinstance(model, recipe.kind):
            raise InputError(
                f"column {recipe.name!r} needs a model {recipe.kind.name!r}, got {model.name!r}"
            )
        self.recipe, self.model, self.fold = recipe, model, fold
        known = set(recipe.kind.scoring_params)
        model.set_params(**{k: v for k, v in recipe.all_params.items() if k in known})
        self._documents: WeakKeyDictionary[TermIndex, CachedDocuments] = WeakKeyDictionary()
        # Class attributes in other families; here they depend on the recipe.
        self.knows_added = not model.of_its_documents  # type: ignore[misc]
        self.name = recipe.name  # type: ignore[misc]
        self.description = recipe.spec.description  # type: ignore[misc]
        self.reference = recipe.spec.reference  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        """Without the documents' representations, which are computed again when they are needed."""
        return {**self.__dict__, "_documents": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _documents=WeakKeyDictionary())

    @property
    def columns(self) -> tuple[ColumnSpec]:
        return (self.recipe.spec,)

    @property
    def trained_on(self) -> str:
        labelled = self.model.looks_at_labels
        return "judgements of other queries" if labelled else NO_LABELS

    @property
    def remarks(self) -> list[str]:
        return self.model.remarks

    def settings(self, context: ColumnContext) -> dict[str, Any]:
        return self.recipe.settings(context, self.fold, self.model)

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        """Score the pairs: float32 [n, 1]. The documents' representations are computed once per
        index, those of queries in each call, for all from the first to the last one in the pairs.

        Raises:
            InputError: a pair lies outside the collection, or the model was trained on other words
                than those of the documents.
        """
        context.check(pairs)
        texts, documents = self._prepared(context)
        first = int(pairs.query.min(initial=context.collection.n_queries))
        asked = slice(first, int(pairs.query.max(initial=-1)) + 1)
        Q, sources = self.model.check_queries(texts.Q[asked]), context.collection.query_sources
        excluded = None if sources is None else sources[asked]
        scores = documents.pairs(Q, pairs.query - first, pairs.document, excluded=excluded)
        return scores[:, None]

    def scores(self, context: ColumnContext, queries: NDArray[np.int64]) -> NDArray[np.float32]:
        """float32 [len(queries), n_documents]: the scores of all documents for these queries."""
        texts, documents = self._prepared(context)
        excluded = context.collection.query_sources
        return documents.scores(
            texts.Q[queries], excluded=None if excluded is None else excluded[queries]
        )

    def _prepared(self, context: ColumnContext) -> tuple[TermSpace, CachedDocuments]:
        """The context's rows for the model, and the documents' cached representations."""
        texts = model_texts(context, self.recipe)
        if context.index not in self._documents:
            self._check_words(context, texts)
            self._documents[context.index] = self.model.cache(texts.D)
        return texts, self._documents[context.index]

    def _check_words(self, context: ColumnContext, texts: TermSpace) -> None:
        """Raise InputError unless the model was trained with the index's analyzer and words."""
        known, recipe = self.model.vocabulary_, self.model.recipe_
        analyzer = context.index.analyzer
        if recipe not in (None, analyzer.canonical, analyzer.fingerprint):  # the last: older files
            raise InputError(
                f"column {self.recipe.name!r}: its model was trained on text analysed by another "
                "recipe (stop words, stemmer, ...); index the collection with that recipe"
            )
        if known is not None and known != texts.vocabulary:
            raise InputError(
                f"column {self.recipe.name!r}: its model knows {len(known)} words, the collection "
                f"has {len(texts.vocabulary)} others: it was trained on other documents; train it "
                "on these, or open the collection that it was trained on"
            )


def restored_column(recipe: LearnedColumn, path: Path, fold: str | None = None) -> FittedColumn:
    """The column of a saved model whose recipe is known.

    Raises:
        InputError: the file is missing, damaged, or holds another kind of model.
    """
    try:
        return FittedColumn(recipe, recipe.kind.load(path), fold=fold)
    except (ValueError, FileNotFoundError) as error:  # names the file and says what to do
        raise InputError(str(error)) from None


def notes_path(path: str | os.PathLike[str]) -> Path:
    """The path of a model's notes: ``ssi.column.json`` for ``ssi.safetensors``."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".safetensors") + ".column.json")


def save_fitted(
    column: FittedColumn, path: str | os.PathLike[str], train_queries: IdCollection[str]
) -> None:
    """Write the model and its notes, including remarks on the fit.

    Args:
        train_queries: ids of the queries whose judgements the model saw; not recorded for a model
            that learns from documents alone.
    """
    path = Path(path)
    labelled = column.recipe.looks_at_labels
    notes = {
        "recipe": column.recipe.to_json(),
        "train_queries": sorted(train_queries) if labelled else [],
    }
    if column.remarks:
        notes["remarks"] = column.remarks
    # A model that cannot be written leaves the former one with its own notes.
    with atomic_path(notes_path(path)) as partial:
        write_json(partial, notes)
        column.model.save(path)


def read_notes(path: str | os.PathLike[str]) -> tuple[LearnedColumn, set[str]]:
    """The recipe of the column of a saved model, and the ids of its training queries.

    Raises:
        InputError: the model has no valid notes.
    """
    try:
        notes = read_json(notes_path(path))
        return LearnedColumn.from_json(notes["recipe"]), set(notes["train_queries"])
    except FileNotFoundError:
        raise InputError(
            f"{notes_path(path)}: no such file; it says on whose judgements the model was trained "
            "(`ltr-features models fit` writes it)"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{notes_path(path)}: not the notes of a model ({error})") from None


def load_fitted(
    path: str | os.PathLike[str],
    *,
    queries: IdCollection[str],
    collection: Collection | None = None,
) -> FittedColumn:
    """Load the column of a saved model, to score rows of the given queries of a collection.

    Warns:
        LetorWarning: some have, under another id, the text of a query that the model learned from.

    Raises:
        InputError: the model has no valid notes, or was trained on judgements of one of the
            queries, so that its column would give their labels away to the ranker.
    """
    path = Path(path)
    recipe, seen = read_notes(path)
    shared = sorted(seen & set(queries))
    if shared:
        raise InputError(
            f"{path}: the model was trained on judgements of {len(shared)} of the {len(queries)} "
            f"queries to be scored ({listed(shared, 3)}): its column would give their "
            "labels away. Train it on other queries, or build folds by `columns build --model`"
        )
    if collection is not None:
        normal = map(normalised, collection.query_texts)
        texts = dict(zip(collection.query_ids, normal, strict=True))
        learned = {texts[query] for query in seen if query in texts}
        if same := [query for query in queries if texts.get(query) in learned]:
            warn_user(
                f"{path}: the model was trained on judgements of queries with the same text as "
                f"{len(same)} of those to be scored ({listed(same, 3)}), which gives their labels "
                "away: leave these out, or train it on other queries",
                LetorWarning,
            )
    return FittedColumn(recipe, load_model(path))
