"""Judgements as sources bring them: checked line by line, sorted into rows at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import numpy as np

from letor.errors import InputError
from ltr_features.text.collection import Judgements

#: Grades beyond this are slips; labels are held in single precision, exact up to here.
_LARGEST = 1 << 24

#: Which of two grades of a pair counts.
_OF_TWO_GRADES: dict[str, Callable[[int, int], int] | None] = {
    "raise": None,
    "highest": max,
    "lowest": min,
}

#: A file, or what else judgements come from; for messages.
Origin = str | os.PathLike[str]


def whole_grade(where: str, grade: str) -> int:
    """A grade as a number.

    Raises:
        InputError: it is no integer, or too large; ``where`` names file and line.
    """
    try:
        value = int(grade)
    except ValueError:
        raise InputError(
            f"{where}: grade {grade!r} is not an integer; write 0, 1, 2, ..., or of tables that "
            "are indexed say what it means by the option grades or grade_thresholds"
        ) from None
    if abs(value) > _LARGEST:
        raise InputError(f"{where}: grade {grade} is beyond {_LARGEST}")
    return value


def other_grade(where: str, query: str, document: str, before: int, now: int) -> str:
    """What is wrong with a pair that has two grades; ``where`` names file and line."""
    return (
        f"{where}: query {query} and document {document} were judged {before} before, now "
        f"{now}; keep one of the lines, or of tables that are indexed say which grade counts by "
        "the option on_other_grade: highest or lowest"
    )


class JudgedPairs:
    """Collects (query id, document id, grade) and checks them.

    Args:
        queries: the known query ids, or their texts by id.
        documents: rows by the known document ids.
        on_unknown: "raise" or "skip" judgements of other queries or documents.
        on_other_grade: of a pair that is judged again with another grade: "raise", or take the
            "highest" or "lowest" grade.

    Attributes:
        n_skipped: judgements of unknown queries or documents that were left out.
        n_other: judgements whose pair had another grade before.

    Raises:
        InputError: another ``on_unknown`` or ``on_other_grade``.
    """

    def __init__(
        self,
        queries: Container[str],
        documents: Mapping[str, int],
        on_unknown: str = "raise",
        on_other_grade: str = "raise",
    ) -> None:
        if on_unknown not in ("raise", "skip"):
            raise InputError(f"on_unknown must be 'raise' or 'skip', got {on_unknown!r}")
        if on_other_grade not in _OF_TWO_GRADES:
            raise InputError(
                f"on_other_grade must be one of {', '.join(map(repr, _OF_TWO_GRADES))}, got "
                f"{on_other_grade!r}"
            )
        self._queries, self._documents, self._skip = queries, documents, on_unknown == "skip"
        self._of_two = _OF_TWO_GRADES[on_other_grade]
        self._grades: dict[str, dict[int, int]] = {}
        self.n_skipped = self.n_other = 0

    def __len__(self) -> int:
        return sum(len(grades) for grades in self._grades.values())

    def add(self, path: Origin, number: int, query: str, document: str, grade: str) -> None:
        """Take a judgement from line ``number`` of a file.

        A pair that is judged again with the same grade counts once. Grades below 0 (spam, in some
        TREC tracks) are kept; they count as not relevant.

        Raises:
            InputError: unknown ids (unless skipped), a grade that is no integer, or a pair that
                was judged with another grade.
        """
        where = f"{path}, line {number}"
        value = whole_grade(where, grade)
        row = self._documents.get(document, -1)
        if row < 0 or query not in self._queries:
            if self._skip:
                self.n_skipped += 1
                return
            what = f"document {document!r}" if row < 0 else f"query {query!r}"
            raise InputError(
                f"{where}: there is no {what} in the collection; add it, remove the line, or read "
                "with on_unknown='skip'"
            )
        known = self._grades.setdefault(query, {})
        before = known.setdefault(row, value)
        if before != value:
            if self._of_two is None:
                called = repr(query)
                if isinstance(self._queries, Mapping):  # an id may be a number of ours
                    called += f" ({self._queries[query]!r})"
                raise InputError(other_grade(where, called, repr(document), before, value))
            known[row] = self._of_two(before, value)
            self.n_other += 1

    def add_rows(self, path: Origin, rows: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        """Take the judgements of :func:`~ltr_features.sources.files.judgement_rows`."""
        for number, row in rows:
            self.add(path, number, row["query"], row["document"], row["grade"])

    def __contains__(self, query: object) -> bool:
        """Whether the query has a judgement."""
        return query in self._grades

    def judgements(self, query_ids: Sequence[str]) -> Judgements:
        """All judgements, by query in the order given and document in that of the lines."""
        triples = [
            (row, document, grade)
            for row, query in enumerate(query_ids)
            for document, grade in self._grades.get(query, {}).items()
        ]
        columns = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        return Judgements(*(column.copy() for column in columns))
