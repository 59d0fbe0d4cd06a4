"""Scores of (query, document) pairs from files: TREC runs and tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from numpy.typing import NDArray

from letor.errors import InputError
from letor.trec import read_run

#: What tables call the ids, in lower case without marks; the first that is there is taken.
QUERY_NAMES = ("qid", "queryid", "query")
DOCUMENT_NAMES = ("docno", "docid", "documentid", "corpusid", "pid", "document")
#: What exports of runs have beside ids and scores.
_NO_SCORES = ("rank", "tag", "q0", "iteration", "runid")
_TEXT_TABLES = {".csv": ",", ".tsv": "\t"}
_COMPRESSED = (".gz", ".bz2", ".zst")


class ScoreTable(NamedTuple):
    """The rows of a file.

    Attributes:
        query_ids, document_ids: the distinct ids.
        query, document: int64 [n], their places in these lists.
        scores: float64 [n] by the name of the column; of a run: ``score``.
        path: the file. first_line: of the first row, 0 where the file has no lines (Parquet).
    """

    query_ids: list[str]
    document_ids: list[str]
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]]
    path: Path
    first_line: int

    def where(self, row: int) -> str:
        """A row as messages name it."""
        line, word = (row + self.first_line, "line") if self.first_line else (row + 1, "row")
        return f"{self.path}, {word} {line}"


def score_columns(
    path: str | os.PathLike[str],
    *,
    query: str | None = None,
    document: str | None = None,
    scores: Sequence[str] = (),
) -> list[str]:
    """The names of the score columns of a file, by its beginning alone.

    Raises:
        InputError: as :func:`read_scores`.
    """
    path = _present(path)
    if _kind(path) == "run":
        return ["score"]
    return _chosen(path, _names(path), query, document, scores)[2]


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
            .parquet; any other name is read as a TREC run.
        query, document: names of the columns of ids; by default those of ``QUERY_NAMES`` and
            ``DOCUMENT_NAMES`` that are there, whatever their case and marks.
        scores: the columns that are scores; by default all others but ranks and tags.

    Raises:
        InputError: no such file, not the format that its name says, a column that is not there, an
            id that is missing, or a score that is no finite number; named by file and line.
    """
    path = _present(path)
    kind = _kind(path)
    if kind == "run":
        run = read_run(path)
        table = pa.table({"q": run["qid"], "d": run["docno"], "score": run["score"]})
        names, first_line = ("q", "d", ["score"]), 1
    else:
        names = _chosen(path, _names(path), query, document, scores)
        table = _read(path, kind, names)
        first_line = {"parquet": 0, "json": 1}.get(kind, 2)
    query_ids, query_rows = _encoded(table[names[0]])
    document_ids, document_rows = _encoded(table[names[1]])
    found = ScoreTable(query_ids, document_ids, query_rows, document_rows, {}, path, first_line)
    for column, ids, rows in (
        (names[0], query_ids, query_rows),
        (names[1], document_ids, document_rows),
    ):
        if "" in ids:
            row = int(np.argmax(rows == ids.index("")))
            raise InputError(f"{found.where(row)}: column {column!r} is empty; every row needs ids")
    for column in names[2]:
        found.scores[column] = _numbers(found, column, table[column])
    return found


def _present(path: str | os.PathLike[str]) -> Path:
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file")
    return Path(path)


def _kind(path: Path) -> str:
    suffix = path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix
    if suffix in _TEXT_TABLES:
        return suffix
    return {".parquet": "parquet", ".jsonl": "json", ".ndjson": "json"}.get(suffix, "run")


def _names(path: Path) -> list[str]:
    """The columns of a table, by its beginning."""
    kind = _kind(path)
    try:
        if kind == "parquet":
            return list(pa.parquet.read_schema(path).names)
        with pa.input_stream(str(path), compression="detect") as stream:
            if kind == "json":
                beginning = stream.read(1 << 16)
                line = beginning[: beginning.rfind(b"\n") + 1] or beginning
                return list(pa.json.read_json(pa.BufferReader(line)).column_names)
            parsing = pa.csv.ParseOptions(delimiter=_TEXT_TABLES[kind])
            with pa.csv.open_csv(stream, parse_options=parsing) as reader:
                return list(reader.schema.names)
    except (OSError, pa.ArrowInvalid) as error:
        raise _refused(path, error) from None


def _read(path: Path, kind: str, names: tuple[str, str, list[str]]) -> pa.Table:
    wanted = [names[0], names[1], *names[2]]
    ids = {names[0]: pa.string(), names[1]: pa.string()}
    try:
        if kind == "parquet":
            return pa.parquet.read_table(path, columns=wanted)
        with pa.input_stream(str(path), compression="detect") as stream:
            if kind == "json":
                return pa.json.read_json(stream).select(wanted)
            return pa.csv.read_csv(
                stream,
                parse_options=pa.csv.ParseOptions(delimiter=_TEXT_TABLES[kind]),
                convert_options=pa.csv.ConvertOptions(column_types=ids, include_columns=wanted),
            )
    except (OSError, pa.ArrowInvalid, KeyError) as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: Exception) -> InputError:
    told = " ".join(str(error).split())
    return InputError(f"{path}: cannot be read as a table of scores ({told})")


def _chosen(
    path: Path,
    names: Sequence[str],
    query: str | None,
    document: str | None,
    scores: Sequence[str],
) -> tuple[str, str, list[str]]:
    """The columns of ids and of scores."""
    plain = {"".join(c for c in name.lower() if c.isalnum()): name for name in reversed(names)}
    said = f"{path}: the columns are {', '.join(map(repr, names))}"

    def one(given: str | None, usual: Sequence[str], option: str) -> str:
        if given is None:
            given = next((plain[name] for name in usual if name in plain), None)
            if given is None:
                raise InputError(f"{said}; name the one of {option} ids by the option {option}")
        elif given not in names:
            raise InputError(f"{said}; the option {option} names {given!r}")
        return given

    ids = one(query, QUERY_NAMES, "query"), one(document, DOCUMENT_NAMES, "document")
    unknown = sorted(set(scores) - set(names))
    if unknown:
        raise InputError(f"{said}; the option scores names {unknown[0]!r}")
    others = [name for name in names if name not in ids and name.lower() not in _NO_SCORES]
    if not (scores or others):
        raise InputError(f"{said}; none is left for scores")
    return *ids, list(scores or others)


def _encoded(column: pa.ChunkedArray) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct ids as text, and the place of each row's; a missing id is ``""``."""
    text = pa.compute.fill_null(column.cast(pa.string()), "").combine_chunks()
    encoded = text.dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int64)


def _numbers(table: ScoreTable, name: str, column: Any) -> NDArray[np.float64]:
    """float64 [n], each finite in float32."""
    advice = "name the columns that are scores by the option scores"
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
    if not any(is_kind(column.type) for is_kind in kinds):
        row = next((i for i, value in enumerate(column.to_pylist()) if not _is_number(value)), 0)
        value = column[row].as_py() if len(column) else None
        raise InputError(f"{table.where(row)}: {name!r} is {value!r}, not a number; {advice}")
    values = column.cast(pa.float64()).to_numpy()
    bad = ~(np.abs(values) <= np.finfo(np.float32).max)
    if bad.any():
        row = int(np.argmax(bad))
        said = "missing or NaN" if np.isnan(values[row]) else f"{values[row]}"
        raise InputError(
            f"{table.where(row)}: {name!r} is {said}; scores must be finite in float32; leave out "
            "the rows of pairs without a score"
        )
    return np.asarray(values, dtype=np.float64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
