"""Figures as SVG: well-formed, true to the numbers, the same each time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltr_features.studies.page.figures import (
    BARS,
    COLOURS,
    clipped,
    correlation_chart,
    curve_chart,
    gain_loss_chart,
    importance_chart,
    interval_chart,
    nice_step,
    tick_label,
)
from ltr_features.studies.page.pages import template_text
from ltr_features.studies.page.report import TrainingCurve


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(str(markup))


def bar_heights(markup: str, style: str) -> list[float]:
    """Signed heights, in drawing units, of the bars of one sign."""
    path = parsed(markup).find(f"path[@class='{style}']")
    if path is None:
        return []
    steps = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)h", path.attrib["d"])
    return [float(zero) - float(top) for zero, top in steps]


def test_gain_loss_chart_has_a_bar_per_query_in_order() -> None:
    d = np.array([-0.2, 0.4, 0.0, 0.1, 0.0])
    chart = gain_loss_chart(d, "NDCG@10", "a against b", "g1")
    gains, losses = bar_heights(chart, "gain"), bar_heights(chart, "loss")
    assert len(gains) == 2
    assert len(losses) == 1
    assert gains[0] / gains[1] == pytest.approx(4, rel=0.02)
    assert losses[0] / gains[1] == pytest.approx(-2, rel=0.02)
    words = " ".join(parsed(chart).itertext())
    for part in ("2 won", "2 tied, 1 lost", "1 lost", "5 queries", "a against b", "+0.4000"):
        assert part in words


def test_many_queries_are_averaged_over_neighbours() -> None:
    d = np.random.default_rng(0).normal(size=10_000)
    chart = gain_loss_chart(d, "MAP", "t", "g1")
    bars = bar_heights(chart, "gain") + bar_heights(chart, "loss")
    assert BARS - 2 <= len(bars) <= BARS + 1
    assert bars == sorted(bars, reverse=True)
    assert len(chart) < 40_000


@pytest.mark.parametrize("d", [np.zeros(3), np.array([0.7]), np.full(2, -1.0)])
def test_degenerate_differences_still_draw(d: np.ndarray) -> None:
    assert parsed(gain_loss_chart(d, "MAP", "t", "g1")).attrib["role"] == "img"


def test_importance_chart_lengths_and_colours() -> None:
    chart = importance_chart([("x", 0.6, 1), ("y", 0.3, 0)], ["A", "B"], "t", "c1")
    legend_and_bars = parsed(chart).findall("rect")
    widths = {(r.attrib["class"], float(r.attrib["width"])) for r in legend_and_bars} - {
        ("c0", 12.0),
        ("c1", 12.0),
    }
    (_, short), (_, long) = sorted(widths)
    assert long / short == pytest.approx(2, rel=0.01)
    assert {style for style, _ in widths} == {"c0", "c1"}
    assert "60.0 %" in chart


def test_long_legends_wrap() -> None:
    families = [f"a family with quite a long name {i}" for i in range(9)]
    chart = importance_chart([(f"x{i}", 0.1, i) for i in range(9)], families, "t", "c1")
    legend = [r for r in parsed(chart).findall("rect") if r.attrib["width"] == "12.0"]
    assert len({r.attrib["y"] for r in legend}) > 1
    assert max(float(r.attrib["x"]) for r in legend) < 700


def test_curve_chart_draws_every_point_and_the_stop() -> None:
    curve = TrainingCurve("m", "epoch", "loss", {"a": ([1, 2, 3], [3.0, 2.0, 1.0])}, best_x=2)
    root = parsed(curve_chart(curve, "k1"))
    path = root.find("path")
    assert path is not None
    points = [tuple(map(float, p.split())) for p in path.attrib["d"][1:].split("L")]
    assert len(points) == 3
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)
    assert points[0][1] < points[1][1] < points[2][1]  # falling, y grows downwards
    best = root.find("line[@class='best']")
    assert best is not None
    assert float(best.attrib["x1"]) == pytest.approx(points[1][0], abs=0.1)


@pytest.mark.parametrize("y", [[], [5.0], [2.0, 2.0], [1e-9, 2e-9], [0.0, -1e7]])
def test_unusual_curves_still_draw(y: list[float]) -> None:
    curve = TrainingCurve("m", "epoch", "loss", {"a": (list(range(len(y))), y)})
    chart = curve_chart(curve, "k1")
    assert (len(chart) > 0) == (len(y) > 0)
    assert "nan" not in chart


def test_interval_chart_keeps_its_order_and_stays_inside() -> None:
    root = parsed(interval_chart(-0.5, 0.1, 9.0, 1.0, "gain"))
    line = root.findall("line")[1]
    circle = root.find("circle")
    assert circle is not None
    low, high = float(line.attrib["x1"]), float(line.attrib["x2"])
    assert 0 < low < 66 < float(circle.attrib["cx"]) < high < 132


def test_texts_are_escaped() -> None:
    evil = '<script>"&'
    chart = importance_chart([(evil, 1.0, 0)], [evil], evil, "c1")
    assert "<script" not in chart
    assert evil in "".join(parsed(chart).itertext())


@given(st.floats(1e-8, 1e8))
def test_nice_step_is_the_next_of_1_2_5(size: float) -> None:
    step = nice_step(size)
    assert size * (1 - 1e-6) <= step <= size * 2.5 * (1 + 1e-6)
    assert f"{step:.0e}"[0] in "125"


def test_labels() -> None:
    assert tick_label(0.5, 0.05) == "0.50"
    assert tick_label(-0.2, 0.1, sign=True) == "−0.2"
    assert tick_label(1e-12, 0.1, sign=True) == "0"
    assert tick_label(30, 5) == "30"
    assert clipped("abcdef", 4) == "abc…"


def test_correlation_chart_shades_and_numbers_each_pair_once() -> None:
    values = np.array([[1, 0.5, -0.96], [0.5, 1, np.nan], [-0.96, np.nan, 1]])
    chart = correlation_chart(["first", "second", "third"], values, "k1")
    root = parsed(chart)
    cells = {
        (p.attrib["class"], float(p.attrib["fill-opacity"]), p.attrib["d"].count("M"))
        for p in root.findall("path")
    }
    assert cells == {("gain", 0.275, 1), ("loss", 0.55, 1)}  # no cell without a number
    words = [t.text for t in root.findall("text")]
    assert words.count("50") == words.count("−96") == 1
    assert words.count("second") == 2
    assert "the strongest: third and first −96; second and first 50." in str(root.findtext("desc"))


def test_correlation_chart_of_many_columns_fits() -> None:
    m = 24
    chart = correlation_chart([f"a long name of column {i}" for i in range(m)], np.eye(m), "k1")
    width, height = map(float, parsed(chart).attrib["viewBox"].split()[2:])
    assert width == 900
    assert height < 600
    assert max(float(t.attrib["x"]) for t in parsed(chart).findall("text")) < 720


@pytest.mark.parametrize(("best", "anchor"), [(2, "start"), (3, "end")])
def test_the_mark_of_the_kept_step_leaves_the_names_of_the_series_alone(
    best: int, anchor: str
) -> None:
    curve = TrainingCurve("m", "epoch", "loss", {"a": ([1, 2, 3], [3.0, 2.0, 1.0])}, best_x=best)
    words = {t.text: t.attrib["text-anchor"] for t in parsed(curve_chart(curve, "k")).iter("text")}
    assert words[f"kept: {best}"] == anchor


def test_every_colour_of_families_is_in_the_style_sheet() -> None:
    sheet = template_text("style.css")
    for number in range(COLOURS):
        assert f".c{number} {{ fill: var(--c{number});" in sheet
        assert f"--c{number}: #" in sheet
