"""Map of the words or documents of an embedding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr_base.names import clipped
from ltr_features.studies.page.charts.drawing import HEX, WIDTH, Drawing, axes_in
from ltr_features.studies.statistics.embedding_map import EmbeddingMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 400.0
MARGIN = 0.06
FONT = 9.5
LONGEST = 28
"""Maximum number of characters of a label; two such labels fit side by side."""


def places(found: EmbeddingMap) -> NDArray[np.float64]:
    """float64 [n, 2]: position of each label from the upper left corner, as shares of the drawing's
    width and height."""
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    spans = np.where(high > low, high - low, 1.0)
    shares = MARGIN + (1 - 2 * MARGIN) * (found.points - low) / spans
    return np.column_stack([shares[:, 0], 1 - shares[:, 1]])


def embedding_map_chart(found: EmbeddingMap) -> Drawing:
    """A dot for each word or document, with the most important labels that do not overlap."""
    xy = places(found)
    written = list(_written(found, xy))

    def paint(figure: Figure) -> None:
        axes = axes_in(figure, 0, 0, 0, 0)
        axes.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.plot(*xy.T, "o", color=HEX["unsure"], markersize=2.5, markeredgewidth=0, alpha=0.5)
        for label, (x, y) in written:
            axes.text(x, y, label, fontsize=FONT, color=HEX["ink"], va="center")

    title = f"Map of {len(found.labels)} {found.of} under {found.name}"
    labels = ", ".join(label for label, _ in written)
    return Drawing(title, f"Labelled {found.of}: {labels}.", HEIGHT, paint)


def _written(
    found: EmbeddingMap, xy: NDArray[np.float64]
) -> Iterator[tuple[str, tuple[float, float]]]:
    """Labels that do not overlap more important ones, and the position where each begins."""
    taken: list[tuple[float, float, float, float]] = []
    for i, (x, y) in enumerate(xy * (WIDTH, HEIGHT)):
        label = clipped(found.labels[i], LONGEST)
        size = 0.62 * FONT * len(label)
        left = x + 3 if x + 3 + size < WIDTH else x - 3 - size
        box = (left, y - 6, left + size, y + 6)
        if all(box[2] < a or c < box[0] or box[3] < b or d < box[1] for a, b, c, d in taken):
            taken.append(box)
            yield label, (left / WIDTH, y / HEIGHT)
