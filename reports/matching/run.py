"""Run a matching experiment: a stage per task and per trained row, then tables and figures."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from letor.errors import InputError
from reports.config import slug
from reports.matching.config import (
    CurvesConfig,
    MatchingConfig,
    RowConfig,
    TaskConfig,
    load_matching,
)
from reports.matching.curves import training_curve
from reports.matching.page import write_page
from reports.matching.tables import Results, RowResult, csv_rows, table_text
from reports.matching.tasks import Task, make_task, task_files, unseen_documents
from reports.matching.training import make_row
from reports.progress import Reporter
from reports.stages import StageResult, Stages

#: What the numbers of a row come from; a new layout of tables trains nothing again.
_CODE = (
    "ssi_models",
    "ltr_features.text",
    "ltr_features.term_counts",
    "ltr_features.kernels.text",
    "reports.matching.tasks",
    "reports.matching.training",
    "reports.matching.evaluation",
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
        The folder with ``report.html``, ``tables.txt`` and ``rows.csv``.

    Raises:
        InputError: the file, the data or the output folder cannot be used.
    """
    config = load_matching(path)
    for task in config.tasks.values():
        task_files(task, Path(data))
    if dry_run:
        print(plan_text(config))
        return Path(out) / "report"
    runner = _Runner(config, Path(data), Stages(out), threads, reporter or Reporter())
    runner.stages.check(["report"])
    return runner.run()


def plan_text(config: MatchingConfig) -> str:
    """The rows of every table, and how many models are trained for each."""
    lines = [config.title]
    for table in config.tables:
        lines.append(f"{table.name}: {table.title} (task {table.task})")
        for row in table.rows:
            n = len(config.trials(row))
            what = f"{row.model}, {n} trained" if n else "the paper's numbers only"
            lines.append(f"  {row.label}: {what}")
    return "\n".join(lines)


@dataclass
class _Runner:
    config: MatchingConfig
    data: Path
    stages: Stages
    threads: int | None
    reporter: Reporter

    def run(self) -> Path:
        rows = [
            (table, row)
            for table in self.config.tables
            for row in table.rows
            if row.model is not None
        ]
        self._loaded: tuple[str, Task] | None = None
        self._tasks: dict[str, StageResult] = {}
        with self.reporter.running(len(rows) + 1):
            results: dict[tuple[str, str], RowResult] = {}
            # Task by task: only one is held in memory.
            for table, row in sorted(rows, key=lambda item: item[1].task or item[0].task):
                task = row.task or table.task
                results[table.name, row.label] = self._row(task, row)
                self.reporter.advance()
            curves = self._curves(self.config.curves) if self.config.curves is not None else {}
            facts = {name: self._facts(name) for name in self.config.tasks}
            self.reporter.advance()
        return self._report(Results(self.config, results, curves, facts))

    def _task(self, name: str) -> Task:
        """The task, read once."""
        stage = self._task_stage(name)
        if self._loaded is None or self._loaded[0] != stage.key:
            self._loaded = (stage.key, Task.load(stage.path))
        return self._loaded[1]

    def _task_stage(self, name: str) -> StageResult:
        if name not in self._tasks:
            config = self.config.tasks[name]
            files = [_identity(path) for path in task_files(config, self.data)]
            inputs = {"task": config.model_dump(mode="json"), "files": files}
            self._tasks[name] = self._stage(
                f"tasks/{slug(name)}", inputs, lambda path: self._make_task(config, path)
            )
        return self._tasks[name]

    def _make_task(self, config: TaskConfig, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        make_task(config, self.data, threads=self.threads).save(folder)

    def _facts(self, name: str) -> dict[str, float]:
        path = self._task_stage(name).path / "facts.json"
        facts: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
        return facts

    def _row(self, task: str, row: RowConfig) -> RowResult:
        trials = self.config.trials(row)
        inputs = {"task": self._task_stage(task).key, "model": row.model, "trials": trials}
        inputs["choose_on"] = row.choose_on
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
                inner=inner, threads=self.threads, step=self.reporter.step,
            )  # fmt: skip

        stage = self._stage(name, inputs, make, title=f"{task}: {row.label}")
        result = json.loads((stage.path / "result.json").read_text(encoding="utf-8"))
        return RowResult(result, pd.read_csv(stage.path / "per_query.csv"))

    def _curves(self, curves: CurvesConfig) -> dict[tuple[float, int], list[dict[str, float]]]:
        return {
            (share, rank): self._curve(curves, share, rank)
            for share in curves.shares
            for rank in curves.ranks
        }

    def _curve(self, curves: CurvesConfig, share: float, rank: int) -> list[dict[str, float]]:
        config = self.config.tasks[curves.task].model_copy(update={"use_share": share})
        probe = RowConfig(label="curve", model=curves.model, params=curves.params, choose={})
        params = self.config.trials(probe)[0] | {"rank": rank}
        files = [_identity(path) for path in task_files(config, self.data)]
        inputs: dict[str, Any] = {"task": config.model_dump(mode="json"), "files": files}
        inputs |= {"model": curves.model, "params": params, "epochs": curves.epochs}
        inputs["n_queries"] = curves.n_queries

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            task = make_task(config, self.data, threads=self.threads)
            points = training_curve(
                task, curves.model, params, curves.epochs, curves.n_queries, threads=self.threads
            )
            (folder / "curve.json").write_text(json.dumps(points, indent=1), encoding="utf-8")

        name = f"curves/{share:g}-{rank}"
        path = self._stage(name, inputs, make, code=(*_CODE, "reports.matching.curves")).path
        points: list[dict[str, float]] = json.loads((path / "curve.json").read_text("utf-8"))
        return points

    def _stage(
        self,
        name: str,
        inputs: dict[str, Any],
        make: Callable[[Path], None],
        *,
        title: str = "",
        code: tuple[str, ...] = _CODE,
    ) -> StageResult:
        with self.reporter.stage(title or name) as outcome:
            result = self.stages.run(name, inputs, make, code=code)
            outcome.append("reused" if result.reused else result.reason)
        return result

    def _report(self, results: Results) -> Path:
        rows = {" ".join(key): row.result for key, row in results.rows.items()}
        curves = [[*key, points] for key, points in results.curves.items()]
        shown = json.dumps([rows, curves, results.facts], sort_keys=True)
        inputs = {
            "config": self.config.model_dump(mode="json"),
            "results": hashlib.sha256(shown.encode()).hexdigest(),
        }

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            text = "\n\n".join(table_text(results, table) for table in self.config.tables)
            text = f"{self.config.title}\n\n{text}\n"
            (folder / "tables.txt").write_text(text, encoding="utf-8")
            pd.DataFrame(csv_rows(results)).to_csv(folder / "rows.csv", index=False)
            write_page(results, folder / "report.html")

        return self._stage("report", inputs, make, code=("reports",)).path


def _identity(path: Path) -> dict[str, Any]:
    """What says that a file of data is the same: its size and the digest of its bytes."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    return {"name": path.name, "size": path.stat().st_size, "sha256": digest}
