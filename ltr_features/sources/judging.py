"""Collect judgements from sources: checked line by line, sorted into rows at the end."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from letor.errors import InputError
from letor.trec import whole_number
from ltr_base.names import OTHERWISE, written_alike, written_otherwise
from ltr_features.parameters import check_choice
from ltr_features.text.collection import Collection, Judgements
from ltr_features.text.id_rows import examples
from ltr_features.text.records import place

#: Larger grades are mistakes; labels are held in single precision, which is exact up to here.
_LARGEST = 1 << 24

#: Which of several grades of a pair counts, by the option on_other_grade.
_OF_GRADES: dict[str, Callable[[list[int]], int]] = {
    "raise": itemgetter(0),  # all are the same
    "highest": max,
    "lowest": min,
    "median": statistics.median_low,
    "last": itemgetter(-1),
}


def whole_grade(where: str, grade: str) -> int:
    """A grade as a number; whole numbers may be written with a point, as pandas does: "1.0".

    Raises:
        InputError: it is not an integer, or too large; ``where`` names file and line.
    """
    try:
        value = whole_number(grade)
    except ValueError:
        raise InputError(
            f"{where}: grade {grade!r} is not an integer; write 0, 1, 2, ..., or when indexing a "
            "table, say what it means by the option grades or grade_thresholds; the workspace's "
            "collection/qrels.tsv then has the numbers"
        ) from None
    if abs(value) > _LARGEST:
        raise InputError(f"{where}: grade {grade} is beyond {_LARGEST}")
    return value


def other_grade(where: str, query: str, document: str, before: int, now: int) -> str:
    """The message for a pair with two different grades; ``where`` names file and line."""
    return (
        f"{where}: query {query} and document {document} were judged {before} before, now "
        f"{now}; keep one of the lines, or when indexing a table, say which grade counts: "
        "on_other_grade=highest, lowest, median or last; the workspace's collection/qrels.tsv then "
        "has one for each pair"
    )


class JudgedPairs:
    """Collects and checks judgements (query id, document id, grade).

    Args:
        queries: texts of the known queries by id.
        documents: rows of the known documents by id.
        on_unknown: "raise" or "skip" judgements of unknown queries or documents.
        on_other_grade: for a pair that is judged again with another grade: "raise", or take the
            "highest", "lowest", "median" (of an even number the lower one of the middle) or "last"
            grade of all its judgements.

    Attributes:
        n_skipped: number of skipped judgements of unknown queries or documents.

    Raises:
        InputError: an unknown value of ``on_unknown`` or ``on_other_grade``.
    """

    def __init__(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, int],
        on_unknown: str = "raise",
        on_other_grade: str = "raise",
    ) -> None:
        check_choice("on_unknown", on_unknown, ("raise", "skip"))
        check_choice("on_other_grade", on_other_grade, _OF_GRADES)
        self._queries, self._documents, self._skip = queries, documents, on_unknown == "skip"
        self._of_grades, self._rule = _OF_GRADES[on_other_grade], on_other_grade
        self._grades: dict[str, dict[int, int]] = {}
        self._repeated: dict[tuple[str, int], list[int]] = {}  # all grades of such a pair
        self.n_skipped = 0
        self._first_skipped = self._advice = ""
        #: How often each unknown id was skipped, of queries and of documents.
        self._unknown: tuple[Counter[str], Counter[str]] = Counter(), Counter()

    def __len__(self) -> int:
        return sum(len(grades) for grades in self._grades.values())

    def add(self, path: object, number: int, query: str, document: str, grade: str) -> None:
        """Add the judgement in line ``number`` of a file, or in a row of a frame; see
        :func:`~ltr_features.text.records.place`.

        A pair that is judged again with the same grade counts once. Grades below 0 (spam, in some
        TREC tracks) are kept; they count as 0.

        Raises:
            InputError: unknown ids (unless skipped), a grade that is not an integer, or a pair
                that was judged with another grade.
        """
        where = place(path, number)
        value = whole_grade(where, grade)
        row = self._documents.get(document, -1)
        if row < 0 or query not in self._queries:
            wanted, known_ids = (document, self._documents) if row < 0 else (query, self._queries)
            what = f"{'document' if row < 0 else 'query'} {wanted!r}"
            if self._skip:
                self.n_skipped += 1
                self._unknown[row < 0][wanted] += 1
                if self.n_skipped == 1:
                    self._first_skipped = f"{where} has {what}"
                    self._advice = written_otherwise(wanted, known_ids)
                return
            advice = written_otherwise(wanted, known_ids) or (
                "add it, remove the line, or skip such lines by the option on_unknown=skip"
            )
            raise InputError(f"{where}: there is no {what} in the collection; {advice}")
        known = self._grades.setdefault(query, {})
        if row not in known:
            known[row] = value
        elif self._rule != "raise":
            self._repeated.setdefault((query, row), [known[row]]).append(value)
        elif known[row] != value:
            # The id may be a number that we assigned.
            shown = f"{query!r} ({self._queries[query]!r})"
            raise InputError(other_grade(where, shown, repr(document), known[row], value))

    def add_rows(self, path: object, rows: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        """Add the judgements of :func:`~ltr_features.sources.files.judgement_rows`."""
        for number, row in rows:
            self.add(path, number, row["query"], row["document"], row["grade"])

    def asked(self, where: object, *, keep_unjudged: bool) -> list[str]:
        """The ids of the queries with a judgement, or of all, as given.

        Raises:
            InputError: there is none; ``where`` names the judgements.
        """
        kept = [query for query in self._queries if keep_unjudged or query in self._grades]
        if kept:
            return kept
        if not self.n_skipped:
            raise InputError(f"{where}: no query has a judgement")
        queries, documents = (
            examples([*islice(known, 4)]) for known in (self._queries, self._documents)
        )
        raise InputError(
            f"{where}: all {self.n_skipped:,} judgements were skipped: {self._first_skipped}, but "
            f"the collection has the queries {queries} and the documents {documents}; "
            f"{self._advice or 'do both use the same ids?'}"
        )

    def collection(
        self,
        name: str,
        fields: Mapping[str, Sequence[str]],
        query_ids: Sequence[str],
        source: str,
        of_documents: Mapping[str, Any] | None = None,
        further: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> Collection:
        """The collection of all documents and the queries of :meth:`asked`.

        Args:
            source: where it comes from. of_documents, further: more facts for the description.
            parts: further parts of the collection.
        """
        return Collection(
            name=name,
            document_ids=list(self._documents),
            fields=fields,
            query_ids=query_ids,
            query_texts=[self._queries[query] for query in query_ids],
            judgements=self.judgements(query_ids),
            description={
                "source": source,
                "documents": len(self._documents),
                **(of_documents or {}),
                "queries": len(query_ids),
                "queries without judgement, left out": len(self._queries) - len(query_ids),
                "judged pairs": len(self),
                "judgements of unknown queries or documents, left out": self.n_skipped,
                **self._written_otherwise(),
                **self.facts,
                **(further or {}),
            },
            **parts,
        )

    @property
    def facts(self) -> dict[str, int]:
        """Facts for the description: pairs with several different grades, and pairs with a grade
        below 0, if there are any."""
        found = {
            f"judged pairs with different grades; the {self._rule} taken": sum(
                len(set(grades)) > 1 for grades in self._repeated.values()
            ),
            "judged pairs with a grade below 0, which counts as 0": sum(
                grade < 0 for grades in self._taken().values() for grade in grades.values()
            ),
        }
        return {what: n for what, n in found.items() if n}

    def _taken(self) -> dict[str, dict[int, int]]:
        """The grade that counts, by query and row of the document."""
        for (query, row), grades in self._repeated.items():
            self._grades[query][row] = self._of_grades(grades)
        return self._grades

    def _written_otherwise(self) -> dict[str, str]:
        """A fact for the description, if there is one: skipped judgements of known ids that are
        written otherwise."""
        n, found = 0, list[tuple[str, str]]()
        for known, unknown in zip((self._queries, self._documents), self._unknown, strict=True):
            alike = written_alike(unknown, known)
            n += sum(unknown[name] for name in alike)
            found += alike.items()
        if not n:
            return {}
        what = f"of these, with ids that differ from known ones in {OTHERWISE}"
        return {what: f"{n:,}, such as {found[0][0]!r} for {found[0][1]!r}"}

    def judgements(self, query_ids: Sequence[str]) -> Judgements:
        """All judgements, ordered by query as given; within a query in the order of the lines."""
        taken = self._taken()
        triples = [
            (row, document, grade)
            for row, query in enumerate(query_ids)
            for document, grade in taken.get(query, {}).items()
        ]
        columns = np.array(triples, dtype=np.int64).reshape(-1, 3).T
        return Judgements(*(column.copy() for column in columns))
