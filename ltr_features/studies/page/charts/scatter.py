"""Scatter plot of one system against another, query by query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr_features.studies.page.charts.drawing import HEX, Drawing, axes_in

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
