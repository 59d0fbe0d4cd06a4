"""Charts by matplotlib: one drawing is SVG in the page, and SVG and PDF files beside it.

Charts are as wide as a phone's screen, so that their texts are readable there; a desktop shows
them enlarged.
"""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from ltr_features.studies.page.report import TrainingCurve
from ltr_features.studies.page.verdicts import signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 420.0
"""Of every chart, in points."""
BARS = 360
"""Queries drawn as bars of their own; more are averaged over neighbours in the order."""
PALETTE = {
    "ink": ("#1b2430", "#e6e9ed"), "muted": ("#596472", "#a3adb8"), "rule": ("#d8dde4", "#36404b"),
    "unsure": ("#737d89", "#98a2ad"), "loss-text": ("#b04a00", "#f29b62"),
    "gain": ("#0072b2", "#4ba6dd"), "loss": ("#d55e00", "#ef8b4b"),
    "c0": ("#0072b2", "#4ba6dd"), "c1": ("#e69f00", "#e69f00"), "c2": ("#009e73", "#2fbf94"),
    "c3": ("#cc79a7", "#dc94bd"), "c4": ("#56b4e9", "#a9dcfb"), "c5": ("#d55e00", "#ef8b4b"),
    "c6": ("#7a7f87", "#9aa0a8"), "c7": ("#b3a100", "#d8c733"), "c8": ("#882255", "#c9548f"),
    "c9": ("#44aa99", "#7fd6c8"), "c10": ("#5b4bb5", "#9a8cf0"), "c11": ("#8a4b2a", "#b9764f"),
}  # fmt: skip
"""Light and dark colour by name: CSS variables of the page. c0 to c11 tell families apart."""
FAMILY_COLOURS = [name for name in PALETTE if re.fullmatch(r"c\d+", name)]
_HEX = {name: light for name, (light, _) in PALETTE.items()}
_NAMES = {light: name for name, light in reversed(_HEX.items())}
_RC = {
    "svg.fonttype": "none", "svg.hashsalt": "ltr-features",
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "font.size": 10.0, "text.color": _HEX["ink"], "text.parse_math": False,
    "axes.labelcolor": _HEX["muted"], "axes.labelsize": 9.5, "axes.edgecolor": _HEX["rule"],
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": _HEX["rule"], "grid.linewidth": 0.75,
    "xtick.color": _HEX["muted"], "ytick.color": _HEX["muted"], "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5, "xtick.major.size": 0.0, "ytick.major.size": 0.0,
    "legend.frameon": False, "legend.fontsize": 9.5, "legend.borderaxespad": 0.0,
    "lines.linewidth": 1.75,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Drawing:
    """A chart and what a screen reader says of it.

    Attributes:
        title: what is shown. description: its main numbers. height: in points.
        paint: draws into an empty figure. ends: left and right end of the axes, in shares of the
            width.
    """

    title: str
    description: str
    height: float
    paint: Callable[[Figure], None]
    ends: tuple[float, float] = (0.0, 1.0)

    def svg(self, key: str) -> Markup:
        """For the page: colours are its variables; ``key`` makes ids unique."""
        label = f'class="figure" aria-labelledby="{key}-t {key}-d"'
        return Markup(self._element(label, key, lambda name: f"var(--{name})"))

    def write(self, path: Path) -> None:
        """Write ``path`` with the suffixes ``.svg`` and ``.pdf``: the same bytes each time."""
        label = 'xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans, sans-serif"'
        text = self._element(label, "figure", _HEX.__getitem__) + "\n"
        path.with_name(path.name + ".svg").write_text(text, encoding="utf-8", newline="\n")
        path.with_name(path.name + ".pdf").write_bytes(self._saved("pdf"))

    def _element(self, label: str, key: str, colour: Callable[[str], str]) -> str:
        body = "".join(_markup(child, key, colour) for child in self._drawn)
        return (
            f'<svg {label} viewBox="0 0 {WIDTH:g} {self.height:g}" role="img">'
            f'<title id="{key}-t">{escape(self.title)}</title>'
            f'<desc id="{key}-d">{escape(self.description)}</desc>{body}</svg>'
        )

    @cached_property
    def _drawn(self) -> ElementTree.Element:
        return ElementTree.fromstring(self._saved("svg"))

    def _saved(self, kind: str) -> bytes:
        from matplotlib.figure import Figure

        with _settings():
            figure = Figure(figsize=(WIDTH / 72, self.height / 72))
            self.paint(figure)
            for artist in figure.findobj():
                artist.set_clip_on(False)  # nothing lies outside, and clips need ids
            buffer = io.BytesIO()
            dates = {"svg": "Date", "pdf": "CreationDate"}
            figure.savefig(buffer, format=kind, metadata={dates[kind]: None})
        return buffer.getvalue()


@contextmanager
def _settings() -> Iterator[None]:
    """Our settings and matplotlib's own defaults, whatever a user's file says; put back after."""
    import matplotlib.style

    with matplotlib.style.context(_RC, after_reset=True):
        yield


def _markup(element: ElementTree.Element, key: str, colour: Callable[[str], str]) -> str:
    """Matplotlib's SVG without metadata, style sheets, names of fonts and unused ids; hundredths
    of points."""
    tag = element.tag.split("}")[1]
    if tag in ("metadata", "style"):
        return ""
    found = {name.split("}")[-1]: text for name, text in element.attrib.items()}
    inner = "".join(_markup(child, key, colour) for child in element)
    if tag == "g":
        return inner
    for name in ("d", "x", "y", "transform"):
        if name in found:
            found[name] = " ".join(re.sub(r"\d+\.\d+", _hundredths, found[name]).split())
    if "style" in found:
        style = re.sub(r"font-family:[^;]*;? ?", "", found["style"])
        found["style"] = re.sub(r"#[0-9a-f]{6}", lambda c: colour(_NAMES[c[0]]), style)
    if "id" in found:
        found["id"] = f"{key}-{found['id']}"
    if "href" in found:
        found["href"] = f"#{key}-{found['href'][1:]}"
    if found.get("transform", "").startswith("rotate(-0 "):
        del found["transform"]
    given = "".join(f' {name}="{escape(text)}"' for name, text in found.items())
    content = escape(element.text or "") if tag == "text" else ""
    return f"<{tag}{given}>{content}{inner}</{tag}>"


def _hundredths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Estimate:
    """A dot with its interval; ``style`` ("gain", "loss", "unsure") is its colour, ``shown`` the
    number behind it. Without ``low`` and ``high`` it is a dot alone."""

    label: str
    middle: float
    shown: str
    style: str = "unsure"
    low: float = math.nan
    high: float = math.nan


def forest(
    panels: Sequence[tuple[str, Sequence[Estimate], float]], x_label: str, title: str
) -> Drawing:
    """Estimates with intervals, a row each, in panels below each other.

    Args:
        panels: name, estimates, and where the line of no difference stands, of each.
    """
    left, right, row, head, bottom = 132.0, 52.0, 19.0, 24.0, 34.0
    gap = 8.0
    heights = [row * len(estimates) for _, estimates, _ in panels]
    height = sum(heights) + len(panels) * head + (len(panels) - 1) * gap + bottom
    marks = np.array(
        [x for _, every, zero in panels for e in every for x in (e.low, e.middle, e.high, zero)]
    )
    low, high = float(np.nanmin(marks)), float(np.nanmax(marks))
    room = 0.06 * (high - low) or 0.01

    def paint(figure: Figure) -> None:
        top = 0.0
        for (name, estimates, zero), size in zip(panels, heights, strict=True):
            top += head
            axes = _axes(figure, left, right, top, height - top - size)
            top += size + gap
            axes.set(xlim=(low - room, high + room), ylim=(len(estimates) - 0.4, -0.6))
            axes.text(-left / (WIDTH - left - right), 1 + 7 / size, name, fontweight="bold",
                      transform=axes.transAxes)  # fmt: skip
            axes.set_yticks(range(len(estimates)), [clipped(e.label, 22) for e in estimates],
                            color=_HEX["ink"])  # fmt: skip
            axes.grid(False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelbottom=top > height - bottom)
            axes.axvline(zero, color=_HEX["muted"], linewidth=1.25)
            _nice_ticks(axes.xaxis)
            for y, one in enumerate(estimates):
                colour = _HEX[one.style]
                if not math.isnan(one.low):
                    axes.plot([one.low, one.high], [y, y], color=colour, linewidth=2.5)
                axes.plot([one.middle], [y], "o", color=colour, markersize=6.5)
                axes.text(1 + 6 / (WIDTH - left - right), y, one.shown, va="center", fontsize=9.5,
                          transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set_xlabel(x_label)

    words = [
        f"{name}: " + ", ".join(f"{e.label} {e.shown}" for e in estimates)
        for name, estimates, _ in panels
    ]
    return Drawing(title, "; ".join(words) + ".", height, paint)


def gains(differences: NDArray[np.float64], measure: str, title: str, tie: float = 1e-9) -> Drawing:
    """Per-query differences, the largest gain first: one bar per query, gains above the line,
    losses below (the figures of Ensan et al. 2017, in absolute differences: a relative one has no
    value where the baseline is 0).

    Args:
        differences: float64 [n], system minus baseline.
        tie: differences up to this size are neither won nor lost.
    """
    d = np.sort(differences)[::-1]
    n, won, lost = len(d), int((d > tie).sum()), int((d < -tie).sum())
    bars = _averaged(d)
    height, left, right = 200.0, 44.0, 6.0

    def paint(figure: Figure) -> None:
        axes = _axes(figure, left, right, 8, 22)
        edges = np.linspace(0, n, len(bars) + 1)
        for style, part in (("gain", np.maximum(bars, 0)), ("loss", np.minimum(bars, 0))):
            if part.any():
                axes.stairs(part, edges, fill=True, color=_HEX[style], linewidth=0)
        limit = max(float(np.abs(d).max()), 0.01) * 1.03
        axes.set(xlim=(0, n), ylim=(-limit, limit), xticks=[])
        axes.axhline(0, color=_HEX["muted"], linewidth=0.75)
        axes.spines[["bottom", "left"]].set_visible(False)
        _nice_ticks(axes.yaxis, sign=True)
        places = ((0.0, "left", won, "won", "gain"), (1.0, "right", lost, "lost", "loss-text"))
        for x, side, count, word, colour in places:
            axes.text(x, -16 / (height - 30), f"{count:,} {word}", ha=side, fontweight="bold",
                      color=_HEX[colour], transform=axes.transAxes)  # fmt: skip
        axes.text(0.5, -16 / (height - 30), f"{n - won - lost:,} tied", ha="center",
                  color=_HEX["muted"], transform=axes.transAxes)  # fmt: skip
        axes.text(1.0, 0.97, f"difference in {measure}", ha="right", va="top",
                  color=_HEX["muted"], fontsize=9.5, transform=axes.transAxes)  # fmt: skip

    description = (
        f"Difference in {measure} for each of {n} queries: {won} won, {n - won - lost} tied, "
        f"{lost} lost; from {signed(float(d[0]))} to {signed(float(d[-1]))}, mean "
        f"{signed(float(d.mean()))}."
    )
    return Drawing(title, description, height, paint, (left / WIDTH, 1 - right / WIDTH))


def importance(
    shares: Sequence[tuple[str, float, int]], families: Sequence[str], title: str
) -> Drawing:
    """Horizontal bars, one per column, coloured by family, with a legend.

    Args:
        shares: (column, share of the total gain in [0, 1], number of its family), largest first.
        families: family names.
    """
    shown = sorted({family for _, _, family in shares})
    top, row = 10.0 + 15.0 * math.ceil(len(shown) / 2), 16.0
    height = top + row * len(shares) + 4

    def colour(family: int) -> str:
        return _HEX[FAMILY_COLOURS[family % len(FAMILY_COLOURS)]]

    def paint(figure: Figure) -> None:
        from matplotlib.patches import Patch

        axes = _axes(figure, 156, 46, top, 4)
        places = np.arange(len(shares))
        values = [100 * share for _, share, _ in shares]
        axes.barh(places, values, 0.72, color=[colour(family) for _, _, family in shares])
        axes.set(ylim=(len(shares) - 0.4, -0.6), xticks=[])
        axes.set_yticks(places, [clipped(name, 25) for name, _, _ in shares], color=_HEX["ink"])
        axes.grid(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        for y, x in enumerate(values):
            axes.text(x + max(values) / 60, y, f"{x:.1f} %", va="center", fontsize=9.5)
        handles = [Patch(color=colour(f), label=clipped(families[f], 30)) for f in shown]
        figure.legend(handles=handles, loc="upper left", ncols=2, handlelength=1.0,
                      labelspacing=0.3)  # fmt: skip

    best = ", ".join(f"{column} {100 * share:.1f} %" for column, share, _ in shares[:3])
    return Drawing(title, f"Shares of the total gain; largest: {best}.", height, paint)


def curves(curve: TrainingCurve) -> Drawing | None:
    """Lines over training time, and where the model was taken from; None without a point."""
    series = {label: s for label, s in curve.series.items() if len(s[0])}
    if not series:
        return None
    top = 22.0 + 15.0 * len(series)
    height = top + 190.0

    def paint(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = _axes(figure, 58, 10, top, 36)
        styles = ("-", (0, (4, 1.5)), (0, (1, 1.5)), "-.")
        for i, (label, (x, y)) in enumerate(series.items()):
            colour = _HEX[FAMILY_COLOURS[(0, 5, 2, 3, 1, 4, 6, 7)[i % 8]]]
            axes.plot(x, y, color=colour, linestyle=styles[i % 4], label=clipped(label, 60),
                      marker="o" if len(x) == 1 else None)  # fmt: skip
        axes.margins(x=0.02)
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
        _nice_ticks(axes.yaxis)
        axes.set_xlabel(curve.x_label)
        figure.text(0.01, 1 - 10 / height, clipped(curve.y_label, 64), va="center",
                    color=_HEX["muted"], fontsize=9.5)  # fmt: skip
        figure.legend(loc="upper left", bbox_to_anchor=(0, 1 - 18 / height), labelspacing=0.3)
        if curve.best_x is not None:
            late = curve.best_x > np.mean(axes.get_xlim())
            axes.axvline(curve.best_x, color=_HEX["muted"], linewidth=1, linestyle="--")
            axes.annotate(f"kept: {curve.best_x:g}", (curve.best_x, 0.02),
                          (-4 if late else 4, 0), xycoords=("data", "axes fraction"),
                          textcoords="offset points", ha="right" if late else "left",
                          color=_HEX["muted"], fontsize=9.5)  # fmt: skip

    ends = "; ".join(
        f"{label}: {_short(y[0])} to {_short(y[-1])}" for label, (_, y) in series.items()
    )
    title = f"{curve.name}: {curve.y_label} by {curve.x_label}"
    return Drawing(title, ends + ".", height, paint)


def correlation(names: Sequence[str], values: NDArray[np.float64]) -> Drawing:
    """The lower half of a correlation matrix: blue positive, orange negative, the stronger the
    larger; hundredths in the cells. Rows are numbered, columns carry the row's number.

    Args:
        names: of the columns. values: float64 [m, m] in [-1, 1]; NaN is drawn as no cell.
    """
    m, left, top = len(names), 168.0, 4.0
    size = min(24.0, (WIDTH - left - 4) / max(m - 1, 1))
    height = top + size * m + 18

    def paint(figure: Figure) -> None:
        from matplotlib.patches import Rectangle

        axes = _axes(figure, left, WIDTH - left - size * m, top, 18)
        axes.set(xlim=(0, m), ylim=(m, 0))
        axes.grid(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        middle = np.arange(m) + 0.5
        rows = [f"{clipped(name, 23)}  {i + 1}" for i, name in enumerate(names)]
        axes.set_yticks(middle, rows, color=_HEX["ink"])
        axes.set_xticks(middle[:-1], [str(i) for i in range(1, m)])
        for i in range(m):
            for j in range(i):
                if math.isnan(found := float(values[i, j])):
                    continue
                colour = _HEX["gain" if found > 0 else "loss"]
                strength = math.ceil(abs(found) * 10) * 0.055
                axes.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, color=colour,
                                         alpha=strength, linewidth=0))  # fmt: skip
                axes.text(j + 0.5, i + 0.53, _minus(f"{round(100 * found)}"), ha="center",
                          va="center", fontsize=min(8.5, 0.38 * size))  # fmt: skip

    pairs = [(abs(values[i, j]), i, j) for i in range(m) for j in range(i)]
    strongest = sorted((p for p in pairs if p[0] == p[0]), reverse=True)[:3]
    words = "; ".join(
        f"{names[i]} and {names[j]} {100 * values[i, j]:.0f}" for _, i, j in strongest
    )
    description = f"Correlations of {m} columns, in hundredths; the strongest: {_minus(words)}."
    return Drawing("Rank correlation of columns within queries", description, height, paint)


def scatter(
    x: NDArray[np.float64], y: NDArray[np.float64], x_label: str, y_label: str, measure: str
) -> Drawing:
    """A point per query on the unit square, with the diagonal (Figure 1 of Bai et al.).

    Args:
        x, y: float64 [n] in [0, 1].
    """
    height = 380.0

    def paint(figure: Figure) -> None:
        axes = _axes(figure, 44, 10, 10, 40)
        axes.plot([0, 1], [0, 1], color=_HEX["muted"], linewidth=1)
        axes.plot(x, y, "o", color=_HEX["gain"], markersize=3.5, markeredgewidth=0, alpha=0.5)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_label, ylabel=y_label)
        axes.spines[["bottom", "left"]].set_visible(False)

    above, below = int((y > x).sum()), int((y < x).sum())
    title = f"{measure} of {len(x):,} queries: {y_label} against {x_label}"
    words = f"Above the diagonal {y_label} did better: {above} queries; below: {below}."
    return Drawing(title, words, height, paint)


def clipped(content: str, length: int) -> str:
    """The text, cut with an ellipsis if longer."""
    return content if len(content) <= length else content[: length - 1] + "…"


def _axes(figure: Figure, left: float, right: float, top: float, bottom: float) -> Axes:
    """Axes with margins in points."""
    width, height = (72 * size for size in figure.get_size_inches())
    return figure.add_axes(
        (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
    )


def _nice_ticks(axis: Any, *, sign: bool = False) -> None:
    """About five ticks, with a sign where asked for."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    form = "+" if sign else ""
    axis.set_major_formatter(
        FuncFormatter(lambda x, _: "0" if abs(x) < 1e-12 else _minus(f"{x:{form}.4g}"))
    )


def _averaged(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most BARS values: means over neighbours in the order where there are more queries."""
    if len(d) <= BARS:
        return d
    edges = np.linspace(0, len(d), BARS + 1).astype(np.int64)
    return np.add.reduceat(d, edges[:-1]) / np.diff(edges)


def _short(x: float) -> str:
    return _minus(f"{float(x):.4g}")


def _minus(number: str) -> str:
    return number.replace("-", "−")
