"""A collection as a folder that BEIR tools can read: JSON lines and tab-separated judgements."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.compression import text_lines
from letor.errors import InputError, reading
from letor.files import write_json
from ltr_base.slices import slices
from ltr_features.text.collection import Collection, Judgements, Links
from ltr_features.text.id_rows import Finder, finder, ids_of
from ltr_features.text.records import id_rows, json_lines, parse_object
from ltr_features.text.stored_texts import open_documents

#: BEIR calls the body ``text``; the other fields keep their names.
_BODY = "text"
_COPIED = 1 << 20  # bytes at a time
_ROWS = 2**18  # of judgements and links, written at a time


def save_collection(
    collection: Collection,
    folder: str | os.PathLike[str],
    *,
    lines: Iterable[Path] | None = None,
) -> None:
    """Write ``corpus.jsonl``, ``queries.jsonl``, ``qrels.tsv``, ``links.tsv``, ``collection.json``
    into an existing folder.

    Args:
        lines: files that :func:`write_documents` wrote, which together have all documents in
            order; None to write them now.

    Raises:
        InputError: an id has a tab or a line end, which tab-separated files cannot hold.
    """
    folder = Path(folder)
    for name in chain(collection.document_ids, collection.query_ids):
        if any(c in name for c in "\t\r\n"):
            raise InputError(f"id {name!r} has a tab or a line end; rename it")
    if lines is None:
        write_documents(folder / "corpus.jsonl", collection.document_ids, collection.fields)
    else:
        with open(folder / "corpus.jsonl", "wb") as file:
            for path in lines:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, file, _COPIED)
    ids = collection.document_ids
    sources, groups = collection.query_sources, collection.query_groups
    times = collection.query_times
    queries: list[dict[str, Any]] = [
        {"_id": query_id, "text": text}
        for query_id, text in zip(collection.query_ids, collection.query_texts, strict=True)
    ]
    for row, query in enumerate(queries):
        if sources is not None and sources[row] >= 0:
            query["source"] = ids[int(sources[row])]
        if groups is not None:
            query["group"] = groups[row]
        if times is not None:
            query["time"] = repr(float(times[row]))
    _write_lines(folder / "queries.jsonl", queries)
    judged = collection.judgements
    with open(folder / "qrels.tsv", "w", encoding="utf-8", newline="\n") as file:
        file.write("query-id\tcorpus-id\tscore\n")
        for rows in slices(len(judged.query), _ROWS):
            queries_of = ids_of(judged.query[rows], collection.query_ids)
            columns = queries_of, ids_of(judged.document[rows], ids), judged.grade[rows].tolist()
            file.writelines(f"{q}\t{d}\t{g}\n" for q, d, g in zip(*columns, strict=True))
    if collection.links is not None:
        with open(folder / "links.tsv", "w", encoding="utf-8", newline="\n") as file:
            links = collection.links
            for rows in slices(len(links.source), _ROWS):
                ends = ids_of(links.source[rows], ids), ids_of(links.target[rows], ids)
                file.writelines(f"{a}\t{b}\n" for a, b in zip(*ends, strict=True))
    header = {"name": collection.name, "description": dict(collection.description)}
    if collection.withheld is not None:
        header["withheld"] = collection.withheld
    write_json(folder / "collection.json", header)


def write_documents(path: Path, ids: Sequence[str], fields: Mapping[str, Sequence[str]]) -> None:
    """Write documents as the lines of ``corpus.jsonl``.

    Args:
        ids, fields: ids and texts of these documents, as in a collection.
    """
    names = [_BODY if name == "body" else name for name in fields]
    documents = (
        {"_id": document_id, **dict(zip(names, texts, strict=True))}
        for document_id, *texts in zip(ids, *fields.values(), strict=True)
    )
    _write_lines(path, documents)


def load_collection(folder: str | os.PathLike[str]) -> Collection:
    """Read a folder that :func:`save_collection` wrote.

    Raises:
        InputError: a file is missing, or one of its lines is invalid.
    """
    with reading(folder, "the collection is damaged: make it again"):
        return _load(Path(folder))


def _load(folder: Path) -> Collection:
    path, inner = folder / "collection.json", folder / "collection"
    if not path.exists() and (inner / "collection.json").exists():
        raise InputError(f"{folder} is a workspace; the folder of its collection is {inner}")
    text = "\n".join(line for _, line in text_lines(path))
    header = parse_object(path, 1, text, ("name", "description"))
    ids, fields = open_documents(folder) or _documents(folder / "corpus.jsonl")
    queries = _records(folder / "queries.jsonl", "_id", "text")
    of_document, of_query = finder(ids), finder([query["_id"] for query in queries])
    links = None
    if (folder / "links.tsv").exists():
        links = Links(*id_rows(folder / "links.tsv", [of_document, of_document]))
    judged = id_rows(folder / "qrels.tsv", [of_query, of_document, None], skip=1)
    return Collection(
        name=header["name"],
        document_ids=ids,
        fields=fields,
        query_ids=[query["_id"] for query in queries],
        query_texts=[query["text"] for query in queries],
        judgements=Judgements(*judged),
        links=links,
        query_sources=query_sources(queries, of_document),
        query_groups=query_groups(queries),
        query_times=np.array([float(q["time"]) for q in queries])
        if queries and "time" in queries[0]
        else None,
        withheld=header.get("withheld"),
        description=header["description"],
    )


def _documents(path: Path) -> tuple[Sequence[str], Mapping[str, Sequence[str]]]:
    """Read the ids of the documents, and their texts by field."""
    corpus = _records(path, "_id")
    if not corpus:
        raise InputError(f"{path}: no documents")
    names = dict.fromkeys(name for document in corpus for name in document if name != "_id")
    return [document["_id"] for document in corpus], {
        "body" if name == _BODY else name: [document.get(name, "") for document in corpus]
        for name in names
    }


def _records(path: Path, *needed: str) -> list[dict[str, str]]:
    """Read the objects of a file, all of whose values must be texts."""
    records = []
    for number, record in json_lines(path, needed):
        for key, value in record.items():
            if not isinstance(value, str):
                raise InputError(f"{path}, line {number}: {key} is {value!r}, expected text")
        records.append(record)
    return records


def query_sources(
    queries: Sequence[Mapping[str, Any]], of_document: Finder
) -> NDArray[np.int64] | None:
    """int64 [n]: the document that each query was made from, by the key ``source`` of
    ``queries.jsonl``, -1 where there is none; None if no query has one, or none is a document: the
    key then means something else.

    Raises:
        InputError: some are documents, but not all.
    """
    made = [row for row, query in enumerate(queries) if query.get("source") is not None]
    sources = np.full(len(queries), -1, dtype=np.int64)
    sources[made] = of_document([str(queries[row]["source"]) for row in made])
    if (sources < 0).all():
        return None
    for row in made:
        if sources[row] < 0:
            raise InputError(
                f"queries.jsonl: query {queries[row]['_id']!r} has the source "
                f"{queries[row]['source']!r}, which is no document's id, but those of others are; "
                "name the document that the query was made from, or leave the key out"
            )
    return sources


def query_groups(queries: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The group of each query by the key ``group`` of ``queries.jsonl``; None if no query has one.

    Raises:
        InputError: only some have one.
    """
    groups = [query.get("group") for query in queries]
    if all(group is None for group in groups):
        return None
    if None in groups:
        without = queries[groups.index(None)]["_id"]
        raise InputError(f"queries.jsonl: query {without!r} has no group, but others have one")
    return [str(group) for group in groups]


def _write_lines(path: Path, records: Sequence[Any] | Iterator[Any]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        encode = json.JSONEncoder(ensure_ascii=False).encode
        file.writelines(encode(record) + "\n" for record in records)
