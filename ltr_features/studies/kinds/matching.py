"""Run a matching experiment: a stage per task and per trained row, then tables and figures."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ltr_features.studies.config import slug
from ltr_features.studies.identity import size_text
from ltr_features.studies.kinds.matching_config import (
    CurvesConfig,
    MatchingConfig,
    RowConfig,
    TableConfig,
    TaskConfig,
    load_matching,
)
from ltr_features.studies.kinds.matching_curves import training_curve
from ltr_features.studies.kinds.matching_page import write_page
from ltr_features.studies.kinds.matching_rows import make_row
from ltr_features.studies.kinds.matching_tables import (
    Results,
    RowFit,
    RowResult,
    csv_rows,
    table_text,
    time_rows,
)
from ltr_features.studies.kinds.matching_tasks import Task, make_task, task_files, unseen_documents
from ltr_features.studies.manifest import write_manifest
from ltr_features.studies.progress import Reporter
from ltr_features.studies.runner import Planned, StageRunner
from ltr_features.studies.stages import STUDIES

#: What the numbers of a row come from; a new layout of tables trains nothing again.
_KIND = f"{STUDIES}.kinds.matching"
_CODE = (
    "ssi_models",
    "ltr_features.text.analyzer",
    "ltr_features.text.term_counts",
    "ltr_features.kernels.text",
    f"{_KIND}_tasks",
    f"{_KIND}_rows",
    f"{_KIND}_evaluation",
)


def run_matching(
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    threads: int | None = None,
    reporter: Reporter | None = None,
    dry_run: bool = False,
) -> Path:
    """Run the experiment of a TOML file of the kind "matching".

    Every model is trained once and kept as a small folder; a run that was killed goes on where it
    stopped, and rows of several tables that are equal are trained once.

    Args:
        path: the file. data: folder that its tasks' folders are in.
        out: folder for all outputs.
        threads: worker threads; None for one per core. Only the seconds depend on it, and results
            where ``max_seconds`` limits training.
        reporter: where progress goes. dry_run: print the plan, run nothing.

    Returns:
        The folder with ``report.html``, ``tables.txt``, ``rows.csv``, ``times.csv`` (seconds of
        training) and ``manifest.json``.

    Raises:
        InputError: the file, the data or the output folder cannot be used.
    """
    config = load_matching(path)
    for task in config.tasks.values():
        task_files(task, Path(data))
    runner = StageRunner(out, reporter)
    study = _Study(config, Path(data), runner, threads)
    if dry_run:
        print(f"{config.title}\n{runner.plan_text(study.plan())}")
        return Path(out) / "report"
    with runner.running(study.plan(), "report"):
        return study.run()


@dataclass
class _Study:
    config: MatchingConfig
    data: Path
    runner: StageRunner
    threads: int | None

    def __post_init__(self) -> None:
        self._loaded: tuple[str, Task] | None = None
        self._tasks: dict[str, Planned] = {}
        # Task by task: only one is held in memory.
        rows = [(t, row) for t in self.config.tables for row in t.rows if row.model is not None]
        self._rows = sorted(rows, key=lambda item: item[1].task or item[0].task)

    def plan(self) -> list[Planned]:
        """All stages up to the report."""
        planned = []
        for table, row in self._rows:
            task = row.task or table.task
            planned += [self._task_stage(task), *self._row_stages(task, row)]
        planned += [stage for _, stage in self._curve_stages()]
        planned += [self._task_stage(name) for name in self.config.tasks]
        return list({stage.name: stage for stage in planned}.values())

    def run(self) -> Path:
        for stage in self.plan():
            self.runner.done(stage)
        results = {(table.name, row.label): self._row(table, row) for table, row in self._rows}
        curves = {}
        for key, stage in self._curve_stages():
            path = self.runner.done(stage).path / "curve.json"
            curves[key] = json.loads(path.read_text(encoding="utf-8"))
        facts = {name: self._facts(name) for name in self.config.tasks}
        return self._report(Results(self.config, results, curves, facts))

    def _task(self, name: str) -> Task:
        """The task, read once."""
        found = self.runner.done(self._task_stage(name))
        if self._loaded is None or self._loaded[0] != found.key:
            self._loaded = (found.key, Task.load(found.path))
        return self._loaded[1]

    def _task_inputs(self, config: TaskConfig) -> dict[str, Any]:
        identity = self.runner.stages.digests.identity
        files = [identity(path) for path in task_files(config, self.data)]
        return {"task": config.model_dump(mode="json"), "files": files}

    def _task_stage(self, name: str) -> Planned:
        if name not in self._tasks:
            config = self.config.tasks[name]

            def make(folder: Path) -> None:
                folder.mkdir(parents=True, exist_ok=True)
                make_task(config, self.data, threads=self.threads).save(folder)

            inputs = self._task_inputs(config)
            n_bytes = sum(file["size"] for file in inputs["files"])
            size = f"{size_text(n_bytes)} to read"
            self._tasks[name] = Planned(
                f"tasks/{slug(name)}", inputs, make, size, "task", n_bytes, code=_CODE
            )
        return self._tasks[name]

    def _facts(self, name: str) -> dict[str, float]:
        path = self.runner.done(self._task_stage(name)).path / "facts.json"
        facts: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
        return facts

    def _row_stages(self, task: str, row: RowConfig) -> list[Planned]:
        """A stage for each fit."""
        return [self._row_stage(task, row, fit) for fit in range(self.config.fits_of(row))]

    def _row_stage(self, task: str, row: RowConfig, fit: int) -> Planned:
        trials = self.config.trials(row, fit)
        inputs = {
            "task": self.runner.key(self._task_stage(task)),
            "model": row.model,
            "trials": trials,
            "choose_on": row.choose_on,
        }
        told = json.dumps([row.model, trials, row.choose_on], sort_keys=True)
        digest = hashlib.sha256(told.encode())
        name = f"models/{slug(task)}/{row.model}-{digest.hexdigest()[:10]}"

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            data, inner = self._task(task), None
            if row.choose_on == "documents":
                inner = unseen_documents(data, self.config.tasks[task])
            make_row(
                data, str(row.model), trials, folder,
                inner=inner, threads=self.threads, reporter=self.runner.reporter,
            )  # fmt: skip

        return Planned(
            name, inputs, make, f"{row.model}, {len(trials)} trained", f"{task}: {row.model}",
            len(trials), title=f"{task}: {row.label}{f', fit {fit + 1}' if fit else ''}",
            code=_CODE,
        )  # fmt: skip

    def _row(self, table: TableConfig, row: RowConfig) -> RowResult:
        fits = []
        for stage in self._row_stages(row.task or table.task, row):
            path = self.runner.done(stage).path
            result = json.loads((path / "result.json").read_text(encoding="utf-8"))
            times = json.loads((path / "times.json").read_text(encoding="utf-8"))
            fits.append(RowFit(result, times["trials"], pd.read_csv(path / "per_query.csv")))
        return RowResult(fits)

    def _curve_stages(self) -> list[tuple[tuple[float, int], Planned]]:
        curves = self.config.curves
        if curves is None:
            return []
        return [
            ((share, rank), self._curve_stage(curves, share, rank))
            for share in curves.shares
            for rank in curves.ranks
        ]

    def _curve_stage(self, curves: CurvesConfig, share: float, rank: int) -> Planned:
        config = self.config.tasks[curves.task].model_copy(update={"use_share": share})
        probe = RowConfig(label="curve", model=curves.model, params=curves.params, choose={})
        params = self.config.trials(probe)[0] | {"rank": rank}
        inputs = self._task_inputs(config) | {
            "model": curves.model,
            "params": params,
            "epochs": curves.epochs,
            "n_queries": curves.n_queries,
        }

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            task = make_task(config, self.data, threads=self.threads)
            points = training_curve(
                task, curves.model, params, curves.epochs, curves.n_queries, threads=self.threads
            )
            (folder / "curve.json").write_text(json.dumps(points, indent=1), encoding="utf-8")

        return Planned(
            f"curves/{share:g}-{rank}", inputs, make, f"{curves.epochs} epochs", "curve", share,
            code=(*_CODE, f"{_KIND}_curves"),
        )  # fmt: skip

    def _report(self, results: Results) -> Path:
        rows = {
            " ".join(key): [[fit.result, fit.seconds] for fit in row.fits]
            for key, row in results.rows.items()
        }
        curves = [[*key, points] for key, points in results.curves.items()]
        shown = json.dumps([rows, curves, results.facts], sort_keys=True)
        settings = self.config.model_dump(mode="json")
        files = {name: self._task_stage(name).inputs["files"] for name in self.config.tasks}
        inputs = {
            "config": settings,
            "results": hashlib.sha256(shown.encode()).hexdigest(),
            "files": files,
        }

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            text = "\n\n".join(table_text(results, table) for table in self.config.tables)
            text = f"{self.config.title}\n\n{text}\n"
            (folder / "tables.txt").write_text(text, encoding="utf-8")
            pd.DataFrame(csv_rows(results)).to_csv(folder / "rows.csv", index=False)
            pd.DataFrame(time_rows(results)).to_csv(folder / "times.csv", index=False)
            write_page(results, folder / "report.html")
            write_manifest(
                folder,
                title=self.config.title,
                settings=settings,
                inputs=files,
                seeds={name: task.seed for name, task in self.config.tasks.items()},
                timed=("report.html", "tables.txt", "times.csv"),
            )

        stage = Planned("report", inputs, make, "the report", "report", code=(STUDIES,))
        return self.runner.done(stage).path
