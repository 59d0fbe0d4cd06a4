"""The description of an experiment: one TOML file, checked as a whole before anything runs."""

from __future__ import annotations

import os
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from letor.errors import InputError
from reports.measures import get_measure


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

    name: str
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

    measures: tuple[str, ...]
    comparisons: tuple[tuple[str, str], ...]
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
    splits: tuple[SplitConfig, ...]
    systems: tuple[SystemConfig, ...]
    evaluation: EvaluationConfig
    nearest_words: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_fit(self) -> ExperimentConfig:
        known = {system.name for system in self.systems}
        if len(known) != len(self.systems):
            raise ValueError("two systems have the same name")
        evaluation = self.evaluation
        named = {name for pair in evaluation.comparisons for name in pair}
        named |= {evaluation.hard_baseline, evaluation.hard_control}
        named |= {*evaluation.hard_systems, *evaluation.hard_selectors}
        if named - known:
            raise ValueError(
                f"evaluation names unknown systems: {', '.join(sorted(named - known))}; there are "
                f"{', '.join(sorted(known))}"
            )
        allowed = {*self.families, "ssi"}
        for system in self.systems:
            unknown = set(system.columns) - allowed
            if unknown:
                raise ValueError(
                    f"system {system.name!r}: unknown column families {', '.join(unknown)}; "
                    f"there are {', '.join(sorted(allowed))}"
                )
        for measure in (*evaluation.measures, evaluation.hard_measure):
            get_measure(measure)
        return self


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
