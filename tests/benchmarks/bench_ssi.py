"""Link ranking on Wikispeedia: MAP and rank loss over training time of U'V + I, against baselines.

Links are split 70/30 as in the study ``ssi_links``; every query is an article, the documents are
all articles. Settings were chosen on training links kept apart, never on test links. ``--steps``
prints the time of one step of the models instead.

What was chosen, by MAP of a tenth of the training links (one seed; up to 12 epochs): words left
out at random and a factor for the learned part help most (.168 without both, .172 with words left
out, .176 with the factor, .186 with both); rank 200 gives .187 in twice the time. Negatives from
the uniform pool are best: in-batch ones, drawn by popularity, give .138 where uniform ones give
.189 (both with 1 + log(tf)). WARP on uniform negatives gives .168 where equal
weights give .161 and MAP's weights .173 where WARP gives .185 (with dropout).

    LTR_DATA=<data folder> python tests/benchmarks/bench_ssi.py [--full] [--seconds 30]
        [--model ssi] [--set rank=100 ...] [--baselines] [--validation] [--steps]
"""

from __future__ import annotations

import argparse
import time
from ast import literal_eval
from itertools import islice
from statistics import median

import numpy as np
import scipy.sparse as sp
from data_sets import data_folder
from threadpoolctl import threadpool_limits
from timing import seconds_of, timed

from ltr_features.studies.kinds.matching_config import TaskConfig
from ltr_features.studies.kinds.matching_rows import evaluate, new_model, warm_up
from ltr_features.studies.kinds.matching_tasks import Task, make_task
from ssi_models.base import MatchingModel
from ssi_models.parallel import Workers
from ssi_models.registry import get_model
from ssi_models.training.loop import Epoch
from ssi_models.training.preferences import Preferences

N_WORDS, TOP = 30_000, 100
#: Chosen by hand on a tenth of the training links, 4 to 12 epochs per trial (``--validation``).
SETTINGS = {
    "rank": 100,
    "rank_weight": "warp",
    "accumulator_start": 0.1,
    "dropout": 0.5,
    "scales": (0.1, 0.2, 0.3),
    "batch_size": 256,
    "n_negatives": 256,
    "hold_out": "pairs",
    "validation_share": 0.05,
    "max_epochs": 1000,
    "patience": 3,
}


def task_of(full: bool, share: float = 1.0) -> Task:
    """The links of Wikispeedia over the 30,000 most frequent words, 70 % of them to train on (or a
    share of those); an article is its 100 heaviest words, or all."""
    config = TaskConfig(
        source="links", folder="wikispeedia", fields=("body",), n_words=N_WORDS,
        heaviest=None if full else TOP, use_share=share,
    )  # fmt: skip
    return make_task(config, data_folder())


def told(model: MatchingModel, task: Task) -> str:
    """How a model ranks test links: all articles but the query and its training links."""
    _, found = evaluate(model, task)
    return f"MAP {found['map']:.4f}, rank loss {found['rank_loss']:.4f}"


def time_steps(X: sp.csr_matrix, train: Preferences, threads: int) -> None:
    """Median time of a step of each model, and its ratio to U'V + I."""
    forms = [("ssi", {}), ("psi", {"degree": 2}), ("psi", {"degree": 3}), ("diagonal", {}),
             ("hash", {"identity": "added"})]  # fmt: skip
    reference = float("nan")
    for name, options in forms:
        kind = get_model(name)
        wanted = {"rank": 100, "batch_size": 256, "n_negatives": 256, "threads": threads}
        known = kind().get_params()
        model = kind(**{k: v for k, v in wanted.items() if k in known}, **options)
        data = model._prepared(X, X, train, excluded=np.arange(X.shape[0]))
        with Workers(threads) as workers, threadpool_limits(1, user_api="blas"):
            run = model.make_run(data, 0.03, workers)
            batches = islice(run.batches(0), 4 if name == "hash" else 40)
            step = median(seconds_of(run.step, batch) for batch in batches)
        reference = step if name == "ssi" else reference
        rate = wanted["batch_size"] * wanted["n_negatives"] / step / 1e6
        print(
            f"{name:9} {options!s:24} {step * 1e3:8.1f} ms per step of 256 x 256 tuples, "
            f"{rate:6.2f} M tuples/s, {step / reference:6.2f} x U'V + I"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="full text, not the top 100 words")
    parser.add_argument("--links", type=float, default=1.0, help="share of the training links")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--model", default="ssi")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    parser.add_argument("--baselines", action="store_true")
    parser.add_argument("--steps", action="store_true", help="time single steps only")
    parser.add_argument("--validation", action="store_true", help="no test measures")
    options = parser.parse_args()
    task = task_of(options.full, options.links)
    X, train = task.Q, task.train
    print(f"{X.shape[0]} articles, {X.nnz / X.shape[0]:.0f} words each, {len(train)} links")
    if options.steps:
        time_steps(X, train, options.threads)
        return
    if options.baselines:
        for name in ("vsm", "popularity", "tfidf-popularity", "lsi", "lsi-tfidf"):
            seconds, model = timed(get_model(name)().fit, X, X, train)
            print(f"{name:18} {seconds:6.1f} s  {told(model, task)}")
    known = get_model(options.model)().get_params()
    settings = {k: v for k, v in SETTINGS.items() if k in known}
    for item in options.set:
        name, value = item.split("=", 1)
        settings[name] = literal_eval(value) if value[:1] in "0123456789.([NTF-" else value
    warm_up(task, options.model, settings, options.threads)
    model = new_model(options.model, {**settings, "max_seconds": options.seconds}, options.threads)
    epochs: list[tuple[float, Epoch]] = []
    seconds = seconds_of(
        model.fit, X, X, train, excluded=task.excluded,
        callback=lambda epoch: epochs.append((time.perf_counter(), epoch)),
    )  # fmt: skip
    print(f"fit {seconds:.1f} s, {model}")
    began = epochs[0][0]
    for end, epoch in epochs:  # from 0 again where several learning rates are tried
        began = end if epoch.number == 0 else began
        print(
            f"  {end - began:6.2f} s epoch {epoch.number:3}  loss {epoch.loss:.4f}  violations "
            f"{epoch.violations:.3f}  validation {epoch.validation:.4f}"
        )
    if not options.validation:
        print(f"test {told(model, task)}")


if __name__ == "__main__":
    main()
