"""The description of a clickthrough experiment: one TOML file, checked as a whole before anything
runs.

An experiment has tasks (titles, training pairs, test queries) and tables whose rows are models on a
task, alone or mixed with word matching, beside the numbers of a paper.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from ltr_features.studies.config import Section, refitted, slug
from ltr_features.text.collection import STREAMS
from ssi_models.registry import get_model

Relation = Literal["<", "<=", "~"]


class TaskConfig(Section):
    """Titles, training pairs and test queries of a BEIR folder.

    Attributes:
        folder: relative to the folder of data sets.
        train, test: judgement files (of ``qrels``, without ``.tsv``). Without ``train``, the
            queries of ``test`` are dealt at random: ``train_share`` of them train.
        stream: the text of a document that models read and rank by.
        groups: a file, query id, tab, group, relative to the folder of data sets: test queries that
            belong together and are tested together.
        seed: of the dealing, and of the two halves that tune the mixtures for each other.
    """

    folder: str
    train: str | None = None
    test: str = "test"
    train_share: float = Field(0.5, gt=0, lt=1)
    stream: str = "title"
    stopwords: str = ""
    stemmer: str | None = None
    groups: str | None = None
    seed: int = 0

    @model_validator(mode="after")
    def _fits(self) -> TaskConfig:
        if self.stream not in STREAMS:
            raise ValueError(f"there is no stream {self.stream!r}; use one of {', '.join(STREAMS)}")
        if self.train == self.test:
            raise ValueError("train and test are the same judgements; leave train out to deal them")
        return self


class RowConfig(Section):
    """A model on a task, alone or mixed.

    Attributes:
        label: unique within the table.
        mixed: with the title's own words: the unigram model for models of counts (lambda2 of eq.
            16), the tf-idf cosine for the others. Weights are tuned on the other half.
        paper: what the paper reports for each measure.
    """

    label: str = Field(min_length=1)
    model: str
    params: dict[str, Any] = Field({})
    mixed: bool = False
    paper: tuple[float, ...] = ()
    note: str = ""


class TableConfig(Section):
    """Rows in the paper's order.

    Attributes:
        expectations: (label, relation, label): "<": the second is better, "<=": the second is not
            worse, "~": they do not differ (all: significantly).
        evaluations: labels of rows whose projection's work per iteration is drawn (Figure 2).
    """

    name: str = Field(pattern=r"^[\w-]+$")
    title: str
    task: str
    rows: tuple[RowConfig, ...] = Field(min_length=1)
    expectations: tuple[tuple[str, Relation, str], ...] = ()
    evaluations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _labels_fit(self) -> TableConfig:
        labels = [row.label for row in self.rows]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ValueError(f"table {self.name!r}: two rows have the label {', '.join(twice)}")
        named = {label for low, _, high in self.expectations for label in (low, high)}
        unknown = sorted((named | set(self.evaluations)) - set(labels))
        if unknown:
            raise ValueError(f"table {self.name!r}: there is no row {', '.join(unknown)}")
        return self


class ClickthroughConfig(Section):
    """A whole experiment.

    Attributes:
        repeats: how often each model that learns from judgements is fitted, with other seeds; its
            values are means over the fits, query by query. Tasks are the same in every fit.
        cutoffs: of NDCG; weights are tuned for the last one, which also decides expectations.
        lambda1, lambda2: weights of the collection and of the title's own words that are tried.
        weights: of the tf-idf cosine, for models of tf-idf rows.
        alpha: level of significance, after Holm's correction over a table's expectations.
    """

    kind: Literal["clickthrough"]
    title: str
    introduction: str
    seed: int = 0
    repeats: int = Field(1, ge=1)
    cutoffs: tuple[int, ...] = Field((1, 3, 10), min_length=1)
    lambda1: tuple[float, ...] = Field((0.02, 0.1, 0.2, 0.4, 0.6, 0.8), min_length=1)
    lambda2: tuple[float, ...] = Field((0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9), min_length=1)
    weights: tuple[float, ...] = Field(tuple(i / 20 for i in range(21)), min_length=1)
    alpha: float = Field(0.05, gt=0, lt=1)
    tasks: dict[str, TaskConfig] = Field(min_length=1)
    tables: tuple[TableConfig, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(f"NDCG@{k}" for k in self.cutoffs)

    def params(self, row: RowConfig, fit: int = 0) -> dict[str, Any]:
        """The model's constructor parameters, its seed in the given fit included."""
        kind = get_model(row.model)
        known = inspect.signature(kind).parameters
        # Mixtures with word matching are made, and cross-validated, here.
        alone = {"seed": self.seed, "word_weight": 0.0, "lambda2": 0.0}
        return refitted(kind, {**{k: v for k, v in alone.items() if k in known}, **row.params}, fit)

    def fits_of(self, row: RowConfig) -> int:
        """How often a row's model is fitted: once if every fit would be the same."""
        return self.repeats if self.params(row, 1) != self.params(row) else 1

    @model_validator(mode="after")
    def _parts_fit(self) -> ClickthroughConfig:
        problems = [*self._number_problems(), *self._row_problems()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _number_problems(self) -> Iterator[str]:
        if min(self.cutoffs) < 1 or list(self.cutoffs) != sorted(set(self.cutoffs)):
            yield f"cutoffs must be positive and ascending, got {self.cutoffs}"
        for name in ("lambda1", "lambda2", "weights"):
            if not all(0 <= value <= 1 for value in getattr(self, name)):
                yield f"{name} must be in 0..1, got {getattr(self, name)}"

    def _row_problems(self) -> Iterator[str]:
        for names in ([slug(name) for name in self.tasks], [table.name for table in self.tables]):
            if len(set(names)) < len(names):
                yield f"two tasks or tables share a name: {', '.join(names)}"
        for table in self.tables:
            if table.task not in self.tasks:
                yield f"table {table.name!r}: there is no task {table.task!r}"
            for row in table.rows:
                where = f"table {table.name!r}, row {row.label!r}"
                if row.paper and len(row.paper) != len(self.cutoffs):
                    yield f"{where}: paper has {len(row.paper)} numbers for {self.cutoffs}"
                try:
                    model = get_model(row.model)(**self.params(row))
                    check = getattr(model, "check_params", None)
                    if check is not None:
                        check()
                except (TypeError, ValueError) as error:
                    yield f"{where}: {error}"
