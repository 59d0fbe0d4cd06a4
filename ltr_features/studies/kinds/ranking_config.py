"""The typed configuration of a ranking experiment, read from a TOML file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from letor.errors import InputError
from ltr_features.columns.out_of_fold import check_folds
from ltr_features.studies.config import RankerSeed, Repeats, Section
from ltr_features.studies.kinds.sections import (
    CollectionConfig,
    FamilyConfig,
    ModelConfig,
    RankerConfig,
    TextConfig,
)


class SplitConfig(Section):
    """One way to separate training from test queries; each becomes a study of the report.

    Attributes:
        name: part of paths. title: of the study; the name by default.
        by: unit that is kept in one part, "query" or "group"; or "time": train on earlier queries,
            test on later ones, see :func:`letor.folds.by_time`. folds: number of parts, 4 or more.
        inner_parts: number of parts into which the training queries are grouped for scores out of
            fold; by default the training parts of the folds. Fewer parts need fewer models.
    """

    name: str = Field(pattern=r"^[\w-]+$")  # part of paths
    title: str = ""
    description: str = ""
    by: Literal["query", "group", "time"] = "query"
    folds: int = 5
    inner_parts: int | None = Field(None, ge=2)
    _fit: int = PrivateAttr(0)
    _share: float = PrivateAttr(1.0)

    @field_validator("folds")
    @classmethod
    def _enough(cls, folds: int) -> int:
        check_folds(folds)
        return folds

    @model_validator(mode="before")
    @classmethod
    def _titled(cls, given: Any) -> Any:
        named = isinstance(given, dict) and isinstance(given.get("name"), str)
        return {"title": given["name"], **given} if named else given

    @property
    def n_folds(self) -> int:
        """Number of folds that the parts give."""
        return self.folds - 3 if self.by == "time" else self.folds

    @property
    def train_parts(self) -> int:
        """Smallest number of parts that a fold trains on."""
        return 2 if self.by == "time" else self.folds - 2

    @property
    def fit(self) -> int:
        """Number of the fit, from 0; it is added to the seeds of folds, models and rankers."""
        return self._fit

    def refit(self, number: int) -> SplitConfig:
        """The split for another fit, with other seeds and (unless by time) other folds; for 0 the
        split itself."""
        if not number:
            return self
        # A dot cannot occur in the name of a split in the file.
        other = self.model_copy(update={"name": f"{self.name}.refit-{number}"})
        other._fit = number
        return other

    @property
    def share(self) -> float:
        """Share of the training queries that is used, in (0, 1]."""
        return self._share

    def of_share(self, share: float) -> SplitConfig:
        """The split with only a share of the training queries."""
        other = self.model_copy(update={"name": f"{self.name}.share-{share:g}"})
        other._share = share
        return other


class SystemConfig(Section):
    """A system: a single column as score, or a ranker on columns.

    Attributes:
        label: its name in the report's verdict, e.g. "the 46 word columns"; ``name`` by default.
        score: the column. columns: names of families, models or single columns.
        ranker: by default the only one in the file.
        rankers: several rankers; each makes a system of its own, called "name, ranker".
        seed: added to the seeds of the ranker and of the file.
        turn: number of places by which the parts that a fold trains and validates on are rotated.
            The test part stays, so systems with different turns are trained on different queries
            and tested on the same ones.
        repeats: how often the system is fitted, each time with other seeds of folds, ranker and
            trained columns; its values are means over the fits. By default the file's ``repeats``.
            A score that does not learn from judgements is the same in every fit.
    """

    name: str
    label: str = ""
    description: str = ""
    score: str | None = None
    columns: tuple[str, ...] = ()
    ranker: str | None = Field(default=None, min_length=1)
    rankers: tuple[str, ...] = ()
    seed: RankerSeed = 0
    turn: int = Field(0, ge=0)
    repeats: Repeats | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> SystemConfig:
        if (self.score is None) == (not self.columns):
            raise ValueError(f"system {self.name!r}: give either score or columns")
        if self.score is not None and (self.ranker or self.rankers):
            raise ValueError(f"system {self.name!r}: a score needs no ranker")
        if self.ranker and self.rankers:
            raise ValueError(f"system {self.name!r}: give either ranker or rankers")
        return self

    def each(self, usual: str) -> list[SystemConfig]:
        """One system per ranker; labels do not mention the usual ranker."""
        label = self.label or self.name
        return [
            self.model_copy(
                update={
                    "name": f"{self.name}, {ranker}",
                    "label": label if ranker == usual else f"{label}, {ranker}",
                    "ranker": ranker,
                    "rankers": (),
                }
            )
            for ranker in self.rankers
        ] or [self]


class EvaluationConfig(Section):
    """Measures, comparisons, and analysis of hard queries if ``hard_baseline`` is given.

    Attributes:
        measures: the first is the primary one.
        comparisons: pairs of systems; a pair of systems with ``rankers`` gives one per ranker.
        headline: comparison that the report's first screen shows in addition to the first one.
        hard_baseline: baseline of the gains on hard queries. hard_systems: systems whose gain on
            them is estimated. hard_selectors: systems that choose hard queries independently.
        hard_control: a refit of the baseline. hard_measure: measure that decides what is hard.
        hard_thresholds: values of that measure below which a query is hard.
        hard_quantiles: shares of the queries that are hard.
        n_permutations, n_resamples: of the randomisation test, and of the bootstrap.
        alpha: level of significance. confidence: of intervals. correction: for multiple testing.
        learning_curve: shares of the training queries, each in (0, 1), on which the systems of the
            first comparison and of the headline are trained too.
        column_value: system whose column groups are valued: it is trained anew without each group,
            and if there are more than two, the first is used alone and with each of the others.
    """

    measures: tuple[str, ...] = Field(min_length=1)
    comparisons: tuple[tuple[str, str], ...] = Field(min_length=1)
    headline: tuple[str, str] | None = None
    hard_baseline: str | None = None
    hard_systems: tuple[str, ...] = ()
    hard_selectors: tuple[str, ...] = ()
    hard_control: str | None = None
    hard_measure: str = "NDCG@20"
    hard_thresholds: tuple[float, ...] = (0.5,)
    hard_quantiles: tuple[float, ...] = (0.25,)
    n_permutations: int = Field(10_000, ge=1)
    n_resamples: int = Field(10_000, ge=1)
    alpha: float = Field(0.05, gt=0, lt=1)
    confidence: float = Field(0.95, gt=0, lt=1)
    correction: str = "holm"
    column_value: str | None = None
    learning_curve: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = ()

    @model_validator(mode="after")
    def _headline_is_compared(self) -> EvaluationConfig:
        if self.headline is not None and self.headline not in self.comparisons:
            raise ValueError(f"headline {list(self.headline)}: add it to the comparisons")
        return self

    @property
    def all_measures(self) -> list[str]:
        """All measures that are computed."""
        return list(dict.fromkeys([*self.measures, self.hard_measure]))


class ExpectedConfig(Section):
    """A number that the experiment should reproduce within a tolerance: the mean of a measure, or
    its difference from a baseline."""

    split: str
    system: str
    measure: str
    value: float
    tolerance: float = Field(ge=0)
    baseline: str | None = None


class ExperimentConfig(Section):
    """A whole experiment.

    Attributes:
        title: the question. introduction: below it in the report.
        seed: of folds, rankers, tests and draws of the source, and of models whose ``params`` have
            none; the fit's number is added. Families and sources of candidates that draw have a
            ``seed`` of their own among their options.
        repeats: number of fits of each trained system.
        groups: file of query id, tab, group; queries of one group are tested together, and kept
            together by splits "by group". By default the collection's groups.
        times: file of query id, tab, time (a number or ISO 8601), for splits "by time". By default
            the collection's times.
        sources: the documents that queries were made from, which are not ranked for them: file of
            query id, tab, document id; or "same-id", where each has the id of its query. By
            default the collection's.
        query_classes: further kinds of queries, for the report's tables of these, see
            :func:`~ltr_features.sources.query_files.read_query_classes`.
        candidates: settings of sources, see :func:`ltr_features.candidates.candidate_sources`; by
            default the best ``candidate_depth`` documents of BM25.
        nearest_words: words whose neighbours under each model the report lists.
        word_map, document_map: name of a model, or of a column family with vectors of words or of
            documents (doc2vec); the report draws a map of its vectors of the most frequent words,
            or of the documents that are relevant to most queries.
    """

    kind: Literal["ranking"] = "ranking"
    title: str
    introduction: str = ""
    seed: RankerSeed = 0
    collection: CollectionConfig
    text: TextConfig = TextConfig()
    repeats: Repeats = 1
    groups: str | None = None
    times: str | None = None
    sources: str | None = None
    query_classes: str | None = None
    candidate_depth: int = Field(100, ge=1)
    candidates: dict[str, Any] | None = None
    columns: tuple[FamilyConfig, ...] = ()
    models: tuple[ModelConfig, ...] = ()
    rankers: tuple[RankerConfig, ...] = ()
    splits: tuple[SplitConfig, ...] = Field(min_length=1)
    systems: tuple[SystemConfig, ...] = Field(min_length=1)
    evaluation: EvaluationConfig
    expected: tuple[ExpectedConfig, ...] = ()
    nearest_words: tuple[str, ...] = ()
    word_map: str | None = None
    document_map: str | None = None

    @property
    def candidate_settings(self) -> dict[str, dict[str, Any]]:
        """Settings of the sources of candidates, by name."""
        if self.candidates is None:
            return {"bm25": {"depth": self.candidate_depth}}
        return self.candidates

    @property
    def all_systems(self) -> list[SystemConfig]:
        """All systems, with one per ranker of those with several, and with the variants that show
        the value of column groups."""
        return [*self._named_systems, *(variant for variant, _, _ in self.variants)]

    @property
    def _named_systems(self) -> list[SystemConfig]:
        usual = self.rankers[0].name if self.rankers else ""
        return [each for system in self.systems for each in system.each(usual)]

    @property
    def variants(self) -> list[tuple[SystemConfig, str, str]]:
        """Variants for the value of groups: (system, group, "left out", "alone" or "added")."""
        valued = self.evaluation.column_value
        whole = next((s for s in self._named_systems if s.name == valued), None)
        if whole is None or len(whole.columns) < 2:
            return []
        made = []
        for group in whole.columns:
            rest = tuple(c for c in whole.columns if c != group)
            name = f"{whole.name} without {group}"
            made.append((_variant(whole, name, rest), group, "left out"))
        if len(whole.columns) == 2:  # adding one would repeat leaving it out
            return made
        first = whole.columns[0]
        made.append((_variant(whole, f"{first} alone", (first,)), first, "alone"))
        for group in whole.columns[1:]:
            name = f"{first} with {group}"
            made.append((_variant(whole, name, (first, group)), group, "added"))
        return made

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The comparisons as pairs of names of ``all_systems``."""
        return list(
            dict.fromkeys(chain.from_iterable(map(self.each_pair, self.evaluation.comparisons)))
        )

    @property
    def headline(self) -> tuple[str, str] | None:
        """The ``headline`` comparison, with the first ranker if there are several; or None."""
        pair = self.evaluation.headline
        return None if pair is None else next(self.each_pair(pair), None)

    @property
    def headline_pairs(self) -> list[tuple[str, str]]:
        """The comparisons that the first screen shows: the first one, and ``headline``."""
        return list(dict.fromkeys([*self.pairs[:1], *([self.headline] if self.headline else [])]))

    def each_pair(self, pair: tuple[str, str]) -> Iterator[tuple[str, str]]:
        """The comparison for every ranker that its two systems share."""
        rankers = {s.name: s.rankers for s in self.systems}
        sides = [rankers.get(name, ()) for name in pair]
        if not any(sides):
            yield pair
            return
        if all(sides):
            common = [ranker for ranker in sides[0] if ranker in sides[1]]
        else:
            common = list(sides[0] or sides[1])
        for ranker in common:
            left, right = (
                f"{name}, {ranker}" if own else name for name, own in zip(pair, sides, strict=True)
            )
            yield left, right

    def fits_of(self, system: SystemConfig) -> int:
        """How often a system is fitted; 0 if nothing in it learns from judgements."""
        if system.score is not None and system.score not in self._learned:
            return 0
        return system.repeats or self.repeats

    @property
    def _learned(self) -> set[str]:
        """Names of the models that learn from judgements."""
        found = set()
        for model in self.models:
            with suppress(InputError):  # the checks report unknown models
                found |= {model.name} if model.recipe.looks_at_labels else set()
        return found

    def ranker_of(self, system: SystemConfig) -> RankerConfig | None:
        """The ranker of a system; None for a score, or if the file has no such ranker."""
        if system.score is not None:
            return None
        if system.ranker is None:
            return self.rankers[0] if self.rankers else None
        return next((r for r in self.rankers if r.name == system.ranker), None)


def _variant(system: SystemConfig, name: str, columns: tuple[str, ...]) -> SystemConfig:
    """The system with other columns."""
    text = f"For the value of columns: {', '.join(columns)}."
    return system.model_copy(
        update={"name": name, "label": "", "description": text, "columns": columns}
    )
