"""Charts of columns: those that a ranker uses, and which of them rank alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr_base.names import clipped
from ltr_features.studies.page.charts.drawing import (
    FAMILY_COLOURS,
    HEX,
    WIDTH,
    Drawing,
    axes_in,
    clipped_apart,
)
from ltr_features.studies.page.verdicts import minus

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
        labels = clipped_apart([name for name, _, _ in shares], 25)
        axes.set_yticks(places, labels, color=HEX["ink"])
        axes.grid(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        for y, x in enumerate(values):
            axes.text(x + max(values) / 60, y, f"{x:.1f} %", va="center", fontsize=9.5)
        handles = [Patch(color=colour(f), label=clipped(families[f], 30)) for f in shown]
        figure.legend(handles=handles, loc="upper left", ncols=2, handlelength=1.0,
                      labelspacing=0.3)  # fmt: skip

    best = ", ".join(f"{column} {100 * share:.1f} %" for column, share, _ in shares[:3])
    return Drawing(title, f"Shares of the total gain; largest: {best}.", height, paint)


def correlation(names: Sequence[str], values: NDArray[np.float64]) -> Drawing:
    """The lower half of a correlation matrix: positive values are blue, negative ones orange, large
    ones darker; cells show hundredths. Rows are numbered, columns have the number of their row.

    Args:
        names: of the columns. values: float64 [m, m] in [-1, 1]; no cell is drawn for NaN.
    """
    m, left, top = len(names), 168.0, 4.0
    size = min(24.0, (WIDTH - left - 4) / max(m - 1, 1))
    height = top + size * m + 18

    def paint(figure: Figure) -> None:
        from matplotlib.patches import Rectangle

        axes = axes_in(figure, left, WIDTH - left - size * m, top, 18)
        axes.set(xlim=(0, m), ylim=(m, 0))
        axes.grid(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        middle = np.arange(m) + 0.5
        rows = [f"{name}  {i}" for i, name in enumerate(clipped_apart(names, 23), start=1)]
        axes.set_yticks(middle, rows, color=HEX["ink"])
        axes.set_xticks(middle[:-1], [str(i) for i in range(1, m)])
        for i in range(m):
            for j in range(i):
                if math.isnan(found := float(values[i, j])):
                    continue
                colour = HEX["gain" if found > 0 else "loss"]
                strength = math.ceil(abs(found) * 10) * 0.055
                axes.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, color=colour,
                                         alpha=strength, linewidth=0))  # fmt: skip
                axes.text(j + 0.5, i + 0.53, minus(f"{round(100 * found)}"), ha="center",
                          va="center", fontsize=min(8.5, 0.38 * size))  # fmt: skip

    pairs = [(abs(values[i, j]), i, j) for i in range(m) for j in range(i)]
    strongest = sorted((p for p in pairs if p[0] == p[0]), reverse=True)[:3]
    words = "; ".join(
        f"{names[i]} and {names[j]} {100 * values[i, j]:.0f}" for _, i, j in strongest
    )
    description = f"Correlations of {m} columns, in hundredths; the strongest: {minus(words)}."
    return Drawing("Rank correlation of columns within queries", description, height, paint)
