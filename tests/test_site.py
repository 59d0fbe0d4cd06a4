"""The documentation is built without a warning, and its first page breaks no rule of axe-core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from axe import violations
from browser import BROWSER, Browser

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(package, reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_made(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert {path.parent.name for path in site.glob("*/index.html")} >= pages


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on this machine")
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (400, "dark")])
def test_its_first_page_breaks_no_rule(site: Path, tmp_path: Path, width: int, scheme: str) -> None:
    with Browser(tmp_path) as browser:
        browser.open(site / "index.html", width=width, scheme=scheme)
        browser.settle()
        assert violations(browser) == []
