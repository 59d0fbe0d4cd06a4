"""Data classes of a report, filled by an experiment and rendered by tables and html."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from letor.errors import InputError
from letor.measures import RUN_RULES, run_measure
from ltr_features.studies.page.query_rankings import RankedDocument
from ltr_features.studies.page.tables import Table
from ltr_features.studies.statistics.embedding_map import EmbeddingMap
from ltr_features.studies.statistics.hard_queries import BOTH, hard_query_table
from ltr_features.studies.statistics.query_classes import query_class_table
from ltr_features.studies.statistics.significance import USUAL, TestSettings, compare

#: Maximum number of a study's systems on the first screen, not counting the baseline.
SHOWN = 7
#: Characters of the text of a query that a page shows.
_SHOWN_TEXT = 300


@dataclass(frozen=True, eq=False)
class SystemResult:
    """One ranked system of a study.

    Attributes:
        name: short and unique within the study; used in tables and in ``Study.pairs``.
        description: one sentence on the system.
        label: its name in verdicts, e.g. "the 46 word columns"; the name by default.
        per_query: float64 frame in [0, 1]: index = query ids, one column per measure, as
            returned by ``letor.evaluation.evaluate`` (folds concatenated).
        fits: such a frame for each fit of a trained system, whose mean is ``per_query``; empty if
            nothing is trained, or if the fits are unknown.
        columns: names of the columns that the ranker saw; empty for a ranking without a ranker.
        importance: columns ``column`` and ``gain`` (total split gain, summed or averaged over
            folds; not negative), or None.
    """

    name: str
    description: str
    per_query: pd.DataFrame
    fits: Sequence[pd.DataFrame] = ()
    columns: Sequence[str] = ()
    importance: pd.DataFrame | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Study:
    """Systems compared on one set of test queries.

    Attributes:
        name: e.g. "Held-out queries".
        description: the question of the study, one or two sentences.
        split_rule: how training and test queries were separated, in words.
        systems: in the order of the tables.
        pairs: declared comparisons (system, baseline) by name; the first is the headline.
        second: a further pair whose verdict the first screen shows, or None.
        measures: columns of ``per_query`` to report; the first is the primary measure.
        groups: group of each query, if some belong together (are made from one article, say);
            queries are then tested by group.
        query_texts: text of each query id; queries without one show their id.
        facts: further facts about the study by label, e.g. {"Recall of the pool": "0.91"}.
        hard_queries: see :meth:`with_hard_queries`, or None.
        hard_measure: the measure of ``hard_queries``.
        hard_baseline: name of the baseline of ``hard_queries``.
        hard_control: name of its control, for the text.
        query_kinds: ordered categories, a row per query and a column per property: the class of
            each query (missing queries have none), by which the page's table of queries can be
            filtered; or None.
        query_kinds_note: which properties are missing, and why.
        drill_down: by query, the documents that the headline's system or baseline ranks among the
            first; the largest changes first.
        precision_recall, precision_recall_note: returned by ``precision_recall``.
        learning_curve: table of ``learning_curve.learning_curve``, or None.
        column_value: value of column groups to one system, columns ``group``, ``kind``,
            ``with``, ``without``, ``value``, ``low``, ``high``, ``p``, ``p_corrected``,
            ``significant``; or None.
        column_value_of: name of that system.
        column_correlation: table of ``correlation.column_correlation``, or None.
        test: settings of the statistical tests.
        remarks: sentences, without full stop, on the collection (``Collection.remarks``) and on
            trained columns that learned nothing, or had little to learn from, see
            :func:`ltr_features.remarks.grouped_remarks`; shown with the verdict.
    """

    name: str
    description: str
    split_rule: str
    systems: Sequence[SystemResult]
    pairs: Sequence[tuple[str, str]]
    measures: Sequence[str]
    second: tuple[str, str] | None = None
    groups: Mapping[str, Hashable] | None = None
    query_texts: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    hard_queries: pd.DataFrame | None = None
    hard_measure: str = "NDCG@20"
    hard_baseline: str = ""
    hard_control: str = "a control that knows no more than the baseline"
    query_kinds: pd.DataFrame | None = None
    query_kinds_note: str = ""
    drill_down: Mapping[str, Sequence[RankedDocument]] = field(default_factory=dict)
    precision_recall: pd.DataFrame | None = None
    precision_recall_note: str = ""
    learning_curve: pd.DataFrame | None = None
    column_value: pd.DataFrame | None = None
    column_value_of: str = ""
    column_correlation: pd.DataFrame | None = None
    test: TestSettings = USUAL
    remarks: Sequence[str] = ()

    def __post_init__(self) -> None:
        for system in self.systems:
            values = system.per_query.reindex(columns=list(self.measures)).to_numpy(np.float64)
            if not ((values >= 0) & (values <= 1)).all():
                raise InputError(
                    f"study {self.name!r}, system {system.name!r}: per-query values of "
                    f"{', '.join(self.measures)} must all be there and lie in [0, 1]"
                )

    def system(self, name: str) -> SystemResult:
        """The system of that name."""
        return next(s for s in self.systems if s.name == name)

    @property
    def shown_pairs(self) -> list[tuple[str, str]]:
        """The comparisons with the headline's baseline, the headline first; at most as many as the
        first screen shows."""
        return [pair for pair in self.pairs if pair[1] == self.pairs[0][1]][:SHOWN]

    @property
    def pushed(self) -> bool:
        """Whether it is known of some document which columns pushed it."""
        return any(doc.columns for documents in self.drill_down.values() for doc in documents)

    def label_of(self, name: str) -> str:
        """Label of the system of that name in verdicts."""
        return self.system(name).label or name

    def text_of(self, query: str) -> str:
        """The query's text, of a long one the beginning, or its id if it has none."""
        text = self.query_texts.get(query) or query
        return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT].rstrip()} …"

    @property
    def n_fits(self) -> int:
        """Largest number of fits of any system; 1 if unknown."""
        return max((len(s.fits) for s in self.systems), default=0) or 1

    @property
    def queries(self) -> list[str]:
        """Query ids, in the order of the first system."""
        return [str(q) for q in self.systems[0].per_query.index]

    @property
    def baselines(self) -> list[str]:
        """Names of the baselines of ``pairs``, in order of first mention."""
        return list(dict.fromkeys(baseline for _, baseline in self.pairs))

    def values(self, system: str, measure: str) -> np.ndarray:
        """float64 [n]: per-query values in the order of ``queries``."""
        frame = self.system(system).per_query
        order = self.systems[0].per_query.index
        return frame.loc[order, measure].to_numpy(dtype=np.float64)

    def per_query_difference(self, pair: tuple[str, str], measure: str) -> pd.Series:
        """float64: system minus baseline, index = ``queries``."""
        system, baseline = (self.values(name, measure) for name in pair)
        return pd.Series(system - baseline, self.queries)

    def by_fit(self, system: str, measure: str) -> pd.DataFrame | pd.Series:
        """Per-query values of a system, with a column per fit if its fits are known."""
        one = self.system(system)
        if not one.fits:
            return one.per_query[measure]
        return pd.concat([fit[measure] for fit in one.fits], axis=1)

    def with_hard_queries(
        self,
        systems: Sequence[str],
        selectors: Sequence[str],
        control: str | None = None,
        **rules: Sequence[float],
    ) -> Study:
        """The study with the gains of systems over ``hard_baseline`` on queries that are hard by
        ``hard_measure``, see :func:`hard_queries.hard_query_table`.

        Args:
            selectors: systems that choose these queries; one that has the values of a judged system
                for every query chooses none, and a remark says so. control: the baseline refitted.
            rules: ``thresholds`` and ``quantiles``.
        """
        named = {s.name: self.by_fit(s.name, self.hard_measure) for s in self.systems}
        order = self.systems[0].per_query.index
        means = {name: pd.DataFrame(of).loc[order].mean(axis=1) for name, of in named.items()}
        judged = [self.hard_baseline, *systems]
        alike = {
            name: next((other for other in judged if means[name].equals(means[other])), None)
            for name in selectors
        }
        remarks = [
            f"{name} has the {self.hard_measure} of {other} for every query, so that it is no "
            "third ranking that could choose hard queries"
            for name, other in alike.items()
            if other is not None
        ]
        table = hard_query_table(
            named[self.hard_baseline],
            {name: named[name] for name in systems},
            selectors={name: named[name] for name in selectors if alike[name] is None},
            control=None if control is None else named[control],
            settings=self.test,
            groups=self.groups,
            **rules,
        )
        return replace(self, hard_queries=table, remarks=[*self.remarks, *remarks])

    @cached_property
    def query_classes(self) -> pd.DataFrame | None:
        """The headline pair's gains by ``query_kinds``, see
        :func:`query_classes.query_class_table`; None without kinds."""
        if self.query_kinds is None:
            return None
        pair, measure = self.pairs[0], self.measures[0]
        values = self.by_fit(pair[0], measure), self.by_fit(pair[1], measure)
        return query_class_table(
            self.query_kinds, " - ".join(pair), values, settings=self.test, groups=self.groups
        )

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """The table of ``significance.compare`` over ``pairs`` and ``measures``."""
        per_query = {s.name: s.per_query for s in self.systems}
        fits = {s.name: s.fits for s in self.systems if len(s.fits)}
        return compare(
            per_query, self.pairs, self.measures, self.test, groups=self.groups, fits=fits
        )

    def hard_rows(self, *, estimate: bool = True) -> list[dict[str, Any]]:
        """Rows of ``hard_queries``: the estimates, or else those of other choices of queries."""
        table = self.hard_queries
        if table is None or table.empty:
            return []
        return table[table["estimate"].astype(bool) == estimate].to_dict("records")

    @property
    def estimates_on_hard(self) -> list[dict[str, Any]]:
        """The estimates on hard queries, of systems for which some queries are hard."""
        return [row for row in self.hard_rows() if row["n_queries"]]

    def hard_for_both(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row of ``hard_queries`` that differs from ``row``, an estimate, in that the mean of
        system and baseline chooses the queries."""
        others = self.hard_rows(estimate=False)
        wanted = (row["system"], row["rule"], BOTH)
        return next(r for r in others if (r["system"], r["rule"], r["chosen_by"]) == wanted)

    def comparison(self, pair: tuple[str, str], measure: str) -> pd.Series:
        """The row of ``comparisons`` for that pair and measure."""
        t = self.comparisons
        chosen = (t["system"] == pair[0]) & (t["baseline"] == pair[1]) & (t["measure"] == measure)
        return t[chosen].iloc[0]


@dataclass(frozen=True)
class ColumnInfo:
    """A row of the column table.

    Attributes:
        name: the column's name in the LETOR file.
        family: the group of columns that it belongs to, e.g. "BM25"; determines its colour.
        description: what it measures, in one line.
        reference: paper and equation, if any.
        trained_on: what it was learned from; "nothing (counts of the collection)" if not learned.
        training_distance: for a trained column, the Kolmogorov-Smirnov distance (0 to 1) between
            the scores of training rows and of other rows, in the fold where it is largest.
    """

    name: str
    family: str
    description: str
    reference: str = ""
    trained_on: str = ""
    training_distance: float | None = None


@dataclass(frozen=True)
class Curve:
    """A line chart, such as the progress of a model's training.

    Attributes:
        name: what the lines belong to, e.g. the model.
        x_label: unit of the horizontal axis, e.g. "epoch".
        y_label: the quantity drawn, e.g. "margin ranking loss" (one unit for all series).
        series: (x values, y values) of each line by label; one or more, finite numbers.
        best_x: x value at which the model was kept, or None.
        description: what is shown and how the stopping point was chosen.
        remark: something that the reader must know, or "".
    """

    name: str
    x_label: str
    y_label: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    best_x: float | None = None
    description: str = ""
    remark: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """Everything that a report shows.

    Attributes:
        title: heading.
        introduction: what was done, in a few sentences of plain text.
        studies: at least one.
        facts: facts about the run by label, e.g. {"Documents": "1,718 sections"}.
        columns: the column table; its families determine the colours of the importance charts.
        curves: training curves of the models.
        nearest_words: of each model, a table of words and their neighbours.
        maps: maps of the words and of the documents of an embedding.
        settings: parameters by group, e.g. {"SSI": {"rank": 50, "seed": 0}}.
        versions: versions of the software by name.
        warnings: warnings that concern the run as a whole.
    """

    title: str
    introduction: str
    studies: Sequence[Study]
    facts: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[ColumnInfo] = ()
    curves: Sequence[Curve] = ()
    nearest_words: Sequence[Table] = ()
    maps: Sequence[EmbeddingMap] = ()
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def remarks(self) -> list[tuple[str, str]]:
        """The remarks of the studies, see :func:`told_once`."""
        return told_once(self.studies, lambda study: study.remarks)

    @property
    def measures(self) -> list[str]:
        """Every measure that some table shows, in order of appearance."""
        names: dict[str, None] = {}
        for study in self.studies:
            names |= dict.fromkeys(study.measures)
            if study.hard_queries is not None:
                names[study.hard_measure] = None
        return list(names)

    @property
    def definitions(self) -> list[tuple[str, str]]:
        """(name, definition) of every measure shown, then the rules common to all of them."""
        listed = [(m, run_measure(m).formula) for m in self.measures]
        return [*listed, (", ".join(self.measures), RUN_RULES)]


def told_once(
    studies: Sequence[Study], remarks_of: Callable[[Study], Sequence[str]]
) -> list[tuple[str, str]]:
    """Each remark on studies once, after the names of those that it concerns ("" if all)."""
    by_remark: dict[str, list[str]] = {}
    for study in studies:
        for remark in remarks_of(study):
            by_remark.setdefault(remark, []).append(study.name)
    return [
        ("" if len(names) == len(studies) else ", ".join(names), remark)
        for remark, names in by_remark.items()
    ]
