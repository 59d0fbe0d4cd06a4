"""Read scores of (query, document) pairs from runs, tables and LETOR rows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from letor.column_names import is_letor, read_rows
from letor.compression import text_lines
from letor.dataset import distinct
from letor.document_ids import needed_ids
from letor.errors import InputError
from letor.files import check_is_file
from letor.judged_runs import ids_are_unicode
from letor.trec import is_run, read_run
from ltr_base.names import nearest
from ltr_features.sources.arrow_tables import is_number
from ltr_features.sources.id_codes import Codes
from ltr_features.sources.input_files import suffixes
from ltr_features.sources.table_blocks import Block, blocks, is_table, table_columns
from ltr_features.sources.usual_names import find_columns, is_unnamed
from ltr_features.text.records import place

#: Usual names of columns of ids, in lower case without punctuation, in order of preference.
QUERY_IDS = ("qid", "queryid")
QUERY_NAMES = (*QUERY_IDS, "query")
DOCUMENT_NAMES = (
    "docno", "docid", "documentid", "corpusid", "pid", "document",
    "productid", "productuid", "itemid", "sku", "asin",
)  # fmt: skip
#: Usual names of columns of labels; a column ``score`` or ``position`` is rather a feature.
LABEL_NAMES = (
    "label", "grade", "relevance", "rel", "judgement", "judgment", "escilabel", "rating", "target",
    "y",
)  # fmt: skip
#: Columns in exports of runs that are neither ids nor scores.
_NO_SCORES = ("rank", "tag", "q0", "iteration", "runid")


class ScoreTable(NamedTuple):
    """The rows of a file, one for each pair.

    Attributes:
        path: the file.
        line: int64 [n], the line of each row (in Parquet and LETOR text the row, from 1).
        query_ids, document_ids: the distinct ids.
        query, document: int64 [n], indices into these lists.
        scores: float64 [n] by the name of the column; ``score`` for a run.
    """

    path: Path
    line: NDArray[np.int64]
    query_ids: list[str]
    document_ids: list[str]
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]]

    def where(self, row: int) -> str:
        """File and line of a row, for messages."""
        return place(self.path, self.line[row])


def score_columns(
    path: str | os.PathLike[str],
    *,
    query: str | None = None,
    document: str | None = None,
    scores: Sequence[str] = (),
) -> list[str]:
    """The names of a file's score columns, from its beginning alone, but for LETOR text.

    Raises:
        InputError: see :func:`read_scores`.
    """
    check_is_file(path := Path(path))
    if not is_table(path) and is_letor(path):
        return list(_letor_scores(path, scores).scores)
    if _is_run(path, query, document):
        return ["score"]
    return _chosen(path, query, document, scores)[2]


def check_named(
    paths: Iterable[str | os.PathLike[str]],
    *,
    query: str | None = None,
    document: str | None = None,
    scores: Sequence[str] = (),
) -> None:
    """Raise InputError if columns are named, and every file is read as a run, which names none.

    Args:
        query, document, scores: see :func:`read_scores`.
    """
    files = [Path(path) for path in paths]
    for path in files:
        check_is_file(path)
    runs = [f for f in files if _is_run(f, query, document) and (is_table(f) or not is_letor(f))]
    if (query or document or scores) and files and len(runs) == len(files):
        raise InputError(
            f"query, document and scores name columns of tables, and {files[0]} is a run: leave "
            "them out"
        )


def is_pair_table(path: Path) -> bool:
    """Whether a file is a table whose columns of query and document ids have usual names."""
    return is_table(path) and bool(find_columns(table_columns(path), QUERY_NAMES, DOCUMENT_NAMES))


def _is_run(path: Path, *named: str | None) -> bool:
    """Whether a file is read as a run: by its name, or its first line if no column is named."""
    if not is_table(path):
        return True
    is_tsv = not any(named) and ".tsv" in suffixes(path)
    return is_tsv and not is_pair_table(path) and is_run(path)


def _letor_scores(path: Path, scores: Sequence[str]) -> ScoreTable:
    """The columns of LETOR rows as scores."""
    rows = read_rows(path)
    named = needed_ids(rows, "by which scores are joined", path)
    unknown = sorted(set(scores) - set(rows.column_names))
    if unknown:
        raise InputError(
            f"{path}: no column {unknown[0]!r}; {nearest(unknown[0], rows.column_names)}"
        )
    documents, document = distinct(named)
    columns = {name: rows.column(name).astype(np.float64) for name in scores or rows.column_names}
    line = np.arange(1, len(rows) + 1)
    query = rows.query_index.astype(np.int64)
    return _distinct(
        ScoreTable(path, line, list(rows.query_ids), list(documents), query, document, columns)
    )


def check_unicode(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """The table of a TREC file, if its ids, ``qid`` and ``docno``, are UTF-8.

    Raises:
        InputError: they are not; the message names the line.
    """
    if not ids_are_unicode(table):
        deque(text_lines(path), maxlen=0)  # raises the error
    return table


def read_scores(
    path: str | os.PathLike[str],
    *,
    query: str | None = None,
    document: str | None = None,
    scores: Sequence[str] = (),
) -> ScoreTable:
    """Read a file of scores.

    Args:
        path: .csv, .tsv (the first line names the columns), .jsonl, each also .gz, .bz2, .zst;
            .parquet; LETOR text with document ids (``#docid = ID``), each of whose columns is a
            score; any other file is read as a run, and so is a .tsv that begins like one.
        query, document: names of the columns of ids; by default the first of ``QUERY_NAMES`` and
            ``DOCUMENT_NAMES`` that the table has, ignoring case and punctuation.
        scores: the columns of scores; by default all others except ranks, tags and columns
            without a name of their own, such as the index of a data frame; a table with a column
            of ``LABEL_NAMES`` needs them named. ``query`` and ``document`` do not apply to LETOR
            text.

    Raises:
        InputError: no such file, another format than its name says, a missing column or id, a
            score that is not a finite number, or a pair with two different scores; file and line
            are named.
    """
    check_is_file(path := Path(path))
    if not is_table(path) and is_letor(path):
        return _letor_scores(path, scores)
    if not _is_run(path, query, document):
        query_column, document_column, names = _chosen(path, query, document, scores)
        found = blocks(path, [query_column, document_column, *names])
    else:
        run = check_unicode(path, read_run(path))
        query_column, document_column, names = "qid", "docno", ["score"]
        columns = {name: pa.array(run[name]) for name in ("qid", "docno", "score")}
        found = iter([Block(path, np.arange(1, len(run) + 1), columns)])
    queries, documents = Codes(), Codes()
    parts = [
        (
            block.line,
            queries.of(block, query_column),
            documents.of(block, document_column),
            *(_numbers(block, name) for name in names),
        )
        for block in found
    ]
    nothing = [np.zeros(0, dtype=np.int64)] * (3 + len(names))
    line, query_rows, document_rows, *values = map(
        np.concatenate, zip(*parts, strict=True) if parts else zip(nothing, strict=True)
    )
    table = ScoreTable(
        path,
        line,
        list(queries.number),
        list(documents.number),
        query_rows,
        document_rows,
        dict(zip(names, values, strict=True)),
    )
    return _distinct(table)


def _distinct(table: ScoreTable) -> ScoreTable:
    """The rows without duplicates, which must have the same scores."""
    key = table.query * len(table.document_ids) + table.document
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[order]) == 0)
    if not len(again):
        return table
    for name, scores in table.scores.items():
        unequal = again[scores[order[again]] != scores[order[again + 1]]]
        if len(unequal):
            first, later = order[unequal[0] : unequal[0] + 2].tolist()
            raise InputError(
                f"{table.where(later)}: {name!r} is {scores[later]:g} for query "
                f"{table.query_ids[table.query[first]]!r} and document "
                f"{table.document_ids[table.document[first]]!r}, but {scores[first]:g} before "
                f"({table.where(first)}); keep one of them"
            )
    kept = np.sort(np.delete(order, again + 1))
    return table._replace(
        line=table.line[kept],
        query=table.query[kept],
        document=table.document[kept],
        scores={name: scores[kept] for name, scores in table.scores.items()},
    )


def _chosen(
    path: Path, query: str | None, document: str | None, scores: Sequence[str]
) -> tuple[str, str, list[str]]:
    """The columns of ids and of scores."""
    names = table_columns(path)
    problem = f"{path}: the columns are {', '.join(map(repr, names))}"

    def id_column(given: str | None, usual: Sequence[str], option: str) -> str:
        if given is None:
            found = find_columns(names, usual)
            if found is None:
                raise InputError(f"{problem}; name the one of {option} ids by the option {option}")
            return found[0]
        if given not in names:
            raise InputError(f"{problem}; the option {option} names {given!r}")
        return given

    ids = id_column(query, QUERY_NAMES, "query"), id_column(document, DOCUMENT_NAMES, "document")
    unknown = sorted(set(scores) - set(names))
    if unknown:
        raise InputError(f"{problem}; the option scores names {unknown[0]!r}")
    no_scores = {name for name in names if name.lower() in _NO_SCORES or is_unnamed(name)}
    others = [name for name in names if name not in ids and name not in no_scores]
    if not (scores or others):
        raise InputError(f"{problem}; none is left for scores")
    if not scores and (labels := find_columns(others, LABEL_NAMES)):
        raise InputError(
            f"{path}: column {labels[0]!r} looks like judgements, and as a score would give away "
            "the answer; remove it, or name the columns of scores by the option scores"
        )
    return *ids, list(scores or others)


def _numbers(block: Block, name: str) -> NDArray[np.float64]:
    """float64 [n]: a column of scores, each finite in float32."""
    column = block.columns[name]
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(column, ""), "nan", column)
    try:
        values = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        row = next((i for i, word in enumerate(column) if not is_number(word)), 0)
        raise InputError(
            f"{block.where(row)}: {name!r} is {column[row].as_py()!r}, not a number; name the "
            "columns that are scores by the option scores"
        ) from None
    bad = ~(np.abs(values) <= np.finfo(np.float32).max)
    if bad.any():
        row = int(np.argmax(bad))
        value = "missing or NaN" if np.isnan(values[row]) else f"{values[row]}"
        raise InputError(
            f"{block.where(row)}: {name!r} is {value}; scores must be finite in float32; leave out "
            "the rows of pairs without a score, in a file for each score if there are several"
        )
    return np.asarray(values, dtype=np.float64)
