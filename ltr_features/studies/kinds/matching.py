"""Studies of the kind "matching": matching models without rankers on links or sentences, as in the
papers on SSI and PSI.

The results of every model are saved in a small folder; a row that occurs in several tables is
trained only once.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

from letor.files import write_json
from ltr_features.studies.config import slug
from ltr_features.studies.kinds import matching_tasks
from ltr_features.studies.kinds.matching_config import (
    CurvesConfig,
    MatchingConfig,
    RowConfig,
    TableConfig,
)
from ltr_features.studies.kinds.matching_curves import training_curve
from ltr_features.studies.kinds.matching_report import MatchingResults, csv_rows, document
from ltr_features.studies.kinds.matching_rows import make_row
from ltr_features.studies.kinds.task_tables import Fit, Row, TaskStudy
from ltr_features.studies.stages import Planned, json_digest
from ltr_features.studies.study import Contents

#: Code that computes the numbers of a row; changes to the layout of tables do not retrain models.
_CODE = (
    "ssi_models",
    "ltr_features.text.analyzer",
    "ltr_features.text.letter_ngrams",
    "ltr_features.text.term_counts",
    *(f"{__name__}_{part}" for part in ("tasks", "rows")),
)


class MatchingStudy(TaskStudy):
    """A study that writes ``tables.txt``, ``rows.csv`` and ``times.csv`` (seconds of training) with
    the page. Seconds depend on ``threads``; results only if ``max_seconds`` limits training."""

    described = MatchingConfig
    config: MatchingConfig
    tasks = matching_tasks
    task_code = _CODE

    @property
    def rows(self) -> list[tuple[TableConfig, RowConfig, str]]:
        """Rows sorted by task, since only one task is held in memory."""
        return sorted(super().rows, key=lambda item: item[2])

    def row_stages(self, task: str, row: RowConfig) -> list[Planned]:
        return [self._row_stage(task, row, fit) for fit in range(self.config.fits_of(row))]

    def further_stages(self) -> list[Planned]:
        return list(self._curve_stages().values())

    def _row_stage(self, task: str, row: RowConfig, fit: int) -> Planned:
        trials = self.config.trials(row, fit)
        inputs = {
            "task": self.task_stages[task].key,
            "model": row.model,
            "trials": trials,
            "choose_on": row.choose_on,
        }
        name = f"{row.model}-{json_digest([row.model, trials, row.choose_on])[:10]}"

        def make(folder: Path) -> None:
            data, inner = self.task(task), None
            if row.choose_on == "documents":
                inner = matching_tasks.unseen_documents(data, self.config.tasks[task])
            make_row(
                data, str(row.model), trials, folder,
                inner=inner, threads=self.threads, reporter=self.reporter,
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
        places = product(curves.shares, curves.ranks)
        return {place: self._curve_stage(curves, *place) for place in places}

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
                matching_tasks.make_task(config, self.data), curves.model, params, curves.epochs,
                curves.n_queries, threads=self.threads,
            )  # fmt: skip
            write_json(folder / "curve.json", points)

        return Planned(
            f"curves/{share:g}-{rank}", inputs, make, f"{curves.epochs} epochs", "curve", share,
            code=(*_CODE, f"{__name__}_curves"),
        )  # fmt: skip

    def report(self) -> Contents:
        results = MatchingResults(
            self.config,
            {(table.name, row.label): self._row(task, row) for table, row, task in self.rows},
            {name: self.facts(name) for name in self.config.tasks},
            {k: self.done(stage).json("curve.json") for k, stage in self._curve_stages().items()},
        )
        return Contents(document(results), {"rows": csv_rows(results), "times": results.times})

    def _row(self, task: str, row: RowConfig) -> Row:
        fits = []
        for stage in self.row_stages(task, row):
            done = self.done(stage)
            result, trials = done.json("result.json"), done.json("times.json")["trials"]
            seconds = {"seconds": trials[result["kept"]], "tuning_seconds": sum(trials)}
            fits.append(Fit(done.per_query("query"), seconds, result))
        return Row(fits)
