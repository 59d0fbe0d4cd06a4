"""Conversion of rankers' input (``RankingData``, or arrays and frames with a query per row)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError, RankerWarning
from letor.evaluation import Evaluator
from letor.folds import has_pairs
from letor.frames import check_same_index
from letor.measures import parse_measure
from ltr_base.names import counted, listed
from ltr_base.user_warning import warn_user

#: Names of labels and ids in frames, lower-case, which are never those of features.
_BESIDE_FEATURES = ("label", "qid", "query_id", "docno", "docid", "doc_id", "document_id")


def training_rows(
    X: Any, y: Any, qid: Any, eval_set: Any, eval_qid: Any
) -> tuple[RankingData, RankingData | None]:
    """Training and validation rows from the arguments of ``Ranker.fit``, with columns in the same
    order.

    Raises:
        InputError: arguments are missing or do not go together, or rows cannot be trained on.
    """
    if isinstance(X, RankingData):
        if any(given is not None for given in (qid, eval_set, eval_qid)):
            raise InputError(
                "fit(train, valid): leave out qid, eval_set and eval_qid, RankingData has its "
                "queries"
            )
        if y is not None and not isinstance(y, RankingData):
            raise InputError("fit(train, valid): the validation rows must be RankingData, too")
        train, valid = X, y
    else:
        train, valid = _labelled(X, y, qid, "qid"), None
        if eval_set is None and eval_qid is not None:
            raise InputError("eval_qid: give eval_set=(X, y), too, the rows for early stopping")
        if eval_set is not None:
            # LightGBM and XGBoost take lists of pairs; a single pair may stand alone.
            if isinstance(eval_set, list):
                eval_set, eval_qid = _only(eval_set, "eval_set"), _only(eval_qid, "eval_qid")
            X_valid, y_valid = eval_set
            check_same_index({"X": X_valid, "y": y_valid, "eval_qid": eval_qid})
            valid = _labelled(X_valid, y_valid, eval_qid, "eval_qid")
    _check_trainable(train, "training")
    if not train.column_names:
        raise InputError("training rows: they have no columns to learn from: give some")
    _warn_of_labels_among_columns(train)
    if valid is not None:
        _check_trainable(valid, "validation")
        if isinstance(X, RankingData):
            valid = _filled_with_warning(valid, train.column_names, "validation rows")
        valid = with_columns(valid, list(train.column_names), "validation rows")
    return train, valid


def labelled_rows(X: Any, y: Any, qid: Any) -> RankingData:
    """Rows to evaluate a ranker on, from the arguments of ``Ranker.score``."""
    return X if isinstance(X, RankingData) else _labelled(X, y, qid, "qid")


def rows_to_score(X: Any, qid: Any, names: list[str]) -> RankingData:
    """Rows with the columns of the training rows, in their order; an array is assumed to have just
    these columns. Without ``qid``, all rows belong to one query.

    Raises:
        InputError: a column is missing, or was not in the training rows.
    """
    if isinstance(X, RankingData):
        return with_columns(_filled_with_warning(X, names, "rows to score"), names, "rows to score")
    n = X.shape[0] if hasattr(X, "shape") else len(X)  # sparse matrices have no length
    data = RankingData.from_rows(X, np.zeros(n), np.zeros(n, np.int64) if qid is None else qid)
    if not hasattr(X, "columns") and not hasattr(X, "__arrow_c_stream__"):
        if data.X.shape[1] != len(names):
            raise InputError(
                f"rows to score: the array has {counted(data.X.shape[1], 'column')}, the training "
                f"rows have {len(names)}, in the order of ranker.feature_names_"
            )
        data = RankingData(data.X, data.y, data.query_ids, data.query_index, names)
    return with_columns(data, names, "rows to score")


def filled(data: RankingData, names: Sequence[str], what: str) -> tuple[RankingData, str | None]:
    """Rows with a 0 in each of the last columns of the training rows that they lack, if neither
    have names for their columns, only numbers: an absent value of LETOR text is 0, and a file has
    as many columns as its largest id.

    Args:
        names: the columns of the training rows. what: what the rows are, for the remark.

    Returns:
        The rows, and a remark on the columns added; unchanged rows and None if there are none.
    """
    p = data.X.shape[1]
    numbers = [str(j + 1) for j in range(len(names))]
    if p >= len(names) or list(names) != numbers or list(data.column_names) != numbers[:p]:
        return data, None
    last = numbers[p:]
    which = f"column {last[0]}" if len(last) == 1 else f"columns {last[0]} to {last[-1]}"
    remark = (
        f"{what}: no row has a value in {which} of the training rows; they count as 0, "
        "which is what an absent value of LETOR text stands for"
    )
    return data.with_columns(last, np.zeros((len(data), len(last)), np.float32)), remark


def _filled_with_warning(data: RankingData, names: Sequence[str], what: str) -> RankingData:
    data, remark = filled(data, names, what)
    if remark is not None:
        warn_user(remark, RankerWarning)
    return data


def with_columns(data: RankingData, names: list[str], what: str) -> RankingData:
    """``data`` with its columns in the order of ``names``, which must be the same set."""
    if list(data.column_names) == names:
        return data
    missing = sorted(set(names) - set(data.column_names))
    unknown = sorted(set(data.column_names) - set(names))
    if missing:
        advice = (
            "If they are the last columns of LETOR text, absent from all its rows, give their "
            "number: columns append --columns N, read_letor(..., n_columns=N)"
        )
        if unknown and names == [str(j + 1) for j in range(len(names))]:
            advice = (
                f"Those had only numbers for columns, these have names ({listed(unknown, 5)}): "
                "give an array with the columns in the order of training (frame.to_numpy()), or "
                "train on rows with names"
            )
        elif list(data.column_names) == [str(j + 1) for j in range(len(names))]:
            advice = (
                "These have only numbers for columns, as many as the training rows: if they are "
                "the same columns, name them alike (of a file, copy the NAME.columns.json of the "
                "training rows beside it, under its name)"
            )
        raise InputError(
            f"{what} lack columns of the training rows: {listed(missing, 20)}; make them as for "
            f"the training rows. {advice}"
        )
    if unknown:
        raise InputError(
            f"{what} have columns that the ranker was not trained on: {listed(unknown, 20)}; "
            "leave them out, ranker.feature_names_ are those to keep; or, where LETOR text of the "
            "training rows has no value in the last columns, train with their number: rank train "
            "--columns N, read_letor(..., n_columns=N)"
        )
    return data.select_columns(names)


def measured(measure: str, data: RankingData) -> Evaluator:
    """The measure that a ranker maximises or stops by, on rows with labels.

    Raises:
        InputError: it is unknown, or its rule for empty queries leaves out all of the rows.
    """
    evaluator = Evaluator(parse_measure(measure), data)
    if np.isnan(evaluator.mean(np.zeros(len(data)))):
        raise InputError(
            f"measure={measure!r} leaves out all {counted(data.n_queries, 'query')}: none has a "
            "document that is relevant by it; choose another measure, or other rows"
        )
    return evaluator


def shown_positions(data: RankingData, parameter: str) -> NDArray[np.int64]:
    """int64 [n]: position at which each row was shown.

    Raises:
        InputError: positions are unknown or negative.
    """
    if data.positions is None:
        raise InputError(
            f"{parameter} needs to know where each row was shown: RankingData(..., positions=...)"
        )
    if len(data) and data.positions.min() < 0:
        raise InputError(f"{parameter}: positions must be 0 or more, the top being 0")
    return data.positions


def _labelled(X: Any, y: Any, qid: Any, name: str) -> RankingData:
    if y is None or qid is None:
        raise InputError(
            f"with X, give the labels y and {name}, the query of each row (scikit-learn's searches "
            "give none to score: they need scoring=ranking_scorer(measure, qid=...))"
        )
    data = RankingData.from_rows(X, y, qid)
    beside = [name for name in data.column_names if name.lower() in _BESIDE_FEATURES]
    if beside:
        raise InputError(
            f"X has the columns {', '.join(beside)}, which name labels or ids, not features: drop "
            f"them, X.drop(columns={beside}), or rename those that are features"
        )
    return data


def _only(values: Any, name: str) -> Any:
    if not isinstance(values, Sequence) or len(values) != 1:
        raise InputError(f"{name}: give one set of validation rows")
    return values[0]


def _warn_of_labels_among_columns(data: RankingData) -> None:
    """Warn of columns that equal the labels in all rows, which differ."""
    first = slice(0, 1000)  # rules out nearly all columns, without reading all of a large file
    possible = np.flatnonzero((data.X[first] == data.y[first, np.newaxis]).all(axis=0)).tolist()
    equal = [data.column_names[j] for j in possible if np.array_equal(data.X[:, j], data.y)]
    if equal:
        warn_user(
            f"training rows: columns that equal the label in all rows ({listed(equal, 5)}): if "
            "made from it, leave them out, because rows to score have no labels",
            RankerWarning,
        )


def check_whole_labels(
    parts: Sequence[RankingData],
    what: str,
    advice: str = ", or train a ranker that takes any labels, such as ranknet",
) -> None:
    """Raise InputError if a label is not a whole number.

    Args:
        parts: rows, and perhaps validation rows.
        what: what needs them to be, for the message. advice: what else to do than make grades.
    """
    for data, part in zip(parts, ("", " of the validation rows"), strict=False):
        odd = np.flatnonzero(data.y != np.floor(data.y))
        if len(odd):
            row = int(odd[0])
            query = data.query_ids[data.query_index[row]]
            raise InputError(
                f"label {data.y[row]:g} (row {row}, query {query}{part}): {what} needs whole "
                f"numbers as labels: make grades 0, 1, 2, ... of them{advice}"
            )


def _check_trainable(data: RankingData, what: str) -> None:
    bad = ~(data.y >= 0) | np.isinf(data.y)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"negative {what} labels, or not finite: {int(bad.sum())} (row {row}, query "
            f"{data.query_ids[data.query_index[row]]}: {data.y[row]:g}); drop unjudged "
            "rows, or set labels that mean not relevant to 0"
        )
    if not has_pairs(data).any():
        without = ", or no validation rows" if what == "validation" else ""
        raise InputError(
            f"{what} rows: no query (of {data.n_queries:,}) has two different labels, so there is "
            f"nothing to rank: give others, with documents of different labels{without}"
        )
