"""A synthetic report for the tests of tables and HTML, and a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from browser import Browser
from example_report import example_report

from ltr_features.studies.page.html import render
from ltr_features.studies.page.report import Report


@pytest.fixture(scope="session")
def make_report() -> Callable[..., Report]:
    """Each report is made once; none can be changed."""
    return cache(example_report)


@pytest.fixture(scope="session")
def page(make_report: Callable[..., Report], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a report of 60 queries, as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(make_report(n_queries=60)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
