"""What happened to single queries: documents that moved, and the columns that moved them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.rankers.base import Ranker
from letor.trec import read_run
from reports.config import SystemConfig
from reports.contributions import column_contributions
from reports.experiment import Experiment, SplitOutputs
from reports.report import Move, QueryMoves

QUERIES = 24
DOCUMENTS = 6
COLUMNS = 3
TOP = 10


def drill_down(
    experiment: Experiment,
    output: SplitOutputs,
    pair: tuple[SystemConfig, SystemConfig],
    differences: pd.Series,
) -> list[QueryMoves]:
    """The documents that moved most, for the queries with the largest gains and losses.

    Args:
        pair: system and baseline.
        differences: per-query differences of the primary measure, index = query ids.

    Returns:
        At most ``QUERIES`` queries, half of them gains, the largest changes first; of each at most
        ``DOCUMENTS`` that are among the first ``TOP`` of either ranking, relevant ones first.
    """
    chosen = _extreme(differences)
    runs = [_ranks(output.systems[s.name].path / "run.txt.gz", chosen) for s in pair]
    fold_of = {q: fold.name for fold in output.folds for q in fold.test}
    found = []
    for query in chosen:
        ranks = pd.concat([r.get(query, pd.Series(dtype=float)) for r in runs], axis=1)
        ranks.columns = ["after", "before"]
        moved = _moved(ranks, experiment.labels(query))
        rows = _rows_of(experiment.part(output.split, fold_of[query], "test"), query)
        shares = [_contributions(output, system, fold_of[query], rows) for system in pair]
        found.append(
            QueryMoves(
                query,
                [
                    Move(
                        document=str(document),
                        title=experiment.title(str(document)),
                        label=int(row["label"]),
                        before=_rank(row["before"]),
                        after=_rank(row["after"]),
                        columns=_movers(shares[0], shares[1], str(document), row),
                    )
                    for document, row in moved.iterrows()
                ],
            )
        )
    return found


def _extreme(differences: pd.Series) -> list[str]:
    ordered = differences.sort_values(ascending=False, kind="stable")
    half = QUERIES // 2
    gains = [str(q) for q in ordered[ordered > 0].index[:half]]
    losses = [str(q) for q in ordered[ordered < 0].index[::-1][:half]]
    return [*gains, *losses]


def _ranks(path: Path, queries: Sequence[str]) -> dict[str, pd.Series]:
    """Rank from 1 of each document, by query."""
    run = read_run(path)
    run = run[run["qid"].isin(set(queries))]
    return {
        str(query): pd.Series(np.arange(1, len(rows) + 1), index=rows["docno"])
        for query, rows in run.groupby("qid", sort=False)
    }


def _moved(ranks: pd.DataFrame, labels: dict[str, int]) -> pd.DataFrame:
    """Documents that moved among the first of either ranking, relevant ones and large moves
    first."""
    seen = ranks[(ranks.min(axis=1) <= TOP) & (ranks["before"] != ranks["after"])].copy()
    seen["label"] = [labels.get(str(document), 0) for document in seen.index]
    # A move counts by the change in discount, as it does for the measures.
    discount = 1 / np.log2(1 + seen[["before", "after"]].fillna(1e6))
    seen["size"] = (discount["after"] - discount["before"]).abs() * (0.5 + seen["label"])
    return seen.sort_values("size", ascending=False, kind="stable").head(DOCUMENTS)


def _rank(value: float) -> int | None:
    return None if pd.isna(value) else int(value)


def _rows_of(data: RankingData, query: str) -> RankingData:
    return data.select_queries([query])


def _contributions(
    output: SplitOutputs, system: SystemConfig, fold: str, rows: RankingData
) -> pd.DataFrame:
    """What each column adds to the score of each row, against the mean of the query's rows and in
    units of the score's spread. Index: document ids."""
    if system.score is not None:
        names = [system.score]
        parts = rows.column(system.score).astype(np.float64)[:, None]
        parts = parts - parts.mean(axis=0)
    else:
        folder = output.systems[system.name].path / fold
        ranker = Ranker.load(folder)
        names = ranker.feature_names_
        parts = column_contributions(ranker, folder, rows)
    spread = parts.sum(axis=1).std()
    ids = [] if rows.document_ids is None else list(rows.document_ids)
    return pd.DataFrame(parts / spread if spread > 0 else parts, ids, names)


def _movers(
    system: pd.DataFrame, baseline: pd.DataFrame, document: str, row: pd.Series
) -> list[tuple[str, float]]:
    """The columns that pushed a document the way it moved, with their shift."""
    shift = system.loc[document].sub(baseline.loc[document], fill_value=0.0)
    up = pd.isna(row["before"]) or row["after"] < row["before"]
    pushed = shift[shift > 0] if up else shift[shift < 0]
    order = pushed.abs().sort_values(ascending=False, kind="stable").index[:COLUMNS]
    return [(str(name), float(pushed[name])) for name in order]
