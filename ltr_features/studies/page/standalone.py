"""Figures of a report as files of their own: SVG and PDF, as on the page in light colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ltr_features.studies.config import slug
from ltr_features.studies.page import figures
from ltr_features.studies.page.pages import template_text
from ltr_features.studies.page.report import Report
from ltr_features.studies.page.study_figures import (
    correlation_figure,
    gains_figure,
    has_importance,
    importance_figure,
)
from ltr_features.studies.page.vector_pdf import read_rules, write_pdf


def write_figures(report: Report, folder: Path) -> None:
    """Write every figure of the page as ``NAME.svg`` and ``NAME.pdf``, see
    :func:`figures_of`."""
    folder.mkdir()
    style = _style()
    rules = read_rules(style)
    for name, chart in figures_of(report):
        _write_svg(folder / f"{name}.svg", chart, style)
        write_pdf(chart, rules, folder / f"{name}.pdf")


def figures_of(report: Report) -> Iterator[tuple[str, str]]:
    """Names and markup: of each study ``STUDY-gains-SYSTEM-BASELINE``,
    ``STUDY-importance-SYSTEM`` and ``STUDY-correlation``; ``curve-NAME`` of each model."""
    for study in report.studies:
        name = slug(study.name)
        for pair in study.pairs:
            yield f"{name}-gains-{'-'.join(map(slug, pair))}", gains_figure(study, pair, "figure")
        for system in filter(has_importance, study.systems):
            chart, _ = importance_figure(report, system, "figure")
            yield f"{name}-importance-{slug(system.name)}", chart
        if (correlation := correlation_figure(study, "figure")) is not None:
            yield f"{name}-correlation", correlation.chart
    for curve in report.curves:
        if chart := figures.curve_chart(curve, "figure"):
            yield f"curve-{slug(curve.name)}", chart


def _style() -> str:
    """The page's rules for figures, with its light colours put in."""
    sheet = template_text("style.css")
    first = sheet[: sheet.index("@supports")]
    colours = dict(re.findall(r"--([\w-]+):\s*([^;]+);", first))
    rules = "\n".join(line for line in sheet.splitlines() if re.match(r"svg |\.c\d", line))
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours.get(found[1], "#000"), rules)


def _write_svg(path: Path, chart: str, style: str) -> None:
    opened = '<svg xmlns="http://www.w3.org/2000/svg"'
    text = re.sub(r"^<svg", opened, chart)
    text = re.sub(r">", f"><style>{style}</style>", text, count=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")
