"""A progress bar for work of known steps, in notebooks and on terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def tracked(items: Sequence[T], what: str, shown: bool | None) -> Iterator[T]:
    """The items, with a bar that says how many are done and how long the rest will take.

    Args:
        what: stands before the bar.
        shown: whether to show it; None for notebooks only.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not (console.is_jupyter if shown is None else shown)
    yield from track(items, what, console=console, disable=hidden)
