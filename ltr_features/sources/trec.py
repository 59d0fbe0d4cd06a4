"""TREC collections: documents in TRECTEXT or TRECWEB, topics, and qrels."""

from __future__ import annotations

from collections.abc import Sequence

from letor.compression import check_encoding
from letor.errors import InputError
from ltr_features.sources.files import judgement_rows, read_queries
from ltr_features.sources.input_files import Paths, each, files_of
from ltr_features.sources.judging import JudgedPairs
from ltr_features.sources.trec_documents import trec_documents
from ltr_features.text.collection import Collection
from ltr_features.text.stored_texts import DocumentTexts


def read_trec(
    documents: Paths,
    topics: Paths,
    qrels: Paths,
    *,
    topic_fields: Sequence[str] = ("title",),
    encoding: str = "utf-8",
    keep_unjudged: bool = False,
    on_unknown: str = "raise",
    name: str = "trec",
) -> Collection:
    """Read a TREC collection; every file may be compressed (.gz, .bz2, .zst).

    A document with a ``DOCHDR`` is a web page: its first header line gives the field ``url``, its
    HTML the fields ``title``, ``body``, ``keywords`` and ``description`` (from ``meta`` elements);
    scripts and styles are not text. A document's number is its DOCNO, or the attribute ``id`` of
    its start tag (AQUAINT-2, Gigaword). In other documents the elements TITLE, HEADLINE, HEAD, HL,
    TI and TTL are the title, and the elements LP, LEADPARA and TEXT the body, or without any TEXT,
    everything else but the number.

    Args:
        documents: one or several files, folders or patterns, see :func:`files_of`.
        topics: TREC topics (``<top>`` elements), topics in XML (``<topic number="..">``), a
            query per line (an id, then a colon or tab, then the text), or a table of queries; one
            or several files, of several years, say.
        qrels: lines ``qid iteration docno grade``, or a table of judgements; one or several files.
        topic_fields: parts of a topic that make up the query: "title", "desc", "narr".
        encoding: encoding of files that are not UTF-8; old collections are often "latin-1".
        keep_unjudged: keep topics without judgements; by default they are left out and counted.
        on_unknown: "raise" or "skip" (and count) judgements of unknown documents or topics.
        name: name of the collection.

    Raises:
        InputError: a file that is missing or malformed (file and line or document are named), a
            duplicate document number or topic, or a pair judged twice with different grades.
    """
    check_encoding(encoding)
    queries: dict[str, str] = {}
    for path in files_of(topics):
        read = read_queries(path, fields=topic_fields, encoding=encoding)
        if twice := [query for query in read if query in queries]:
            raise InputError(f"{path}: topic {twice[0]!r} is in an earlier file, too")
        queries |= read
    rows: dict[str, int] = {}
    texts = DocumentTexts()
    for path in files_of(documents):
        for document in trec_documents(path, encoding):
            if document.docno in rows:
                raise InputError(f"{path}: document number {document.docno!r} occurs twice")
            rows[document.docno] = len(rows)
            texts.add(document.fields)
    if not rows:
        raise InputError(f"{documents}: no documents (<DOC> ... </DOC>)")
    if not (fields := texts.fields()):
        raise InputError(f"{documents}: its {len(rows)} documents have no text")
    judged = JudgedPairs(queries, rows, on_unknown)
    for path in files_of(qrels):
        judged.add_rows(path, judgement_rows(path, encoding=encoding))
    query_ids = judged.asked(", ".join(map(str, each(qrels))), keep_unjudged=keep_unjudged)
    further = {"topic fields": ", ".join(topic_fields)}
    return judged.collection(name, fields, query_ids, "TREC files", further=further)
