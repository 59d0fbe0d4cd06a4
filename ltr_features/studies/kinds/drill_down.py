"""Single queries in detail: both rankings, documents that moved, and columns that moved them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.folds import Fold
from letor.rankers.contributions import column_contributions, is_exact
from letor.rankers.registry import load_ranker
from ltr_base.parallel import map_blocks
from ltr_features.studies.kinds.ranking_config import SystemConfig
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.page.query_rankings import RankedDocument, query_rankings

EXPLAINED = 100
"""Number of queries explained by columns if contributions must be sampled, which is slow."""
COLUMNS = 3


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


class _Side:
    """A system in one fold, and the contributions of its columns to its scores."""

    def __init__(self, system: SystemConfig, folder: Path) -> None:
        self._score = system.score
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
            parts = column_contributions(self._ranker, rows, wanted)
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
