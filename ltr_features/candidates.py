"""Candidates: the documents to rank for each query, from one source or the union of several.

No source looks at labels except ``judged``, which takes the judged pairs, relevant or not. Sources
that train a model train it on texts alone, so candidates are the same in every fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.former import present_names
from ltr_base.names import counted, nearest, quoted
from ltr_features.candidate_kinds import (
    BM25Candidates,
    CandidateSource,
    Doc2VecCandidates,
    JudgedCandidates,
    LetorCandidates,
    ModelCandidates,
    RunCandidates,
    best,
)
from ltr_features.columns.context import ColumnContext
from ltr_features.parameters import check_call, check_range
from ltr_features.text.candidates import PoolRecall, candidate_recall
from ltr_features.text.collection import FORMER_KEYS, Collection, Judgements, Pairs
from ltr_features.text.id_rows import places_of
from ssi_models.registry import MODELS, find_model

#: From this share on, queries without candidates are worth a remark.
_MANY_EMPTY = 0.1


@dataclass(frozen=True)
class Candidates:
    """Candidates of all queries.

    Attributes:
        pairs: the pairs, ordered by query; within a query first those of the first source, best
            first, then those that the second source adds, and so on.
        sources: names of the sources.
        found_by: bool [n, number of sources], which sources found the pair.
        n_unknown: by source, the number of pairs in its files that were left out because the
            collection lacks their query or document.
    """

    pairs: Pairs
    sources: tuple[str, ...]
    found_by: NDArray[np.bool_]
    n_unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def left_out(self) -> list[str]:
        """Remarks on pairs that were left out, one sentence each, without a full stop."""
        return [
            f"candidates {name}: {n:,} of its pairs name queries or documents that are not in the "
            "collection, and were left out"
            for name, n in self.n_unknown.items()
            if n
        ]

    def remarks(self, collection: Collection) -> list[str]:
        """All remarks on the candidates: ``left_out``, and :func:`recall_remarks`."""
        recall = candidate_recall(self.pairs, collection.judgements, collection.n_queries)
        judged = np.unique(collection.judgements.query)
        n_empty = len(np.setdiff1d(judged, self.pairs.query))
        of_recall = recall_remarks(recall.n_found, recall.n_relevant, n_empty, len(judged))
        return [*self.left_out, *of_recall]

    @property
    def origins(self) -> list[str] | None:
        """The sources of each pair, such as ``bm25+lsi``; None if there is only one source."""
        if len(self.sources) == 1:
            return None
        return ["+".join(compress(self.sources, row)) for row in self.found_by.tolist()]

    def recalls(self, judgements: Judgements, n_queries: int) -> dict[str, PoolRecall]:
        """The recall of each source's candidates, by the source's name."""
        return {
            name: candidate_recall(self.pairs.select(found), judgements, n_queries)
            for name, found in zip(self.sources, self.found_by.T, strict=True)
        }


def recall_remarks(n_found: int, n_relevant: int, n_empty: int, n_judged: int) -> list[str]:
    """Remarks, without a full stop, if most relevant documents are not among the candidates, and if
    many queries have no candidates.

    Args:
        n_found: number of relevant (query, document) pairs among the candidates.
        n_relevant: number of all relevant pairs.
        n_empty: number of judged queries without candidates.
        n_judged: number of all judged queries.
    """
    told = []
    if 2 * n_found < n_relevant:
        told.append(
            f"candidates: only {100 * n_found / n_relevant:.0f} % of the relevant documents are "
            "among them, and no ranker can show the others: take more (depth), also of sources "
            "that do not need the query's words (lsi, or vsm with terms=letter-trigrams), or, if "
            "other documents are judged too, judged"
        )
    if n_empty and n_empty >= _MANY_EMPTY * n_judged:
        told.append(
            f"candidates: {n_empty:,} of {counted(n_judged, 'query')} have none, so that no column "
            "and no ranker can help them: if people spell what documents spell otherwise, and no "
            "source compares letters, take one that does, too (vsm with terms=letter-trigrams)"
        )
    return told


KINDS: dict[str, type[CandidateSource]] = {
    "bm25": BM25Candidates,
    "judged": JudgedCandidates,
    "run": RunCandidates,
    "letor": LetorCandidates,
    "model": ModelCandidates,
    "doc2vec": Doc2VecCandidates,
}


def source_kind(name: str, options: Mapping[str, Any]) -> type[CandidateSource]:
    """The class of a source, by its name and settings.

    Raises:
        InputError: there is no such kind of source.
    """
    kind = options.get("source", "model" if find_model(name) else name)
    if kind not in KINDS:
        known = nearest(str(kind), [*KINDS, *MODELS])
        raise InputError(f"candidates.{name}: there is no source {kind!r}; {known}")
    return KINDS[kind]


def candidate_sources(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, CandidateSource]:
    """Create sources from their settings.

    Args:
        settings: by source name, which is shown in provenance: ``{"bm25": {"depth": 100}}``. The
            key ``source`` is the kind (bm25, judged, run, letor, model); without it the name is
            the kind, or the name of a model: ``{"lsi": {"depth": 50}}``.

    Raises:
        InputError: no source, an unknown kind, an unknown option, or a wrong or missing value of
            one, such as a model that learns from judgements.
    """
    if not settings:
        raise InputError("candidates: name at least one source, bm25 = { depth = 100 }")
    found = {}
    for name, given in settings.items():
        what = f"candidates.{name}"
        if not isinstance(given, Mapping):
            raise InputError(
                f"{what}: write a source and its options, bm25 = {{ depth = 100 }} or "
                f"judged = {{}}, got {given!r}"
            )
        kind, options = source_kind(name, given), present_names(given, FORMER_KEYS)
        options.pop("source", None)
        if kind is ModelCandidates and find_model(name):
            options.setdefault("model", name)
        check_call(kind, options, what)
        if options.get("depth") is not None:
            check_range(f"{what}: depth", options["depth"], 1)
        found[name] = kind(**options)
        found[name].check()
    return found


def choose_candidates(
    context: ColumnContext, candidates: int | Mapping[str, Mapping[str, Any]]
) -> Candidates:
    """Find the candidates of every query.

    A query for which no source finds a document has no pairs. Its ranking is empty and must count
    as 0 in every mean, or results for different candidates cannot be compared.

    Args:
        candidates: settings of sources, see :func:`candidate_sources`; or a number, the depth of
            BM25.

    Raises:
        InputError: wrong settings, no queries, or no query has a candidate.
    """
    if isinstance(candidates, int):
        candidates = {"bm25": {"depth": candidates}}
    sources, collection = candidate_sources(candidates), context.collection
    if not collection.n_queries:
        raise InputError(f"collection {collection.name!r} has no queries: there is nothing to rank")
    found = find_candidates(context, sources)
    if not len(found.pairs):
        raise InputError(
            f"none of the {collection.n_queries} queries has a candidate from "
            f"{', '.join(found.sources)} (for bm25: no document has one of their words, or every "
            f"document has); the first is {collection.query_ids[0]!r} "
            f"({quoted(collection.query_texts[0])}). "
            f"{'; '.join(context.unknown_words) or 'Add documents or sources'}"
        )
    return found


def find_candidates(context: ColumnContext, sources: Mapping[str, CandidateSource]) -> Candidates:
    """The union of the candidates of all sources.

    The document that a query was made from is never a candidate for it.

    Raises:
        InputError: as raised by the sources.
    """
    collection = context.collection
    own = collection.query_sources
    found, unknown = [], {}
    for name, source in sources.items():
        pairs, unknown[name] = source.find(context, 0 if own is None else 1)
        if own is not None:
            pairs = pairs.select(pairs.document != own[pairs.query])
            depth = getattr(source, "depth", None)
            pairs = pairs if depth is None else best(pairs, depth)
        pairs.check(collection.n_queries, collection.n_documents)
        found.append(pairs.query * collection.n_documents + pairs.document)
    union, first = np.unique(np.concatenate(found), return_index=True)
    order = np.lexsort((first, union // collection.n_documents))
    keys = union[order]
    return Candidates(
        Pairs(keys // collection.n_documents, keys % collection.n_documents),
        tuple(sources),
        np.column_stack([places_of(keys, np.sort(of_source)) >= 0 for of_source in found]),
        unknown,
    )
