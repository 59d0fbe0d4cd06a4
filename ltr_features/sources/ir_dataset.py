"""Collections of the ``ir_datasets`` catalogue, by id."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from letor.errors import InputError
from ltr_base.names import close_names
from ltr_features.parameters import check_choice
from ltr_features.sources.judging import JudgedPairs
from ltr_features.sources.trec_documents import web_fields
from ltr_features.text.collection import Collection
from ltr_features.text.stored_texts import DocumentTexts

#: Attributes of datasets' documents for each field, in order of preference.
_NAMES = {
    "title": ("title", "headline"),
    "body": ("text", "body", "abstract", "contents", "main_content", "paragraphs"),
    "url": ("url",),
    "keywords": ("keywords", "subjects"),
    "description": ("description", "summary"),
}


def read_ir_dataset(
    dataset: str,
    *,
    documents: Literal["all", "judged"] = "all",
    extra_documents: Iterable[str] = (),
    keep_unjudged: bool = False,
    on_unknown: str = "raise",
) -> Collection:
    """Read a dataset of ``ir_datasets``, which downloads it if that is permitted.

    Args:
        dataset: an id, for example ``"vaswani"`` or ``"gov2/trec-mq-2008"``. A dataset of your own
            gets one by ``ir_datasets.registry.register("mine", dataset)``.
        documents: "all", or "judged" for only the judged ones (and ``extra_documents``), looked up
            by id: for collections larger than memory whose candidates are the judged documents.
        extra_documents: further ids to look up with "judged"; unknown ids are an error.
        keep_unjudged: keep queries without judgements.
        on_unknown: "raise" or "skip" (and count) judgements of unknown documents.

    Raises:
        InputError: ``ir_datasets`` is not installed, no such dataset, one without documents,
            queries or judgements, documents without any text, or files that cannot be downloaded.
    """
    check_choice("documents", documents, ("all", "judged"))
    extra_documents = list(extra_documents)
    if extra_documents and documents == "all":
        raise InputError(
            'extra_documents: all documents are read; leave it out, or give documents="judged"'
        )
    source = _load(dataset)
    with _one_error(dataset):
        queries = {q.query_id: _query_text(dataset, q) for q in source.queries_iter()}
        triples = [(q.query_id, q.doc_id, q.relevance) for q in source.qrels_iter()]
        if documents == "all":
            found: Iterable[Any] = source.docs_iter()
        else:
            wanted = dict.fromkeys([*(document for _, document, _ in triples), *extra_documents])
            found = _looked_up(dataset, source, list(wanted), set(extra_documents))
        ids: list[str] = []
        texts = DocumentTexts()
        for document in found:
            ids.append(document.doc_id)
            texts.add(document_fields(document))
    if not (fields := texts.fields()):
        raise InputError(f"ir_datasets {dataset!r}: its {len(ids)} documents have no text")
    judged = JudgedPairs(queries, {document: row for row, document in enumerate(ids)}, on_unknown)
    for number, (query, document, grade) in enumerate(triples, start=1):
        judged.add(f"ir_datasets {dataset!r}", number, query, document, str(grade))
    query_ids = judged.asked(f"ir_datasets {dataset!r}", keep_unjudged=keep_unjudged)
    return judged.collection(
        dataset.replace("/", "-"), fields, query_ids, f"ir_datasets {dataset}",
        of_documents={"which documents": documents},
    )  # fmt: skip


def document_fields(document: Any) -> dict[str, str]:
    """Texts of a document by field: from the HTML of a web page, else from usual attributes, or
    from its default text if no attribute gives a body."""
    if hasattr(document, "body_content_type") or hasattr(document, "http_headers"):
        body = document.body
        html = body.decode("utf-8", errors="replace") if isinstance(body, bytes) else str(body)
        return {**web_fields(html), "url": getattr(document, "url", "")}
    fields = {}
    for field, names in _NAMES.items():
        for name in names:
            value = getattr(document, name, None)
            if value:
                fields[field] = value if isinstance(value, str) else " ".join(map(str, value))
                break
    if "body" not in fields and hasattr(document, "default_text"):
        fields["body"] = document.default_text()
    return fields


def _load(dataset: str) -> Any:
    try:
        import ir_datasets
    except ImportError:
        raise InputError(
            "ir_datasets is not installed; install this package with its extra: "
            "pip install 'ltr-features[ir-datasets]'"
        ) from None
    try:
        source = ir_datasets.load(dataset)
    except KeyError:
        near = close_names(dataset, ir_datasets.registry, n=3)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"ir_datasets has no dataset {dataset!r}{hint}") from None
    missing = [
        kind for kind in ("docs", "queries", "qrels") if not getattr(source, f"has_{kind}")()
    ]
    if missing:
        raise InputError(
            f"ir_datasets {dataset!r} has no {', '.join(missing)}; name a subset that does"
        )
    return source


@contextmanager
def _one_error(dataset: str) -> Iterator[None]:
    """Report problems with a dataset's files as one error, without a log line per attempt."""

    def is_news(record: logging.LogRecord) -> bool:
        return not record.getMessage().lower().startswith(("download error", "download failed"))

    logger = logging.getLogger("ir_datasets")
    logger.addFilter(is_news)
    try:
        yield
    except (RuntimeError, OSError) as error:
        reason = str(error.args[0] if error.args else error).splitlines()[0][:200]
        raise InputError(
            f"ir_datasets {dataset!r}: its files can be neither found nor downloaded ({reason}); "
            "is this machine connected? Else copy them from another one into ~/.ir_datasets"
        ) from error
    finally:
        logger.removeFilter(is_news)


def _query_text(dataset: str, query: Any) -> str:
    for name in ("text", "title", "query"):
        if isinstance(getattr(query, name, None), str):
            return str(getattr(query, name))
    if hasattr(query, "default_text"):
        return str(query.default_text())
    raise InputError(f"ir_datasets {dataset!r}: query {query.query_id!r} has no text field")


def _looked_up(dataset: str, source: Any, wanted: Sequence[str], needed: set[str]) -> Iterator[Any]:
    store = source.docs_store()
    found = store.get_many(wanted)
    lost = sorted(needed - set(found))
    if lost:
        raise InputError(
            f"ir_datasets {dataset!r} has no document {lost[0]!r} ({len(lost)} of {len(needed)} "
            "asked for are missing)"
        )
    return (found[document] for document in wanted if document in found)
