"""Heat map of the correlation of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr_features.studies.page.charts.drawing import HEX, WIDTH, Drawing, axes_in, clipped
from ltr_features.studies.page.verdicts import minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        rows = [f"{clipped(name, 23)}  {i + 1}" for i, name in enumerate(names)]
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
