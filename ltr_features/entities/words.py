"""Words of texts and their hashes, the same for dumps and for texts to be linked.

A word is a maximal run of letters and digits, case-folded. Texts are expected in canonical
composition (NFC), as Wikipedia's are: spans refer to the text as it was given.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ltr_features.entities.word_lines import title_lines, word_lines
from ltr_features.kernels.entities import hash_runs, phrases_of_lines


def word_hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """uint64: the words of each text in order, each text ended by a 0."""
    return hash_words(word_lines(texts))


def phrase_hashes(phrases: Iterable[str]) -> NDArray[np.uint64]:
    """uint64 [n]: the hash of each phrase; 0 for one without words or with too many."""
    return hash_phrases(word_lines(phrases))


def title_hashes(titles: Iterable[str]) -> NDArray[np.uint64]:
    """uint64 [n]: the hash of each title as it is."""
    return hash_titles(title_lines(titles))


def hash_words(lines: bytes) -> NDArray[np.uint64]:
    """The words of :func:`word_lines`, each line ended by a 0."""
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
