"""The parts of a block of pages that a knowledge base needs, packed by the process that parsed it.

Texts go to the building process as a few long byte strings, not as objects: it only hashes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ltr_features.entities.words import title_lines, word_lines
from ltr_features.sources.wikipedia import Article, Redirect, document_sections

#: Greatest length of an abstract in code points.
ABSTRACT_LENGTH = 2000

_IN_BRACKETS = re.compile(r" \([^()]*\)$")
_DISAMBIGUATION = re.compile(
    r"\((?:disambiguation|Begriffsklärung|homonymie|desambiguación|desambiguação|disambigua|"
    r"doorverwijspagina|ujednoznacznienie|olika betydelser|rozcestník|anlam ayrımı|значения|"
    r"значення|曖昧さ回避|消歧[义義]|동음이의|توضيح|ابهام‌زدایی|פירושונים)\)$"
)
_POINTLESS = re.compile(r"[\W_\d]*|\W*\w\W*")


@dataclass(frozen=True, slots=True)
class Digest:
    """Articles and redirects in file order.

    Attributes:
        page_ids, titles, abstracts: one for each article; texts are UTF-8.
        words: a line of words per section, see :func:`word_lines`.
        n_links: the number of links of each article.
        targets, anchors: a line for each article (its title, and the title as a phrase), followed
            by one for each of its links.
        redirects, redirect_targets, redirect_names: a line per redirect: its title, its target's
            title, and its title as a phrase.
    """

    page_ids: list[int]
    titles: list[bytes]
    abstracts: list[bytes]
    words: bytes
    n_links: list[int]
    targets: bytes
    anchors: bytes
    redirects: bytes
    redirect_targets: bytes
    redirect_names: bytes


def digest(
    records: Iterable[Article | Redirect],
    held_out: frozenset[str] = frozenset(),
    withhold_query_sections: bool = False,
) -> Digest:
    """Pack records; articles whose title is in ``held_out`` contribute neither words nor links.

    Args:
        withhold_query_sections: keep only the sections that :func:`document_sections` keeps.
    """
    records = list(records)
    articles = [record for record in records if isinstance(record, Article)]
    if withhold_query_sections:
        articles = [document_sections(article) for article in articles]
    redirects = [record for record in records if isinstance(record, Redirect)]
    texts: list[str] = []
    n_links: list[int] = []
    targets: list[str] = []
    anchors: list[str] = []
    for article in articles:
        targets.append(article.title)
        anchors.append(_as_phrase(article.title))
        before = len(targets)
        if article.title not in held_out:
            texts += [section.text for section in article.sections]
            links = [link for section in article.sections for link in section.links]
            targets += [link.target for link in links]
            anchors += ["" if _POINTLESS.fullmatch(link.anchor) else link.anchor for link in links]
        n_links.append(len(targets) - before)
    leads = [article.sections[0].text if article.sections else "" for article in articles]
    return Digest(
        page_ids=[article.page_id for article in articles],
        titles=[article.title.encode("utf8", "surrogatepass") for article in articles],
        abstracts=[lead[:ABSTRACT_LENGTH].encode("utf8", "replace") for lead in leads],
        words=word_lines(texts),
        n_links=n_links,
        targets=title_lines(targets),
        anchors=word_lines(anchors),
        redirects=title_lines(redirect.title for redirect in redirects),
        redirect_targets=title_lines(redirect.target for redirect in redirects),
        redirect_names=word_lines(_as_phrase(redirect.title) for redirect in redirects),
    )


def _as_phrase(title: str) -> str:
    if _DISAMBIGUATION.search(title):
        return ""
    name = _IN_BRACKETS.sub("", title)
    return "" if _POINTLESS.fullmatch(name) else name
