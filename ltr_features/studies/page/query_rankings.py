"""Two systems' rankings of a query, and how documents moved between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RankedDocument:
    """A document ranked high by a system, its baseline, or both.

    Attributes:
        document: its id. title: its title, or the beginning of its text; "" if neither is known.
        label: its judged grade; None if it is not judged.
        before, after: rank in the baseline's and the system's ranking, from 1; None if not ranked.
        columns: columns that pushed it in the direction in which it moved, with their shift: the
            column's contribution to the score against the other first documents, in units of their
            scores' spread, system minus baseline. Empty if it did not move or no ranker is known.
    """

    document: str
    title: str
    label: int | None
    before: int | None
    after: int | None
    columns: Sequence[tuple[str, float]] = ()

    @property
    def up(self) -> bool:
        """Whether it rose."""
        return self.before is None or (self.after is not None and self.after < self.before)

    @property
    def relevance(self) -> int:
        """Its grade as measures count it: 0 without a judgement, or with a negative one."""
        return max(self.label or 0, 0)

    @property
    def gain(self) -> float:
        """Change of the document's discount, weighted by its grade."""
        before, after = (
            0 if r is None else 1 / math.log2(1 + r) for r in (self.before, self.after)
        )
        return (after - before) * (0.5 + self.relevance)


def moved(documents: Sequence[RankedDocument]) -> list[RankedDocument]:
    """The documents of a query that moved, relevant ones and large moves first."""
    found = [document for document in documents if document.before != document.after]
    return sorted(found, key=lambda document: -abs(document.gain))
