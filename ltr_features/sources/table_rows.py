"""Read a table of features, such as data frames are saved as, as labelled rows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from letor.column_names import is_letor
from letor.dataset import RankingData, distinct
from letor.errors import InputError, LetorWarning
from letor.frames import matrix
from ltr_base.names import listed
from ltr_base.user_warning import warn_user
from ltr_features.sources.arrow_tables import are_names, column_list, is_number
from ltr_features.sources.feature_log import is_feature_log
from ltr_features.sources.labelled_rows import labelled
from ltr_features.sources.score_tables import DOCUMENT_NAMES, LABEL_NAMES, QUERY_NAMES
from ltr_features.sources.table_blocks import (
    Block,
    ColumnName,
    blocks,
    is_table,
    nested_columns,
    table_columns,
    written,
)
from ltr_features.sources.usual_names import add_usual, find_columns, is_unnamed, plain_name

_USUAL = {"query": QUERY_NAMES, "document": DOCUMENT_NAMES, "label": LABEL_NAMES}
_NO_FEATURES = frozenset(chain.from_iterable(_USUAL.values()))
#: Words for no value and for two numbers, in lower case.
_WORDS = {("", "na", "n/a", "nan", "null", "none"): None, ("true",): "1", ("false",): "0"}
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal,
            pa.types.is_null)  # fmt: skip
_SHOWN = 20  # characters of a value in messages


def is_table_of_rows(path: Path) -> bool:
    """Whether a file is a table by its name, and neither a feature log nor rows of our own."""
    return is_table(path) and not is_feature_log(path) and not is_letor(path)


def column_roles(
    path: Path, given: Mapping[str, ColumnName] | None = None
) -> dict[str, ColumnName]:
    """The columns of ``query``, ``document`` and ``label``, where the table has them.

    Args:
        path: the table.
        given: those without usual names; numbers for CSV and TSV without a header line.

    Raises:
        InputError: another key, no such column, or no column of query ids.
    """
    columns, names = dict(given or {}), table_columns(path)
    if unknown := sorted(set(columns) - set(_USUAL)):
        raise InputError(f"column {unknown[0]}=...: the keys are {', '.join(_USUAL)}")
    if are_names(list(columns.values())):
        add_usual(columns, names, _USUAL)
    if "query" not in columns:
        raise InputError(
            f"{path}: the columns are {column_list(names)}; none has a usual name for query ids: "
            "name it, column query=..."
        )
    return columns


def like_labels(names: Sequence[str]) -> list[str]:
    """The columns whose names have a usual name of labels among their words: ``human label``."""
    return [name for name in names if {*re.split(r"[\W_]+", name.lower())} & {*LABEL_NAMES}]


def read_table_rows(
    path: str | os.PathLike[str],
    judgements: str | os.PathLike[str] | None = None,
    *,
    columns: Mapping[str, ColumnName] | None = None,
    non_finite: Literal["raise", "nan"] = "raise",
) -> RankingData:
    """Read a table with a row per (query, document) pair.

    All columns of numbers that are not ids or labels are features. In CSV and TSV a column holds
    numbers if its first value is one; true and false are 1 and 0; nothing, NA, NaN, null and None
    are missing values (NaN). Rows of a query that are apart are brought together.

    Args:
        path: .csv, .tsv (also .gz, .bz2, .zst) or .parquet.
        judgements: labels, see :func:`~.labelled_rows.labelled`, for a table without.
            Without both all labels are 0.
        columns: the columns of ``query``, ``document`` and ``label`` that do not have usual names;
            their numbers, from 1, in CSV and TSV without a header line, whose features are named by
            their numbers.
        non_finite: infinite features, and those beyond float32: an error, or missing values.

    Returns:
        Queries in order of first appearance, their rows in the order of the table.

    Warns:
        LetorWarning: columns are left out, since they hold no numbers, have another usual name of
            ids or labels, or none; rows have another order than in the table; or as
            :meth:`letor.dataset.RankingData.from_frame`.

    Raises:
        InputError: no such file, a missing column, id or label, a value that is no number, or no
            column of numbers; the message names file and line or column.
    """
    path = Path(path)
    roles = column_roles(path, columns)
    if judgements is not None and "label" in roles:
        raise InputError(
            f"{path} has labels, column {roles['label']!r}, so that judgements are not needed; to "
            "use them, leave out the column"
        )
    names: list[ColumnName] = list(table_columns(path))
    if not are_names(list(roles.values())):
        names = list(range(1, len(names) + 1))
    others = [name for name in names if name not in roles.values()]
    known = [name for name in others if plain_name(str(name)) in _NO_FEATURES]
    unnamed = [name for name in others if is_unnamed(name)]
    features = [name for name in others if name not in (*known, *unnamed)]
    table = _Table(path, roles, features, non_finite)
    for block in blocks(path, [*roles.values(), *features]):
        table.add(block)
    if known:
        _left_out(
            path,
            "as they have usual names of ids or labels, too (a feature needs another name)",
            known,
        )
    if unnamed:
        _left_out(path, "as they have no names, such as the index of a data frame", unnamed)
    rows = table.rows()
    return rows if judgements is None else labelled(rows, judgements, path)


class Numbers(NamedTuple):
    """Numbers of documents.

    Attributes:
        documents: distinct ids, [n]. columns: names, [p].
        values: float32 [n, p], NaN where there is none.
    """

    documents: list[str]
    columns: list[str]
    values: NDArray[np.float32]


def read_document_numbers(
    path: str | os.PathLike[str], *, document: str | None = None, numbers: Sequence[str] = ()
) -> Numbers:
    """Read a table with a row per document; values are written as in :func:`read_table_rows`.

    Args:
        path: .csv, .tsv, .jsonl (also .gz, .bz2, .zst) or .parquet.
        document: the column of document ids, if it has no usual name.
        numbers: the columns to read; by default all others that hold numbers.

    Warns:
        LetorWarning: columns are left out, since they hold no numbers.

    Raises:
        InputError: no such file or column, a value that is no number or infinite, a document with
            two values of a column, or a table of queries and documents.
    """
    path = Path(path)
    names = table_columns(path)
    found = {} if document is None else {"document": document}
    add_usual(found, names, {"document": ("id", *DOCUMENT_NAMES)})
    if "document" not in found:
        raise InputError(
            f"{path}: the columns are {column_list(names)}; name the one of document ids by the "
            "option document"
        )
    query = find_columns([name for name in names if name not in numbers], QUERY_NAMES)
    if query and not numbers:
        raise InputError(
            f"{path} has queries, column {query[0]!r}: numbers of pairs are scores (the family "
            "scores); for numbers of documents name their columns by the option numbers"
        )
    others = [n for n in names if n != found["document"] and not is_unnamed(n)]
    nested = frozenset() if numbers else nested_columns(path)
    table = _Table(path, found, list(numbers) or [n for n in others if n not in nested], "raise")
    table.first_word |= {name: "{...}" for name in others if name in nested}
    for block in blocks(path, [found["document"], *table.features], optional=table.features):
        table.add(block)
    if numbers and table.first_word:
        name, word = next(iter(table.first_word.items()))
        raise InputError(
            f"{path}: the first value of {name!r} is {word[:_SHOWN]!r}, not a number, such as 7.25"
        )
    return table.of_documents()


class _Table:
    """Collects blocks of a table.

    Attributes:
        roles: the columns of ids and labels. features: those that may be features.
        holds_numbers: whether a column does, by its first value; absent while there was none.
        first_word: the first value of columns that do not, by name.
    """

    def __init__(
        self,
        path: Path,
        roles: Mapping[str, ColumnName],
        features: Sequence[ColumnName],
        non_finite: str,
    ) -> None:
        self.path, self.roles, self.features, self.non_finite = path, roles, features, non_finite
        self.holds_numbers: dict[ColumnName, bool] = {}
        self.first_word: dict[ColumnName, str] = {}
        self._of_roles: dict[str, list[pa.Array]] = {role: [] for role in roles}
        self._of_features: dict[ColumnName, list[pa.Array]] = {name: [] for name in features}

    def add(self, block: Block) -> None:
        """Take the rows of a block."""
        for role, column in self.roles.items():
            take = self._labels if role == "label" else self._ids
            self._of_roles[role].append(take(block, column))
        for name in self.features:
            self._of_features[name].append(self._finite(block, name))

    def of_documents(self) -> Numbers:
        """The numbers of each document, whose rows must agree."""
        X, names = matrix(self._numbers_alone())
        documents, row = distinct(pa.chunked_array(self._of_roles["document"]).to_pylist())
        values = np.empty((len(documents), X.shape[1]), np.float32)
        values[row[::-1]] = X[::-1]  # of each document the first row
        differ = ((values[row] != X) & ~(np.isnan(values[row]) & np.isnan(X))).any(axis=1)
        if differ.any():
            again = documents[row[np.argmax(differ)]]
            raise InputError(
                f"{self.path}: document {again!r} has other numbers in a later row than in its "
                "first; keep one of them"
            )
        return Numbers(list(documents), [str(name) for name in names or []], values)

    def _numbers_alone(self) -> pa.Table:
        """The columns that hold numbers, one or more; others are told."""
        features = [name for name in self.features if self.holds_numbers.get(name, True)]
        words = [f"{name} ({word[:_SHOWN]!r})" for name, word in self.first_word.items()]
        if not next(iter(self._of_roles.values())):
            raise InputError(f"{self.path}: no rows")
        if not features:
            found = f"; the first values of others are {listed(words, 20)}" if words else ""
            raise InputError(f"{self.path}: no column of numbers, such as 7.25{found}")
        if words:
            _left_out(self.path, "as the first value is not a number, such as 7.25", words)
        return pa.table({str(n): pa.chunked_array(self._of_features[n]) for n in features})

    def rows(self) -> RankingData:
        """All rows, those of a query together."""
        table = self._numbers_alone()
        whole = {role: pa.chunked_array(parts) for role, parts in self._of_roles.items()}
        ids, query = distinct(whole["query"].to_pylist())
        order = np.argsort(query, kind="stable")
        if (np.diff(query) < 0).any():
            warn_user(
                f"{self.path}: rows of a query are apart, and were brought together: rows, and "
                "scores of rows, are in another order than in the table",
                LetorWarning,
            )
        X, names = matrix(table)
        labels = whole["label"].to_numpy() if "label" in whole else np.zeros(len(order))
        documents = whole["document"].to_pylist() if "document" in whole else None
        return RankingData(
            X[order],
            labels[order].astype(np.float32),
            ids,
            query[order],
            names or [],
            None if documents is None else np.array(documents, object)[order],
        )

    def _ids(self, block: Block, column: ColumnName) -> pa.Array:
        """Ids as text; none is missing."""
        ids = written(block, column)
        empty = np.asarray(pc.equal(pc.fill_null(ids, ""), ""))
        if empty.any():
            raise InputError(f"{block.where(int(np.argmax(empty)))}: the id {column!r} is empty")
        return ids

    def _labels(self, block: Block, column: ColumnName) -> pa.Array:
        """Numbers; none is missing."""
        labels = self._numbers(block, column)
        lost = np.asarray(labels.is_null(nan_is_null=True))
        if lost.any():
            row = int(np.argmax(lost))
            value = block.columns[column][row].as_py()
            advice = "leave out pairs that were not judged, or give them 0"
            if column in self.first_word:
                advice = "write grades as numbers, 0, 1, 2, ..., the largest for the best"
            raise InputError(
                f"{block.where(row)}: the label {column!r} is {value!r}, not a number; {advice}"
            )
        return labels

    def _finite(self, block: Block, column: ColumnName) -> pa.Array:
        """As :meth:`_numbers`; none is infinite in float32."""
        numbers = self._numbers(block, column)
        values = numbers.to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            beyond = np.isinf(values.astype(np.float32))
        if not beyond.any():
            return numbers
        if self.non_finite == "raise":
            row = int(np.argmax(beyond))
            of_pairs = "query" in self.roles  # numbers of documents have no such option
            advice = "--non-finite nan (non_finite='nan')" if of_pairs else "leave it empty"
            raise InputError(
                f"{block.where(row)}: {column!r} is {values[row]:g}: infinite, or beyond float32 "
                f"(3.4e38); where it marks missing values: {advice}"
            )
        return pa.array(np.where(beyond, np.nan, values))

    def _numbers(self, block: Block, column: ColumnName) -> pa.Array:
        """float64 [n], null where there is no value, and all null in a column of other values."""
        given, kind = block.columns[column], block.columns[column].type
        nothing = pa.nulls(len(given), pa.float64())
        if any(test(kind) for test in _NUMBERS):
            return pc.cast(given, pa.float64(), safe=False)
        if not pa.types.is_string(kind) or not self.holds_numbers.get(column, True):
            self.holds_numbers[column] = False
            self.first_word.setdefault(column, str(kind))
            return nothing
        with suppress(pa.ArrowInvalid):  # the usual case, in a fifth of the time
            numbers = pc.cast(pc.if_else(pc.equal(given, ""), None, given), pa.float64())
            if numbers.null_count < len(numbers):
                self.holds_numbers[column] = True
            return numbers
        words = pc.utf8_lower(pc.utf8_trim_whitespace(given))
        for spelled, meant in _WORDS.items():
            words = pc.if_else(pc.is_in(words, pa.array(spelled)), meant, words)
        rows = np.flatnonzero(words.is_valid())
        if not len(rows):
            return nothing
        if not self.holds_numbers.setdefault(column, is_number(words[rows[0]])):
            self.first_word[column] = given[rows[0]].as_py()
            return nothing
        try:
            return pc.cast(words, pa.float64())
        except pa.ArrowInvalid:
            row = next(row for row in rows.tolist() if not is_number(words[row]))
            raise InputError(
                f"{block.where(row)}: {column!r} is {given[row].as_py()!r}, not a number, though "
                "the first value is one; correct it, or leave it empty if it is missing"
            ) from None


def _left_out(path: Path, reason: str, columns: Sequence[ColumnName]) -> None:
    shown = [str(name).strip() or "''" for name in columns]
    left = f"{path}: left out, {reason}: {listed(shown, 20)}"
    warn_user(left, LetorWarning)
