"""Labels of rows, from a file of judgements."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.document_ids import needed_ids
from letor.errors import InputError, LetorWarning
from letor.missing import Missing
from ltr_base.user_warning import warn_user
from ltr_features.sources.files import check_same_ids, read_judgements


def labelled(
    data: RankingData, judgements: str | os.PathLike[str], path: str | os.PathLike[str]
) -> RankingData:
    """The rows of the file ``path`` with the labels of a file of judgements. Pairs without one get
    0; relevant documents and judged queries without rows become ``missing``.

    Warns:
        LetorWarning: rows of judged queries have no judgement.

    Raises:
        InputError: the rows have no document ids, none of them is judged, or as
            :func:`read_judgements`.
    """
    ids = needed_ids(data, "by which rows and judgements are joined", path)
    queries = np.array(data.query_ids, dtype=object)[data.query_index].tolist()
    pairs = list(zip(queries, ids, strict=True))
    label_of: dict[tuple[str, str], int | None] = dict.fromkeys(pairs)
    judged: dict[str, dict[int, int]] = {}
    qrels = read_judgements(judgements)
    check_same_ids(path, pd.DataFrame(list(label_of), columns=["qid", "docno"]), qrels)
    for query, document, label in qrels[["qid", "docno", "label"]].itertuples(index=False):
        lost = judged.setdefault(query, {})
        if (query, document) in label_of:
            label_of[query, document] = max(label, 0)
        elif label >= 1:
            lost[label] = lost.get(label, 0) + 1
    labels = [label_of[pair] for pair in pairs]
    _tell_unjudged(path, pairs, labels, judged)
    logged = set(data.query_ids)
    relevant = {q: lost for q, lost in judged.items() if lost or q not in logged}
    return replace(
        data,
        y=np.array([label or 0 for label in labels], dtype=np.float32),
        missing=Missing(relevant, frozenset(logged - set(judged))),
    )


def _tell_unjudged(
    path: str | os.PathLike[str],
    pairs: Sequence[tuple[str, str]],
    labels: Sequence[int | None],
    judged: Collection[str],
) -> None:
    """Warn of rows of judged queries that have no judgement; raise InputError if no row has any."""
    lost = [
        pair for pair, label in zip(pairs, labels, strict=True)
        if label is None and pair[0] in judged
    ]  # fmt: skip
    if not lost:
        return
    query, document = lost[0]
    found = f"the first names query {query!r} and document {document!r}"
    if not any(label is not None for label in labels):
        raise InputError(f"{path}: none of its rows is judged ({found}); are the ids the same?")
    warn_user(
        f"{path}: {len(lost):,} of {len(pairs):,} rows have no judgement, though their queries "
        f"have, and get label 0 ({found})",
        LetorWarning,
    )
