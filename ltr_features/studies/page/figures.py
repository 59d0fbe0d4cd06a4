"""Figures as inline SVG: no script, no network, colours from the page's style sheet.

Every function returns markup that is the same for the same input, with a title and a description
for screen readers; ``key`` makes its ids unique within a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from ltr_features.studies.page.report import TrainingCurve
from ltr_features.studies.page.verdicts import signed

Point: TypeAlias = tuple[float, float]
BARS = 720
"""Queries drawn as bars of their own; more are averaged over neighbours in the order."""
COLOURS = 12
"""Colours of families."""


def gain_loss_chart(
    differences: NDArray[np.float64], measure: str, title: str, key: str, tie: float = 1e-9
) -> Markup:
    """Per-query differences, the largest gain first: one bar per query, gains above the line,
    losses below (the figures of Ensan et al. 2017, in absolute differences: a relative one has no
    value where the baseline is 0).

    Args:
        differences: float64 [n], system minus baseline.
        measure: name of the measure, for the axis.
        title: what is compared.
        key: unique within the page.
        tie: differences up to this size are neither won nor lost.
    """
    width, height, left, right, top, bottom = 900.0, 270.0, 58.0, 12.0, 14.0, 40.0
    d = np.sort(differences)[::-1]
    n = len(d)
    won, lost = int((d > tie).sum()), int((d < -tie).sum())
    largest = max(float(np.abs(d).max()), 0.01)
    step = nice_step(largest / 4)
    limit = step * math.ceil(largest / step - 1e-9)
    plot_width, plot_height = width - left - right, height - top - bottom

    def y(v: float) -> float:
        return top + plot_height * (limit - v) / (2 * limit)

    parts = []
    for tick in np.arange(-round(limit / step), round(limit / step) + 1) * step:
        style = "zero" if abs(tick) < step / 2 else "grid"
        parts.append(line((left, y(tick)), (width - right, y(tick)), style))
        parts.append(text((left - 8, y(tick) + 4), tick_label(float(tick), step, sign=True), "end"))
    bars = _averaged(d)
    for style, values in (("gain", np.maximum(bars, 0)), ("loss", np.minimum(bars, 0))):
        parts.append(_bars(values, style, left, plot_width, y))
    base = height - bottom + 16
    for style, count, x, anchor in (
        ("gain", won, left, "start"),
        ("loss", lost, width - right, "end"),
    ):
        word = "won" if style == "gain" else "lost"
        parts.append(text((x, base), f"{count:,} {word}", anchor, f"strong {style}-text"))
    axis = f"difference in {measure}"
    parts.append(text((width - right, top + 14), axis, "end"))  # the losses leave room there
    tied = n - won - lost
    middle = left + plot_width * (won + tied / 2) / n
    if tied and left + 90 < middle < width - right - 90:
        parts.append(text((middle, base), f"{tied:,} tied", "middle"))
    axis = f"{n:,} queries, from the largest gain to the largest loss"
    parts.append(text((left + plot_width / 2, height - 6), axis, "middle"))
    description = (
        f"Difference in {measure} for each of {n} queries: {won} won, {tied} tied, {lost} lost; "
        f"from {signed(float(d[0]))} to {signed(float(d[-1]))}, mean {signed(float(d.mean()))}."
    )
    return svg(width, height, parts, title, description, key)


def importance_chart(
    shares: Sequence[tuple[str, float, int]], families: Sequence[str], title: str, key: str
) -> Markup:
    """Horizontal bars, one per column, coloured by family, with a legend.

    Args:
        shares: (column, share of the total gain in [0, 1], number of its family), largest first.
        families: family names; number i has colour i, modulo ``COLOURS``.
        title: whose importance.
        key: unique within the page.
    """
    width, left, right, row = 900.0, 230.0, 64.0, 21.0
    limit = max((share for _, share, _ in shares), default=0.0) or 1.0
    parts, x, top = [], left, 6.0
    for family in sorted({family for _, _, family in shares}):
        needed = 34 + 6.8 * len(families[family])
        if x > left and x + needed > width:
            x, top = left, top + 20
        parts.append(rect((x, top), 12, 12, f"c{family % COLOURS}"))
        parts.append(text((x + 17, top + 10), families[family], "start"))
        x += needed
    top += 28
    height = top + row * len(shares) + 8
    for i, (column, share, family) in enumerate(shares):
        y = top + row * i
        bar = (width - left - right) * share / limit
        parts.append(text((left - 8, y + 14), clipped(column, 34), "end"))
        parts.append(rect((left, y + 3), bar, row - 7, f"c{family % COLOURS}"))
        parts.append(text((left + bar + 6, y + 14), f"{100 * share:.1f} %", "start", "number"))
    best = ", ".join(f"{column} {100 * share:.1f} %" for column, share, _ in shares[:3])
    return svg(width, height, parts, title, f"Shares of the total gain; largest: {best}.", key)


def curve_chart(curve: TrainingCurve, key: str) -> Markup:
    """Lines over training time, labelled at their ends; a mark where the model was taken."""
    width, height, left, right, top, bottom = 900.0, 312.0, 64.0, 190.0, 28.0, 44.0
    xs = [float(v) for x, _ in curve.series.values() for v in x]
    ys = [float(v) for _, y in curve.series.values() for v in y]
    if not xs:
        return Markup("")
    x_low, x_high = min(xs), max(max(xs), min(xs) + 1e-12)
    step = nice_step((max(ys) - min(ys)) / 4 or abs(ys[0]) or 1.0)
    y_low, y_high = step * math.floor(min(ys) / step), step * math.ceil(max(ys) / step)
    y_high += step if y_high <= y_low else 0

    def place(x: float, y: float) -> Point:
        return (
            left + (width - left - right) * (x - x_low) / (x_high - x_low),
            top + (height - top - bottom) * (y_high - y) / (y_high - y_low),
        )

    parts = []
    for i in range(round((y_high - y_low) / step) + 1):
        at = place(x_low, y_low + i * step)
        parts.append(line(at, (width - right, at[1]), "grid"))
        parts.append(text((left - 8, at[1] + 4), tick_label(y_low + i * step, step), "end"))
    x_step = max(nice_step((x_high - x_low) / 6), 1.0 if x_high - x_low > 3 else 0.0)
    for i in range(math.ceil(x_low / x_step - 1e-9), math.floor(x_high / x_step + 1e-9) + 1):
        at = place(i * x_step, y_low)
        parts.append(text((at[0], at[1] + 18), tick_label(i * x_step, x_step), "middle"))
    parts.append(text((left + (width - left - right) / 2, height - 6), curve.x_label, "middle"))
    parts.append(text((8, 12), curve.y_label, "start"))
    if curve.best_x is not None:
        at = place(curve.best_x, y_high)
        parts.append(line(at, (at[0], height - bottom), "best"))
        late = at[0] > width - right - 60  # the names of the series stand there
        mark = (at[0] - 5, "end") if late else (at[0] + 5, "start")
        parts.append(text((mark[0], at[1] + 10), f"kept: {short(curve.best_x)}", mark[1]))
    labels: list[float] = []
    for i, (label, (x, y)) in enumerate(curve.series.items()):
        points = [place(float(a), float(b)) for a, b in zip(x, y, strict=True)]
        if not points:
            continue
        path = "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points)
        parts.append(Markup(f'<path class="line l{i % 8}" d="{path}"/>'))
        at_y = points[-1][1] + 4
        while any(abs(at_y - other) < 15 for other in labels):
            at_y += 15
        labels.append(at_y)
        parts.append(text((width - right + 8, at_y), clipped(label, 27), "start"))
    ends = "; ".join(
        f"{label}: {short(float(y[0]))} to {short(float(y[-1]))}"
        for label, (_, y) in curve.series.items()
        if len(y)
    )
    title = f"{curve.name}: {curve.y_label} by {curve.x_label}"
    return svg(width, height, parts, title, ends + ".", key)


def correlation_chart(names: Sequence[str], values: NDArray[np.float64], key: str) -> Markup:
    """The lower half of a correlation matrix: blue positive, orange negative, the stronger the
    larger; hundredths in the cells. A row's name stands left of it, a column's above it, at the
    diagonal.

    Args:
        names: of the columns. values: float64 [m, m] in [-1, 1]; NaN is drawn as no cell.
        key: unique within the page.
    """
    width, left, right, top, m = 900.0, 200.0, 190.0, 6.0, len(names)
    size = min(34.0, (width - left - right) / max(m, 1))
    shades: dict[tuple[str, int], list[str]] = {}
    labels = []
    for i in range(m):
        y = top + size * i
        labels.append(text((left - 8, y + size / 2 + 4), clipped(names[i], 30), "end"))
        at = (left + size * i + 6, y + size / 2 + 4)
        labels.append(text(at, clipped(names[i], 28), "start"))
        for j in range(i):
            if math.isnan(value := float(values[i, j])):
                continue
            x = left + size * j
            style = "gain" if value > 0 else "loss"
            shades.setdefault((style, math.ceil(abs(value) * 10)), []).append(
                f"M{x:.1f} {y:.1f}h{size - 1:.1f}V{y + size - 1:.1f}H{x:.1f}Z"
            )
            at = (x + (size - 1) / 2, y + size / 2 + 3)
            labels.append(text(at, f"{100 * value:.0f}".replace("-", "−"), "middle", "tiny"))
    cells = [
        Markup(f'<path class="{style}" fill-opacity="{0.055 * shade:.3g}" d="{"".join(path)}"/>')
        for (style, shade), path in sorted(shades.items())
    ]
    pairs = [(abs(values[i, j]), i, j) for i in range(m) for j in range(i)]
    strongest = sorted((p for p in pairs if p[0] == p[0]), reverse=True)[:3]
    words = "; ".join(
        f"{names[i]} and {names[j]} {100 * values[i, j]:.0f}" for _, i, j in strongest
    ).replace("-", "−")
    description = f"Correlations of {m} columns, in hundredths; the strongest: {words}."
    title = "Rank correlation of columns within queries"
    return svg(width, top + size * m + 4, [*cells, *labels], title, description, key)


def interval_chart(low: float, middle: float, high: float, limit: float, style: str) -> Markup:
    """A small confidence interval around 0 for a table cell; the numbers stand beside it."""
    width, height = 132.0, 18.0

    def x(v: float) -> float:
        share = min(max(v / limit, -1.0), 1.0) if limit > 0 else 0.0
        return width / 2 + (width / 2 - 5) * share

    parts = [
        line((width / 2, 0), (width / 2, height), "zero"),
        line((x(low), height / 2), (x(high), height / 2), f"range {style}-line"),
        Markup(f'<circle class="{style}" cx="{x(middle):.1f}" cy="{height / 2:.0f}" r="3.6"/>'),
    ]
    return Markup(
        f'<svg class="cell" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" aria-hidden="true">{Markup("").join(parts)}</svg>'
    )


def svg(
    width: float, height: float, parts: Sequence[Markup], title: str, description: str, key: str
) -> Markup:
    """The SVG element around the parts, with title and description for screen readers."""
    return Markup(
        '<svg class="figure" viewBox="0 0 {w:.0f} {h:.0f}" role="img" '
        'aria-labelledby="{key}-t {key}-d"><title id="{key}-t">{title}</title>'
        '<desc id="{key}-d">{description}</desc>{body}</svg>'
    ).format(
        w=width, h=height, key=key, title=title, description=description,
        body=Markup("").join(parts),
    )  # fmt: skip


def text(at: Point, content: str, anchor: str, style: str = "") -> Markup:
    """A line of text; ``anchor`` is start, middle or end."""
    style = f' class="{style}"' if style else ""
    return Markup(f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}"{style}>') + (
        escape(content) + Markup("</text>")
    )


def line(start: Point, end: Point, style: str) -> Markup:
    """A straight line."""
    return Markup(
        f'<line class="{style}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" '
        f'y2="{end[1]:.1f}"/>'
    )


def rect(at: Point, width: float, height: float, style: str) -> Markup:
    """A filled rectangle; ``at`` is its upper left corner."""
    return Markup(
        f'<rect class="{style}" x="{at[0]:.1f}" y="{at[1]:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"/>'
    )


def nice_step(size: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below ``size``."""
    if not size > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(size))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= size * (1 - 1e-9))


def tick_label(x: float, step: float, sign: bool = False) -> str:
    """The number with as many decimals as the step between ticks needs."""
    if abs(x) < step / 2:
        return "0"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    if decimals > 6 or step >= 1e6:
        return short(x)
    return f"{x:{'+' if sign else ''}.{decimals}f}".replace("-", "−")


def short(x: float) -> str:
    """At most four significant digits, with a typographic minus."""
    return f"{x:.4g}".replace("-", "−")


def clipped(content: str, length: int) -> str:
    """The text, cut with an ellipsis if longer."""
    return content if len(content) <= length else content[: length - 1] + "…"


def _averaged(d: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most BARS values: means over neighbours in the order where there are more queries."""
    if len(d) <= BARS:
        return d
    edges = np.linspace(0, len(d), BARS + 1).astype(np.int64)
    return np.add.reduceat(d, edges[:-1]) / np.diff(edges)


def _bars(
    values: NDArray[np.float64],
    style: str,
    left: float,
    width: float,
    y: Callable[[float], float],
) -> Markup:
    """All bars of one sign as a single path, from the zero line."""
    if not values.any():
        return Markup("")
    each = width / len(values)
    gap = 1.0 if each > 5 else -0.05  # apart where there is room, else without seams
    path = "".join(
        f"M{left + i * each:.1f} {y(0.0):.1f}V{y(float(values[i])):.1f}"
        f"h{each - gap:.2f}V{y(0.0):.1f}"
        for i in np.flatnonzero(values)
    )
    return Markup(f'<path class="{style}" d="{path}"/>')
