"""axe-core finds nothing on a report, as it opens and with everything unfolded."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe import open_all, violations
from browser import BROWSER, Browser

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")


@pytest.mark.parametrize("unfolded", [False, True])
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_a_report_breaks_no_rule(
    page: Path, browser: Browser, width: int, scheme: str, unfolded: bool
) -> None:
    browser.open(page, width=width, scheme=scheme)
    if unfolded:
        open_all(browser)
    assert violations(browser) == []


def test_what_is_wrong_is_found(page: Path, browser: Browser) -> None:
    browser.open(page)
    browser.evaluate("""document.querySelector("main").insertAdjacentHTML(
      "beforeend", '<img src="data:,"><b style="color: #eee; background: #fff">pale</b>')""")
    assert [found.split()[0] for found in violations(browser)] == ["color-contrast", "image-alt"]
