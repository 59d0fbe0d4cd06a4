"""How long the stages of a ranking experiment roughly take, before a run has measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ltr_features.candidate_kinds import JudgedCandidates
from ltr_features.candidates import source_kind
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fit_size import FitSize
from ltr_features.columns.learned import LearnedColumn
from ltr_features.studies.kinds.ranking_config import SplitConfig
from ltr_features.text.index import WHOLE

#: Candidates of a query by a source that does not say.
_DEPTH = 100
#: Seconds that the models of a fold take, however little they learn from.
_OF_FOLD = 5.0


@dataclass(frozen=True, eq=False)
class StageSeconds:
    """Seconds on one core, by the sizes of an indexed collection; what was measured (all stages of
    CACM, and models of Cranfield, CISI, NPL and of 2,400 documents of 83 kB, whose queries have
    1,300 words) is a third to three times as much; models that learn easily take a tenth. All are
    0, unknown, without a collection.

    Attributes:
        context: the collection, or None. candidates: settings of their sources.
        n_columns: number of columns that rankers learn from.
    """

    context: ColumnContext | None
    candidates: Mapping[str, Mapping[str, Any]]
    n_columns: int

    @cached_property
    def _judged(self) -> int:
        context = self.context
        return 0 if context is None else len(np.unique(context.collection.judgements.query))

    @cached_property
    def _n_rows(self) -> float:
        """Rows of all candidates; a file of judgements is taken for as long as the collection's."""
        if self.context is None:
            return 0.0
        return sum(
            len(self.context.collection.judgements)
            if source_kind(name, options) is JudgedCandidates
            else self._judged * options.get("depth", _DEPTH)
            for name, options in self.candidates.items()
        )

    @cached_property
    def _n_tokens(self) -> int:
        return 0 if self.context is None else int(self.context.index.field(WHOLE).lengths.sum())

    @cached_property
    def _n_words(self) -> int:
        """Different words of all documents, each document's counted."""
        return 0 if self.context is None else len(self.context.index.field(WHOLE).terms)

    @property
    def collection(self) -> float:
        """Of reading the collection."""
        return 1e-6 * self._n_tokens

    @property
    def index(self) -> float:
        """Of counting its words."""
        return 2e-6 * self._n_tokens

    @cached_property
    def columns(self) -> float:
        """Of the columns that need no training."""
        if self.context is None:
            return 0.0
        words = self.context.query_words[1].nnz / self._judged
        return self._n_rows * (1e-4 + 1e-6 * words)

    def models(self, split: SplitConfig, recipe: LearnedColumn) -> float:
        """Of all models of a split; of one of the documents if it learns from no judgement."""
        if self.context is None:
            return 0.0
        if not recipe.looks_at_labels:
            rank = recipe.new_model().get_params().get("rank", 1)
            return 1e-8 * self._n_words * rank + self.scores(split)
        parts = np.array_split(np.unique(self.context.collection.judgements.query), split.folds)
        train = [parts[: split.train_parts]] * split.n_folds
        size = FitSize.of(self.context, recipe, train)
        return _OF_FOLD * split.n_folds + split.share * (size.seconds or 1e-5 * size.words)

    def scores(self, split: SplitConfig) -> float:
        """Of a model's column in all folds."""
        return split.n_folds * (2e-5 * self._n_rows + 1e-7 * self._n_words)

    def rankers(self, split: SplitConfig, usual: float) -> float:
        """Of a system in all folds.

        Args:
            usual: seconds per million values of the training rows; 0 for a single column's order.
        """
        trained = self._n_rows * split.share * (1 - 2 / split.folds)
        fits = usual * trained * self.n_columns / 1e6
        return split.n_folds * (fits + 1e-5 * self._n_rows)

    @property
    def letor(self) -> float:
        """Of a fold written as text."""
        return 2e-6 * self._n_rows * self.n_columns
