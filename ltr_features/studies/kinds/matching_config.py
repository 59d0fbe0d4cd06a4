"""The typed configuration of a matching experiment, checked as a whole before anything runs.

An experiment has tasks (queries, documents, relevant pairs for training and testing) and tables
whose rows are models on a task, compared with the numbers of a paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Annotated, Any, Literal

from pydantic import Field

from ltr_base.names import nearest, repeated
from ltr_features.studies.config import Section, no_such, refitted
from ltr_features.studies.kinds.task_tables import RowSection, TableSection, TablesSection
from ltr_features.text.collection import FIELDS
from ltr_features.text.letter_ngrams import Kind
from ssi_models.base import MatchingModel
from ssi_models.registry import find_model, get_model
from ssi_models.training.trainable import TrainableModel


class TaskConfig(Section):
    """Queries, documents and relevant pairs.

    "links": articles and hyperlinks, from ``folder/corpus.jsonl`` (_id, title, text) and
    ``folder/links.tsv`` (ids of source and target), which may be compressed. "pairs": line i of
    ``folder/<part>.<language>`` is the translation of line i in the other language, for the parts
    train, dev and test.

    Attributes:
        fields: fields of an article that are read, as of the source ``beir``; "body" is its text.
        split: what is divided at random into training and testing: "links"; "linked-pairs", so
            that a link and its reverse stay together, if links have no direction; or "documents",
            in which case links between the two parts are removed.
        train_share: share of the links, or of the articles, used for training.
        use_share: share of the training pairs that models learn from. Test queries, and what is
            known of them, are those of all training pairs.
        n_words: number of most frequent words in the dictionary; by default all.
        cjk_bigrams: take pairs of neighbouring characters as words of Chinese and Japanese.
        terms: what is counted, "words" or "letter-trigrams", which names, compounds and inflected
            words share; "words" in other options are trigrams then.
        min_documents: words that occur in fewer documents are left out.
        heaviest: number of words with the largest tf-idf weights that a text keeps; by default all.
        query_words: number of random words of the source article in a query; by default all.
        queries_per_article: random queries per article for training (one for testing).
        n_documents: for "pairs", number of training sentences ranked along with the test ones.
        n_test_queries, n_triples: sample sizes for MAP and P@10, and for rank loss.
        seed: of the split and of all draws.
    """

    source: Literal["links", "pairs"]
    folder: str
    fields: tuple[str, ...] = ("title", "body")
    split: Literal["links", "linked-pairs", "documents"] = "links"
    train_share: float = Field(0.7, gt=0, lt=1)
    use_share: float = Field(1.0, gt=0, le=1)
    n_words: int | None = Field(None, ge=1)
    cjk_bigrams: bool = False
    terms: Kind = "words"
    min_documents: int = Field(1, ge=1)
    heaviest: int | None = Field(None, ge=1)
    query_words: int | None = Field(None, ge=1)
    queries_per_article: int = Field(1, ge=1)
    n_documents: int = Field(0, ge=0)
    query_language: str = "ja"
    document_language: str = "en"
    n_test_queries: int = Field(1000, ge=2)
    n_triples: int = Field(100_000, ge=2)
    seed: int = Field(0, ge=0)

    def problems(self) -> Iterator[str]:
        for name in sorted(self.model_fields_set & _ONLY_OF[self.source]):
            yield f"{name}: has no meaning for the source {self.source!r}; leave it out"
        if self.query_words is None and self.queries_per_article > 1:
            yield "queries_per_article: needs query_words"
        if self.query_words is not None and self.terms != "words":
            yield "query_words: draws words; leave terms out"
        if not self.fields:
            yield f"fields: name one or more of {', '.join(FIELDS)}"
        yield from no_such("fields", "field", self.fields, FIELDS)

    def asks_as(self, other: TaskConfig) -> bool:
        """Whether the test queries and their answers are those of another task, so that results
        can be compared query by query."""
        deciding = _ASKED if self.query_words is None else (*_ASKED, *_DRAWN_FROM)
        return all(getattr(self, name) == getattr(other, name) for name in deciding)


#: Options of a task that only the other source has.
_ONLY_OF: Mapping[str, set[str]] = {
    "pairs": {"fields", "split", "train_share", "query_words", "queries_per_article"},
    "links": {"query_language", "document_language", "n_documents"},
}
#: Options that decide which queries and answers a task tests.
_ASKED = (
    "source", "folder", "fields", "split", "train_share", "query_words", "queries_per_article",
    "query_language", "document_language", "n_test_queries", "seed",
)  # fmt: skip
#: Options that decide from which words those of queries are drawn.
_DRAWN_FROM = ("n_words", "cjk_bigrams", "min_documents")


class PaperNumbers(Section):
    """Numbers reported in the paper: rank loss in per cent, MAP, P@10; with standard errors."""

    rank_loss: float | None = None
    map: float | None = None
    map_error: float | None = None
    p10: float | None = None
    p10_error: float | None = None


class RowConfig(RowSection):
    """A model on a task.

    Attributes:
        model: a registered name; left out in a row that only shows the paper's numbers.
        params: parameters that override ``settings``.
        choose: parameter -> values, instead of the experiment's ``choose``: every combination is
            trained, and the one with the best validation measure is reported.
        choose_on: data of the validation measure: "pairs", the model's own held-out pairs or
            queries; "documents", links among training documents held out in the same way as test
            documents (the reported model is trained on all training documents).
        task: name of the task; the table's by default.
    """

    choose: dict[str, Annotated[list[Any], Field(min_length=1)]] | None = None
    choose_on: Literal["pairs", "documents"] = "pairs"
    task: str | None = Field(default=None, min_length=1)
    paper: PaperNumbers = PaperNumbers()


class TableConfig(TableSection):
    """A table with its rows in the paper's order.

    Attributes:
        order: chains of labels in ascending order of MAP according to the paper; each
            neighbouring pair is checked.
    """

    rows: tuple[RowConfig, ...] = Field(min_length=1)
    order: tuple[tuple[str, ...], ...] = ()

    @property
    def mentioned(self) -> set[str]:
        return {label for chain in self.order for label in chain}

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        untested = {row.label for row in self.rows if row.model is None}
        for label in sorted(untested & self.mentioned):
            yield f"order: row {label!r} has no model, so there is nothing to test"
        for chain in self.order:
            if len(chain) < 2:
                yield f"order: {list(chain)} claims nothing; name two rows or more"
            for label in {low for low, high in pairwise(chain) if low == high}:
                yield f"order: {label!r} is compared with itself"
        pairs = (pair for chain in self.order for pair in pairwise(chain))
        for claim in repeated(f"{low!r} below {high!r}" for low, high in pairs):
            yield f"order: {claim} is there twice; leave one out"


class ScatterConfig(Section):
    """Scatter plots of average precision by query: one row of a table against each of others."""

    table: str
    model: str
    against: tuple[str, ...] = Field(min_length=1)
    n_queries: int = Field(500, ge=2)


class CurvesConfig(Section):
    """Rank loss of training and test links over epochs, for several training set sizes and N."""

    task: str
    model: str
    shares: tuple[Annotated[float, Field(gt=0, le=1)], ...] = Field(min_length=1)
    ranks: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=1)
    epochs: int = Field(10, ge=1)
    n_queries: int = Field(300, ge=2)
    params: dict[str, Any] = Field({})
    notes: tuple[str, ...] = ()


class MatchingConfig(TablesSection):
    """A whole experiment.

    Attributes:
        settings: parameters of every model that is trained in epochs and accepts them; rows of
            others (``lsi``, ``cl-lsa``, ...) have all theirs in ``params``.
        choose: see :class:`RowConfig`, for every model that is trained in epochs.
    """

    kind: Literal["matching"]
    tasks: dict[str, TaskConfig] = Field(min_length=1)
    settings: dict[str, Any] = Field({})
    choose: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field({})
    tables: tuple[TableConfig, ...] = ()
    scatter: ScatterConfig | None = None
    curves: CurvesConfig | None = None

    def trials(self, row: RowConfig, fit: int = 0) -> list[dict[str, Any]]:
        if row.model is None:
            return []
        kind = get_model(row.model)
        given, choose = {"seed": self.seed} if _has(kind, "seed") else {}, self.chosen(row)
        if issubclass(kind, TrainableModel):
            given |= {k: v for k, v in self.settings.items() if _has(kind, k)}
        return [
            refitted(kind, {**given, **row.params, **dict(zip(choose, values, strict=True))}, fit)
            for values in product(*choose.values())
        ]

    def chosen(self, row: RowConfig) -> dict[str, list[Any]]:
        """The values that a row's parameters are chosen from: its own or the experiment's."""
        kind = None if row.model is None else find_model(row.model)
        if row.choose is not None or kind is None or not issubclass(kind, TrainableModel):
            return row.choose or {}
        return self.choose

    def row_problems(self, row: RowConfig, task: str) -> Iterator[str]:
        if row.model is None and (row.params or row.choose):
            yield "parameters without a model"
        for name in sorted(row.params.keys() & self.chosen(row).keys()):
            yield (
                f"{name} is in params and in choose: leave it out of one of them, or give the row "
                "a choose of its own, such as choose = {}"
            )
        split = self.tasks[task].split if task in self.tasks else "documents"
        if row.choose_on == "documents" and split != "documents":
            yield "choose_on = 'documents' needs a task with split = 'documents'"
        mistakes = list(super().row_problems(row, task))
        yield from mistakes
        if row.model is not None and not mistakes and task in self.tasks:
            yield from self._misfits(get_model(row.model)(**self.trials(row)[0]), task)

    def _misfits(self, model: MatchingModel, task: str) -> Iterator[str]:
        """Why a model cannot be fitted on a task."""
        if model.inputs != "tf-idf":
            yield (
                f"{model.name!r} learns from counts of words, and tasks have tf-idf rows; give it "
                'an experiment of kind = "clickthrough"'
            )
        elif self.tasks[task].source == "pairs" and model.same_words:
            # Of equally many words, column j would silently be taken for one word.
            separate = "give the model 'cross-language'"
            if "vocabularies" in model.default_params():
                separate = 'set vocabularies = "separate"'
            yield (
                f"{model.name!r} takes queries and documents to have the same words, those of task "
                f"{task!r} are of two languages; {separate}"
            )

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.scatter is not None:
            yield from self._scatter_problems(self.scatter)
        if self.curves is not None:
            yield from self._curve_problems(self.curves)
        names = {row.model for table in self.tables for row in table.rows if row.model}
        names |= {self.curves.model} if self.curves else set()
        kinds = [kind for name in names if (kind := find_model(name)) is not None]
        known = {p for k in kinds if issubclass(k, TrainableModel) for p in _parameters_of(k)}
        for name in self.settings.keys() - known:
            yield f"settings: no trained model has a parameter {name!r}; {nearest(name, known)}"
        rows = [row for table in self.tables for row in table.rows]
        takes = [self.chosen(row) is self.choose for row in rows]
        if self.choose and len(kinds) == len(names) and not any(takes):
            yield "choose: every trained model has a choose of its own, or none is trained"

    def _scatter_problems(self, scatter: ScatterConfig) -> Iterator[str]:
        table = next((t for t in self.tables if t.name == scatter.table), None)
        if table is None:
            yield from no_such("scatter", "table", [scatter.table], [t.name for t in self.tables])
            return
        tasks = {row.label: self.tasks.get(table.task_of(row)) for row in table.rows if row.model}
        drawn = (scatter.model, *scatter.against)
        if unknown := [*no_such("scatter", "row with a model", drawn, tasks)]:
            yield from unknown
            return
        first, *others = (task for label in drawn if (task := tasks[label]) is not None)
        if not all(task.asks_as(first) for task in others):
            yield "scatter: the rows are of tasks with other test queries"

    def _curve_problems(self, curves: CurvesConfig) -> Iterator[str]:
        for name in ("shares", "ranks"):
            if twice := repeated(f"{value:g}" for value in getattr(curves, name)):
                yield f"curves: {name} has {', '.join(twice)} twice: leave one out"
        yield from no_such("curves", "task", [curves.task], self.tasks)
        if "rank" in curves.params:
            yield "curves: params have a rank, but ranks say which are trained: leave it out"
        try:
            kind = get_model(curves.model)
            if not issubclass(kind, TrainableModel) or not _has(kind, "rank"):
                yield f"curves: {curves.model!r} is not trained with a rank"
                return
            known = {k: v for k, v in self.settings.items() if _has(kind, k)}
            model = kind(**{**known, **curves.params})
        except (TypeError, ValueError) as error:
            yield f"curves: {error}"
            return
        if curves.task in self.tasks:
            yield from (f"curves: {problem}" for problem in self._misfits(model, curves.task))


def _parameters_of(kind: type[MatchingModel]) -> set[str]:
    """The names, also former ones, of a model's parameters."""
    return {*kind.default_params(), *kind.former_params}


def _has(kind: type[MatchingModel], parameter: str) -> bool:
    return parameter in _parameters_of(kind)
