"""What the report of a matching experiment shows."""

from __future__ import annotations

from collections.abc import Iterator

from ltr_features.studies.kinds.matching_config import PaperNumbers, RowConfig, TableConfig
from ltr_features.studies.kinds.matching_tables import (
    Results,
    check_text,
    order_checks,
    task_line,
)
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.charts.scatter import scatter
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.tables import Cell, Table, row_remarks
from ltr_features.studies.statistics.refits import with_spread

DEFINITIONS = {
    "Rank loss": "Share of sampled triples (query, relevant document, other document) that are "
    "ordered wrongly; ties count half; standard error over queries.",
    "MAP, P@10": "Over the fixed test queries; the document that a query was made of and its "
    "training links are not ranked; of documents with equal scores the irrelevant ones come first.",
    "Order": "Differences in average precision, query by query, with Fisher's randomisation test "
    "(two-sided, 10,000 permutations; queries made of one document change their sign together). "
    '"A tie": the opposite order, not significantly.',
    "Train s": "Seconds to train the model that is reported; tuning: those of all that were tried. "
    "Compiling is not counted.",
}
_SIGNS = {"holds": "✓", "holds, not significantly": "✓", "a tie": "≈"}


def document(results: Results) -> Document:
    """Every table with what was expected of it, then the figures."""
    config = results.config
    sections = [
        Section(
            name=table.name,
            title=table.title,
            facts=task_line(results, table),
            tables=[_table(results, table)],
            checks=[
                (_SIGNS.get(check.outcome, "✗"), check_text(check))
                for check in order_checks(results, table)
            ],
            remarks=row_remarks(table, results.rows),
            notes=table.notes,
        )
        for table in config.tables
    ]
    drawn = [*_scatters(results), *_curves(results)]
    if drawn:
        notes = config.curves.notes if config.curves else ()
        sections.append(Section("figures", "Figures", figures=drawn, notes=notes))
    means = {
        table.title: {
            row.label: results.rows[table.name, row.label].measures["map"]
            for row in table.rows
            if row.model is not None
        }
        for table in config.tables
    }
    return Document(
        config.title, config.introduction, sections, means, "MAP",
        notes=config.notes, definitions=DEFINITIONS,
    )  # fmt: skip


def _table(results: Results, table: TableConfig) -> Table:
    return Table(
        table.title,
        [
            "Algorithm", "Rank loss", "MAP", "P@10", "Weights", "Train s", "Tuning s",
            "Paper: loss", "Paper: MAP", "Paper: P@10",
        ],
        [_cells(results, table, row) for row in table.rows],
        "Means ± standard errors; on the right, what the paper reports on its data.",
    )  # fmt: skip


def _cells(results: Results, table: TableConfig, row: RowConfig) -> list[Cell | str]:
    paper = _paper(row.paper)
    if row.model is None:
        return [Cell(row.label, style="biased"), *["–"] * 6, *paper]
    found = results.rows[table.name, row.label]
    m, spread, first = found.measures, found.spread, found.first
    loss = f"{100 * m['rank_loss']:.2f}% ±{100 * m['rank_loss_error']:.2f}"
    return [
        row.label,
        with_spread(loss, 100 * spread["rank_loss"], 2),
        with_spread(f"{m['map']:.3f} ±{m['map_error']:.3f}", spread["map"]),
        with_spread(f"{m['p10']:.3f} ±{m['p10_error']:.3f}", spread["p10"]),
        _thousands(first.result["parameters"]),
        f"{first.seconds:.1f}",
        f"{first.tuning_seconds:.0f}" if len(first.result["trials"]) > 1 else "–",
        *paper,
    ]


def _paper(paper: PaperNumbers) -> list[str]:
    def with_error(value: float | None, error: float | None) -> str:
        if value is None:
            return "–"
        return f"{value:.3f}" + (f" ±{error:.3f}" if error is not None else "")

    loss = "–" if paper.rank_loss is None else f"{paper.rank_loss:g}%"
    return [loss, with_error(paper.map, paper.map_error), with_error(paper.p10, paper.p10_error)]


def _thousands(n: int) -> str:
    if n >= 1_000_000:
        return f"{n / 1e6:.1f}M"
    return f"{n / 1e3:.0f}k" if n >= 1000 else str(n)


def _scatters(results: Results) -> Iterator[tuple[str, Drawing]]:
    drawn = results.config.scatter
    if drawn is None:
        return
    own = results.rows[drawn.table, drawn.model].per_query["ap"][: drawn.n_queries]
    for label in drawn.against:
        other = results.rows[drawn.table, label].per_query["ap"][: drawn.n_queries]
        values = other.to_numpy(), own.to_numpy()
        drawing = scatter(*values, label, drawn.model, "Average precision")
        yield f"{drawing.title}; {drawing.description}", drawing


def _curves(results: Results) -> Iterator[tuple[str, Drawing]]:
    for share in sorted({share for share, _ in results.curves}):
        series = {}
        for (other, rank), points in results.curves.items():
            if other == share:
                epochs = [point["epoch"] for point in points]
                for part in ("train", "test"):
                    series[f"{part}, N = {rank}"] = (epochs, [point[part] for point in points])
        curve = Curve(f"{share:.0%} of the training links", "epoch", "rank loss", series)
        if drawing := curves(curve):
            yield f"{curve.name}: rank loss of training and test links.", drawing
