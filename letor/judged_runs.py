"""Conversion of qrels and runs (frames, dictionaries, ranx objects) to judged rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError, LetorWarning
from letor.frames import pandas_frame
from letor.ids import id_texts
from letor.missing import Missing
from ltr_base.names import OTHERWISE, counted, folded, is_unicode
from ltr_base.user_warning import warn_user

#: Whole numbers below are exact in float64.
_LARGEST = 2**53


def judged_rows(qrels: Any, run: Any) -> tuple[RankingData, NDArray[np.float64], pd.Index]:
    """Label the rows of a run by qrels.

    Documents without a judgement or with a negative label get label 0. Documents of label 1 or
    more without a row, and judged queries without rows, become ``missing`` of the data; queries of
    the run without any judgement are left out.

    Returns:
        The rows, without columns; float64 [n], their scores; the judged queries in order of first
        appearance.

    Warns:
        LetorWarning: no document of the run is judged for its query.

    Raises:
        InputError: missing column, duplicate pair, label that is not a whole number, NaN score, id
            that is not UTF-8, or a run that shares no query with the judgements.
    """
    qrels, run = checked_frame(qrels, "label", "qrels"), checked_frame(run, "score", "run")
    for table, what in ((qrels, "qrels"), (run, "run")):
        if table.empty:
            raise InputError(f"{what} has no rows")
        _check_unicode(table, what)
    queries = pd.Index(qrels["qid"].unique(), name="qid")
    run = run[run["qid"].isin(queries)]
    if run.empty:
        raise InputError(
            f"the run has no row for any of the {len(queries)} judged queries (the first is "
            f"{queries[0]!r}); do both use the same query ids?"
        )
    both = pd.concat([qrels, run])
    pair = both.groupby(["qid", "docno"], sort=False).ngroup().to_numpy()
    judged, ranked = pair[: len(qrels)], pair[len(qrels) :]
    if not np.isin(ranked, judged).any():
        warn_user(
            f"no document of the run is judged for its query, so all values are 0 (the first is "
            f"{run['docno'].iloc[0]!r}, the first judged one {qrels['docno'].iloc[0]!r}); do both "
            "use the same document ids?",
            LetorWarning,
        )
    label_of = np.zeros(pair.max() + 1)
    label_of[judged] = np.maximum(qrels["label"], 0.0)
    index, ids = pd.factorize(run["qid"])
    data = RankingData(
        X=np.empty((len(run), 0), np.float32),
        y=label_of[ranked].astype(np.float32),
        query_ids=list(ids),
        query_index=index.astype(np.int64),
        column_names=[],
        document_ids=run["docno"].to_numpy(),
        missing=_missing(qrels[~np.isin(judged, ranked)], set(queries) - set(ids)),
    )
    return data, run["score"].to_numpy(), queries


def ids_are_unicode(table: pd.DataFrame) -> bool:
    """Whether all ids of a table, ``qid`` and ``docno``, are UTF-8: pandas groups and sorts them as
    strings of Arrow."""
    return all(is_unicode("".join(table[name])) for name in ("qid", "docno"))


def _check_unicode(table: pd.DataFrame, what: str) -> None:
    if not ids_are_unicode(table):
        pairs = ((name, text) for name in ("qid", "docno") for text in table[name])
        name, odd = next((name, text) for name, text in pairs if not is_unicode(text))
        raise InputError(f"{what}, {name}: {odd!r} is not UTF-8; convert its file to UTF-8")


def best_first(run: pd.DataFrame) -> pd.DataFrame:
    """Sort a run in the order that measures use: by descending score, equal scores by ascending
    document id."""
    return run.sort_values(["score", "docno"], ascending=[False, True], kind="stable")


def unjudged_queries(qrels: Any, run: Any) -> list[str]:
    """Queries of a run without any judgement, which no measure counts."""
    judged = set(id_texts(as_frame(qrels)["qid"].unique(), "qrels, qid"))
    queries = dict.fromkeys(id_texts(as_frame(run)["qid"].unique(), "run, qid"))
    return [query for query in queries if query not in judged]


def other_spellings(qrels: Any, run: Any) -> list[str]:
    """A remark, without a full stop, if a run has relevant documents under ids that are written
    otherwise than in the judgements, and that count as not relevant therefore. An id that the run
    has as it is judged, for any query, is not written otherwise: the other is another document."""
    qrels, run = as_frame(qrels), as_frame(run)
    judged, ranked, key = _pairs(qrels, "qrels"), _pairs(run, "run"), ["qid", "folded"]
    relevant = judged[qrels["label"].to_numpy() >= 1].drop_duplicates(key, keep="last")
    rows = ranked.merge(relevant, on=key, suffixes=("", "_judged"))
    rows = rows.merge(judged, how="left", on=["qid", "docno", "folded"], indicator="known")
    rows["known"] = rows["known"] == "both"
    missed = rows[~rows.groupby(key)["known"].transform("any")].drop_duplicates(key)
    missed = missed[~missed["docno_judged"].isin(ranked["docno"])]
    if missed.empty:
        return []
    first = missed.iloc[0]
    return [
        f"{counted(len(missed), 'relevant document')} under another id than in the judgements, the "
        f"first of query {first['qid']!r}: {first['docno']!a} for {first['docno_judged']!a}; write "
        f"ids alike in all files ({OTHERWISE})"
    ]


def _pairs(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """The ids of query and document of each row, and the latter's :func:`folded` form."""
    qid, docno = (id_texts(table[name], f"{what}, {name}") for name in ("qid", "docno"))
    number, distinct = pd.factorize(np.array(docno, dtype=object))
    forms = np.array([folded(document) for document in distinct], dtype=object)
    return pd.DataFrame({"qid": qid, "docno": docno, "folded": forms[number]}, dtype=object)


def score_remarks(run: pd.DataFrame) -> list[str]:
    """Remarks on scores that may not mean what a run's author meant, as sentences without a full
    stop: all are equal, or they contradict the ranks.

    Args:
        run: columns ``qid``, ``score`` and, if they are known, ``rank``.
    """
    by_query = run.groupby("qid", sort=False)
    if len(run) > run["qid"].nunique() and (by_query["score"].nunique() <= 1).all():
        return [
            "all scores of a query are equal: only the rule for ties ranks its documents (by "
            "document id, unless the measure has another)"
        ]
    if "rank" not in run:
        return []
    # Ranks in place of scores are exact: equal scores agree with any order.
    place = by_query[["score", "rank"]].rank()
    place -= place.groupby(run["qid"]).transform("mean")
    turned = (place["score"] * place["rank"]).groupby(run["qid"]).sum() > 0
    if not turned.any():
        return []
    return [
        f"scores order {turned.sum():,} of {counted(len(turned), 'query')} ({turned.mean():.0%}) "
        "the other way than the rank column: measures put the largest score first; if smaller "
        "scores are better, negate them"
    ]


def as_frame(table: Any) -> pd.DataFrame:
    """Convert qrels or a run (a pandas, polars or Arrow frame, a ``ranx.Qrels`` or ``ranx.Run``, or
    a dictionary of dictionaries) to a pandas frame with columns ``qid``, ``docno``, and ``label``
    or ``score``."""
    if isinstance(table, pd.DataFrame) or hasattr(table, "__arrow_c_stream__"):
        return pandas_frame(table)
    kind = type(table)
    if kind.__module__.split(".")[0] == "ranx" and kind.__name__ in ("Qrels", "Run"):
        names = {"q_id": "qid", "doc_id": "docno"}
        if kind.__name__ == "Qrels":
            names["score"] = "label"
        return table.to_dataframe().rename(columns=names)
    if isinstance(table, Mapping):
        for query, values in table.items():
            if not isinstance(values, Mapping):
                raise InputError(
                    f"query {query!r} has {str(values)[:80]}: give its documents with their "
                    "values, {qid: {docno: value}}"
                )
        rows = [(q, d, value) for q, values in table.items() for d, value in values.items()]
        frame = pd.DataFrame(rows, columns=["qid", "docno", "label"])
        return frame.assign(score=frame["label"])
    raise InputError(
        f"a {kind.__module__}.{kind.__name__} is neither qrels nor a run: give a DataFrame, "
        "{qid: {docno: value}}, or an object of ranx"
    )


def to_ranx(table: pd.DataFrame) -> Any:
    """Convert qrels (a frame with ``label``) to ``ranx.Qrels``, a run (``score``) to ``ranx.Run``.

    ranx may change the order of rows with equal scores: make scores distinct if that matters.
    """
    import numba

    value = "label" if "label" in table.columns else "score"
    checked = checked_frame(table, value, "the frame")
    # ranx chooses numba's threading layer on import, and may lower its number of threads.
    config: Any = numba.config
    threads, layer = numba.get_num_threads(), config.THREADING_LAYER
    try:
        import ranx

        kind = ranx.Qrels if value == "label" else ranx.Run
        checked[value] = checked[value].astype(np.int64 if value == "label" else np.float64)
        return kind.from_df(checked, q_id_col="qid", doc_id_col="docno", score_col=value)
    finally:
        config.THREADING_LAYER = layer
        numba.set_num_threads(threads)


def _missing(lost: pd.DataFrame, without_rows: set[str]) -> Missing:
    """Relevant documents among the judged ones that have no row, and queries without any row."""
    relevant: dict[str, dict[int, int]] = {query: {} for query in sorted(without_rows)}
    lost = lost[lost["label"] >= 1]
    for (query, label), count in lost.groupby(["qid", "label"]).size().items():
        relevant.setdefault(query, {})[int(label)] = int(count)
    return Missing(relevant)


def checked_frame(table: Any, value: str, what: str) -> pd.DataFrame:
    """The columns ``qid`` and ``docno`` as strings, and ``value`` (label or score) as float64.

    Raises:
        InputError: a column is missing, a pair occurs twice, a label is not a whole number (below
            2^53), or a score is not a number; the message calls the table ``what``.
    """
    table = as_frame(table)
    missing = [c for c in ("qid", "docno", value) if c not in table.columns]
    if missing:
        raise InputError(
            f"{what} lacks the column {', '.join(missing)}; it has {', '.join(map(str, table))}"
        )
    table = pd.DataFrame(
        {
            # As objects: strings of Arrow cannot hold bytes that are not UTF-8.
            "qid": pd.Series(id_texts(table["qid"].tolist(), f"{what}, qid"), dtype=object),
            "docno": pd.Series(id_texts(table["docno"].tolist(), f"{what}, docno"), dtype=object),
            value: _numbers(table[value], what),
        }
    )
    twice = table.duplicated(["qid", "docno"])
    if twice.any():
        first = table[twice].iloc[0]
        raise InputError(
            f"{what} has {int(twice.sum())} (query, document) pairs more than once; the first is "
            f"query {first['qid']!r}, document {first['docno']!r}"
        )
    odd = (table[value] % 1 != 0) | (table[value].abs() >= _LARGEST)
    bad = table[value].isna() if value == "score" else odd
    if bad.any():
        first = table[bad].iloc[0]
        found = "a score that is NaN" if value == "score" else f"the label {first[value]}"
        whole = "labels must be whole numbers, below 2^53"
        needed = "scores must be numbers" if value == "score" else whole
        raise InputError(
            f"{what}: query {first['qid']!r}, document {first['docno']!r} has {found}; {needed}"
        )
    return table


def _numbers(values: pd.Series, what: str) -> NDArray[np.float64]:
    try:
        return values.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}, {values.name}: {error}; make numbers of them") from None
