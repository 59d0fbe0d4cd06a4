"""Run a clickthrough experiment: a stage per task, fitted model and ranked row, then the report."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from letor.errors import InputError
from ltr_features.studies.config import slug
from ltr_features.studies.identity import size_text
from ltr_features.studies.kinds.clickthrough_config import (
    ClickthroughConfig,
    RowConfig,
    load_clickthrough,
)
from ltr_features.studies.kinds.clickthrough_page import write_page
from ltr_features.studies.kinds.clickthrough_scoring import Grids, ranked
from ltr_features.studies.kinds.clickthrough_tables import (
    Results,
    RowFit,
    RowResult,
    csv_rows,
    table_text,
    time_rows,
)
from ltr_features.studies.kinds.clickthrough_tasks import Task, make_task, task_files
from ltr_features.studies.kinds.given_texts import read_query_groups
from ltr_features.studies.manifest import write_manifest
from ltr_features.studies.progress import Reporter
from ltr_features.studies.runner import Planned, StageRunner
from ltr_features.studies.stages import STUDIES
from ssi_models.registry import get_model, load_model

#: What the numbers come from; a new layout of the report trains nothing again.
_KIND = f"{STUDIES}.kinds.clickthrough"
_CODE = (
    "ssi_models",
    f"{_KIND}_scoring",
    f"{_KIND}_tasks",
)
_TEXT_CODE = (
    f"{_KIND}_tasks",
    "ltr_features.sources",
    "ltr_features.text.analyzer",
    "ltr_features.text.term_counts",
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
        The folder with ``report.html``, ``tables.txt``, ``rows.csv``, ``times.csv`` (seconds of
        fitting) and ``manifest.json``.

    Raises:
        InputError: the file, the data or the output folder cannot be used, or a model refuses the
            data.
    """
    config = load_clickthrough(path)
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
    config: ClickthroughConfig
    data: Path
    runner: StageRunner
    threads: int | None

    def __post_init__(self) -> None:
        self._rows = [(table, row) for table in self.config.tables for row in table.rows]
        self._stages: dict[str, Planned] = {}
        self._tasks: dict[str, Task] = {}

    def plan(self) -> list[Planned]:
        """All stages up to the report."""
        planned = []
        for table, row in self._rows:
            planned.append(self._task_stage(table.task))
            for fit in range(self.config.fits_of(row)):
                planned += [self._fit_stage(table.task, row, fit)]
                planned += [self._row_stage(table.task, row, fit)]
        return list({stage.name: stage for stage in planned}.values())

    def run(self) -> Path:
        groups = {
            name: self._groups(name) for name, task in self.config.tasks.items() if task.groups
        }
        for stage in self.plan():
            self.runner.done(stage)
        rows = {(table.name, row.label): self._row(table.task, row) for table, row in self._rows}
        facts = {table.task: self._task(table.task).facts() for table in self.config.tables}
        for name, of in groups.items():
            facts[name]["groups of test queries"] = len(set(of.values()))
        return self._report(Results(self.config, rows, facts, groups))

    def _groups(self, name: str) -> dict[str, str]:
        """The group of each test query of a task.

        Raises:
            InputError: the file cannot be read, or a query has none.
        """
        queries = self._task(name).query_ids
        groups = read_query_groups(self.data / str(self.config.tasks[name].groups), queries)
        return {query: groups[query] for query in queries}

    def _task(self, name: str) -> Task:
        """The task, read once."""
        if name not in self._tasks:
            self._tasks[name] = Task.load(self.runner.done(self._task_stage(name)).path)
        return self._tasks[name]

    def _task_stage(self, name: str) -> Planned:
        if name not in self._stages:
            config = self.config.tasks[name]
            identity = self.runner.stages.digests.identity
            files = [identity(path) for path in task_files(config, self.data)]

            def make(folder: Path) -> None:
                folder.mkdir(parents=True, exist_ok=True)
                make_task(config, self.data, threads=self.threads).save(folder)

            inputs = {"task": config.model_dump(mode="json"), "files": files}
            n_bytes = sum(file["size"] for file in files)
            self._stages[name] = Planned(
                f"tasks/{slug(name)}", inputs, make, f"{size_text(n_bytes)} to read", "task",
                n_bytes, code=_TEXT_CODE,
            )  # fmt: skip
        return self._stages[name]

    def _fit_stage(self, name: str, row: RowConfig, number: int) -> Planned:
        """Makes the files ``model``, ``fit.json`` and ``times.json``."""
        params = self.config.params(row, number)
        task_key = self.runner.key(self._task_stage(name))
        inputs = _plain({"task": task_key, "model": row.model, "params": params})
        digest = hashlib.sha256(json.dumps([row.model, params], sort_keys=True).encode())

        def make(folder: Path) -> None:
            kind, task = get_model(row.model), self._task(name)
            model = kind(**{**params, "threads": self.threads})
            Q, _, D = task.matrices(kind.inputs)
            start = time.perf_counter()
            try:
                model.fit(
                    Q, D, task.train, vocabulary=task.vocabulary,
                    checkpoint=folder / "checkpoint",
                    callback=lambda _: self.runner.reporter.tick("iterations"),
                )  # fmt: skip
            except ValueError as error:
                raise InputError(f"task {name!r}, row {row.label!r}: {error}") from error
            seconds = time.perf_counter() - start
            model.save(folder / "model")
            fit = {"evaluations": _evaluations(model), "remarks": model.remarks}
            for file, found in (("fit.json", fit), ("times.json", {"seconds": seconds})):
                (folder / file).write_text(json.dumps(found), encoding="utf-8")

        path = f"models/{slug(name)}/{row.model}-{digest.hexdigest()[:10]}"
        return Planned(
            path, inputs, make, "1 model", f"{name}: fit {row.model}",
            title=f"{name}: fit {row.model}{f', seed + {number}' if number else ''}",
            resumable=True, code=_CODE,
        )  # fmt: skip

    def _row_stage(self, name: str, row: RowConfig, number: int) -> Planned:
        fit, config = self._fit_stage(name, row, number), self.config
        grids = {key: getattr(config, key) for key in ("lambda1", "lambda2", "weights")}
        inputs = {"fitted": self.runner.key(fit), "mixed": row.mixed, "cutoffs": config.cutoffs}

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            model = load_model(self.runner.done(fit).path / "model")
            model.threads = self.threads
            task = self._task(name)
            values, weights = ranked(model, task, row.mixed, Grids(**grids), config.cutoffs)
            values.to_csv(folder / "per_query.csv", index=False)
            (folder / "weights.json").write_text(json.dumps(weights), encoding="utf-8")

        path = f"rows/{slug(name)}/{Path(fit.name).name}{'-mixed' if row.mixed else ''}"
        return Planned(
            path, _plain({**inputs, **grids}), make, "all test queries",
            f"{name}: rank{' mixed' if row.mixed else ''}",
            title=f"{name}: rank by {row.label}{f', seed + {number}' if number else ''}",
            code=_CODE,
        )  # fmt: skip

    def _row(self, name: str, row: RowConfig) -> RowResult:
        fits = []
        for number in range(self.config.fits_of(row)):
            fitted = self.runner.done(self._fit_stage(name, row, number)).path
            ranked = self.runner.done(self._row_stage(name, row, number)).path
            values = pd.read_csv(ranked / "per_query.csv", dtype={"query": str})
            weights, seconds = _read(ranked / "weights.json"), _read(fitted / "times.json")
            told = _read(fitted / "fit.json")
            fits.append(RowFit(values.set_index("query"), weights, **seconds, **told))
        return RowResult(fits)

    def _report(self, results: Results) -> Path:
        config = self.config.model_dump(mode="json")
        files = {name: stage.inputs["files"] for name, stage in self._stages.items()} | {
            f"groups of {name}": self.runner.stages.digests.identity(self.data / task.groups)
            for name, task in self.config.tasks.items()
            if task.groups
        }
        found = {"rows": csv_rows(results), "times": time_rows(results), "groups": results.groups}
        inputs = _plain({"config": config, **found, "files": files})

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            _write_report(results, folder)
            write_manifest(
                folder,
                title=self.config.title,
                settings=config,
                inputs=files,
                seeds={"models": self.config.seed}
                | {name: task.seed for name, task in self.config.tasks.items()},
                timed=("report.html", "tables.txt", "times.csv"),
            )

        stage = Planned("report", inputs, make, "the report", "report", code=(STUDIES,))
        return self.runner.done(stage).path


def _plain(inputs: dict[str, Any]) -> dict[str, Any]:
    """Lists as a note's JSON has them, where the configuration has tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(inputs))
    return plain


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


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
    pd.DataFrame(time_rows(results)).to_csv(folder / "times.csv", index=False)
    write_page(results, folder / "report.html")
