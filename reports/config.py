"""The description of an experiment: one TOML file, checked as a whole before anything runs."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from letor.errors import InputError
from letor.rankers.lambdamart import LambdaMART
from ltr_features.columns.registry import get_family
from reports.measures import get_measure
from ssi_models.ssi.low_rank import LowRankSSI


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CollectionConfig(_Section):
    """Where documents, queries and judgements come from."""

    source: Literal["wikipedia-sections"]
    dump: str | None = None  # None: the excerpt that gensim ships
    words_per_query: int = Field(10, ge=1)
    min_words: int = Field(40, ge=1)
    min_document_frequency: int = Field(5, ge=1)


class TextConfig(_Section):
    """Parameters of :class:`ltr_features.text.Analyzer`."""

    stopwords: str = ""
    stemmer: str | None = None


class SplitConfig(_Section):
    """One way to separate training from test queries; each becomes a study of the report."""

    name: str = Field(pattern=r"^[\w-]+$")  # part of paths
    title: str
    description: str
    by: Literal["query", "group"]
    folds: int = Field(5, ge=4)  # at least two parts train, so that scores can be out of fold


class SystemConfig(_Section):
    """A system: a single column as score, or a ranker on column families.

    ``turn`` deals the parts that a fold trains and validates on anew: they are rotated by so many
    places. The test part stays, so that systems of different turns are rankers trained on
    different queries and tested on the same ones.
    """

    name: str
    description: str
    score: str | None = None
    columns: tuple[str, ...] = ()
    seed: int = 0
    turn: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _one_kind(self) -> SystemConfig:
        if (self.score is None) == (not self.columns):
            raise ValueError(f"system {self.name!r}: give either score or columns")
        return self


class EvaluationConfig(_Section):
    """Measures (the first is the primary one), comparisons and hard queries."""

    measures: tuple[str, ...] = Field(min_length=1)
    comparisons: tuple[tuple[str, str], ...] = Field(min_length=1)
    hard_baseline: str
    hard_systems: tuple[str, ...]
    hard_selectors: tuple[str, ...]
    hard_control: str
    hard_measure: str = "NDCG@20"
    n_permutations: int = Field(10_000, ge=1)
    alpha: float = Field(0.05, gt=0, lt=1)


class ExperimentConfig(_Section):
    """A whole experiment."""

    title: str
    introduction: str
    seed: int = 0
    collection: CollectionConfig
    text: TextConfig = TextConfig()
    candidate_depth: int = Field(100, ge=1)
    families: tuple[str, ...]
    tfidf_min_document_frequency: int = Field(1, ge=1)
    ssi: dict[str, Any]
    ranker: dict[str, Any]
    splits: tuple[SplitConfig, ...] = Field(min_length=1)
    systems: tuple[SystemConfig, ...] = Field(min_length=1)
    evaluation: EvaluationConfig
    nearest_words: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _parts_fit(self) -> ExperimentConfig:
        problems = [*self._name_problems(), *self._parameter_problems(), *self._hard_problems()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _name_problems(self) -> Iterator[str]:
        for what, names in (
            ("systems", [slug(system.name) for system in self.systems]),
            ("splits", [split.name for split in self.splits]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                yield f"two {what} share the name (as a folder) {', '.join(twice)}"
        known = {system.name for system in self.systems}
        evaluation = self.evaluation
        named = {name for pair in evaluation.comparisons for name in pair}
        named |= {evaluation.hard_baseline, evaluation.hard_control}
        named |= {*evaluation.hard_systems, *evaluation.hard_selectors}
        if named - known:
            yield (
                f"evaluation names unknown systems: {', '.join(sorted(named - known))}; there are "
                f"{', '.join(sorted(known))}"
            )
        families_known = {*self.families, "ssi"}
        for system in self.systems:
            unknown = sorted(set(system.columns) - families_known)
            if unknown:
                yield (
                    f"system {system.name!r}: unknown column families {', '.join(unknown)}; there "
                    f"are {', '.join(sorted(families_known))}"
                )

    def _parameter_problems(self) -> Iterator[str]:
        for section, given, made in (
            ("ssi", self.ssi, LowRankSSI),
            ("ranker", self.ranker, LambdaMART),
        ):
            known = set(inspect.signature(made).parameters)
            unknown = sorted(set(given) - known)
            if unknown:
                yield f"{section}: unknown parameters {', '.join(unknown)}; there are " + ", ".join(
                    sorted(known)
                )
        try:
            columns = {c for name in self.families for c in get_family(name).column_names} | {"ssi"}
        except InputError as error:
            yield str(error)
            columns = set()
        for system in self.systems if columns else ():
            if system.score is not None and system.score not in columns:
                yield f"system {system.name!r}: there is no column {system.score!r} to rank by"
        for measure in (*self.evaluation.measures, self.evaluation.hard_measure):
            try:
                get_measure(measure)
            except InputError as error:
                yield str(error)

    def _hard_problems(self) -> Iterator[str]:
        evaluation = self.evaluation
        if evaluation.hard_control in {evaluation.hard_baseline, *evaluation.hard_selectors}:
            yield "hard_control must be neither the baseline nor one of the selectors"
        if evaluation.hard_baseline in evaluation.hard_selectors:
            yield "hard_selectors must not have the baseline, which chooses anyway"
        n_parts = min(split.folds for split in self.splits) - 1
        for system in self.systems:
            if system.turn >= n_parts:
                yield (
                    f"system {system.name!r}: turn is {system.turn}, but folds train and validate "
                    f"on {n_parts} parts; use 0 to {n_parts - 1}"
                )


def slug(name: str) -> str:
    """A system's name as a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def load_config(path: str | os.PathLike[str]) -> ExperimentConfig:
    """Read and check an experiment file.

    Raises:
        InputError: not TOML, or unknown keys, missing keys, values out of range: all at once.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        return ExperimentConfig.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in e['loc']) or 'file'}: {e['msg']}"
            for e in error.errors()
        )
        raise InputError(f"{path}: {problems}") from None


def demo_config() -> ExperimentConfig:
    """The experiment that ``ltr-features demo`` runs."""
    return load_config(Path(str(resources.files("reports") / "experiments" / "demo.toml")))
