"""Documents in TREC's formats: TRECTEXT and TRECWEB."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from letor.compression import is_utf8, open_input
from letor.errors import InputError
from ltr_features.sources.trec_topics import TAG, elements, inner, real_references, tidy

_TITLES = ("TITLE", "HEADLINE", "HEAD", "HL", "TI", "TTL")
#: Lead paragraphs, which some newspapers have before the element TEXT.
_LEADS = ("LP", "LEADPARA")
_START = re.compile(rb"<DOC(?:\s[^<>]*)?>", re.I)
_END = re.compile(rb"</DOC>\s*", re.I)
_WITHIN = re.compile(rb"<DOC>\s*<DOCNO>|<DOC\s+id\s*=[^<>]*>", re.I)
#: The start tag of a document in AQUAINT-2 and Gigaword, whose number is an attribute.
_NUMBERED = re.compile(r"<DOC\s(?:[^<>]*\s)?id\s*=\s*[\"']([^\"'<>]*)[\"'][^<>]*>", re.I)
_BLOCK = 1 << 20


class TrecDocument(NamedTuple):
    """A document: its number and the texts of its fields."""

    docno: str
    fields: dict[str, str]


def trec_documents(path: Path, encoding: str = "utf-8") -> Iterator[TrecDocument]:
    """Yield the documents of a file, in order, read piece by piece.

    Raises:
        InputError: a document without an end or number, or bytes that are not in the encoding.
    """
    for ordinal, text in enumerate(_elements(path, encoding), start=1):
        number, tag = next(elements(text, "DOCNO"), None), _NUMBERED.match(text)
        docno = (text[number.content] if number else tag[1] if tag else "").strip()
        if not docno:
            raise InputError(f"{path}: document {ordinal} has no <DOCNO> and no attribute id")
        header = next(elements(text, "DOCHDR"), None)
        if header is None:
            rest = number.whole.stop if number else text.index(">") + 1
            yield TrecDocument(docno, _plain_fields(text[rest:]))
        else:
            page = text[header.whole.stop :]
            yield TrecDocument(docno, web_fields(page, text[header.content]))


def _elements(path: Path, encoding: str) -> Iterator[str]:
    """Each ``<DOC>`` element without its end tag."""
    pieces: list[bytes] = []  # of a document whose end has not been read yet
    tail, done = b"", 0
    with open_input(path) as file:
        while True:
            block = file.read(_BLOCK)
            pieces.append(block)
            tail += block
            if block and b"</doc>" not in tail.lower():
                tail = tail[-len(b"</doc>") :]
                continue
            *whole, rest = _END.split(b"".join(pieces))
            pieces, tail = [rest], rest[-len(b"</doc>") :]
            for part in whole:
                done += 1
                start = _START.search(part)
                if start is None:
                    raise InputError(f"{path}: document {done} has no <DOC> before its </DOC>")
                if _WITHIN.search(part, start.end()) is not None:
                    raise InputError(f"{path}: document {done} has no </DOC> before the next <DOC>")
                try:
                    yield part[start.start() :].decode("utf-8" if is_utf8(part) else encoding)
                except UnicodeDecodeError as error:
                    raise InputError(
                        f"{path}: document {done} is not {encoding} ({error.reason}); convert the "
                        "file to UTF-8, or name its encoding where there is such an option "
                        "(encoding='latin-1', say)"
                    ) from None
            if not block:
                break
    if _START.search(rest):
        raise InputError(f"{path}: document {done + 1} has no </DOC>; the file is cut off")


def _plain_fields(text: str) -> dict[str, str]:
    title = " ".join(part for tag in _TITLES for part in inner(text, tag))
    bodies = list(inner(text, "TEXT"))
    if bodies:
        before = _without(text, "TEXT")
        bodies = [*(part for tag in _LEADS for part in inner(before, tag)), *bodies]
    else:
        for tag in _TITLES:
            text = _without(text, tag)
        bodies = [TAG.sub(" ", text)]
    return {"title": tidy(title), "body": tidy(" ".join(bodies))}


def _without(text: str, tag: str) -> str:
    """The text with each element of that name replaced by a space."""
    parts, at = [], 0
    for place in elements(text, tag):
        parts.append(text[at : place.whole.start])
        at = place.whole.stop
    return " ".join([*parts, text[at:]])


def web_fields(html: str, header: str = "") -> dict[str, str]:
    """Fields of a web page: title, body, keywords, description, and the url from the header."""
    page = _Page()
    page.feed(real_references(html))
    # An unclosed tag or comment is left out, as by browsers: close() would take quadratic time.
    if not page.rawdata.startswith("<"):
        page.close()
    fields = {name: " ".join(" ".join(parts).split()) for name, parts in page.texts.items()}
    url = header.split(maxsplit=1)[0] if header.strip() else ""
    return {**fields, "url": url}


class _Page(HTMLParser):
    """Collects the texts of a web page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: dict[str, list[str]] = {
            name: [] for name in ("title", "body", "keywords", "description")
        }
        self._silent: list[str] = []
        self._in_title = False

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """The end of ``<![...]>``; Python 3.11 and 3.12 fail for unknown ones."""
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:
            return self.parse_bogus_comment(i)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._silent.append(tag)
        elif tag == "title":
            self._in_title = True
        elif tag == "meta":
            values = dict(attrs)
            kind = (values.get("name") or "").lower()
            if kind in ("keywords", "description"):
                self.texts[kind].append(values.get("content") or "")

    def handle_endtag(self, tag: str) -> None:
        if self._silent and tag == self._silent[-1]:
            self._silent.pop()
        elif tag == "title":
            self._in_title = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.texts["title" if self._in_title else "body"].append(data)
