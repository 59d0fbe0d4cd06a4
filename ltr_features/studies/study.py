"""A study: what its kind supplies, and all that happens to it.

A kind is a class in one file of :mod:`ltr_features.studies.kinds`: it says which stages there are
and makes a report of what they left. Plan, reuse, locks, progress, files and manifest are the same
for all of them and are here.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from threading import BoundedSemaphore, Event
from typing import Any, ClassVar, TypeAlias

import pandas as pd
from pydantic import BaseModel

from ltr_features.studies.config import read_config
from ltr_features.studies.page import pages
from ltr_features.studies.page.ending import ENDING, rows_ending
from ltr_features.studies.page.outputs import write_outputs
from ltr_features.studies.page.pages import Document
from ltr_features.studies.page.report import Report
from ltr_features.studies.page.tables import write_csv
from ltr_features.studies.page.verdicts import verdict_sentence
from ltr_features.studies.progress import REPORT, Reporter
from ltr_features.studies.runner import Planned, StageRunner
from ltr_features.studies.stages import code_digest, versions
from ssi_models.parallel import thread_count

#: What a report was made from, as its last file.
MANIFEST = "manifest.json"
#: Makes stages that are not there yet, and yields all in the order of the plan.
Maker: TypeAlias = Callable[[Sequence[Planned]], Iterator[Planned]]


@dataclass(frozen=True, eq=False)
class Contents:
    """A report of tables: its files.

    Attributes:
        document: ``report.html``, ``tables.txt`` and ``verdict.txt``; its overview and the charts
            of its sections become ``figures/*.{svg,pdf}``.
        tables: become ``NAME.csv``. texts: further files by name.
    """

    document: Document
    tables: Mapping[str, pd.DataFrame]
    texts: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write all files into an existing folder."""
        page = self.document
        ending = rows_ending(page.verdict, page.means, page.measure)
        of_document = {"report.html": page.html(), "tables.txt": page.text(), ENDING: ending}
        for name, text in {**of_document, **self.texts}.items():
            pages.write(text, folder / name)
        (folder / "figures").mkdir()
        for name, drawing in page.drawings():
            drawing.write(folder / "figures" / name)
        for name, frame in self.tables.items():
            write_csv(frame, folder / f"{name}.csv")


class Study(ABC):
    """One study in an output folder; finished stages of earlier runs are reused.

    Args:
        config: what to do, as :meth:`read` gives it. out: folder for all outputs.
        data: folder that paths in the configuration are relative to.
        threads: worker threads; None for one per core. Results do not depend on it.
        memory: bytes; values of a feature table that take more lie in temporary files. By default
            all are held in memory. Results do not depend on it.
        reporter: where progress goes; silent by default.

    Attributes:
        described: what the file of a study of the kind says.
        has_table: whether studies of the kind make a feature table.
        threads_each: worker threads of the stages that run now, which share the cores.
        timed: files of the report that show clock times, which are others in every run.
    """

    described: ClassVar[type[BaseModel]]
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
        self._cores = BoundedSemaphore(thread_count(threads))
        self._stopping = Event()
        self.runner = StageRunner(out, reporter)
        self.folder = self.runner.stages.folder
        self.key, self.done = self.runner.key, self.runner.done
        self.identity = self.runner.stages.digests.identity

    @classmethod
    def read(cls, path: Path, data: Path) -> Any:
        """The configuration in a TOML file, checked as a whole.

        Raises:
            InputError: it cannot be used: all reasons at once.
        """
        return read_config(path, cls.described)

    @abstractmethod
    def stages(self) -> Sequence[Planned]:
        """All stages up to the report, in the order of running. Nothing is made.

        Raises:
            InputError: an input is missing.
        """

    @abstractmethod
    def report(self) -> Report | Contents:
        """What the finished stages say."""

    @property
    def headline(self) -> str:
        """What stands above the plan."""
        return str(self.config.title)

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration, as the report depends on it and the manifest tells it."""
        found: dict[str, Any] = self.config.model_dump(mode="json")
        return found

    @property
    def files(self) -> dict[str, Any]:
        """Identities of the files that were read, see :meth:`identity.Digests.identity`."""
        return {}

    @property
    def seeds(self) -> dict[str, int]:
        """Seeds of the random parts."""
        return {}

    def _done_here(self, stages: Sequence[Planned]) -> Iterator[Planned]:
        """Run stages in the order of the plan."""
        for _, group in groupby(stages, lambda s: s.together or s.name):
            yield from self._done_together(list(group))

    def _done_together(self, stages: Sequence[Planned]) -> Iterator[Planned]:
        """Run stages side by side, in the order of the plan: each on one of the cores, or on
        several where there are more cores than stages."""
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
        """Hold one of the cores while the block runs, which takes one thread. Stages side by side
        that work on such parts share the cores to the end: the last of them has all.

        The block is not begun if another stage has failed, or the user has interrupted the run.
        """
        with self._cores:
            if self._stopping.is_set():
                raise KeyboardInterrupt
            yield

    def part_done(self, done: int, total: int) -> None:
        """Show how much of a stage is done; the stage ends there if another one has failed, or the
        user has interrupted the run."""
        self.runner.reporter.part(done, total)
        if self._stopping.is_set():
            raise KeyboardInterrupt

    def said_after(self, stage: Planned) -> str:
        """What is worth telling as soon as a stage is done; "" where nothing is."""
        return ""

    def run(self, *, dry_run: bool = False, made_by: Maker | None = None) -> Path:
        """Run all stages that no earlier run has left, and write the report.

        Args:
            dry_run: print the plan; run and write nothing.
            made_by: makes the stages, and yields them in their order; this process by default.

        Returns:
            The folder of the report.

        Raises:
            InputError: an input or the output folder cannot be used.
        """
        stages = self.stages()
        if dry_run:
            print(f"{self.headline}\n{self.runner.plan_text(stages)}")
            return self.folder / REPORT
        with self.runner.running(stages, REPORT):
            contents = {}
            for stage in (made_by or self._done_here)(stages):
                contents[stage.name] = self.done(stage).content
                if said := self.said_after(stage):
                    self.runner.reporter.message(said)
            inputs = {"config": self.settings, "stages": contents, "files": self.files}
            planned = Planned(REPORT, inputs, self._write, "the report", REPORT)
            return self.done(planned).path

    def _write(self, folder: Path) -> None:
        report = self.report()
        if isinstance(report, Report):
            write_outputs(report, folder)
            verdict = verdict_sentence(report)
        else:
            report.write(folder)
            verdict = report.document.verdict
        self._write_manifest(folder, verdict)

    def _write_manifest(self, folder: Path, verdict: str) -> None:
        """Write what the report was made from, and the digests of the files that it is made of:
        enough to make the same bytes again. Files that show clock times are named apart."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        digests = {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }
        found = {
            "title": self.config.title,
            "verdict": verdict,
            "versions": versions(),
            "code": code_digest(),
            "machine": {
                "system": platform.system(),
                "release": platform.release(),
                "processor": platform.machine(),
                "cores": os.cpu_count(),
            },
            "seeds": self.seeds,
            "settings": self.settings,
            "inputs": self.files,
            "files": {name: digest for name, digest in digests.items() if name not in self.timed},
        }
        if self.timed:
            found["files with clock times"] = list(self.timed)
        text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
        pages.write(f"{text}\n", folder / MANIFEST)
