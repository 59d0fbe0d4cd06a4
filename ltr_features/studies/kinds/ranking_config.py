"""The description of a ranking experiment: one TOML file, typed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from letor.errors import InputError
from ltr_features.columns.out_of_fold import check_folds
from ltr_features.studies.config import Section
from ltr_features.studies.kinds.ranking_parts import (
    CollectionConfig,
    FamilyConfig,
    ModelConfig,
    RankerConfig,
    TextConfig,
)


class SplitConfig(Section):
    """One way to separate training from test queries; each becomes a study of the report.

    Attributes:
        name: part of paths. title: of the study; its name by default.
        by: what stays in one part, each query or each group; or "time": earlier queries train,
            later ones are tested, see :func:`letor.folds.by_time`. folds: parts, 4 or more.
        inner_parts: into how many parts the training queries are grouped for scores out of fold;
            by default the training parts of the folds. Fewer parts need fewer models.
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
        named = isinstance(given, dict) and "name" in given
        return {"title": given["name"], **given} if named else given

    @property
    def n_folds(self) -> int:
        """How many folds the parts give."""
        return self.folds - 3 if self.by == "time" else self.folds

    @property
    def train_parts(self) -> int:
        """On how many parts each fold trains at least."""
        return 2 if self.by == "time" else self.folds - 2

    @property
    def fit(self) -> int:
        """Number of the fit, from 0; it is added to the seeds of folds, models and rankers."""
        return self._fit

    def refit(self, number: int) -> SplitConfig:
        """The split once more, with folds dealt anew (those by time stay) and other seeds; 0 is the
        split itself."""
        if not number:
            return self
        # No split of a file has a dot in its name.
        other = self.model_copy(update={"name": f"{self.name}.refit-{number}"})
        other._fit = number
        return other

    @property
    def share(self) -> float:
        """Of the training queries, in (0, 1]."""
        return self._share

    def of_share(self, share: float) -> SplitConfig:
        """The split with a share of the training queries."""
        other = self.model_copy(update={"name": f"{self.name}.share-{share:g}"})
        other._share = share
        return other


class SystemConfig(Section):
    """A system: a single column as score, or a ranker on columns.

    Attributes:
        label: what the report's verdict calls it, "the 46 word columns"; its name by default.
        score: the column. columns: names of families, models or single columns.
        ranker: the only one of the file by default.
        rankers: makes one system of each, called "name, ranker".
        seed: is added to the ranker's.
        turn: the parts that a fold trains and validates on are rotated by so many places. The test
            part stays, so that systems of different turns are rankers trained on different queries
            and tested on the same ones.
        repeats: how often the system is fitted, each time on folds dealt anew and with other seeds
            of folds, ranker and trained columns; its values are means over the fits. By default
            that of the file. A score that learns from no judgement is the same in every fit.
    """

    name: str
    label: str = ""
    description: str = ""
    score: str | None = None
    columns: tuple[str, ...] = ()
    ranker: str | None = None
    rankers: tuple[str, ...] = ()
    seed: int = Field(0, ge=0)
    turn: int = Field(0, ge=0)
    repeats: int | None = Field(None, ge=1)

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
        """One system per ranker; the usual one goes without saying."""
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
    """Measures, comparisons, and hard queries if a baseline of them is named.

    Attributes:
        measures: the first is the primary one.
        comparisons: pairs of systems; one of two with ``rankers`` is one for each ranker.
        headline: the comparison that the report's first screen tells beside the first one.
        hard_baseline: hard queries are those that it ranks badly. hard_systems: whose gain on them
            is told. hard_selectors: systems that choose hard queries in the baseline's place.
        hard_control: a refit of the baseline. hard_measure: what hard is judged by.
        hard_thresholds: values of it below which a query is hard.
        hard_quantiles: shares of the queries that are.
        n_permutations, n_resamples: of the randomisation test, and of the bootstrap.
        alpha: level of significance. confidence: of intervals. correction: of several tests.
        learning_curve: shares of the training queries, each in (0, 1). The systems of the first
            comparison and of the headline are trained on so many of them too.
        column_value: a system whose column groups are valued: it is trained anew without each of
            them, and the first one is trained with each of the others.
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
        """Every measure that is computed."""
        return list(dict.fromkeys([*self.measures, self.hard_measure]))


class ExpectedConfig(Section):
    """A number that the experiment should give: the mean of a measure, or its difference from a
    baseline, up to a tolerance."""

    split: str
    system: str
    measure: str
    value: float
    tolerance: float = Field(ge=0)
    baseline: str | None = None


class ExperimentConfig(Section):
    """A whole experiment.

    Attributes:
        title: the question. introduction: below it in the report. seed: of all that is drawn.
        repeats: fits of each trained system.
        groups: a file, query id, tab, group: queries that belong together are tested together, and
            kept together by splits "by group"; by default the groups that the collection has.
        times: a file, query id, tab, time (a number or ISO 8601), for splits "by time"; by default
            the times that the collection has.
        candidates: settings of sources, see :func:`ltr_features.candidates.candidate_sources`; by
            default BM25's best ``candidate_depth``.
        nearest_words: words whose neighbours under each model the report lists.
        word_map, document_map: a model, or a column family with vectors of words or of documents
            (doc2vec), of which the report draws the most frequent words, or the documents that are
            relevant to most queries, as a map.
    """

    kind: Literal["ranking"] = "ranking"
    title: str
    introduction: str = ""
    seed: int = Field(0, ge=0)
    collection: CollectionConfig
    text: TextConfig = TextConfig()
    repeats: int = Field(1, ge=1)
    groups: str | None = None
    times: str | None = None
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
        """The sources of candidates by name."""
        return self.candidates or {"bm25": {"depth": self.candidate_depth}}

    @property
    def all_systems(self) -> list[SystemConfig]:
        """The systems, one for each ranker of those with several, and those that say what the
        column groups of one are worth."""
        systems = [one for system in self.systems for one in system.each(self._usual_ranker)]
        return [*systems, *(variant for variant, _, _ in self.variants)]

    @property
    def _usual_ranker(self) -> str:
        return self.rankers[0].name if self.rankers else ""

    @property
    def variants(self) -> list[tuple[SystemConfig, str, str]]:
        """For the value of column groups: (system, the group, "left out" or "added")."""
        named = [one for system in self.systems for one in system.each(self._usual_ranker)]
        whole = next((s for s in named if s.name == self.evaluation.column_value), None)
        if whole is None or len(whole.columns) < 2:
            return []
        made = []
        for group in whole.columns:
            rest = tuple(c for c in whole.columns if c != group)
            name = f"{whole.name} without {group}"
            made.append((_variant(whole, name, rest), group, "left out"))
        first = whole.columns[0]
        made.append((_variant(whole, f"{first} alone", (first,)), first, "alone"))
        for group in whole.columns[1:]:
            name = f"{first} with {group}"
            made.append((_variant(whole, name, (first, group)), group, "added"))
        return made

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The comparisons of ``all_systems``, by name."""
        return list(
            dict.fromkeys(chain.from_iterable(map(self._each, self.evaluation.comparisons)))
        )

    @property
    def headline(self) -> tuple[str, str] | None:
        """The comparison that is told beside the first one, of the first ranker."""
        pair = self.evaluation.headline
        return None if pair is None else next(self._each(pair), None)

    @property
    def told_pairs(self) -> list[tuple[str, str]]:
        """The comparisons that the first screen tells: the first one, and ``headline``."""
        return list(dict.fromkeys([self.pairs[0], *([self.headline] if self.headline else [])]))

    def _each(self, pair: tuple[str, str]) -> Iterator[tuple[str, str]]:
        """A comparison, for every ranker of its two systems."""
        rankers = {s.name: s.rankers for s in self.systems}
        of = [rankers.get(name, ()) for name in pair]
        if not any(of):
            yield pair
            return
        if all(of):
            common = [ranker for ranker in of[0] if ranker in of[1]]
        else:
            common = list(of[0] or of[1])
        for ranker in common:
            left, right = (
                f"{name}, {ranker}" if own else name for name, own in zip(pair, of, strict=True)
            )
            yield left, right

    def fits_of(self, system: SystemConfig) -> int:
        """How often a system is fitted; 0 where nothing learns from judgements."""
        if system.score is not None and system.score not in self._learned:
            return 0
        return system.repeats or self.repeats

    @property
    def _learned(self) -> set[str]:
        """The columns of models that learn from judgements."""
        found = set()
        for model in self.models:
            with suppress(InputError):  # the checks tell of a model that there is not
                found |= {model.name} if model.recipe.looks_at_labels else set()
        return found

    def ranker_of(self, system: SystemConfig) -> RankerConfig | None:
        """The ranker of a system; None for a score, and for a ranker that is not described."""
        if system.score is not None:
            return None
        if system.ranker is None:
            return self.rankers[0] if self.rankers else None
        return next((r for r in self.rankers if r.name == system.ranker), None)


def _variant(system: SystemConfig, name: str, columns: tuple[str, ...]) -> SystemConfig:
    """The system on other columns."""
    text = f"For the value of columns: {', '.join(columns)}."
    return system.model_copy(
        update={"name": name, "label": "", "description": text, "columns": columns}
    )
