"""The page's script in a real browser: the table of all queries fills, sorts, filters, pages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import BROWSER, Browser

from ltr_features.studies.page.html import render
from ltr_features.studies.page.pages import Document
from ltr_features.studies.page.report import Report, Study
from ltr_features.studies.page.verdicts import signed

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")

TOOLS = """
  const root = document.getElementById("s1-explorer");
  const press = selector => root.querySelector(selector).click();
  const set = (selector, value) => {
    const element = root.querySelector(selector);
    element.value = value;
    element.dispatchEvent(new Event("input"));
  };
"""
SHOWN = """return [root.querySelector(".status").textContent, [...root.querySelectorAll("tbody tr")]
  .map(row => [...row.querySelectorAll("td")].map(cell => cell.textContent))];"""
# What is done one after the other.
ACTIONS = {
    "start": "",
    "ascending": "press('th[data-key=difference] button');",
    "second page": "press('.next');",
    "by id": "press('th[data-key=id] button');",
    "other measure": "set('.measure', '2');",
    "found": "set('.search', 'SEARCHED');",
    "nothing": "set('.search', 'nowhere at all');",
    "kind": "set('.search', ''); set('.kind', '1B');",
    "kind and search": "set('.search', 'SEARCHED');",
    "all kinds": "set('.search', ''); set('.kind', '');",
}
MEAN = "document.querySelector('#s1-explorer .mean').textContent"


@dataclass(frozen=True, eq=False)
class Clicked:
    """A study, and after each action the status line and the cells of the rows on show."""

    study: Study
    seen: dict[str, tuple[str, list[list[str]]]]
    mean: str

    def rows(self, action: str) -> list[list[str]]:
        return self.seen[action][1]

    def queries(self, action: str) -> list[str]:
        return [row[0] for row in self.rows(action)]

    @property
    def differences(self) -> np.ndarray:
        """As the page has them."""
        system, baseline = (self.study.values(name, "NDCG@10") for name in self.study.pairs[0])
        return np.round(system - baseline, 6)


@pytest.fixture(scope="module", params=[5, 60, 10_000])
def clicked(
    request: pytest.FixtureRequest,
    make_report: Callable[..., Report],
    browser: Browser,
    tmp_path_factory: pytest.TempPathFactory,
) -> Clicked:
    report = make_report(n_queries=request.param, n_systems=4)
    path = tmp_path_factory.mktemp("clicked") / "report.html"
    path.write_text(render(report), encoding="utf-8")
    browser.open(path)
    study, found, mean = report.studies[0], {}, ""
    for name, action in ACTIONS.items():
        action = action.replace("SEARCHED", searched(study).upper())
        status, rows = browser.evaluate(f"(() => {{ {TOOLS} {action} {SHOWN} }})()")
        found[name] = (status, rows)
        if name == "kind":
            mean = browser.evaluate(MEAN)
    return Clicked(study, found, mean)


def searched(study: Study) -> str:
    """The first and last word of a query, the last one first."""
    words = study.query_texts[study.queries[min(20, len(study.queries) - 1)]].split()
    return f"{words[-1]} {words[0]}"


def expected_row(study: Study, query: str, measure: str = "NDCG@10") -> list[str]:
    i = study.queries.index(query)
    a, b = (study.values(name, measure)[i] for name in study.pairs[0])
    return [query, study.query_texts[query], f"{b:.4f}", f"{a:.4f}", signed(a - b), ""]


def test_starts_with_the_largest_gains(clicked: Clicked) -> None:
    study, n = clicked.study, len(clicked.study.queries)
    assert clicked.seen["start"][0] == f"1–{min(n, 10)} of {n:,} queries"
    largest = [study.queries[i] for i in (-clicked.differences).argsort(kind="stable")[:10]]
    assert clicked.rows("start") == [expected_row(study, q) for q in largest]


def test_sorting_pages_and_other_measures(clicked: Clicked) -> None:
    study, queries = clicked.study, clicked.study.queries
    n = len(queries)
    smallest = [queries[i] for i in clicked.differences.argsort(kind="stable")]
    assert clicked.queries("ascending") == smallest[:10]
    if n > 10:
        assert clicked.seen["second page"][0] == f"11–20 of {n:,} queries"
        assert clicked.queries("second page") == smallest[10:20]
    else:  # there is no second page to go to
        assert clicked.seen["second page"] == clicked.seen["ascending"]
    assert clicked.queries("by id") == queries[:10]
    other = [expected_row(study, q, study.measures[2]) for q in queries[:10]]
    assert clicked.rows("other measure") == other


def test_search_needs_every_word_in_any_case(clicked: Clicked) -> None:
    study, words = clicked.study, searched(clicked.study).split()
    wanted = [q for q in study.queries if all(w in study.query_texts[q] for w in words)]
    assert wanted
    assert clicked.queries("found") == wanted[:10]
    assert clicked.seen["nothing"] == ("no query matches", [])


def test_queries_of_a_kind(clicked: Clicked) -> None:
    """The filter by kind (the second class of the second property) keeps the order, by id here,
    counts what it shows, and works together with the search."""
    study = clicked.study
    measure = study.measures[2]
    kinds = study.query_kinds["entities"].reindex(study.queries)
    wanted = [q for q in study.queries if kinds[q] == kinds.cat.categories[1]]
    assert 0 < len(wanted) < len(study.queries)
    status, rows = clicked.seen["kind"]
    assert status == f"1–{min(10, len(wanted))} of {len(wanted):,} queries"
    assert rows == [expected_row(study, q, measure) for q in wanted[:10]]
    a, b = (pd.Series(study.values(s, measure), study.queries) for s in study.pairs[0])
    shown = float(re.sub("[^0-9.-]", "", clicked.mean.replace("−", "-")))
    assert shown == pytest.approx((a - b)[wanted].mean(), abs=6e-5)
    words = searched(study).split()
    both = [q for q in wanted if all(w in study.query_texts[q] for w in words)]
    assert clicked.queries("kind and search") == both[:10]
    assert clicked.seen["all kinds"][0].endswith(f" of {len(study.queries):,} queries")


def test_values_are_rounded_once_as_in_the_tables(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    study = make_report(n_queries=5, n_systems=4).studies[0]
    name, _ = study.pairs[0]
    below = {  # just below the middle of two numbers of four decimals
        s.name: replace(s, per_query=np.floor(s.per_query * 5000) / 1e4 + 0.000049999, fits=())
        for s in study.systems
        if s.name == name
    }
    systems = [below.get(s.name, s) for s in study.systems]
    study = replace(study, systems=systems, hard_queries=None, query_kinds=None)
    path = tmp_path / "report.html"
    path.write_text(render(Report("t", "", [study])), encoding="utf-8")
    browser.open(path)
    _, rows = browser.evaluate(f"(() => {{ {TOOLS} {SHOWN} }})()")
    assert len(rows) == 5
    assert rows == [expected_row(study, row[0]) for row in rows]


def test_halves_and_small_means_are_shown_as_in_the_tables(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    study = make_report(n_queries=5, n_systems=4).studies[0]
    name, other = study.pairs[0]
    # Average precisions such as 1/32 end in a half, and so do differences such as .41 - .96875.
    values = {
        name: [1 / 32, 0.41, 29 / 32, 0.625, 0.9839],
        other: [5 / 32, 0.96875, 0.55, 21 / 32, 0.625],
    }
    systems = [
        replace(s, per_query=s.per_query.mul(0).add(values.get(s.name, 0), axis=0), fits=())
        for s in study.systems
    ]
    study = replace(study, systems=systems, hard_queries=None, query_kinds=None)
    path = tmp_path / "report.html"
    path.write_text(render(Report("t", "", [study])), encoding="utf-8")
    browser.open(path)
    _, rows = browser.evaluate(f"(() => {{ {TOOLS} {SHOWN} }})()")
    assert rows == [expected_row(study, row[0]) for row in rows]
    mean = float(np.mean(np.subtract(*values.values())))
    assert browser.evaluate(MEAN) == f"mean difference {signed(mean)}"


def test_a_phone_names_queries_without_texts_and_rankings(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    study = make_report(n_queries=5, n_systems=4).studies[0]
    path = tmp_path / "report.html"
    bare = replace(study, query_texts={}, drill_down={})
    path.write_text(render(Report("t", "", [bare])), encoding="utf-8")
    browser.open(path, width=400)
    seen = "[...document.querySelectorAll('#s1-explorer tbody tr')].map(row => row.innerText)"
    assert sorted(row.split()[0] for row in browser.evaluate(seen)) == study.queries
    heading = "document.querySelector('#s1-explorer th[data-key=text] button')"
    browser.evaluate(f"{heading}.click(), {heading}.click()")
    assert [row.split()[0] for row in browser.evaluate(seen)] == study.queries[::-1]


def test_theme_switches(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("where", ["tbody th:not(:has(.clamped))", "tbody th .clamped"])
def test_texts_from_right_to_left_keep_their_order(
    browser: Browser, page: Path, where: str
) -> None:
    """The full stop of an Arabic sentence with a Latin word is on its left."""
    browser.open(page)
    first, last = browser.evaluate(
        f"const where = '{where}';"
        + """(() => {
      const cell = document.querySelector(where);
      cell.textContent = "\u0642\u064a\u0645\u0629 JSON \u0635\u0627\u0644\u062d\u0629.";
      return [0, cell.textContent.length - 1].map(at => {
        const range = document.createRange();
        range.setStart(cell.firstChild, at);
        range.setEnd(cell.firstChild, at + 1);
        return range.getBoundingClientRect().left;
      });
    })()"""
    )
    assert last < first


def test_values_beside_a_text_from_right_to_left_keep_their_order(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    study = make_report(n_queries=5, n_systems=4).studies[0]
    path = tmp_path / "report.html"
    told = replace(study, query_texts=dict.fromkeys(study.queries, "\u0642\u064a\u0645\u0629"))
    path.write_text(render(Report("t", "", [told])), encoding="utf-8")
    browser.open(path)
    before, after = browser.evaluate("""(() => {
      const drawing = document.querySelector("figure.gains svg");
      const tip = document.querySelector("#tip");
      const {left, top, width} = drawing.getBoundingClientRect();
      const at = {clientX: left + width / 2, clientY: top + 9};
      drawing.dispatchEvent(new PointerEvent("pointermove", at));
      const numbers = [...tip.textContent.matchAll(/\\d\\.\\d{4}/g)];
      return numbers.slice(0, 2).map(number => {
        const range = document.createRange();
        range.setStart(tip.firstChild, number.index);
        range.setEnd(tip.firstChild, number.index + 6);
        return range.getBoundingClientRect().left;
      });
    })()""")
    assert before < after


def test_numbers_beside_a_name_from_right_to_left_keep_their_order(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    names = ["\u05e7\u05e9\u05ea", "\u05e0\u05e9\u05e8"]
    page = Document(
        "t", "", [], {"a": dict.fromkeys(names, 0.5)}, "MAP",
        notes=[f"{names[0]} 0.1234, {names[1]} 0.5678"],
    )  # fmt: skip
    path = tmp_path / "report.html"
    path.write_text(page.html(), encoding="utf-8")
    browser.open(path)
    places = browser.evaluate("""(() => {
      const text = document.querySelector("ul.findings li").firstChild;
      return [...text.data.matchAll(/[\u05e7\u05e0]|\\d\\.\\d{4}/g)].map(found => {
        const range = document.createRange();
        range.setStart(text, found.index);
        range.setEnd(text, found.index + found[0].length);
        return range.getBoundingClientRect().left;
      });
    })()""")
    assert len(places) == 4
    assert places == sorted(places)

    # An abbreviation in Hebrew, a plural in Persian and a version are a word each.
    words = '\u05e6\u05d4"\u05dc', "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627", f"{names[0]}2.5"
    for word in words:
        path.write_text(replace(page, notes=[f"a {word} 0.1234"]).html(), encoding="utf-8")
        browser.open(path)
        first, last, number = browser.evaluate(f"""(() => {{
          const text = document.querySelector("ul.findings li").firstChild;
          return {json.dumps([word[0], word[-1], "0.1"])}.map(part => {{
            const range = document.createRange();
            range.setStart(text, text.data.indexOf(part));
            range.setEnd(text, text.data.indexOf(part) + 1);
            return range.getBoundingClientRect().left;
          }});
        }})()""")
        assert last < first < number

    report = make_report(n_queries=5, n_systems=4, hostile=names[0])
    drawn = re.findall('data-(?:system|baseline)="(.*?)"', render(report))
    assert set(drawn) <= {system.name for system in report.studies[0].systems}  # as the script has
