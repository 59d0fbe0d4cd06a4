"""The figures of a report, which are shown on the page and written to files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from ltr_features.studies.config import slug
from ltr_features.studies.page.charts.columns import correlation, importance
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.charts.embedding_map import embedding_map_chart
from ltr_features.studies.page.charts.forest import Estimate, forest
from ltr_features.studies.page.charts.queries import gains, scatter
from ltr_features.studies.page.report import Curve, Report, Study
from ltr_features.studies.page.verdicts import capital, outcome_of, signed
from ltr_features.studies.statistics.correlation import chosen_columns, nearest_columns

IMPORTANT_COLUMNS = 20
CORRELATED_COLUMNS = 14
NEAREST_OF = 8
SCATTERED = 2000
GAIN = (
    "Gain is the loss reduction of all splits on a column for trees, and the weights that the "
    "column carries for other rankers. A column may be used a lot without being needed: correlated "
    "columns share their gain."
)


class Importance(NamedTuple):
    """The most important columns of a system; ``words`` gives the families' shares."""

    system: str
    drawing: Drawing
    words: str


class Correlation(NamedTuple):
    """The correlation of columns as shown on the page.

    Attributes:
        drawing: the heat map. hidden: number of columns that are not in it.
        nearest: for each column that the system has beyond its baseline (if there are none, for
            those with most gain), the most similar columns with their correlation.
    """

    drawing: Drawing
    hidden: int
    nearest: list[tuple[str, list[tuple[str, float]]]]


class ReportFigures:
    """All figures of a report; they are drawn only when written or shown."""

    def __init__(self, report: Report) -> None:
        family = {column.name: column.family for column in report.columns}
        self.overview = overview(report.studies)
        self.studies = [StudyFigures(study, family) for study in report.studies]
        self.curves = [(curve, curves(curve)) for curve in report.curves]
        self.maps = [(found, embedding_map_chart(found)) for found in report.maps]

    def named(self) -> Iterator[tuple[str, Drawing]]:
        """All figures by file name: ``overview``; for each study ``STUDY-gains-SYSTEM-BASELINE``,
        ``STUDY-importance-SYSTEM`` and ``STUDY-KIND`` for those of which there is one; for each
        model ``curve-NAME``; ``word-map``, ``document-map``."""
        yield "overview", self.overview
        for figures in self.studies:
            name = slug(figures.study.name)
            for pair, drawing in figures.gains:
                yield f"{name}-gains-{'-'.join(map(slug, pair))}", drawing
            for chart in figures.importance:
                yield f"{name}-importance-{slug(chart.system)}", chart.drawing
            single = {
                "scatter": figures.scatter,
                "precision-recall": figures.recall,
                "learning-curve": figures.learning,
                "hard-queries": figures.hard,
                "correlation": figures.correlation.drawing if figures.correlation else None,
            }
            yield from ((f"{name}-{kind}", one) for kind, one in single.items() if one is not None)
        for curve, drawing in self.curves:
            yield f"curve-{slug(curve.name)}", drawing
        for found, drawing in self.maps:
            yield f"{found.of.removesuffix('s')}-map", drawing


def family_numbers(families: Iterable[str]) -> dict[str, int]:
    """The number (colour) of each family, in the order of first mention; "other" is last."""
    return {family: i for i, family in enumerate(dict.fromkeys([*families, "other"]))}


def dots(
    means: Mapping[str, Mapping[str, float]], measure: str, baseline: str | None = None
) -> Drawing:
    """Means of rows in panels, without intervals, since the tests compare rows query by query.

    Args:
        means: by panel and row.
        baseline: row whose mean the vertical line marks, in panels that have it; by default the
            first.
    """
    panels = []
    for name, rows in means.items():
        zero = rows.get(str(baseline), next(iter(rows.values())))
        estimates = [Estimate(label, value, f"{value:.3f}") for label, value in rows.items()]
        panels.append((name, estimates, zero))
    return forest(panels, measure, f"Mean {measure} of each row")


def overview(studies: Sequence[Study]) -> Drawing:
    """The headline's baseline and the systems compared with it, in the primary measure."""
    panels = []
    for study in studies:
        measure, baseline = study.measures[0], study.pairs[0][1]
        mean = float(study.values(baseline, measure).mean())
        estimates = [Estimate(study.label_of(baseline), mean, f"{mean:.3f}")]
        for pair in study.shown_pairs:
            row = study.comparison(pair, measure)
            middle, low, high = (mean + row[name] for name in ("difference", "low", "high"))
            outcome, label = outcome_of(row), study.label_of(pair[0])
            shown = f"{middle:.3f} {outcome.mark}".strip()
            estimates.append(Estimate(label, middle, shown, outcome.style, low, high))
        ordered = [estimates[0], *sorted(estimates[1:], key=lambda e: -e.middle)]
        panels.append((capital(study.name), ordered, mean))
    measures = ", ".join(dict.fromkeys(study.measures[0] for study in studies))
    return forest(panels, measures, f"Mean {measures} of the compared systems")


class StudyFigures:
    """The figures of one study; None where it has nothing to draw.

    Args:
        family: of each column, where it is known; determines its colour.
    """

    def __init__(self, study: Study, family: Mapping[str, str]) -> None:
        self.study, self._family = study, family

    @cached_property
    def gains(self) -> list[tuple[tuple[str, str], Drawing]]:
        """Per-query differences of each pair in the primary measure, the headline's first."""
        study, measure = self.study, self.study.measures[0]
        drawn = []
        for pair in study.pairs:
            differences = study.per_query_difference(pair, measure).to_numpy()
            title = f"{pair[0]} against {pair[1]}: difference in {measure} by query"
            drawn.append((pair, gains(differences, measure, title)))
        return drawn

    @cached_property
    def scatter(self) -> Drawing | None:
        """The headline pair, a point per query; None if there are too many queries."""
        study, measure = self.study, self.study.measures[0]
        if len(study.queries) > SCATTERED:
            return None
        system, baseline = study.pairs[0]
        values = study.values(baseline, measure), study.values(system, measure)
        return scatter(*values, study.label_of(baseline), study.label_of(system), measure)

    @cached_property
    def recall(self) -> Drawing | None:
        """Precision at levels of recall; None if recall is not meaningful."""
        table = self.study.precision_recall
        if table is None:
            return None
        levels = table["recall"].tolist()
        lines = {
            self.study.label_of(name): (levels, table[name].tolist())
            for name in table.columns.drop("recall")
        }
        return curves(Curve("Precision at levels of recall", "recall", "precision", lines))

    @cached_property
    def learning(self) -> Drawing | None:
        """Quality by the number of training queries."""
        study, table = self.study, self.study.learning_curve
        if table is None:
            return None
        lines = {}
        for side in ("baseline", "system"):
            for name, rows in table.drop_duplicates(["queries", side]).groupby(side, sort=False):
                means = rows[f"{side}_mean"].tolist()
                lines[study.label_of(str(name))] = (rows["queries"].tolist(), means)
        title = "Quality by the number of training queries"
        return curves(Curve(title, "training queries", study.measures[0], lines))

    @cached_property
    def hard(self) -> Drawing | None:
        """The estimates on hard queries, each with the difference on all queries."""
        study = self.study
        baseline, measure = study.hard_baseline, study.hard_measure
        panels = []
        for row in study.estimates_on_hard:
            rows = []
            if (row["system"], baseline) in study.pairs and measure in study.measures:
                every = study.comparison((row["system"], baseline), measure)
                rows.append(_estimate("all queries", every, "difference"))
            rows.append(_estimate("hard queries", row, "gain"))
            panels.append((study.label_of(str(row["system"])), rows, 0.0))
        if not panels:
            return None
        title = f"Hard queries: difference from {study.label_of(baseline)} in {measure}"
        return forest(panels, f"difference in {measure}", title)

    @cached_property
    def importance(self) -> list[Importance]:
        """The columns that the ranker of each compared system used, the headline's first; refits
        that only choose hard queries would show the same once more."""
        headline, compared = self.study.pairs[0][0], set(chain(*self.study.pairs))
        return [
            _importance(system.name, system.importance, self._family)
            for system in sorted(self.study.systems, key=lambda s: s.name != headline)
            if system.name in compared
            and system.importance is not None
            and system.importance["gain"].sum() > 0
        ]

    @cached_property
    def correlation(self) -> Correlation | None:
        """The heat map of the headline pair's columns."""
        table = self.study.column_correlation
        if table is None:
            return None
        system, baseline = (self.study.system(name) for name in self.study.pairs[0])
        gain: dict[str, float] = {}
        for side in (baseline, system):
            if side.importance is not None:
                gain |= dict(zip(side.importance["column"], side.importance["gain"], strict=True))
        added = [name for name in system.columns if name not in baseline.columns]
        names = chosen_columns(table, gain, added, CORRELATED_COLUMNS)
        if len(names) < 2:
            return None
        listed = [name for name in names if name in added] or names
        return Correlation(
            correlation(names, table.loc[names, names].to_numpy()),
            len(table) - len(names),
            nearest_columns(table, listed[:NEAREST_OF]),
        )


def _estimate(label: str, row: Mapping[str, Any] | pd.Series, key: str) -> Estimate:
    middle, low, high = (float(row[name]) for name in (key, "low", "high"))
    return Estimate(label, middle, signed(middle), outcome_of(row, key).style, low, high)


def _importance(system: str, table: pd.DataFrame, family: Mapping[str, str]) -> Importance:
    """The chart of a system's table of gains."""
    numbers = family_numbers(family.values())
    table = table[["column", "gain"]].astype({"column": str})
    table = table.sort_values(["gain", "column"], ascending=[False, True])
    table["share"] = table["gain"] / table["gain"].sum()
    table["family"] = [family.get(column, "other") for column in table["column"]]
    first, rest = table[:IMPORTANT_COLUMNS], table[IMPORTANT_COLUMNS:]
    shown = [
        (row["column"], float(row["share"]), numbers[row["family"]])
        for row in first.to_dict("records")
    ]
    totals = table.groupby("family", sort=False)["share"].sum().sort_values(ascending=False)
    words = ", ".join(f"{name} {100 * share:.1f} %" for name, share in totals.items())
    if len(rest):
        share = 100 * rest["share"].sum()
        words += f"; {len(rest)} further columns, not shown, share {share:.1f} %"
    return Importance(system, importance(shown, list(numbers), f"Columns used by {system}"), words)
