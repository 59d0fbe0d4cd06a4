"""Scores of other systems as columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letor.dataset import GIVEN
from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily, ColumnSpec, rows_without, substitutes
from ltr_features.columns.context import ColumnContext
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import known_rows, places_of

if TYPE_CHECKING:
    from ltr_features.sources.score_tables import ScoreTable

_Missing = float | Literal["lowest"] | None
#: What a pair without a score gets by default.
_USUAL = "0, or the query's lowest if that is below 0"


class _Known(NamedTuple):
    """The scores of a column for pairs of the collection: keys (query * n_documents + document),
    int64 in ascending order, and their values, float32; and float32 [n_queries], the lowest score
    that the file has for each query (of all queries, if it has none), whatever the document."""

    keys: NDArray[np.int64]
    values: NDArray[np.float32]
    lowest: NDArray[np.float32]


@dataclass(frozen=True)
class GivenScores(ColumnFamily):
    """A column for each kind of score that other systems gave to (query, document) pairs.

    Attributes:
        files: maps a column's name to its file, see :func:`~.score_tables.read_scores`. A file with
            several kinds of scores gives a column for each, ``<name>_<kind of score>``.
        query, document, scores: the names of the tables' columns, see ``read_scores``.
        missing: the value of a pair without a score: a number, or "lowest": the lowest score of the
            query in the file (of all queries, if it has none). By default 0, or the lowest score
            where that is below 0: 0 would be among the best of scores like log-probabilities. Or a
            mapping from names of columns to such values (distances, say, of which 0 is the best);
            other columns have the default.

    Raises:
        InputError: a file cannot be read, or ``missing`` names no column or is not finite.
    """

    name = "scores"
    description = "Scores of other systems, from runs, tables and LETOR files"
    reference = "given"
    trained_on = GIVEN
    knows_new_queries = False
    reads_texts = False

    files: Mapping[str, str | os.PathLike[str]] = field(default_factory=dict)
    query: str | None = None
    document: str | None = None
    scores: Sequence[str] = ()
    missing: _Missing | Mapping[str, _Missing] = None

    def __post_init__(self) -> None:
        self._substitutes  # noqa: B018, check the files before anything expensive

    @cached_property
    def _substitutes(self) -> dict[str, _Missing]:
        return substitutes(self, None)

    @cached_property
    def _origins(self) -> dict[str, tuple[str, str]]:
        """Map each column to its name in ``files`` and the name of its score in the file."""
        if any(self._named.values()):
            from ltr_features.sources.score_tables import check_named

            check_named(self.files.values(), **self._named)
        found: dict[str, tuple[str, str]] = {}
        for name, path in self.files.items():
            inside = self._inside(path)
            for score in inside:
                column = name if len(inside) == 1 else f"{name}_{score}".lower().replace(" ", "_")
                if column in found:
                    raise InputError(f"scores: two columns would be called {column!r}; rename one")
                found[column] = (name, score)
        return found

    @property
    def columns(self) -> Sequence[ColumnSpec]:
        return [
            ColumnSpec(
                column, f"{score} in {Path(self.files[name]).name}", "as given", "any", "given"
            )
            for column, (name, score) in self._origins.items()
        ]

    @classmethod
    def file_beside(cls, path: Path) -> Path:
        """The names of the columns, if the file is LETOR text."""
        from letor.column_names import names_path

        return names_path(path)

    def check(self, context: ColumnContext) -> None:
        """Raise InputError if no file is named, or a file has no row about the collection."""
        if not self.files:
            raise InputError(
                "scores: name at least one file: files = { engine = 'engine.run' } in TOML, "
                "--option scores.files.engine=engine.run on the command line"
            )
        for name in self.files:
            self._known(context, name)

    def compute(self, context: ColumnContext, pairs: Pairs) -> NDArray[np.float32]:
        context.check(pairs)
        result = np.empty((len(pairs), len(self._origins)), dtype=np.float32)
        for j, (column, (name, score)) in enumerate(self._origins.items()):
            known = self._known(context, name)[score]
            place = _places(context, known, pairs)
            missing, substitute = place < 0, self._substitutes[column]
            lowest = known.lowest[pairs.query[missing]]
            result[~missing, j] = known.values[place[~missing]]
            if substitute is None:
                result[missing, j] = np.minimum(lowest, 0)
            else:
                result[missing, j] = lowest if substitute == "lowest" else substitute
        return result

    def n_missing(self, context: ColumnContext, pairs: Pairs) -> list[int]:
        known = (self._known(context, name)[score] for name, score in self._origins.values())
        return [int((_places(context, scores, pairs) < 0).sum()) for scores in known]

    def column_settings(self, context: ColumnContext, column: str) -> dict[str, Any]:
        substitute = self._substitutes[column]
        return self.settings(context) | {"missing": _USUAL if substitute is None else substitute}

    def missing_remark(self, column: str, n_missing: int, n: int) -> str:
        substitute = self._substitutes[column]
        if substitute is None:
            value = _USUAL
        else:
            value = "the query's lowest" if substitute == "lowest" else f"{substitute:g}"
        return f"{rows_without('score', n_missing, n)} and get {value}"

    def _known(self, context: ColumnContext, name: str) -> dict[str, _Known]:
        """The scores in a file for pairs of the collection, by the names they have there."""
        from ltr_features.sources.score_tables import read_scores

        table = context.cached(
            (self, name, "table"), lambda: read_scores(self.files[name], **self._named)
        )
        return context.cached_for_queries((self, name), lambda: _of_collection(table, context))

    def _inside(self, path: str | os.PathLike[str]) -> Sequence[str]:
        """The names of the scores in a file. The import is slow, and listings read no file."""
        from ltr_features.sources.score_tables import score_columns

        return score_columns(path, **self._named)

    @property
    def _named(self) -> dict[str, Any]:
        """The names of the tables' columns, as arguments for the readers."""
        return {"query": self.query, "document": self.document, "scores": self.scores}

    def __hash__(self) -> int:
        paths = tuple((name, os.fspath(path)) for name, path in self.files.items())
        return hash((paths, self.query, self.document, tuple(self.scores)))


def _places(context: ColumnContext, known: _Known, pairs: Pairs) -> NDArray[np.int64]:
    """The place of each pair among the known ones, -1 if it has no score."""
    return places_of(pairs.query * context.collection.n_documents + pairs.document, known.keys)


def _of_collection(table: ScoreTable, context: ColumnContext) -> dict[str, _Known]:
    collection = context.collection
    if not len(table.query):
        raise InputError(f"{table.path}: no row; it must have scores of (query, document) pairs")
    query = known_rows(table.query_ids, collection.query_ids, table.path, "query")[table.query]
    documents = known_rows(table.document_ids, collection.document_ids, table.path, "document")
    document = documents[table.document]
    about = np.flatnonzero((query >= 0) & (document >= 0))
    keys = query[about] * collection.n_documents + document[about]
    order = np.argsort(keys, kind="stable")
    keys, about = keys[order], about[order]
    of_query = np.flatnonzero(query >= 0)

    def lowest(scores: NDArray[np.float64]) -> NDArray[np.float32]:
        found = np.full(collection.n_queries, scores.min(), dtype=np.float32)
        found[query[of_query]] = np.inf
        np.minimum.at(found, query[of_query], scores[of_query].astype(np.float32))
        return found

    return {
        name: _Known(keys, scores[about].astype(np.float32), lowest(scores))
        for name, scores in table.scores.items()
    }
