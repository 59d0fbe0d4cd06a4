"""Words of an embedding on a plane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr_features.studies.page.charts.drawing import HEX, WIDTH, Drawing, axes_in
from ltr_features.studies.statistics.word_map import WordMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEIGHT = 400.0
MARGIN = 0.06
FONT = 9.5


def places(found: WordMap) -> NDArray[np.float64]:
    """float64 [n, 2]: where each word stands, in shares of the drawing's width and height from its
    upper left corner."""
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    spans = np.where(high > low, high - low, 1.0)
    shares = MARGIN + (1 - 2 * MARGIN) * (found.points - low) / spans
    return np.column_stack([shares[:, 0], 1 - shares[:, 1]])


def word_map_chart(found: WordMap) -> Drawing:
    """A dot per word; the most frequent words that leave each other room are written beside."""
    at = places(found)

    def paint(figure: Figure) -> None:
        axes = axes_in(figure, 0, 0, 0, 0)
        axes.set(xlim=(0, 1), ylim=(1, 0), xticks=[], yticks=[])
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.plot(*at.T, "o", color=HEX["unsure"], markersize=2.5, markeredgewidth=0, alpha=0.5)
        for i, (x, y) in _labels(found, at):
            axes.text(x, y, found.words[i], fontsize=FONT, color=HEX["ink"], va="center")

    words = ", ".join(found.words[i] for i, _ in _labels(found, at))
    title = f"Map of {len(found.words)} words under {found.name}"
    return Drawing(title, f"The words written on it: {words}.", HEIGHT, paint)


def _labels(found: WordMap, at: NDArray[np.float64]) -> Iterator[tuple[int, tuple[float, float]]]:
    """Words whose text is free of the others' texts, and where it begins."""
    taken: list[tuple[float, float, float, float]] = []
    for i, (x, y) in enumerate(at * (WIDTH, HEIGHT)):
        size = 0.62 * FONT * len(found.words[i])
        left = x + 3 if x + 3 + size < WIDTH else x - 3 - size
        box = (left, y - 6, left + size, y + 6)
        if all(box[2] < a or c < box[0] or box[3] < b or d < box[1] for a, b, c, d in taken):
            taken.append(box)
            yield i, (left / WIDTH, y / HEIGHT)
