"""A progress bar for work of known steps, in notebooks and on terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def tracked(items: Iterable[T], total: int, what: str, shown: bool | None) -> Iterator[T]:
    """The items, with a bar that says how many are done and how long the rest will take.

    Args:
        total: how many there are.
        what: stands before the bar.
        shown: whether to show it; None for notebooks only.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not (console.is_jupyter if shown is None else shown)
    yield from track(items, what, total, console=console, disable=hidden)
