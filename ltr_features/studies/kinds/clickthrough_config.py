"""The typed configuration of a clickthrough experiment, checked as a whole before anything runs.

An experiment has tasks (titles, training pairs, test queries) and tables whose rows are models on a
task, alone or mixed with word matching, compared with the numbers of a paper.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from letor.errors import InputError
from ltr_base.names import repeated
from ltr_features.studies.config import no_such, refitted
from ltr_features.studies.kinds.sections import TextConfig
from ltr_features.studies.kinds.task_tables import RowSection, TableSection, TablesSection
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import FIELDS, FORMER_KEYS
from ltr_features.text.letter_ngrams import Kind
from ssi_models.registry import find_model, get_model
from ssi_models.topics.language_model import LanguageModel

Relation = Literal["<", "<=", "~"]


class TaskConfig(TextConfig):
    """Titles, training pairs and test queries of a BEIR folder, and how texts become words.

    Attributes:
        folder: relative to the data folder.
        train, test: judgement files (in ``qrels``, without ``.tsv``). Without ``train``, the
            queries of ``test`` are split at random: ``train_share`` of them are used for training.
        field: text field of a document that models read and rank by.
        terms: what is counted, "words" or "letter-trigrams", which misspelled words share with
            those that are meant.
        groups: file of query id, tab, group, relative to the data folder; by default, the groups
            of the folder's queries. Queries of one group, or of the same text, are dealt to
            training, testing and each half together, held out together, and tested together.
            Test queries must have a group; a training query without one is alone.
        sources: the documents that queries were made from, which are not ranked for them: file of
            query id, tab, document id, relative to the data folder, or "same-id"; by default, the
            sources of the folder's queries.
        seed: of that split, and of the two halves on which mixtures are tuned for each other.
    """

    former_keys: ClassVar[Mapping[str, str]] = FORMER_KEYS

    folder: str
    train: str | None = None
    test: str = "test"
    train_share: float = Field(0.5, gt=0, lt=1)
    field: str = "title"
    terms: Kind = "words"
    groups: str | None = None
    sources: str | None = None
    seed: int = Field(0, ge=0)

    def problems(self) -> Iterator[str]:
        yield from no_such("field", "field", [self.field], FIELDS)
        if self.train == self.test:
            yield "train and test are the same judgements; leave train out to deal them"
        if self.train is not None and "train_share" in self.model_fields_set:
            yield "train_share: only without train are the queries of test dealt; leave one out"
        try:
            self.analyzer  # noqa: B018  # raises for invalid values
        except InputError as error:
            yield str(error)

    @property
    def analyzer(self) -> Analyzer:
        given = self.model_dump(include=set(TextConfig.model_fields))
        return Analyzer(**{**given, "stopwords": self.stopwords or ()})


class RowConfig(RowSection):
    """A model on a task, alone or mixed.

    Attributes:
        mixed: whether it is mixed with matching of the title's own words: by the unigram model for
            models of counts (lambda2 of eq. 16), by the tf-idf cosine for other models. Weights are
            tuned on the other half of the test queries.
        paper: the paper's number for each measure.
    """

    model: str
    mixed: bool = False
    paper: tuple[float, ...] = ()


class TableConfig(TableSection):
    """A table with its rows in the paper's order.

    Attributes:
        expectations: (label, relation, label): "<": the second is significantly better, "<=": not
            significantly worse, "~": not significantly different.
        evaluations: labels of rows whose projection's work per iteration is drawn (Figure 2).
    """

    rows: tuple[RowConfig, ...] = Field(min_length=1)
    expectations: tuple[tuple[str, Relation, str], ...] = ()
    evaluations: tuple[str, ...] = ()

    @property
    def mentioned(self) -> set[str]:
        named = {label for low, _, high in self.expectations for label in (low, high)}
        return named | set(self.evaluations)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        for low in [low for low, _, high in self.expectations if low == high]:
            yield f"expectations: {low!r} is compared with itself"
        for claim in repeated(f"{low!r} {is_} {high!r}" for low, is_, high in self.expectations):
            yield f"expectations: {claim} is there twice; leave one out"
        for row in self.rows:
            kind = find_model(row.model)
            known = {} if kind is None else inspect.signature(kind).parameters
            if row.label in self.evaluations and kind and "max_evaluations" not in known:
                yield f"evaluations: {row.model!r} of row {row.label!r} has no projection"


class ClickthroughConfig(TablesSection):
    """A whole experiment.

    Attributes:
        cutoffs: of NDCG; weights are tuned for the last one, which also decides expectations.
        lambda1, lambda2: tried weights of the collection and of the title's own words.
        weights: tried weights of the tf-idf cosine, for models of tf-idf rows.
        alpha: level of significance, after Holm's correction over a table's expectations.
    """

    kind: Literal["clickthrough"]
    cutoffs: tuple[int, ...] = Field((1, 3, 10), min_length=1)
    lambda1: tuple[float, ...] = Field((0.02, 0.1, 0.2, 0.4, 0.6, 0.8), min_length=1)
    lambda2: tuple[float, ...] = Field((0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9), min_length=1)
    weights: tuple[float, ...] = Field(tuple(i / 20 for i in range(21)), min_length=1)
    alpha: float = Field(0.05, gt=0, lt=1)
    tasks: dict[str, TaskConfig] = Field(min_length=1)
    tables: tuple[TableConfig, ...] = Field(min_length=1)

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(f"NDCG@{k}" for k in self.cutoffs)

    def trials(self, row: RowConfig, fit: int = 0) -> list[dict[str, Any]]:
        kind = get_model(row.model)
        known = inspect.signature(kind).parameters
        # Models are fitted without word matching: the study mixes and cross-validates them itself.
        alone = {"seed": self.seed, "word_weight": 0.0, "lambda2": 0.0}
        params = {**{k: v for k, v in alone.items() if k in known}, **row.params}
        return [refitted(kind, params, fit)]

    def problems(self) -> Iterator[str]:
        if min(self.cutoffs) < 1 or list(self.cutoffs) != sorted(set(self.cutoffs)):
            yield f"cutoffs must be positive and ascending, got {self.cutoffs}"
        for name in ("lambda1", "lambda2", "weights"):
            if not all(0 <= value <= 1 for value in getattr(self, name)):
                yield f"{name} must be in 0..1, got {getattr(self, name)}"
        yield from self._unused()
        yield from super().problems()

    def _unused(self) -> Iterator[str]:
        """Problems of options that nothing of the experiment takes."""
        rows = [(find_model(row.model), row.mixed) for table in self.tables for row in table.rows]
        of_counts = [mixed for kind, mixed in rows if kind and issubclass(kind, LanguageModel)]
        of_rows = [mixed for kind, mixed in rows if kind and not issubclass(kind, LanguageModel)]
        takers = {
            "lambda1": ("a row with a model of counts", bool(of_counts)),
            "lambda2": ("a mixed row with a model of counts", any(of_counts)),
            "weights": ("a mixed row with another model", any(of_rows)),
            "alpha": ("expectations", any(table.expectations for table in self.tables)),
        }
        every_model_known = all(kind is not None for kind, _ in rows)
        for name, (taker, is_there) in takers.items():
            if name in self.model_fields_set and every_model_known and not is_there:
                yield f"{name}: no table has {taker}, which alone would use it; leave it out"

    def row_problems(self, row: RowConfig, task: str) -> Iterator[str]:
        if row.paper and len(row.paper) != len(self.cutoffs):
            yield f"paper has {len(row.paper)} numbers for {self.cutoffs}"
        kind = find_model(row.model)
        if kind is not None and issubclass(kind, LanguageModel):
            for name in sorted({*kind.scoring_params} & row.params.keys() - {"threads"}):
                yield (
                    f"{name}: the experiment mixes P(w|C), the title and the model (eq. 15, 16) by "
                    "weights that it tunes, of its own lambda1 and lambda2; leave it out"
                )
        yield from super().row_problems(row, task)
