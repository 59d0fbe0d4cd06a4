"""Words of texts and their hashes, for dumps and for texts to be linked alike.

A word is a maximal run of letters, numbers and marks (categories L*, N*, M*), case-folded, without
format characters (Cf). Chinese and Japanese have no spaces between words: there, each ideograph and
each hiragana is a word, and a run of katakana is one. Texts are expected in canonical composition
(NFC), as Wikipedia's are.

Knowledge bases of version 0.1.0 have rule 1: marks and format characters separate words, and
ideographs do not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_features.kernels.entities import hash_runs, phrases_of_lines

#: Increased whenever the rule above changes. Knowledge bases keep theirs.
WORD_RULE = 2

_RUN = re.compile(r"[^\W_]+")
_NO_WORD = re.compile(r"[^\x00-\x7f\w]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
# ASCII outside words becomes blanks as bytes, which is many times faster.
_BLANKS = bytes(b if b > 127 or b == 10 or _RUN.match(chr(b)) else 32 for b in range(256))
_ALONE = "々-〇ぁ-ゖゝ-ゟ㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U000323af"


class _Patterns(NamedTuple):
    """What rule 2 treats otherwise than rule 1 (``special``), and its patterns."""

    special: re.Pattern[str]
    word: re.Pattern[str]
    no_word: re.Pattern[str]
    format: re.Pattern[str]
    alone: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    """The patterns of rule 2, in a fraction of a second."""
    # Of the basic plane and the selectors of variants: more would make searching 20 times slower.
    kinds = [(chr(point), unicodedata.category(chr(point))) for point in range(0x80, 0x10000)]
    marks = "".join(c for c, kind in kinds if kind[0] == "M") + "\U000e0100-\U000e01ef"
    # ZERO WIDTH SPACE separates words.
    formats = "".join(c for c, kind in kinds if kind == "Cf" and c != "\u200b")
    return _Patterns(
        re.compile(f"[{_ALONE}{marks}{formats}]"),
        re.compile(
            rf"[{_ALONE}][{marks}{formats}]*|"
            rf"(?:[^\W_{_ALONE}]|[{marks}])(?:[^\W_{_ALONE}]|[{marks}{formats}])*"
        ),
        re.compile(rf"[^\x00-\x7f\w{marks}{_ALONE}]"),
        re.compile(f"[{formats}]"),
        re.compile(f"[{_ALONE}][{marks}]*"),
    )


def word_lines(texts: Iterable[str], rule: int = WORD_RULE) -> bytes:
    """UTF-8 bytes: a line per text, its case-folded words separated by blanks."""
    lines = "".join([text.replace("\n", " ") + "\n" for text in texts])
    if not lines.isascii():
        if rule == 1:
            lines = _NO_WORD.sub(" ", lines)
        else:
            lines = _BEYOND_ASCII.sub(lambda run: _separated(run[0]), lines)
    return lines.casefold().encode("utf8", "surrogatepass").translate(_BLANKS)


@lru_cache(1 << 16)
def _separated(run: str) -> str:
    """A run of characters beyond ASCII, with blanks between its words by rule 2."""
    patterns = _patterns()
    run = patterns.no_word.sub(" ", patterns.format.sub("", run))
    return patterns.alone.sub(r" \g<0> ", run)


def word_spans(text: str, rule: int = WORD_RULE) -> list[tuple[int, int]]:
    """Start and end in the text of each word of its :func:`word_lines`."""
    special = rule > 1 and not text.isascii() and _patterns().special.search(text)
    word = _patterns().word if special else _RUN
    return [match.span() for match in word.finditer(text)]


def title_lines(titles: Iterable[str]) -> bytes:
    """UTF-8 bytes: a line per title, unchanged."""
    lines = "".join(title.replace("\n", " ") + "\n" for title in titles)
    return lines.encode("utf8", "surrogatepass")


def hash_words(lines: bytes) -> NDArray[np.uint64]:
    """Hashes of the words of :func:`word_lines`; a 0 ends each line."""
    size = lines.count(b" ") + 2 * lines.count(b"\n")
    return _hashed(lines, by_word=True, size=size)


def hash_phrases(lines: bytes) -> NDArray[np.uint64]:
    """One hash per line of :func:`word_lines`."""
    words = hash_words(lines)
    out = np.zeros(lines.count(b"\n"), dtype=np.uint64)
    phrases_of_lines(words, out)
    return out


def hash_titles(lines: bytes) -> NDArray[np.uint64]:
    """One hash per line of :func:`title_lines`."""
    return _hashed(lines, by_word=False, size=lines.count(b"\n"))


def _hashed(lines: bytes, *, by_word: bool, size: int) -> NDArray[np.uint64]:
    out = np.empty(size, dtype=np.uint64)
    return out[: hash_runs(np.frombuffer(lines, dtype=np.uint8), by_word, out)]
