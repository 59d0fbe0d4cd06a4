"""TREC topics: classic elements, XML, and a query per line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path

from letor.compression import text_lines
from letor.errors import InputError

TOPIC_FIELDS = ("title", "desc", "narr")
#: Any element's start or end.
TAG = re.compile(r"<[^<>]*>")
#: A query per line: id, colon or tab, text. Ids with blanks need a tab, with colons a name in .tsv.
_LINE = re.compile(r"\s*([^\t:]+(?=\t)|[^\s:]+(?=\s*:))\s*[:\t]\s*(.*?)\s*$")
_TABS = re.compile(r"\s*([^\t]+)\t\s*(.*?)\s*$")


def read_topics(
    path: str | os.PathLike[str], fields: Sequence[str] = ("title",)
) -> list[tuple[str, str]]:
    """(id, query text) of each topic, in order; see :func:`ltr_features.sources.trec.read_trec`.

    Raises:
        InputError: an unknown field, a topic without number or text, or an id twice.
    """
    unknown = sorted(set(fields) - set(TOPIC_FIELDS))
    if unknown or not fields:
        raise InputError(
            f"topic_fields: {', '.join(unknown) or 'none'} given; use {', '.join(TOPIC_FIELDS)}"
        )
    path = Path(path)
    lines = list(text_lines(path))
    text = "\n".join(line for _, line in lines)
    if re.search(r"<top>", text, re.I):
        found = _sgml_topics(path, text, fields)
    elif re.search(r"<topic\b", text):
        found = _xml_topics(path, text, fields)
    else:
        found = _line_topics(path, lines)
    topics: dict[str, str] = {}
    for query, words in found:
        if query in topics:
            raise InputError(f"{path}: topic {query!r} occurs twice")
        if not words:
            raise InputError(f"{path}: topic {query!r} has no text in {', '.join(fields)}")
        topics[query] = words
    if not topics:
        raise InputError(f"{path}: no topics")
    return list(topics.items())


def _sgml_topics(path: Path, text: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Classic topics, whose elements have no end tags."""
    for ordinal, match in enumerate(re.finditer(r"<top>(.*?)</top>", text, re.S | re.I), start=1):
        parts = {
            tag.lower(): tidy(re.sub(r"</\w+>", " ", content))
            for tag, content in re.findall(
                r"<(num|title|desc|narr)\b[^>]*>(.*?)(?=<(?:num|title|desc|narr)\b|$)",
                match[1],
                re.S | re.I,
            )
        }
        number = re.sub(r"^Number:\s*", "", parts.get("num", ""), flags=re.I)
        if not number:
            raise InputError(f"{path}: topic {ordinal} has no <num>")
        labels = {"desc": r"^Description:\s*", "narr": r"^Narrative:\s*", "title": r"^Topic:\s*"}
        words = [re.sub(labels[f], "", parts.get(f, ""), flags=re.I) for f in fields]
        yield number, " ".join(w for w in words if w)


def _xml_topics(path: Path, text: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    elements = {"title": ("title", "query"), "desc": ("desc", "description", "question"),
                "narr": ("narr", "narrative")}  # fmt: skip
    for ordinal, match in enumerate(
        re.finditer(r"<topic\b([^>]*)>(.*?)</topic>", text, re.S), start=1
    ):
        number = re.search(r"\bnumber\s*=\s*[\"']\s*([^\"']+?)\s*[\"']", match[1])
        if number is None:
            raise InputError(f"{path}: topic {ordinal} has no attribute number")
        words = [part for f in fields for tag in elements[f] for part in inner(match[2], tag)]
        yield number[1], tidy(" ".join(words))


def _line_topics(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    form = _TABS if ".tsv" in path.suffixes else _LINE
    for number, line in lines:
        if not line.strip():
            continue
        match = form.match(line)
        if match is None:
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} is no topic; expected <top> elements, "
                "<topic> elements, or lines 'id:text' or id, tab, text"
            )
        yield match[1], match[2]


def inner(text: str, tag: str) -> Iterator[str]:
    """The texts of all elements of a name, without the tags inside them."""
    for match in re.finditer(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.S | re.I):
        yield TAG.sub(" ", match[1])


def tidy(text: str) -> str:
    """The text with character references resolved and single blanks."""
    return " ".join(unescape(text).split())
