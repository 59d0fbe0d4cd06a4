"""Studies with tables whose rows are models on tasks: the common part of the kinds "matching" and
"clickthrough"."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from pydantic import Field

from letor.errors import InputError
from ltr_base.names import counted, repeated
from ltr_features.studies.config import (
    DATA_ADVICE,
    Repeats,
    Section,
    folder_problems,
    no_such,
    slug,
)
from ltr_features.studies.identity import size_text
from ltr_features.studies.page.tables import Cell, Table
from ltr_features.studies.page.verdicts import p_value
from ltr_features.studies.stages import Planned
from ltr_features.studies.statistics.paired_tests import smallest_p
from ltr_features.studies.statistics.refits import mean_values, spreads
from ltr_features.studies.statistics.significance import (
    USUAL,
    TestSettings,
    compare,
    corrected,
    deciding_p,
)
from ltr_features.studies.study import Study
from ssi_models.registry import get_model


class RowSection(Section):
    """A model on a task.

    Attributes:
        label: unique within the table.
        model: a registered name. params: arguments of its constructor.
        note: a remark below the table.
    """

    label: str = Field(min_length=1)
    model: str | None = None
    params: dict[str, Any] = Field({})
    note: str = ""


class TableSection(Section):
    """A table with its rows in the paper's order.

    Attributes:
        notes: findings, printed below the table.
    """

    name: str = Field(pattern=r"^[\w-]+$")
    title: str
    task: str
    rows: tuple[Any, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()

    @property
    def mentioned(self) -> set[str]:
        """Labels of rows that are used elsewhere in the table's section."""
        return set()

    def task_of(self, row: Any) -> str:
        """The name of a row's task: its own if it names one, else the table's."""
        return getattr(row, "task", None) or self.task

    def problems(self) -> Iterator[str]:
        labels = [row.label for row in self.rows]
        if twice := repeated(labels):
            yield f"two rows have the label {', '.join(twice)}"
        yield from no_such("claims", "row", sorted(self.mentioned), labels)


class TablesSection(Section):
    """A whole experiment.

    Attributes:
        seed: of models whose ``params`` have none; tasks have one of their own.
        repeats: number of fits, with different seeds, of each model that learns from judgements;
            its values are per-query means over the fits. Tasks are the same in every fit.
    """

    title: str
    introduction: str = ""
    seed: int = Field(0, ge=0)
    repeats: Repeats = 1
    tasks: dict[str, Any] = Field(min_length=1)
    tables: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()

    @abstractmethod
    def trials(self, row: Any, fit: int = 0) -> list[dict[str, Any]]:
        """Parameters of each model that is tried for a row in the given fit; the best model is
        reported."""

    def fits_of(self, row: Any) -> int:
        """How often a row is fitted: once if all fits would be the same."""
        return self.repeats if self.trials(row, 1) != self.trials(row) else 1

    def problems(self) -> Iterator[str]:
        """All mistakes in the tables."""
        yield from folder_problems("tasks", self.tasks)
        if twice := repeated(table.name for table in self.tables):
            yield f"two tables share the name {', '.join(twice)}"
        for name, task in self.tasks.items():
            yield from (f"tasks.{name}: {problem}" for problem in task.problems())
        for table in self.tables:
            yield from (f"table {table.name!r}: {problem}" for problem in table.problems())
            for row in table.rows:
                where = f"table {table.name!r}, row {row.label!r}"
                task = table.task_of(row)
                named_by = where if task != table.task else f"table {table.name!r}"
                yield from no_such(named_by, "task", [task], self.tasks)
                for problem in self.row_problems(row, task):
                    yield f"{where}: {problem}"

    def row_problems(self, row: Any, task: str) -> Iterator[str]:
        """All mistakes in a row."""
        try:
            trials = self.trials(row)
            for params in trials:
                model = get_model(row.model)(**params)
                getattr(model, "check_params", lambda: None)()
            if any(params.get("list_share") for params in trials):
                yield "list_share has no effect here: queries have no candidates; leave it out"
        except (TypeError, ValueError) as error:
            yield str(error)


@dataclass(frozen=True, eq=False)
class Fit:
    """Results of one fit of a row.

    Attributes:
        per_query: index = query ids, a column per measure.
        seconds: durations of fitting and other work, by column name in ``times.csv``.
        facts: what else its stages noted; ``remarks``, important ones, among it.
    """

    per_query: pd.DataFrame
    seconds: Mapping[str, float]
    facts: Mapping[str, Any]


class Row:
    """The fits of a row; anything that is not a measure is taken from the first fit."""

    def __init__(self, fits: Sequence[Fit]) -> None:
        self.fits, self.first = fits, fits[0]

    @cached_property
    def per_query(self) -> pd.DataFrame:
        """Per-query values, means over the fits."""
        return mean_values([fit.per_query for fit in self.fits])

    @property
    def spread(self) -> pd.Series:
        """Standard deviation of each measure's mean over the fits; NaN for one fit."""
        return spreads([fit.per_query for fit in self.fits])

    @property
    def remarks(self) -> list[str]:
        """The remarks on any of the fits, each once."""
        return list(dict.fromkeys(text for fit in self.fits for text in fit.facts["remarks"]))


@dataclass(frozen=True, eq=False)
class Results:
    """Results of all stages.

    Attributes:
        rows: the rows with a model, by names of tables and labels. facts: sizes by task.
    """

    config: Any
    rows: Mapping[tuple[str, str], Row]
    facts: Mapping[str, Mapping[str, float]]

    def of_table(self, table: Any) -> Iterator[tuple[Any, Row]]:
        """The rows of a table that have a model, with their results."""
        for row in table.rows:
            if row.model is not None:
                yield row, self.rows[table.name, row.label]

    def means(self, mean: Callable[[Row], float]) -> dict[str, dict[str, float]]:
        """The mean of each row with a model, by titles of tables and labels."""
        return {
            table.title: {row.label: mean(found) for row, found in self.of_table(table)}
            for table in self.config.tables
        }

    def remarks(self, table: Any) -> list[tuple[str, str]]:
        """Label and sentence of each note on a table's rows and each remark on the fits of their
        models."""
        found = []
        for row in table.rows:
            found += [(row.label, row.note)] if row.note else []
            result = self.rows.get((table.name, row.label))
            found += [(row.label, text) for text in (result.remarks if result else ())]
        return found

    @property
    def times(self) -> pd.DataFrame:
        """Seconds of the first fit of each row."""
        return pd.DataFrame(
            {"table": table, "label": label, **row.first.seconds}
            for (table, label), row in self.rows.items()
        )


def beside_paper(
    name: str,
    columns: Sequence[str],
    paper: Sequence[str],
    rows: Sequence[Sequence[Cell | str]],
    caption: str,
) -> Table:
    """A table whose last columns, ``paper``, have a paper's numbers ("–" where it has none); they
    are left out where the experiment names no such number.

    Args:
        caption: of the other columns, without a full stop.
    """
    n = len(columns)
    if all(cell == "–" for row in rows for cell in row[n:]):
        return Table(name, list(columns), [list(row[:n]) for row in rows], f"{caption}.")
    caption = f"{caption}; on the right, the paper's numbers on its own data."
    return Table(name, [*columns, *paper], [list(row) for row in rows], caption)


def compare_rows(
    rows: Mapping[str, Row],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
    alpha: float = 0.05,
    *,
    groups: Mapping[str, Hashable] | None,
) -> pd.DataFrame:
    """Test pairs of rows, by label, without intervals; see :func:`significance.compare`. ``p`` is
    that of :func:`significance.deciding_p`."""
    table = compare(
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
    return table.assign(p=deciding_p(table))


def too_few_queries(n_units: Sequence[int], alpha: float = 0.05) -> list[tuple[str, str]]:
    """A remark if there are too few test queries for any claim of a table to be significant.

    Args:
        n_units: the number of test queries, or of their groups, of each claim that is tested.
        alpha: level of significance, after Holm's correction over the claims.
    """
    p = np.array([smallest_p(n, n, USUAL.n_permutations) for n in n_units])
    if not len(p) or (corrected(p) < alpha).any():
        return []
    return [
        (
            "Tests",
            f"no claim could have been significant: {max(n_units)} test queries (or groups of "
            f"them) give a p-value of {p_value(float(p.min()))} at best, before correction over "
            f"{counted(len(p), 'claim')}; test more queries",
        )
    ]


class TaskStudy(Study):
    """A study whose configuration has ``tasks`` and ``tables``.

    Attributes:
        tasks: the kind's module of tasks, with ``Task``, ``make_task`` and ``task_files``.
        task_code: code that makes tasks, see :meth:`stages.Stages.run`.
    """

    timed = ("report.html", "tables.txt", "tables.tex", "times.csv")
    tasks: ModuleType
    task_code: tuple[str, ...]
    _loaded: tuple[str, Any] | None = None

    @abstractmethod
    def row_stages(self, task: str, row: Any) -> list[Planned]:
        """The stages of all fits of a row; equal rows have the same stages."""

    def further_stages(self) -> list[Planned]:
        """Stages that do not belong to a row."""
        return []

    @property
    def rows(self) -> list[tuple[Any, Any, str]]:
        """Table, row and name of the task of each row with a model."""
        tables = self.config.tables
        return [(t, row, t.task_of(row)) for t in tables for row in t.rows if row.model is not None]

    def stages(self) -> list[Planned]:
        every: list[Planned] = []
        for _, row, task in self.rows:
            every += [self.task_stages[task], *self.row_stages(task, row)]
        every += [*self.further_stages(), *self.task_stages.values()]
        return list({stage.name: stage for stage in every}.values())

    def task_inputs(self, config: Any) -> dict[str, Any]:
        """Everything that a task depends on; its files count by name and content."""
        try:
            files = [self.identity(path) for path in self.tasks.task_files(config, self.data)]
        except InputError as error:
            raise InputError(f"{error}; {DATA_ADVICE}") from None
        described = config.model_dump(mode="json", exclude={"folder"})
        named = {k: Path(described[k]).name for k in ("groups", "sources") if described.get(k)}
        return {"task": described | named, "files": files}

    @cached_property
    def task_stages(self) -> dict[str, Planned]:
        """The stages that make the tasks' folders."""
        return {name: self._task_stage(name, task) for name, task in self.config.tasks.items()}

    def _task_stage(self, name: str, config: Any) -> Planned:
        inputs = self.task_inputs(config)
        n_bytes = sum(file["size"] for file in inputs["files"])
        return Planned(
            f"tasks/{slug(name)}", inputs,
            lambda folder: self.tasks.make_task(config, self.data).save(folder),
            f"{size_text(n_bytes)} to read", "task", n_bytes, code=self.task_code,
        )  # fmt: skip

    def task(self, name: str) -> Any:
        """The task, read back from its stage; the last one used is cached."""
        found = self.done(self.task_stages[name])
        if self._loaded is None or self._loaded[0] != found.key:
            self._loaded = (found.key, self.tasks.Task.load(found.path))
        return self._loaded[1]

    def facts(self, name: str) -> dict[str, float]:
        """The sizes of a task."""
        return self.done(self.task_stages[name]).json("facts.json")

    @property
    def files(self) -> dict[str, Any]:
        return {name: stage.inputs["files"] for name, stage in self.task_stages.items()}

    @property
    def seeds(self) -> dict[str, int]:
        tasks = {name: task.seed for name, task in self.config.tasks.items()}
        return {"models": self.config.seed, **tasks}
