"""The HTML file: self-contained, escaped, accessible, the same bytes each time."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from ltr_features.studies.page.html import render
from ltr_features.studies.page.query_rankings import RankedDocument
from ltr_features.studies.page.query_tables import extreme_queries
from ltr_features.studies.page.report import Report
from ltr_features.studies.page.script_data import packed_rankings, study_data
from ltr_features.studies.page.verdicts import p_equals, signed, verdict

HOSTILE = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>&amp;</style>"
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Outline(HTMLParser):
    """Tags in order, ids, and whether every element was closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [v for k, v in attrs if k == "id" and v]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.tags if t == tag]


@pytest.fixture(scope="module")
def page(make_report: Callable[..., Report]) -> str:
    return render(make_report())


def test_the_first_chart_tells_what_is_significant_without_colours(
    page: str, make_report: Callable[..., Report]
) -> None:
    chart = page[page.index("<svg") : page.index("</svg>")]
    for study in make_report().studies:
        for pair in study.shown_pairs:
            row = study.comparison(pair, study.measures[0])
            sign = ("▲" if row["difference"] > 0 else "▼") if row["significant"] else ""
            words = f"{study.label_of(pair[0])} {row['system_mean']:.3f} {sign}".strip()
            assert re.search(rf"{re.escape(words)}[,;.]", chart)


def test_the_first_screen_gives_the_p_value_of_hard_queries(
    page: str, make_report: Callable[..., Report]
) -> None:
    row = make_report().studies[0].hard_rows()[0]
    assert f"{signed(row['high'])}, {p_equals(row['p_corrected'])})" in page


def test_needs_no_network(page: str) -> None:
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!#)""", page)
    assert "@import" not in page
    assert "url(" not in page
    urls = set(re.findall(r"https?://[^\s\"'<]+", page))
    assert urls <= {"http://www.w3.org/2000/svg"}  # a namespace, not an address
    assert "default-src 'none'" in page


def test_well_formed_with_unique_ids_and_working_links(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    assert len(set(outline.ids)) == len(outline.ids)
    links = {a["href"] for a in outline.all("a")}
    assert links
    assert {h[1:] for h in links if h} <= set(outline.ids)


def test_accessible(page: str) -> None:
    outline = Outline(page)
    levels = [int(t[1]) for t, _ in outline.tags if re.fullmatch("h[1-6]", t)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    tables = len(outline.all("table"))
    assert tables == len(outline.all("caption")) > 20
    assert "<caption></caption>" not in page
    assert [len(outline.all(tag)) for tag in ("header", "main", "nav")] == [1, 1, 1]
    assert all(a.get("scope") in ("col", "row") for a in outline.all("th"))
    for rows in re.findall("<tbody>(.*?)</tbody>", page, re.DOTALL):
        assert all('<th scope="row"' in row for row in rows.split("<tr")[1:])
    for drawing in outline.all("svg"):
        assert drawing.get("aria-hidden") == "true" or drawing.get("role") == "img"
    assert page.count("<title id=") == page.count("<desc id=") == page.count('role="img"')
    assert 'lang="en"' in page


def test_numbers_of_every_comparison_are_there(
    make_report: Callable[..., Report], page: str
) -> None:
    report = make_report()
    for study in report.studies:
        for row in study.comparisons.to_dict("records"):
            assert signed(row["difference"]) in page
            assert f"{row['won']} / {row['tied']} / {row['lost']}" in page
        for word in (verdict(study).headline, study.split_rule):
            assert word in page
    for column in report.columns:
        assert f'<th scope="row">{column.name}<small>'.replace("'", "&#39;") in page
    for text in ("num_leaves", "lightgbm", "4.7.0", "gain 2^label - 1"):
        assert text in page


def test_the_verdict_comes_before_the_introduction(
    make_report: Callable[..., Report], page: str
) -> None:
    sentence = "Word counts + SSI did significantly better than Word counts, on held-out queries"
    assert page.index(sentence) < page.index("figure-1-t") < page.index("retrieved by keyword")
    assert "no significant difference on held-out articles." in page


@pytest.fixture(scope="module")
def hostile_page(make_report: Callable[..., Report]) -> str:
    return render(make_report(n_queries=12, n_systems=5, hostile=HOSTILE))


def test_texts_of_users_are_escaped_everywhere(hostile_page: str) -> None:
    outline = Outline(hostile_page)
    assert outline.all("img") == []
    # the page's own scripts: one for each study's and map's data, one for the behaviour
    assert len(outline.all("script")) == 5
    assert len(outline.all("style")) == 1
    assert "<script>alert" not in hostile_page
    assert "&lt;script&gt;alert" in hostile_page


def embedded(page: str) -> list[dict]:
    found = re.findall(
        r'<script type="application/json" class="study-data"[^>]*>(.*?)</script>', page, re.DOTALL
    )
    return [json.loads(text) for text in found]


def test_embedded_values_are_those_of_the_study(
    make_report: Callable[..., Report], page: str
) -> None:
    report = make_report()
    for data, study in zip(embedded(page), report.studies, strict=True):
        assert data["queries"] == study.queries
        assert data["texts"] == [study.query_texts[q] for q in study.queries]
        raw = np.frombuffer(base64.b64decode(data["values"]), np.uint8).reshape(-1, 3)
        values = (raw * np.array([1, 256, 65536])).sum(axis=1) / 1e6
        shape = (len(data["systems"]), len(data["measures"]), len(data["queries"]))
        for name, block in zip(data["systems"], values.reshape(shape), strict=True):
            for measure, row in zip(data["measures"], block, strict=True):
                np.testing.assert_allclose(row, study.values(name, measure), atol=5e-7)


def test_embedded_kinds_are_in_the_order_of_the_queries(make_report: Callable[..., Report]) -> None:
    study = make_report(n_queries=12, n_systems=4).studies[0]
    kinds = pd.Categorical(["few", "many"] * 5, ["few", "many"], ordered=True)
    told = replace(study, query_kinds=pd.DataFrame({"words": kinds}, study.queries[11:1:-1]))
    assert json.loads(study_data(told))["kinds"] == ["--" + "BA" * 5]


def test_the_filter_knows_each_of_many_classes(make_report: Callable[..., Report]) -> None:
    report = make_report(n_queries=31, n_systems=4)
    study = report.studies[0]
    names = [f"class {n}" for n in range(31)]
    kinds = pd.DataFrame({"given": pd.Categorical(names, names)}, study.queries)
    told = replace(study, query_kinds=kinds)
    page = render(replace(report, studies=[told]))
    found = re.findall(r'<option value="0(.+?)">given: (.+?) \(1\)</option>', page)
    letters = embedded(page)[0]["kinds"][0]
    assert "".join(unescape(letter) for letter, _ in found) == letters
    assert [name for _, name in found] == names
    assert len(set(letters)) == 31


def test_hostile_texts_survive_the_embedding(hostile_page: str) -> None:
    assert embedded(hostile_page)[0]["texts"][0].endswith(HOSTILE)


def test_same_report_same_bytes_in_whatever_order_its_queries_are(
    make_report: Callable[..., Report], page: str
) -> None:
    report = make_report.__wrapped__()  # type: ignore[attr-defined]
    study = report.studies[0]
    shuffled = [
        replace(s, per_query=s.per_query.sample(frac=1, random_state=i)) if i else s
        for i, s in enumerate(study.systems)
    ]
    again = replace(report, studies=[replace(study, systems=shuffled), report.studies[1]])
    assert render(again) == page


def test_a_bare_report_renders(make_report: Callable[..., Report]) -> None:
    study = make_report(n_queries=5, n_systems=4).studies[0]
    bare = replace(
        study,
        systems=[replace(s, columns=(), importance=None) for s in study.systems],
        query_texts={},
        facts={},
        hard_queries=None,
    )
    page = render(Report("t", "", [bare]))
    assert Outline(page).open == []
    for absent in ('id="models"', 'id="columns"', "Hard queries", "Columns that"):
        assert absent not in page


def test_settings_are_told_in_words(make_report: Callable[..., Report]) -> None:
    study = make_report(n_queries=5, n_systems=4).studies[0]
    given = {"a": True, "b": False, "c": None, "d": [1, [2, 3]], "e": [], "f": 0.5}
    page = render(Report("t", "", [study], settings={"SSI": given}))
    table = page[page.index("<caption>SSI</caption>") :]
    told = dict(re.findall('<th scope="row">(.)</th><td>(.*?)</td>', table))
    assert told == {"a": "yes", "b": "no", "c": "none", "d": "1, 2 / 3", "e": "none", "f": "0.5"}


def test_charts_have_the_level_of_their_intervals(make_report: Callable[..., Report]) -> None:
    study = make_report().studies[0]
    page = render(Report("t", "", [replace(study, test=replace(study.test, confidence=0.975))]))
    for caption in ("Bars: 97.5% intervals", "with 97.5% intervals"):
        assert caption in page


def test_moved_documents_without_columns_or_titles(make_report: Callable[..., Report]) -> None:
    study = make_report(n_queries=12, n_systems=4).studies[0]
    [extreme] = extreme_queries(study, 1)[:1]
    documents = next(iter(study.drill_down.values()))
    told = replace(study, drill_down={extreme: documents})
    assert "Pushed by" in render(Report("t", "", [told]))
    documents = [replace(one, title="", columns=()) for one in documents]
    bare = replace(study, drill_down={extreme: documents})
    page = render(Report("t", "", [bare]))
    assert Outline(page).open == []
    assert "Pushed by" not in page
    assert "TreeSHAP" not in page
    assert '<tr><th scope="row">d2</th><td class="number" data-label="Grade">–</td>' in page


def unpacked(packed: str) -> dict:
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_rankings_within_the_page(make_report: Callable[..., Report], page: str) -> None:
    study = make_report().studies[0]
    data = embedded(page)[0]
    assert data["pair"] == list(study.pairs[0])
    rankings = unpacked(data["rankings"])
    assert rankings["documents"] == [["A treaty", "d1"], ["A river", "d2"], ["A comet", "d3"]]
    assert rankings["columns"] == ["IDF", "BM25 body"]
    assert rankings["queries"]["0"] == [
        [0, 2, 7, 1, 0, 80], [1, None, 0, 3, 1, 40, 0, 10], [2, 1, 2, 9]
    ]  # fmt: skip


def test_rankings_are_found_by_the_number_of_their_query(
    make_report: Callable[..., Report],
) -> None:
    study = make_report(n_queries=12, n_systems=4).studies[0]
    changed = {study.queries[i]: [RankedDocument(f"d{i}", "", 0, 1, 2)] for i in (7, 3)}
    found = unpacked(packed_rankings(replace(study, drill_down=changed), 3000))
    named = {n: found["documents"][rows[0][0]][1] for n, rows in found["queries"].items()}
    assert named == {"7": "d7", "3": "d3"}


def test_too_many_rankings_are_cut_to_the_largest_changes(
    make_report: Callable[..., Report],
) -> None:
    study = make_report(n_queries=200, n_systems=4).studies[0]
    rng = np.random.default_rng(0)
    names = [f"{x:x}" for x in rng.integers(1 << 60, size=200)]
    named = zip(study.queries, names, strict=True)
    changed = {query: [RankedDocument(name, name, 0, 1, 2)] for query, name in named}
    many = replace(study, drill_down=changed)
    whole, part = packed_rankings(many, 1_000_000), packed_rankings(many, 3000)
    assert len(part) <= 3000 < len(whole)
    kept = list(unpacked(part)["queries"])
    assert kept == [str(i) for i in range(len(kept))]
    assert 20 < len(kept) < 200
    assert packed_rankings(replace(study, drill_down={}), 3000) == ""


def test_small_enough(make_report: Callable[..., Report]) -> None:
    """1,000 queries and 20 systems in the first study, a third of the queries in the second."""
    assert len(render(make_report(1000, 20)).encode()) < 2_000_000


def test_long_queries_are_shown_by_their_beginnings(make_report: Callable[..., Report]) -> None:
    """Claims of patents, say; whole, they would be most of the page."""
    report = make_report()
    texts = {query: f"claim {query} " + "wherein " * 5000 for query in report.studies[0].queries}
    study = replace(report.studies[0], query_texts=texts)
    page = render(replace(report, studies=(study,)))
    assert len(page) < 1.5e6
    assert f"claim {study.queries[0]} wherein" in page
    assert study.text_of(study.queries[0]).endswith("wherein …")


def test_of_many_systems_those_of_the_first_screen_stand_first(
    make_report: Callable[..., Report], page: str
) -> None:
    """All are there: tables fold the others, whose figures are files beside the page."""
    report = make_report(40, 14)
    study, long = report.studies[0], render(report)
    tables = re.findall(r'<table class="data [^"]*">.*?</table>', long, re.S)
    first, others = tables[:2]
    heads = [re.findall(r'<th scope="row">(.*?)[<(]', table) for table in (first, others)]
    shown = {name for pair in study.shown_pairs for name in pair}
    assert len(shown) == 8
    assert {head.strip() for head in heads[0]} == shown
    assert {head.strip() for head in heads[0] + heads[1]} == {s.name for s in study.systems}
    assert "<summary>The other 6 systems</summary>" in long
    assert "<summary>The other 6 comparisons</summary>" in long
    assert long.count('class="gains" data-study="s1"') == 7
    assert "The figures of the other 6 comparisons are in the folder figures" in long
    assert "<summary>The other" not in page  # of six
