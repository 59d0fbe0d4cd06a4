"""Tables: documents, queries and judgements in CSV, TSV, JSON lines or Parquet, by column names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from letor.compression import open_input
from letor.errors import InputError
from ltr_features.sources.judging import JudgedPairs
from ltr_features.text.collection import STREAMS, Collection
from ltr_features.text.records import COMPRESSED, json_lines, text_value

_FORMATS = {".csv": ",", ".tsv": "\t", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}

_NUMBER = " number"
_QUOTED_LINE = re.compile(r"(Expected \d+ columns, got \d+):.*", re.DOTALL)
#: Columns of the judgements' table, unless given otherwise.
_JUDGEMENT_COLUMNS = {"query": "query_id", "document": "document_id", "grade": "grade"}


def read_table(
    documents: str | os.PathLike[str],
    judgements: str | os.PathLike[str],
    *,
    document_columns: Mapping[str, str | Sequence[str]],
    judgement_columns: Mapping[str, str] | None = None,
    queries: str | os.PathLike[str] | None = None,
    query_columns: Mapping[str, str] | None = None,
    grades: Mapping[str, int] | None = None,
    keep_unjudged: bool = False,
    on_unknown: str = "raise",
    name: str | None = None,
) -> Collection:
    """Read a collection from tables; the format is the file's suffix (.csv, .tsv, .jsonl, each also
    .gz, .bz2, .zst; .parquet), the first line of CSV and TSV names the columns.

    Args:
        documents: a row per document.
        judgements: a row per judged pair.
        document_columns: ``{"id": "product_id", "title": "name", "body": ["text", "bullets"]}``:
            the column of the ids, and for each stream its column or columns (joined by a blank).
        judgement_columns: the columns of ``query`` (id), ``document`` (id) and ``grade``; with
            ``text``, the query's text stands in each of its rows and ``queries`` is not needed,
            and without ``query`` texts are numbered from 1.
        queries: a row per query; its columns by ``query_columns``, ``{"id": "query_id",
            "text": "query"}`` by default.
        grades: what values that are no integers mean, for example ``{"Exact": 3, "None": 0}``.
        keep_unjudged: keep queries without judgement (only with ``queries``).
        on_unknown: "raise" or "skip" (and count) judgements of other documents or queries.
        name: of the collection; the documents' file name by default.

    Raises:
        InputError: a file or column that there is not, a row without id, an id twice, two texts of
            one query, a grade that is not known; named by file, and line or row.
    """
    documents, judgements = Path(documents), Path(judgements)
    ids, streams = read_documents(documents, document_columns)
    rows = {document: row for row, document in enumerate(ids)}
    wanted = {**_JUDGEMENT_COLUMNS, **(judgement_columns or {})}
    numbered = queries is None and "text" in wanted and "query" not in (judgement_columns or {})
    if numbered:
        del wanted["query"]
    unknown = sorted(set(judgement_columns or {}) - {*_JUDGEMENT_COLUMNS, "text"})
    if unknown:
        raise InputError(f"judgement_columns: {', '.join(unknown)} unknown; use query, document, "
                         "grade, text")  # fmt: skip
    texts = {} if queries is None else _queries(Path(queries), query_columns)
    if queries is None and "text" not in wanted:
        raise InputError(
            "no query texts: name a table of queries, or the column of the judgements that holds "
            "them (judgement_columns = {text = ...})"
        )
    records = list(read_records(judgements, list(wanted.values())))
    if numbered:
        numbers: dict[str, str] = {}
        for _, record in records:
            text = record[wanted["text"]]
            record[_NUMBER] = numbers.setdefault(text, str(len(numbers) + 1))
        wanted["query"] = _NUMBER
    if queries is None:
        for number, record in records:
            query, text = record[wanted["query"]], record[wanted["text"]]
            for what, value in (("id", query), ("text", text)):
                if not value.strip():
                    raise InputError(f"{judgements}, line {number}: the query {what} is empty")
            if texts.setdefault(query, text) != text:
                raise InputError(
                    f"{judgements}, line {number}: query {query!r} has the text {text!r} here, "
                    f"{texts[query]!r} before"
                )
    judged = JudgedPairs(texts, rows, on_unknown)
    for number, record in records:
        grade = record[wanted["grade"]]
        known = grade if grades is None else _grade(judgements, number, grade, grades)
        judged.add(judgements, number, record[wanted["query"]], record[wanted["document"]], known)
    query_ids = [query for query in texts if keep_unjudged or query in judged]
    if not query_ids:
        raise InputError(f"{judgements}: no query has a judgement")
    return Collection(
        name=name or documents.name.split(".")[0],
        document_ids=ids,
        streams=streams,
        query_ids=query_ids,
        query_texts=[texts[query] for query in query_ids],
        judgements=judged.judgements(query_ids),
        description={
            "source": "tables",
            "documents": len(ids),
            "queries": len(query_ids),
            "queries without judgement, left out": len(texts) - len(query_ids),
            "judged pairs": len(judged),
            "judgements of unknown queries or documents, left out": judged.n_skipped,
        },
    )


def read_records(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, values of the columns as text) of each row; missing values are ``""``.

    Lines are those of the file; of Parquet, rows from 1. (Quoted line ends in CSV shift them.)

    Raises:
        InputError: no such file, another suffix, a column that there is not, or a damaged file.
    """
    kind = table_format(path)
    if kind == "json":
        for number, record in json_lines(path):
            absent = [column for column in columns if column not in record]
            if absent:
                raise InputError(f"{path}, line {number}: {', '.join(absent)} is missing")
            yield number, {c: text_value(path, number, record, c) for c in columns}
        return
    first = 1 if kind == "parquet" else 2
    for batch in table_batches(path, kind, list(dict.fromkeys(columns))):
        values = [
            ["" if value is None else str(value) for value in batch.column(c).to_pylist()]
            for c in batch.schema.names
        ]
        for offset, row in enumerate(zip(*values, strict=True)):
            yield first + offset, dict(zip(batch.schema.names, row, strict=True))
        first += batch.num_rows


def table_format(path: Path) -> str:
    """By the file's suffix: "json", "parquet", or what separates the fields of a line.

    Raises:
        InputError: another suffix.
    """
    suffixes = path.suffixes
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes = suffixes[:-1]
    if not suffixes or suffixes[-1] not in _FORMATS:
        raise InputError(f"{path}: the name must end in {', '.join(_FORMATS)}")
    return _FORMATS[suffixes[-1]]


def is_table(path: Path) -> bool:
    """Whether the file's name ends as that of a table."""
    return any(suffix in _FORMATS for suffix in path.suffixes[-2:])


def table_columns(path: Path) -> list[str]:
    """The names of a table's columns, by its beginning; of JSON lines, the keys of the first.

    Raises:
        InputError: as :func:`table_batches`.
    """
    kind = table_format(path)
    if kind == "json":
        return next((list(record) for _, record in json_lines(path)), [])
    with _told(path):
        if kind == "parquet":
            return list(pa.parquet.read_schema(_present(path)).names)
        with open_input(path) as stream:
            parse = pa.csv.ParseOptions(delimiter=kind, newlines_in_values=True)
            return list(pa.csv.open_csv(stream, parse_options=parse).schema.names)


def table_batches(path: Path, kind: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The columns of a CSV, TSV (as strings) or Parquet file (of its own types), block by block.

    Args:
        kind: "parquet", or what separates the fields of a line.

    Raises:
        InputError: no such file, a column that there is not, or a damaged file; the message holds
            nothing of its content.
    """
    with _told(path):
        if kind == "parquet":
            file = pa.parquet.ParquetFile(_present(path))
            _check_columns(path, file.schema_arrow.names, columns)
            yield from file.iter_batches(columns=columns)
            return
        with open_input(path) as stream:
            options = pa.csv.ConvertOptions(
                # Ids such as 007 stay as they are written.
                column_types={column: pa.string() for column in columns},
                strings_can_be_null=False,
            )
            parse = pa.csv.ParseOptions(delimiter=kind, newlines_in_values=True)
            reader = pa.csv.open_csv(stream, parse_options=parse, convert_options=options)
            _check_columns(path, reader.schema.names, columns)
            for batch in reader:
                yield batch.select(columns)


def _present(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    return path


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Arrow's errors as ours. Arrow quotes the line, which may be a user's query."""
    try:
        yield
    except pa.ArrowInvalid as error:
        reason = _QUOTED_LINE.sub(r"\1", str(error))
        raise InputError(f"{path}: cannot be read as a table: {reason}") from None


def _check_columns(path: Path, found: Sequence[str], wanted: Sequence[str]) -> None:
    absent = [column for column in wanted if column not in found]
    if absent:
        raise InputError(f"{path}: no column {', '.join(absent)}; it has {', '.join(found)}")
    twice = [column for column in wanted if list(found).count(column) > 1]
    if twice:
        raise InputError(f"{path}: two columns are called {twice[0]}; rename one of them")


def read_documents(
    path: Path, columns: Mapping[str, str | Sequence[str]]
) -> tuple[list[str], dict[str, list[str]]]:
    """Ids and streams of a table of documents; ``columns`` as ``document_columns`` of
    :func:`read_table`.

    Raises:
        InputError: as there.
    """
    names = {key: [c] if isinstance(c, str) else list(c) for key, c in columns.items()}
    unknown = sorted(set(names) - {"id", *STREAMS})
    if unknown or "id" not in names or len(names) < 2 or len(names["id"]) != 1:
        problem = f"{', '.join(unknown)} unknown" if unknown else "id and a stream are needed"
        raise InputError(f"document_columns: {problem}; use id and {', '.join(STREAMS)}")
    identity = names.pop("id")[0]
    streams: dict[str, list[str]] = {stream: [] for stream in names}
    ids: dict[str, None] = {}
    wanted = [identity, *(column for group in names.values() for column in group)]
    for number, record in read_records(path, wanted):
        _take_id(path, number, record[identity], ids, "document")
        for stream, group in names.items():
            streams[stream].append(" ".join(filter(None, (record[column] for column in group))))
    if not ids:
        raise InputError(f"{path}: no documents")
    return list(ids), streams


def _queries(path: Path, columns: Mapping[str, str] | None) -> dict[str, str]:
    names = {"id": "query_id", "text": "query", **(columns or {})}
    unknown = sorted(set(names) - {"id", "text"})
    if unknown:
        raise InputError(f"query_columns: {', '.join(unknown)} unknown; use id and text")
    texts: dict[str, str] = {}
    ids: dict[str, None] = {}
    for number, record in read_records(path, [names["id"], names["text"]]):
        _take_id(path, number, record[names["id"]], ids, "query")
        texts[record[names["id"]]] = record[names["text"]]
    return texts


def _take_id(path: Path, number: int, value: str, ids: dict[str, None], what: str) -> None:
    if not value:
        raise InputError(f"{path}, line {number}: the {what} id is empty")
    if value in ids:
        raise InputError(f"{path}, line {number}: {what} id {value!r} occurs twice")
    ids[value] = None


def _grade(path: Path, number: int, value: str, grades: Mapping[str, Any]) -> str:
    if value not in grades:
        raise InputError(f"{path}, line {number}: grade {value!r} is not among {', '.join(grades)}")
    return str(grades[value])
