"""Small MediaWiki dumps made to order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dumps import dump_xml, page_xml


@pytest.fixture(scope="session")
def make_page() -> Callable[..., str]:
    return page_xml


@pytest.fixture(scope="session")
def make_dump() -> Callable[..., bytes]:
    return dump_xml
