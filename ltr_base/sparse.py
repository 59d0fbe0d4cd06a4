"""The names of scipy.sparse, which is imported when the first of them is asked for: a listing of
models or columns, which handles no matrix, starts a quarter sooner."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("scipy.sparse"), name)
