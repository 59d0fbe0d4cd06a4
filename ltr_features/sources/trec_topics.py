"""Read TREC topics: classic elements, XML, or a query per line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple

from letor.compression import text_lines
from letor.errors import InputError
from ltr_features.sources.input_files import suffixes

TOPIC_FIELDS = ("title", "desc", "narr")
#: Start or end tag of any element, or a comment; p < 0.05 and n > 3 are none.
TAG = re.compile(r"</?[a-z][^<>]*>|<[!?][^<>]*>", re.I)
#: Elements of classic topics; each ends where the next one starts.
_PARTS = "num|title|query|desc|narr|head|dom|smry|con|fac|nat|time|def|querytime|querytweettime"
_PART = re.compile(rf"<({_PARTS})\b[^<>]*>(.*?)(?=<(?:{_PARTS})\b|\Z)", re.S | re.I)
#: A reference to a character that does not exist, whose number may be too long to parse.
_NO_CHARACTER = re.compile(r"&#(?:0*[1-9][0-9]{7,}|[xX]0*[1-9a-fA-F][0-9a-fA-F]{6,});?")


def read_topics(
    path: str | os.PathLike[str], fields: Sequence[str] = ("title",), encoding: str = "utf-8"
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
    text = "\n".join(line for _, line in text_lines(path, encoding))
    if re.search(r"<top>", text, re.I):
        found = _sgml_topics(path, text, fields)
    elif re.search(r"<topic\b", text):
        found = _xml_topics(path, text, fields)
    else:
        found = _line_topics(path, text)
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
    """Classic topics, whose elements have no end tags; microblog ones have a query as title."""
    for ordinal, place in enumerate(elements(text, "top"), start=1):
        parts = {
            tag.lower(): tidy(re.sub(r"</\w+>", " ", content))
            for tag, content in _PART.findall(text[place.content])
        }
        parts.setdefault("title", parts.get("query", ""))
        number = re.sub(r"^Number:\s*", "", parts.get("num", ""), flags=re.I)
        if not number:
            raise InputError(f"{path}: topic {ordinal} has no <num>")
        labels = {"desc": r"^Description:\s*", "narr": r"^Narrative:\s*", "title": r"^Topic:\s*"}
        words = [re.sub(labels[f], "", parts.get(f, ""), flags=re.I) for f in fields]
        yield number, " ".join(w for w in words if w)


def _xml_topics(path: Path, text: str, fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    tags = {"title": ("title", "query"), "desc": ("desc", "description", "question"),
                "narr": ("narr", "narrative")}  # fmt: skip
    for ordinal, place in enumerate(elements(text, "topic"), start=1):
        number = re.search(r"\bnumber\s*=\s*[\"']([^\"']*)[\"']", text[place.tag])
        if number is None or not number[1].strip():
            raise InputError(f"{path}: topic {ordinal} has no attribute number")
        content = text[place.content]
        words = [part for f in fields for tag in tags[f] for part in inner(content, tag)]
        yield number[1].strip(), tidy(" ".join(words))


def _line_topics(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """A query per line: id, colon or tab, text. Ids with spaces need a tab, and ids with colons a
    file named .tsv."""
    only_tabs = ".tsv" in suffixes(path)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        query, separator, words = line.strip().partition("\t")
        if not only_tabs and (not separator or ":" in query):
            query, separator, words = line.strip().partition(":")
            separator = separator if len(query.split()) == 1 else ""
        if not (separator and query):
            raise InputError(
                f"{path}, line {number}: {line[:60]!r} is not a topic; expected <top> elements, "
                "<topic> elements, or lines 'id:text' or id, tab, text"
            )
        yield query.strip(), words.strip()


class Element(NamedTuple):
    """Slices of a text for an element: all of it, its start tag, and its content."""

    whole: slice
    tag: slice
    content: slice


def elements(text: str, tag: str) -> Iterator[Element]:
    """All elements with a name, each up to the first end tag; takes linear time for any text."""
    start, end = re.compile(rf"<{tag}\b[^<>]*>", re.I), re.compile(rf"</{tag}>", re.I)
    at = 0
    while (opened := start.search(text, at)) and (closed := end.search(text, opened.end())):
        at = closed.end()
        yield Element(
            slice(opened.start(), at), slice(*opened.span()), slice(opened.end(), closed.start())
        )


def inner(text: str, tag: str) -> Iterator[str]:
    """The texts of all elements with a name, without the tags inside them."""
    for place in elements(text, tag):
        yield TAG.sub(" ", text[place.content])


def tidy(text: str) -> str:
    """The text with character references resolved and single spaces."""
    return " ".join(unescape(real_references(text)).split())


def real_references(text: str) -> str:
    """The text with references to characters that do not exist replaced."""
    return _NO_CHARACTER.sub("\ufffd", text)
