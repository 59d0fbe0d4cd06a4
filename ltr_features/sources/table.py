"""Read a collection from tables of documents, queries and judgements, by column names."""

from __future__ import annotations

import json
import os
import shlex
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from letor.errors import InputError
from ltr_features.sources.arrow_tables import are_names, column_list
from ltr_features.sources.files import (
    DOCUMENT_COLUMNS,
    JUDGEMENT_COLUMNS,
    QUERY_TEXT_NAMES,
    judgement_rows,
    read_queries,
)
from ltr_features.sources.judging import JudgedPairs
from ltr_features.sources.score_tables import DOCUMENT_NAMES, QUERY_IDS, QUERY_NAMES
from ltr_features.sources.table_blocks import (
    ColumnName,
    Frame,
    add_usual,
    columns_told,
    find_columns,
    is_table,
    rows,
    table_columns,
    table_of,
)
from ltr_features.text.collection import FIELDS, Collection, normalised
from ltr_features.text.stored_texts import DocumentTexts


def read_table(
    documents: str | os.PathLike[str] | Any,
    judgements: str | os.PathLike[str] | Any = None,
    *,
    document_columns: Mapping[str, ColumnName | Sequence[ColumnName]] | None = None,
    judgement_columns: Mapping[str, ColumnName] | None = None,
    queries: str | os.PathLike[str] | Any = None,
    query_columns: Mapping[str, ColumnName] | None = None,
    grades: Mapping[str, int] | None = None,
    grade_thresholds: Sequence[float] | None = None,
    on_other_text: Literal["raise", "first", "last"] = "raise",
    on_other_grade: Literal["raise", "highest", "lowest"] = "raise",
    encoding: str = "utf-8",
    keep_unjudged: bool = False,
    on_unknown: str = "raise",
    name: str | None = None,
) -> Collection:
    """Read a collection from tables.

    The suffix of a file determines its format (.csv, .tsv, .jsonl, each also .gz, .bz2, .zst;
    .parquet). The first line of CSV and TSV names the columns; without such a line, columns are
    called 1, 2, ... Each table may also be a pandas, polars or Arrow frame.

    Args:
        documents: a row per document. Rows with the same id and texts are one document, so that
            one table may hold documents and judgements.
        judgements: a row per judged pair, or any file of judgements (TREC, BEIR); by default the
            table of documents.
        document_columns: ``{"id": "product_id", "title": "name", "body": ["text", "bullets"]}``:
            the column of ids, and for each field its column or columns (joined by a space); by
            default those with usual names: the id, and all fields if none is given.
        judgement_columns: columns of ``query`` (id), ``document`` (id) and ``grade`` that do not
            have usual names.
        queries: a row per query, or any file of queries (TREC topics, ``id:text`` lines). By
            default query texts are read from the rows of judgements, from the column ``text`` of
            ``judgement_columns`` or one with a usual name; without a column of ids, texts are
            numbered from 1.
        query_columns: columns ``id`` and ``text`` of queries that do not have usual names.
        grades: integers for values that are not, for example ``{"Exact": 3, "None": 0}``.
        grade_thresholds: ascending thresholds for numbers that are not integers; the grade is the
            number of thresholds reached. With ``[2.33, 2.67]`` 2 is 0, 2.33 is 1, 3 is 2.
        on_other_text: for a document id that comes again with other texts: "raise", or take the
            texts of its "first" or "last" row (such rows are counted).
        on_other_grade: for a pair that is judged again with another grade (by a second rater, for
            example): "raise", or take the "highest" or "lowest" grade (such rows are counted).
        encoding: encoding of text files that are not UTF-8.
        keep_unjudged: keep queries without judgements (only with ``queries``).
        on_unknown: "raise" or "skip" (and count) judgements of unknown documents or queries.
        name: name of the collection; the documents' file name by default.

    Raises:
        InputError: a missing file or column, a row without id, a document id or query with two
            texts, an unknown grade, a pair with two grades, or bytes that are not in the encoding;
            file and line (or row) are named.
    """
    documents = table_of(documents)
    in_documents, in_judgements = dict(document_columns or {}), dict(judgement_columns or {})
    found: dict[str, ColumnName] = {}
    if judgements is None:
        judgements = documents
        found |= _share_id(documents, in_documents, in_judgements, encoding)
    judgements = table_of(judgements)
    if queries is None:
        found |= _find_query_columns(judgements, in_judgements, encoding)
    graded = _grade_rule(grades, grade_thresholds)
    of_judgements: dict[str, ColumnName] = {}
    if judgements == documents:
        of_judgements |= in_judgements
        add_usual(of_judgements, table_columns(documents, encoding), JUDGEMENT_COLUMNS)
    table = read_documents(
        documents,
        in_documents,
        other_columns=list(of_judgements.values()),
        on_other_text=on_other_text,
        encoding=encoding,
    )
    judged_rows = list(judgement_rows(judgements, in_judgements, encoding=encoding))
    n_spelled = 0
    if queries is not None:
        texts = read_queries(queries, columns=query_columns, encoding=encoding)
    else:
        texts, n_spelled = _texts_of_rows(judgements, judged_rows)
    row_of = {document: row for row, document in enumerate(table.ids)}
    judged = JudgedPairs(texts, row_of, on_unknown, on_other_grade)
    for number, row in judged_rows:
        where = f"{judgements}, line {number}"
        judged.add(
            str(judgements), number, row["query"], row["document"], graded(where, row["grade"])
        )
    facts: dict[str, str | int] = dict(judged.told)
    if found:
        facts["columns of judgements, by their usual names"] = columns_told(found)
    if n_spelled:
        facts["queries with several spellings (case, spaces); the first taken"] = n_spelled
    query_ids = [query for query in texts if keep_unjudged or query in judged]
    if not query_ids:
        raise InputError(f"{judgements}: no query has a judgement")
    return Collection(
        name=name or documents.name.split(".")[0],
        document_ids=table.ids,
        fields=table.fields,
        query_ids=query_ids,
        query_texts=[texts[query] for query in query_ids],
        judgements=judged.judgements(query_ids),
        description={
            "source": "tables",
            "documents": len(table.ids),
            **table.told,
            "queries": len(query_ids),
            "queries without judgement, left out": len(texts) - len(query_ids),
            "judged pairs": len(judged),
            "judgements of unknown queries or documents, left out": judged.n_skipped,
            **facts,
        },
    )


def _usual_columns(
    path: Path | Frame,
    names: Sequence[str],
    fields: Iterable[str],
    given: Mapping[str, Any],
    option: str,
) -> dict[str, Any]:
    """The columns of ids and of fields: those given, completed by those with usual names, each of
    them used once.

    Args:
        path: the table. names: its columns. fields: fields to look for. given: columns by key.
        option: prefix of the option that names a column, for the message.

    Raises:
        InputError: there is no column of ids, or none of any field.
    """
    columns = dict(given)
    usual = {what: (what, *DOCUMENT_COLUMNS.get(what, ())) for what in ("id", *fields)}
    add_usual(columns, names, usual)
    if "id" not in columns or len(columns) < 2:
        raise InputError(
            f"{path}: the columns are {column_list(names)}; say which is the id and which are "
            f"texts: {option}id=... {option}body=... (by number, 1, 2, ..., if the file has no "
            "header line)"
        )
    return columns


def _left_out(
    unused: Sequence[ColumnName],
    columns: Mapping[str, Sequence[ColumnName]],
    field: str,
    option: str,
) -> str:
    """The columns that are not read, and how to add the first of them to a field; ``columns`` are
    those that are read, by key."""
    more = {**columns, field: [*columns.get(field, ()), unused[0]]}
    values = {
        key: str(group[0]) if len(group) == 1 else json.dumps(group, ensure_ascii=False)
        for key, group in more.items()
    }
    named = " ".join(f"{option}{key}={shlex.quote(value)}" for key, value in values.items())
    return f"{column_list(unused)}; to read {unused[0]!r} too, name all columns: {named}"


def _share_id(
    path: Path | Frame,
    in_documents: dict[str, Any],
    in_judgements: dict[str, ColumnName],
    encoding: str,
) -> dict[str, ColumnName]:
    """Use the same column of document ids for documents and judgements of a table that holds both,
    whose ``id`` may number the rows; returns the column if it was found by its usual name."""
    given = in_documents.get("id", in_judgements.get("document"))
    found = None
    if given is None:
        found = find_columns(table_columns(path, encoding), (*DOCUMENT_NAMES, "id"))
        if found is None:
            return {}  # reading the documents will raise an error that lists the columns
        given = found[0]
    in_documents.setdefault("id", given)
    in_judgements.setdefault("document", given)
    return {"document": given} if found else {}


def _find_query_columns(
    path: Path | Frame, given: dict[str, ColumnName], encoding: str
) -> dict[str, str]:
    """Add the columns of query texts, and of query ids if any, to those given; returns those added.

    Raises:
        InputError: there is no column of texts.
    """
    names: list[str] = []
    if is_table(path) and are_names(list(given.values())):
        names = table_columns(path, encoding)
    added = add_usual(given, names, {"text": QUERY_TEXT_NAMES})
    added |= add_usual(given, names, {"query": QUERY_NAMES if "text" in given else QUERY_IDS})
    if "query" in given:  # else a column called query may hold ids
        added |= add_usual(given, names, {"text": ("query",)})
    if "text" not in given:
        raise InputError(
            f"{path}: no query texts: name a table of queries, or the column of the judgements "
            f"that holds them (judgement_columns = {{text = ...}})"
            + (f"; the columns are {column_list(names)}" if names else "")
        )
    return added


def _texts_of_rows(
    path: Path | Frame, judged_rows: Iterable[tuple[int, dict[str, str]]]
) -> tuple[dict[str, str], int]:
    """Query texts by id, from rows of judgements, and how many of them have several spellings.

    Rows without a query id get the number of their text as id; texts that differ only in case and
    spaces are the same query, and its first spelling is taken."""
    texts: dict[str, str] = {}
    numbers: dict[str, str] = {}
    spelled: set[str] = set()
    for line, row in judged_rows:
        text = row["text"]
        if "query" not in row:
            row["query"] = numbers.setdefault(normalised(text), str(len(numbers) + 1))
            if text != (text := texts.get(row["query"], text)):
                spelled.add(row["query"])
        query = row["query"]
        for what, value in (("id", query), ("text", text)):
            if not value.strip():
                raise InputError(f"{path}, line {line}: the query {what} is empty")
        if texts.setdefault(query, text) != text:
            raise InputError(
                f"{path}, line {line}: query {query!r} has the text {text!r} here, "
                f"{texts[query]!r} before"
            )
    return texts, len(spelled)


def _grade_rule(
    grades: Mapping[str, Any] | None, thresholds: Sequence[float] | None
) -> Callable[[str, str], str]:
    """A function of (file and line, grade as written) that returns the grade as an integer."""
    if grades is not None and thresholds is not None:
        raise InputError("grades and grade_thresholds both say what grades mean; give one of them")
    if grades is not None:

        def by_name(where: str, value: str) -> str:
            if value not in grades:
                raise InputError(f"{where}: grade {value!r} is not among {', '.join(grades)}")
            return str(grades[value])

        return by_name
    if thresholds is None:
        return lambda where, value: value
    edges = np.asarray(thresholds, dtype=np.float64)
    if not len(edges) or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise InputError(
            f"grade_thresholds must be ascending numbers, [2.33, 2.67], got {list(thresholds)}"
        )

    def by_threshold(where: str, value: str) -> str:
        try:
            number = float(value)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            raise InputError(f"{where}: grade {value!r} is not a finite number, as needed for "
                             "grade_thresholds")  # fmt: skip
        return str(bisect_right(edges, number))

    return by_threshold


class DocumentTable(NamedTuple):
    """Documents of a table.

    Attributes:
        ids: distinct ids. fields: texts by field, one for each id.
        told: facts for the description: columns found by their usual names, columns left out, and
            numbers of rows with a repeated id.
    """

    ids: list[str]
    fields: dict[str, Sequence[str]]
    told: dict[str, str | int]


def read_documents(
    path: Path | Frame,
    columns: Mapping[str, ColumnName | Sequence[ColumnName]] | None = None,
    *,
    fields: Sequence[str] | None = None,
    other_columns: Sequence[ColumnName] = (),
    option: str = "document_columns.",
    on_other_text: Literal["raise", "first", "last"] = "raise",
    encoding: str = "utf-8",
) -> DocumentTable:
    """Read the documents of a table; see :func:`read_table` for other parameters and for errors.

    Args:
        columns: ``document_columns`` there.
        fields: fields whose columns are found by their usual names if not given; by default all
            fields if no column of a field is given, else none.
        other_columns: columns of the table that hold something else.
        option: prefix of the option that names a column, for messages.
    """
    if on_other_text not in ("raise", "first", "last"):
        raise InputError(f"on_other_text must be 'raise', 'first' or 'last', got {on_other_text!r}")
    given = dict(columns or {})
    told: dict[str, str | int] = {}
    header = table_columns(path, encoding)
    looked_for = fields or (() if set(given) - {"id"} else FIELDS)
    columns = _usual_columns(path, header, looked_for, given, option)
    if len(columns) > len(given):
        added = {what: name for what, name in columns.items() if what not in given}
        told["columns of documents, by their usual names"] = columns_told(added)
    names = {key: [c] if isinstance(c, (str, int)) else list(c) for key, c in columns.items()}
    unknown = sorted(set(names) - {"id", *FIELDS})
    if unknown or "id" not in names or len(names) < 2 or len(names["id"]) != 1:
        problem = f"{', '.join(unknown)} unknown" if unknown else "id and a field are needed"
        raise InputError(f"document_columns: {problem}; use id and {', '.join(FIELDS)}")
    identity = names.pop("id")[0]
    wanted = [identity, *(column for group in names.values() for column in group)]
    there = header if are_names(wanted) else range(1, len(header) + 1)
    if unused := [column for column in there if column not in (*wanted, *other_columns)]:
        kept = {"id": [identity], **names} if "id" in given else names
        field = next(field for field in FIELDS if field in (fields or FIELDS))
        told["columns of documents left out"] = _left_out(unused, kept, field, option)
    texts = DocumentTexts(list(names))
    row_of: dict[str, int] = {}
    hashes: dict[str, list[int]] = {}  # of each document's texts, which may be on disk by now
    n_same = n_other = 0
    for number, (document, *values) in rows(path, wanted, encoding=encoding):
        if not document:
            raise InputError(f"{path}, line {number}: the document id is empty")
        rest = iter(values)
        found = {
            field: " ".join(filter(None, (next(rest) for _ in group)))
            for field, group in names.items()
        }
        hashed = [hash(text) for text in found.values()]
        known = hashes.get(document)
        if known == hashed:
            n_same += 1
            continue
        if known is None:
            hashes[document], row_of[document] = hashed, len(texts)
            texts.add(found)
            continue
        if on_other_text == "raise":
            field = next(s for s, a, b in zip(names, known, hashed, strict=True) if a != b)
            raise InputError(
                f"{path}, line {number}: document {document!r} has another {field} here than "
                "before; correct it, or say which text counts by the option on_other_text: first "
                "or last"
            )
        n_other += 1
        if on_other_text == "last":
            hashes[document], row_of[document] = hashed, len(texts)
            texts.add(found)
    if not row_of:
        raise InputError(f"{path}: no documents")
    repeated = {
        "rows of documents that were there, with the same texts": n_same,
        f"rows of documents that were there, with other texts; the {on_other_text} taken": n_other,
    }
    return DocumentTable(
        list(row_of),
        texts.fields(list(row_of.values())),
        told | {what: n for what, n in repeated.items() if n},
    )
