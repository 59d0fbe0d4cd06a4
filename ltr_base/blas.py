"""One thread for BLAS, whose sums depend on the number of its threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = Lock()
_limit: Any = None
_n_blocks = 0
if hasattr(os, "register_at_fork"):  # a copy of the lock that another thread holds stays locked
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while the block runs, for the same bits on any number of cores.

    The limit holds for the whole process: of blocks that run at the same time in several threads,
    the first one to begin sets it, and the last one to end lifts it.
    """
    global _limit, _n_blocks
    with _lock:
        if _limit is None:
            blas = _blas()
            _take_control()
            _limit = blas.limit(limits=1)
        _n_blocks += 1
    try:
        yield
    finally:
        with _lock:
            _n_blocks -= 1
            if _limit is not None and not _n_blocks:
                _take_control()
                _limit.restore_original_limits()
                _take_control()
                _limit = None


@cache
def _blas() -> ThreadpoolController:
    """The BLAS of NumPy and that of SciPy. To find them takes some milliseconds, which each model
    of each query of a service would wait for."""
    import scipy.linalg  # noqa: F401  so that its BLAS is loaded

    return ThreadpoolController().select(user_api="blas")


def _take_control() -> None:
    """Let the calling thread change the limit: from version 3.8 on, threadpoolctl ignores all
    threads but the first one that did."""
    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)
