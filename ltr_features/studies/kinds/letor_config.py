"""The typed configuration of a comparison of rankers on a LETOR data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from letor.column_names import chosen_columns
from letor.errors import InputError
from letor.measures import parse_measure
from letor.rankers.base import Ranker
from letor.rankers.registry import get_ranker
from letor.tuning import GRIDS
from ltr_base.names import repeated
from ltr_features.studies.config import (
    Repeats,
    Section,
    folder_problems,
    no_such,
    refitted,
    too_large_seed,
)
from ltr_features.studies.kinds.sections import FamilyConfig

#: Columns that give the place of a trained ranker in the report's tables.
PLACE = ("scheme", "fit", "fold", "ranker")


class SchemeConfig(Section):
    """A way to make folds.

    Attributes:
        official: use the folds of the data set.
        k: otherwise, number of random parts, in the same rotation as the official ones; queries
            without relevant rows are spread evenly. seed: of the random parts.
    """

    name: str
    official: bool = False
    k: int = Field(default=10, ge=3)
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_way(self) -> SchemeConfig:
        if self.official and self.model_fields_set & {"k", "seed"}:
            raise ValueError(
                "k and seed are for random folds, not for official ones: leave them out"
            )
        return self


class RankerConfig(Section):
    """A ranker on all columns or some of them.

    Attributes:
        ranker: a name in :mod:`letor.rankers.registry`. params: its fixed parameters.
        grid: parameter -> values to choose from on validation rows; by default the ranker's grid.
        columns: names of the columns that it sees, all by default. without: columns that it does
            not see.
    """

    label: str
    ranker: str
    columns: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    params: dict[str, Any] = Field({})
    grid: dict[str, list[Any]] | None = None

    @model_validator(mode="after")
    def _known(self) -> RankerConfig:
        ranker = get_ranker(self.ranker)().set_params(**self.params)
        ranker.check()
        for name, values in (self.grid or {}).items():
            if name in self.params:
                raise ValueError(f"{name} is in params and in grid: leave it out of one of them")
            if not values:
                raise ValueError(f"grid.{name} has no values: name some, or leave it out")
            if twice := repeated(map(repr, values)):  # each would be trained twice
                raise ValueError(f"grid.{name} has {twice[0]} more than once: leave one out")
            for value in values:
                ranker.set_params(**{name: value}).check()
        if self.grid is None and self.ranker not in GRIDS:
            raise ValueError(f"ranker {self.ranker!r} has no default grid; give one")
        return self

    @property
    def trials(self) -> list[Ranker]:
        """A ranker for each combination of parameters that is tried."""
        grid = GRIDS[self.ranker] if self.grid is None else self.grid
        tried = {name: values for name, values in grid.items() if name not in self.params}
        kind, combinations = get_ranker(self.ranker), product(*tried.values())
        return [
            kind().set_params(**self.params, **dict(zip(tried, values, strict=True)))
            for values in combinations
        ]

    def refitted(self, fit: int) -> dict[str, Any]:
        """The fixed parameters in one of several fits, see ``studies.config.refitted``."""
        return refitted(get_ranker(self.ranker), self.params, fit)

    def chosen(self, known: Sequence[str]) -> list[str]:
        """The columns that the ranker sees, among the known ones.

        Raises:
            InputError: see :func:`letor.column_names.chosen_columns`.
        """
        try:
            return chosen_columns(known, self.columns, self.without)
        except InputError as error:
            raise InputError(f"ranker {self.label!r}: {error}") from None


class ReferenceConfig(Section):
    """A row of numbers published elsewhere, shown below ours; ``values`` by name of a measure."""

    scheme: str
    label: str
    values: dict[str, float]


class ExpectedConfig(Section):
    """The mean that a ranker should reproduce within a tolerance; the report checks it."""

    scheme: str
    ranker: str
    measure: str
    value: float
    tolerance: float = Field(ge=0)


class StudyConfig(Section):
    """A file of the kind "letor".

    Attributes:
        folder: LETOR files, see :func:`letor.fold_files.read_folds`; or one file, with schemes that
            deal its queries into folds. n_columns: of these files.
        non_finite: "nan" reads values that are not finite as missing; by default they are errors.
        columns: further columns, of families that need no texts (scores, vectors, numbers), joined
            by query id and ``#docid``; a ranker that should not see them names them in ``without``.
        queries: texts of the queries, for tables and for kinds of queries, see
            :func:`~ltr_features.sources.files.read_queries`.
        groups: of the queries (id, tab, group); queries of one group are tested together, and are
            in one part of random folds. By default, queries of the same text are a group.
        query_classes: further kinds of queries, see
            :func:`~ltr_features.sources.query_files.read_query_classes`.
        sources: documents that queries were made from, see
            :func:`~ltr_features.sources.query_files.read_query_sources`; told with the verdict.
        repeats: number of fits of each ranker, with different seeds and, unless the folds are
            official, different folds; a ranker without a seed on official folds is fitted once.
        schemes: the official folds by default, which are those of the files.
        tune_measure: measure on validation rows. measures: label in the report -> measure.
        baseline: label of the ranker that others are compared with; the first by default.
        compare_measures: labels of the measures that are tested, all by default; the first one
            gives the verdict.
        hard_by: label of the ranker that chooses hard queries, which is not compared itself, such
            as AdaRank with ``n_rounds = 1``, the best single column; none by default.
        hard_measure: label of the measure that decides which queries are hard; the first tested one
            by default.
    """

    kind: Literal["letor"]
    title: str
    introduction: str = ""
    folder: str
    queries: str | None = None
    groups: str | None = None
    sources: str | None = None
    query_classes: str | None = None
    repeats: Repeats = 1
    n_columns: int | None = None
    non_finite: Literal["raise", "nan"] = "raise"
    columns: list[FamilyConfig] = Field([])
    schemes: list[SchemeConfig] = Field(
        [SchemeConfig(name="official folds", official=True)], min_length=1
    )
    rankers: list[RankerConfig] = Field(min_length=1)
    tune_measure: str = "ndcg@10"
    measures: dict[str, str] = Field({"NDCG@10": "ndcg@10", "MAP": "map"}, min_length=1)
    baseline: str = ""
    compare_measures: list[str] = Field([])
    hard_by: str | None = None
    hard_measure: str = ""
    n_permutations: int = Field(default=10_000, ge=1)
    references: list[ReferenceConfig] = Field([])
    expected: list[ExpectedConfig] = Field([])
    notes: list[str] = Field([])

    @field_validator("tune_measure", "measures")
    @classmethod
    def _known_measures(cls, given: Any) -> Any:
        for text in [given] if isinstance(given, str) else given.values():
            parse_measure(text)
        return given

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, given: Any) -> Any:
        """Put in the baseline and the measures if they are left out."""
        found = dict(given)
        with suppress(KeyError, IndexError, TypeError):  # told by the checks of the fields
            found.setdefault("baseline", found["rankers"][0]["label"])
        with suppress(IndexError, KeyError, TypeError):
            measures = found.get("measures", cls.model_fields["measures"].default)
            found.setdefault("compare_measures", list(measures))
            if found.get("hard_by") is not None:
                found.setdefault("hard_measure", found["compare_measures"][0])
        return found

    @property
    def compared(self) -> list[str]:
        """Labels of the rankers that are compared with the baseline."""
        apart = (self.baseline, self.hard_by)
        return [ranker.label for ranker in self.rankers if ranker.label not in apart]

    def problems(self) -> Iterator[str]:
        for ranker in self.rankers:
            last = ranker.refitted(self.repeats - 1).get("seed", 0)
            yield from too_large_seed(
                f"rankers, {ranker.label!r}", last, "the ranker and of its last fit"
            )
            if self.repeats > 1 and "seed" in (ranker.grid or {}):
                yield (
                    f"rankers, {ranker.label!r}: seed is in grid, and each of several fits has a "
                    "seed of its own: leave it out of grid"
                )
        labels = [ranker.label for ranker in self.rankers]
        schemes = [scheme.name for scheme in self.schemes]
        yield from folder_problems("rankers", labels)
        yield from folder_problems("schemes", schemes)
        yield from no_such("baseline", "ranker", [self.baseline], labels)
        yield from no_such("hard_by", "ranker", [self.hard_by], labels)
        if self.hard_by == self.baseline:
            yield "hard_by: the baseline cannot choose the hard queries"
        elif self.hard_by is not None and not self.compared:
            yield "hard_by: besides it and the baseline no ranker is left to compare"
        if self.hard_by is not None:
            yield from no_such("hard_measure", "measure", [self.hard_measure], self.measures)
        elif self.hard_measure:
            yield "hard_measure: no ranker chooses hard queries; name one by hard_by"
        for name in sorted({*PLACE, "qid", "validation"} & self.measures.keys()):
            yield f"measures: {name} is another column of the tables; give the measure another name"
        if "n_permutations" in self.model_fields_set and not self.compared:
            yield "n_permutations: no ranker is compared with the baseline; leave it out"
        yield from no_such("compare_measures", "measure", self.compare_measures, self.measures)
        known = (name for name in self.compare_measures if name in self.measures)
        tested = [parse_measure(self.measures[name]) for name in known]
        if len(set(tested)) < len(tested):
            yield "compare_measures: two of them are the same measure: leave one out"
        for i, row in enumerate(self.references):
            yield from no_such(f"references.{i}", "scheme", [row.scheme], schemes)
            yield from no_such(f"references.{i}", "measure", row.values, self.measures)
        for i, mean in enumerate(self.expected):
            yield from no_such(f"expected.{i}", "scheme", [mean.scheme], schemes)
            yield from no_such(f"expected.{i}", "ranker", [mean.ranker], labels)
            yield from no_such(f"expected.{i}", "measure", [mean.measure], self.measures)
