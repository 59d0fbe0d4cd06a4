"""Forest plot: estimates with their intervals, one per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ltr_features.studies.page.charts.drawing import (
    HEX,
    WIDTH,
    Drawing,
    axes_in,
    clipped,
    clipped_apart,
    nice_ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Estimate:
    """A dot with its interval; ``style`` ("gain", "loss", "unsure") is its colour, ``shown`` the
    number printed to its right. Without ``low`` and ``high`` only the dot is drawn."""

    label: str
    middle: float
    shown: str
    style: str = "unsure"
    low: float = math.nan
    high: float = math.nan


def forest(
    panels: Sequence[tuple[str, Sequence[Estimate], float]], x_label: str, title: str
) -> Drawing:
    """Estimates with intervals, one per row, in stacked panels.

    Args:
        panels: name, estimates, and position of the line of no difference, of each.
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
            axes = axes_in(figure, left, right, top, height - top - size)
            top += size + gap
            axes.set(xlim=(low - room, high + room), ylim=(len(estimates) - 0.4, -0.6))
            axes.text(-left / (WIDTH - left - right), 1 + 7 / size, clipped(name, 64),
                      fontweight="bold", transform=axes.transAxes)  # fmt: skip
            labels = clipped_apart([e.label for e in estimates], 22)
            axes.set_yticks(range(len(estimates)), labels, color=HEX["ink"])
            axes.grid(False, axis="y")
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelbottom=top > height - bottom)
            axes.axvline(zero, color=HEX["muted"], linewidth=1.25)
            nice_ticks(axes.xaxis)
            for y, one in enumerate(estimates):
                colour = HEX[one.style]
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
