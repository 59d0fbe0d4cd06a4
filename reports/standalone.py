"""Figures of a report as files of their own: SVG as on the page, PDF for papers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports import figures
from reports.config import slug
from reports.report import Report, Study
from reports.significance import TIE

_GAIN, _LOSS = "#0072b2", "#d55e00"


def write_figures(report: Report, folder: Path) -> None:
    """Write ``STUDY-gains-SYSTEM-BASELINE.{svg,pdf}`` for each comparison of the primary measure
    and ``curve-NAME.svg`` for each training curve."""
    folder.mkdir()
    style = _style()
    for study in report.studies:
        for system, baseline in study.pairs:
            d = _differences(study, system, baseline)
            name = f"{slug(study.name)}-gains-{slug(system)}-{slug(baseline)}"
            measure, title = study.measures[0], f"{system} against {baseline}"
            chart = figures.gain_loss_chart(d, measure, title, "figure", TIE)
            _write_svg(folder / f"{name}.svg", chart, style)
            _write_pdf(folder / f"{name}.pdf", d, measure, title)
    for curve in report.curves:
        chart = figures.curve_chart(curve, "figure")
        if chart:
            _write_svg(folder / f"curve-{slug(curve.name)}.svg", chart, style)


def _differences(study: Study, system: str, baseline: str) -> NDArray[np.float64]:
    measure = study.measures[0]
    return study.values(system, measure) - study.values(baseline, measure)


def _style() -> str:
    """The page's rules for figures, with its light colours put in."""
    sheet = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    first = sheet[: sheet.index("@supports")]
    colours = dict(re.findall(r"--([\w-]+):\s*([^;]+);", first))
    rules = "\n".join(line for line in sheet.splitlines() if line.startswith("svg "))
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours.get(found[1], "#000"), rules)


def _write_svg(path: Path, chart: str, style: str) -> None:
    opened = '<svg xmlns="http://www.w3.org/2000/svg"'
    text = re.sub(r"^<svg", opened, chart)
    text = re.sub(r">", f"><style>{style}</style>", text, count=1)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def _write_pdf(path: Path, differences: NDArray[np.float64], measure: str, title: str) -> None:
    """Sorted per-query differences; the same bytes for the same values."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    d = np.sort(differences)[::-1]
    figure = Figure(figsize=(6.5, 2.2), layout="constrained")
    FigureCanvasPdf(figure)
    axes = figure.add_subplot()
    ranks = np.arange(1, len(d) + 1)
    for sign, colour in ((d > TIE, _GAIN), (d < -TIE, _LOSS)):
        axes.fill_between(
            ranks, 0, np.where(sign, d, 0), step="mid", color=colour, linewidth=0, rasterized=False
        )
    axes.axhline(0, color="#596472", linewidth=0.6)
    axes.set_xlim(0.5, len(d) + 0.5)
    axes.set_xlabel(f"queries ({len(d):,}), from the largest gain to the largest loss")
    axes.set_ylabel(f"difference in {measure}")
    axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="pdf", metadata={"CreationDate": None})
