"""One thread for BLAS, whose sums depend on the number of its threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import OpenBLASController, ThreadpoolController

_lock = Lock()
_limits: list[Any] = []
_n_blocks = 0
if hasattr(os, "register_at_fork"):  # a copy of the lock that another thread holds stays locked
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


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
        blas = ThreadpoolController().select(user_api="blas")
        # Blocks that overlap without an end add no limits but those of libraries loaded since.
        if any(library.num_threads != 1 for library in blas.lib_controllers):
            _limits.append(blas.limit(limits=1))
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
