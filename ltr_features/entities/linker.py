"""The protocol of entity linkers: plain texts in, mentions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from letor.errors import InputError


@dataclass(frozen=True, slots=True)
class Mention:
    """A piece of a text that names an entity. Scores are raw: no threshold has been applied.

    Attributes:
        start, end: position in the text in code points, ``text[start:end]``.
        entity: title of the Wikipedia article, with spaces.
        rho: TAGME's confidence, 0 to 1. A text with one mention has rho <= 1/2.
        link_probability: share of the phrase's occurrences in Wikipedia that are links, 0 to 1.
        commonness: share of the phrase's links that lead to the entity, 0 to 1; None if the linker
            does not provide it (TAGME's service).
    """

    start: int
    end: int
    entity: str
    rho: float
    link_probability: float
    commonness: float | None = None


@runtime_checkable
class EntityLinker(Protocol):
    """Links plain texts to entities. The mentions of a text depend on that text only.

    Attributes:
        description: a description of the linker, for the provenance of columns.
    """

    @property
    def description(self) -> str: ...

    def link(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, in order of start.

        Raises:
            InputError: some texts cannot be linked; the message gives their number.
        """
        ...


def refuse_single_text(texts: Sequence[str]) -> None:
    """Raise InputError for a single text, whose characters would be linked one by one."""
    if isinstance(texts, str):
        raise InputError(f"link takes a list of texts, got the text {texts[:40]!r}; link([text])")
