"""A progress bar for work with a known number of steps, in notebooks and on terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TypeVar

T = TypeVar("T")


def tracked(items: Iterable[T], total: int, what: str, shown: bool | None) -> Iterator[T]:
    """Yield the items, with a bar that shows how many are done and how long the rest will take.

    Args:
        items: the items. total: their number.
        what: label in front of the bar.
        shown: whether to show the bar; None for notebooks only.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    hidden = not (console.is_jupyter if shown is None else shown)
    if console.is_jupyter and find_spec("ipywidgets") is None:
        # rich would warn at each step, and draw nothing.
        console = Console(stderr=True, force_jupyter=False, force_terminal=True, width=80)
    yield from track(items, what, total, console=console, disable=hidden)
