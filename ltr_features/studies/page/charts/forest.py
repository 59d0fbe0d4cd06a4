"""Forest plot: estimates with their intervals, one per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ltr_base.names import clipped
from ltr_features.studies.page.charts.drawing import (
    HEX,
    WIDTH,
    Drawing,
    axes_in,
    clipped_apart,
    nice_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LINE, HALF = 20, 24
"""Characters of a label in one line, and in each of two smaller ones."""


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
            labels = clipped_apart([e.label for e in estimates], 2 * HALF)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            axes.tick_params(labelbottom=top > height - bottom)
            axes.axvline(zero, color=HEX["muted"], linewidth=1.25)
            nice_ticks(axes.xaxis)
            for y, (one, label) in enumerate(zip(estimates, labels, strict=True)):
                colour = HEX[one.style]
                _write(axes, y, _in_lines(label))
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


def _write(axes: Axes, y: float, lines: Sequence[str]) -> None:
    """Write a label beside its row, each line as a text of its own that ends at the axis: in SVG,
    matplotlib aligns a text of several lines for one font alone."""
    size = 9.5 if len(lines) == 1 else 7.5
    for n, line in enumerate(lines):
        place = (0, y + 0.4 * (n - (len(lines) - 1) / 2))
        axes.annotate(line, place, (-4, 0), ha="right", va="center", fontsize=size,
                      xycoords=axes.get_yaxis_transform(), textcoords="offset points")  # fmt: skip


def _in_lines(label: str) -> list[str]:
    """A label, if long as two lines, broken at a blank near its middle if there is one."""
    if len(label) <= LINE:
        return [label]
    middle = len(label) // 2
    blanks = [i for i, sign in enumerate(label) if sign == " " and abs(i - middle) <= 4]
    cut = min(blanks, key=lambda i: abs(i - middle), default=middle)
    return [label[:cut], label[cut:].lstrip()]
