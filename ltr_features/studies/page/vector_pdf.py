"""The figures of :mod:`figures` as PDF, drawn from their SVG: the same figure in both."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Style = dict[str, str]
Rules = Mapping[str, Style]

INCHES = 6.5
"""Width of a page's text: a drawing of 900 units fills it."""

_POINTS = 72 * INCHES / 900  # of a unit of the drawing
_WEIGHTS = {"600": "bold"}
_ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def read_rules(sheet: str) -> Rules:
    """The declarations of a style sheet by selector: "text", ".gain", "text.strong"."""
    rules: dict[str, Style] = {}
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet):
        pairs = [part.split(":", 1) for part in body.split(";") if ":" in part]
        for selector in selectors.split(","):
            name = selector.strip().removeprefix("svg").strip()
            found = {key.strip(): value.strip() for key, value in pairs}
            rules[name] = rules.get(name, {}) | found
    return rules


def write_pdf(chart: str, rules: Rules, path: Path) -> None:
    """Write the figure; the same bytes for the same figure."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    root = ElementTree.fromstring(chart)
    width, height = (float(x) for x in root.attrib["viewBox"].split()[2:])
    figure = Figure(figsize=(width * _POINTS / 72, height * _POINTS / 72))
    FigureCanvasPdf(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for order, element in enumerate(root):
        _draw(axes, element, _style(element, rules), order)
    figure.savefig(path, format="pdf", metadata={"CreationDate": None})


def _style(element: ElementTree.Element, rules: Rules) -> Style:
    """The element's declarations: of its tag, of its classes, of both together."""
    tag, classes = element.tag, element.attrib.get("class", "").split()
    names = [tag, *(f".{one}" for one in classes), *(f"{tag}.{one}" for one in classes)]
    style: Style = {}
    for name in names:
        style |= rules.get(name, {})
    return style | {k: v for k, v in element.attrib.items() if k == "fill-opacity"}


def _draw(axes: Axes, element: ElementTree.Element, style: Style, order: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    def at(*names: str) -> list[float]:
        return [float(element.attrib[name]) for name in names]

    if element.tag == "text":
        _write(axes, element, style, order)
        return
    stroke: dict[str, Any] = {
        "color": style.get("stroke", "none"),
        "linewidth": float(style.get("stroke-width", "1")) * _POINTS,
        "linestyle": _dashes(style),
        "zorder": order,
    }
    if element.tag == "line":
        x1, x2, y1, y2 = at("x1", "x2", "y1", "y2")
        axes.add_artist(Line2D([x1, x2], [y1, y2], **stroke))
    elif element.tag in ("path", "rect"):
        if element.tag == "rect":
            x, y, w, h = at("x", "y", "width", "height")
            steps = [("M", x, y), ("L", x + w, y), ("L", x + w, y + h), ("L", x, y + h)]
        else:
            steps = list(_steps(element.attrib["d"]))
        outline = Outline(
            [(x, y) for _, x, y in steps],
            [Outline.MOVETO if kind == "M" else Outline.LINETO for kind, _, _ in steps],
        )
        if style.get("fill") == "none":
            axes.add_artist(PathPatch(outline, fill=False, edgecolor=stroke.pop("color"), **stroke))
        else:
            opacity = float(style.get("fill-opacity", "1"))
            colour = style.get("fill", "#000")
            axes.add_artist(
                PathPatch(outline, facecolor=colour, alpha=opacity, linewidth=0, zorder=order)
            )


def _write(axes: Axes, element: ElementTree.Element, style: Style, order: int) -> None:
    size = style.get("font-size") or style.get("font", "12px")
    pixels = re.search(r"[\d.]+(?=px)", size)
    axes.text(
        float(element.attrib["x"]),
        float(element.attrib["y"]),
        element.text or "",
        ha=_ANCHORS[element.attrib["text-anchor"]],
        va="baseline",
        fontsize=float(pixels[0] if pixels else 12) * _POINTS,
        fontweight=_WEIGHTS.get(style.get("font-weight", ""), "normal"),
        color=style.get("fill", "#000"),
        parse_math=False,
        zorder=order,
    )


def _dashes(style: Style) -> str | tuple[int, tuple[float, ...]]:
    if "stroke-dasharray" not in style:
        return "solid"
    # Matplotlib counts dashes in widths of the line.
    width = float(style.get("stroke-width", "1"))
    return 0, tuple(float(x) / width for x in style["stroke-dasharray"].split())


def _steps(path: str) -> Iterator[tuple[str, float, float]]:
    """Points of a path of M, L, H, V, h and Z with the kind of step, "M" or "L"."""
    x = y = 0.0
    for kind, numbers in re.findall(r"([MLHVhZ])([^MLHVhZ]*)", path):
        values = [float(number) for number in numbers.split()]
        if kind in "ML":
            x, y = values
        elif kind == "H":
            x = values[0]
        elif kind == "h":
            x += values[0]
        elif kind == "V":
            y = values[0]
        if kind != "Z":
            yield "M" if kind == "M" else "L", x, y
