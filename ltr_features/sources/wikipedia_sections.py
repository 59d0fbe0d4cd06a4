"""A search task made from Wikipedia alone: find the other sections of an article by ten words.

The keyword protocol of Bai et al. (section 4.2), with sections in place of articles, so that a
small excerpt of a dump gives a task of useful size, with graded relevance from links, and with
queries drawn from texts that are not in the collection. The rule, in full:

- The lead of an article and every second section after it are for documents, the sections between
  them for queries (:func:`ltr_features.sources.wikipedia.document_sections`). The latter are used
  only for the queries and judgements: documents, links and anchors are as if the dump did not have
  them, and a knowledge base must be made without them, too (``Collection.withheld``).
- A document is a section with at least ``min_words`` words of running text; sections that only
  list sources (``APPARATUS``) are left out. Fields: ``title`` (article title and heading),
  ``body`` (text), ``anchor`` (anchor texts of links from other articles' document sections to
  this section, and for an article's lead those to the article or to none of its document
  sections), ``url`` (by the wiki's address in the dump).
- A query is made from every section for queries that is long enough, by the same rule, and whose
  article has a document: ``words_per_query`` different words of its text, drawn uniformly without
  replacement from those that consist of at least three letters, are not stop words, and occur in
  at least ``min_document_frequency`` bodies of documents (a bilinear model has no signal for a word
  that it never saw in training). Sections with fewer such words give no query.
- The documents of the query's article are relevant: grade 2 if they share a link target with the
  query's section (after redirects), else grade 1.
- A query's group is its article, for splits that hold out whole articles.
- Links: from the document that holds a link to the first document of the article it points to.

Reference: Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Chapelle, Weinberger: "Learning to rank
with (a lot of) word features", Information Retrieval 13(3), 2010.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from letor.errors import InputError
from ltr_features.parameters import check_range
from ltr_features.sources.dump_stream import DumpStream
from ltr_features.sources.wikipedia import (
    WITHHELD,
    Article,
    document_sections,
    query_sections,
    read_dump,
    resolve_redirect,
)
from ltr_features.sources.wikitext import Section
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection, Judgements, Links

#: Headings (lower case) of sections that hold sources and lists of links, not running text.
APPARATUS = frozenset(
    {
        "references", "external links", "see also", "further reading", "notes", "bibliography",
        "footnotes", "sources", "citations", "notes and references", "works cited", "gallery",
        "references and notes",
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Text:
    """A section that is long enough; ``targets`` are the articles that its links point to."""

    article: str
    heading: str
    text: str
    targets: frozenset[str]


def section_collection(
    dump: str | os.PathLike[str],
    *,
    words_per_query: int = 10,
    min_words: int = 40,
    min_document_frequency: int = 5,
    seed: int = 0,
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Collection:
    """Read a dump and make the task described above.

    Args:
        dump: a MediaWiki XML dump, see :func:`ltr_features.sources.wikipedia.read_dump`.
        words_per_query, min_words, min_document_frequency: see the module's docstring.
        seed: seed for drawing words; a section's draw depends only on the seed and its position.
        processes, on_progress: see ``read_dump``.

    Raises:
        InputError: a number out of range, not a readable dump, or a dump in which no query can be
            made.
    """
    check_range("words_per_query", words_per_query, 1)
    check_range("min_words", min_words, 1)
    check_range("min_document_frequency", min_document_frequency, 1)
    check_range("seed", seed, 0)
    with closing(DumpStream(dump)) as stream:
        address = stream.site.address
    records = list(read_dump(dump, processes=processes, on_progress=on_progress))
    articles = [record for record in records if isinstance(record, Article)]
    redirects = {r.title: r.target for r in records if not isinstance(r, Article)}
    analyzer = Analyzer(stopwords="english")
    kept = [document_sections(article) for article in articles]
    documents = _texts([(a.title, a.sections) for a in kept], redirects, analyzer, min_words)
    with_documents = {document.article for document in documents}
    asking = [(a.title, query_sections(a)) for a in articles if a.title in with_documents]
    sections = _texts(asking, redirects, analyzer, min_words)
    if not sections:
        raise InputError(
            f"{dump}: none of the {len(articles)} articles has a section of {min_words} words for "
            "a document (its first, third, ...) and another for a query (its second, fourth, ...)"
        )
    eligible = _frequent_words(documents, analyzer, min_document_frequency)
    queries = _draw_queries(sections, eligible, analyzer, words_per_query, seed)
    if not queries:
        raise InputError(
            f"{dump}: none of the {len(sections)} sections that queries are drawn from has "
            f"{words_per_query} different words that occur in {min_document_frequency} of the "
            f"{len(documents)} documents; use a larger dump"
        )
    facts = {
        "articles read": len(articles),
        "redirects read": len(redirects),
        "articles used": len(with_documents),
        "articles with queries": len({section.article for section, _ in queries}),
    }
    anchors = _anchors(kept, redirects)
    return _task(Path(dump).name, address, documents, anchors, queries, facts)


def _task(
    dump: str,
    address: str,
    documents: Sequence[_Text],
    anchors: dict[tuple[str, str], list[str]],
    queries: Sequence[tuple[_Text, Sequence[str]]],
    facts: dict[str, Any],
) -> Collection:
    """The collection of the documents and queries; a query is a section and words drawn from it."""
    judgements = _judge(documents, [section for section, _ in queries])
    used = [words for _, words in queries]
    return Collection(
        name=f"sections of {dump}",
        document_ids=_document_ids(documents),
        fields={
            "body": [d.text for d in documents],
            # Links to a heading that an article has twice lead to the first.
            "anchor": ["\n".join(anchors.pop((d.article, d.heading), ())) for d in documents],
            "title": [f"{d.article}: {d.heading}" if d.heading else d.article for d in documents],
            "url": [_url(d, address) for d in documents],
        },
        query_ids=[f"q{number}" for number in range(1, len(queries) + 1)],
        query_texts=[" ".join(words) for words in used],
        judgements=judgements,
        links=_links(documents),
        query_groups=[section.article for section, _ in queries],
        withheld=WITHHELD,
        description={
            **facts,
            "documents": len(documents),
            "queries": len(queries),
            "judged pairs of grade 1": int((judgements.grade == 1).sum()),
            "judged pairs of grade 2": int((judgements.grade == 2).sum()),
            "query words found in other queries": _share_of_repeated(used),
        },
    )


def _texts(
    articles: Iterable[tuple[str, Sequence[Section]]],
    redirects: Mapping[str, str],
    analyzer: Analyzer,
    min_words: int,
) -> list[_Text]:
    """The sections of articles (title, sections) that are long enough, in file order."""
    return [
        _Text(
            title,
            section.heading,
            section.text,
            frozenset(resolve_redirect(link.target, redirects) for link in section.links),
        )
        for title, sections in articles
        for section in sections
        if section.heading.lower() not in APPARATUS
        and len(analyzer.tokens(section.text)) >= min_words
    ]


def _anchors(
    articles: Sequence[Article], redirects: Mapping[str, str]
) -> dict[tuple[str, str], list[str]]:
    """Anchor texts by (article, heading); heading "" for links to the article as a whole."""
    anchors: dict[tuple[str, str], list[str]] = defaultdict(list)
    headings = {(a.title, section.heading) for a in articles for section in a.sections}
    for article in articles:
        for section in article.sections:
            for link in section.links:
                target = resolve_redirect(link.target, redirects)
                if target != article.title:
                    at = (target, link.fragment if (target, link.fragment) in headings else "")
                    anchors[at].append(link.anchor)
    return anchors


def _draw_queries(
    sections: Sequence[_Text],
    eligible: set[str],
    analyzer: Analyzer,
    words_per_query: int,
    seed: int,
) -> list[tuple[_Text, list[str]]]:
    """Sections with the query words drawn from each; sections with too few words are left out."""
    queries = []
    for row, section in enumerate(sections):
        words = sorted(_words(section, analyzer) & eligible)
        if len(words) >= words_per_query:
            rng = np.random.default_rng([seed, row])
            drawn: list[str] = rng.choice(words, size=words_per_query, replace=False).tolist()
            queries.append((section, drawn))
    return queries


def _frequent_words(documents: Sequence[_Text], analyzer: Analyzer, least: int) -> set[str]:
    """Words that a query may contain and that occur in at least ``least`` documents."""
    frequency = Counter(word for document in documents for word in _words(document, analyzer))
    return {word for word, n in frequency.items() if n >= least}


def _words(text: _Text, analyzer: Analyzer) -> set[str]:
    """Words of a text that a query may contain."""
    return {w for w in analyzer.tokens(text.text) if len(w) >= 3 and w.isalpha()}


def _judge(documents: Sequence[_Text], queries: Sequence[_Text]) -> Judgements:
    """Judgements of the queries drawn from the given sections."""
    members: dict[str, list[int]] = defaultdict(list)
    for row, document in enumerate(documents):
        members[document.article].append(row)
    judged = [
        (q, row, 2 if section.targets & documents[row].targets else 1)
        for q, section in enumerate(queries)
        for row in members[section.article]
    ]
    return Judgements(*np.array(judged, dtype=np.int64).T.copy())


def _links(documents: Sequence[_Text]) -> Links:
    """Links from sections to the first document of another article."""
    first: dict[str, int] = {}
    for row, document in enumerate(documents):
        first.setdefault(document.article, row)
    pairs = [
        (row, first[target])
        for row, document in enumerate(documents)
        for target in sorted(document.targets)
        if target in first and target != document.article
    ]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Links(source.copy(), target.copy())


def _share_of_repeated(queries: Sequence[Sequence[str]]) -> float:
    """Share of all query words (tokens) that occur in at least one other query."""
    count = Counter(chain.from_iterable(queries))
    return sum(n for n in count.values() if n > 1) / count.total()


def _document_ids(documents: Sequence[_Text]) -> list[str]:
    """Distinct ids that LETOR comments can hold, without spaces and number signs."""
    taken: dict[str, None] = {}
    for document in documents:
        name = f"{document.article}~{document.heading}" if document.heading else document.article
        name = "_".join(name.replace("#", "%23").split())
        candidates = (name if n == 1 else f"{name}~{n}" for n in count(1))
        taken[next(c for c in candidates if c not in taken)] = None
    return list(taken)


def _url(document: _Text, address: str) -> str:
    url = address + quote(document.article.replace(" ", "_"), safe="()',")
    return url + ("#" + quote(document.heading.replace(" ", "_")) if document.heading else "")
