"""Line charts over training time, the number of training queries, or recall."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ltr_base.names import clipped
from ltr_features.studies.page.charts.drawing import (
    FAMILY_COLOURS,
    HEX,
    Drawing,
    axes_in,
    nice_ticks,
)
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.verdicts import minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure


POINTS = 10
"""Lines with at most this many points also show the points as dots."""


def curves(curve: Curve) -> Drawing:
    """Lines, and the x value at which the model was kept, if any."""
    series = curve.series
    top = 22.0 + 15.0 * len(series)
    height = top + 190.0

    def paint(figure: Figure) -> None:
        from matplotlib.ticker import MaxNLocator

        axes = axes_in(figure, 58, 10, top, 36)
        styles = ("-", (0, (4, 1.5)), (0, (1, 1.5)), "-.")
        for i, (label, (x, y)) in enumerate(series.items()):
            colour = HEX[FAMILY_COLOURS[(0, 5, 2, 3, 1, 4, 6, 7)[i % 8]]]
            axes.plot(x, y, color=colour, linestyle=styles[i % 4], label=clipped(label, 60),
                      marker="o" if len(x) <= POINTS else None)  # fmt: skip
        axes.margins(x=0.02)
        axes.spines[["bottom", "left"]].set_visible(False)
        if all(float(value).is_integer() for x, _ in series.values() for value in x):
            axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
        nice_ticks(axes.yaxis)
        axes.set_xlabel(curve.x_label)
        figure.text(0.01, 1 - 10 / height, clipped(curve.y_label, 64), va="center",
                    color=HEX["muted"], fontsize=9.5)  # fmt: skip
        figure.legend(loc="upper left", bbox_to_anchor=(0, 1 - 18 / height), labelspacing=0.3)
        if curve.best_x is not None:
            late = curve.best_x > np.mean(axes.get_xlim())
            axes.axvline(curve.best_x, color=HEX["muted"], linewidth=1, linestyle="--")
            axes.annotate(f"kept: {curve.best_x:g}", (curve.best_x, 0.02),
                          (-4 if late else 4, 0), xycoords=("data", "axes fraction"),
                          textcoords="offset points", ha="right" if late else "left",
                          color=HEX["muted"], fontsize=9.5)  # fmt: skip

    ends = "; ".join(
        f"{label}: {minus(f'{y[0]:.4g} to {y[-1]:.4g}')}" for label, (_, y) in series.items()
    )
    title = f"{curve.name}: {curve.y_label} by {curve.x_label}"
    return Drawing(title, ends + ".", height, paint)
