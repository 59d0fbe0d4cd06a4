"""The typed configuration of an experiment with simulated clicks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator, model_validator

from letor.measures import parse_measure
from ltr_base.names import in_words
from ltr_features.clicks.models import get_click_model
from ltr_features.clicks.simulation import USERS_WITH, Simulation, Users
from ltr_features.studies.config import (
    RankerSeed,
    Repeats,
    Section,
    folder_problems,
    too_large_seed,
)
from ltr_features.studies.kinds.sections import CollectionConfig, ModelConfig
from ssi_models.registry import get_model

#: The click model of raw clicks: click rates.
RAW = "ctr"


class ProductionSection(Section):
    """The ranker whose results users see: LambdaMART with ``trees`` trees, trained on the labels of
    a ``share`` of the training queries."""

    share: float = Field(default=0.05, gt=0, le=1)
    trees: int = Field(default=20, ge=1)


class MatchingSection(Section):
    """Matching models that learn from clicks of users who see BM25's best ``depth`` documents of a
    text collection, and that rerank these documents for test queries.

    Attributes:
        collection: as in experiments of the kind "ranking". models: likewise; each is a learner.
        depth: number of documents per query.
        folds: number of parts of the judged queries; a fold tests one and shows users the others.
        tested: number of folds that are run.
    """

    collection: CollectionConfig
    models: tuple[ModelConfig, ...] = Field(min_length=1)
    depth: int = Field(100, ge=1)
    folds: int = Field(5, ge=3)
    tested: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _there(self) -> MatchingSection:
        for model in self.models:
            if get_model(model.model).learns_from != "preferences":
                raise ValueError(f"model {model.name!r} learns neither from judgements nor clicks")
            model.recipe.new_model()  # raises for unknown parameters and invalid values
            if model.recipe.learns_from_lists:
                raise ValueError(
                    f"model {model.name!r}: list_share has no effect here: models learn from "
                    "clicked documents alone; leave it out"
                )
        if self.tested > self.folds:
            raise ValueError(f"tested is {self.tested}, but there are {self.folds} folds")
        return self


class UsersSection(Section):
    """How users click on the best ``depth`` results, see
    :class:`ltr_features.clicks.simulation.Users`; ``exploration``: how much rankings vary, see
    :class:`ltr_features.clicks.simulation.Simulation`."""

    model: str = "pbm"
    eta: float = 1.0
    noise: float = 0.1
    continuation: float = 0.9
    depth: int = Field(default=Simulation.depth, ge=1)
    exploration: float = Field(default=0.5, ge=0)

    @property
    def behaviour(self) -> Users:
        """The users."""
        return Users(self.model, self.eta, self.noise, self.continuation)

    @model_validator(mode="after")
    def _known(self) -> UsersSection:
        self.behaviour  # noqa: B018  # raises for invalid values
        for name, models in USERS_WITH.items():
            if name in self.model_fields_set and self.model not in models:
                raise ValueError(
                    f"{name}: users of the model {self.model} have none, only those of "
                    f"{in_words(models)}; leave it out"
                )
        return self


class ExpectedSection(Section):
    """Share of the gap that debiased clicks should at least close with a number of sessions."""

    sessions: int
    closed: float


class ClicksConfig(Section):
    """A file of the kind "clicks".

    Attributes:
        folder: LETOR files with folds, see :func:`letor.fold_files.read_folds`, on which LambdaMART
            learns. n_columns: of these files. production: the ranker whose results users see.
        matching: a collection and matching models, instead of ``folder``.
        sessions: sizes of the logs; each log is the beginning of the next.
        repeats: number of simulations, each of all folds with another seed; values are their means.
        seed: of the first simulation, its rankers and models, and of random folds.
        model: the click model that debiases. min_evidence, n_grades: of judgements from clicks, see
            :class:`ltr_features.clicks.judging.ClickJudgements`.
        prior_examinations: prior of each pair: examinations at the click rate of position one.
        measure: of the ranking of the test queries, by their true labels.
        asked: number of pages of the new ranking on which clicks are simulated to check estimates.
    """

    kind: Literal["clicks"]
    title: str
    introduction: str = ""
    folder: str | None = None
    n_columns: int | None = None
    sessions: tuple[int, ...] = Field((1_000, 10_000, 100_000), min_length=1)
    repeats: Repeats = 1
    seed: RankerSeed = 0
    production: ProductionSection = ProductionSection()
    matching: MatchingSection | None = None
    users: UsersSection = UsersSection()
    model: str = "pbm"
    min_evidence: float = Field(1.0, gt=0)
    n_grades: int = Field(21, ge=2)
    prior_examinations: float = Field(2.0, gt=0)
    measure: str = "ndcg@10"
    asked: int = Field(100_000, ge=1)
    n_resamples: int = Field(10_000, ge=100)
    expected: tuple[ExpectedSection, ...] = ()
    notes: tuple[str, ...] = ()

    @field_validator("measure")
    @classmethod
    def _known_measure(cls, given: str) -> str:
        parse_measure(given)
        return given

    @model_validator(mode="after")
    def _consistent(self) -> ClicksConfig:
        if (self.folder is None) == (self.matching is None):
            raise ValueError("give either folder, of LETOR files, or matching, for models of texts")
        if self.matching is not None and "production" in self.model_fields_set:
            raise ValueError("production is about folder; with matching users see BM25's ranking")
        of_rows = self.model_fields_set & {"n_columns", "n_grades"}
        if self.matching is not None and of_rows:
            raise ValueError(f"{min(of_rows)} is for rankers of folder, not for models of texts")
        measure = parse_measure(self.measure)
        if self.folder and measure.kind == "err" and self.n_grades - 1 > measure.top_label:
            raise ValueError(
                f"measure: ERR is for labels of {measure.top_label} at most, and labels made from "
                f"clicks go up to {self.n_grades - 1}, for which rankers stop training by it; set "
                f"n_grades = {measure.top_label + 1}, or choose another measure"
            )
        get_click_model(self.model)
        if min(self.sessions) < 1 or sorted(set(self.sessions)) != list(self.sessions):
            raise ValueError(f"sessions must ascend from 1 or more, got {list(self.sessions)}")
        if unknown := [e.sessions for e in self.expected if e.sessions not in self.sessions]:
            raise ValueError(f"expected: {unknown[0]} is not among the sessions")
        return self

    def problems(self) -> Iterator[str]:
        last = self.seed + self.repeats - 1
        yield from too_large_seed("seed", last, "the file and of its last simulation")
        if self.matching is not None:
            yield from folder_problems("models", [model.name for model in self.matching.models])
