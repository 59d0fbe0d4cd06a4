"""Studies of the kind "clickthrough": topic, translation and projection models on queries and
titles.

Every model is fitted once, whether it ranks alone or mixed with word matching, and saved as a model
file. A killed run resumes where it stopped, even within a fit.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from letor.errors import InputError
from letor.files import write_json
from ltr_features.studies.config import slug
from ltr_features.studies.kinds import clickthrough_tasks
from ltr_features.studies.kinds.clickthrough_config import ClickthroughConfig, RowConfig
from ltr_features.studies.kinds.clickthrough_ranking import ranked
from ltr_features.studies.kinds.clickthrough_report import ClickthroughResults, csv_rows, document
from ltr_features.studies.kinds.task_tables import Fit, Row, TaskStudy
from ltr_features.studies.stages import Planned, json_digest
from ltr_features.studies.study import Contents
from ssi_models.registry import get_model, load_model

#: Code that computes the numbers; changes to the layout of the report do not retrain models.
_CODE = ("ssi_models", f"{__name__}_tasks", f"{__name__}_ranking")
_TEXT_CODE = (
    f"{__name__}_tasks",
    "ltr_features.sources",
    "ltr_features.text.analyzer",
    "ltr_features.text.letter_ngrams",
    "ltr_features.text.term_counts",
)


class ClickthroughStudy(TaskStudy):
    """A study that writes ``tables.txt``, ``rows.csv`` and ``times.csv`` (seconds of fitting) with
    the page. Only the seconds depend on ``threads``."""

    described = ClickthroughConfig
    config: ClickthroughConfig
    tasks = clickthrough_tasks
    task_code = _TEXT_CODE

    def row_stages(self, task: str, row: RowConfig) -> list[Planned]:
        stages = (self._fit_stage, self._row_stage)
        fits = range(self.config.fits_of(row))
        return [stage(task, row, number) for number in fits for stage in stages]

    def _groups(self, name: str) -> dict[str, int] | None:
        """The group of each test query of a task; None if each is alone."""
        task = self.task(name)
        groups = dict(zip(task.query_ids, task.group.tolist(), strict=True))
        return groups if len(set(groups.values())) < len(groups) else None

    def _fit_stage(self, name: str, row: RowConfig, number: int) -> Planned:
        """The stage that makes the files ``model``, ``fit.json`` and ``times.json``."""
        [params] = self.config.trials(row, number)
        task_key = self.task_stages[name].key
        inputs = {"task": task_key, "model": row.model, "params": params}

        def make(folder: Path) -> None:
            kind, task = get_model(row.model), self.task(name)
            model = kind(**{**params, "threads": self.threads})
            Q, _, D = task.matrices(kind.inputs)
            start = time.perf_counter()
            try:
                model.fit(
                    Q, D, task.train, vocabulary=task.vocabulary, groups=task.train_group,
                    excluded=task.train_source if (task.train_source >= 0).any() else None,
                    checkpoint=folder / "checkpoint",
                    callback=lambda _: self.reporter.tick("iterations"),
                )  # fmt: skip
            except ValueError as error:
                raise InputError(f"task {name!r}, row {row.label!r}: {error}") from error
            seconds = time.perf_counter() - start
            model.save(folder / "model")
            fit = {"evaluations": _evaluations(model), "remarks": model.remarks}
            for file, found in (("fit.json", fit), ("times.json", {"seconds": seconds})):
                write_json(folder / file, found)

        path = f"models/{slug(name)}/{row.model}-{json_digest([row.model, params])[:10]}"
        return Planned(
            path, inputs, make, "1 model", f"{name}: fit {row.model}",
            title=f"{name}: fit {row.model}{f', seed + {number}' if number else ''}",
            resumable=True, code=_CODE,
        )  # fmt: skip

    def _row_stage(self, name: str, row: RowConfig, number: int) -> Planned:
        fit, config = self._fit_stage(name, row, number), self.config
        grids = {key: getattr(config, key) for key in ("lambda1", "lambda2", "weights")}
        inputs = {"fitted": fit.key, "mixed": row.mixed, "cutoffs": config.cutoffs}

        def make(folder: Path) -> None:
            model = load_model(self.done(fit).path / "model")
            model.threads = self.threads
            task = self.task(name)
            values, weights = ranked(model, task, row.mixed, config)
            values.to_csv(folder / "per_query.csv", index=False, lineterminator="\n")
            write_json(folder / "weights.json", weights)

        path = f"rows/{slug(name)}/{Path(fit.name).name}{'-mixed' if row.mixed else ''}"
        return Planned(
            path, {**inputs, **grids}, make, "all test queries",
            f"{name}: rank{' mixed' if row.mixed else ''}",
            title=f"{name}: rank by {row.label}{f', seed + {number}' if number else ''}",
            code=_CODE,
        )  # fmt: skip

    def _row(self, name: str, row: RowConfig) -> Row:
        fits = []
        for number in range(self.config.fits_of(row)):
            fitted = self.done(self._fit_stage(name, row, number))
            ranked = self.done(self._row_stage(name, row, number))
            facts = {"weights": ranked.json("weights.json"), **fitted.json("fit.json")}
            fits.append(Fit(ranked.per_query("query"), fitted.json("times.json"), facts))
        return Row(fits)

    def report(self) -> Contents:
        rows = {(table.name, row.label): self._row(task, row) for table, row, task in self.rows}
        facts, groups = {}, {}
        for name in self.config.tasks:
            facts[name] = self.facts(name)
            if (by_query := self._groups(name)) is not None:
                groups[name] = by_query
                facts[name][clickthrough_tasks.GROUPS] = len(set(by_query.values()))
        results = ClickthroughResults(self.config, rows, facts, groups)
        return Contents(document(results), {"rows": csv_rows(results), "times": results.times})


def _evaluations(model: Any) -> list[float]:
    """Gradient evaluations per pair, by iteration of EM; empty for models without projection."""
    if not hasattr(model, "max_evaluations"):
        return []
    return [float(line.evaluations) for line in model.history_]
