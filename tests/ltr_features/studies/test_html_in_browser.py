"""The page's script in a real browser: the table of all queries fills, sorts, filters, pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import BROWSER, Browser

from ltr_features.studies.page.html import render
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

Seen = dict[str, tuple[str, list[list[str]]]]


@pytest.fixture(scope="module")
def study(make_report: Callable[..., Report]) -> Study:
    return make_report(n_queries=60).studies[0]


@pytest.fixture(scope="module")
def seen(study: Study, browser: Browser, page: Path) -> Seen:
    return clicked(study, browser, page)


def clicked(study: Study, browser: Browser, page: Path) -> Seen:
    """After each action: the status line and the cells of the rows on show."""
    browser.open(page)
    found = {}
    for name, action in ACTIONS.items():
        action = action.replace("SEARCHED", searched(study).upper())
        status, rows = browser.evaluate(f"(() => {{ {TOOLS} {action} {SHOWN} }})()")
        found[name] = (status, rows)
        if name == "kind":
            found["mean"] = (browser.evaluate(MEAN), [])
    return found


def searched(study: Study) -> str:
    """The first and last word of a query, the last one first."""
    words = study.query_texts[study.queries[min(20, len(study.queries) - 1)]].split()
    return f"{words[-1]} {words[0]}"


def expected_row(study: Study, query: str, measure: str = "NDCG@10") -> list[str]:
    i = study.queries.index(query)
    a, b = (study.values(name, measure)[i] for name in study.pairs[0])
    return [query, study.query_texts[query], f"{b:.4f}", f"{a:.4f}", signed(a - b), ""]


def test_starts_with_the_largest_gains(study: Study, seen: Seen) -> None:
    status, rows = seen["start"]
    assert status == "1–10 of 60 queries"
    d = study.values(study.pairs[0][0], "NDCG@10") - study.values(study.pairs[0][1], "NDCG@10")
    largest = [study.queries[i] for i in (-d).argsort(kind="stable")[:10]]
    assert rows == [expected_row(study, q) for q in largest]


def test_sorting_and_pages(study: Study, seen: Seen) -> None:
    d = study.values(study.pairs[0][0], "NDCG@10") - study.values(study.pairs[0][1], "NDCG@10")
    smallest = [study.queries[i] for i in d.argsort(kind="stable")]
    assert [row[0] for row in seen["ascending"][1]] == smallest[:10]
    assert seen["second page"][0] == "11–20 of 60 queries"
    assert [row[0] for row in seen["second page"][1]] == smallest[10:20]
    assert [row[0] for row in seen["by id"][1]] == study.queries[:10]


def test_other_measure(study: Study, seen: Seen) -> None:
    rows = seen["other measure"][1]
    assert rows == [expected_row(study, q, study.measures[2]) for q in study.queries[:10]]


def test_search_needs_every_word_in_any_case(study: Study, seen: Seen) -> None:
    words = searched(study).split()
    wanted = [q for q in study.queries if all(w in study.query_texts[q] for w in words)]
    assert study.queries[20] in wanted
    assert [row[0] for row in seen["found"][1]] == wanted[:10]
    assert seen["nothing"] == ("no query matches", [])


def test_queries_of_a_kind(study: Study, seen: Seen) -> None:
    check_kinds(study, seen)


def check_kinds(study: Study, seen: Seen) -> None:
    """The filter by kind (the second class of the second property) keeps the order, by id here,
    counts what it shows, and works together with the search."""
    measure = study.measures[2]
    kinds = study.query_kinds["entities"].reindex(study.queries)
    wanted = [q for q in study.queries if kinds[q] == kinds.cat.categories[1]]
    assert 0 < len(wanted) < len(study.queries)
    status, rows = seen["kind"]
    assert status == f"1–{min(10, len(wanted))} of {len(wanted):,} queries"
    assert rows == [expected_row(study, q, measure) for q in wanted[:10]]
    a, b = (pd.Series(study.values(s, measure), study.queries) for s in study.pairs[0])
    shown = float(re.sub("[^0-9.-]", "", seen["mean"][0].replace("−", "-")))
    assert shown == pytest.approx((a - b)[wanted].mean(), abs=6e-5)
    words = searched(study).split()
    both = [q for q in wanted if all(w in study.query_texts[q] for w in words)]
    assert [row[0] for row in seen["kind and search"][1]] == both[:10]
    assert seen["all kinds"][0].endswith(f" of {len(study.queries):,} queries")


def test_theme_switches(seen: Seen, browser: Browser) -> None:
    browser.evaluate("document.getElementById('theme').click()")
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("n", [5, 10_000])
def test_few_and_many_queries(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path, n: int
) -> None:
    report = make_report(n_queries=n, n_systems=4)
    study = report.studies[0]
    queries = study.queries
    path = tmp_path / "report.html"
    path.write_text(render(report), encoding="utf-8")
    seen = clicked(study, browser, path)
    page = min(n, 10)
    assert seen["start"][0] == f"1–{page} of {n:,} queries"
    d = study.values(study.pairs[0][0], "NDCG@10") - study.values(study.pairs[0][1], "NDCG@10")
    smallest = [queries[i] for i in np.round(d, 6).argsort(kind="stable")]
    assert [row[0] for row in seen["ascending"][1]] == smallest[:page]
    if n > 10:
        assert [row[0] for row in seen["second page"][1]] == smallest[10:20]
    else:  # there is no second page to go to
        assert seen["second page"] == seen["ascending"]
    assert [row[0] for row in seen["by id"][1]] == queries[:page]
    words = searched(study).split()
    wanted = [q for q in queries if all(w in study.query_texts[q] for w in words)]
    assert [row[0] for row in seen["found"][1]] == wanted[:10]
    assert seen["found"][0].endswith("queries")
    assert seen["nothing"] == ("no query matches", [])
    check_kinds(study, seen)


def test_texts_from_right_to_left_keep_their_order(browser: Browser, page: Path) -> None:
    """The full stop of an Arabic sentence with a Latin word is on its left."""
    browser.open(page)
    first, last = browser.evaluate("""(() => {
      const cell = document.querySelector("tbody th");
      cell.textContent = "\u0642\u064a\u0645\u0629 JSON \u0635\u0627\u0644\u062d\u0629.";
      return [0, cell.textContent.length - 1].map(at => {
        const range = document.createRange();
        range.setStart(cell.firstChild, at);
        range.setEnd(cell.firstChild, at + 1);
        return range.getBoundingClientRect().left;
      });
    })()""")
    assert last < first
