"""Convert wiki markup to plain sections with their links.

:func:`parse_wikitext` takes the source text of one article and returns its sections as clean
running text, together with every article link and the place of its anchor in that text.

The order of the steps is MediaWiki's own: comments and extension tags (``<nowiki>``, ``<ref>``,
``<math>``...) first, so that nothing inside them counts as markup; then templates; then tags,
quotes and entities; then links, innermost first, so that a picture's caption may hold links; then
tables, whose cell separators can no longer be confused with a link's; then headings and lines.

While markup is removed, a link is carried as ``OPEN number BAR anchor CLOSE``: code points that
Unicode reserves for internal use around an index into the list of targets. They are removed at the
very end, which gives the exact offset of the anchor in the finished text.

Existing parsers are not used because none is fast enough, and both tested lose or leave more:
gensim's filter_wiki takes four times as long, mwparserfromhell 12 to 48 times. The table is in
tests/benchmarks/bench_wikitext.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ltr_features.sources.wiki_links import DEFAULT_SITE, Site, mark_links
from ltr_features.sources.wiki_markup import (
    BAR,
    CLOSE,
    HEADING,
    OPEN,
    RESERVED,
    RESERVED_BYTES,
    STAND_IN_BYTES,
    UNLITERAL,
    clean_inline,
    flatten_tables,
    has_bytes,
    strip_extensions,
    strip_templates,
)


class Link(NamedTuple):
    """A link to an article.

    Attributes:
        target: title of the article as written (a redirect is not followed), in its normal form:
            first letter upper-cased, underscores as spaces, no fragment.
        anchor: the words that carry the link, as they occur in the section's text.
        start: offset of ``anchor`` in the section's text, in code points.
        fragment: section of the target that the link points into, ``""`` for the whole article.
    """

    target: str
    anchor: str
    start: int
    fragment: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of an article between two headings.

    Attributes:
        heading: plain text of the heading; ``""`` for the lead.
        level: number of equal signs of the heading (2 for ``== ... ==``); 1 for the lead.
        text: running text without the heading: one line per paragraph, list item or table row,
            single spaces, no empty lines. Empty if only sub-sections follow.
        links: the links in ``text``, by offset.
    """

    heading: str
    level: int
    text: str
    links: tuple[Link, ...]


_ODD_SPACE = re.compile(
    "[\t\r\v\f\x1c-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_SPACES = re.compile(r"  +")
_LINE_START = re.compile(r"\n[\s*#:;]*")
_EMPTY_LINE = re.compile(r"\n[^\w\n]{1,3}(?=\n|$)")


def _clean_lines(text: str) -> str:
    """Reduce to single spaces; remove list markers, empty lines and lines of a few marks."""
    text = _ODD_SPACE.sub(" ", text)
    if "  " in text:
        text = _SPACES.sub(" ", text)
    text = text.replace(" \n", "\n")
    text = _LINE_START.sub("\n", "\n" + text)
    return _EMPTY_LINE.sub("", text).strip("\n ")


def parse_wikitext(source: str, site: Site = DEFAULT_SITE) -> tuple[Section, ...]:
    """Sections of an article in order; the first is the lead (its text may be empty).

    Templates, footnotes, formulas, categories and links to other languages are left out; list
    items, table cells, captions of framed pictures and galleries, and the text of other links are
    kept. Any input gives a result: what is not valid markup counts as text.
    """
    if has_bytes(RESERVED_BYTES, source):
        source = RESERVED.sub("", source)
    # With the newline, the first line starts like all others.
    text = clean_inline(strip_templates("\n" + strip_extensions(source)))
    text, targets = mark_links(text, site)
    text = flatten_tables(text)
    literal = has_bytes(STAND_IN_BYTES, text)
    sections = []
    for heading, level, body in _split_at_headings(text):
        plain_heading, _ = _take_links(_clean_lines(heading), targets, literal)
        plain, links = _take_links(_clean_lines(body), targets, literal)
        sections.append(Section(plain_heading, level, plain, links))
    return tuple(sections)


def _split_at_headings(text: str) -> Iterator[tuple[str, int, str]]:
    heading, level, position = "", 1, 0
    for match in HEADING.finditer(text):
        yield heading, level, text[position : match.start()]
        heading, level, position = match[2], min(len(match[1]), len(match[3])), match.end()
    yield heading, level, text[position:]


def _take_links(
    marked: str, targets: list[tuple[str, str]], literal: bool
) -> tuple[str, tuple[Link, ...]]:
    """Remove the markers from a text, and the stand-ins if it is ``literal``; returns the text and
    its links."""
    if literal:
        marked = marked.translate(UNLITERAL)
    plain, *rest = marked.split(OPEN)
    if not rest:
        return marked, ()
    pieces = [plain]
    links = []
    start = len(plain)
    for piece in rest:
        number, _, piece = piece.partition(BAR)
        anchor, _, plain = piece.partition(CLOSE)
        target, fragment = targets[int(number)]
        links.append(Link(target, anchor, start, fragment))
        pieces += (anchor, plain)
        start += len(anchor) + len(plain)
    return "".join(pieces), tuple(links)
