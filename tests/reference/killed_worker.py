"""A worker of a Dask cluster that is killed while it works."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import sleep
from typing import Any


@contextmanager
def killed_worker(cluster: Any, when: Callable[[], object]) -> Iterator[None]:
    """One worker is killed by signal 9 as soon as ``when()`` is true, while the block runs; the
    block must not end before."""
    cluster.wait_for_workers(len(cluster.workers), timeout=60)  # Dask gives up one that dies early
    victim = next(iter(cluster.workers.values())).pid
    over, killed = Event(), Event()

    def kill() -> None:
        while not over.is_set():
            with suppress(FileNotFoundError):  # what it looks at is being renamed or deleted
                if when():
                    os.kill(victim, signal.SIGKILL)
                    killed.set()
                    return
            sleep(0.001)

    killer = Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()
    assert killed.is_set(), "the work was done before a worker could be killed"
