"""The report of a matching experiment as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from ltr_features.studies.kinds.matching_figures import scatter_chart
from ltr_features.studies.kinds.matching_tables import (
    HEADER,
    Results,
    cells,
    check_text,
    order_checks,
    task_line,
)
from ltr_features.studies.page import pages
from ltr_features.studies.page.figures import curve_chart
from ltr_features.studies.page.report import TrainingCurve
from ltr_features.studies.page.tables import row_remarks


def render(results: Results) -> str:
    """The page as HTML. The same results give the same text."""
    tables = [
        {
            "config": table,
            "task": task_line(results, table),
            "rows": [cells(results, table, row) for row in table.rows],
            "checks": [
                (check.outcome, check_text(check)) for check in order_checks(results, table)
            ],
            "remarks": row_remarks(table, results.rows),
        }
        for table in results.config.tables
    ]
    return pages.render(
        "matching.html.jinja",
        config=results.config,
        header=HEADER,
        tables=tables,
        scatters=list(_scatters(results)),
        curves=list(_curves(results)),
    )


def _scatters(results: Results) -> Iterator[tuple[str, Markup]]:
    scatter = results.config.scatter
    if scatter is None:
        return
    own = results.rows[scatter.table, scatter.model].per_query[: scatter.n_queries]
    for number, label in enumerate(scatter.against):
        other = results.rows[scatter.table, label].per_query[: scatter.n_queries]
        chart = scatter_chart(
            other["ap"].to_numpy(), own["ap"].to_numpy(), label, scatter.model, f"scatter{number}"
        )
        better, worse = int((own["ap"] > other["ap"]).sum()), int((own["ap"] < other["ap"]).sum())
        caption = (
            f"Average precision of {len(own)} queries: {scatter.model} against {label}; "
            f"{better} above the diagonal, {worse} below."
        )
        yield caption, chart


def _curves(results: Results) -> Iterator[tuple[str, Markup]]:
    shares = sorted({share for share, _ in results.curves})
    for number, share in enumerate(shares):
        series = {}
        for (other, rank), points in results.curves.items():
            if other == share:
                epochs = [point["epoch"] for point in points]
                for part in ("train", "test"):
                    series[f"{part}, N = {rank}"] = (epochs, [point[part] for point in points])
        curve = TrainingCurve(f"{share:.0%} of the training links", "epoch", "rank loss", series)
        yield (
            f"{curve.name}: rank loss of training and test links.",
            curve_chart(curve, f"curve{number}"),
        )
