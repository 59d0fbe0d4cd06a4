"""Candidate sources: BM25, judged pairs, runs, LETOR files, and models that learn from texts."""

from __future__ import annotations

import dataclasses
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from letor.column_names import read_rows
from letor.dataset import distinct
from letor.errors import InputError
from ltr_base.blas import one_blas_thread
from ltr_base.names import listed
from ltr_base.parallel import map_blocks
from ltr_base.slices import slices
from ltr_features.columns.context import ColumnContext
from ltr_features.columns.fitted import FittedColumn, restored_column
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.trained import TrainedColumn
from ltr_features.columns.vector_sources import Doc2VecSource
from ltr_features.sources.files import judgement_rows
from ltr_features.sources.letor_join import join_letor
from ltr_features.sources.score_tables import check_named, read_scores
from ltr_features.text.candidates import BM25Retriever
from ltr_features.text.collection import Pairs
from ltr_features.text.id_rows import known_rows
from ltr_features.text.index import WHOLE
from ltr_features.text.letter_ngrams import Terms
from ssi_models.registry import MODELS

#: Number of (query, document) scores that each thread holds in memory at once.
_SCORES = 2**23


class Found(NamedTuple):
    """Candidates that a source finds.

    Attributes:
        pairs: the pairs; those of a query are in the order of its ranking.
        n_unknown: number of further pairs in a file whose query or document the collection lacks.
    """

    pairs: Pairs
    n_unknown: int = 0


class Search(NamedTuple):
    """How to find candidates of queries that were not there.

    Attributes:
        depth: maximum number of documents. model: the fitted model whose best documents they are,
            or None for those of BM25.
    """

    depth: int
    model: FittedColumn | None = None


class CandidateSource(ABC):
    """Abstract base class of candidate sources."""

    def check(self) -> None:  # noqa: B027  # most sources need none
        """Check the options, without a look at a collection.

        Raises:
            InputError: no collection can have candidates by them.
        """

    @abstractmethod
    def find(self, context: ColumnContext, extra: int) -> Found:
        """Find the candidates; a source with a depth returns ``extra`` more for each query.

        Raises:
            InputError: a file cannot be read or belongs to another collection.
        """

    def search(self, context: ColumnContext) -> Search | None:
        """How to find candidates of other queries among the same documents; None if the source
        cannot."""
        return None

    def stored_search(self, model: Path | None) -> Search | None:
        """What :meth:`search` returned, read from the file of its model, None if it had none.

        Raises:
            InputError: the file is missing or damaged.
        """
        return None


@dataclass(frozen=True)
class BM25Candidates(CandidateSource):
    """BM25's best documents, over all fields together.

    Attributes:
        depth: maximum number of documents per query.
    """

    depth: int = 100

    def find(self, context: ColumnContext, extra: int) -> Found:
        found, _ = bm25_retriever(context).top(
            context.query_counts, self.depth + extra, threads=context.threads
        )
        return Found(found)

    def search(self, context: ColumnContext) -> Search:
        return Search(self.depth)

    def stored_search(self, model: Path | None) -> Search:
        return Search(self.depth)


def bm25_retriever(context: ColumnContext) -> BM25Retriever:
    """The BM25 retriever over all fields together, built once per context."""
    return context.cached("bm25 retriever", lambda: BM25Retriever(context.index))


@dataclass(frozen=True)
class JudgedCandidates(CandidateSource):
    """The judged pairs, relevant or not, shuffled within queries: judgements often begin with the
    relevant ones, and where scores tie, measures keep the order of the rows.

    Attributes:
        path: a file to use in place of the collection's, see :func:`~.files.judgement_rows`.
    """

    path: str | os.PathLike[str] | None = None

    def find(self, context: ColumnContext, extra: int) -> Found:
        collection = context.collection
        if self.path is None:
            judged = collection.judgements
            return Found(_shuffled(Pairs(judged.query, judged.document)))
        rows = [row for _, row in judgement_rows(self.path)]
        found = []
        for side, wanted in (
            ("query", collection.query_ids),
            ("document", collection.document_ids),
        ):
            ids, number = distinct([row[side] for row in rows])
            found.append(known_rows(ids, wanted, self.path, side)[number])
        known = _in_collection(*found)
        return known._replace(pairs=_shuffled(known.pairs))


@dataclass(frozen=True)
class RunCandidates(CandidateSource):
    """The documents of a ranking made elsewhere.

    Attributes:
        path: a TREC run or a table of scores, see :func:`~.score_tables.read_scores`.
        depth: maximum number of documents per query, by highest score; all by default.
        query, document, scores: see ``read_scores``. With a depth there must be one score; without,
            the first of several orders the documents.
    """

    path: str | os.PathLike[str] = ""
    depth: int | None = None
    query: str | None = None
    document: str | None = None
    scores: Sequence[str] = ()

    def check(self) -> None:
        if not os.fspath(self.path):
            raise InputError("candidates: run needs a path, path = 'engine.run'")

    def find(self, context: ColumnContext, extra: int) -> Found:
        named: dict[str, Any] = {
            "query": self.query, "document": self.document, "scores": self.scores
        }  # fmt: skip
        check_named([self.path], **named)
        table = read_scores(self.path, **named)
        if self.depth is not None and len(table.scores) > 1:
            raise InputError(
                f"{table.path} has several scores, {listed([*table.scores], 3)}: name the one by "
                "which candidates are chosen, scores = ['NAME']"
            )
        collection = context.collection
        query = known_rows(table.query_ids, collection.query_ids, table.path, "query")[table.query]
        known = known_rows(table.document_ids, collection.document_ids, table.path, "document")
        document = known[table.document]
        score = next(iter(table.scores.values()))
        order = np.lexsort((-score, query))
        found = _in_collection(query[order], document[order])
        if self.depth is None:
            return found
        return found._replace(pairs=best(found.pairs, self.depth + extra))


@dataclass(frozen=True)
class LetorCandidates(CandidateSource):
    """The rows of LETOR files, which name their documents (``#docid = ID``).

    Attributes:
        files: the files; rows whose query or document the collection lacks are left out.
    """

    files: Sequence[str | os.PathLike[str]] = ()

    def check(self) -> None:
        if not self.files:
            raise InputError("candidates: letor needs files, files = ['train.txt', 'test.txt']")

    def find(self, context: ColumnContext, extra: int) -> Found:
        joined = [
            join_letor(read_rows(path), context.collection, on_missing="zero")
            for path in self.files
        ]
        pairs = Pairs(
            np.concatenate([join.pairs.query for join in joined]),
            np.concatenate([join.pairs.document for join in joined]),
        )
        return Found(pairs, sum(join.n_without_text for join in joined))


@dataclass(frozen=True)
class ModelCandidates(CandidateSource):
    """The best documents by a model that learns from texts alone.

    Attributes:
        model: name of the model: ``lsi``, ``vsm``, ... .
        depth: maximum number of documents per query. A document with a score of exactly 0 shares
            nothing with the query and is not a candidate.
        params: parameters of the model. terms: words, letter-trigrams or both. field: the field.
    """

    model: str = "lsi"
    depth: int = 100
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    terms: Terms = "words"
    field: str = "whole"

    @property
    def recipe(self) -> LearnedColumn:
        """The recipe of the model's scores."""
        return LearnedColumn(
            "candidates", self.model, self.params, terms=self.terms, field=self.field
        )

    def check(self) -> None:
        if self.recipe.looks_at_labels:
            usable = [name for name, kind in MODELS.items() if not kind().looks_at_labels]
            if self.recipe.kind.learns_from == "documents":
                usable.append(f"{self.model} with a lambda2, which judgements choose by default")
            raise InputError(
                f"candidates: model {self.model!r} learns from judgements, so its candidates would "
                f"leak the labels of the rows that they form; use {', '.join(usable)}"
            )

    def find(self, context: ColumnContext, extra: int) -> Found:
        model = self._fitted(context)
        model.scores(context, np.zeros(0, dtype=np.int64))  # prepares the documents once
        pairs = _searched(context, self.depth + extra, lambda rows: model.scores(context, rows))
        return Found(pairs)

    def search(self, context: ColumnContext) -> Search:
        return Search(self.depth, self._fitted(context))

    def stored_search(self, model: Path | None) -> Search | None:
        return None if model is None else Search(self.depth, restored_column(self.recipe, model))

    def _fitted(self, context: ColumnContext) -> FittedColumn:
        with TemporaryDirectory() as folder:
            trained = TrainedColumn(context, self.recipe, Path(folder))
            return trained.fitted(np.arange(context.collection.n_queries))


@dataclass(frozen=True)
class Doc2VecCandidates(Doc2VecSource, CandidateSource):
    """The documents whose doc2vec vectors have the highest cosine with the query's vector.

    Attributes:
        depth: maximum number of documents per query. field: the documents' field. Others: see
            ``Doc2VecSource``.
    """

    depth: int = 100
    field: str = WHOLE

    def find(self, context: ColumnContext, extra: int) -> Found:
        if self.field not in context.index:
            raise InputError(f"candidates: doc2vec: the collection has no field {self.field!r}")
        documents = self.field_vectors(context, self.field)
        queries = self.query_vectors(context)
        pairs = _searched(context, self.depth + extra, lambda rows: queries[rows] @ documents.T)
        return Found(pairs)


def _searched(
    context: ColumnContext, depth: int, scores: Callable[[NDArray[np.int64]], NDArray[np.floating]]
) -> Pairs:
    """The best documents of every query; ``scores`` returns [n, n_documents] for n query rows."""
    n_documents, n_queries = context.collection.n_documents, context.collection.n_queries
    blocks = slices(n_queries, _SCORES // max(1, n_documents))

    def search(block: slice) -> Pairs:
        rows = np.arange(block.start, block.stop)
        found = top_rows(scores(rows), depth)
        return Pairs(rows[found.query], found.document)

    # BLAS runs on one thread, so that sums do not depend on the number of threads.
    with one_blas_thread():
        parts = list(map_blocks(search, blocks, context.threads))
    nothing = [np.zeros(0, dtype=np.int64)]
    return Pairs(
        np.concatenate([p.query for p in parts] or nothing),
        np.concatenate([p.document for p in parts] or nothing),
    )


def top_rows(scores: NDArray[np.floating], depth: int) -> Pairs:
    """The columns with the highest scores in each row, best first, ties by increasing column;
    scores of exactly 0 are left out.

    Args:
        scores: [m, n]. depth: maximum number of columns per row.

    Returns:
        Rows and columns, as the queries and documents of pairs.
    """
    n = scores.shape[1]
    depth = min(depth, n)
    scores = np.where(scores == 0, -np.inf, scores)
    least = np.partition(scores, n - depth, axis=1)[:, n - depth]
    row, column = np.nonzero((scores >= least[:, None]) & (scores > -np.inf))
    order = np.lexsort((column, -scores[row, column], row))
    return best(Pairs(row[order], column[order]), depth)


def _in_collection(query: NDArray[np.int64], document: NDArray[np.int64]) -> Found:
    """The pairs whose query and document are both known (not -1), with the number of others."""
    known = (query >= 0) & (document >= 0)
    return Found(Pairs(query[known], document[known]), int((~known).sum()))


def _shuffled(pairs: Pairs) -> Pairs:
    """The pairs ordered by query, and within a query at random (the same for the same pairs)."""
    order = np.lexsort((np.random.default_rng(0).permutation(len(pairs)), pairs.query))
    return pairs.select(order)


def best(pairs: Pairs, depth: int) -> Pairs:
    """The first ``depth`` pairs of each query; the pairs of a query must be contiguous."""
    first = np.flatnonzero(np.diff(pairs.query, prepend=-1))
    sizes = np.diff(np.append(first, len(pairs)))
    kept = np.arange(len(pairs)) - np.repeat(first, sizes) < depth
    return pairs.select(kept)
