"""Hogwild: threads that each learn from batches of their own, into shared parameters, unlocked."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any

from ssi_models.parallel import Workers
from ssi_models.sampling import Batch
from ssi_models.tables import Space

if TYPE_CHECKING:
    from ssi_models.run import Run


def replica(scorer: Any) -> Any:
    """A scorer of the same parameters, with workspaces of its own, for one thread."""
    twin = copy.copy(scorer)
    twin.workers = Workers(1)
    spaces: dict[int, Space] = {}
    for name, value in vars(scorer).items():
        if isinstance(value, Space):
            setattr(twin, name, spaces.setdefault(id(value), Space(value.X)))
    return twin


def hogwild_steps(
    runs: Sequence[Run], batches: Iterable[Batch]
) -> Iterator[tuple[float, int, int]]:
    """The results of all steps (as of ``Run.step``), each run in a thread of its own.

    Steps read and write the shared parameters while others do, so updates of the same word may
    be lost and results differ from run to run (Niu, Recht, Re, Wright, "Hogwild!", NIPS 2011).
    """
    waiting, lock = iter(batches), Lock()

    def work(run: Run) -> list[tuple[float, int, int]]:
        results: list[tuple[float, int, int]] = []
        while True:
            with lock:
                batch = next(waiting, None)
            if batch is None:
                return results
            results.append(run.step(batch))

    with ThreadPoolExecutor(len(runs)) as pool:
        for results in pool.map(work, runs):
            yield from results
