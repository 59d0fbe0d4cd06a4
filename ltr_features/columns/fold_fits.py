"""Fit the models of learned columns in folds, as many at a time as cores and memory allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from threading import Event, Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ltr_base.machine import usable_memory
from ltr_base.parallel import side_by_side, thread_count
from ltr_features.columns.fitted import model_texts
from ltr_features.columns.trained import TrainedColumn

#: The parts of a fold's training queries, as rows of the collection's queries.
Parts: TypeAlias = Sequence[NDArray[np.int64]]
#: Fits the models of all columns and folds into the columns' folders.
FitAll: TypeAlias = Callable[[Sequence[TrainedColumn], Sequence[Parts]], None]

#: Numbers that a fit holds for each one of its models' parameters: those of the best epoch, sums of
#: squared gradients and the like (5 of SSI, 12 of S2Net were measured).
_COPIES = 12
#: Width of the embeddings of models that choose it, or have none.
_WIDTH = 200
#: The share of the memory that fits may take together.
_SHARE = 0.5


def fit_folds(
    columns: Sequence[TrainedColumn],
    folds: Sequence[Parts],
    *,
    threads: int | None = None,
    memory: float | None = None,
    on_fit: Callable[[int, int], None] | None = None,
) -> None:
    """Fit the models of all columns and folds that are not in the columns' folders.

    Fits run side by side, on a core each, and a last one that is left alone on all of them: they
    end sooner than one after the other on all cores, which a single fit cannot keep busy. The
    models are the same.

    Args:
        columns: the columns. folds: for each fold, the parts of its training queries.
        threads: number of cores to use; all by default.
        memory: bytes that fits side by side may take together; by default half of what this process
            may use. One fit runs whatever it takes.
        on_fit: called before the first fit, and from any thread after each, with the number of
            finished fits and of all.

    Raises:
        InputError: nothing can be learned from the training queries of a fold.
    """
    wanted = list(unfitted(columns, folds))
    if not wanted:
        return
    cores = thread_count(threads)
    budget = _SHARE * usable_memory() if memory is None else memory
    fitting = budget // max(_bytes(column, parts) for column, parts in wanted)
    at_a_time = int(max(1, min(cores, len(wanted), fitting)))
    left_alone = len(wanted) - 1 if len(wanted) % at_a_time == 1 else -1
    stopping, counting, n_done = Event(), Lock(), 0
    if on_fit is not None:
        on_fit(0, len(wanted))

    def fit(number: int) -> None:
        nonlocal n_done
        column, parts = wanted[number]
        all_cores = at_a_time == 1 or number == left_alone
        _stoppable(column, stopping, cores if all_cores else 1).fit_fold(parts)
        with counting:
            n_done += 1
            if on_fit is not None:
                on_fit(n_done, len(wanted))

    try:
        side_by_side(fit, range(len(wanted)), at_a_time)
    finally:
        stopping.set()


def unfitted(
    columns: Sequence[TrainedColumn], folds: Sequence[Parts]
) -> Iterator[tuple[TrainedColumn, Parts]]:
    """Yield the columns and folds whose models are not in the columns' folders, each model once."""
    seen = set()
    for column in columns:
        for parts in folds:
            paths = column.fold_paths(parts)
            if paths[0] not in seen and not all(path.exists() for path in paths):
                yield column, parts
            seen.add(paths[0])


def _stoppable(column: TrainedColumn, stopping: Event, threads: int) -> TrainedColumn:
    """The column on a number of threads, whose fit ends after the epoch in which another one fails
    or the user interrupts."""
    report = column.on_progress

    def progress(model: str, event: Any) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        if report is not None:
            report(model, event)

    column = copy(column)
    column.threads, column.on_progress = threads, progress
    return column


def _bytes(column: TrainedColumn, parts: Parts) -> float:
    """Roughly what a fit of a fold takes, without the texts, which all fits share."""
    params = column.recipe.new_model().get_params()
    width = params.get("rank", params.get("n_topics"))
    n_words = model_texts(column.context, column.recipe).D.shape[1]
    n_numbers = n_words * (width if isinstance(width, int) else _WIDTH)
    return 4.0 * _COPIES * (1 + len(parts)) * n_numbers
