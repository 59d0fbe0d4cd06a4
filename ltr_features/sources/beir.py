"""BEIR folders: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/*.tsv``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from letor.errors import InputError
from ltr_features.sources.files import judgement_rows, read_queries
from ltr_features.sources.judging import JudgedPairs
from ltr_features.text.collection import FIELDS, Collection, Links
from ltr_features.text.collection_files import query_groups, query_sources
from ltr_features.text.id_rows import finder
from ltr_features.text.records import find_file, id_rows, json_lines, text_value
from ltr_features.text.stored_texts import DocumentTexts

#: The field of each key of a document.
_FIELDS = {"text" if field == "body" else field: field for field in FIELDS}


def read_beir(
    folder: str | os.PathLike[str],
    *,
    splits: Sequence[str] | None = None,
    links: str | None = None,
    keep_unjudged: bool = False,
    on_unknown: str = "raise",
    name: str | None = None,
) -> Collection:
    """Read a BEIR folder; every file may be compressed (.gz, .bz2, .zst).

    Documents' ``text`` becomes the field ``body``; ``title`` and other keys that are field names
    become those fields. Other keys are left out; the description lists them. Queries may have a
    ``source``, the id of the document that the query was made from, and a ``group``, see
    :class:`Collection`.

    Args:
        splits: names of files in ``qrels`` (``["train", "dev", "test"]``); None for all of them.
        links: name of a tab-separated file of (source, target) document ids in the folder.
        keep_unjudged: keep queries without judgements; by default they are left out, because no
            measure can be computed for them (the description counts them).
        on_unknown: "raise" or "skip" (and count) judgements of documents or queries that the
            folder does not have.
        name: name of the collection; the folder's name by default.

    Raises:
        InputError: a missing file or a malformed line (file and line are named), a duplicate id,
            or a pair judged twice with different grades.
    """
    folder = Path(folder)
    corpus, queries = find_file(folder, "corpus.jsonl"), find_file(folder, "queries.jsonl")
    qrels = _qrels(folder, splits)
    document_row, fields, other_keys = read_documents(corpus)
    texts = read_queries(queries, columns={"id": "_id", "text": "text"})
    judged = JudgedPairs(texts, document_row, on_unknown)
    for path in qrels:
        judged.add_rows(path, judgement_rows(path))
    query_ids = judged.asked(folder, keep_unjudged=keep_unjudged)
    records = {
        text_value(queries, number, record, "_id"): record
        for number, record in json_lines(queries, ("_id",))
    }
    asked = [records[query] for query in query_ids]
    sources = query_sources(asked, finder(document_row))
    unknown = sources is None and any(record.get("source") is not None for record in asked)
    linked = None
    if links is not None:
        linked = Links(*id_rows(find_file(folder, links), [finder(document_row)] * 2))
    facts: dict[str, Any] = {} if linked is None else {"links": len(linked.source)}
    facts |= {"judgement files": ", ".join(path.name for path in qrels)}
    facts |= {"key of queries left out": "source, which names no document"} if unknown else {}
    return judged.collection(
        name or folder.resolve().name, fields, query_ids, "BEIR folder",
        further=facts | _left_out(other_keys),
        links=linked, query_sources=sources, query_groups=query_groups(asked),
    )  # fmt: skip


def _left_out(keys: Sequence[str]) -> dict[str, Any]:
    """The part of a collection's description on keys of documents that are no fields."""
    if not keys:
        return {}
    named = ", ".join(keys)
    remark = (
        f"documents have keys that are no fields and were left out: {named}; to have one read, "
        f"give it the name of a field ({', '.join(_FIELDS)})"
    )
    return {"keys of documents left out": named, "remarks": [remark]}


def _qrels(folder: Path, splits: Sequence[str] | None) -> list[Path]:
    if splits is not None:
        if not splits:
            raise InputError("splits is empty; name at least one file of the folder qrels")
        return [find_file(folder / "qrels", f"{split}.tsv") for split in splits]
    found = sorted((folder / "qrels").glob("*.tsv*"))
    if not found:
        raise InputError(f"{folder / 'qrels'}: no judgements (*.tsv)")
    return found


def read_documents(path: Path) -> tuple[dict[str, int], dict[str, Sequence[str]], list[str]]:
    """The documents' rows by id, their fields, and the names of keys that are not fields and not
    empty everywhere (as ``metadata`` often is), of a file like ``corpus.jsonl``; see
    :func:`read_beir` for errors."""
    rows: dict[str, int] = {}
    texts = DocumentTexts(["body"])
    other: dict[str, None] = {}
    for number, record in json_lines(path, ("_id",)):
        document = text_value(path, number, record, "_id")
        if document in rows:
            raise InputError(f"{path}, line {number}: document id {document!r} occurs twice")
        rows[document] = len(rows)
        other |= dict.fromkeys(k for k, v in record.items() if v and k not in (*_FIELDS, "_id"))
        texts.add(
            {
                field: text_value(path, number, record, key)
                for key, field in _FIELDS.items()
                if key in record
            }
        )
    if not rows:
        raise InputError(f"{path}: no documents")
    return rows, texts.fields(), list(other)
