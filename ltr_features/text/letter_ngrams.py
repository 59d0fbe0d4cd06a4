"""Letter trigrams as terms, so that words with similar spelling have terms in common.

A word is put between two boundary marks and cut into all runs of three characters: ``cat`` gives
``#ca``, ``cat`` and ``at#``. A word of n letters has n trigrams, counting repetitions. Letters are
code points, not bytes. Tokens consist of letters, numbers and marks (:mod:`text.analyzer`), so
``#`` occurs in no word.

Reference:
    Huang, He, Gao, Deng, Acero, Heck: "Learning deep structured semantic models for web search
    using clickthrough data", CIKM 2013, section 3.2 (word hashing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from ssi_models.vocabulary import Vocabulary

#: The terms that are counted in texts.
Terms = Literal["words", "letter-trigrams", "both"]

Kind = Literal["words", "letter-trigrams"]

#: The kinds of terms of each choice, in the order of their columns.
KINDS: dict[Terms, tuple[Kind, ...]] = {
    "words": ("words",),
    "letter-trigrams": ("letter-trigrams",),
    "both": ("words", "letter-trigrams"),
}

_REFERENCE = "Huang, He, Gao, Deng, Acero, Heck, CIKM 2013, section 3.2"
_BOUNDARY = "#"
#: Prefix of trigrams in vocabularies that also have words: ``:`` occurs in no word.
_BESIDE_WORDS = "3:"
_BITS, _TWO = np.uint64(21), np.uint64(42)  # bits of one code point, and of two
_LAST = np.uint64((1 << 21) - 1)


def described(terms: Terms, description: str, reference: str) -> tuple[str, str]:
    """A column's description and reference, which name the terms unless they are words alone."""
    if terms == "words":
        return description, reference
    named = " and ".join(KINDS[terms]).replace("letter-", "letter ")
    return f"{description}; terms: {named}", f"{reference}; {_REFERENCE}"


def side_by_side(words: Vocabulary, trigrams: Vocabulary) -> Vocabulary:
    """One vocabulary of words, then trigrams: the word ``cat``, but the trigram ``3:cat``."""
    return Vocabulary([*words, *(_BESIDE_WORDS + trigram for trigram in trigrams)])


def rows_of_word(vocabulary: Vocabulary, word: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64: the row of a word, and the rows of its trigrams, one for each time that a trigram
    occurs in it, in a vocabulary of words, of trigrams, or of both; empty where the vocabulary has
    none. A trigram of a vocabulary may be given instead, if its mark tells it from a word: ``#ca``
    or, beside words, ``3:cat``."""
    marked = f"{_BOUNDARY}{word}{_BOUNDARY}"
    trigrams = [marked[start : start + 3] for start in range(len(word))]
    # Terms are in code point order, and every word has a trigram that begins with the boundary.
    if next((term for term in vocabulary if term >= _BOUNDARY), "").startswith(_BOUNDARY):
        own, spelled = [], [word] if _BOUNDARY in word else trigrams
    elif vocabulary[-1].startswith(_BESIDE_WORDS):  # trigrams follow the words
        given = word.startswith(_BESIDE_WORDS)
        own = [] if given else [word]
        spelled = [word] if given else [_BESIDE_WORDS + trigram for trigram in trigrams]
    else:
        own, spelled = [word], []
    rows = vocabulary.rows(own), vocabulary.rows(spelled)
    return rows[0][rows[0] >= 0], rows[1][rows[1] >= 0]


@dataclass(frozen=True, eq=False)
class LetterTrigrams:
    """The distinct trigrams of some words, in code point order: the columns of count matrices.

    Make one by :meth:`of`.

    Attributes:
        keys: uint64 [T], increasing: the three code points of a trigram, 21 bits each.
    """

    keys: NDArray[np.uint64]

    @classmethod
    def of(cls, words: Sequence[str]) -> LetterTrigrams:
        """The trigrams of words, none of them empty."""
        return cls(np.unique(_spelled(words)[0]))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The trigrams, including their boundary marks."""
        points = np.stack([self.keys >> _TWO, self.keys >> _BITS, self.keys], axis=1) & _LAST
        text = points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        return Vocabulary(text[start : start + 3] for start in range(0, len(text), 3))

    def of_words(self, words: Sequence[str]) -> csr_matrix:
        """int32 [len(words), T], columns sorted: how often each word has each trigram. Trigrams
        without a column are left out."""
        keys, ends = _spelled(words)
        columns = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        known = self.keys[columns] == keys if len(self.keys) else np.zeros(len(keys), bool)
        ends = np.concatenate([[0], np.cumsum(known)])[ends]
        counts = csr_matrix(
            (np.ones(ends[-1], np.int32), columns[known].astype(np.int32), ends),
            shape=(len(words), len(self.keys)),
        )
        counts.sum_duplicates()
        return counts


def _spelled(words: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The keys of all words' trigrams, one word after the other, and int64 [len(words) + 1] ends:
    word i has ``keys[ends[i]:ends[i + 1]]``."""
    text = _BOUNDARY.join(["", *words, ""])
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    keys = points[:-2] << _TWO | points[1:-1] << _BITS | points[2:]
    ends = np.concatenate([[0], np.cumsum([len(word) for word in words])]).astype(np.int64)
    # Neighbours share a mark; the window with the mark in the middle belongs to neither word.
    valid = np.ones(len(keys), dtype=bool)
    valid[(ends[1:] + np.arange(len(words)))[:-1]] = False
    return keys[valid], ends
