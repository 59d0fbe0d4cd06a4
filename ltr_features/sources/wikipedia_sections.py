"""A search task made from Wikipedia alone: find the other sections of an article by ten words.

The keyword protocol of Bai et al. (section 4.2), with sections in place of articles, so that a
small excerpt of a dump gives a task of useful size, and with graded relevance from links. The
rule, in full:

- A document is a section (or the lead) of an article with at least ``min_words`` words of running
  text; sections that only list sources (``APPARATUS``) are left out, and so are articles with
  fewer than two documents. Streams: ``title`` (article title and heading), ``body`` (text),
  ``anchor`` (anchor texts of links from other articles to this article, for its lead, or to this
  section), ``url``.
- A query is made from every document: ``words_per_query`` different words of its body, drawn
  uniformly without replacement from those that are letters only, no stop words, at least three
  letters long and that occur in at least ``min_document_frequency`` bodies (a bilinear model has
  no signal for a word that it never saw in training). Documents with fewer such words give none.
- Relevant to it are the other documents of the same article: grade 2 if they share a link target
  with the query's own document (after redirects), else grade 1. The query's own document is
  neither relevant nor a candidate.
- A query's group is its article, for splits that hold out whole articles.
- Links: from the section that holds a link to the first document of the article it points to.

Reference: Bai, Weston, Grangier, Collobert, Sadamasa, Qi, Chapelle, Weinberger: "Learning to rank
with (a lot of) word features", Information Retrieval 13(3), 2010.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.collection import Collection, Judgements, Links
from ltr_features.sources.wikipedia import Article, read_dump, resolve_redirect
from ltr_features.text import Analyzer

#: Headings (lower case) of sections that hold sources and lists of links, not running text.
APPARATUS = frozenset(
    {
        "references", "external links", "see also", "further reading", "notes", "bibliography",
        "footnotes", "sources", "citations", "notes and references", "works cited", "gallery",
        "references and notes",
    }
)  # fmt: skip


@dataclass(frozen=True)
class _Document:
    article: str
    heading: str
    text: str
    targets: frozenset[str]
    anchors: list[str]


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
        words_per_query, min_words, min_document_frequency: see the module.
        seed: of the words drawn; a document's draw depends on the seed and its position only.
        processes, on_progress: see ``read_dump``.

    Raises:
        InputError: a number out of range, not a readable dump, or a dump in which no query can be
            made.
    """
    for name, value, least in (
        ("words_per_query", words_per_query, 1),
        ("min_words", min_words, 1),
        ("min_document_frequency", min_document_frequency, 1),
        ("seed", seed, 0),
        ("processes", processes, 1),
    ):
        if value < least:
            raise InputError(f"{name} must be {least} or more, got {value}")
    articles, redirects = [], {}
    for record in read_dump(dump, processes=processes, on_progress=on_progress):
        if isinstance(record, Article):
            articles.append(record)
        else:
            redirects[record.title] = record.target
    analyzer = Analyzer(stopwords="english")
    documents = _documents(articles, redirects, analyzer, min_words)
    if not documents:
        raise InputError(
            f"{dump}: none of the {len(articles)} articles has two sections of {min_words} words; "
            "there is nothing to search for"
        )
    queries = _draw_queries(documents, analyzer, words_per_query, min_document_frequency, seed)
    sources = np.array([row for row, words in enumerate(queries) if words], dtype=np.int64)
    if not len(sources):
        raise InputError(
            f"{dump}: no section has {words_per_query} different words that occur in "
            f"{min_document_frequency} of the {len(documents)} sections; use a larger dump"
        )
    facts = {
        "articles read": len(articles),
        "redirects read": len(redirects),
        "articles used": len({d.article for d in documents}),
    }
    return _task(f"sections of {Path(dump).name}", documents, queries, sources, facts)


def _task(
    name: str,
    documents: Sequence[_Document],
    queries: Sequence[Sequence[str]],
    sources: NDArray[np.int64],
    facts: dict[str, Any],
) -> Collection:
    """The collection of the documents and of the queries made from ``sources``."""
    judgements = _judge(documents, sources)
    used = [queries[row] for row in sources.tolist()]
    return Collection(
        name=name,
        document_ids=_document_ids(documents),
        streams={
            "body": [d.text for d in documents],
            "anchor": ["\n".join(d.anchors) for d in documents],
            "title": [f"{d.article}: {d.heading}" if d.heading else d.article for d in documents],
            "url": [_url(d) for d in documents],
        },
        query_ids=[f"q{row + 1}" for row in sources.tolist()],
        query_texts=[" ".join(words) for words in used],
        judgements=judgements,
        links=_links(documents),
        query_sources=sources,
        query_groups=[documents[row].article for row in sources.tolist()],
        description={
            **facts,
            "documents": len(documents),
            "queries": len(sources),
            "judged pairs of grade 1": int((judgements.grade == 1).sum()),
            "judged pairs of grade 2": int((judgements.grade == 2).sum()),
            "query words found in other queries": _share_of_repeated(used),
        },
    )


def _documents(
    articles: Sequence[Article], redirects: dict[str, str], analyzer: Analyzer, min_words: int
) -> list[_Document]:
    """Sections that are long enough, of articles with at least two of them, in file order."""
    anchors = _anchors(articles, redirects)
    documents = []
    for article in articles:
        kept = [
            section
            for section in article.sections
            if section.heading.lower() not in APPARATUS
            and len(analyzer.tokens(section.text)) >= min_words
        ]
        if len(kept) >= 2:
            documents += [
                _Document(
                    article.title,
                    section.heading,
                    section.text,
                    frozenset(resolve_redirect(link.target, redirects) for link in section.links),
                    anchors[article.title, section.heading],
                )
                for section in kept
            ]
    return documents


def _anchors(
    articles: Sequence[Article], redirects: dict[str, str]
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
    documents: Sequence[_Document],
    analyzer: Analyzer,
    words_per_query: int,
    min_document_frequency: int,
    seed: int,
) -> list[list[str]]:
    """For each document its query's words, or [] where too few words qualify."""
    bodies = [
        {w for w in analyzer.tokens(d.text) if len(w) >= 3 and w.isalpha()} for d in documents
    ]
    frequency: dict[str, int] = defaultdict(int)
    for body in bodies:
        for word in body:
            frequency[word] += 1
    queries: list[list[str]] = []
    for row, body in enumerate(bodies):
        eligible = sorted(w for w in body if frequency[w] >= min_document_frequency)
        if len(eligible) < words_per_query:
            queries.append([])
            continue
        rng = np.random.default_rng([seed, row])
        queries.append(rng.choice(eligible, size=words_per_query, replace=False).tolist())
    return queries


def _judge(documents: Sequence[_Document], sources: NDArray[np.int64]) -> Judgements:
    """Judgements of the queries made from ``sources``."""
    members: dict[str, list[int]] = defaultdict(list)
    for row, document in enumerate(documents):
        members[document.article].append(row)
    query, relevant, grade = [], [], []
    for q, source in enumerate(sources.tolist()):
        for row in members[documents[source].article]:
            if row != source:
                query.append(q)
                relevant.append(row)
                grade.append(2 if documents[source].targets & documents[row].targets else 1)
    return Judgements(*(np.array(column, dtype=np.int64) for column in (query, relevant, grade)))


def _links(documents: Sequence[_Document]) -> Links:
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
    count: dict[str, int] = defaultdict(int)
    for words in queries:
        for word in words:
            count[word] += 1
    total = sum(count.values())
    return sum(n for n in count.values() if n > 1) / total


def _document_ids(documents: Sequence[_Document]) -> list[str]:
    """Distinct ids that LETOR comments can hold: no blanks and no number signs."""
    taken: dict[str, None] = {}
    for document in documents:
        name = f"{document.article}~{document.heading}" if document.heading else document.article
        name = "_".join(name.replace("#", "%23").split())
        candidates = (name if n == 1 else f"{name}~{n}" for n in count(1))
        taken[next(c for c in candidates if c not in taken)] = None
    return list(taken)


def _url(document: _Document) -> str:
    url = "https://en.wikipedia.org/wiki/" + quote(document.article.replace(" ", "_"), safe="()',")
    return url + ("#" + quote(document.heading.replace(" ", "_")) if document.heading else "")
