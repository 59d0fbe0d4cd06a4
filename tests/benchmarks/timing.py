"""Seconds of calls, and peers that may not be installed, for the benchmarks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from time import perf_counter, process_time
from types import ModuleType
from typing import Any


def timed(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """(Seconds, what the call returned)."""
    start = perf_counter()
    found = work(*arguments, **options)
    return perf_counter() - start, found


def seconds_of(work: Callable[..., Any], *arguments: Any, **options: Any) -> float:
    """Seconds of one call."""
    return timed(work, *arguments, **options)[0]


def repeated(runs: int, work: Callable[..., Any], *arguments: Any, **options: Any) -> list[float]:
    """Seconds of each of so many calls, one after the other."""
    return [seconds_of(work, *arguments, **options) for _ in range(runs)]


def on_two_clocks(runs: int, work: Callable[[], Any]) -> tuple[list[float], list[float]]:
    """(Wall-clock, processor) seconds of each of so many calls; the latter say more on a machine
    with other work."""
    walls, processors = [], []
    for _ in range(runs):
        start = process_time()
        walls.append(seconds_of(work))
        processors.append(process_time() - start)
    return walls, processors


class NotInstalledError(SystemExit):
    """A peer that is not installed: ends a benchmark that does not go on without it."""


def peer(name: str, package: str | None = None) -> ModuleType:
    """A library to compare with.

    Args:
        name: of the module. package: what to install, where its name is another.

    Raises:
        NotInstalledError: it cannot be imported.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        wanted = package or name.partition(".")[0]
        raise NotInstalledError(f"to compare with {name}: pip install {wanted}") from error
