"""Judged documents and queries without a row: measures that ignore them are too high."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ltr_base.names import counted


@dataclass(frozen=True)
class Missing:
    """Judged documents without a row, and queries without rows.

    No ranking of the rows can contain them, so measures over the rows alone are those of an easier
    task.

    Attributes:
        relevant: by query id and label (1 or more), the number of documents without a row. Judged
            queries without any row are always listed; those with rows, if documents are missing.
        unjudged: queries with rows but without judged documents, which no measure counts.
    """

    relevant: Mapping[str, Mapping[int, int]]
    unjudged: frozenset[str] = frozenset()

    @property
    def n_relevant(self) -> int:
        """Number of relevant documents without a row."""
        return sum(sum(counts.values()) for counts in self.relevant.values())

    def summary(self, n_relevant: int, n_without_rows: int) -> str:
        """One line on the documents and queries without rows, and the unjudged queries.

        Args:
            n_relevant: number of relevant documents with a row. n_without_rows: number of queries
                without rows.
        """
        lost = self.n_relevant
        queries = f", {counted(n_without_rows, 'query')}" if n_without_rows else ""
        text = (
            f"without a row: {lost:,} of {n_relevant + lost:,} relevant documents{queries}; "
            "measures count them"
        )
        unjudged = len(self.unjudged)
        return text + (
            f"; they leave out queries without judgement: {unjudged:,}" if unjudged else ""
        )

    def only(self, query_ids: Collection[str]) -> Missing:
        """The part that concerns the given queries."""
        kept = set(query_ids)
        relevant = {query: counts for query, counts in self.relevant.items() if query in kept}
        return Missing(relevant, self.unjudged & kept)

    def to_json(self) -> dict[str, Any]:
        """JSON-compatible form: labels as strings, unjudged queries as a sorted list."""
        relevant = {
            query: {str(label): count for label, count in sorted(counts.items())}
            for query, counts in self.relevant.items()
        }
        return {"relevant": relevant, "unjudged": sorted(self.unjudged)}

    @classmethod
    def from_json(cls, found: Any) -> Missing:
        """Restore from what ``to_json`` returned.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: ``found`` is something else.
        """
        relevant = {
            str(query): {int(label): int(count) for label, count in counts.items()}
            for query, counts in found["relevant"].items()
        }
        if any(n < 0 or label < 1 for counts in relevant.values() for label, n in counts.items()):
            raise ValueError("labels below 1, or negative numbers")
        return cls(relevant, frozenset(map(str, found["unjudged"])))
