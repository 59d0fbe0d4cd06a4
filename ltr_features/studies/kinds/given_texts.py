"""Texts and groups of queries and titles of documents from files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from letor.errors import InputError
from ltr_features.studies.statistics.paired_tests import group_labels

TITLE = 90
"""Characters of a title that a table shows."""


def read_query_texts(path: Path) -> dict[str, str]:
    """Text by query id: JSON lines with ``_id`` and ``text`` (.jsonl), or id, tab, text.

    Raises:
        InputError: the file cannot be read, or a line is neither.
    """
    if path.suffix in (".jsonl", ".json"):
        return {i: str(r["text"]) for i, r in _records(path, "text")}
    texts = {}
    for number, line in _lines(path):
        query, tab, text = line.partition("\t")
        if not tab:
            raise InputError(
                f"{path}, line {number}: expected id, tab, text; JSON lines need a name in .jsonl"
            )
        texts[query] = text
    return texts


def read_query_groups(path: Path, queries: Iterable[str] = ()) -> dict[str, str]:
    """Group by query id: id, tab, group. Queries of one group (made from one article, say, or asked
    by one person) are not independent and are tested together.

    Args:
        queries: that must have a group.

    Raises:
        InputError: the file cannot be read, a line is something else, or a query has two groups or
            none.
    """
    groups: dict[str, str] = {}
    for number, line in _lines(path):
        query, _, group = (part.strip() for part in line.partition("\t"))
        if not query or not group:
            raise InputError(f"{path}, line {number}: expected query id, tab, group")
        if groups.setdefault(query, group) != group:
            raise InputError(
                f"{path}, line {number}: query {query!r} is of group {group!r} here, of "
                f"{groups[query]!r} before"
            )
    try:
        group_labels(queries, groups)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return groups


def read_titles(path: Path, wanted: Collection[str]) -> dict[str, str]:
    """Title, or the beginning of the text, of the wanted documents: JSON lines with ``_id``,
    ``title`` and ``text``, of which one of the last two may be missing.

    Raises:
        InputError: the file cannot be read, or a line is not such a record.
    """
    return {i: _shown(r) for i, r in _records(path, "title", "text") if i in wanted}


def not_found(path: Path, option: str, known: Collection[str], wanted: Collection[str]) -> int:
    """How many of the wanted ids a file does not know.

    Raises:
        InputError: all of them.
    """
    missing = len(set(wanted).difference(known))
    if missing and missing == len(set(wanted)):
        raise InputError(
            f"{option} {path}: none of its ids is among those that are compared (the first is "
            f"{next(iter(wanted))!r}); do both use the same ids?"
        )
    return missing


def _shown(record: Mapping[str, Any]) -> str:
    texts = (" ".join(str(record.get(key) or "")[:400].split()) for key in ("title", "text"))
    return next((text for text in texts if text), "")[:TITLE]


def _records(path: Path, *keys: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and record of each line; a record has one of the keys or more."""
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if (
            not isinstance(record, dict)
            or "_id" not in record
            or not any(k in record for k in keys)
        ):
            raise InputError(
                f"{path}, line {number}: expected a JSON object with _id and {' or '.join(keys)}"
            )
        yield str(record["_id"]), record


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
