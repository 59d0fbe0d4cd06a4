"""The page for readers who use keys, a screen reader, a phone, dark mode or paper; in a real
browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import BROWSER, Browser

from ltr_features.studies.page.html import render
from ltr_features.studies.page.report import Report
from ltr_features.studies.statistics.embedding_map import embedding_map

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")


def test_keys_reach_and_sort_the_table_of_queries(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('#s1-explorer .search').focus()")
    sorts = """[...document.querySelectorAll('#s1-explorer th[data-key]')]
      .map(h => h.dataset.key + ':' + h.getAttribute('aria-sort')).join(' ')"""
    assert "difference:descending" in browser.evaluate(sorts)
    here = "document.activeElement"
    seen = []
    while "data-key" not in (at := browser.evaluate(f"{here}.parentElement.outerHTML")[:60]):
        seen.append(at)
        assert len(seen) < 12, seen
        browser.press("Tab")
    assert browser.evaluate(f"{here}.textContent") == "Id"
    assert browser.evaluate(f"getComputedStyle({here}).outlineStyle") != "none"
    browser.press("Enter")
    assert browser.evaluate(sorts).startswith("id:ascending text:null")
    first = "document.querySelector('#s1-explorer tbody td').textContent"
    assert browser.evaluate(first) == "q0000"
    browser.press(" ")
    assert browser.evaluate(sorts).startswith("id:descending text:null")
    assert browser.evaluate(first) == "q0059"
    browser.press("Tab", "Enter")
    assert browser.evaluate(sorts).startswith("id:null text:ascending")


def test_keys_open_the_rankings_of_a_query(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.evaluate("""document.querySelector('#s1-explorer th[data-key=id] button').click();
      document.querySelector('#s1-explorer .opener').focus()""")
    state = "(e => [e.ariaExpanded, e.getAttribute('aria-controls')])(document.activeElement)"
    assert browser.evaluate(state) == ["false", None]
    browser.press("Enter")
    browser.settle()
    expanded, controlled = browser.evaluate(state)
    assert expanded == "true"
    tables = f"""[...document.querySelectorAll('#{controlled} table')].map(t => [
      t.caption.textContent, ...[...t.rows].map(r => [...r.cells].map(c => c.innerText).join('|'))
    ])"""
    assert browser.evaluate(tables) == [
        ["Word counts", "Rank|Document|Grade|After",
         "2|A comet\nd3|1|9 ▼", "7|A treaty\nd1|2|1 ▲"],
        ["Word counts + SSI", "Rank|Document|Grade|Before",
         "1|A treaty\nd1\npushed by IDF +0.80|2|7 ▲",
         "3|A river\nd2\npushed by BM25 body +0.40, IDF +0.10|–|– ▲",
         "9|A comet\nd3|1|2 ▼"],
    ]  # fmt: skip
    browser.press("Tab")  # the next query; one that the page has no rankings of says so
    browser.evaluate("document.querySelectorAll('#s1-explorer .opener')[5].click()")
    browser.settle()
    seen = "[...document.querySelectorAll('#s1-explorer .detail')].map(e => e.innerText)"
    assert "3 queries that changed most" in browser.evaluate(seen)[1]
    browser.evaluate("document.querySelector('#s1-explorer .opener').focus()")
    browser.press(" ")
    assert browser.evaluate(state)[0] == "false"
    assert len(browser.evaluate(seen)) == 1


def test_opened_rankings_stay_open_and_fit_a_phone(page: Path, browser: Browser) -> None:
    browser.open(page, width=400)
    opened = "document.querySelectorAll('#s1-explorer .detail .rankings').length"
    browser.evaluate("""document.querySelector('#s1-explorer th[data-key=id] button').click();
      document.querySelector('#s1-explorer .opener').click()""")
    browser.settle()
    assert browser.evaluate(opened) == 1
    assert browser.evaluate("document.documentElement.scrollWidth") <= 400
    widths = """[...document.querySelectorAll('.rankings table')].map(e => e.offsetWidth)"""
    assert all(300 < width <= 400 for width in browser.evaluate(widths))
    sort = "document.querySelector('#s1-explorer th[data-key=id] button').click()"
    browser.evaluate(f"{sort}; {sort}")
    browser.settle()
    assert browser.evaluate(opened) == 1


def test_words_are_found_on_the_map(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('#models details').open = true")
    typed = """(word => { const e = document.querySelector('#word-map input'); e.value = word;
      e.dispatchEvent(new Event('input'));
      return [document.querySelector('#word-map .status').innerText,
        [...document.querySelectorAll('#word-map text.found')].map(t => t.textContent),
        document.querySelectorAll('#word-map circle.near').length]; })"""
    told, found, near = browser.evaluate(f"{typed}('River ')")
    assert told.startswith("river: nearest in all 5 dimensions: ")
    assert (found, near, told.count(";")) == (["river"], 6, 5)
    assert browser.evaluate(f"{typed}('reat')")[1:] == [["treaty"], 6]  # the only one
    told, found, near = browser.evaluate(f"{typed}('al')")
    assert told == "3 of 34 words: alkali; metal; cathedral"
    assert found[0] == "alkali"
    assert set(found) <= {"alkali", "metal", "cathedral"}  # one without room is left out
    assert near == 0
    assert browser.evaluate(f"{typed}('zzz')")[0] == "none of the words contains this text"
    assert browser.evaluate(f"{typed}('')") == ["", [], 0]


def test_all_documents_of_a_title_are_found_on_the_map(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    report = make_report(n_queries=5, n_systems=4)
    vectors = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    shared = embedding_map("ssi", "documents", [*"abcdefg", "News", "News"], vectors)
    path = tmp_path / "map.html"
    path.write_text(render(replace(report, maps=[shared])), "utf-8")
    browser.open(path)
    browser.evaluate("document.querySelector('#models details').open = true")
    found = browser.evaluate("""(() => { const e = document.querySelector('#document-map input');
      e.value = 'news'; e.dispatchEvent(new Event('input'));
      return document.querySelector('#document-map .status').innerText; })()""")
    assert found == "2 of 9 documents: News; News"


@pytest.mark.parametrize("width", [400, 1400])
def test_a_document_on_the_map_shows_its_neighbours_within_the_drawing(
    page: Path, browser: Browser, width: int
) -> None:
    browser.open(page, width=width)
    browser.evaluate("""document.documentElement.style.scrollBehavior = 'auto';
      document.querySelector('#models details').open = true;
      document.querySelector('#document-map svg').scrollIntoView()""")
    x, y = browser.evaluate("""(() => {
      const dot = document.querySelectorAll('#document-map use')[7].getBoundingClientRect();
      return [dot.x + dot.width / 2, dot.y + dot.height / 2];
    })()""")
    at = {"x": x, "y": y, "button": "left", "clickCount": 1}
    for kind in ("mousePressed", "mouseReleased"):
        browser.command("Input.dispatchMouseEvent", type=kind, **at)
    told, shown, outside, overlapping = browser.evaluate("""(() => {
      const map = document.querySelector('#document-map'), box = map.getBoundingClientRect();
      const texts = [...map.querySelectorAll('text.found, text.near')];
      const boxes = texts.map(text => text.getBoundingClientRect());
      const apart = (a, b) => a.right <= b.left || b.right <= a.left
        || a.bottom <= b.top || b.bottom <= a.top;
      return [map.querySelector('.status').innerText, map.querySelectorAll('circle').length,
        boxes.filter(at => at.left < box.left || at.right > box.right).length,
        boxes.filter((a, i) => boxes.slice(i + 1).some(b => !apart(a, b))).length];
    })()""")
    assert "nearest in all 5 dimensions: " in told
    assert (shown, outside, overlapping) == (7, 0, 0)


def test_texts_in_opened_rankings_stay_texts(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    hostile = "<img src=x onerror=\"document.title='run'\"><b>bold</b>"
    path = tmp_path / "hostile.html"
    path.write_text(render(make_report(n_queries=8, n_systems=4, hostile=hostile)), "utf-8")
    browser.open(path)
    browser.evaluate("document.querySelectorAll('.opener').forEach(e => e.click())")
    browser.settle()
    found = """[document.querySelectorAll('.rankings img, .rankings b').length,
      document.querySelector('.rankings').textContent.includes('<b>bold</b>'), document.title]"""
    elements, shown, title = browser.evaluate(found)
    assert elements == 0
    assert shown
    assert title != "run"


def test_every_control_shows_the_focus_and_opens_by_keys(page: Path, browser: Browser) -> None:
    browser.open(page)
    seen = []
    for _ in range(40):
        browser.press("Tab")
        seen.append(
            browser.evaluate("""(e => [e.tagName, getComputedStyle(e).outlineStyle,
              parseFloat(getComputedStyle(e).outlineWidth)])(document.activeElement)""")
        )
    assert {"A", "BUTTON", "DIV", "SUMMARY"} <= {tag for tag, _, _ in seen}
    assert all(style != "none" and width >= 1 for _, style, width in seen)
    browser.evaluate("document.querySelector('summary').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.querySelector('details').open")


CONTRASTS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = text => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = c => c.slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  document.querySelectorAll("details").forEach(d => { d.open = true; });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = new Set();
  let count = 0;
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, style = getComputedStyle(e);
    if (!walker.currentNode.data.trim() || !e.checkVisibility()) continue;
    if (["SCRIPT", "STYLE", "TITLE", "DESC", "OPTION"].includes(e.tagName.toUpperCase())
        || e.matches(":disabled, .hidden, .tiny, .skip")) continue;
    const ink = light(rgba(e instanceof SVGElement ? style.fill : style.color));
    const ground = light(behind(e));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    count++;
    if (ratio < 4.5) low.add(`${ratio.toFixed(2)} ${e.tagName}.${e.getAttribute("class")}`);
  }
  return [count, [...low]];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground(page: Path, browser: Browser, scheme: str) -> None:
    """Contrast of at least 4.5 (WCAG 2, level AA)."""
    browser.open(page, scheme=scheme)
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    count, low = browser.evaluate(CONTRASTS)
    assert count > 500
    assert low == []


@pytest.mark.parametrize("width", [320, 400, 700])
def test_narrow_windows_scroll_tables_not_the_page(
    page: Path, browser: Browser, width: int
) -> None:
    browser.open(page, width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


def test_captions_are_read_without_scrolling_their_tables(page: Path, browser: Browser) -> None:
    browser.open(page, width=720)
    wide, ends = browser.evaluate("""(() => {
      const all = [...document.querySelectorAll(".scroll")].filter(e => e.checkVisibility());
      return [all.filter(e => e.scrollWidth > e.clientWidth).length,
        all.map(e => e.querySelector("caption").getBoundingClientRect().right)];
    })()""")
    assert wide > 0
    assert max(ends) <= 720


def test_long_names_without_blanks_do_not_widen_the_page(
    make_report: Callable[..., Report], browser: Browser, tmp_path: Path
) -> None:
    path = tmp_path / "long.html"
    path.write_text(render(make_report(n_queries=8, n_systems=4, hostile="W" * 100)), "utf-8")
    for width in (320, 1400):
        browser.open(path, width=width)
        browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 1400])
def test_the_first_screen_has_question_verdict_and_chart(
    page: Path, browser: Browser, width: int
) -> None:
    browser.open(page, width=width)
    ends = browser.evaluate("""["h1", ".sentence", "#figure-1-t"].map(selector => {
      const element = document.querySelector(selector);
      return (element.closest("svg") ?? element).getBoundingClientRect().bottom; })""")
    assert all(0 < end <= 900 for end in ends)
    assert not browser.evaluate("document.querySelector('#verdict details').open")


def test_eight_screens_before_anything_is_opened(page: Path, browser: Browser) -> None:
    browser.open(page, width=1400)
    assert browser.evaluate("document.documentElement.scrollHeight") <= 8 * 900


def test_a_phone_shows_every_figure_and_number_without_scrolling_sideways(
    page: Path, browser: Browser
) -> None:
    browser.open(page, width=400)
    browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    found = browser.evaluate("""(() => {
      const shown = [...document.querySelectorAll(".data td, .data th, svg.figure")]
        .filter(e => e.checkVisibility());
      return [shown.length, shown.filter(e => e.getBoundingClientRect().right > 401).length,
        [...document.querySelectorAll(".data td[data-label='Corrected p']")]
          .filter(e => e.checkVisibility()).length];
    })()""")
    assert found[0] > 200
    assert found[1] == 0
    assert found[2] > 0


def test_tabs_choose_splits_and_measures_by_keys(page: Path, browser: Browser) -> None:
    browser.open(page)
    seen = """[...document.querySelectorAll('.study, .study .panel')]
      .filter(e => e.checkVisibility()).map(e => e.id).join(' ')"""
    assert browser.evaluate(seen) == "s1 s1-differences1"
    browser.evaluate("document.querySelector('#s1-differences1-tab').focus()")
    press = (
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    )
    browser.evaluate(f"(key => {press})('ArrowRight')")
    assert browser.evaluate(seen) == "s1 s1-differences2"
    assert browser.evaluate("document.activeElement.ariaSelected") == "true"
    browser.evaluate(f"(key => {{ {press}; {press} }})('ArrowLeft')")
    assert browser.evaluate(seen) == "s1 s1-differences4"
    browser.evaluate("document.querySelector('#s2-tab').click()")
    assert browser.evaluate(seen) == "s2 s2-differences1"


def test_links_open_what_they_lead_to(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.evaluate("document.querySelector('nav a[href=\"#s2\"]').click()")
    browser.evaluate("document.querySelector('#s2 a.quiet').click()")
    browser.settle()
    assert browser.evaluate("document.querySelector('#s2').checkVisibility()")
    assert browser.evaluate("document.querySelector('#definitions > details').open")
    assert browser.evaluate("document.querySelector('#definition-1').checkVisibility()")


def test_paper_shows_what_is_folded_away_and_names_it(page: Path, browser: Browser) -> None:
    browser.open(page, media="print")
    browser.evaluate("document.getElementById('theme').click()")  # dark
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    found = browser.evaluate("""(() => {
      const all = selector => [...document.querySelectorAll(selector)];
      const seen = e => e.checkVisibility() && e.getBoundingClientRect().height > 4;
      return {
        background: getComputedStyle(document.body).backgroundColor,
        controls: all("button, input, select, nav, .skip").filter(seen).length,
        summaries: all("summary:not(:has(h2))").filter(seen).length,
        folded: all("details > *:not(summary)").filter(e => !seen(e)).length,
        captions: all(".drill caption").filter(e => !seen(e)).length,
        headings: all("h2").filter(e => !seen(e)).length,
        moved: all(".drill caption").length,
        cut: all(".scroll").filter(e => getComputedStyle(e).overflowX !== "visible").length,
      };
    })()""")
    assert found.pop("background") == "rgb(255, 255, 255)"
    assert found.pop("moved") > 0
    assert found == dict.fromkeys(found, 0)
    # A4 between its margins is 688 units wide: nothing is cut off.
    browser.open(page, width=688, media="print", scheme="dark")
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    background = "getComputedStyle(document.body).backgroundColor"
    assert browser.evaluate(background) == "rgb(255, 255, 255)"
    assert browser.evaluate("document.documentElement.scrollWidth") <= 688


def test_the_page_opens_its_details_again_after_printing(page: Path, browser: Browser) -> None:
    browser.open(page)
    closed = "document.querySelectorAll('details:not([open])').length"
    before = browser.evaluate(closed)
    browser.evaluate("document.querySelector('details').open = true")
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate(closed) == 0
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(closed) == before - 1
