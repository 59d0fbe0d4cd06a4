"""Words and the matrix columns that stand for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Vocabulary(Sequence[str]):
    """Distinct words; the position of a word is its row in a model's parameters and its column in
    a term matrix.

    Args:
        words: distinct strings.

    Raises:
        ValueError: a word occurs twice, or something is not a string.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words: tuple[str, ...] = tuple(words)
        for word in self.words:
            if not isinstance(word, str):
                raise ValueError(f"a vocabulary holds strings; got {word!r}")
        if len(self._row_of) != len(self.words):
            twice = next(w for row, w in enumerate(self.words) if self._row_of[w] != row)
            raise ValueError(f"the word {twice!r} occurs twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, row):  # type: ignore[no-untyped-def]
        return self.words[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._row_of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {self.fingerprint[:12]})"

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """int64 [n]: the row of each word, -1 where the vocabulary does not have it."""
        row_of = self._row_of
        return np.fromiter((row_of.get(word, -1) for word in words), dtype=np.int64)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the words in their order."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in self.words]
        digest = hashlib.sha256(np.array([len(word) for word in encoded], dtype="<i8").tobytes())
        digest.update(b"".join(encoded))
        return digest.hexdigest()

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}


def check_words(vocabulary: object, weighting: Any, n_words: int) -> None:
    """Check that a vocabulary and a fitted weighting, if they are given, are those of the
    ``n_words`` columns of a matrix.

    Raises:
        TypeError: the vocabulary is no :class:`Vocabulary`. ValueError: other numbers of words.
    """
    if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
        raise TypeError(
            f"vocabulary must be ssi_models.Vocabulary, got {type(vocabulary).__name__}; make it "
            "with Vocabulary(words in the order of the columns), of a dict from words to columns "
            "with Vocabulary(sorted(words, key=words.get))"
        )
    for name, n in (
        ("vocabulary", n_words if vocabulary is None else len(vocabulary)),
        ("weighting", n_words if weighting is None else len(weighting.idf_)),
    ):
        if n != n_words:
            raise ValueError(f"{name} has {n} words, but the matrices have {n_words} columns")
