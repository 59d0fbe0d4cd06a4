"""PDF figures are what the SVG ones are."""

from __future__ import annotations

import re
import zlib

import pytest

from ltr_features.studies.page.figures import line, rect, svg, text
from ltr_features.studies.page.vector_pdf import INCHES, _steps, read_rules, write_pdf

SHEET = """
svg text { font: 12px sans-serif; fill: #596472; }
svg text.tiny { font-size: 6px; fill: #ff0000; }
svg .zero { stroke: #00ff00; }
.c0 { fill: #0000ff; background: #0000ff; } .c1 { fill: none; }
"""


def drawing() -> str:
    parts = [
        line((0, 50), (450, 50), "zero"),
        rect((90, 20), 180, 30, "c0"),
        text((450, 80), "$x_1$ < −2 & more", "middle", "tiny"),
    ]
    return svg(900, 100, parts, "a title", "a description", "k")


def commands(pdf: bytes) -> str:
    """The drawing commands of the PDF's page."""
    streams = re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    found = [zlib.decompress(stream) for stream in streams if stream[:1] == b"x"]
    return next(c for c in found if b" cm" in c or b" re" in c or b" l\n" in c).decode("latin-1")


def test_rules_of_tags_and_classes():
    rules = read_rules(SHEET)
    assert rules["text"] == {"font": "12px sans-serif", "fill": "#596472"}
    assert rules["text.tiny"]["fill"] == "#ff0000"
    assert rules[".c0"]["fill"] == "#0000ff"
    assert rules[".c1"] == {"fill": "none"}


def test_shapes_lie_where_they_lie_in_the_svg(tmp_path):
    write_pdf(drawing(), read_rules(SHEET), tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    points = 72 * INCHES / 900
    (box,) = re.findall(rb"/MediaBox \[([^\]]*)\]", content)
    assert [float(x) for x in box.split()] == pytest.approx([0, 0, 72 * INCHES, 100 * points])
    drawn = commands(content)
    numbers = [tuple(map(float, p)) for p in re.findall(r"([\d.]+) ([\d.]+) [ml]\b", drawn)]
    for x, y in ((0, 50), (450, 50), (90, 20), (270, 20), (270, 50), (90, 50)):
        expected = (x * points, (100 - y) * points)  # a PDF's origin is below
        assert any(p == pytest.approx(expected, abs=0.01) for p in numbers), (x, y)
    assert "0 0 1 rg" in drawn
    assert "0 1 0 RG" in drawn
    assert "1 0 0 rg" in drawn


def test_no_date_and_the_same_bytes(tmp_path):
    for name in "ab":
        write_pdf(drawing(), read_rules(SHEET), tmp_path / f"{name}.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert content == (tmp_path / "b.pdf").read_bytes()
    assert b"Date" not in content


def test_paths_of_every_command():
    assert list(_steps("M1 2h3V4H0Z")) == [
        ("M", 1, 2), ("L", 4, 2), ("L", 4, 4), ("L", 0, 4),
    ]  # fmt: skip
    assert list(_steps("M0.5 -1L2 3L4 5")) == [("M", 0.5, -1), ("L", 2, 3), ("L", 4, 5)]
