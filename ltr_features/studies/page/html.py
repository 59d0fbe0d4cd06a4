"""A report as one self-contained HTML file: no network, light and dark, printable."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ltr_features.studies.page import hard_verdicts, pages, query_tables, verdicts
from ltr_features.studies.page import study_tables as tables
from ltr_features.studies.page.charts.drawing import FAMILY_COLOURS, Drawing
from ltr_features.studies.page.charts.queries import BARS
from ltr_features.studies.page.report import Report, Study
from ltr_features.studies.page.script_data import RANKINGS_SIZE, class_letter, map_data, study_data
from ltr_features.studies.page.study_figures import (
    GAIN,
    Importance,
    ReportFigures,
    StudyFigures,
    family_numbers,
)
from ltr_features.studies.page.tables import Table
from ltr_features.studies.statistics.correlation import DEFINITION as CORRELATION
from ltr_features.studies.statistics.hard_queries import DEFINITIONS as HARD_DEFINITIONS

#: Number of table rows, or figures of a kind, up to which a page folds none of them.
LONG = 12


def render(report: Report, figures: ReportFigures | None = None) -> str:
    """The report as HTML; ``figures`` are those of the report, if they are made already."""
    figures = figures or ReportFigures(report)
    anchors = {name: f"definition-{i + 1}" for i, (name, _) in enumerate(report.definitions)}
    numbers = family_numbers(column.family for column in report.columns)
    families = {f: FAMILY_COLOURS[i % len(FAMILY_COLOURS)] for f, i in numbers.items()}
    return pages.render(
        "report.html.jinja",
        title=report.title,
        report=report,
        sentence=verdicts.verdict_sentence(report),
        second=verdicts.second_sentence(report),
        remarks=[*verdicts.nothing_in_reach(report), *report.remarks],
        outcomes=[_outcome(study) for study in report.studies],
        figures=figures,
        studies=[
            _study_view(study, of, anchors, f"s{i + 1}", len(report.studies))
            for i, (study, of) in enumerate(zip(report.studies, figures.studies, strict=True))
        ],
        columns=tables.columns_table(report.columns) if report.columns else None,
        families={f: c for f, c in families.items() if f in {x.family for x in report.columns}},
        map_data=map_data,
        all_definitions=_definitions(report),
        anchors=anchors,
        correlation_definition=CORRELATION,
        gain_definition=GAIN,
    )


def _definitions(report: Report) -> list[tuple[str, str]]:
    """Definitions of the measures, the tests, and the terms of hard queries if there are any."""
    tests = dict.fromkeys(study.test.description for study in report.studies)
    found = [*report.definitions, *(("Statistics", text) for text in tests)]
    if any(study.hard_rows(estimate=False) for study in report.studies):
        found += [(f"Hard queries: {name}", f"{text}.") for name, text in HARD_DEFINITIONS.items()]
    return found


def _outcome(study: Study) -> dict[str, Any]:
    """Values that the first screen shows of a study."""
    found = verdicts.verdict(study)
    row = found.row
    return {
        "name": study.name,
        "style": found.outcome.style,
        "difference": verdicts.signed(row["difference"]),
        "numbers": (
            f"{study.measures[0]} {verdicts.value(row['baseline_mean'])} → "
            f"{verdicts.value(row['system_mean'])} ({verdicts.percent(row['relative'])}), "
            f"{verdicts.interval(study, row)}, {verdicts.p_equals(row['p_corrected'])}"
            f"{', corrected' if len(study.comparisons) > 1 else ''}. "
            f"{row['won']:,} of {row['n_queries']:,} queries won, {row['lost']:,} lost."
        ),
        "hard": verdicts.capital(hard_verdicts.hard_in_short(study)),
    }


def _study_view(
    study: Study, figures: StudyFigures, anchors: Mapping[str, str], key: str, n_studies: int
) -> dict[str, Any]:
    """Values that the template shows of one study."""
    headline = study.pairs[0]
    difference = study.per_query_difference(headline, study.measures[0])
    gains, importance = _shown_figures(study, figures)
    return {
        "key": key,
        "study": study,
        "figures": figures,
        "averaged": len(study.queries) > BARS,
        "verdict": verdicts.verdict(study),
        "group_verdict": verdicts.group_verdict(study),
        "hard_verdict": hard_verdicts.hard_query_verdict(study),
        "systems": _in_two(
            tables.systems_table(study, anchors),
            [s.name for s in study.systems],
            {name for pair in study.shown_pairs for name in pair},
        ),
        "comparisons": {
            m: _in_two(tables.comparison_table(study, m), study.pairs, study.shown_pairs)
            for m in study.measures
        },
        "gains": gains,
        "importance": importance,
        "extremes": query_tables.extreme_tables(study),
        "classes": query_tables.class_table(study),
        "hard": query_tables.hard_query_table(study),
        "other_choices": query_tables.other_choices_table(study),
        "learning": query_tables.learning_table(study),
        "column_value": tables.value_table(study),
        "nearest": tables.nearest_columns_table(study, figures.correlation.nearest)
        if figures.correlation
        else None,
        "most_moved": query_tables.MOVED_DOCUMENTS,
        "moves": [
            (study.text_of(query), verdicts.signed(difference[query]),
             query_tables.moves_table(study, query))
            for sign in (1, -1)
            for query in query_tables.extreme_queries(study, sign)
            if query in study.drill_down
        ],
        "kinds": _kinds(study),
        "data": study_data(study, RANKINGS_SIZE // n_studies),
    }  # fmt: skip


def _in_two(table: Table, names: Sequence[Hashable], first: Container[Hashable]) -> list[Table]:
    """The table; a long one in two parts: first the rows whose names are in ``first``."""
    if len(names) <= LONG:
        return [table]
    named = list(zip(names, table.rows, strict=True))
    shown = [row for name, row in named if name in first]
    rest = [row for name, row in named if name not in first]
    name = f"{table.name}, the others"
    return [replace(table, rows=shown), replace(table, name=name, rows=rest, caption="")]


def _shown_figures(
    study: Study, figures: StudyFigures
) -> tuple[list[tuple[tuple[str, str], Drawing]], list[Importance]]:
    """The figures to put on the page: all, or, if there are many, those of the comparisons and
    systems that the first screen shows. All figures are also written to files."""
    gains, importance = figures.gains, figures.importance
    if len(gains) > LONG:
        gains = [(pair, drawing) for pair, drawing in gains if pair in study.shown_pairs]
    if len(importance) > LONG:
        names = {name for pair in study.shown_pairs for name in pair}
        importance = [chart for chart in importance if chart.system in names]
    return gains, importance


def _kinds(study: Study) -> list[tuple[int, str, list[tuple[str, str, int]]]]:
    """Number and name of each property with more than one class, and of each class its letter, its
    name and the number of its queries."""
    if study.query_kinds is None:
        return []
    found = []
    for number, (name, column) in enumerate(study.query_kinds.reindex(study.queries).items()):
        counts = column.value_counts(sort=False)
        if len(counts) > 1:
            classes = [
                (class_letter(code), str(label), int(n))
                for code, (label, n) in enumerate(counts.items())
            ]
            found.append((number, str(name), classes))
    return found
