"""Studies of the kind "matching": models by themselves on links or sentences, as in the papers on
SSI and PSI.

Every model is trained once and kept as a small folder; rows of several tables that are equal are
trained once.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pandas as pd

from ltr_features.studies.config import read_config, slug
from ltr_features.studies.kinds import matching_tasks
from ltr_features.studies.kinds.matching_config import (
    CurvesConfig,
    MatchingConfig,
    RowConfig,
    TableConfig,
)
from ltr_features.studies.kinds.matching_curves import training_curve
from ltr_features.studies.kinds.matching_page import document
from ltr_features.studies.kinds.matching_rows import make_row
from ltr_features.studies.kinds.matching_tables import (
    Results,
    RowFit,
    RowResult,
    csv_rows,
    time_rows,
)
from ltr_features.studies.kinds.task_tables import TaskStudy, contents
from ltr_features.studies.runner import Planned
from ltr_features.studies.study import Contents

#: What the numbers of a row come from; a new layout of tables trains nothing again.
_CODE = (
    "ssi_models",
    "ltr_features.text.analyzer",
    "ltr_features.text.term_counts",
    "ltr_features.kernels.text",
    *(f"{__name__}_{part}" for part in ("tasks", "rows", "evaluation")),
)


class MatchingStudy(TaskStudy):
    """Writes ``tables.txt``, ``rows.csv`` and ``times.csv`` (seconds of training) beside the page.
    Seconds depend on the threads, and results where ``max_seconds`` limits training."""

    config: MatchingConfig
    tasks = matching_tasks
    task_code = _CODE

    @classmethod
    def read(cls, path: Path, data: Path) -> MatchingConfig:
        return read_config(path, MatchingConfig)

    @property
    def _rows(self) -> list[tuple[TableConfig, RowConfig]]:
        """Rows with a model, task by task: only one is held in memory."""
        rows = [(t, row) for t in self.config.tables for row in t.rows if row.model is not None]
        return sorted(rows, key=lambda item: item[1].task or item[0].task)

    def row_stages(self) -> list[Planned]:
        planned = []
        for table, row in self._rows:
            planned += [self.task_stage(row.task or table.task), *self._row_stages(table, row)]
        return [*planned, *self._curve_stages().values()]

    def _row_stages(self, table: TableConfig, row: RowConfig) -> list[Planned]:
        """A stage for each fit."""
        task = row.task or table.task
        return [self._row_stage(task, row, fit) for fit in range(self.config.fits_of(row))]

    def _row_stage(self, task: str, row: RowConfig, fit: int) -> Planned:
        trials = self.config.trials(row, fit)
        inputs = {
            "task": self.key(self.task_stage(task)),
            "model": row.model,
            "trials": trials,
            "choose_on": row.choose_on,
        }
        told = json.dumps([row.model, trials, row.choose_on], sort_keys=True)
        name = f"{row.model}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"

        def make(folder: Path) -> None:
            data, inner = self.task(task), None
            if row.choose_on == "documents":
                inner = matching_tasks.unseen_documents(data, self.config.tasks[task])
            make_row(
                data, str(row.model), trials, folder,
                inner=inner, threads=self.threads, reporter=self.runner.reporter,
            )  # fmt: skip

        title = f"{task}: {row.label}{f', fit {fit + 1}' if fit else ''}"
        return Planned(
            f"models/{slug(task)}/{name}", inputs, make, f"{row.model}, {len(trials)} trained",
            f"{task}: {row.model}", len(trials), title=title, code=_CODE,
        )  # fmt: skip

    def _curve_stages(self) -> dict[tuple[float, int], Planned]:
        curves = self.config.curves
        if curves is None:
            return {}
        return {
            (share, rank): self._curve_stage(curves, share, rank)
            for share in curves.shares
            for rank in curves.ranks
        }

    def _curve_stage(self, curves: CurvesConfig, share: float, rank: int) -> Planned:
        config = self.config.tasks[curves.task].model_copy(update={"use_share": share})
        probe = RowConfig(label="curve", model=curves.model, params=curves.params, choose={})
        params = self.config.trials(probe)[0] | {"rank": rank}
        inputs = self.task_inputs(config) | {
            "model": curves.model,
            "params": params,
            "epochs": curves.epochs,
            "n_queries": curves.n_queries,
        }

        def make(folder: Path) -> None:
            points = training_curve(
                self.make_task(config), curves.model, params, curves.epochs, curves.n_queries,
                threads=self.threads,
            )  # fmt: skip
            (folder / "curve.json").write_text(json.dumps(points, indent=1), encoding="utf-8")

        return Planned(
            f"curves/{share:g}-{rank}", inputs, make, f"{curves.epochs} epochs", "curve", share,
            code=(*_CODE, f"{__name__}_curves"),
        )  # fmt: skip

    def report(self) -> Contents:
        results = Results(
            self.config,
            {(table.name, row.label): self._row(table, row) for table, row in self._rows},
            {
                key: _read(self.done(stage).path / "curve.json")
                for key, stage in self._curve_stages().items()
            },
            {name: self.facts(name) for name in self.config.tasks},
        )
        return contents(document(results), csv_rows(results), time_rows(results))

    def _row(self, table: TableConfig, row: RowConfig) -> RowResult:
        fits = []
        for stage in self._row_stages(table, row):
            path = self.done(stage).path
            values = pd.read_csv(path / "per_query.csv").set_index("query")
            seconds = _read(path / "times.json")["trials"]
            fits.append(RowFit(_read(path / "result.json"), seconds, values))
        return RowResult(fits)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
