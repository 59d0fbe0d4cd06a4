"""Studies of tables whose rows are models on tasks: what the kinds "matching" and "clickthrough"
share."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd

from ltr_features.studies.config import slug
from ltr_features.studies.identity import size_text
from ltr_features.studies.page.pages import Document
from ltr_features.studies.runner import Planned
from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import TestSettings, compare
from ltr_features.studies.study import Contents, Study


class Fit(Protocol):
    """What a stage wrote of one fit of a row."""

    @property
    def per_query(self) -> pd.DataFrame:
        """Index = query ids, a column per measure."""

    @property
    def remarks(self) -> Sequence[str]:
        """What must be heard of it."""


FitT = TypeVar("FitT", bound=Fit)


class Row(Generic[FitT]):
    """The fits of a row; what is no measure is that of the first."""

    def __init__(self, fits: Sequence[FitT]) -> None:
        self.fits, self.first = fits, fits[0]

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """Values by query, means over the fits."""
        return mean_values([fit.per_query for fit in self.fits])

    @property
    def remarks(self) -> list[str]:
        """What must be heard of any of the fits."""
        return list(dict.fromkeys(text for fit in self.fits for text in fit.remarks))


def compare_rows(
    rows: Mapping[str, Row[Any]],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
    alpha: float = 0.05,
    *,
    groups: Mapping[str, Hashable] | None,
) -> pd.DataFrame:
    """Test pairs of rows, by label; see :func:`significance.compare`. There are no intervals."""
    return compare(
        {label: row.per_query for label, row in rows.items()},
        pairs,
        measures,
        TestSettings(alpha=alpha, n_resamples=1),
        groups=groups,
        fits={
            label: [fit.per_query for fit in row.fits]
            for label, row in rows.items()
            if len(row.fits) > 1
        },
    )


class TaskStudy(Study):
    """A study whose configuration has ``tasks`` and ``tables``.

    Attributes:
        tasks: the kind's module of tasks, with ``Task``, ``make_task`` and ``task_files``.
        task_code: what tasks come from, see :meth:`stages.Stages.run`.
    """

    timed = ("report.html", "tables.txt", "times.csv")
    tasks: ModuleType
    task_code: tuple[str, ...]
    _loaded: tuple[str, Any] | None = None

    @abstractmethod
    def row_stages(self) -> list[Planned]:
        """The stages of all rows, each after that of its task; those of equal rows may be there
        several times."""

    def stages(self) -> list[Planned]:
        every = [*self.row_stages(), *map(self.task_stage, self.config.tasks)]
        return list({stage.name: stage for stage in every}.values())

    def task_inputs(self, config: Any) -> dict[str, Any]:
        """What a task depends on."""
        files = [self.identity(path) for path in self.tasks.task_files(config, self.data)]
        return {"task": config.model_dump(mode="json"), "files": files}

    def task_stage(self, name: str) -> Planned:
        """Makes the task's folder."""
        if name not in self._task_stages:
            config = self.config.tasks[name]
            inputs = self.task_inputs(config)
            n_bytes = sum(file["size"] for file in inputs["files"])
            self._task_stages[name] = Planned(
                f"tasks/{slug(name)}",
                inputs,
                lambda folder: self.make_task(config).save(folder),
                f"{size_text(n_bytes)} to read",
                "task",
                n_bytes,
                code=self.task_code,
            )
        return self._task_stages[name]

    @cached_property
    def _task_stages(self) -> dict[str, Planned]:
        return {}

    def make_task(self, config: Any) -> Any:
        """A task from its files."""
        return self.tasks.make_task(config, self.data, threads=self.threads)

    def task(self, name: str) -> Any:
        """The task, read back; the last one is kept."""
        found = self.done(self.task_stage(name))
        if self._loaded is None or self._loaded[0] != found.key:
            self._loaded = (found.key, self.tasks.Task.load(found.path))
        return self._loaded[1]

    def facts(self, name: str) -> dict[str, float]:
        """The sizes of a task."""
        path = self.done(self.task_stage(name)).path / "facts.json"
        found: dict[str, float] = json.loads(path.read_text(encoding="utf-8"))
        return found

    @property
    def files(self) -> dict[str, Any]:
        return {name: self.task_stage(name).inputs["files"] for name in self.config.tasks}

    @property
    def seeds(self) -> dict[str, int]:
        tasks = {name: task.seed for name, task in self.config.tasks.items()}
        return {"models": self.config.seed, **tasks}


def contents(
    page: Document, rows: Sequence[Mapping[str, Any]], times: Sequence[Mapping[str, Any]]
) -> Contents:
    """The report: the page, ``tables.txt``, ``rows.csv`` and ``times.csv``."""
    frames = {"rows": pd.DataFrame(rows), "times": pd.DataFrame(times)}
    return Contents(page.html(), {"tables.txt": page.text()}, frames)
