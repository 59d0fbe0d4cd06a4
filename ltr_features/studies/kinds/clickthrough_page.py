"""The report of a clickthrough experiment as one self-contained HTML file."""

from __future__ import annotations

from markupsafe import Markup

from ltr_features.studies.kinds.clickthrough_config import TableConfig
from ltr_features.studies.kinds.clickthrough_tables import (
    Results,
    cells,
    check_text,
    checks,
    facts_line,
    header,
)
from ltr_features.studies.page import pages
from ltr_features.studies.page.figures import curve_chart
from ltr_features.studies.page.report import TrainingCurve
from ltr_features.studies.page.tables import row_remarks


def render(results: Results) -> str:
    """The page as HTML. The same results give the same text."""
    config = results.config
    tables = [
        {
            "config": table,
            "facts": facts_line(results, table),
            "rows": [cells(results, table, row) for row in table.rows],
            "checks": [
                (check.held, check_text(check, config.measures)) for check in checks(results, table)
            ],
            "remarks": row_remarks(table, results.rows),
            "figure": _evaluations(results, table),
        }
        for table in config.tables
    ]
    return pages.render(
        "clickthrough.html.jinja",
        config=config,
        header=header(config),
        first_paper=len(header(config)) - len(config.cutoffs),
        tables=tables,
    )


def _evaluations(results: Results, table: TableConfig) -> Markup:
    """Work of the projection by iteration of EM (Figure 2 of the paper)."""
    series = {}
    for label in table.evaluations:
        values = list(results.rows[table.name, label].evaluations)
        series[label] = (list(range(1, len(values) + 1)), values)
    if not any(values for _, values in series.values()):
        return Markup("")
    curve = TrainingCurve(
        "Projection", "iteration of EM", "function and gradient evaluations per pair", series
    )
    return curve_chart(curve, f"{table.name}-evaluations")
