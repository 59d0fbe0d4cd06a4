"""One row of a matching study: train models, keep the one that validates best, and measure its rank
loss on triples, MAP and P@10, with standard errors."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.files import write_json
from ltr_features.studies.kinds.matching_tasks import Task
from ltr_features.studies.progress import Reporter
from ssi_models.base import MatchingModel
from ssi_models.parallel import Workers
from ssi_models.registry import get_model
from ssi_models.training.held_out import Validation, hold_out_pairs
from ssi_models.training.loop import divergence_in_remarks
from ssi_models.training.trainable import TrainableModel

#: Fitted attributes that are recorded for each trial.
_SHOWN = ("alpha_", "beta_", "n_expansion_", "learning_rate_", "scale_")


def make_row(
    task: Task,
    name: str,
    trials: Sequence[dict[str, Any]],
    folder: Path,
    *,
    inner: Task | None = None,
    threads: int | None = None,
    reporter: Reporter | None = None,
) -> None:
    """Fit a model for each set of parameters, and evaluate the best one.

    The best one has the highest validation measure on pairs held out of the training pairs, or the
    highest MAP on the task ``inner``, which is made of training pairs; only this model is
    evaluated on the test pairs, once.

    Writes ``result.json`` (measures, parameters, all trials), ``times.json`` (seconds of training
    each trial and of ranking) and ``per_query.csv``.
    """
    reporter = reporter or Reporter(shown=False)
    warm_up(task, name, trials[0], threads)
    best, kept, tried, seconds = _best_of(task, name, trials, inner, threads, reporter)
    reporter.part(len(trials), len(trials))
    reporter.step("ranking")
    start = time.perf_counter()
    values, measures = evaluate(best, task)
    result = {
        "model": name,
        "measures": measures,
        "parameters": n_parameters(best),
        "kept": kept,
        "remarks": best.remarks,
        "trials": tried,
    }
    times = {"trials": seconds, "ranking": time.perf_counter() - start}
    for file, content in (("result.json", result), ("times.json", times)):
        write_json(folder / file, content)
    values.to_csv(folder / "per_query.csv", index=False, lineterminator="\n")


def _best_of(
    task: Task,
    name: str,
    trials: Sequence[dict[str, Any]],
    inner: Task | None,
    threads: int | None,
    reporter: Reporter,
) -> tuple[MatchingModel, int, list[dict[str, Any]], list[float]]:
    """The model that validates best and its number; record and training seconds of each trial."""
    models: list[MatchingModel] = []
    tried: list[dict[str, Any]] = []
    seconds, kept = [], 0
    for number, params in enumerate(trials):
        reporter.part(number, len(trials))
        model = new_model(name, params, threads)
        start = time.perf_counter()
        _fit(model, task, params, reporter)
        seconds.append(time.perf_counter() - start)
        tried.append(_trial(model, params))
        if inner is not None:
            again = new_model(name, params, threads)
            _fit(again, inner, params, reporter)
            tried[-1]["validation"] = evaluate(again, inner)[1]["map"]
        elif len(trials) > 1 and not isinstance(model, TrainableModel):
            tried[-1]["validation"] = _validated(name, params, task, threads)
        if not number or tried[-1]["validation"] > tried[kept]["validation"]:
            models, kept = [model], number
    return models[0], kept, tried, seconds


def warm_up(task: Task, name: str, params: dict[str, Any], threads: int | None) -> None:
    """Fit a model for one epoch on a few pairs, so that measured seconds exclude compilation."""
    short = {"max_epochs": 1} if "max_epochs" in get_model(name).default_params() else {}
    model = new_model(name, {**params, **short}, threads)
    few = task.train.pairs(np.arange(min(len(task.train), 400)))
    model.fit(task.Q, task.D, few, **fit_options(task, params))


def fit_options(task: Task, params: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``fit`` that depend on the task."""
    options: dict[str, Any] = {"excluded": task.excluded, "candidates": task.candidates}
    if params.get("hold_out") != "pairs":
        options["groups"] = task.groups
    return options


def n_parameters(model: MatchingModel) -> int:
    """Number of fitted weights (floats) of a model; a matrix shared by queries and documents counts
    once, and documents that a model stores do not count."""
    names = [name for name in model.tensors if not name.startswith("D_")]
    arrays = [getattr(model, f"{name}_") for name in names]
    different = {a.tobytes(): a.size for a in arrays if a.dtype == np.float32}
    return sum(different.values())


def new_model(name: str, params: dict[str, Any], threads: int | None) -> MatchingModel:
    """An unfitted model with the parameters of a row."""
    kind = get_model(name)
    # JSON and TOML have lists where parameters are tuples.
    made = {k: tuple(v) if isinstance(v, list) else v for k, v in params.items()}
    return kind(**made, **({"threads": threads} if hasattr(kind, "threads") else {}))


def _fit(model: MatchingModel, task: Task, params: dict[str, Any], reporter: Reporter) -> None:
    options = fit_options(task, params)
    if isinstance(model, TrainableModel):
        options["callback"] = lambda epoch: reporter.tick("epochs")
    with divergence_in_remarks():
        model.fit(task.Q, task.D, task.train, **options)


def _validated(name: str, params: dict[str, Any], task: Task, threads: int | None) -> float:
    """MAP on a tenth of the training pairs after fitting on the others, for models that do not hold
    out pairs themselves."""
    kept, held_out = hold_out_pairs(task.train, 0.1, seed=0)
    kept = kept.without_reversed(held_out, task.excluded)
    model = new_model(name, params, threads)
    model.fit(task.Q, task.D, kept, **fit_options(task, params))
    validation = Validation(held_out, kept, task.excluded, 10_000, seed=0)
    queries = validation.queries
    scores = model.cache(task.D).scores(task.Q[queries], excluded=task.excluded[queries])
    scores = scores[:, validation.documents]
    with Workers(threads) as workers:
        return validation.measure("map", np.ascontiguousarray(scores), workers)


def _trial(model: MatchingModel, params: dict[str, Any]) -> dict[str, Any]:
    trial: dict[str, Any] = {"params": params, "validation": 0.0}
    for attribute in _SHOWN:
        value = getattr(model, attribute, None)
        if value is not None:
            trial[attribute.removesuffix("_")] = float(np.ravel(value)[0])
    if isinstance(model, TrainableModel):
        history = model.history_
        trial["validation"] = max(epoch.validation for epoch in history.epochs)
        trial["best_epoch"] = history.best_epoch
        trial["epochs"] = [list(vars(epoch).values()) for epoch in history.epochs]
        if not np.isfinite(trial["epochs"][0][1]):
            trial["epochs"][0][1:3] = [None, None]
    return trial


_BLOCK = 512  # queries scored at a time


def evaluate(model: MatchingModel, task: Task) -> tuple[pd.DataFrame, dict[str, float]]:
    """Rank the task's database for its test queries.

    Returns:
        A row per test query: ``query``, ``group``, ``ap`` (average precision) and ``p10``, where
        among documents with equal scores irrelevant ones are ranked first. And measures:
        ``rank_loss``, the share of the triples that are ordered wrongly (ties count half), with its
        standard error over groups of queries, as triples of one query, or of queries made from one
        document, are not independent; and the means ``map`` and ``p10``.
    """
    cached = model.cache(task.D)
    query, positive, negative = task.triples
    queries = np.union1d(task.asked, query)
    wrong = np.empty(len(query))
    precision = np.empty((len(task.asked), 2))
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        scores = cached.scores(task.Q[block], excluded=task.excluded[block])
        triple = np.flatnonzero((query >= block[0]) & (query <= block[-1]))
        row = np.searchsorted(block, query[triple])
        difference = scores[row, positive[triple]] - scores[row, negative[triple]]
        wrong[triple] = np.where(difference == 0, 0.5, difference < 0)
        for i, asked in enumerate(block):
            place = np.searchsorted(task.asked, asked)
            if place < len(task.asked) and task.asked[place] == asked:
                precision[place] = _precisions(task, asked, scores[i])
    deviation = np.bincount(task.groups[query], wrong - wrong.mean())
    values = pd.DataFrame({"query": task.asked, "group": task.groups[task.asked]})
    values[["ap", "p10"]] = precision
    return values, {
        "rank_loss": float(wrong.mean()),
        "rank_loss_error": float(np.sqrt((deviation**2).sum()) / len(wrong)),
        "map": float(precision[:, 0].mean()),
        "p10": float(precision[:, 1].mean()),
    }


def ranked_documents(task: Task, query: int) -> NDArray[np.bool_]:
    """bool [n]: the documents that are ranked for a query: the database without the document from
    which the query was made and without known answers."""
    ranked = np.zeros(task.D.shape[0], np.bool_)
    ranked[task.database] = True
    first, last = np.searchsorted(task.known_query, [query, query + 1])
    ranked[task.known_document[first:last]] = False
    if task.excluded[query] >= 0:
        ranked[task.excluded[query]] = False
    return ranked


def ranks_of_relevant(task: Task, query: int, scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Ranks, from 1 and ascending, of the relevant documents of a test query.

    Args:
        scores: float32 [n], scores of all documents.
    """
    relevant = np.zeros(len(scores), np.bool_)
    relevant[task.test.document[slice(*task.test.offsets[query : query + 2])]] = True
    rows = np.flatnonzero(ranked_documents(task, query))
    order = np.lexsort((relevant[rows], -scores[rows]))
    return np.flatnonzero(relevant[rows][order]) + 1


def _precisions(task: Task, query: int, scores: NDArray[np.float32]) -> tuple[float, float]:
    """Average precision and P@10 of a test query."""
    ranks = ranks_of_relevant(task, query, scores)
    if not len(ranks):
        return 0.0, 0.0
    precision = np.arange(1, len(ranks) + 1) / ranks
    return float(precision.mean()), float((ranks <= 10).sum() / 10)
