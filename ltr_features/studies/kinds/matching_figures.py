"""Figures of matching experiments, as inline SVG."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ltr_features.studies.page.figures import line, svg, text, tick_label


def scatter_chart(
    x: NDArray[np.float64], y: NDArray[np.float64], x_label: str, y_label: str, key: str
) -> Markup:
    """A point per query on the unit square, with the diagonal (Figure 1 of Bai et al.).

    Args:
        x, y: float64 [n] in [0, 1].
        key: unique within the page.
    """
    size, left, top, bottom = 420.0, 64.0, 14.0, 48.0

    def place(a: float, b: float) -> tuple[float, float]:
        return left + size * a, top + size * (1 - b)

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(line(place(0, tick), place(1, tick), "grid"))
        parts.append(line(place(tick, 0), place(tick, 1), "grid"))
        label = tick_label(tick, 0.25)
        parts.append(text((left - 8, place(0, tick)[1] + 4), label, "end"))
        parts.append(text((place(tick, 0)[0], top + size + 18), label, "middle"))
    parts.append(line(place(0, 0), place(1, 1), "zero"))
    points = (place(float(a), float(b)) for a, b in zip(x, y, strict=True))
    parts += [
        Markup(f'<circle class="p0" cx="{px:.1f}" cy="{py:.1f}" r="2.4"/>') for px, py in points
    ]
    parts.append(text((left + size / 2, top + size + 40), x_label, "middle"))
    parts.append(text((left + 6, top + 14), y_label, "start", "strong"))
    above, below = int((y > x).sum()), int((y < x).sum())
    return svg(
        left + size + 16,
        top + size + bottom,
        parts,
        f"Average precision of {len(x)} queries: {y_label} against {x_label}",
        f"{above} queries above the diagonal ({y_label} is better), {below} below.",
        key,
    )
