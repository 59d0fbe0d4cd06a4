"""Train one ranker on all workers of a cluster, each on a share of the rows, for data that is too
large for one machine."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xgboost import collective, config_context
from xgboost.core import XGBoostError
from xgboost.tracker import RabitTracker

from letor.errors import InputError
from letor.parquet import read_parquet
from letor.rankers.xgboost_lambdamart import XGBoostLambdaMART
from ltr_features.cluster import connected


def train_on(
    address: str,
    rows: Path,
    ranker: XGBoostLambdaMART,
    out: Path,
    *,
    memory: int | None = None,
    threads: int | None = None,
) -> None:
    """Train XGBoost's LambdaMART on all workers and save it.

    Each worker reads its share of the queries. Unlike all other results, the model depends on the
    number of workers, because bins and sums do.

    Args:
        address: see :func:`~ltr_features.cluster.connected`.
        rows: Parquet file written by :func:`letor.parquet.write_parquet`, or a part of a fold, as
            the workers see it.
        ranker: the ranker to train. out: the folder to save it in, as the workers see it.
        memory: bytes of values that each worker holds in memory, see
            :func:`letor.parquet.read_parquet`.
        threads: threads of this process, which reads where queries end; each worker has one.

    Raises:
        InputError: there are fewer queries than workers, the normaliser needs all rows, or a
            worker died; see also :func:`~ltr_features.cluster.connected`.
    """
    if ranker.normalise == "standard":
        raise InputError("normalise='standard' looks at all rows: use another one, or one process")
    rows, out = rows.resolve(), out.resolve()
    ends = _ends_of_queries(rows, threads)
    with connected(address, rows.parent, out.parent) as cluster:
        workers = cluster.workers
        if len(ends) <= len(workers):
            raise InputError(f"{rows}: {len(ends) - 1} queries for {len(workers)} workers")
        cuts = ends[np.searchsorted(ends, np.linspace(0, ends[-1], len(workers) + 1))].tolist()
        tracker = RabitTracker(len(workers), cluster.host, sortby="task")
        tracker.start()
        given = str(rows), ranker, str(out), memory, tracker.worker_args()
        calls = {
            address: (number, slice(*share), *given)
            for number, (address, share) in enumerate(zip(workers, pairwise(cuts), strict=True))
        }
        try:
            cluster.together(_train, calls)
        finally:
            with suppress(XGBoostError):  # where a worker has died
                tracker.free()


def _ends_of_queries(rows: Path, threads: int | None) -> NDArray[np.int64]:
    """int64 [n_queries + 1]: 0, and the row after the last row of each query."""
    index = read_parquet(rows, features=[], comments=False, threads=threads).query_index
    return np.append(0, np.flatnonzero(np.append(index[1:] != index[:-1], True)) + 1)


def _train(
    number: int,
    share: slice,
    path: str,
    ranker: XGBoostLambdaMART,
    out: str,
    memory: int | None,
    tracker_args: dict[str, Any],
) -> None:
    """Train on a share of the rows, together with the other workers; the first one saves."""
    rows = read_parquet(path, rows=share, comments=False, threads=1, memory=memory)
    with (
        config_context(verbosity=0),  # hides messages about the ranks of workers
        collective.CommunicatorContext(**tracker_args, dmlc_task_id=f"{number:06}"),
    ):
        ranker.fit(rows)
    if number == 0:
        ranker.save(out)
