"""Texts as lines of words, ready to be hashed; without the kernels, so that processes that only
parse start fast."""

from __future__ import annotations

import re
from collections.abc import Iterable

WORD = re.compile(r"[^\W_]+")

# What is no part of a word becomes a blank: ASCII as bytes, many times faster than the rest.
_BLANKS = bytes(b if b > 127 or b == 10 or WORD.match(chr(b)) else 32 for b in range(256))
_NO_WORD = re.compile(r"[^\x00-\x7f\w]")


def word_lines(texts: Iterable[str]) -> bytes:
    """UTF-8: a line per text, its case-folded words separated by blanks."""
    lines = "".join([text.replace("\n", " ") + "\n" for text in texts])
    if not lines.isascii():
        lines = _NO_WORD.sub(" ", lines)
    return lines.casefold().encode("utf8", "surrogatepass").translate(_BLANKS)


def title_lines(titles: Iterable[str]) -> bytes:
    """UTF-8: a line per title, as it is."""
    lines = "".join(title.replace("\n", " ") + "\n" for title in titles)
    return lines.encode("utf8", "surrogatepass")
