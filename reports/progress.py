"""Progress on stderr: a live line on a terminal, nothing elsewhere unless asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Reporter:
    """Shows the running step, and a line for each finished stage.

    Args:
        verbose: print the lines even where stderr is not a terminal.
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.lines = verbose or self.console.is_terminal
        self._progress: Progress | None = None

    @contextmanager
    def running(self, total: int) -> Iterator[None]:
        """Show a bar of ``total`` steps while the block runs."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(
            *columns, console=self.console, transient=True, disable=not self.console.is_terminal
        ) as self._progress:
            self._task = self._progress.add_task("", total=total)
            yield
        self._progress = None

    def step(self, text: str) -> None:
        """What is being done now."""
        if self._progress is not None:
            self._progress.update(self._task, description=text)

    def advance(self, steps: int = 1) -> None:
        """Steps done."""
        if self._progress is not None:
            self._progress.advance(self._task, steps)

    @contextmanager
    def stage(self, name: str) -> Iterator[list[str]]:
        """Time a stage; the block appends to the list what became of it."""
        outcome: list[str] = []
        start = time.perf_counter()
        self.step(name)
        yield outcome
        if self.lines:
            seconds = time.perf_counter() - start
            self.console.print(f"{name:<32} {seconds:6.1f} s  {'; '.join(outcome)}", markup=False)
