"""Learners of an experiment of the kind "clicks": rankers on LETOR files, or matching models on the
texts of a collection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError
from letor.fold_files import concatenate, read_folds
from letor.folds import Fold, k_fold
from letor.rankers.lambdamart import LambdaMART
from ltr_base.names import counted
from ltr_base.source_code import packages_of
from ltr_features.clicks.judging import ClickJudgements, weighted_pairs
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fitted import FittedColumn, model_texts
from ltr_features.columns.learned import LearnedColumn
from ltr_features.feature_table import build_columns, table_pairs
from ltr_features.sources.registry import get_source, read_collection
from ltr_features.studies.identity import Digests
from ltr_features.studies.kinds.clicks_config import (
    ClicksConfig,
    MatchingSection,
    ProductionSection,
)
from ltr_features.studies.kinds.given_files import digest_of_rows
from ltr_features.studies.kinds.sections import with_content, with_paths
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.id_rows import rows_of
from ltr_features.text.index import TermIndex
from ssi_models.training.loop import divergence_in_remarks
from ssi_models.training.preferences import Preferences


@dataclass(frozen=True)
class Learned:
    """A fitted ranker or model.

    Attributes:
        scores: returns the scores of rows, float [n]. remarks: important remarks on the fit.
    """

    scores: Callable[[RankingData], NDArray[Any]]
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Learner:
    """A ranker or model that can learn in a fold from labels or from clicks.

    Attributes:
        shown: rows of the queries whose results users see, with document ids.
        test: rows of the test queries, which are ranked.
        production: the ranker in production, which ranks the results that users see.
        of_labels: trains on the true labels of the shown rows.
        fitted_to: trains only on judgements made from clicks on the shown rows; raises InputError
            if there is nothing to train on.
    """

    shown: RankingData
    test: RankingData
    production: Learned
    of_labels: Callable[[], Learned]
    fitted_to: Callable[[ClickJudgements], Learned]

    def of_clicks(self, judgements: ClickJudgements) -> Learned:
        """Train on judgements made from clicks; if there are too few clicks, return the ranker in
        production with a remark."""
        try:
            return self.fitted_to(judgements)
        except InputError as error:
            reason = str(error) if str(error).endswith("?") else f"{error}."
            return replace(self.production, remarks=[f"Not trained, ranks as before: {reason}"])


class Learners(ABC):
    """All learners of an experiment: one for each name, fold and seed.

    Attributes:
        described: what each learner is, JSON-compatible, by its name.
        folds: queries that are shown (training and validation) and tested.
        settings: everything else that the learners depend on, JSON-compatible.
        production: description of the ranker in production.
        packages: packages of plug-ins that the learners use.
        groups: group of each query, if some belong together. remarks: sentences, without full stop,
            on the queries.
    """

    described: Mapping[str, Any]
    folds: list[Fold]
    settings: Mapping[str, Any]
    production: str
    packages: tuple[str, ...] = ()
    groups: Mapping[str, int] | None = None
    remarks: Sequence[str] = ()

    @abstractmethod
    def learner(self, name: str, fold: Fold, seed: int) -> Learner:
        """The learner of that name for a fold and seed."""


class RankerLearners(Learners):
    """LambdaMART on LETOR files with folds; early stopping uses the same kind of labels as
    training."""

    described: Mapping[str, Any] = {"LambdaMART": "LambdaMART"}

    def __init__(self, config: ClicksConfig, folder: Path) -> None:
        self._config = config
        rows, self.folds = read_folds(folder, n_columns=config.n_columns)
        ids = np.array([f"row{row}" for row in range(len(rows))], dtype=object)
        self._rows = replace(rows, document_ids=ids)
        self.settings = {"rows": digest_of_rows(self._rows)}
        weak = config.production
        self.production = (
            f"{counted(weak.trees, 'tree')} trained on labels of {weak.share:.0%} of the training "
            "queries"
        )

    def learner(self, name: str, fold: Fold, seed: int) -> Learner:
        train, valid, test = fold.split(self._rows)

        def of_labels() -> Learned:
            ranker = LambdaMART(seed=seed).fit(train, valid)
            return Learned(ranker.predict, ranker.remarks)

        def fitted_to(judgements: ClickJudgements) -> Learned:
            # A prefix says how true labels count; those made from clicks have a linear gain.
            measure = f"linear:{self._config.measure.rpartition(':')[2].strip()}"
            ranker = LambdaMART(gain="linear", measure=measure, seed=seed)
            ranker.fit(judgements.label(train), judgements.label(valid))
            return Learned(ranker.predict, ranker.remarks)

        weak = _weak_ranker(self._config.production, train, seed)
        return Learner(concatenate([train, valid]), test, weak, of_labels, fitted_to)


def _weak_ranker(weak: ProductionSection, train: RankingData, seed: int) -> Learned:
    """LambdaMART with few trees, trained on few queries. A draw of queries is repeated if all their
    labels are the same."""
    rng = np.random.default_rng([seed, 1])
    size = max(1, round(weak.share * train.n_queries))
    for _ in range(1_000):
        chosen = np.sort(rng.choice(train.n_queries, size, replace=False))
        rows = train.select_queries([train.query_ids[q] for q in chosen])
        if len(np.unique(rows.y)) > 1:
            break
    ranker = LambdaMART(n_estimators=weak.trees, min_data_in_leaf=5, seed=seed)
    return Learned(ranker.fit(rows).predict, ranker.remarks)


class MatchingLearners(Learners):
    """Matching models on a collection; users see BM25's best documents."""

    production = "BM25"

    def __init__(
        self, config: ClicksConfig, matching: MatchingSection, data: Path, digests: Digests
    ) -> None:
        self._section, self._data = matching, data
        self.described = {m.name: m.model_dump(mode="json") for m in matching.models}
        given = matching.collection
        source = get_source(given.source)
        self.packages = packages_of(source)
        content = with_content(source, given.options, data, digests)
        self.settings = {"collection": {"source": given.source, **content}}
        self._options = with_paths(source, given.options, data)
        collection, ids = self.context.collection, self.rows.query_ids
        for model in matching.models:
            self.context.index.field(model.field)  # raises before the first model is trained
        together = collection.kept_together(by_group=True)
        if together is not None:
            self.groups = dict(zip(collection.query_ids, together.tolist(), strict=True))
        groups = None if self.groups is None else [self.groups[query] for query in ids]
        folds = k_fold(ids, matching.folds, seed=config.seed, groups=groups)
        self.folds = folds[: matching.tested]
        self.remarks = list(self.context.remarks)
        if lost := len(np.unique(collection.judgements.query)) - len(ids):
            self.remarks.append(
                f"{counted(lost, 'judged query')} without a word of any document left out: BM25 "
                "finds nothing to show users"
            )

    @cached_property
    def context(self) -> ColumnContext:
        """The collection and its index."""
        collection = read_collection(self._section.collection.source, **self._options)
        return ColumnContext(collection, TermIndex.build(collection, Analyzer()))

    @cached_property
    def rows(self) -> RankingData:
        """Rows of BM25's best documents for each judged query, with their score and grade."""
        context = self.context
        collection = context.collection
        pairs, scores = BM25Retriever(context.index).top(context.query_counts, self._section.depth)
        rows = replace(
            build_columns(context, pairs, []),
            X=scores[:, None].astype(np.float32),
            column_names=["bm25"],
        )
        judged = {collection.query_ids[q] for q in collection.judgements.query.tolist()}
        return rows.select_queries([query for query in rows.query_ids if query in judged])

    def learner(self, name: str, fold: Fold, seed: int) -> Learner:
        described = next(model for model in self._section.models if model.name == name)
        recipe = described.recipe.filled(seed=seed)
        collection = self.context.collection
        sizes = {"n_queries": collection.n_queries, "n_documents": collection.n_documents}
        train, valid, test = fold.split(self.rows)
        shown = concatenate([train, valid])

        def of_labels() -> Learned:
            pairs = table_pairs(collection, shown)
            judged = Preferences.from_pairs(pairs.query, pairs.document, shown.y, **sizes)
            return self._fitted(recipe, judged)

        def fitted_to(judgements: ClickJudgements) -> Learned:
            log, pairs = judgements.log, weighted_pairs(judgements)
            query = rows_of(log.query_ids, collection.query_ids)[pairs.query]
            document = rows_of(log.document_ids, collection.document_ids)[pairs.document]
            clicked = Preferences.from_pairs(query, document, weight=pairs.weight, **sizes)
            return self._fitted(recipe, clicked)

        bm25 = Learned(lambda rows: rows.X[:, 0].astype(np.float64))
        return Learner(shown, test, bm25, of_labels, fitted_to)

    def _fitted(self, recipe: LearnedColumn, preferences: Preferences) -> Learned:
        """A model fitted to preferences; early stopping uses training queries that it holds out,
        with the same kind of judgements as training."""
        texts, model = model_texts(self.context, recipe), recipe.new_model()
        together = self.context.collection.kept_together(by_group=True)
        try:
            with divergence_in_remarks():
                model.fit(
                    texts.Q, texts.D, preferences, candidates="relevant", groups=together,
                    vocabulary=texts.vocabulary, weighting=texts.weighting,
                )  # fmt: skip
        except ValueError as error:  # few clicks may leave too few queries to hold some out
            raise InputError(str(error)) from error
        column = FittedColumn(recipe, model)

        def scores(rows: RankingData) -> NDArray[np.float32]:
            pairs = table_pairs(self.context.collection, rows)
            return np.asarray(column.compute(self.context, pairs)[:, 0])

        return Learned(scores, model.remarks)
