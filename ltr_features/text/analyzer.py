"""The text analysis recipe: how a text is turned into tokens.

The full token rule (Unicode general categories; the Unicode version is Python's):

1. The text is normalised to canonical composition (NFC), so that ``e`` + U+0301 equals ``é``.
2. Format characters (category Cf: soft hyphen, joiners, byte order mark, ...) are removed, except
   U+200B, ZERO WIDTH SPACE, which separates words.
3. A run is a maximal sequence of letters, numbers and marks (categories L*, N*, M*). Everything
   else separates runs: white space, punctuation and symbols, including the apostrophe (``don't``
   gives ``don`` and ``t``), the hyphen and the underscore.
4. Each code point is case-folded in full (Unicode's CaseFolding.txt, statuses C and F, which is
   Python's ``str.casefold``): ``ß`` gives ``ss``, final ``ς`` gives ``σ``, ``İ`` gives ``i`` +
   U+0307. The rule does not depend on neighbouring characters, and on the language only with the
   Turkish stemmer: ``I`` gives ``ı`` then.
5. A folded run becomes its compatibility composition (NFKC), folded again, unless that has other
   characters than letters, numbers and marks: full-width ``ＵＳＢ`` gives ``usb``, half-width ``ｶﾞ``
   gives ``ガ``, the presentation form ``ﻻ`` gives ``لا``. ``i`` + U+0307 gives ``i``.
6. These runs are dropped: runs of marks only, runs outside the length limits (in code points), stop
   words, and, on request, runs of numbers only. A run with an ideograph, kana or Hangul syllable
   (East_Asian_Width W) is never too short, since one may be a word. The remaining runs may be
   stemmed.

On request, each sequence of ideographs and kana is first replaced by its pairs of neighbours
(``東京都`` by ``東京`` and ``京都``): Chinese and Japanese have no spaces between words.

Recipes of version 0.1.0 have the rule 1: without step 5 and Turkish capitals, and with a least
length for ideographs, too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise
from typing import Any

import Stemmer

from letor.compression import text_lines
from letor.errors import InputError

#: Increased whenever the rule above changes. Stored recipes keep theirs.
ANALYZER_VERSION = 2

#: The one format character that separates words.
ZERO_WIDTH_SPACE = "\u200b"

#: Names of stop word lists for ``Analyzer.stopwords``.
STOPWORD_LISTS = ("english",)

#: Ideographs (with their marks of repetition) and kana, full or half-width.
_CJK = re.compile(
    "[々-〇ぁ-ゖ\u3099\u309aゝ-ゟァ-ヺー-ヿㇰ-ㇿ㐀-䶿一-鿿\uf900-\ufaffｦ-ﾟ\U0001b000-\U0001b16f"
    "\U00020000-\U000323af]+"
)
#: Thai, Lao, Burmese and Khmer.
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_PAIRS_ADVICE = (
    "index Chinese and Japanese, which have no spaces between words, by pairs of characters (index "
    "--cjk-bigrams), or put spaces between the words"
)
#: How columns and candidates compare letters; the end of a sentence.
BY_LETTERS = "--family letters, and as candidates the model vsm with terms=letter-trigrams"
_SPACES_ADVICE = (
    "Thai, Lao, Burmese and Khmer have no spaces between words: put spaces there, in documents and "
    f"queries, or compare their letters: {BY_LETTERS}"
)


@dataclass(frozen=True)
class Analyzer:
    """A text analysis recipe. Equal recipes give equal tokens on every machine.

    Attributes:
        lowercase: fold case in full (step 4 of the module's rule).
        stopwords: ``"english"``, or a tuple of words, which are folded as texts are and compared
            before stemming; none by default. See :func:`stopwords_named` for files.
        stemmer: a Snowball algorithm by its PyStemmer name (``"english"``, ``"porter"``,
            ``"german"``, ...); None leaves words as they are.
        min_length: least number of code points of a token, before stemming.
        max_length: greatest number of code points of a token, before stemming; longer ones are
            dropped, not cut.
        drop_numbers: drop tokens made of numbers only (``1998``, ``½``).
        cjk_bigrams: take the pairs of neighbouring ideographs and kana as words.
        version: of the rule; 1 is that of version 0.1.0.

    Raises:
        InputError: a parameter is outside its range or names an unknown list or stemmer.
    """

    lowercase: bool = True
    stopwords: str | tuple[str, ...] = ()
    stemmer: str | None = None
    min_length: int = 2
    max_length: int = 64
    drop_numbers: bool = False
    cjk_bigrams: bool = False
    version: int = ANALYZER_VERSION

    def __post_init__(self) -> None:
        if isinstance(self.stopwords, str) and self.stopwords not in STOPWORD_LISTS:
            raise InputError(
                f"stopwords: no list named {self.stopwords!r}; use one of "
                f"{', '.join(STOPWORD_LISTS)}, or list the words"
            )
        if not isinstance(self.stopwords, str):
            object.__setattr__(self, "stopwords", tuple(self.stopwords))
        if self.stemmer is not None and self.stemmer not in Stemmer.algorithms(aliases=True):
            raise InputError(
                f"stemmer: no algorithm named {self.stemmer!r}; use one of "
                f"{', '.join(Stemmer.algorithms())}"
            )
        if not 1 <= self.min_length <= self.max_length:
            raise InputError(
                f"token lengths: 1 <= min_length <= max_length, got min_length={self.min_length}, "
                f"max_length={self.max_length}"
            )

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, in order, including repetitions."""
        return [term for term in self.terms(self.folded(text).split(" ")) if term is not None]

    def folded(self, text: str) -> str:
        """The runs of a text after step 4, with spaces between; before step 1 Turkish has its
        capitals and, on request, ideographs and kana become pairs."""
        if self.stemmer == "turkish" and self.lowercase and self.version > 1:
            text = unicodedata.normalize("NFC", text).translate(_TURKISH)
        if self.cjk_bigrams:
            text = _CJK.sub(_pairs, text)
        table = _FOLDING if self.lowercase else _KEEPING
        parts = _ASCII.split(unicodedata.normalize("NFC", text))
        return "".join([part.translate(table) for part in parts])

    def unsegmented(self, word: str) -> str:
        """What to do about a word that may be a whole sentence, as its script has no spaces between
        words; "" if it has, or if pairs of characters are taken as words."""
        if _CJK.search(word):
            return "" if self.cjk_bigrams else _PAIRS_ADVICE
        return _SPACES_ADVICE if _SPACELESS.search(word) else ""

    def terms(self, words: Iterable[str]) -> list[str | None]:
        """The token of each folded run, or None if the run is dropped."""
        stop = self._stop
        short_ideographs = self.version > 1
        kept = [
            word
            if (self.min_length <= len(word) or (short_ideographs and _is_wide(word)))
            and len(word) <= self.max_length
            and word not in stop
            and (word.isascii() or not _only(word, "M"))
            and not (self.drop_numbers and _only(word, "N"))
            else None
            for word in map(self._composed, words)
        ]
        if self.stemmer is None:
            return kept
        stem = Stemmer.Stemmer(self.stemmer).stemWord
        return [None if word is None else stem(word) for word in kept]

    def __str__(self) -> str:
        """The recipe in a few words: parameters that are not the defaults, stop words as a digest.
        Equal texts mean equal recipes."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        if not isinstance(self.stopwords, str) and self.stopwords:
            given["stopwords"] = f"{len(self.stopwords)} words, recipe {self.fingerprint[:8]}"
        said = [f"{f.name}={given[f.name]}" for f in fields(self) if given[f.name] != f.default]
        return ", ".join(said) or "defaults"

    def to_json(self) -> dict[str, Any]:
        """The parameters as JSON-compatible values."""
        values = asdict(self)
        if self.version == 1:  # its recipes do not have the key
            del values["cjk_bigrams"]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Analyzer:
        """The inverse of ``to_json``.

        Raises:
            InputError: the values are of another version of the rule, or have unknown parameters.
        """
        if values.get("version") not in (1, ANALYZER_VERSION):
            raise InputError(
                f"text analysis recipe of version {values.get('version')!r}; this program has "
                f"version {ANALYZER_VERSION}: analyse the texts again"
            )
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        if unknown:
            raise InputError(
                f"text analysis recipe: unknown parameters {', '.join(unknown)}; analyse the texts "
                "again"
            )
        parameters = dict(values)
        if isinstance(parameters.get("stopwords"), list):
            parameters["stopwords"] = tuple(parameters["stopwords"])
        return cls(**parameters)

    @cached_property
    def canonical(self) -> str:
        """The recipe as JSON in which stop words are listed, the same for equal recipes."""
        return json.dumps(
            {**self.to_json(), "stopwords": sorted(self._stop)}, sort_keys=True, ensure_ascii=True
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of :attr:`canonical`."""
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    @classmethod
    def noted(cls, recipe: str | None) -> Analyzer | None:
        """The recipe that a model's file notes by its :attr:`canonical` JSON; None if it notes none
        or, as those of older versions, a fingerprint."""
        return cls.from_json(json.loads(recipe)) if recipe and recipe.startswith("{") else None

    @cached_property
    def _stop(self) -> frozenset[str]:
        if self.stopwords == "english":
            return english_stopwords()
        if self.version == 1:
            return frozenset(self.stopwords)
        return frozenset(
            self._composed(run) for word in self.stopwords for run in self.folded(word).split(" ")
        )

    def _composed(self, word: str) -> str:
        """Step 5 of the module's rule."""
        if word.isascii() or self.version == 1:
            return word
        composed = unicodedata.normalize("NFKC", word)
        if self.lowercase:
            composed = case_folded(composed)
        if composed == word or any(character_class(c) != "token" for c in composed):
            return word
        return composed


@cache
def english_stopwords() -> frozenset[str]:
    """The list of English function words that this package ships."""
    text = files("ltr_features.text").joinpath("stopwords_english.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def stopwords_named(name: str) -> str | tuple[str, ...]:
    """``name`` if it is that of a list of this package, else the words of a file in UTF-8.

    White space separates words; what follows ``|`` or ``#`` in a line is a comment, as in the lists
    of Snowball and Lucene.

    Raises:
        InputError: no such list or file, bytes of another encoding, or no words.
    """
    if name in STOPWORD_LISTS:
        return name
    if not os.path.isfile(name):
        raise InputError(
            f"stop words: there is no file {name!r}; the one list that has a name is "
            f"{', '.join(STOPWORD_LISTS)}, others are files of a word on each line"
        )
    lines = (re.split(r"[|#]", line)[0] for _, line in text_lines(name))
    words = tuple(dict.fromkeys(word for line in lines for word in line.split()))
    if not words:
        raise InputError(f"{name}: no stop words; put one on each line")
    return words


def case_folded(text: str) -> str:
    """A text in NFKC without its case, in NFKC; the Turkish İ becomes i."""
    return unicodedata.normalize("NFKC", text.casefold().replace("i\u0307", "i"))


def character_class(character: str) -> str:
    """``"token"``, ``"ignored"`` or ``"separator"``, by steps 2 and 3 of the module's rule."""
    category = unicodedata.category(character)
    if category[0] in "LNM":
        return "token"
    if category == "Cf" and character != ZERO_WIDTH_SPACE:
        return "ignored"
    return "separator"


class _Translation(dict[int, str | None]):
    """A table for ``str.translate``, filled in as code points occur."""

    def __init__(self, fold: bool) -> None:
        self._fold = fold

    def __missing__(self, code_point: int) -> str | None:
        character = chr(code_point)
        kind = character_class(character)
        value: str | None = " "
        if kind == "ignored":
            value = None
        elif kind == "token":
            value = character.casefold() if self._fold else character
        self[code_point] = value
        return value


#: Parts that are ASCII throughout are translated in a tenth of the time.
_ASCII = re.compile(r"([\x00-\x7f]{16,})")

_FOLDING = _Translation(fold=True)
_KEEPING = _Translation(fold=False)


#: Turkish has capitals of its own for ı and i.
_TURKISH = str.maketrans("Iİ", "ıi")


def _pairs(match: re.Match[str]) -> str:
    run = unicodedata.normalize("NFKC", match[0])
    return f" {' '.join(map(''.join, pairwise(run))) or run} "


def _is_wide(word: str) -> bool:
    return any(unicodedata.east_asian_width(character) == "W" for character in word)


def _only(word: str, major_category: str) -> bool:
    return all(unicodedata.category(character)[0] == major_category for character in word)
