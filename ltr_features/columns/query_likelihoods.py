"""Columns of topic and translation models trained on pairs of queries and relevant titles."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from letor.errors import InputError
from ltr_features.collection import Pairs
from ltr_features.columns.model_scores import TrainedScores
from ltr_features.columns.registry import ColumnContext, ColumnSpec
from ssi_models.topics.bltm import BLTM
from ssi_models.topics.em import Iteration
from ssi_models.topics.language_model import LanguageModel
from ssi_models.topics.plsa import PLSA
from ssi_models.topics.posterior_regularization import BLTMPR, BLTMPR1V
from ssi_models.translation.ibm1 import IBMModel1

MODELS: dict[str, type[LanguageModel]] = {
    model.name: model for model in (PLSA, BLTM, BLTMPR, BLTMPR1V, IBMModel1)
}


class TrainedLikelihoods:
    """log P(q|d) / |q| by one of ``MODELS``, one fitted model per set of training queries, kept on
    disk; a scorer for :func:`ltr_features.build.fold_scores`, like :class:`TrainedScores`.

    Pairs are the training queries and the titles of their relevant documents: judgements of other
    queries are not looked at. PLSA learns from titles alone, so all its sets share one model.

    Args:
        context: collection, index and queries.
        model: a name of ``MODELS``.
        params: constructor parameters of the model; ``lambda2`` counts only where mixed.
        folder: where fitted models are kept; a model that is there is loaded, not trained again.
            The column alone and the mixed one use the same model.
        mixed: mix the title's own words in with weight lambda2; else the model stands alone
            beside the collection (lambda2 = 0).
        stream: the documents' stream that serves as title.
        on_iteration: called with (model key, finished iteration).

    Raises:
        InputError: no such model, or the collection does not have the stream.
    """

    def __init__(
        self,
        context: ColumnContext,
        model: str,
        params: dict[str, Any],
        folder: Path,
        *,
        mixed: bool = True,
        stream: str = "title",
        on_iteration: Callable[[str, Iteration], None] | None = None,
    ) -> None:
        if model not in MODELS:
            raise InputError(f"no model {model!r}; there are {', '.join(MODELS)}")
        if stream not in context.index:
            raise InputError(
                f"collection {context.collection.name!r} has no stream {stream!r}, which "
                f"{model!r} takes for the title; name another one"
            )
        self.context, self.name, self.params, self.folder = context, model, params, folder
        self.mixed, self.stream, self.on_iteration = mixed, stream, on_iteration
        self._labels = TrainedScores(context, {}, folder)

    def __call__(self, train_queries: NDArray[np.int64], pairs: Pairs) -> NDArray[np.float32]:
        """float32 [n]: log P(q|d) / |q| by the model of ``train_queries``."""
        model = self.model(train_queries)
        model.set_params(**self._weights(model))
        return model.score(self.context.query_counts, self.titles, pairs.query, pairs.document)

    def model(self, train_queries: NDArray[np.int64]) -> LanguageModel:
        """The model for a set of query rows: loaded if it is in the folder, else trained."""
        path = self.path(train_queries)
        kind = MODELS[self.name]
        if path.exists():
            return kind.load(path)
        preferences = self._labels.preferences(train_queries)
        self.folder.mkdir(parents=True, exist_ok=True)
        report = self.on_iteration
        model = kind(**self.params).fit(
            self.context.query_counts,
            self.titles,
            preferences,
            vocabulary=self.context.index.vocabulary,
            recipe=self.context.index.analyzer.fingerprint,
            checkpoint=path.with_suffix(".checkpoint"),
            callback=None if report is None else lambda line: report(path.stem, line),
        )
        model.save(path)
        return model

    @property
    def titles(self) -> csr_matrix:
        """int32 [n_documents, V]: counts of the stream."""
        return self.context.index.counts(self.stream)

    def path(self, train_queries: NDArray[np.int64]) -> Path:
        """The model's file: named by the model and a digest of its training queries."""
        if self.name == PLSA.name:
            return self.folder / f"{self.name}.safetensors"
        key = self._labels.path(train_queries).stem.removeprefix("ssi-")
        return self.folder / f"{self.name}-{key}.safetensors"

    @property
    def column(self) -> ColumnSpec:
        """What the column is called and means."""
        kind = "mixed with the title's own words" if self.mixed else "alone"
        return ColumnSpec(
            name=f"{self.name}_mixed" if self.mixed else self.name,
            description=f"log P(q|d) / |q| by {MODELS[self.name].__name__}, {kind}",
            unit="nats per query term",
            value_range=f"{math.log(1e-12):.1f} to 0",
            reference="Gao, Toutanova, Yih, SIGIR 2011, eq. 14-17",
            stream=self.stream,
        )

    def _weights(self, model: LanguageModel) -> dict[str, float]:
        lambda1 = self.params.get("lambda1", model.lambda1)
        return {
            "lambda1": lambda1,
            "lambda2": self.params.get("lambda2", model.lambda2) if self.mixed else 0.0,
        }
