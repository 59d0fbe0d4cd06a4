"""axe-core, which finds what keeps people from using a page, in the browser of the tests."""

from __future__ import annotations

from functools import cache
from importlib import resources

import pytest
from browser import Browser

_FOUND = """axe.run().then(({passes, violations}) => [passes.length, violations.flatMap(
  rule => rule.nodes.map(node => `${rule.id} (${rule.help}): ${node.html.slice(0, 200)}`))])"""
# What is folded away, behind a tab, or made by a click.
_OPEN = """
document.querySelectorAll("details").forEach(one => { one.open = true; });
document.querySelectorAll(".panel").forEach(one => { one.hidden = false; });
document.querySelectorAll(".opener").forEach(one => one.click());
"""


def violations(browser: Browser) -> list[str]:
    """The broken rules on the page that is open, each with the element that breaks it."""
    browser.evaluate(_script())
    n_passes, found = browser.evaluate(_FOUND)
    assert n_passes > 10  # rules that found elements of theirs, and nothing wrong
    return list(found)


def open_all(browser: Browser) -> None:
    """Unfold all that a reader of a report can unfold."""
    browser.evaluate(_OPEN)
    browser.settle()


@cache
def _script() -> str:
    package = pytest.importorskip("axe_playwright_python", reason="the extra test is not installed")
    return (resources.files(package) / "axe.min.js").read_text(encoding="utf-8")
