"""What the file of a comparison of rankers may say."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from letor.measures import parse_measure
from letor.rankers.registry import get_ranker
from letor.tuning import GRIDS
from ltr_features.studies.config import Section


class SchemeConfig(Section):
    """Folds.

    Attributes:
        official: those of the data set.
        k: seeded parts by query in the same rotation, queries without relevant rows evenly spread.
        seed: of the parts.
    """

    name: str
    official: bool = False
    k: int = Field(default=10, ge=3)
    seed: int = Field(default=0, ge=0)


class RankerConfig(Section):
    """A ranker.

    Attributes:
        ranker: a name of :mod:`letor.rankers.registry`. params: its fixed parameters.
        grid: what validation rows choose from, parameter -> values; by default the ranker's own.
    """

    label: str
    ranker: str
    params: dict[str, Any] = Field({})
    grid: dict[str, list[Any]] | None = None

    @model_validator(mode="after")
    def _known(self) -> RankerConfig:
        ranker = get_ranker(self.ranker)()
        ranker.set_params(**{**self.params, **(self.grid or {})})
        if self.grid is None and self.ranker not in GRIDS:
            raise ValueError(f"ranker {self.ranker!r} has no default grid; give one")
        return self


class ReferenceConfig(Section):
    """A row of numbers from elsewhere, shown below ours: values by name of a measure."""

    scheme: str
    label: str
    values: dict[str, float]


class ExpectedConfig(Section):
    """The mean that a ranker should have; the report says where it has not."""

    scheme: str
    ranker: str
    measure: str
    value: float
    tolerance: float = Field(ge=0)


class StudyConfig(Section):
    """A file of the kind "letor".

    Attributes:
        folder: LETOR files with folds, see :func:`letor.fold_files.read_folds`. n_columns: theirs.
        groups: a file in the folder of data sets, query id, tab, group: queries that belong
            together and are tested together.
        repeats: how often each ranker is fitted, with other seeds and, where a scheme deals them,
            on other folds; a ranker without a seed on official folds is the same in every fit.
        tune_measure: of validation rows. measures: what the report calls each, and its name.
        baseline: label of the ranker that others are compared with.
        compare_measures: those that are tested.
    """

    kind: Literal["letor"]
    title: str
    introduction: str = ""
    folder: str
    groups: str | None = None
    repeats: int = Field(default=1, ge=1)
    n_columns: int | None = None
    schemes: list[SchemeConfig] = Field(min_length=1)
    rankers: list[RankerConfig] = Field(min_length=1)
    tune_measure: str = "ndcg@10"
    measures: dict[str, str] = Field(min_length=1)
    baseline: str
    compare_measures: list[str] = Field(min_length=1)
    n_permutations: int = Field(default=10_000, ge=1)
    references: list[ReferenceConfig] = Field([])
    expected: list[ExpectedConfig] = Field([])
    notes: list[str] = Field([])

    @model_validator(mode="after")
    def _consistent(self) -> StudyConfig:
        for text in [self.tune_measure, *self.measures.values()]:
            parse_measure(text)
        labels = [ranker.label for ranker in self.rankers]
        if len(set(labels)) < len(labels):
            raise ValueError("rankers: labels must differ")
        if self.baseline not in labels:
            raise ValueError(f"baseline {self.baseline!r} is no ranker; there are {labels}")
        unknown = [name for name in self.compare_measures if name not in self.measures]
        if unknown:
            raise ValueError(f"compare_measures: {unknown[0]!r} is not among the measures")
        for where, names in self._mentioned():
            for name, known in names:
                if name not in known:
                    raise ValueError(f"{where}: {name!r} is none of {list(known)}")
        return self

    def _mentioned(self) -> Iterator[tuple[str, list[tuple[str, Collection[str]]]]]:
        """Names in references and expected numbers, each with those that there are."""
        schemes = [scheme.name for scheme in self.schemes]
        labels = [ranker.label for ranker in self.rankers]
        for i, row in enumerate(self.references):
            measures = [(name, self.measures) for name in row.values]
            yield f"references.{i}", [(row.scheme, schemes), *measures]
        for i, one in enumerate(self.expected):
            names = [(one.scheme, schemes), (one.ranker, labels), (one.measure, self.measures)]
            yield f"expected.{i}", names
