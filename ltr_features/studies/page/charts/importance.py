"""Bar chart of the columns that a ranker uses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ltr_features.studies.page.charts.drawing import FAMILY_COLOURS, HEX, Drawing, axes_in, clipped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        return HEX[FAMILY_COLOURS[family % len(FAMILY_COLOURS)]]

    def paint(figure: Figure) -> None:
        from matplotlib.patches import Patch

        axes = axes_in(figure, 156, 46, top, 4)
        places = np.arange(len(shares))
        values = [100 * share for _, share, _ in shares]
        axes.barh(places, values, 0.72, color=[colour(family) for _, _, family in shares])
        axes.set(ylim=(len(shares) - 0.4, -0.6), xticks=[])
        axes.set_yticks(places, [clipped(name, 25) for name, _, _ in shares], color=HEX["ink"])
        axes.grid(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        for y, x in enumerate(values):
            axes.text(x + max(values) / 60, y, f"{x:.1f} %", va="center", fontsize=9.5)
        handles = [Patch(color=colour(f), label=clipped(families[f], 30)) for f in shown]
        figure.legend(handles=handles, loc="upper left", ncols=2, handlelength=1.0,
                      labelspacing=0.3)  # fmt: skip

    best = ", ".join(f"{column} {100 * share:.1f} %" for column, share, _ in shares[:3])
    return Drawing(title, f"Shares of the total gain; largest: {best}.", height, paint)
