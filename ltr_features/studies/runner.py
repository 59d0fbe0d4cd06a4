"""Run planned stages and show their progress."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from letor.errors import InputError
from ltr_base.names import counted, listed
from ltr_features.studies.identity import size_of, size_text
from ltr_features.studies.page.tables import aligned
from ltr_features.studies.progress import TIMES, Reporter, StageTimes, Work, duration_text
from ltr_features.studies.stages import NEW, Planned, StageResult, Stages


class StageRunner:
    """Runs each stage of one output folder once.

    Args:
        folder: the output folder. reporter: where progress is shown; silent by default.
        cores: on which stages run side by side.
    """

    def __init__(
        self, folder: str | os.PathLike[str], reporter: Reporter | None = None, cores: int = 1
    ) -> None:
        self.stages, self.cores = Stages(folder), cores
        self.reporter = reporter or Reporter(shown=False)
        self._done: dict[str, StageResult] = {}

    @contextmanager
    def running(self, planned: Sequence[Planned], *later: str) -> Iterator[None]:
        """Hold the output folder and show progress while the block runs the stages.

        Args:
            later: names of stages that cannot be planned before others are done.

        Raises:
            InputError: the folder cannot be used, or has outputs of those names that were not
                made by this program.
        """
        names = [*(stage.name for stage in planned), *later]
        with self.stages.claimed() as message:
            self.stages.check(names)
            if message:
                self.reporter.message(message)
            found = {s.name: self.stages.look(s) for s in planned}
            replaced = [
                f"{name} ({result.reason})"
                for name, result in found.items()
                if not result.reused and result.path.exists()
            ]
            if replaced:
                self.reporter.message(f"outdated and made again: {listed(replaced, 10)}")
            if others := self.stages.others(names):
                self.reporter.message(
                    f"of an earlier run, not of this experiment: {listed(others, 10)}; remove what "
                    "you do not need"
                )
            missing = [stage for stage in planned if not found[stage.name].reused]
            to_do = [Work(stage.name, stage.kind, stage.amount) for stage in missing]
            to_do += [Work(name, name) for name in later]
            if told := self._time_text(missing):
                self.reporter.message(f"{counted(len(to_do), 'stage')} to do.{told}")
            times = StageTimes(self.stages.folder / TIMES)
            with self.reporter.running(names, to_do, times):
                yield

    def done(self, stage: Planned) -> StageResult:
        """The stage's result; the stage runs unless this run or an earlier one has made it.

        Raises:
            InputError: it cannot be made; the message begins with the stage.
        """
        if stage.name not in self._done:
            with self.reporter.stage(stage.name, stage.title) as outcome:
                try:
                    result = self.stages.run(stage)
                except InputError as error:
                    raise InputError(f"{stage.title or stage.name}: {error}") from error
                outcome.append("reused" if result.reused else "made")
                if result.reason not in ("", NEW):
                    outcome.append(result.reason)
            self._done[stage.name] = result
        return self._done[stage.name]

    def plan_text(self, planned: Iterable[Planned]) -> str:
        """A table of all stages: how much each has to do, whether an earlier run made it, and how
        long all take that are to be made, or that this is unknown."""
        rows, to_do = [], []
        for stage in planned:
            found = self.stages.look(stage)
            if not found.reused:
                to_do.append(stage)
            on_disk = size_text(size_of(found.path)) if found.path.is_dir() else ""
            state = "cached" if found.reused else f"to do: {found.reason}"
            rows.append([stage.title or stage.name, stage.size, state, on_disk])
        table = aligned(["Stage", "Size", "State", "On disk"], rows, left=3)
        done, time = len(rows) - len(to_do), self._time_text(to_do)
        if to_do and not time:
            time = " How long they take is not known until a run here has made such stages."
        return f"{table}\n{len(rows)} stages, {done} cached, {len(to_do)} to do.{time}"

    def _time_text(self, to_do: Sequence[Planned]) -> str:
        """A sentence on how long stages take, by earlier runs or by what is known of their kinds;
        empty if some are unknown."""
        times = StageTimes(self.stages.folder / TIMES)
        measured = [times.expected(Work(s.name, s.kind, s.amount)) for s in to_do]
        usual = [s.seconds / self.cores for s in to_do]
        if not all(m or u for m, u in zip(measured, usual, strict=True)) or not to_do:
            return ""
        expected = [u if m is None else m for m, u in zip(measured, usual, strict=True)]
        whole = duration_text(sum(expected))
        first = next((i for i, stage in enumerate(to_do, start=1) if stage.first_result), 0)
        early = f", the first result about {duration_text(sum(expected[:first]))}" if first else ""
        if None not in measured:
            return f" By the times of earlier runs they take about {whole}{early}."
        return (
            f" They may take about {whole} on {counted(self.cores, 'core')}{early}, or a tenth or "
            "three times that: a run tells more when its first fold is done."
        )
