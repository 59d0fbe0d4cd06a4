"""Charts of two systems query by query: sorted differences, and a point per query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr_features.studies.page.charts.drawing import HEX, WIDTH, Drawing, axes_in, nice_ticks
from ltr_features.studies.page.verdicts import signed
from ltr_features.studies.statistics.paired_tests import TIE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BARS = 360
"""Maximum number of bars; if there are more queries, neighbours in the order are averaged."""


def gains(differences: NDArray[np.float64], measure: str, title: str) -> Drawing:
    """Per-query differences, the largest gain first: one bar per query, gains above the line,
    losses below (the figures of Ensan et al. 2017, but with absolute differences, since relative
    ones are undefined where the baseline is 0).

    Args:
        differences: float64 [n], system minus baseline.
    """
    d = np.sort(differences)[::-1]
    n, won, lost = len(d), int((d > TIE).sum()), int((d < -TIE).sum())
    bars = _averaged(d)
    height, left, right = 200.0, 44.0, 6.0

    def paint(figure: Figure) -> None:
        axes = axes_in(figure, left, right, 8, 22)
        edges = np.linspace(0, n, len(bars) + 1)
        for style, part in (("gain", np.maximum(bars, 0)), ("loss", np.minimum(bars, 0))):
            if part.any():
                axes.stairs(part, edges, fill=True, color=HEX[style], linewidth=0)
        limit = max(float(np.abs(d).max()), 0.01) * 1.03
        axes.set(xlim=(0, n), ylim=(-limit, limit), xticks=[])
        axes.axhline(0, color=HEX["muted"], linewidth=0.75)
        axes.spines[["bottom", "left"]].set_visible(False)
        nice_ticks(axes.yaxis, sign=True)
        places = ((0.0, "left", won, "won", "gain"), (1.0, "right", lost, "lost", "loss-text"))
        for x, side, count, word, colour in places:
            axes.text(x, -16 / (height - 30), f"{count:,} {word}", ha=side, fontweight="bold",
                      color=HEX[colour], transform=axes.transAxes)  # fmt: skip
        axes.text(0.5, -16 / (height - 30), f"{n - won - lost:,} tied", ha="center",
                  color=HEX["muted"], transform=axes.transAxes)  # fmt: skip
        axes.text(1.0, 0.97, f"difference in {measure}", ha="right", va="top",
                  color=HEX["muted"], fontsize=9.5, transform=axes.transAxes)  # fmt: skip

    description = (
        f"Difference in {measure} for each of {n} queries: {won} won, {n - won - lost} tied, "
        f"{lost} lost; from {signed(float(d[0]))} to {signed(float(d[-1]))}, mean "
        f"{signed(float(d.mean()))}."
    )
    return Drawing(title, description, height, paint, (left / WIDTH, 1 - right / WIDTH))


def _averaged(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most BARS values: means over neighbours in the order if there are more queries."""
    if len(d) <= BARS:
        return d
    edges = np.linspace(0, len(d), BARS + 1).astype(np.int64)
    return np.add.reduceat(d, edges[:-1]) / np.diff(edges)


def scatter(
    x: NDArray[np.float64], y: NDArray[np.float64], x_label: str, y_label: str, measure: str
) -> Drawing:
    """A point per query on the unit square, with the diagonal (Figure 1 of Bai et al.).

    Args:
        x, y: float64 [n] in [0, 1].
    """
    height = 380.0

    def paint(figure: Figure) -> None:
        axes = axes_in(figure, 44, 10, 10, 40)
        axes.plot([0, 1], [0, 1], color=HEX["muted"], linewidth=1)
        axes.plot(x, y, "o", color=HEX["gain"], markersize=3.5, markeredgewidth=0, alpha=0.5)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_label, ylabel=y_label)
        axes.spines[["bottom", "left"]].set_visible(False)

    above, below = int((y > x).sum()), int((y < x).sum())
    title = f"{measure} of {len(x):,} queries: {y_label} against {x_label}"
    words = f"Above the diagonal, {y_label} did better: {above} queries; below: {below}."
    return Drawing(title, words, height, paint)
