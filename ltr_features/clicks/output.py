"""Output of click judgements, as files and tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from letor.files import atomic_path, check_replaced, write_json
from letor.trec import write_qrels
from ltr_base.names import counted
from ltr_features.clicks.base import ClickModel
from ltr_features.clicks.judging import (
    ClickJudgements,
    WeightedPairs,
    describe,
    inverse_propensity,
    weighted_pairs,
)
from ltr_features.clicks.log import ClickLog
from ltr_features.text.query_texts import normalised

_DESCRIPTION = "clicks.json"


def check_folder(folder: Path) -> None:
    """Raise InputError for a folder that holds other files than :func:`write_judgements` writes."""
    check_replaced(folder, _DESCRIPTION, "click judgements")


def check_ids(log: ClickLog) -> None:
    """Raise InputError for ids that ``qrels.txt`` cannot hold, before a model is fitted; it quotes
    no query, which may be a text."""
    blank = [len(query.split()) != 1 for query in log.query_ids]
    if not log.has_texts and any(blank):
        raise InputError(
            f"{sum(blank):,} of {len(blank):,} query ids have blanks, as texts do; leave out the "
            "rule queries=id, so that texts get ids"
        )
    wrong = next((d for d in log.document_ids if len(d.split()) != 1), None)
    if wrong is not None:
        raise InputError(
            f"document id {wrong!r} has blanks, which qrels.txt cannot hold: change it"
        )


def write_judgements(
    judgements: ClickJudgements, folder: Path, provenance: Mapping[str, Any]
) -> list[str]:
    """Write a folder of judgements; .tsv files are tab-separated with a header line.

    - ``queries.tsv``: id, text. Ids are those of the source ``clicks`` (see ``ids_of_texts``) if
      the log's queries are texts, else the log's own.
    - ``judgements.tsv``: the rows of ``ClickJudgements.frame``, queries by id.
    - ``qrels.txt``: pairs with a grade, in TREC's format.
    - ``pairs.tsv``: query, document, weight of pairs that are likely good, see ``weighted_pairs``.
    - ``examination.tsv``: a row per position, from 1, see :func:`curve`.
    - ``clicks.json``: provenance, counts and remarks.

    Returns:
        Remarks on the model and its judgements for users, one sentence each.

    Raises:
        InputError: the folder holds something else, or a document id has spaces (not in qrels).
    """
    check_folder(folder)
    log = judgements.log
    named = np.asarray(log.made_ids, dtype=object)
    documents = np.asarray(log.document_ids, dtype=object)
    table = judgements.frame().assign(query=named[log.pair_query])
    graded = table[table["grade"] >= 0]
    remarks = judgements.remarks
    try:
        pairs = weighted_pairs(judgements)
    except InputError as error:
        none = np.zeros(0, np.int64)
        pairs = WeightedPairs(none, none, none.astype(np.float32))
        remarks.append(f"pairs.tsv is empty: {error}")
    frames = {
        "queries.tsv": pd.DataFrame({"query": log.made_ids, "text": log.query_ids}),
        "judgements.tsv": table,
        "pairs.tsv": pd.DataFrame(
            {
                "query": named[pairs.query],
                "document": documents[pairs.document],
                "weight": pairs.weight,
            }
        ),
        "examination.tsv": curve(judgements.model),
    }
    with atomic_path(folder, kind="folder") as temporary:
        temporary.mkdir()
        for name, frame in frames.items():
            frame.to_csv(temporary / name, sep="\t", index=False, lineterminator="\n")
        renamed = {"query": "qid", "document": "docno", "grade": "label"}
        write_qrels(graded.rename(columns=renamed), temporary / "qrels.txt")
        facts = {
            **provenance,
            "log": dict(log.description),
            "judgements": describe(judgements),
            "converged": judgements.model.converged_,
            "remarks": remarks,
        }
        write_json(temporary / _DESCRIPTION, facts)
    return remarks


def curve(model: ClickModel) -> pd.DataFrame:
    """A row per position that was shown: ``position`` (from 1), ``shown``, ``clicked`` (int64),
    ``click_rate``, ``examination``, its ``standard_error`` (NaN if the model has none), and
    ``weight``, the inverse propensity of a click (float64)."""
    log = model.log_
    shown, clicked = log.by_position(log.shown), log.by_position(log.clicked)
    frame = pd.DataFrame(
        {
            "position": np.arange(1, log.n_positions + 1),
            "shown": shown.astype(np.int64),
            "clicked": clicked.astype(np.int64),
            "click_rate": clicked / np.maximum(shown, 1),
            "examination": model.examination_,
            "standard_error": model.examination_error_,
            "weight": inverse_propensity(model.examination_),
        }
    )
    return frame[frame["shown"] > 0].reset_index(drop=True)


def by_label(judgements: ClickJudgements, qrels: pd.DataFrame) -> pd.DataFrame:
    """Compare clicks with labels: a row per label with the number of ``pairs`` that have enough
    evidence, and their mean ``click_rate`` and ``relevance``.

    Args:
        qrels: columns ``qid``, ``docno``, ``label``; a query is named by its id in the log or in
            judgements made from it or, if the log has texts, by its text, however that is written.

    Raises:
        InputError: no pair has both a label and enough evidence.
    """
    log = judgements.log
    row = log.rows_of_queries(qrels["qid"])
    if log.has_texts:
        row = np.where(row < 0, log.rows_of_queries([*map(normalised, qrels["qid"])]), row)
    table = judgements.frame()[judgements.enough].assign(row=log.pair_query[judgements.enough])
    merged = table.merge(
        qrels.assign(row=row), left_on=["row", "document"], right_on=["row", "docno"], how="inner"
    )
    if merged.empty:
        raise InputError(_nothing_to_compare(log, qrels, row))
    merged["click_rate"] = merged["clicked"] / merged["shown"]
    groups = merged.groupby("label")
    means = groups[["click_rate", "relevance"]].mean()
    means.insert(0, "pairs", groups.size())
    return means.reset_index()


def _nothing_to_compare(log: ClickLog, qrels: pd.DataFrame, row: NDArray[np.int64]) -> str:
    """Why no pair of labels, whose queries are the log's rows or -1, has enough evidence."""
    queries, documents = set(qrels["qid"]), set(qrels["docno"])
    n_queries, n_documents = len(set(row[row >= 0].tolist())), len(documents & {*log.document_ids})
    told = (
        f"no pair of the labels has enough clicks: of {counted(len(queries), 'query')} of the "
        f"labels {n_queries:,} are in the log, of {counted(len(documents), 'document')} "
        f"{n_documents:,}"
    )
    if n_queries or not log.has_texts:
        return told
    return (
        f"{told}; a table with a column of ids and one of texts is read by its ids; leave these out"
    )
