"""One thread for BLAS, whose sums depend on the number of its threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import OpenBLASController, threadpool_limits

_lock = Lock()
_limits: list[threadpool_limits] = []
_n_blocks = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while the block runs, for the same bits on any number of cores.

    The limit holds for the whole process: of blocks that run at the same time in several threads,
    the last one to end lifts it.
    """
    global _n_blocks
    with _lock:
        _n_blocks += 1
        _take_control()
        _limits.append(threadpool_limits(1, user_api="blas"))  # also of libraries loaded since
    try:
        yield
    finally:
        with _lock:
            _n_blocks -= 1
            while not _n_blocks and _limits:
                _take_control()
                _limits.pop().restore_original_limits()
                _take_control()


def _take_control() -> None:
    """Let the calling thread change the limit: from version 3.8 on, threadpoolctl ignores all
    threads but the first one that did."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)
