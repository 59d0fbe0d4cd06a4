"""Candidates: which documents a query's ranking is about, from one source or several together.

Labels are not looked at, except by the source ``judged``, which takes the judged pairs, relevant or
not. Sources that train a model train it on texts alone, so candidates are the same in every fold.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from letor.column_names import read_rows
from letor.errors import InputError
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.trained import TrainedColumn
from ltr_features.parallel import map_blocks
from ltr_features.parameters import check_values
from ltr_features.sources.files import judgement_rows
from ltr_features.sources.letor_join import join_letor
from ltr_features.sources.score_tables import read_scores
from ltr_features.text.candidates import PoolRecall, bm25_candidates, candidate_recall
from ltr_features.text.collection import Judgements, Pairs, known_rows
from ltr_features.text.letter_ngrams import Terms
from ssi_models.registry import MODELS, find_model

#: Scores of queries and all documents that are in memory at once, per thread.
_SCORES = 2**23


@dataclass(frozen=True)
class Candidates:
    """Candidates of all queries.

    Attributes:
        pairs: query by query; within one those of the first source, best first, then those that
            the second adds, and so on.
        sources: names of the sources.
        found_by: bool [n, number of sources], which sources have the pair.
    """

    pairs: Pairs
    sources: tuple[str, ...]
    found_by: NDArray[np.bool_]

    @property
    def origins(self) -> list[str] | None:
        """The sources of each pair, ``bm25+lsi``; None where there is but one source."""
        if len(self.sources) == 1:
            return None
        return ["+".join(compress(self.sources, row)) for row in self.found_by.tolist()]

    def recalls(self, judgements: Judgements, n_queries: int) -> dict[str, PoolRecall]:
        """The recall of the candidates of each source."""
        found = {}
        for i, name in enumerate(self.sources):
            rows = self.found_by[:, i]
            pairs = Pairs(self.pairs.query[rows], self.pairs.document[rows])
            found[name] = candidate_recall(pairs, judgements, n_queries)
        return found


class CandidateSource(ABC):
    """One way to find candidates."""

    @abstractmethod
    def find(self, context: ColumnContext, extra: int) -> Pairs:
        """Pairs, those of a query in the order of its ranking; ``extra`` more for each query than
        asked for, where a number is asked for.

        Raises:
            InputError: a file cannot be read or is about another collection.
        """


@dataclass(frozen=True)
class BM25Candidates(CandidateSource):
    """BM25's best documents over all fields together.

    Attributes:
        depth: most documents per query.
    """

    depth: int = 100

    def find(self, context: ColumnContext, extra: int) -> Pairs:
        depth, threads = self.depth + extra, context.threads
        return bm25_candidates(context.index, context.query_counts, depth, threads=threads)


@dataclass(frozen=True)
class JudgedCandidates(CandidateSource):
    """The judged pairs, relevant or not, in the order of the judgements.

    Attributes:
        path: other judgements than the collection's, see :func:`~.files.judgement_rows`.
    """

    path: str | os.PathLike[str] | None = None

    def find(self, context: ColumnContext, extra: int) -> Pairs:
        collection = context.collection
        if self.path is None:
            return Pairs(collection.judgements.query, collection.judgements.document)
        rows = [row for _, row in judgement_rows(self.path)]
        found = []
        for side, wanted in (
            ("query", collection.query_ids),
            ("document", collection.document_ids),
        ):
            ids = list(dict.fromkeys(row[side] for row in rows))
            known = known_rows(ids, wanted, self.path, side)
            of_id = dict(zip(ids, known.tolist(), strict=True))
            found.append(np.array([of_id[row[side]] for row in rows], dtype=np.int64))
        return _in_collection(*found)


@dataclass(frozen=True)
class RunCandidates(CandidateSource):
    """The documents of a ranking made elsewhere.

    Attributes:
        path: a TREC run or a table of scores, see :func:`~.score_tables.read_scores`.
        depth: most documents per query, those of the highest scores; all by default.
        query, document, scores: see ``read_scores``; of several scores the first ranks.
    """

    path: str | os.PathLike[str] = ""
    depth: int | None = None
    query: str | None = None
    document: str | None = None
    scores: Sequence[str] = ()

    def find(self, context: ColumnContext, extra: int) -> Pairs:
        if not os.fspath(self.path):
            raise InputError("candidates: run needs a path, path = 'engine.run'")
        table = read_scores(self.path, query=self.query, document=self.document, scores=self.scores)
        collection = context.collection
        query = known_rows(table.query_ids, collection.query_ids, table.path, "query")[table.query]
        known = known_rows(table.document_ids, collection.document_ids, table.path, "document")
        document = known[table.document]
        score = next(iter(table.scores.values()))
        order = np.lexsort((-score, query))
        pairs = _in_collection(query[order], document[order])
        return pairs if self.depth is None else _best(pairs, self.depth + extra)


@dataclass(frozen=True)
class LetorCandidates(CandidateSource):
    """The rows of LETOR files, which name their documents (``#docid = ID``).

    Attributes:
        files: the files. Rows of queries or documents that the collection lacks are left out.
    """

    files: Sequence[str | os.PathLike[str]] = ()

    def find(self, context: ColumnContext, extra: int) -> Pairs:
        if not self.files:
            raise InputError("candidates: letor needs files, files = ['train.txt', 'test.txt']")
        joined = [
            join_letor(read_rows(path), context.collection, on_missing="zero").pairs
            for path in self.files
        ]
        return Pairs(
            np.concatenate([pairs.query for pairs in joined]),
            np.concatenate([pairs.document for pairs in joined]),
        )


@dataclass(frozen=True)
class ModelCandidates(CandidateSource):
    """The best documents of a model that learns from texts alone.

    Attributes:
        model: its name: ``lsi``, ``vsm``, ... .
        depth: most documents per query. A document whose score is exactly 0 shares nothing with the
            query and is no candidate.
        params: of the model. terms: words, letter-trigrams or both. stream: the field.
    """

    model: str = "lsi"
    depth: int = 100
    params: Mapping[str, Any] = field(default_factory=dict)
    terms: Terms = "words"
    stream: str = "whole"

    def find(self, context: ColumnContext, extra: int) -> Pairs:
        recipe = LearnedColumn(
            "candidates", self.model, self.params, terms=self.terms, stream=self.stream
        )
        if recipe.kind.learns_from != "documents":
            usable = [name for name, kind in MODELS.items() if kind.learns_from == "documents"]
            raise InputError(
                f"candidates: model {self.model!r} learns from judgements, its candidates would "
                f"know the labels of what they are candidates for; use {', '.join(usable)}"
            )
        with TemporaryDirectory() as folder:
            trained = TrainedColumn(context, recipe, Path(folder))
            column = trained.fitted(np.arange(context.collection.n_queries))
        column.scores(context, np.zeros(0, dtype=np.int64))  # documents are made ready once
        n_documents, n_queries = context.collection.n_documents, context.collection.n_queries
        size = max(1, _SCORES // max(1, n_documents))
        starts = range(0, n_queries, size)

        def search(start: int) -> Pairs:
            rows = np.arange(start, min(start + size, n_queries))
            found = top_rows(column.scores(context, rows), self.depth + extra)
            return Pairs(rows[found.query], found.document)

        # One thread of linear algebra each: sums do not depend on how many threads there are.
        with threadpool_limits(1, user_api="blas"):
            parts = list(map_blocks(search, starts, context.threads))
        nothing = [np.zeros(0, dtype=np.int64)]
        return Pairs(
            np.concatenate([p.query for p in parts] or nothing),
            np.concatenate([p.document for p in parts] or nothing),
        )


_KINDS: dict[str, type[CandidateSource]] = {
    "bm25": BM25Candidates,
    "judged": JudgedCandidates,
    "run": RunCandidates,
    "letor": LetorCandidates,
    "model": ModelCandidates,
}


def source_kind(name: str, options: Mapping[str, Any]) -> type[CandidateSource]:
    """The class of a source, by its name and settings.

    Raises:
        InputError: there is none.
    """
    kind = options.get("source", "model" if find_model(name) else name)
    if kind not in _KINDS:
        near = get_close_matches(str(kind), [*_KINDS, *MODELS], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"candidates.{name}: no source {kind!r}; there are {', '.join(_KINDS)}{hint}"
        )
    return _KINDS[kind]


def candidate_sources(
    settings: Mapping[str, Mapping[str, Any]],
) -> dict[str, CandidateSource]:
    """Sources from their settings.

    Args:
        settings: by the source's name, which provenance shows: ``{"bm25": {"depth": 100}}``. The
            key ``source`` says of which kind it is (bm25, judged, run, letor, model); without it
            the name does, or is that of a model: ``{"lsi": {"depth": 50}}``.

    Raises:
        InputError: no source, an unknown kind, or an option that the kind does not have or take.
    """
    if not settings:
        raise InputError("candidates: name at least one source, bm25 = { depth = 100 }")
    found = {}
    for name, given in settings.items():
        what = f"candidates.{name}"
        if not isinstance(given, Mapping):
            raise InputError(f"{what} must be a table, {{ depth = 100 }}, got {given!r}")
        options = dict(given)
        kind = str(options.pop("source", "model" if find_model(name) else name))
        if kind == "model" and find_model(name):
            options.setdefault("model", name)
        made = source_kind(name, given)
        names = [part.name for part in fields(made)]  # type: ignore[arg-type]
        unknown = sorted(set(options) - set(names))
        if unknown:
            has = ", ".join(names) or "none"
            raise InputError(f"{what}: {kind} has no option {unknown[0]!r}; it has {has}")
        check_values(made, options, what)
        if (options.get("depth") or 1) < 1:
            raise InputError(f"{what}: depth must be 1 or more, got {options['depth']}")
        found[name] = made(**options)
    return found


def candidate_pairs(
    context: ColumnContext,
    candidates: int | Mapping[str, Mapping[str, Any]],
    *,
    on_empty: Literal["raise", "keep"] = "raise",
) -> Pairs:
    """The pairs of :func:`choose_candidates`."""
    return choose_candidates(context, candidates, on_empty=on_empty).pairs


def choose_candidates(
    context: ColumnContext,
    candidates: int | Mapping[str, Mapping[str, Any]],
    *,
    on_empty: Literal["raise", "keep"] = "raise",
) -> Candidates:
    """Candidates of every query.

    Args:
        candidates: settings of sources, see :func:`candidate_sources`; a number is how many of
            BM25's best.
        on_empty: queries for which no source has a document: "raise", or "keep" them without a
            pair. They have no rows then, and a ranking of them is empty; it must count 0 in every
            mean, or results of different candidates cannot be compared.

    Raises:
        InputError: wrong settings, a query has no candidate (unless kept), or none has.
    """
    if isinstance(candidates, int):
        candidates = {"bm25": {"depth": candidates}}
    found = find_candidates(context, candidate_sources(candidates))
    collection = context.collection
    counts = np.bincount(found.pairs.query, minlength=collection.n_queries)
    if not counts.any() or (on_empty == "raise" and not counts.all()):
        empty = np.flatnonzero(counts == 0)
        raise InputError(
            f"{len(empty)} of {collection.n_queries} queries have no candidate from "
            f"{', '.join(found.sources)} (for bm25: no document has one of their words); the first "
            f"is {collection.query_ids[empty[0]]!r} ({collection.query_texts[empty[0]]!r}). Remove "
            "these queries, add documents or sources, or keep them without rows by on_empty='keep'"
        )
    return found


def find_candidates(context: ColumnContext, sources: Mapping[str, CandidateSource]) -> Candidates:
    """The union of the candidates of all sources.

    The document that a query was made from is no candidate of it.

    Raises:
        InputError: as the sources.
    """
    collection = context.collection
    own = collection.query_sources
    found = []
    for source in sources.values():
        pairs = source.find(context, 0 if own is None else 1)
        if own is not None:
            kept = pairs.document != own[pairs.query]
            pairs = Pairs(pairs.query[kept], pairs.document[kept])
            depth = getattr(source, "depth", None)
            pairs = pairs if depth is None else _best(pairs, depth)
        pairs.check(collection.n_queries, collection.n_documents)
        found.append(pairs.query * collection.n_documents + pairs.document)
    union, first = np.unique(np.concatenate(found), return_index=True)
    order = np.lexsort((first, union // collection.n_documents))
    keys = union[order]
    return Candidates(
        Pairs(keys // collection.n_documents, keys % collection.n_documents),
        tuple(sources),
        np.column_stack([np.isin(keys, of_source) for of_source in found]),
    )


def top_rows(scores: NDArray[np.floating], depth: int) -> Pairs:
    """The columns of the highest scores of each row, best first, equal ones by increasing column;
    scores of exactly 0 are left out.

    Args:
        scores: [m, n].

    Returns:
        Row and column, as the query and document of pairs.
    """
    n = scores.shape[1]
    depth = min(depth, n)
    scores = np.where(scores == 0, -np.inf, scores)
    least = np.partition(scores, n - depth, axis=1)[:, n - depth]
    row, column = np.nonzero((scores >= least[:, None]) & (scores > -np.inf))
    order = np.lexsort((column, -scores[row, column], row))
    return _best(Pairs(row[order], column[order]), depth)


def _in_collection(query: NDArray[np.int64], document: NDArray[np.int64]) -> Pairs:
    """The pairs without those of which one side is -1."""
    known = (query >= 0) & (document >= 0)
    return Pairs(query[known], document[known])


def _best(pairs: Pairs, depth: int) -> Pairs:
    """The first ``depth`` pairs of each query; those of a query stand together."""
    first = np.flatnonzero(np.diff(pairs.query, prepend=-1))
    sizes = np.diff(np.append(first, len(pairs)))
    kept = np.arange(len(pairs)) - np.repeat(first, sizes) < depth
    return Pairs(pairs.query[kept], pairs.document[kept])
