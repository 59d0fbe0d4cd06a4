"""What the report of a clickthrough experiment shows."""

from __future__ import annotations

from ltr_features.studies.kinds.clickthrough_config import (
    ClickthroughConfig,
    RowConfig,
    TableConfig,
)
from ltr_features.studies.kinds.clickthrough_tables import Results, check_text, checks, facts_line
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.tables import Table, row_remarks
from ltr_features.studies.statistics.refits import with_spread


def document(results: Results) -> Document:
    """Every table with what was expected of it."""
    config = results.config
    sections = [
        Section(
            name=table.name,
            title=table.title,
            facts=facts_line(results, table),
            tables=[_table(results, table)],
            checks=[
                ("✓" if check.held else "✗", check_text(check, config.measures))
                for check in checks(results, table)
            ],
            remarks=[*_work(results, table), *row_remarks(table, results.rows)],
            notes=table.notes,
            figures=_evaluations(results, table),
        )
        for table in config.tables
    ]
    measure = config.measures[-1]
    means = {
        table.title: {
            row.label: float(results.rows[table.name, row.label].per_query[measure].mean())
            for row in table.rows
        }
        for table in config.tables
    }
    return Document(
        config.title, config.introduction, sections, means, measure,
        notes=config.notes, definitions=_definitions(config),
    )  # fmt: skip


def _table(results: Results, table: TableConfig) -> Table:
    config = results.config
    paper = [f"Paper: @{k}" for k in config.cutoffs]
    return Table(
        table.title,
        ["Model", *config.measures, "Weights", "Fit s", *paper],
        [_cells(results, table, row) for row in table.rows],
        "Means over the test queries; on the right, what the paper reports on its data.",
    )


def _cells(results: Results, table: TableConfig, row: RowConfig) -> list[str]:
    config, found = results.config, results.rows[table.name, row.label]
    means = [
        with_spread(f"{found.per_query[measure].mean():.3f}", found.spread[measure])
        for measure in config.measures
    ]
    weights = " ".join(",".join(f"{w:g}" for w in half) for half in found.first.weights)
    paper = [f"{value:.3f}" for value in row.paper] or ["–"] * len(config.cutoffs)
    return [row.label, *means, weights, f"{found.first.seconds:.1f}", *paper]


def _work(results: Results, table: TableConfig) -> list[tuple[str, str]]:
    """Work of the projection by iteration of EM, in numbers."""
    return [
        (
            f"{label}, function and gradient evaluations by iteration",
            " ".join(f"{x:.1f}" for x in results.rows[table.name, label].evaluations),
        )
        for label in table.evaluations
    ]


def _evaluations(results: Results, table: TableConfig) -> list[tuple[str, Drawing]]:
    """Work of the projection by iteration of EM (Figure 2 of the paper)."""
    series = {}
    for label in table.evaluations:
        values = list(results.rows[table.name, label].evaluations)
        series[label] = (list(range(1, len(values) + 1)), values)
    curve = Curve(
        "Projection", "iteration of EM", "function and gradient evaluations per pair", series
    )
    drawing = curves(curve)
    caption = (
        "Evaluations of the projection's dual per pair, by iteration of EM (Figure 2 of the "
        "paper). Function and gradient are computed together."
    )
    return [] if drawing is None else [(caption, drawing)]


def _definitions(config: ClickthroughConfig) -> dict[str, str]:
    return {
        "NDCG@k": "Gain 2^grade − 1, discount 1 / log2(rank + 1), over all documents of the "
        "collection; unjudged documents have grade 0; equal scores go by document id, ascending.",
        "Weights": "Tuned for the last NDCG on one half of the test queries and used for the "
        "other: λ1 of the collection and λ2 of the title's own words (models of counts), or the "
        "weight of the tf-idf cosine (the others); one group per half.",
        "Expected": "“A < B”: B is significantly better on the last NDCG; “A <= B”: B is not "
        "significantly worse; “A ~ B”: they do not differ significantly. Paired t-test, "
        f"two-sided, level {config.alpha} after Holm's correction over the expectations of the "
        "table, measure by measure.",
        "Fit s": "Seconds to fit, once for the rows alone and mixed; compiling and waiting "
        "included.",
    }
