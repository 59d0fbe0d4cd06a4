"""Texts as lines of words, ready to be hashed; without the kernels, so that processes that only
parse start fast."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORD = re.compile(r"[^\W_]+")

# Of texts in ASCII alone, the characters that are no part of a word, as blanks.
_BLANKS = {code: " " for code in range(128) if not WORD.match(chr(code))}


def word_lines(texts: Iterable[str]) -> bytes:
    """UTF-8: a line per text, its case-folded words separated by blanks."""
    lines = [
        text.translate(_BLANKS) if text.isascii() else " ".join(WORD.findall(text))
        for text in texts
    ]
    return "".join(line + "\n" for line in lines).casefold().encode("utf8", "surrogatepass")


def title_lines(titles: Iterable[str]) -> bytes:
    """UTF-8: a line per title, as it is."""
    lines = "".join(title.replace("\n", " ") + "\n" for title in titles)
    return lines.encode("utf8", "surrogatepass")
