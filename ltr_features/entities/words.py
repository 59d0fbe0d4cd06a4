"""Words of texts and their hashes, for dumps and for texts to be linked alike.

A word is a maximal run of letters and digits, case-folded. Texts are expected in canonical
composition (NFC), as Wikipedia's are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ltr_features.kernels.entities import hash_runs, phrases_of_lines

WORD = re.compile(r"[^\W_]+")

# Characters outside words become blanks; ASCII as bytes, which is many times faster.
_BLANKS = bytes(b if b > 127 or b == 10 or WORD.match(chr(b)) else 32 for b in range(256))
_NO_WORD = re.compile(r"[^\x00-\x7f\w]")


def word_lines(texts: Iterable[str]) -> bytes:
    """UTF-8 bytes: a line per text, its case-folded words separated by blanks."""
    lines = "".join([text.replace("\n", " ") + "\n" for text in texts])
    if not lines.isascii():
        lines = _NO_WORD.sub(" ", lines)
    return lines.casefold().encode("utf8", "surrogatepass").translate(_BLANKS)


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
