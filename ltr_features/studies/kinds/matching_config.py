"""The description of a matching experiment: one TOML file, checked as a whole before anything runs.

An experiment has tasks (queries, documents, relevant pairs of training and of testing) and tables
whose rows are models on a task, beside the numbers of a paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

from pydantic import Field, model_validator

from ltr_features.studies.config import Section, refitted, slug
from ssi_models.base import MatchingModel
from ssi_models.registry import get_model
from ssi_models.training.trainable import TrainableModel

MEASURES = ("rank_loss", "map", "p10")


class TaskConfig(Section):
    """Queries, documents and relevant pairs.

    "links": articles and hyperlinks, from ``folder/corpus.jsonl.gz`` (_id, text) and
    ``folder/links.tsv`` (source, target). "pairs": line i of ``folder/<part>.<language>`` is the
    translation of line i in the other language, for the parts train, dev and test.

    Attributes:
        split: "links": links are dealt to training and testing; "documents": articles are, and
            links between the two parts are removed.
        train_share: share of the links, or of the articles, that train.
        use_share: share of the training links that is used.
        n_words: the most frequent words make the dictionary; None = all of them.
        min_documents: words of fewer documents are left out.
        heaviest: a text keeps so many words of the largest tf-idf weights; None = all.
        query_words: queries are so many random words of the source article; None = all its words.
        queries_per_article: random queries drawn of an article for training (one for testing).
        n_documents: for "pairs", the training sentences that are ranked beside the test ones.
        n_test_queries, n_triples: what MAP and P@10, and what rank loss, are measured on.
        seed: of the split and of all draws.
    """

    source: Literal["links", "pairs"]
    folder: str
    split: Literal["links", "documents"] = "links"
    train_share: float = Field(0.7, gt=0, lt=1)
    use_share: float = Field(1.0, gt=0, le=1)
    n_words: int | None = Field(None, ge=1)
    min_documents: int = Field(1, ge=1)
    heaviest: int | None = Field(None, ge=1)
    query_words: int | None = Field(None, ge=1)
    queries_per_article: int = Field(1, ge=1)
    n_documents: int = Field(0, ge=0)
    query_language: str = "ja"
    document_language: str = "en"
    n_test_queries: int = Field(1000, ge=2)
    n_triples: int = Field(100_000, ge=2)
    seed: int = 0

    @model_validator(mode="after")
    def _fits(self) -> TaskConfig:
        if self.source == "pairs" and self.query_words is not None:
            raise ValueError("query_words: only queries of the source 'links' are drawn")
        if self.query_words is None and self.queries_per_article > 1:
            raise ValueError("queries_per_article: needs query_words")
        return self


class PaperNumbers(Section):
    """What the paper reports: rank loss in per cent, MAP, P@10; with their standard errors."""

    rank_loss: float | None = None
    map: float | None = None
    map_error: float | None = None
    p10: float | None = None
    p10_error: float | None = None


class RowConfig(Section):
    """A model on a task.

    Attributes:
        label: unique within the table.
        model: a registered name; None for a row that only shows the paper's numbers.
        params: constructor parameters, over those of ``settings``.
        choose: parameter -> values, instead of that of the experiment: every combination is
            trained, and the one with the best validation measure is reported.
        choose_on: what that measure is taken on: "pairs", the model's own held-out pairs or
            queries; "documents", links among training documents that are held out as the documents
            of testing are (the model is then trained again on all of them).
        task: where it is not the table's.
        note: a remark below the table.
    """

    label: str = Field(min_length=1)
    model: str | None = None
    params: dict[str, Any] = Field({})
    choose: dict[str, list[Any]] | None = None
    choose_on: Literal["pairs", "documents"] = "pairs"
    task: str | None = None
    paper: PaperNumbers = PaperNumbers()
    note: str = ""


class TableConfig(Section):
    """Rows in the paper's order.

    Attributes:
        order: chains of labels that the paper (or DESIGN) puts in ascending order of MAP; each
            neighbouring pair is checked.
        notes: what was found out, printed below the table.
    """

    name: str = Field(pattern=r"^[\w-]+$")
    title: str
    task: str
    rows: tuple[RowConfig, ...] = Field(min_length=1)
    order: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _labels_fit(self) -> TableConfig:
        labels = [row.label for row in self.rows]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ValueError(f"table {self.name!r}: two rows have the label {', '.join(twice)}")
        unknown = sorted({label for chain in self.order for label in chain} - set(labels))
        if unknown:
            raise ValueError(f"table {self.name!r}: order names unknown rows {', '.join(unknown)}")
        return self


class ScatterConfig(Section):
    """Average precision of single queries: one row of a table against others (a figure each)."""

    table: str
    model: str
    against: tuple[str, ...] = Field(min_length=1)
    n_queries: int = Field(500, ge=2)


class CurvesConfig(Section):
    """Rank loss of training and test links over epochs, for sizes of training set and of N."""

    task: str
    model: str
    shares: tuple[float, ...] = Field(min_length=1)
    ranks: tuple[int, ...] = Field(min_length=1)
    epochs: int = Field(10, ge=1)
    n_queries: int = Field(300, ge=2)
    params: dict[str, Any] = Field({})
    notes: tuple[str, ...] = ()


class MatchingConfig(Section):
    """A whole experiment.

    Attributes:
        repeats: how often each model that learns from judgements is fitted, with other seeds; its
            values are means over the fits, query by query. Tasks are the same in every fit.
        settings: parameters of every trained model that has them.
        choose: see :class:`RowConfig`, for every trained model.
    """

    kind: Literal["matching"]
    title: str
    introduction: str
    seed: int = 0
    repeats: int = Field(1, ge=1)
    tasks: dict[str, TaskConfig] = Field(min_length=1)
    settings: dict[str, Any] = Field({})
    choose: dict[str, list[Any]] = Field({})
    tables: tuple[TableConfig, ...] = ()
    scatter: ScatterConfig | None = None
    curves: CurvesConfig | None = None
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _parts_fit(self) -> MatchingConfig:
        problems = [*self._name_problems(), *self._model_problems(), *self._figure_problems()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def trials(self, row: RowConfig, fit: int = 0) -> list[dict[str, Any]]:
        """The parameters of each model that is trained for a row, in the given fit."""
        if row.model is None:
            return []
        kind = get_model(row.model)
        given, choose = {"seed": self.seed} if _has(kind, "seed") else {}, row.choose
        if issubclass(kind, TrainableModel):
            given |= {k: v for k, v in self.settings.items() if _has(kind, k)}
            choose = self.choose if choose is None else choose
        choose = choose or {}
        return [
            refitted(kind, {**given, **row.params, **dict(zip(choose, values, strict=True))}, fit)
            for values in product(*choose.values())
        ]

    def fits_of(self, row: RowConfig) -> int:
        """How often a row is fitted: once if every fit would be the same."""
        return self.repeats if self.trials(row, 1) != self.trials(row) else 1

    def _name_problems(self) -> Iterator[str]:
        names = [slug(table.name) for table in self.tables]
        if len(set(names)) < len(names):
            yield "two tables share a name"
        asked = {table.task for table in self.tables}
        asked |= {row.task for table in self.tables for row in table.rows if row.task is not None}
        asked |= {self.curves.task} if self.curves is not None else set()
        if asked - set(self.tasks):
            yield (
                f"there is no task {', '.join(sorted(asked - set(self.tasks)))}; there are "
                f"{', '.join(sorted(self.tasks))}"
            )

    def _model_problems(self) -> Iterator[str]:
        for table in self.tables:
            for row in table.rows:
                where = f"table {table.name!r}, row {row.label!r}"
                task = self.tasks.get(row.task or table.task)
                if row.choose_on == "documents" and task is not None and task.split != "documents":
                    yield f"{where}: choose_on = 'documents' is for tasks that split documents"
                try:
                    kind = None if row.model is None else get_model(row.model)
                except ValueError as error:
                    yield f"{where}: {error}"
                    continue
                if kind is None:
                    if row.params or row.choose:
                        yield f"{where}: parameters without a model"
                    continue
                try:
                    for params in self.trials(row):
                        model = kind(**params)
                        check = getattr(model, "check_params", None)
                        if check is not None:
                            check()
                except (TypeError, ValueError) as error:
                    yield f"{where}: {error}"

    def _figure_problems(self) -> Iterator[str]:
        if self.scatter is not None:
            named = {t.name: {row.label for row in t.rows if row.model} for t in self.tables}
            labels = named.get(self.scatter.table)
            if labels is None:
                yield f"scatter: there is no table {self.scatter.table!r}"
            elif not {self.scatter.model, *self.scatter.against} <= labels:
                yield f"scatter: names rows that table {self.scatter.table!r} does not have"
        if self.curves is not None:
            try:
                kind = get_model(self.curves.model)
                if not issubclass(kind, TrainableModel) or not _has(kind, "rank"):
                    yield f"curves: {self.curves.model!r} is not trained with a rank"
                else:
                    known = {k: v for k, v in self.settings.items() if _has(kind, k)}
                    kind(**{**known, **self.curves.params})
            except (TypeError, ValueError) as error:
                yield f"curves: {error}"


def _has(kind: type[MatchingModel], parameter: str) -> bool:
    return parameter in kind.default_params() or parameter in kind.former_params
