"""Warnings of libraries that mean nothing here, ignored while several threads work."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

_lock = Lock()


@contextmanager
def ignored(message: str = "", *, category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category whose text begins with ``message``, a regular expression, while
    the block runs, in all threads.

    Blocks in several threads may overlap: each removes only what it has added. Blocks of
    ``warnings.catch_warnings`` put back the filters of their beginning, those that another thread
    has removed since included.
    """
    text = re.compile(message, re.IGNORECASE)
    entry = ("ignore", text, category, None, 0)
    with _lock:
        began: Any = warnings.filters
        began.insert(0, entry)
    try:
        yield
    finally:
        with _lock:
            now: Any = warnings.filters  # a copy of the list, within a block of catch_warnings
            for filters in (began,) if now is began else (began, now):
                filters[:] = [kept for kept in filters if kept is not entry]
