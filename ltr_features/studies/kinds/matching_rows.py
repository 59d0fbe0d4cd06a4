"""Train the models of one row, keep the one that validates best, and measure it."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ltr_features.studies.kinds.matching_evaluation import evaluate
from ltr_features.studies.kinds.matching_tasks import Task
from ltr_features.studies.progress import Reporter
from ssi_models.base import MatchingModel
from ssi_models.parallel import Workers
from ssi_models.registry import get_model
from ssi_models.training.held_out import Validation, hold_out_pairs
from ssi_models.training.loop import DivergenceWarning
from ssi_models.training.trainable import TrainableModel

#: Fitted values that a row shows.
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
    """Fit a model with each of the parameters and write how the best one ranks.

    The best one has the highest validation measure on pairs that were held out of the training
    pairs, or the highest MAP on the task ``inner``, which is made of training pairs; test pairs
    are looked at once, for it alone.

    Writes ``result.json`` (measures, parameters, all trials), ``times.json`` (seconds of training
    each trial and of ranking) and ``per_query.csv``.
    """
    best: MatchingModel | None = None
    tried: list[dict[str, Any]] = []
    seconds: list[float] = []
    reporter, kept = reporter or Reporter(shown=False), 0
    warm_up(task, name, trials[0], threads)
    for number, params in enumerate(trials):
        reporter.part(number, len(trials))
        model = new_model(name, params, threads)
        start = time.perf_counter()
        diverged = _fit(model, task, params, reporter)
        seconds.append(time.perf_counter() - start)
        tried.append(_trial(model, params, diverged))
        if inner is not None:
            tried[-1]["validation"] = _inner_map(name, params, inner, threads, reporter)
        elif len(trials) > 1 and not isinstance(model, TrainableModel):
            tried[-1]["validation"] = _validated(name, params, task, threads)
        if best is None or tried[-1]["validation"] > tried[kept]["validation"]:
            best, kept = model, number
    if best is None:
        raise ValueError("no parameters to train with")
    reporter.part(len(trials), len(trials))
    reporter.step("ranking")
    start = time.perf_counter()
    found = evaluate(best, task)
    result = {
        "model": name,
        "measures": found.means(),
        "parameters": n_parameters(best),
        "kept": kept,
        "remarks": best.remarks,
        "trials": tried,
    }
    times = {"trials": seconds, "ranking": time.perf_counter() - start}
    for file, content in (("result.json", result), ("times.json", times)):
        (folder / file).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    pd.DataFrame(
        {
            "query": found.queries,
            "group": task.groups[found.queries],
            "ap": found.average_precision,
            "p10": found.precision_at_10,
        }
    ).to_csv(folder / "per_query.csv", index=False)


def warm_up(task: Task, name: str, params: dict[str, Any], threads: int | None) -> None:
    """Fit a model for one epoch on a few pairs, so that compiling is not part of its seconds."""
    short = {"max_epochs": 1} if "max_epochs" in get_model(name).default_params() else {}
    model = new_model(name, {**params, **short}, threads)
    few = task.train.pairs(np.arange(min(len(task.train), 400)))
    model.fit(task.Q, task.D, few, **fit_options(task, params))


def fit_options(task: Task, params: dict[str, Any]) -> dict[str, Any]:
    """What ``fit`` is told of a task."""
    options: dict[str, Any] = {"excluded": task.excluded, "candidates": task.candidates}
    if params.get("hold_out", "queries") == "queries":
        options["groups"] = task.groups
    return options


def n_parameters(model: MatchingModel) -> int:
    """Number of fitted weights (floats) of a model; a matrix that serves queries and documents
    counts once, and the documents that a model holds do not count."""
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


def _fit(model: MatchingModel, task: Task, params: dict[str, Any], reporter: Reporter) -> bool:
    """Whether training diverged."""
    options = fit_options(task, params)
    if isinstance(model, TrainableModel):
        options["callback"] = lambda epoch: reporter.tick("epochs")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DivergenceWarning)
        model.fit(task.Q, task.D, task.train, **options)
    return any(issubclass(w.category, DivergenceWarning) for w in caught)


def _inner_map(
    name: str, params: dict[str, Any], inner: Task, threads: int | None, reporter: Reporter
) -> float:
    model = new_model(name, params, threads)
    _fit(model, inner, params, reporter)
    return float(evaluate(model, inner).average_precision.mean())


def _validated(name: str, params: dict[str, Any], task: Task, threads: int | None) -> float:
    """MAP on a tenth of the training pairs of a model fitted on the others, for models that hold
    out no pairs themselves."""
    kept, held_out = hold_out_pairs(task.train, 0.1, seed=0)
    model = new_model(name, params, threads)
    model.fit(task.Q, task.D, kept, **fit_options(task, params))
    validation = Validation(held_out, kept, task.excluded, 10_000, seed=0)
    queries = validation.queries
    scores = model.cache(task.D).scores(task.Q[queries], excluded=task.excluded[queries])
    scores = scores[:, validation.documents]
    with Workers(threads) as workers:
        return validation.measure("map", np.ascontiguousarray(scores), workers)


def _trial(model: MatchingModel, params: dict[str, Any], diverged: bool) -> dict[str, Any]:
    trial: dict[str, Any] = {"params": params, "validation": 0.0}
    if diverged:
        trial["diverged"] = True
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
