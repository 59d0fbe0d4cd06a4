"""Words of texts and their hashes, the same for dumps and for texts to be linked.

A word is a maximal run of letters and digits, case-folded. Texts are expected in canonical
composition (NFC), as Wikipedia's are: spans refer to the text as it was given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ltr_features.kernels.entities import hash_runs, phrases_of_lines

WORD = re.compile(r"[^\W_]+")


def word_hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """uint64: the words of each text in order, each text ended by a 0."""
    lines = [" ".join(WORD.findall(text)) for text in texts]
    folded = "".join(line + "\n" for line in lines).casefold()
    return _hashed(folded, by_word=True, size=folded.count(" ") + 2 * len(lines))


def phrase_hashes(phrases: Iterable[str]) -> NDArray[np.uint64]:
    """uint64 [n]: the hash of each phrase; 0 for one without words or with too many."""
    words = word_hashes(phrases)
    out = np.zeros(int((words == 0).sum()), dtype=np.uint64)
    phrases_of_lines(words, out)
    return out


def title_hashes(titles: Iterable[str]) -> NDArray[np.uint64]:
    """uint64 [n]: the hash of each title as it is."""
    lines = [title.replace("\n", " ") for title in titles]
    return _hashed("".join(line + "\n" for line in lines), by_word=False, size=len(lines))


def _hashed(text: str, *, by_word: bool, size: int) -> NDArray[np.uint64]:
    out = np.empty(size, dtype=np.uint64)
    data = np.frombuffer(text.encode("utf8", "surrogatepass"), dtype=np.uint8)
    return out[: hash_runs(data, by_word, out)]
