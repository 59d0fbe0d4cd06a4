"""Two systems' rankings of a query, and how documents moved between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from letor.judged_runs import best_first

#: At most so many queries, and of each the documents with such ranks in either ranking.
QUERIES = 2000
TOP = 10


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


def query_rankings(
    differences: pd.Series,
    runs: Sequence[pd.DataFrame],
    qrels: pd.DataFrame,
    title: Callable[[str], str],
) -> dict[str, list[RankedDocument]]:
    """For each query the documents among the first ``TOP`` of either ranking; the queries with the
    largest differences first, at most ``QUERIES``.

    Args:
        differences: per-query differences of a measure, index = query ids.
        runs: of system and baseline, columns ``qid``, ``docno``, ``score``.
        qrels: judgements, columns ``qid``, ``docno``, ``label``.
        title: returns the title of a document, or "".
    """
    largest = differences.abs().sort_values(ascending=False, kind="stable")
    chosen = [str(query) for query in largest.index[:QUERIES]]
    after, before = (_ranks(run, chosen) for run in runs)
    grades = {
        str(query): dict(zip(rows["docno"], rows["label"], strict=True))
        for query, rows in qrels[qrels["qid"].isin(set(chosen))].groupby("qid")
    }
    return {
        q: _first(after.get(q, {}), before.get(q, {}), grades.get(q, {}), title) for q in chosen
    }


def _ranks(run: pd.DataFrame, queries: Sequence[str]) -> dict[str, dict[str, int]]:
    """Rank of each document, from 1, by query."""
    run = best_first(run[run["qid"].isin(set(queries))])
    return {
        str(query): {str(docno): rank for rank, docno in enumerate(rows, start=1)}
        for query, rows in run.groupby("qid", sort=False)["docno"]
    }


def _first(
    after: Mapping[str, int],
    before: Mapping[str, int],
    labels: Mapping[str, int],
    title: Callable[[str], str],
) -> list[RankedDocument]:
    """The documents among the first of either ranking, in the system's order."""
    seen = {d: None for ranks in (after, before) for d, rank in ranks.items() if rank <= TOP}
    grades = {d: int(labels[d]) for d in seen if d in labels}
    return [
        RankedDocument(d, title(d), grades.get(d), before.get(d), after.get(d))
        for d in sorted(seen, key=lambda d: (after.get(d, math.inf), before.get(d, math.inf)))
    ]
