"""The base class of studies.

Each kind of study is a class in a file of :mod:`ltr_features.studies.kinds`: it defines the stages
and makes a report of their outputs. Planning, reuse, locks, progress, files and the manifest are
the same for all kinds and are implemented here.
"""

from __future__ import annotations

import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from threading import BoundedSemaphore, Event
from typing import Any, ClassVar, TypeAlias

import pandas as pd

from letor.digests import file_digest
from letor.files import read_json, write_json
from ltr_base.machine import processor_name
from ltr_base.names import visible
from ltr_base.parallel import thread_count
from ltr_base.source_code import is_ours
from ltr_features.studies.config import Section, read_config
from ltr_features.studies.page.ending import ENDING, rows_ending
from ltr_features.studies.page.outputs import write_files, write_outputs
from ltr_features.studies.page.pages import Document
from ltr_features.studies.page.report import Report
from ltr_features.studies.page.tables import write_csv
from ltr_features.studies.page.verdicts import verdict_sentence
from ltr_features.studies.progress import REPORT, Reporter
from ltr_features.studies.runner import StageRunner
from ltr_features.studies.stages import PACKAGES, Planned, code_digest, versions

#: File that records what a report was made from; written last.
MANIFEST = "manifest.json"
#: Makes the stages that do not exist yet, and yields all stages in the order of the plan.
Maker: TypeAlias = Callable[[Sequence[Planned]], Iterator[Planned]]


@dataclass(frozen=True, eq=False)
class Contents:
    """The files of a report that consists of tables.

    Attributes:
        document: becomes ``report.html``, ``tables.txt``, ``tables.tex`` and ``verdict.txt``; its
            overview and the charts of its sections become ``figures/*.{svg,pdf}``.
        tables: become ``NAME.csv``. texts: further text files by name.
    """

    document: Document
    tables: Mapping[str, pd.DataFrame]
    texts: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write all files into an existing folder."""
        page = self.document
        ending = rows_ending(page.verdict, page.means, page.measure, page.remarks)
        page_files = {
            "report.html": page.html(),
            "tables.txt": page.text(),
            "tables.tex": page.latex(),
            ENDING: ending,
        }
        write_files(folder, {**page_files, **self.texts}, page.drawings())
        for name, frame in self.tables.items():
            write_csv(frame, folder / f"{name}.csv")


class Study(ABC):
    """One study in an output folder; finished stages of earlier runs are reused.

    Args:
        config: the configuration, as returned by :meth:`read`. out: folder for all outputs.
        data: folder that paths in the configuration are relative to.
        threads: worker threads; None for one per core. Results do not depend on it.
        memory: bytes; a feature table whose values take more is held in temporary files. By
            default everything is held in memory. Results do not depend on it.
        reporter: where progress is shown; silent by default.

    Attributes:
        described: type of the kind's configuration.
        has_table: whether studies of the kind make a feature table.
        threads_each: worker threads of each of the running stages, which share the cores.
        timed: files of the report that show clock times, and so differ between runs.
    """

    described: ClassVar[type[Section]]
    has_table: ClassVar[bool] = False
    timed: tuple[str, ...] = ()

    def __init__(
        self,
        config: Any,
        out: str | os.PathLike[str],
        data: str | os.PathLike[str] = ".",
        *,
        threads: int | None = None,
        memory: int | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.config, self.data, self.threads, self.memory = config, Path(data), threads, memory
        self.threads_each = threads
        cores = thread_count(threads)
        self._cores = BoundedSemaphore(cores)
        self._stopping = Event()
        self.runner = StageRunner(out, reporter, cores)
        self.reporter, self.done = self.runner.reporter, self.runner.done
        self.folder, self.digests = self.runner.stages.folder, self.runner.stages.digests
        self.identity = self.digests.identity

    @classmethod
    def read(cls, path: Path, data: Path) -> Any:
        """Read the configuration from a TOML file and check it as a whole.

        Raises:
            InputError: it cannot be used; the message gives all reasons at once.
        """
        return read_config(path, cls.described)

    @abstractmethod
    def stages(self) -> Sequence[Planned]:
        """Plan all stages up to the report, in running order; nothing is made.

        Raises:
            InputError: an input is missing.
        """

    @abstractmethod
    def report(self) -> Report | Contents:
        """Make the report from the finished stages."""

    @property
    def headline(self) -> str:
        """Heading of the plan."""
        return str(self.config.title)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the report depends on and the manifest records."""
        return self.config.model_dump(mode="json")

    @property
    def files(self) -> dict[str, Any]:
        """Identities of the input files, see :meth:`identity.Digests.identity`."""
        return {}

    @property
    def seeds(self) -> dict[str, int]:
        """Seeds of the random parts."""
        return {}

    def _done_here(self, stages: Sequence[Planned]) -> Iterator[Planned]:
        """Run stages in this process, in the order of the plan."""
        for _, group in groupby(stages, lambda s: s.together or s.name):
            yield from self._done_together(list(group))

    def _done_together(self, stages: Sequence[Planned]) -> Iterator[Planned]:
        """Run stages in parallel and yield them in the order of the plan: each runs on one core,
        or on several if there are more cores than stages."""
        cores = thread_count(self.threads)
        side_by_side = min(cores, len(stages))
        self.threads_each = cores // side_by_side
        if side_by_side == 1:
            for stage in stages:
                self.done(stage)
                yield stage
            return
        with ThreadPoolExecutor(side_by_side) as pool:
            running = [pool.submit(self.done, stage) for stage in stages]
            try:
                for stage, future in zip(stages, running, strict=True):
                    future.result()
                    yield stage
            except BaseException:
                self._stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    @contextmanager
    def one_core(self) -> Iterator[None]:
        """Hold one of the cores while a single-threaded block runs. Parallel stages that split
        their work into such blocks share all cores, so the last one running can use all of them.

        The block does not start if another stage has failed or the user has interrupted the run.
        """
        with self._cores:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            yield

    def part_done(self, done: int, total: int) -> None:
        """Show how much of a stage is done; abort the stage if another one has failed or the user
        has interrupted the run."""
        self.reporter.part(done, total)
        if self._stopping.is_set():
            raise KeyboardInterrupt

    def message_after(self, stage: Planned) -> str:
        """Message to show as soon as a stage is done; "" if there is none.

        Raises:
            InputError: later stages, which may take long, cannot use what the stage made.
        """
        return ""

    def run(self, *, dry_run: bool = False, made_by: Maker | None = None) -> Path:
        """Run all stages that no earlier run has finished, and write the report.

        Args:
            dry_run: only print the plan; run and write nothing.
            made_by: makes the stages and yields them in order; by default this process does.

        Returns:
            The folder of the report.

        Raises:
            InputError: an input or the output folder cannot be used.
        """
        stages = self.stages()
        if dry_run:
            print(visible(f"{self.headline}\n{self.runner.plan_text(stages)}"))
            return self.folder / REPORT
        with self.runner.running(stages, REPORT):
            self._tell_other_report()
            contents = {}
            for stage in (made_by or self._done_here)(stages):
                contents[stage.name] = self.done(stage).content
                if message := self.message_after(stage):
                    self.reporter.message(message)
            inputs = {
                "config": self.settings,
                "order": list(_orders(self.settings)),
                "stages": contents,
                "files": self.files,
            }
            others = {name for stage in stages for name in stage.code if not is_ours(name)}
            planned = Planned(
                REPORT, inputs, partial(self._write, others=sorted(others)), "the report", REPORT,
                code=(*PACKAGES, *sorted(others)),
            )  # fmt: skip
            return self.done(planned).path

    def _tell_other_report(self) -> None:
        """Say so if this run will replace the report of another experiment."""
        with suppress(OSError, ValueError, KeyError, TypeError):  # no report, or a damaged one
            title = read_json(self.folder / REPORT / MANIFEST)["title"]
            if title != self.config.title:
                self.reporter.message(f"the report there, on {title!r}, will be replaced")

    def _write(self, folder: Path, *, others: Sequence[str]) -> None:
        report = self.report()
        if isinstance(report, Report):
            write_outputs(report, folder)
            verdict = verdict_sentence(report)
        else:
            report.write(folder)
            verdict = report.document.verdict
        self._write_manifest(folder, verdict, others)

    def _write_manifest(self, folder: Path, verdict: str, others: Sequence[str]) -> None:
        """Write what the report was made from, and the digests of its files: enough to reproduce
        it byte for byte. Files that show clock times are listed separately, without digests.

        Args:
            others: the packages of plug-ins that stages use.
        """
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests = {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
        found = {
            "title": self.config.title,
            "verdict": verdict,
            "versions": versions(),
            "code": code_digest(),
            "machine": {
                "system": platform.system(),
                "release": platform.release(),
                "processor": processor_name(),
                "cores": os.cpu_count(),
            },
            "seeds": self.seeds,
            "settings": self.settings,
            "inputs": self.files,
            "files": {name: digest for name, digest in digests.items() if name not in self.timed},
        }
        if others:
            found["plug-ins"] = {name: code_digest((name,)) for name in others}
        if self.timed:
            found["files with clock times"] = list(self.timed)
        write_json(folder / MANIFEST, found, default=str)


def _orders(settings: Any) -> Iterator[list[str]]:
    """The keys of each table within settings, whose order reports have and digests do not."""
    if isinstance(settings, Mapping):
        yield list(settings)
        settings = list(settings.values())
    if isinstance(settings, list | tuple):
        for part in settings:
            yield from _orders(part)
