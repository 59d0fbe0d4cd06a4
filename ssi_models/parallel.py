"""Worker threads for kernels that release the GIL, and the interface to other processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltr_base.parallel import thread_count

#: Number of multiplications from which waking other threads saves time.
WORTH_WAKING = 2_500_000


@dataclass(frozen=True)
class Executor:
    """Runs the pieces of one fit in other processes that see the same files.

    Attributes:
        folder: for the files that pieces read and write; a fit resumes from what a killed run left
            there.
        in_order: ``in_order(work, calls, homes=None)`` yields the results of ``work(*call)`` for
            each of the calls, in their order. A call may be started twice. ``homes`` holds the
            process that ran each call last, by the call's number, and is updated in place; that
            process is preferred, because it may still hold data of the call, but not guaranteed.
    """

    folder: Path
    in_order: Callable[..., Iterator[Any]]


class Workers:
    """Threads that share one task at a time; a context manager.

    ``run(work)`` calls ``work(share, n_shares)`` once per thread and waits; ``split(work, n)``
    calls ``work(start, stop)`` on a partition of ``range(n)``. If the ``cost``, in multiplications,
    is below ``WORTH_WAKING``, the calling thread does all the work.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.n_shares = thread_count(threads)
        self._pool = ThreadPoolExecutor(self.n_shares - 1) if self.n_shares > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, work: Callable[[int, int], object], cost: float = math.inf) -> None:
        if self._pool is None or cost < WORTH_WAKING:
            work(0, 1)
            return
        # The calling thread takes a share too, which saves waking one thread.
        others = [self._pool.submit(work, s, self.n_shares) for s in range(1, self.n_shares)]
        try:
            work(0, self.n_shares)
        finally:
            wait(others)
        for future in others:
            future.result()

    def split(self, work: Callable[[int, int], object], n: int, cost: float = math.inf) -> None:
        if n <= 1:  # nothing to share
            work(0, n)
            return
        self.run(lambda s, n_shares: work(n * s // n_shares, n * (s + 1) // n_shares), cost)
