"""Run a clickthrough experiment: a stage per task, fitted model and ranked row, then the report."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from letor.errors import InputError
from reports.clickthrough.config import ClickthroughConfig, RowConfig, load_clickthrough
from reports.clickthrough.page import write_page
from reports.clickthrough.scoring import Grids, ranked
from reports.clickthrough.tables import Results, RowResult, csv_rows, table_text
from reports.clickthrough.tasks import Task, make_task, task_files
from reports.config import slug
from reports.progress import Reporter
from reports.stages import StageResult, Stages
from ssi_models.registry import get_model, load_model

#: What the numbers come from; a new layout of the report trains nothing again.
_CODE = ("ssi_models", "reports.clickthrough.scoring", "reports.clickthrough.tasks")
_TEXT_CODE = (
    "reports.clickthrough.tasks",
    "ltr_features.sources",
    "ltr_features.text",
    "ltr_features.term_counts",
    "ltr_features.kernels.text",
)


def run_clickthrough(
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    threads: int | None = None,
    reporter: Reporter | None = None,
    dry_run: bool = False,
) -> Path:
    """Run the experiment of a TOML file of the kind "clickthrough".

    Every model is fitted once, whether it ranks alone or mixed, and kept as a model file; a run
    that was killed goes on where it stopped, inside a fit too.

    Args:
        path: the file. data: folder that its tasks' folders are in.
        out: folder for all outputs.
        threads: worker threads; None for one per core. Only the seconds depend on it.
        reporter: where progress goes. dry_run: print the plan, run nothing.

    Returns:
        The folder with ``report.html``, ``tables.txt`` and ``rows.csv``.

    Raises:
        InputError: the file, the data or the output folder cannot be used, or a model refuses the
            data.
    """
    config = load_clickthrough(path)
    for task in config.tasks.values():
        task_files(task, Path(data))
    if dry_run:
        print(plan_text(config))
        return Path(out) / "report"
    runner = _Runner(config, Path(data), Stages(out), threads, reporter or Reporter())
    return runner.run()


def plan_text(config: ClickthroughConfig) -> str:
    """The models of every table."""
    lines = [config.title]
    for table in config.tables:
        lines.append(f"{table.name}: {table.title} (task {table.task})")
        lines += [f"  {row.label}: {row.model}" for row in table.rows]
    return "\n".join(lines)


@dataclass
class _Runner:
    config: ClickthroughConfig
    data: Path
    stages: Stages
    threads: int | None
    reporter: Reporter
    _tasks: dict[str, tuple[StageResult, Task]] = field(default_factory=dict)

    def run(self) -> Path:
        rows = [(table, row) for table in self.config.tables for row in table.rows]
        results = {}
        with self.reporter.running(len(rows)):
            for table, row in rows:
                results[table.name, row.label] = self._row(table.task, row)
                self.reporter.advance()
        facts = {name: task.facts() for name, (_, task) in self._tasks.items()}
        found = Results(self.config, results, facts)
        stage = self.stages.run(
            "report",
            {"config": self.config.model_dump(mode="json"), "rows": csv_rows(found)},
            lambda folder: _write_report(found, folder),
            code=("reports",),
        )
        return stage.path

    def _task(self, name: str) -> tuple[StageResult, Task]:
        if name not in self._tasks:
            config = self.config.tasks[name]
            files = {path.name: _digest(path) for path in task_files(config, self.data)}

            def make(folder: Path) -> None:
                folder.mkdir(parents=True, exist_ok=True)
                make_task(config, self.data, threads=self.threads).save(folder)

            inputs = {"task": config.model_dump(mode="json"), "files": files}
            stage = self._stage(f"tasks/{slug(name)}", inputs, make, code=_TEXT_CODE)
            self._tasks[name] = stage, Task.load(stage.path)
        return self._tasks[name]

    def _fitted(self, name: str, row: RowConfig) -> StageResult:
        """The stage of a fitted model: the files ``model`` and ``fit.json``."""
        stage, task = self._task(name)
        params = self.config.params(row)
        inputs = {"task": stage.key, "model": row.model, "params": params}
        digest = hashlib.sha256(json.dumps([row.model, params], sort_keys=True).encode())

        def make(folder: Path) -> None:
            kind = get_model(row.model)
            model = kind(**{**params, "threads": self.threads})
            Q, _, D = task.matrices(kind.inputs)
            start = time.perf_counter()
            try:
                model.fit(
                    Q, D, task.train, vocabulary=task.vocabulary,
                    checkpoint=folder / "checkpoint", callback=self._tell(row.label),
                )  # fmt: skip
            except ValueError as error:
                raise InputError(f"task {name!r}, row {row.label!r}: {error}") from error
            fit = {"seconds": time.perf_counter() - start, "evaluations": _evaluations(model)}
            model.save(folder / "model")
            (folder / "fit.json").write_text(json.dumps(fit), encoding="utf-8")

        path = f"models/{slug(name)}/{row.model}-{digest.hexdigest()[:10]}"
        title = f"{name}: fit {row.model}"
        return self._stage(path, inputs, make, title=title, resumable=True)

    def _row(self, name: str, row: RowConfig) -> RowResult:
        fitted, config = self._fitted(name, row), self.config
        _, task = self._task(name)
        grids = {key: getattr(config, key) for key in ("lambda1", "lambda2", "weights")}
        inputs = {"fitted": fitted.key, "mixed": row.mixed, "cutoffs": config.cutoffs, **grids}

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            model = load_model(fitted.path / "model")
            model.threads = self.threads
            values, weights = ranked(model, task, row.mixed, Grids(**grids), config.cutoffs)
            values.to_csv(folder / "per_query.csv", index=False)
            (folder / "weights.json").write_text(json.dumps(weights), encoding="utf-8")

        path = f"rows/{slug(name)}/{fitted.path.name}{'-mixed' if row.mixed else ''}"
        stage = self._stage(path, inputs, make, title=f"{name}: rank by {row.label}")
        values = pd.read_csv(stage.path / "per_query.csv", dtype={"query": str})
        weights = json.loads((stage.path / "weights.json").read_text(encoding="utf-8"))
        fit = json.loads((fitted.path / "fit.json").read_text(encoding="utf-8"))
        return RowResult(values.set_index("query"), weights, fit["seconds"], fit["evaluations"])

    def _tell(self, label: str) -> Any:
        steps = iter(range(1, 1_000_000))
        return lambda _: self.reporter.step(f"{label}: iteration {next(steps)}")

    def _stage(
        self,
        name: str,
        inputs: dict[str, Any],
        make: Any,
        *,
        title: str = "",
        resumable: bool = False,
        code: tuple[str, ...] = _CODE,
    ) -> StageResult:
        with self.reporter.stage(title or name) as outcome:
            # Lists as a note's JSON has them, where the configuration has tuples.
            plain = json.loads(json.dumps(inputs))
            result = self.stages.run(name, plain, make, resumable=resumable, code=code)
            outcome.append("reused" if result.reused else result.reason)
        return result


def _evaluations(model: Any) -> list[float]:
    """Gradients per pair and iteration of EM, of models that project; else none."""
    if not hasattr(model, "max_evaluations"):
        return []
    return [float(line.evaluations) for line in model.history_]


def _write_report(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(table_text(results, table) for table in results.config.tables)
    notes = "".join(f"\n\n{note}" for note in results.config.notes)
    (folder / "tables.txt").write_text(
        f"{results.config.title}\n\n{text}{notes}\n", encoding="utf-8"
    )
    pd.DataFrame(csv_rows(results)).to_csv(folder / "rows.csv", index=False)
    write_page(results, folder / "report.html")


def _digest(path: Path) -> str:
    """SHA-256 of a file of data.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
