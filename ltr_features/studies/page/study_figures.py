"""The figures of a study: what the page shows and what is written as files of their own."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from markupsafe import Markup

from ltr_features.studies.page import figures
from ltr_features.studies.page.report import Report, Study, SystemResult
from ltr_features.studies.statistics.correlation import chosen_columns, nearest_columns
from ltr_features.studies.statistics.significance import TIE

IMPORTANT_COLUMNS = 20
NEAREST_OF = 12


def gains_figure(study: Study, pair: tuple[str, str], key: str) -> Markup:
    """Per-query differences of a pair in the primary measure."""
    measure = study.measures[0]
    differences = study.values(pair[0], measure) - study.values(pair[1], measure)
    title = f"{pair[0]} against {pair[1]}: difference in {measure} by query"
    return figures.gain_loss_chart(differences, measure, title, key, TIE)


def family_numbers(report: Report) -> dict[str, int]:
    """A number (colour) for each family in order of the column table; unlisted columns last."""
    families = [*(c.family for c in report.columns), "other"]
    return {family: i for i, family in enumerate(dict.fromkeys(families))}


def has_importance(system: SystemResult) -> bool:
    """Whether there is something to draw."""
    return system.importance is not None and bool(system.importance["gain"].sum() > 0)


def importance_figure(report: Report, system: SystemResult, key: str) -> tuple[Markup, str]:
    """The chart of the most important columns, and the families' shares in words."""
    numbers = family_numbers(report)
    family = {c.name: c.family for c in report.columns}
    table = pd.DataFrame(system.importance)[["column", "gain"]]
    table["column"] = table["column"].astype(str)
    table = table.sort_values(["gain", "column"], ascending=[False, True])
    table["share"] = table["gain"] / table["gain"].sum()
    table["family"] = [family.get(c, "other") for c in table["column"]]
    shown = [
        (str(r["column"]), float(r["share"]), numbers[r["family"]])
        for r in table.head(IMPORTANT_COLUMNS).to_dict("records")
    ]
    totals = table.groupby("family", sort=False)["share"].sum().sort_values(ascending=False)
    words = ", ".join(f"{name} {100 * share:.1f} %" for name, share in totals.items())
    hidden = len(table) - len(shown)
    if hidden:
        rest = 100 * table["share"].iloc[len(shown) :].sum()
        words += f"; {hidden} further columns, not drawn, have {rest:.1f} % together"
    chart = figures.importance_chart(shown, list(numbers), f"Columns used by {system.name}", key)
    return chart, words


@dataclass(frozen=True)
class Correlation:
    """What is shown of the correlation of columns.

    Attributes:
        chart: the heat map. names: of the columns in it. hidden: number of the others.
        nearest: of the columns that the system has beyond its baseline (of those with most gain
            where there are none) the columns most like each, with their correlation.
    """

    chart: Markup
    names: list[str]
    hidden: int
    nearest: list[tuple[str, list[tuple[str, float]]]]


def correlation_figure(study: Study, key: str) -> Correlation | None:
    """The heat map of the headline pair's columns; None if there is nothing to draw."""
    table = study.column_correlation
    if table is None:
        return None
    system, baseline = (study.system(name) for name in study.pairs[0])
    gain: dict[str, float] = {}
    for one in (baseline, system):
        if one.importance is not None:
            gain |= dict(zip(one.importance["column"], one.importance["gain"], strict=True))
    added = [name for name in system.columns if name not in baseline.columns]
    names = chosen_columns(table, gain, added)
    if len(names) < 2:
        return None
    values = table.loc[names, names].to_numpy()
    of = [name for name in names if name in added] or names
    return Correlation(
        figures.correlation_chart(names, values, key),
        names,
        len(table) - len(names),
        nearest_columns(table, of[:NEAREST_OF]),
    )
