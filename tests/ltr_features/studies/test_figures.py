"""Charts: true to the numbers, the same bytes each time, in the page's colours."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from ltr_base.names import clipped
from ltr_features.studies.page.charts.columns import correlation, importance
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import PALETTE, Drawing, clipped_apart
from ltr_features.studies.page.charts.forest import Estimate, forest
from ltr_features.studies.page.charts.queries import BARS, gains, scatter
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.study_figures import IMPORTANT_COLUMNS, StudyFigures, dots, overview
from ltr_features.studies.page.verdicts import signed


def parsed(drawing: Drawing) -> ET.Element:
    return ET.fromstring(str(drawing.svg("k")))


def words(drawing: Drawing) -> list[str]:
    return [t.text or "" for t in parsed(drawing).iter("text")]


def paths(drawing: Drawing, colour: str) -> list[np.ndarray]:
    """Corners [n, 2] of the shapes in one of the page's colours."""
    found = []
    for path in parsed(drawing).iter("path"):
        if f"var(--{colour})" in path.get("style", "") and "id" not in path.attrib:
            numbers = re.findall(r"-?[\d.]+", path.attrib["d"])
            found.append(np.array(numbers, dtype=float).reshape(-1, 2))
    return found


def bars(drawing: Drawing, colour: str) -> list[float]:
    """Signed heights of the bars of one sign, from left to right."""
    [steps] = paths(drawing, colour) or [np.zeros((0, 2))]
    if not len(steps):
        return []
    _, zeros = np.unique(steps[:, 1], return_counts=True)
    line = np.unique(steps[:, 1])[zeros.argmax()]
    heights = line - steps[1:-1:2, 1]
    return [float(h) for h in heights if abs(h) > 0.01]


def test_a_bar_per_query_in_order() -> None:
    chart = gains(np.array([-0.2, 0.4, 0.0, 0.1, 0.0]), "NDCG@10", "a against b")
    won, lost = bars(chart, "gain"), bars(chart, "loss")
    assert len(won) == 2
    assert len(lost) == 1
    assert won[0] / won[1] == pytest.approx(4, rel=0.02)
    assert lost[0] / won[1] == pytest.approx(-2, rel=0.02)
    for part in ("2 won", "2 tied", "1 lost", "difference in NDCG@10"):
        assert part in words(chart)
    assert "for each of 5 queries: 2 won, 2 tied, 1 lost; from +0.4000" in chart.description


def test_many_queries_are_averaged_over_neighbours() -> None:
    chart = gains(np.random.default_rng(0).normal(size=10_000), "MAP", "t")
    heights = bars(chart, "gain") + bars(chart, "loss")
    assert BARS - 2 <= len(heights) <= BARS + 1
    assert heights == sorted(heights, reverse=True)
    assert len(chart.svg("k")) < 25_000


def test_a_bar_of_neighbours_has_their_mean() -> None:
    """Three queries a bar: a gain of 1 beside two of 0. The axis reaches as far as the largest."""
    [whole] = bars(gains(np.array([1.0, 0.0]), "MAP", "t"), "gain")
    [third] = bars(gains(np.eye(1, 3 * BARS)[0], "MAP", "t"), "gain")
    assert third / whole == pytest.approx(1 / 3, rel=0.01)


@pytest.mark.parametrize("d", [np.zeros(3), np.array([0.7]), np.full(2, -1.0)])
def test_degenerate_differences_still_draw(d: np.ndarray) -> None:
    assert parsed(gains(d, "MAP", "t")).attrib["role"] == "img"


def test_dots_stand_where_their_values_are() -> None:
    rows = [
        Estimate("base", 0.3, "0.300"),
        Estimate("better", 0.4, "0.400", "gain", 0.35, 0.45),
        Estimate("worse", 0.2, "0.200", "loss", 0.15, 0.25),
    ]
    chart = forest([("Unseen", rows, 0.3)], "NDCG@10", "t")
    dots = {
        re.search(r"--([\w-]+)", use.attrib["style"])[1]: float(use.attrib["x"])  # type: ignore[index]
        for use in parsed(chart).iter("use")
    }
    assert dots["gain"] - dots["unsure"] == pytest.approx(dots["unsure"] - dots["loss"], abs=0.05)
    [interval] = paths(chart, "gain")
    assert interval[:, 0].mean() == pytest.approx(dots["gain"], abs=0.05)
    assert np.ptp(interval[:, 0]) == pytest.approx(dots["gain"] - dots["unsure"], abs=0.05)
    [line] = paths(chart, "muted")
    assert line[:, 0] == pytest.approx([dots["unsure"]] * 2, abs=0.05)
    assert {"Unseen", "base", "better", "0.400", "NDCG@10"} <= set(words(chart))
    heights = {t.text: float(t.attrib["y"]) for t in parsed(chart).iter("text")}
    beside = [heights[one.shown] - heights[one.label] for one in rows]  # each in its own row
    assert beside == pytest.approx([0] * 3, abs=1)
    assert chart.description == "Unseen: base 0.300, better 0.400, worse 0.200."


@pytest.mark.parametrize(("baseline", "place"), [("base", 1), ("absent", 0), (None, 0)])
def test_the_line_of_means_stands_at_the_baseline_or_else_at_the_first_row(
    baseline: str | None, place: int
) -> None:
    chart = dots({"A table": {"x": 0.1, "base": 0.3, "y": 0.4}}, "MAP", baseline)
    found = [float(use.attrib["x"]) for use in parsed(chart).iter("use")]
    [line] = paths(chart, "muted")
    assert line[:, 0] == pytest.approx([found[place]] * 2, abs=0.05)


def test_long_labels_take_two_lines_that_end_at_the_axis() -> None:
    labels = ["the 46 word columns", "words+LSA+SSI, LambdaMART", "sentence-transformers/a-model"]
    chart = forest([("", [Estimate(label, 0.1, "") for label in labels], 0.0)], "NDCG@10", "t")
    lines = [labels[0], "words+LSA+SSI,", "LambdaMART", "sentence-trans", "formers/a-model"]
    found = {t.text: t for t in parsed(chart).iter("text") if t.text in lines}
    assert list(found) == lines
    assert {t.attrib["x"] for t in found.values()} == {found[labels[0]].attrib["x"]}
    assert all("text-anchor: end" in t.attrib["style"] for t in found.values())
    heights = [float(t.attrib["y"]) for t in found.values()]
    assert heights == sorted(heights)


def test_lengths_and_colours_of_importance() -> None:
    chart = importance([("x", 0.6, 1), ("y", 0.3, 0)], ["A", "B"], "t")
    (long, _), (short, _) = (
        sorted((np.ptp(shape[:, 0]) for shape in paths(chart, colour)), reverse=True)
        for colour in ("c1", "gain")
    )
    assert long / short == pytest.approx(2, rel=0.01)
    assert {"60.0 %", "A", "B", "x"} <= set(words(chart))


def test_rankers_that_are_compared_with_nothing_have_no_chart_of_importance(make_report) -> None:
    study = make_report(n_queries=40, n_systems=4).studies[0]
    rankers = {system.name for system in study.systems if system.importance is not None}
    system, baseline = study.pairs[0]
    fewer = StudyFigures(replace(study, pairs=[(system, baseline)]), {})
    assert len(rankers) > 2
    assert [chart.system for chart in fewer.importance] == [system, baseline]


def test_the_figures_of_a_study_draw_its_own_numbers(make_report) -> None:
    study = make_report(n_queries=60).studies[0]
    figures, measure = StudyFigures(study, {}), study.measures[0]
    means = {s.name: float(study.values(s.name, measure).mean()) for s in study.systems}
    assert len(figures.gains) == len(study.pairs) > 1
    for pair, chart in figures.gains:
        row = study.comparison(pair, measure)
        counts = f"{row['won']} won, {row['tied']} tied, {row['lost']} lost"
        assert counts in chart.description
        assert f"mean {signed(row['difference'])}." in chart.description
    system, baseline = study.pairs[0]
    won, lost = study.comparison(study.pairs[0], measure)[["won", "lost"]]
    better = f"{study.label_of(system)} did better: {won} queries; below: {lost}."
    assert won > lost
    assert better in figures.scatter.description
    others = sorted((name for name, _ in study.shown_pairs), key=lambda name: -means[name])
    shown = re.findall(r"[:,] ([^,:]*) 0\.\d{3}", overview([study]).description)
    assert shown == [study.label_of(name) for name in (baseline, *others)]
    assert study.learning_curve is not None
    for side in ("system", "baseline"):
        for name, rows in study.learning_curve.groupby(side):
            ends = " to ".join(f"{x:.4g}" for x in rows[f"{side}_mean"].iloc[[0, -1]])
            assert f"{study.label_of(name)}: {ends}" in figures.learning.description
    for row in study.estimates_on_hard:
        every = study.comparison((row["system"], study.hard_baseline), study.hard_measure)
        both = f"all queries {signed(every['difference'])}, hard queries {signed(row['gain'])}"
        assert f"{study.label_of(row['system'])}: {both}" in figures.hard.description


def test_shares_of_families_are_of_all_columns_though_the_chart_has_the_first_only(
    make_report,
) -> None:
    study = make_report(n_queries=40, n_systems=4).studies[0]
    names = [f"c{i:02}" for i in range(IMPORTANT_COLUMNS + 2)]
    gain = [4.75] * IMPORTANT_COLUMNS + [3.0, 2.0]
    table = pd.DataFrame({"column": names, "gain": gain}).sample(frac=1, random_state=0)
    system = replace(study.system(study.pairs[0][0]), importance=table)
    others = [s for s in study.systems if s.name != system.name]
    family = {name: "rare" if i >= IMPORTANT_COLUMNS else "usual" for i, name in enumerate(names)}
    chart = StudyFigures(replace(study, systems=[*others, system]), family).importance[0]
    assert chart.system == system.name
    assert chart.words == ("usual 95.0 %, rare 5.0 %; 2 further columns, not shown, share 5.0 %")
    shown = [text for text in words(chart.drawing) if text in names]
    assert sorted(shown) == names[:IMPORTANT_COLUMNS]


def test_nearest_columns_are_told_of_those_that_the_system_has_beyond_its_baseline(
    make_report,
) -> None:
    study = make_report(n_queries=40, n_systems=4).studies[0]
    system, baseline = (study.system(name) for name in study.pairs[0])
    added = [name for name in system.columns if name not in baseline.columns]
    found = StudyFigures(study, {}).correlation
    assert found is not None
    assert {name for name, _ in found.nearest} == set(added)


def test_long_legends_wrap() -> None:
    families = [f"a family with quite a long name {i}" for i in range(9)]
    chart = importance([(f"x{i}", 0.1, i) for i in range(9)], families, "t")
    legend = [t for t in parsed(chart).iter("text") if (t.text or "").startswith("a family")]
    assert len({t.attrib["y"] for t in legend}) == 5
    assert max(float(t.attrib["x"]) for t in legend) < 260


def test_a_curve_has_every_point_integers_below_and_the_stop() -> None:
    curve = Curve("m", "epoch", "loss", {"a": ([1, 2, 3], [3.0, 2.0, 1.0])}, best_x=2)
    chart = curves(curve)
    assert chart.description == "a: 3 to 1."
    line = next(shape for shape in paths(chart, "gain") if len(shape) == 3)
    assert np.diff(line[:, 0]) == pytest.approx([line[1, 0] - line[0, 0]] * 2, abs=0.2)
    assert (np.diff(line[:, 1]) > 0).all()  # falling, y grows downwards
    assert {"1", "2", "3", "kept: 2", "epoch", "loss"} <= set(words(chart))
    assert not any(re.fullmatch(r"[123]\.\d", text) for text in words(chart)[:5])
    dashed = next(shape for shape in paths(chart, "muted") if len(shape) == 2)
    assert dashed[0, 0] == pytest.approx(line[1, 0], abs=0.1)


@pytest.mark.parametrize("y", [[5.0], [2.0, 2.0], [1e-9, 2e-9], [0.0, -1e7]])
def test_unusual_curves_still_draw(y: list[float]) -> None:
    chart = curves(Curve("m", "epoch", "loss", {"a": (list(range(len(y))), y)}))
    assert "nan" not in chart.svg("k")


def test_correlation_shades_and_numbers_each_pair_once() -> None:
    values = np.array([[1, 0.5, -0.96], [0.5, 1, np.nan], [-0.96, np.nan, 1]])
    chart = correlation(["first", "second", "third"], values)
    [blue], [orange] = (paths(chart, colour) for colour in ("gain", "loss"))  # and no cell for NaN
    below = orange.mean(axis=0) - blue.mean(axis=0)  # of row 3 and row 2, in the first column
    assert below == pytest.approx([0, 24], abs=0.1)
    numbers = {t.text: float(t.attrib["y"]) for t in parsed(chart).iter("text")}
    assert numbers["−96"] - numbers["50"] == pytest.approx(24, abs=0.1)
    assert words(chart).count("50") == words(chart).count("−96") == 1
    assert "the strongest: third and first −96; second and first 50." in chart.description


def test_a_point_per_query() -> None:
    x, y = np.array([0.0, 0.5, 1.0]), np.array([0.5, 0.5, 0.25])
    chart = scatter(x, y, "TFIDF", "U'V <I>", "AP")
    dots = [[float(use.attrib[axis]) for axis in "xy"] for use in parsed(chart).iter("use")]
    right, down = np.diff(dots, axis=0).T
    assert right[0] == pytest.approx(right[1], abs=0.05)
    assert right[0] > 0
    assert (down[0], down[1] > 0) == (0, True)
    assert "Above the diagonal, U'V <I> did better: 1 queries; below: 1." in chart.description
    assert "<I>" not in chart.svg("k")


def test_texts_are_escaped_and_whole_formulas_stay_texts() -> None:
    evil = '<script>"&$x_1$'
    chart = importance([(evil, 1.0, 0)], [evil], evil)
    assert "<script" not in chart.svg("k")
    assert words(chart).count(evil) == 2
    assert parsed(chart).findtext("title") == evil


def test_control_characters_of_a_title_do_not_break_the_xml(tmp_path: Path) -> None:
    label = "a\x00b\x1b[31mc\ufffed"  # as texts of PDFs and terminals have them
    chart = importance([(label, 1.0, 0)], [label], label)
    assert words(chart).count("a\ufffdb\ufffd[31mc\ufffdd") == 2
    chart.write(tmp_path / "chart")
    assert ET.parse(tmp_path / "chart.svg").getroot()[0].text == "a\ufffdb\ufffd[31mc\ufffdd"


def test_files_and_page_show_the_same_in_fixed_and_variable_colours(tmp_path) -> None:
    chart = gains(np.array([0.1, -0.2]), "MAP", "t")
    chart.write(tmp_path / "a")
    gains(np.array([0.1, -0.2]), "MAP", "t").write(tmp_path / "b")
    for suffix in ("svg", "pdf"):
        content = (tmp_path / f"a.{suffix}").read_bytes()
        assert content == (tmp_path / f"b.{suffix}").read_bytes()
        assert b"Date" not in content
        assert b"/Type3" not in content  # which publishers refuse
    alone = (tmp_path / "a.svg").read_text("utf-8")
    assert ET.fromstring(alone).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in alone
    page = str(chart.svg("k"))
    assert not re.search("#[0-9a-f]{6}", page)
    body = re.sub(r"var\(--([\w-]+)\)", lambda v: PALETTE[v[1]][0], page)
    drawn = r"(<path|<text).*</svg>"
    assert re.search(drawn, body)[0] == re.search(drawn, alone)[0]  # type: ignore[index]


def test_drawing_changes_no_setting_of_matplotlib_and_obeys_none() -> None:
    plain = str(gains(np.array([0.1, -0.2]), "MAP", "t").svg("k"))
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        assert str(gains(np.array([0.1, -0.2]), "MAP", "t").svg("k")) == plain
        assert dict(matplotlib.rcParams) == before


def test_ids_are_unique_by_key() -> None:
    chart = scatter(np.array([0.1]), np.array([0.2]), "a", "b", "AP")
    ids = [re.findall(r'id="([^"]+)"', chart.svg(key)) for key in ("k1", "k2")]
    assert all(ids)
    assert not set(ids[0]) & set(ids[1])


def test_clipped() -> None:
    assert clipped("abcdef", 4) == "abc…"
    labels = ["Hash kernel, H = 1M", "Hash kernel, H = 6M", "TFIDF", "U'V with a long name"]
    assert clipped_apart(labels, 9) == ["Hash…= 1M", "Hash…= 6M", "TFIDF", "U'V with…"]


@pytest.mark.filterwarnings("error")
def test_labels_in_scripts_without_glyphs_are_text_in_the_svg_and_no_warning() -> None:
    labels = ["文字", "मान", "كلمات"]
    chart = forest([("", [Estimate(label, 0.1, "") for label in labels], 0.0)], "NDCG@10", "t")
    assert set(labels) <= set(words(chart))


def test_charts_drawn_at_the_same_time_are_the_same_and_leave_matplotlibs_settings(
    tmp_path: Path,
) -> None:
    first_began, second_began, first_ended = Event(), Event(), Event()

    class Waiting(Text):
        """Tells that it is being drawn, and waits for the other thread: in vain if charts take
        turns."""

        def __init__(self, began: Event, until: Event) -> None:
            super().__init__(0.5, 0.5, "seen")
            self.began, self.until = began, until

        def draw(self, renderer: Any) -> None:
            self.began.set()
            self.until.wait(0.5)
            super().draw(renderer)

    def written(name: str, began: Event, until: Event) -> list[bytes]:
        drawing = Drawing("t", "d", 50, lambda figure: figure.add_artist(Waiting(began, until)))
        drawing.write(tmp_path / name)
        return [(tmp_path / f"{name}.{kind}").read_bytes() for kind in ("svg", "pdf")]

    def draw_second() -> None:
        first_began.wait(10)
        drawn.append(written("second", second_began, first_ended))

    settings, filters, drawn = dict(matplotlib.rcParams), list(warnings.filters), []
    thread = Thread(target=draw_second)
    thread.start()
    drawn.append(written("first", first_began, second_began))
    first_ended.set()
    thread.join()
    alone = written("alone", first_began, first_ended)
    assert drawn == [alone, alone]
    assert dict(matplotlib.rcParams) == settings
    assert list(warnings.filters) == filters
