"""HTML in texts: find it, and strip it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape

#: The tags of common elements, and character references; a < b and placeholders are none.
_HTML = re.compile(
    r"</?(?:a|b|br|div|em|h[1-6]|i|img|li|ol|p|script|span|strong|style|su[bp]|table|t[dhr]|u|ul)"
    r"(?:\s+[a-z-]+\s*=[^<>]*+)?\s*+/?>|&(?:[a-z]{2,8}|#\d{2,6}|#x[0-9a-f]{2,6});",
    re.IGNORECASE,
)
#: Possessive, so that no text takes longer than its length.
_TAG = re.compile(r"<!--|<(/?)([a-z][^\s/<>]*+)[^<>]*+>|<[!?][^<>]*+>", re.IGNORECASE)
#: Elements that mark parts of words, as in H<sub>2</sub>O and <i>p</i>53; other tags end words.
_WITHIN_WORDS = frozenset({"em", "i", "sub", "sup"})
#: What ends a comment, or an element whose content is not text; by its beginning.
_ENDS = {
    "<!--": re.compile("-->"),
    "script": re.compile(r"</script[^<>]*+>", re.IGNORECASE),
    "style": re.compile(r"</style[^<>]*+>", re.IGNORECASE),
}


def html_share(documents: Iterable[Iterable[str]]) -> float:
    """The share of documents, given by their texts, that contain tags or character references of
    HTML; 0 without documents."""
    found = [any(_HTML.search(text) for text in texts) for texts in documents]
    return sum(found) / max(len(found), 1)


def without_markup(text: str) -> str:
    """The text of HTML: without tags, comments, scripts and styles, with character references
    (``&eacute;``) as characters, and runs of blanks as one. What is open at the end is left out.
    A tag separates words, unless it marks a part of one: ``CO<sub>2</sub>`` is ``CO2``."""
    parts, at = [], 0
    while (tag := _TAG.search(text, at)) is not None:
        name = (tag[2] or "").lower()
        parts += [text[at : tag.start()], "" if name in _WITHIN_WORDS else " "]
        at = tag.end()
        opened = tag[0] if tag[2] is None else "" if tag[1] else name
        if end := _ENDS.get(opened):
            closing = end.search(text, at)
            at = len(text) if closing is None else closing.end()
    return " ".join(unescape("".join([*parts, text[at:]])).split())
