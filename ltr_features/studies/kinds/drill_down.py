"""What happened to single queries: documents that moved, and the columns that moved them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.rankers.registry import load_ranker
from letor.trec import read_run
from ltr_features.studies.kinds.ranking_config import SystemConfig
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.page.report import Move, QueryMoves
from ltr_features.studies.statistics.contributions import column_contributions

QUERIES = 24
DOCUMENTS = 6
COLUMNS = 3
TOP = 10


def drill_down(
    experiment: RankingStages,
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
    runs = [read_run(output.systems[s.name].path / "run.txt.gz") for s in pair]
    fold_of = {q: fold.name for fold in output.folds for q in fold.test}

    def shares(query: str) -> list[pd.DataFrame]:
        rows = _rows_of(experiment.part(output.split, fold_of[query], "test"), query)
        return [_contributions(output, system, fold_of[query], rows) for system in pair]

    return query_moves(differences, runs, experiment.labels, experiment.title, shares)


def query_moves(
    differences: pd.Series,
    runs: Sequence[pd.DataFrame],
    labels: Callable[[str], Mapping[str, int]],
    title: Callable[[str], str],
    shares: Callable[[str], Sequence[pd.DataFrame]] | None = None,
) -> list[QueryMoves]:
    """The documents that moved most between two rankings, see :func:`drill_down`.

    Args:
        differences: per-query differences of a measure, index = query ids.
        runs: of system and baseline, columns ``qid``, ``docno``, ``score``.
        labels: the judged documents of a query and their grades. title: of a document, or "".
        shares: for system and baseline, what each column adds to the score of each document of a
            query; None where no ranker can say.
    """
    chosen = _extreme(differences)
    by_query = [_ranks(run, chosen) for run in runs]
    found = []
    for query in chosen:
        ranks = pd.concat([r.get(query, pd.Series(dtype=float)) for r in by_query], axis=1)
        ranks.columns = ["after", "before"]
        moved = _moved(ranks, labels(query))
        parts = shares(query) if shares is not None else ()
        moves = [
            Move(
                document=str(document),
                title=title(str(document)),
                label=int(row["label"]),
                before=_rank(row["before"]),
                after=_rank(row["after"]),
                columns=_movers(parts[0], parts[1], str(document), row) if parts else (),
            )
            for document, row in moved.iterrows()
        ]
        found.append(QueryMoves(query, moves))
    return found


def _extreme(differences: pd.Series) -> list[str]:
    ordered = differences.sort_values(ascending=False, kind="stable")
    half = QUERIES // 2
    gains = [str(q) for q in ordered[ordered > 0].index[:half]]
    losses = [str(q) for q in ordered[ordered < 0].index[::-1][:half]]
    return [*gains, *losses]


def _ranks(run: pd.DataFrame, queries: Sequence[str]) -> dict[str, pd.Series]:
    """Rank from 1 of each document, by query, in the order that the measures take: of equal scores
    the smaller id is first."""
    run = run[run["qid"].isin(set(queries))]
    run = run.sort_values(["score", "docno"], ascending=[False, True], kind="stable")
    return {
        str(query): pd.Series(np.arange(1, len(rows) + 1), index=rows["docno"])
        for query, rows in run.groupby("qid", sort=False)
    }


def _moved(ranks: pd.DataFrame, labels: Mapping[str, int]) -> pd.DataFrame:
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
        ranker = load_ranker(folder)
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
