"""Small MediaWiki dumps made to order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from xml.sax.saxutils import escape, quoteattr

import pytest

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
  <siteinfo>
    <sitename>Test</sitename>
    <case>{case}</case>
    <namespaces>
      <namespace key="-2" case="first-letter">Medium</namespace>
      <namespace key="0" case="first-letter" />
      <namespace key="1" case="first-letter">Diskussion</namespace>
      <namespace key="6" case="first-letter">Datei</namespace>
      <namespace key="14" case="first-letter">Kategorie</namespace>
    </namespaces>
  </siteinfo>
"""


def page_xml(
    title: str,
    text: str = "",
    *,
    page_id: int = 1,
    namespace: int = 0,
    redirect: str | None = None,
    model: str = "wikitext",
) -> str:
    """One ``<page>`` as MediaWiki writes it."""
    pointer = "" if redirect is None else f"    <redirect title={quoteattr(redirect)} />\n"
    return f"""  <page>
    <title>{escape(title)}</title>
    <ns>{namespace}</ns>
    <id>{page_id}</id>
{pointer}    <revision>
      <id>{page_id + 1000}</id>
      <comment>[[not a link]] &lt;page&gt; == no heading ==</comment>
      <model>{model}</model>
      <text bytes="{len(text.encode())}" xml:space="preserve">{escape(text)}</text>
    </revision>
  </page>
"""


def dump_xml(pages: Iterable[str], *, case: str = "first-letter") -> bytes:
    """A whole dump around the given pages."""
    return (HEADER.format(case=case) + "".join(pages) + "</mediawiki>\n").encode()


@pytest.fixture(scope="session")
def make_page() -> Callable[..., str]:
    return page_xml


@pytest.fixture(scope="session")
def make_dump() -> Callable[..., bytes]:
    return dump_xml
