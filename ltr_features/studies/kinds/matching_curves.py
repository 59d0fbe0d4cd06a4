"""Rank loss of training and of test links over epochs (Figure 2 of Bai et al.)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr_base.blas import one_blas_thread
from ltr_features.studies.kinds.matching_rows import new_model, ranked_documents
from ltr_features.studies.kinds.matching_tasks import Task
from ssi_models.kernels.pair_losses import judged_lists, ranking_measures
from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.parameters import AUTO
from ssi_models.training.data import TrainingData
from ssi_models.training.preferences import Preferences
from ssi_models.training.run import TrainingRun, best_rate
from ssi_models.training.trainable import TrainableModel

MAX_DOCUMENTS = 5000  # drawn for the ranking of training queries, in addition to relevant ones


def training_curve(
    task: Task,
    name: str,
    params: dict[str, Any],
    epochs: int,
    n_queries: int,
    *,
    threads: int | None = None,
) -> list[dict[str, float]]:
    """Train on all training pairs without early stopping, and rank after every epoch.

    Returns:
        For each epoch from 0: "epoch", and the mean rank loss of ``n_queries`` training queries
        ("train") and of as many test queries ("test").
    """
    model = new_model(name, params, threads)
    if not isinstance(model, TrainableModel):
        raise TypeError(f"{name} is not trained in epochs")
    model.check_params()
    Q, D = check_csr("Q", task.Q), check_csr("D", task.D)
    data = TrainingData(Q, D, task.train, task.train, task.train, task.excluded, task.candidates)
    rng = np.random.default_rng([model.seed, 6])
    ranked = _training_ranking(task, n_queries, rng), _test_ranking(task, n_queries, rng)
    points = []
    with Workers(threads) as workers, one_blas_thread():
        auto = model.training.learning_rate == AUTO
        rate = best_rate(model, data, workers) if auto else model.training.rates[0]
        run = model.make_run(data, rate, workers, validates=False)
        for number in range(epochs + 1):
            if number:
                for batch in run.batches(number - 1):
                    run.step(batch)
            train, test = (ranking.loss(run) for ranking in ranked)
            points.append({"epoch": float(number), "train": train, "test": test})
    return points


@dataclass(frozen=True, eq=False)
class _Ranking:
    """Queries [m] and documents [p] (rows, ascending), and which documents are relevant or not
    ranked (hidden), bool [m, p]."""

    queries: NDArray[np.int64]
    documents: NDArray[np.int64]
    relevant: NDArray[np.bool_]
    hidden: NDArray[np.bool_]

    def loss(self, run: TrainingRun) -> float:
        """Mean rank loss over the queries."""
        rows = self.queries, self.documents
        parts = (run.scorer.diagonal_scores(*rows), run.scorer.learned_scores(*rows))
        scores = np.sum([part for part in parts if part is not None], axis=0)
        precision, loss = np.empty(len(scores)), np.empty(len(scores))
        scores = np.ascontiguousarray(scores, np.float32)
        ranking_measures(scores, *self._lists, precision, loss)
        return float(np.nanmean(loss))

    @cached_property
    def _lists(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        return judged_lists(self.relevant, self.hidden)


def _training_ranking(task: Task, n_queries: int, rng: np.random.Generator) -> _Ranking:
    """Training queries with documents that may be negatives; test pairs are not ranked."""
    queries = np.sort(rng.permutation(task.train.queries)[:n_queries])
    pool = rng.permutation(task.candidates)[:MAX_DOCUMENTS]
    documents = np.union1d(pool, task.train.only(queries).document)
    hidden = np.stack(
        [
            np.isin(documents, _relevant(task.test, q)) | (documents == task.excluded[q])
            for q in queries
        ]
    )
    relevant = np.stack([np.isin(documents, _relevant(task.train, q)) for q in queries])
    return _Ranking(queries, documents, relevant, hidden)


def _test_ranking(task: Task, n_queries: int, rng: np.random.Generator) -> _Ranking:
    """Test queries with the documents of the database."""
    queries = np.sort(rng.permutation(task.test.queries)[:n_queries])
    documents = task.database
    hidden = np.stack([~ranked_documents(task, int(q))[documents] for q in queries])
    relevant = np.stack([np.isin(documents, _relevant(task.test, q)) for q in queries])
    return _Ranking(queries, documents, relevant, hidden)


def _relevant(pairs: Preferences, query: int) -> NDArray[np.int64]:
    return pairs.document[pairs.offsets[query] : pairs.offsets[query + 1]]
