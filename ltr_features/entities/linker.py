"""The one protocol of entity linkers: plain texts in, mentions out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Mention:
    """A piece of a text that names an entity. All scores are raw: no threshold was applied.

    Attributes:
        start, end: code points of the text, ``text[start:end]``.
        entity: title of the Wikipedia article, with spaces.
        rho: TAGME's confidence, 0 to 1. A text with one mention has rho <= 1/2.
        link_probability: share of the phrase's occurrences in Wikipedia that are links, 0 to 1.
        commonness: share of the phrase's links that lead to the entity, 0 to 1; None where the
            linker does not tell (TAGME's service).
    """

    start: int
    end: int
    entity: str
    rho: float
    link_probability: float
    commonness: float | None = None


@runtime_checkable
class EntityLinker(Protocol):
    """Links plain texts. A text's mentions depend on that text only.

    Attributes:
        description: what links, for the provenance of columns.
    """

    @property
    def description(self) -> str: ...

    def link(self, texts: Sequence[str]) -> list[list[Mention]]:
        """The mentions of each text, in order of start.

        Raises:
            InputError: texts that the linker cannot link; the message counts them.
        """
        ...
