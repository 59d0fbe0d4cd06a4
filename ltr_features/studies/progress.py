"""Progress of a run on stderr: a live line on a terminal, plain lines in logs. Durations of stages
are measured, kept in the output folder, and used to estimate those of later stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, get_ident
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from letor.files import atomic_path, saved_json, write_json
from ltr_base.names import counted, visible

#: File of an output folder with the clock times; no other file of a ranking run has any.
TIMES = "times.json"
#: Name, folder and kind of the last stage of a run.
REPORT = "report"


@dataclass(frozen=True)
class Work:
    """The work of a stage.

    Attributes:
        name: of the stage. kind: stages of one kind take time in proportion to their amount.
        amount: size of the work, in whatever unit the kind's duration grows with.
        seconds: what it took, once it is measured.
    """

    name: str
    kind: str
    amount: float = 1.0
    seconds: float = 0.0


class StageTimes:
    """Measured durations of stages.

    Args:
        path: file with the durations of earlier runs; read if it exists, written after each stage.
            None to keep nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._earlier = _read(path) if path is not None else {}
        self._now: dict[str, Work] = {}

    def add(self, work: Work, seconds: float) -> None:
        """Record how long a stage took."""
        self._now[work.name] = replace(work, seconds=seconds)
        if self._path is None:
            return
        every = {
            done.name: {"kind": done.kind, "amount": done.amount, "seconds": done.seconds}
            for done in (self._earlier | self._now).values()
        }
        with atomic_path(self._path) as partial:
            write_json(partial, every)

    @property
    def mean(self) -> float | None:
        """Mean seconds per finished stage of this run; None before the first."""
        seconds = [entry.seconds for entry in list(self._now.values())]
        return sum(seconds) / len(seconds) if seconds else None

    def expected(self, work: Work) -> float | None:
        """Estimated seconds of a stage: from its own duration in an earlier run, else from stages
        of its kind in this run, else from those in earlier runs; None if there are none."""
        same = self._earlier.get(work.name)
        if same is not None and same.kind == work.kind:
            return _scaled([same], work)
        for known in (self._now, self._earlier):
            alike = [entry for entry in list(known.values()) if entry.kind == work.kind]
            seconds = _scaled(alike, work)
            if seconds is not None:
                return seconds
        return None


def _scaled(measured: Sequence[Work], work: Work) -> float | None:
    amount = sum(entry.amount for entry in measured)
    if not amount:
        return None
    return sum(entry.seconds for entry in measured) * work.amount / amount


def _read(path: Path) -> dict[str, Work]:
    """The durations in a file; empty if it is missing or has some other content."""
    try:
        return {name: Work(name, **entry) for name, entry in saved_json(path).items()}
    except TypeError:
        return {}


#: The time left is shown once at most this share of it is a guess. The figure shown grows by at
#: most this share when a stage is done, and not at all while a stage runs.
_UNSURE = 0.25
#: Approximate share of a run's time that its report takes, if no earlier run has measured it, and
#: the most seconds: it draws about the same of a run of minutes and of hours.
_REPORT_SHARE, _REPORT_SECONDS = 0.1, 60.0
#: Seconds after which a log gets another line about a stage that is still running.
_HEARTBEAT = 60.0
#: Width in characters up to which the lines of stages are aligned by the longest name.
_WIDEST_NAME = 60


@dataclass
class _Stage:
    """A running stage; ``ticked``: times of the first and of the last tick, and the sum of the
    ticks after the first."""

    name: str
    start: float
    work: Work | None = None
    text: str = ""
    done: float = 0.0
    total: float = 0.0
    unit: str = ""
    ticked: tuple[float, float, float] | None = None


class Reporter:
    """Shows the running stage, its rate and the time left, and a line for each finished stage.

    Args:
        shown: whether to show progress. If stderr is not a terminal, only lines are printed: one
            per finished stage, and one a minute for the running stage; None leaves out those of the
            first minute, so that the logs of short runs are empty.
        console: where progress is printed; stderr by default.
        clock: returns seconds since an arbitrary moment.
    """

    def __init__(
        self,
        *,
        shown: bool | None = None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console = Console(stderr=True, highlight=False) if console is None else console
        self.shown = shown is not False
        self._clock = clock
        self._live = self.shown and self.console.is_terminal
        self._silent = _HEARTBEAT if shown is None and not self._live else 0.0  # seconds
        self._running: dict[int, _Stage] = {}  # by thread
        self._finishing = Lock()
        self._coming: dict[str, Work] = {}
        self._times = StageTimes()
        self._n_stages = self._n_done = self._width = 0
        self._start = self._printed = clock()
        self._figure: tuple[float, int] | None = None  # time left as shown, stages done by then

    @contextmanager
    def running(
        self, names: Sequence[str], to_do: Sequence[Work] = (), times: StageTimes | None = None
    ) -> Iterator[None]:
        """Show progress while the block runs.

        Args:
            names: of all stages. to_do: the work of those that no earlier run has finished.
            times: known durations; those of this run are added.
        """
        self._times = times or StageTimes()
        self._coming = {work.name: work for work in to_do}
        self._n_stages, self._n_done, self._figure = len(names), 0, None
        self._width = min(_WIDEST_NAME, max(map(len, names), default=0))
        self._start = self._printed = self._clock()
        if not self._live:
            yield
            return
        with Live(get_renderable=self._renderable, console=self.console, transient=True):
            yield

    @contextmanager
    def stage(self, name: str, title: str = "") -> Iterator[list[str]]:
        """Time a stage; the block appends its outcome to the list. All calls of the reporter from
        a thread are about the stage that it began last."""
        outcome: list[str] = []
        start = self._clock()
        work = self._coming.pop(name, None)
        around = self._running.get(get_ident())  # a stage that needs this one first
        self._running[get_ident()] = _Stage(title or name, start, work)
        try:
            yield outcome
        finally:
            n_running = len(self._running)
            if around is None:
                del self._running[get_ident()]
            else:
                self._running[get_ident()] = around
        seconds = self._clock() - start
        with self._finishing:
            self._n_done += 1
            # The duration of the rest of an interrupted stage says nothing about a whole one.
            if work is not None and "reused" not in outcome and "interrupted" not in outcome:
                self._times.add(work, seconds / n_running)  # its share, if stages run in parallel
            told = f"{title or name:<{self._width}} {seconds:7.1f} s  {'; '.join(outcome)}"
            self._say(told)

    @property
    def _stage(self) -> _Stage | None:
        """The stage of the calling thread, or else the one that has been running longest."""
        return self._running.get(get_ident()) or next(iter(self._running.values()), None)

    def step(self, text: str) -> None:
        """Show what the stage is doing now."""
        if self._stage is not None:
            self._stage.text = text
            self._beat()

    def part(self, done: float, total: float) -> None:
        """Show how much of the stage is done, in parts of about equal duration."""
        if self._stage is not None:
            self._stage.done, self._stage.total = done, total
            self._beat()

    def tick(self, unit: str) -> None:
        """Count one more unit (e.g. "epochs") as done; the rate shown is of these."""
        stage = self._stage
        if stage is None:
            return
        now = self._clock()
        if stage.ticked is None or unit != stage.unit:
            stage.unit, stage.ticked = unit, (now, now, 0.0)  # the first only starts the clock
        else:
            first, _, total = stage.ticked
            stage.ticked = first, now, total + 1
        self._beat()

    def epoch(self, model: str, event: Any) -> None:
        """Show that a model has finished an epoch or iteration, which may have a number.

        Args:
            model: name of the model, a dash and a digest of what it is made from.
        """
        self.step(f"epoch {getattr(event, 'number', '')} of {model.rpartition('-')[0] or model}")
        self.tick("epochs")

    def left(self) -> float | None:
        """Estimated seconds until all stages are done; None while more than a quarter of it would
        be a guess (the mean of the finished stages, for stages of a kind never measured)."""
        running, coming = list(self._running.values()), list(self._coming.values())
        rests = [self._rest(stage, len(running)) for stage in running]
        rests += [self._times.expected(work) for work in coming if work.kind != REPORT]
        report = [self._times.expected(work) for work in coming if work.kind == REPORT]
        known = sum(seconds for seconds in [*rests, *report] if seconds is not None)
        n_unknown, mean = rests.count(None), self._times.mean
        if n_unknown and mean is None:
            return None
        guessed = n_unknown * (mean or 0.0)
        if guessed > _UNSURE * (known + guessed):
            return None
        whole = self._clock() - self._start + known + guessed
        return known + guessed + (_report_seconds(whole) if None in report else 0.0)

    def line(self) -> str:
        """The running stage, the times and the rate, in one line."""
        parts = [_duration(self._clock() - self._start), self._time_left()]
        stage = self._stage
        if stage is None:
            return " · ".join(filter(None, [f"{self._n_done}/{self._n_stages}", *parts]))
        if stage.total:
            parts.append(f"{stage.done:,.0f} of {stage.total:,.0f}")
        head = f"{min(self._n_done + 1, self._n_stages)}/{self._n_stages} {stage.name}"
        if len(self._running) > 1:
            head += f" and {len(self._running) - 1} more"
        return " · ".join(filter(None, [head, *parts, _rate(stage), stage.text]))

    def _rest(self, stage: _Stage, n_running: int) -> float | None:
        """Seconds that a running stage adds to the time left; None if nothing is known about it.
        For a stage that runs in parallel with others it is a share, as are measured times."""
        if stage.work is None:
            return 0.0
        elapsed = (self._clock() - stage.start) / n_running
        if 0 < stage.done <= stage.total:
            return elapsed * (stage.total - stage.done) / stage.done
        expected = self._times.expected(stage.work)
        if expected is None and stage.work.kind == REPORT:
            expected = _report_seconds(stage.start - self._start)
        return None if expected is None else max(expected - elapsed, 0.0)

    def _time_left(self) -> str:
        left = self.left()
        if left is None or left < 0.5:
            return ""
        figure = left
        if self._figure is not None:
            last, n_done = self._figure
            figure = min(left, last * (1 + _UNSURE) if self._n_done > n_done else last)
        self._figure = figure, self._n_done
        much = "about" if left <= figure * (1 + _UNSURE) else "more than"
        return f"{much} {_duration(figure)} left"

    def _renderable(self) -> Text:
        return Text(visible(self.line()), no_wrap=True, overflow="ellipsis")

    def _beat(self) -> None:
        if self.shown and not self._live and self._clock() - self._printed >= _HEARTBEAT:
            self._print(self.line())

    def _say(self, text: str) -> None:
        if self.shown and self._clock() - self._start >= self._silent:
            total = str(self._n_stages)
            number = f"{self._n_done:{len(total)}}/{total} " if self._n_stages else ""
            left = "" if self._live else self._time_left()
            self._print(number + text + (f"; {left}" if left else ""))

    def message(self, text: str) -> None:
        """Show a message to the user, unless nothing is shown."""
        if self.shown:
            self._print(text)

    def _print(self, text: str) -> None:
        self._printed = self._clock()
        self.console.print(visible(text), markup=False, emoji=False, soft_wrap=True)


def _report_seconds(run: float) -> float:
    """What the report of a run of so many seconds may take."""
    return min(_REPORT_SHARE * run, _REPORT_SECONDS)


def _rate(stage: _Stage) -> str:
    first, last, total = stage.ticked or (0.0, 0.0, 0.0)
    return f"{total / (last - first):,.3g} {stage.unit}/s" if last > first else ""


def duration_text(seconds: float) -> str:
    """A rough duration in words: "3 minutes"."""
    units = (("day", 86_400), ("hour", 3600), ("minute", 60))
    unit, size = next((u for u in units if seconds >= 2 * u[1]), units[-1])
    return counted(max(1, round(seconds / size)), unit)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
