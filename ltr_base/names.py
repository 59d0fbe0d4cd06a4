"""Names in messages: suggestions for misspelt ones, shortened lists, counted nouns."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence


def close_names(name: str, known: Iterable[str], n: int = 1) -> list[str]:
    """The known names most similar to ``name``, ignoring case: at most ``n``, possibly none."""
    by_case = {str(k).lower(): str(k) for k in known}
    return [by_case[k] for k in difflib.get_close_matches(name.lower(), by_case, n, cutoff=0.55)]


def counted(n: int, noun: str) -> str:
    """A number and its noun, in the plural unless there is one: "1 query", "1,200 queries"."""
    if n != 1:
        noun = re.sub("(?<![aeiou])y$", "ie", noun) + "s"
    return f"{n:,} {noun}"


def listed(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, followed by the total number if there are more."""
    shown = ", ".join(names[:most])
    return f"{shown}, ... ({len(names):,} in all)" if len(names) > most else shown


def in_words(names: Sequence[str]) -> str:
    """One or more names as a part of a sentence: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def quoted(text: str, most: int = 80) -> str:
    """A text in quotation marks; of a longer one its first ``most`` characters."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}..."


def clipped(content: str, length: int) -> str:
    """The text, cut with an ellipsis if longer than ``length`` characters."""
    return content if len(content) <= length else content[: length - 1] + "…"


def is_unicode(text: str) -> bool:
    """Whether a text has a UTF-8 encoding. Parts of surrogate pairs have none, and stand in names
    of files for bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


#: How control characters are shown; all but line ends and tabs.
_CONTROLS = {n: repr(chr(n))[1:-1] for n in (*range(32), *range(127, 160)) if chr(n) not in "\n\t"}


def visible(text: str) -> str:
    """A text for terminals, which would obey its control characters: with these as Python writes
    them (``\\x1b``), and line ends and tabs as they are."""
    return text.translate(_CONTROLS)


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, each once, sorted."""
    return sorted(name for name, n in Counter(names).items() if n > 1)


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: the most similar known name, or else all of them,
    up to 60."""
    known = [str(k) for k in known]
    if close := close_names(name, known):
        return f"did you mean {close[0]!r}?"
    if any("," in k for k in known):
        known = [repr(k) for k in known]
    return f"there are {listed(known, 60)}" if known else "there are none"


#: An integer of more than 15 digits as a floating-point number: ``1.2345678901234568e+18``.
_ROUNDED = re.compile(r"-?[0-9](\.[0-9]+)?[eE]\+(1[5-9]|[2-9][0-9]|[0-9]{3})")


def is_rounded(name: str) -> bool:
    """Whether an id is a number of so many digits that it lost some as a floating-point number."""
    return _ROUNDED.fullmatch(name) is not None


#: The end of a message on an id that :func:`is_rounded`.
WRITE_AS_TEXT = (
    "such an id was a number of more than 15 digits before it became a floating-point number, "
    "which keeps no more: write ids as text or integers (pandas: dtype=str, or Int64 where "
    "some are missing)"
)


def rounded(**ids: Iterable[str] | None) -> Iterator[str]:
    """Remarks on ids that :func:`is_rounded`, given by what has them: ``document=ids``."""
    for what, names in ids.items():
        names = list(dict.fromkeys(() if names is None else names))
        if found := [name for name in names if is_rounded(name)]:
            yield (
                f"{len(found):,} of {len(names):,} {what} ids are like {found[0]!r}, and may be "
                "those of several"
            )


#: How the ids of one thing differ where programs read them as numbers or letters.
OTHERWISE = "case, blanks around them, leading zeros, a final '.0' or Unicode normal form"


def written_otherwise(name: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown id: that it :func:`is_rounded`, or the known one that is
    :func:`written_alike`; empty if neither."""
    if is_rounded(name):
        return WRITE_AS_TEXT
    near = written_alike([name], known).get(name)
    return (
        ""
        if near is None
        else f"there is {near!r}: write ids alike in all files (these differ in {OTHERWISE})"
    )


def written_alike(names: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """For each id the first known one that differs only in :data:`OTHERWISE`; without ids that have
    none."""
    forms = {name: folded(name) for name in names}
    found: dict[str, str] = {}
    for other in known if forms else ():
        found.setdefault(folded(other), other)
    return {name: found[form] for name, form in forms.items() if form in found}


def folded(name: str) -> str:
    """What an id has in common with other ways to write it, see :func:`written_alike`."""
    plain = unicodedata.normalize("NFC", name).casefold().strip().removesuffix(".0")
    return plain.lstrip("0") or plain[-1:]
