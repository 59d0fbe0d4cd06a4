"""Single queries in detail: both rankings, documents that moved, and columns that moved them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.folds import Fold
from letor.judged_runs import best_first
from letor.rankers.registry import load_ranker
from ltr_base.parallel import map_blocks
from ltr_features.studies.kinds.ranking_config import SystemConfig
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.page.query_rankings import RankedDocument
from ltr_features.studies.statistics.contributions import column_contributions, is_exact

QUERIES = 2000
EXPLAINED = 100
"""Number of queries explained by columns if contributions must be sampled, which is slow."""
COLUMNS = 3
TOP = 10


def drill_down(
    experiment: RankingStages,
    output: SplitOutputs,
    pair: tuple[SystemConfig, SystemConfig],
    runs: Sequence[pd.DataFrame],
    differences: pd.Series,
) -> dict[str, list[RankedDocument]]:
    """Both rankings of the first fit, see :func:`query_rankings`, with the columns that moved each
    document.

    Args:
        pair: system and baseline. runs: their rankings, columns ``qid``, ``docno``, ``score``.
        differences: per-query differences of the primary measure, index = query ids.
    """
    folders = [output.first(system.name) for system in pair]
    found = query_rankings(differences, runs, experiment.qrels, experiment.title)
    parts = experiment.test_rows(output)
    first = set(list(found)[:EXPLAINED])

    def explained(fold: Fold) -> dict[str, list[RankedDocument]]:
        test = set(fold.test)
        sides = [
            _Side(system, folder / fold.name) for system, folder in zip(pair, folders, strict=True)
        ]
        wanted = test if all(side.exact for side in sides) else test & first
        rankings = {query: documents for query, documents in found.items() if query in wanted}
        return _with_columns(rankings, parts[fold.name], sides)

    by_query = dict(found)
    for rankings in map_blocks(explained, output.folds, experiment.threads):
        by_query |= rankings
    return by_query


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
        for d in sorted(seen, key=lambda d: (after.get(d, np.inf), before.get(d, np.inf)))
    ]


class _Side:
    """A system in one fold, and the contributions of its columns to its scores."""

    def __init__(self, system: SystemConfig, folder: Path) -> None:
        self._score, self._folder = system.score, folder
        self._ranker = None if self._score is not None else load_ranker(folder)
        self.exact = self._ranker is None or is_exact(self._ranker)

    def contributions(self, rows: RankingData, wanted: NDArray[np.bool_]) -> pd.DataFrame:
        """float64 [wanted rows, columns]: contributions to the scores, relative to the mean of the
        query's wanted rows and in units of their scores' spread."""
        if self._ranker is None:
            names = [str(self._score)]
            parts = rows.column(names[0])[wanted].astype(np.float64)[:, None]
        else:
            names = self._ranker.feature_names_
            parts = column_contributions(self._ranker, self._folder, rows, wanted)
        query = rows.query_index[wanted]
        for mask in (query == q for q in np.unique(query)):
            parts[mask] = _in_spreads(parts[mask])
        return pd.DataFrame(parts, columns=names)


def _in_spreads(parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """A query's contributions [rows, columns], relative to their means and in units of the scores'
    standard deviation; scores that differ by rounding alone are equal and have no unit."""
    parts = parts - parts.mean(axis=0)
    spread = parts.sum(axis=1).std()
    rounding = np.finfo(np.float32).eps * np.abs(parts).sum(axis=1).max()
    return parts / (spread if spread > rounding else 1.0)


def _with_columns(
    rankings: Mapping[str, Sequence[RankedDocument]], rows: RankingData, sides: Sequence[_Side]
) -> dict[str, list[RankedDocument]]:
    """The rankings with the columns that pushed each document in the direction of its move."""
    shown = {(query, doc.document) for query, docs in rankings.items() for doc in docs}
    keys = _keys(rows)
    wanted = np.array([key in shown for key in keys], dtype=bool)
    system, baseline = (side.contributions(rows, wanted) for side in sides)
    shifts = system.sub(baseline, fill_value=0.0)
    names, values = [str(name) for name in shifts.columns], shifts.to_numpy()
    shift = dict(zip((keys[i] for i in np.flatnonzero(wanted)), values, strict=True))

    def pushed(query: str, doc: RankedDocument) -> RankedDocument:
        if doc.before == doc.after or (query, doc.document) not in shift:
            return doc
        return replace(doc, columns=_movers(names, shift[query, doc.document], up=doc.up))

    return {query: [pushed(query, doc) for doc in docs] for query, docs in rankings.items()}


def _keys(rows: RankingData) -> list[tuple[str, str]]:
    """Query and document of each row."""
    assert rows.document_ids is not None  # as they are candidates
    pairs = zip(rows.query_index, rows.document_ids, strict=True)
    return [(rows.query_ids[query], str(document)) for query, document in pairs]


def _movers(
    names: Sequence[str], shift: NDArray[np.float64], *, up: bool
) -> list[tuple[str, float]]:
    """The columns that pushed a document in the direction of its move, with their shift."""
    pushed = shift if up else -shift
    order = np.argsort(-pushed, kind="stable")[:COLUMNS]
    return [(names[i], float(shift[i])) for i in order if pushed[i] > 0]
