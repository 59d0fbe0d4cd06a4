"""The report of a comparison of rankers as one self-contained HTML file."""

from __future__ import annotations

from typing import Any

from letor.measures import parse_measure
from ltr_features.studies.config import slug
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.kinds.letor_tables import Results, Tables, choices
from ltr_features.studies.page import pages


def render(config: StudyConfig, results: Results, tables: Tables) -> str:
    """The page as HTML. The same results give the same text."""
    schemes = [
        {
            "name": scheme.name,
            "id": slug(scheme.name),
            "n_folds": tables.folds.loc[tables.folds["scheme"] == scheme.name, "fold"].nunique(),
            "rows": _rows(config, tables, scheme.name),
            "comparisons": _comparisons(tables, scheme.name, grouped=results.groups is not None),
            "choices": choices(results.trained, scheme.name),
        }
        for scheme in config.schemes
    ]
    return pages.render(
        "letor_study.html.jinja",
        config=config,
        schemes=schemes,
        checks=tables.checks,
        n_groups=None if results.groups is None else _n_groups(tables),
        settings=tables.settings.description,
        definitions={n: parse_measure(text).definition for n, text in config.measures.items()},
    )


def _rows(config: StudyConfig, tables: Tables, scheme: str) -> list[dict[str, Any]]:
    """Ours with standard errors, then the references."""
    rows = []
    errors = tables.errors.set_index(["scheme", "ranker"])
    ours = tables.means[tables.means["scheme"] == scheme]
    best = ours[list(config.measures)].max()
    for mean in ours.to_dict(orient="records"):
        error = errors.loc[(scheme, mean["ranker"])]
        values = [
            (f"{mean[m]:.4f}", f"{error[m]:.4f}", mean[m] == best[m]) for m in config.measures
        ]
        rows.append(
            {"label": mean["ranker"], "values": values, "validation": f"{mean['validation']:.4f}"}
        )
    for reference in config.references:
        if reference.scheme == scheme:
            found = [reference.values.get(m) for m in config.measures]
            values = [("–" if x is None else f"{x:.4f}", "", False) for x in found]
            rows.append({"label": reference.label, "values": values, "validation": None})
    return rows


def _n_groups(tables: Tables) -> int:
    return int(tables.comparisons["n_groups"].max()) if len(tables.comparisons) else 0


def _comparisons(tables: Tables, scheme: str, *, grouped: bool) -> list[list[str]]:
    if not len(tables.comparisons):
        return []
    table = tables.comparisons[tables.comparisons["scheme"] == scheme]
    return [
        [
            str(row["system"]),
            str(row["measure"]),
            f"{row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
            + (f", {row['n_fits']} fits: spread {row['spread']:.4f}" if row["n_fits"] > 1 else ""),
            f"{row['p']:.4f}" + (f" (refits {row['p_refits']:.4f})" if row["n_fits"] > 1 else ""),
            f"{row['p_corrected']:.4f}",
            f"{row['won']} / {row['tied']} / {row['lost']}",
            *([f"{row['design_effect']:.1f}"] if grouped else []),
        ]
        for row in table.to_dict(orient="records")
    ]
