"""What is judged of the queries of a file and has no row: without it measures are too high."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Missing:
    """Judged documents without a row, and queries without rows.

    A ranking can never show them, so that a measure over the rows alone is that of an easier task.

    Attributes:
        relevant: by query id, how many documents of each label of 1 or more have no row. A judged
            query without any row is always there; one with rows, where a document is missing.
        unjudged: queries with rows of whose documents none is judged: no measure counts them.
    """

    relevant: Mapping[str, Mapping[int, int]]
    unjudged: frozenset[str] = frozenset()

    @property
    def n_relevant(self) -> int:
        """Number of relevant documents without a row."""
        return sum(sum(counts.values()) for counts in self.relevant.values())

    def told(self, n_relevant: int, n_without_rows: int) -> str:
        """In one line, what measures count beside the rows, or cannot count.

        Args:
            n_relevant: relevant documents with a row. n_without_rows: queries without any.
        """
        lost = self.n_relevant
        text = (
            f"without a row: {lost:,} of {n_relevant + lost:,} relevant documents, "
            f"{n_without_rows:,} queries; measures count them"
        )
        unjudged = len(self.unjudged)
        return text + (
            f"; they leave out queries without judgement: {unjudged:,}" if unjudged else ""
        )

    def only(self, query_ids: Collection[str]) -> Missing:
        """What is missing of the given queries."""
        kept = set(query_ids)
        relevant = {query: counts for query, counts in self.relevant.items() if query in kept}
        return Missing(relevant, self.unjudged & kept)

    def to_json(self) -> dict[str, Any]:
        """For files: labels as text, the queries that are not judged as a sorted list."""
        relevant = {
            query: {str(label): count for label, count in sorted(counts.items())}
            for query, counts in self.relevant.items()
        }
        return {"relevant": relevant, "unjudged": sorted(self.unjudged)}

    @classmethod
    def from_json(cls, found: Any) -> Missing:
        """What ``to_json`` gave.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: it is something else.
        """
        relevant = {
            str(query): {int(label): int(count) for label, count in counts.items()}
            for query, counts in found["relevant"].items()
        }
        if any(n < 0 or label < 1 for counts in relevant.values() for label, n in counts.items()):
            raise ValueError("labels below 1, or negative numbers")
        return cls(relevant, frozenset(map(str, found["unjudged"])))
