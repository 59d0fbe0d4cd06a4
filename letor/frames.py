"""Conversion of pandas, polars and Arrow frames to arrays and back, keeping column names.

Any object that exports its columns by Arrow's C interface (``__arrow_c_stream__``: polars, DuckDB,
...) is read, without importing its library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from letor.errors import InputError, LetorWarning
from letor.ids import document_texts, id_texts
from letor.kernels.numbers import EXACT_IN_FLOAT32
from letor.name_checks import check_distinct
from ltr_base.names import counted, listed
from ltr_base.user_warning import warn_user

# Name that Arrow gives the index of a pandas frame when converting it to a table or Parquet file.
_INDEX = r"__index_level_\d+__"


class FrameRows(NamedTuple):
    """The labelled rows of a frame as arrays, from which ``RankingData`` is made."""

    X: NDArray[np.float32]  # [n, p]
    y: NDArray[np.float32]  # [n]
    qid: list[str]  # [n], rows of a query adjacent
    names: list[str]  # [p]
    docno: NDArray[np.object_] | None  # [n]


def frame_rows(
    frame: Any, *, label: str, qid: str, docno: str, features: Sequence[str] | None
) -> FrameRows:
    """Extract features, labels and ids from a frame; see ``RankingData.from_frame``.

    Raises:
        InputError: a column is absent or named twice; a feature or label is not numeric; a label or
            query id is missing; or the rows of a query are not adjacent.
    """
    table = arrow_table(frame)
    names = table.column_names
    absent = [c for c in (label, qid, *(features or ())) if c not in names]
    if absent:
        raise InputError(
            f"the frame has no column {', '.join(map(repr, absent))}; it has "
            f"{listed(names, 60)}: say which they are by label=, qid= and features="
        )
    given = [c for c in names if c not in (label, qid, docno)] if features is None else features
    ids = table[qid]
    if ids.null_count:
        raise InputError(f"column {qid!r}: no query id in {counted(ids.null_count, 'row')}")
    queries = id_texts(ids, f"column {qid!r}")
    _check_adjacent(queries, qid)
    y = _numbers(table[label], label, "name another column of labels, by label=")
    if np.isnan(y).any():
        row = int(np.argmax(np.isnan(y)))
        n = int(np.isnan(y).sum())
        raise InputError(
            f"column {label!r}: no label in {counted(n, 'row')} (row {row}, query {queries[row]}); "
            "leave them out, or give unjudged documents 0"
        )
    documents = document_texts(table[docno], f"column {docno!r}") if docno in names else None
    _warn_if_repeated(queries, documents)
    return FrameRows(_matrix(table, given), y, queries, list(given), documents)


def matrix(X: Any) -> tuple[NDArray[np.float32], list[str] | None]:
    """(float32 [n, p], names): the columns of a frame and their names; of an array, names are None.

    Warns:
        LetorWarning: whole numbers are rounded.

    Raises:
        InputError: values are not numbers, infinite, or beyond float32.
    """
    if isinstance(X, pd.DataFrame) or hasattr(X, "__arrow_c_stream__"):
        table = arrow_table(X)
        return _matrix(table, table.column_names), table.column_names
    if hasattr(X, "toarray") or hasattr(X, "collect"):
        advice = "X.toarray(), with 0 for what it lacks" if hasattr(X, "toarray") else "X.collect()"
        raise InputError(f"X must be rows of numbers, it is a {type(X).__name__}: give {advice}")
    try:
        values = np.ma.filled(X.astype(np.float32), np.nan) if np.ma.isMA(X) else np.asarray(X)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"they are {values.dtype}")
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(values, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"X must be rows of numbers, [n, columns]: {error}") from None
    if single.ndim != 2:
        raise InputError(f"X must be rows of numbers, [n, columns]; its shape is {values.shape}")
    _check_range(single, [f"column {j + 1} of X" for j in range(single.shape[1])])
    for j in np.flatnonzero((np.abs(single) >= EXACT_IN_FLOAT32).any(axis=0)).tolist():
        _warn_if_rounded(values[:, j], single[:, j], f"column {j + 1} of X")
    return single, None


def check_same_index(given: Mapping[str, Any]) -> None:
    """Raise InputError unless the pandas objects among the values, which are put together by
    position, have the same index. Keys are the names of parameters."""
    indexed = [
        (name, value.index)
        for name, value in given.items()
        if isinstance(value, pd.DataFrame | pd.Series)
    ]
    for name, index in indexed[1:]:
        first, other = indexed[0]
        if (row := _first_difference(other, index)) is not None:
            raise InputError(
                f"{first} and {name} are pandas objects with different indexes (row {row}: "
                f"{other[row]} and {index[row]}), but are put together by position: bring "
                f"them into one order, by {name}.loc[{first}.index] for example, or give "
                f"{name}.to_numpy()"
            )


def check_row_order(name: str, values: Any, n: int, names: Sequence[str] = ()) -> None:
    """Raise InputError if a pandas object, which is put beside n rows by position, has another
    index than 0, 1, ..., n - 1, or a frame, whose columns get the names, has them in another
    order."""
    own = [str(column) for column in getattr(values, "columns", ())]
    if set(own) & set(names) and own != list(names):
        raise InputError(
            f"{name} have the columns {listed(own, 5)}, which are not the names in their order: "
            f"give {name}[names]"
        )
    if not isinstance(values, pd.DataFrame | pd.Series):
        return
    if (row := _first_difference(pd.RangeIndex(n), values.index)) is not None:
        raise InputError(
            f"{name}: the pandas object has another index than 0 to {n - 1} (row {row}: "
            f"{values.index[row]}), but is put beside the rows by position: bring it into their "
            f"order, by {name}.sort_index() for example, and give {name}.to_numpy()"
        )


def _first_difference(one: pd.Index, other: pd.Index) -> int | None:
    """The first row in which two indexes of the same length differ; None if there is none."""
    if len(one) != len(other) or one.equals(other):
        return None
    return next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)


def labels_and_ids(
    y: Any, qid: Any, document_ids: Any, n: int
) -> tuple[NDArray[np.float32], list[str], Any]:
    """(float32 [n], [n], [n] or None): the label, the query id and the document id of each row; see
    :func:`_warn_if_repeated`.

    Raises:
        InputError: labels are not numbers, a query id is missing, or there is not one per row.
    """
    _check_one_per_row("y", y, n)
    _check_one_per_row("qid", qid, n)
    if np.ma.is_masked(y):
        raise InputError("the labels y have masked values: each row needs a label")
    try:
        labels = np.asarray(y, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"the labels y must be numbers: {error}") from None
    queries, documents = id_texts(qid, "qid"), document_texts(document_ids, "document_ids")
    _warn_if_repeated(queries, documents)
    return labels, queries, documents


def _warn_if_repeated(queries: Sequence[str], documents: Any) -> None:
    """Warn if a query has a document in several rows, as a merge of tables may leave them. Rows
    without a document id are different documents."""
    if documents is None or len(documents) != len(queries):
        return
    pairs = pd.DataFrame({"query": queries, "document": [*documents]}, dtype=object)
    again = pairs.duplicated().to_numpy() & (pairs["document"] != "").to_numpy()
    if again.any():
        first = int(np.argmax(again))
        warn_user(
            f"{counted(int(again.sum()), 'row')} with the document of another row of the query "
            f"(the first: row {first}, query {queries[first]}, document {documents[first]}): such "
            "a document counts again in training and measures; leave it out unless it is meant to",
            LetorWarning,
        )


def _check_one_per_row(name: str, values: Any, n: int) -> None:
    """Raise InputError unless the values are a list, array or series of one for each of n rows."""
    shape = getattr(values, "shape", (len(values),) if hasattr(values, "__len__") else None)
    if shape is None or tuple(shape) != (n,):
        found = f"is {values!r:.80}" if shape is None else f"has shape {tuple(shape)}"
        raise InputError(f"{name} {found}, must be a list, array or series of one per row, ({n},)")


def arrow_table(frame: Any) -> pa.Table:
    """Convert a frame to an Arrow table without pandas' index; names are distinct strings.

    Raises:
        InputError: it is not a frame, two columns have the same name, or a column has values of
            mixed types.
    """
    is_pandas = isinstance(frame, pd.DataFrame)
    if not is_pandas and not hasattr(frame, "__arrow_c_stream__"):
        raise InputError(
            f"a {type(frame).__module__}.{type(frame).__name__} is not a frame: give one of "
            "pandas, polars (collected, if it is lazy) or Arrow"
        )
    if is_pandas:
        check_distinct([str(c) for c in frame.columns])
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False) if is_pandas else pa.table(frame)
    except (pa.ArrowException, TypeError) as error:
        why = "; ".join(map(str, error.args))
        raise InputError(
            f"the frame has columns that are neither numbers nor text: {why}; make one that has "
            "both text, in pandas by .astype('string')"
        ) from None
    check_distinct(table.column_names)
    return table.select([c for c in table.column_names if not re.fullmatch(_INDEX, c)])


def pandas_frame(frame: Any) -> pd.DataFrame:
    """Convert a frame to pandas, unless it is a pandas frame already.

    Raises:
        InputError: as :func:`arrow_table`.
    """
    return frame if isinstance(frame, pd.DataFrame) else arrow_table(frame).to_pandas()


def make_table(X: NDArray[np.float32], names: Sequence[str], beside: Mapping[str, Any]) -> pa.Table:
    """Arrow table of the columns ``beside``, followed by those of X.

    Raises:
        InputError: a column of X has the name of one of the others.
    """
    names = [str(name) for name in names]
    clash = sorted(set(names) & set(beside))
    if clash:
        raise InputError(
            f"a feature column is called {clash[0]!r}: choose another name for the column of "
            "labels or ids, by label=, qid= or docno="
        )
    columns = [pa.array(values) for values in beside.values()]
    columns += [pa.array(column) for column in np.ascontiguousarray(X.T, dtype=np.float32)]
    return pa.table(columns, names=[*beside, *names])


def _matrix(table: pa.Table, names: Sequence[str]) -> NDArray[np.float32]:
    X = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for j, name in enumerate(names):
        X[:, j] = _numbers(table[name], name)
    return X


def _numbers(
    column: pa.ChunkedArray,
    name: str,
    advice: str = "leave it out (of a whole frame, by features=[...])",
) -> NDArray[np.float32]:
    """float32 [n]: the values of a column, NaN where there is none."""
    kind = column.type
    is_kind = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean,
               pa.types.is_decimal, pa.types.is_null)  # fmt: skip
    if not any(test(kind) for test in is_kind):
        raise InputError(
            f"column {name!r} holds {kind}, not numbers: {advice}, or make numbers of it"
        )
    values = column.cast(pa.float64(), safe=False).to_numpy()
    with np.errstate(over="ignore"):
        single: NDArray[np.float32] = values.astype(np.float32)
    _check_range(single[:, None], [f"column {name!r}"])
    _warn_if_rounded(values, single, f"column {name!r}")
    return single


def _warn_if_rounded(values: NDArray[Any], single: NDArray[np.float32], column: str) -> None:
    """Warn if whole numbers [n] are other numbers as float32."""
    large = np.abs(single) >= EXACT_IN_FLOAT32
    exact, near = values[large].astype(np.float64), single[large].astype(np.float64)
    changed = (exact != near) & (exact == np.floor(exact))
    if changed.any():
        first, rounded = exact[changed][0], near[changed][0]
        warn_user(
            f"{column}: whole numbers beyond 2^24 (16,777,216) are rounded to float32, such as "
            f"{first:.0f} to {rounded:.0f}, so different ones may become equal: leave out ids; "
            "subtract the least of times, take logarithms of counts",
            LetorWarning,
        )


def _check_range(X: NDArray[np.float32], columns: Sequence[str]) -> None:
    """Raise InputError naming the first column [n] with a value that float32 cannot hold."""
    beyond = np.isinf(X)
    if beyond.any():
        column = int(np.argmax(beyond.any(axis=0)))
        rows = np.flatnonzero(beyond[:, column])
        raise InputError(
            f"{columns[column]}: infinite values, or values beyond float32 (3.4e38), in "
            f"{counted(len(rows), 'row')}, the first of them row {rows[0]}; where they mark "
            "missing values, make them NaN"
        )


def _check_adjacent(queries: list[str], column: str) -> None:
    """Raise InputError if rows of a query are not adjacent: two files with the same ids were
    joined, or rows were shuffled."""
    done: set[str] = set()
    previous = None
    for row, query in enumerate(queries):
        if query != previous:
            if query in done:
                raise InputError(
                    f"row {row}: query {query!r} has rows further up, with other queries between; "
                    f"sort the frame by {column!r} (stable), or rename queries of another source"
                )
            done.add(query)
            previous = query


def check_whole(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return the frame; raise InputError if a column is absent or has a missing value."""
    absent = [name for name in names if name not in frame]
    if absent:
        raise InputError(f"the frame has no column {', '.join(absent)}")
    missing = frame[list(names)].isna()
    if missing.to_numpy().any():
        name = missing.columns[missing.any()][0]
        row = int(np.argmax(missing[name]))
        raise InputError(f"row {row} of the frame has no {name}")
    return frame
