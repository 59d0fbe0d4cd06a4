"""Small MediaWiki dumps made to order."""

from __future__ import annotations

import bz2
import gzip
import random
import re
from collections.abc import Iterable
from itertools import pairwise
from xml.sax.saxutils import escape, quoteattr

HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
  <siteinfo>
    <sitename>Test</sitename>
    <base>https://wiki.example.org/index.php/Hauptseite</base>
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


def topical_dump(n_articles: int = 40, n_sections: int = 5, seed: int = 0) -> bytes:
    """A dump whose articles have topics: sections of an article draw half of their words from the
    topic's own vocabulary, and neighbouring articles link to each other."""
    rng = random.Random(seed)
    common = [f"common{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
    pages = []
    for a in range(n_articles):
        topic = [f"topic{chr(97 + a // 26)}{chr(97 + a % 26)}word{chr(97 + i)}" for i in range(24)]
        parts = []
        for s in range(n_sections):
            words = rng.sample(topic, 12) + rng.sample(common, 40)
            rng.shuffle(words)
            heading = f"== Part {s} ==\n" if s else ""
            parts.append(f"{heading}[[Target {a} {s % 2}|link]] {' '.join(words)}.\n")
        parts[0] += f"See [[Article {(a + 1) % n_articles}|neighbour]].\n"
        pages.append(page_xml(f"Article {a}", "\n".join(parts), page_id=a + 1))
    return dump_xml(pages)


def linked_dump(n: int) -> bytes:
    """A dump of ``n`` articles of two sections, and as many redirects, that link to each other."""
    rng = random.Random(0)
    pages = []
    for i in range(n):
        links = " ".join(
            f"[[Thing {rng.randrange(n)}{rng.choice(['', '|some thing', '|thing'])}]] word{i % 7}"
            for _ in range(6)
        )
        text = f"thing {i} is {links}\n== More ==\n{links}"
        pages.append(page_xml(f"Thing {i}", text, page_id=i + 1))
        pages.append(page_xml(f"Name {i}", redirect=f"Thing {rng.randrange(n)}", page_id=n + i + 1))
    return dump_xml(pages)


def multistream(xml: bytes, pages: int = 8) -> bytes:
    """As Wikipedia's dumps: the header, some pages, some pages, ..., the end."""
    cuts = [found.start() for found in re.finditer(rb"  <page>", xml)][::pages]
    cuts = [0, *cuts, xml.index(b"</mediawiki>"), len(xml)]
    return b"".join(bz2.compress(xml[begin:end]) for begin, end in pairwise(cuts))


def in_pieces(xml: bytes) -> bytes:
    """As of programs that compress in parallel: streams of any bytes."""
    return b"".join(bz2.compress(xml[at : at + 1500]) for at in range(0, len(xml), 1500))


#: Ways to store a dump.
PACKED = {
    "xml": bytes,
    "bz2": bz2.compress,
    "gz": gzip.compress,
    "streams": multistream,
    "pieces": in_pieces,
}
