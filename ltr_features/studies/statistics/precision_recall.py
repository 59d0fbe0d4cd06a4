"""Precision at levels of recall, and whether recall is meaningful with the given judgements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.judged_runs import best_first

LEVELS = np.linspace(0, 1, 11)
"""Levels of recall."""
FEW = 2
"""With fewer relevant documents per query (median) recall has no level between 0 and 1."""
DEPTH = 10
"""Number of first documents of a ranking of which the judged ones are counted."""
UNEQUAL = 0.1
"""Shares of judged documents that differ by more are worth a remark."""


def precision_recall(
    qrels: pd.DataFrame,
    curves: Mapping[str, Sequence[NDArray[np.float64]]],
    rankings: Mapping[str, pd.DataFrame],
) -> tuple[pd.DataFrame | None, str]:
    """Mean interpolated precision of each system at eleven levels of recall.

    Args:
        qrels: columns ``qid``, ``docno``, ``label``; relevant from 1.
        curves: the :func:`interpolated_precision` of each system's fits, whose mean is taken.
        rankings: a run of each system, columns ``qid``, ``docno``, ``score``.

    Returns:
        A frame with a row per level, columns ``recall`` and the systems' names, and a note needed
        to interpret it; or None, and the reason.
    """
    counts = qrels[qrels["label"] >= 1].groupby("qid").size()
    if counts.empty or counts.median() < FEW:
        return None, (
            "There is no precision-recall curve: most queries have fewer than two relevant "
            "documents, so recall is all or nothing, and the rank of that document says everything."
        )
    note = (
        "Recall is the share of a query's judged relevant documents (median "
        f"{counts.median():g}); if a ranking ends before all are found, precision is 0 from there. "
        f"{_judged(qrels, rankings)}"
    )
    means = {name: np.mean(fits, axis=0) for name, fits in curves.items()}
    return pd.DataFrame({"recall": LEVELS, **means}), note


def interpolated_precision(qrels: pd.DataFrame, run: pd.DataFrame) -> NDArray[np.float64]:
    """float64 [11]: greatest precision at any rank where recall has reached the level, mean over
    the queries with a relevant document (TREC's iprec_at_recall); equal scores are ordered by
    document id. NaN without any relevant document."""
    relevant = qrels.loc[qrels["label"] >= 1, ["qid", "docno"]].assign(relevant=True)
    ranked = run[["qid", "docno", "score"]].merge(relevant, how="left", on=["qid", "docno"])
    ranked = best_first(ranked)
    ranked["rank"] = ranked.groupby("qid").cumcount() + 1
    hits = ranked[ranked["relevant"].notna()]
    found = hits.groupby("qid").cumcount() + 1
    precision = found / hits["rank"]
    best = precision[::-1].groupby(hits["qid"]).cummax()[::-1]
    best.index = pd.MultiIndex.from_arrays([hits["qid"], found])
    totals = relevant.groupby("qid").size()
    curve = np.empty(len(LEVELS))
    for place, level in enumerate(LEVELS):
        needed = np.maximum(np.ceil(level * totals - 1e-9), 1).astype(np.int64)
        reached = pd.MultiIndex.from_arrays([totals.index, needed])
        curve[place] = best.reindex(reached, fill_value=0.0).mean()
    return curve


def judged_shares(
    qrels: pd.DataFrame, rankings: Mapping[str, pd.DataFrame]
) -> dict[str, float] | None:
    """Which share of the first ``DEPTH`` documents of each ranking is judged, in [0, 1]; None if
    only relevant documents are listed, so that the others may have been judged, too."""
    if not (qrels["label"] < 1).any():
        return None
    judged = qrels[["qid", "docno"]].assign(judged=True)
    shares = {}
    for name, run in rankings.items():
        run = best_first(run[run["qid"].isin(set(qrels["qid"]))])
        first = run.groupby("qid").head(DEPTH).merge(judged, how="left", on=["qid", "docno"])
        shares[name] = float(first["judged"].notna().mean())
    return shares


def coverage_remarks(qrels: pd.DataFrame, rankings: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """A remark, without a full stop, if the judgements cover the rankings unequally: a system that
    finds documents that nobody judged is underrated (C. Buckley, E. M. Voorhees, SIGIR 2004)."""
    shares = judged_shares(qrels, rankings)
    if shares and max(shares.values()) - min(shares.values()) > UNEQUAL:
        listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
        yield (
            f"of the first {DEPTH} documents, unequal shares are judged: {listed}; others count as "
            "not relevant, which underrates the systems with smaller shares if some are relevant"
        )


def _judged(qrels: pd.DataFrame, rankings: Mapping[str, pd.DataFrame]) -> str:
    """A sentence on how completely the judgements cover the first documents of the rankings."""
    shares = judged_shares(qrels, rankings)
    if shares is None:
        return "The judgements list only relevant documents; all others count as not relevant."
    least = min(shares.values())
    percent = math.floor(100 * least + 1e-9)  # of what is "at least", 99.6 is not 100
    doubt = " Judgements of relevant documents are thus likely missing, and recall is too high."
    return (
        f"At least {percent}% of the first {DEPTH} documents of each ranking are judged; "
        f"others count as not relevant.{doubt if least < 0.5 else ''}"
    )
