"""Rank loss of training and of test links over epochs (Figure 2 of Bai et al.)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from reports.matching.evaluation import ranked_documents
from reports.matching.tasks import Task
from reports.matching.training import new_model
from ssi_models.fitting import RankingModel
from ssi_models.kernels.ranking import ranking_measures
from ssi_models.matrices import check_csr
from ssi_models.parallel import Workers
from ssi_models.run import Run, TrainingData


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
        For each epoch from 0 on: "epoch", and the mean rank loss over ``n_queries`` seeded queries
        of their training pairs ("train") and of their test pairs ("test").
    """
    model = new_model(name, params, threads)
    if not isinstance(model, RankingModel):
        raise TypeError(f"{name} is not trained in epochs")
    model.check_params()
    Q, D = check_csr("Q", task.Q), check_csr("D", task.D)
    data = TrainingData(Q, D, task.train, task.train, task.train, task.excluded, task.candidates)
    both = np.intersect1d(task.test.queries, task.train.queries)
    rng = np.random.default_rng([model.seed, 6])
    queries = np.sort(rng.permutation(both)[:n_queries])
    places = [_places(task, queries, part) for part in ("train", "test")]
    points = []
    rate = float(model.learning_rate)
    with Workers(threads) as workers, threadpool_limits(1, user_api="blas"):
        run = Run(model, data, rate, workers, validates=False)
        for number in range(epochs + 1):
            if number:
                for batch in run.batches(number - 1):
                    run.step(batch)
            scores = _scores(run, queries, np.arange(D.shape[0]))
            train, test = (_rank_loss(scores, *place) for place in places)
            points.append({"epoch": float(number), "train": train, "test": test})
    return points


def _scores(
    run: Run, queries: NDArray[np.int64], documents: NDArray[np.int64]
) -> NDArray[np.float32]:
    parts = [
        part
        for part in (
            run.scorer.lexical_matrix(queries, documents),
            run.scorer.learned_matrix(queries, documents),
        )
        if part is not None
    ]
    return np.ascontiguousarray(np.sum(parts, axis=0), np.float32)


def _places(
    task: Task, queries: NDArray[np.int64], part: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Relevant and hidden documents of the queries, bool [n_queries, n]; of the two kinds of
    relevant documents, the other one is hidden."""
    shape = (len(queries), task.D.shape[0])
    relevant, hidden = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for i, query in enumerate(queries):
        rows = {
            name: getattr(task, name).document[slice(*getattr(task, name).offsets[query:][:2])]
            for name in ("train", "test")
        }
        hidden[i] = ~ranked_documents(task, int(query))
        hidden[i, np.concatenate([rows["train"], rows["test"]])] = True
        hidden[i, rows[part]] = False
        relevant[i, rows[part]] = True
    return relevant, hidden


def _rank_loss(
    scores: NDArray[np.float32], relevant: NDArray[np.bool_], hidden: NDArray[np.bool_]
) -> float:
    precision, loss = np.empty(len(scores)), np.empty(len(scores))
    ranking_measures(scores, relevant, hidden, precision, loss)
    return float(np.nanmean(loss))
