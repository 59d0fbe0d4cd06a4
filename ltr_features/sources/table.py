"""Read a collection from tables of documents, queries and judgements, by column names."""

from __future__ import annotations

import json
import os
import shlex
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from letor.column_names import is_letor
from letor.errors import InputError
from letor.trec import plain_number, whole_number
from ltr_base.names import listed, quoted
from ltr_features.sources.arrow_tables import are_names, column_list
from ltr_features.sources.document_table import read_documents
from ltr_features.sources.files import (
    JUDGEMENT_COLUMNS,
    QUERY_COLUMNS,
    QUERY_TEXT_NAMES,
    judgement_rows,
    read_queries,
)
from ltr_features.sources.judging import JudgedPairs
from ltr_features.sources.score_tables import DOCUMENT_NAMES, QUERY_IDS, QUERY_NAMES
from ltr_features.sources.table_blocks import (
    ColumnName,
    Frame,
    is_table,
    table_columns,
    table_of,
    tables_of,
)
from ltr_features.sources.usual_names import add_usual, columns_in_words, find_columns
from ltr_features.text.collection import Collection
from ltr_features.text.query_texts import normalised
from ltr_features.text.records import place


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
    markup: Literal["keep", "strip"] = "keep",
    on_other_text: Literal["raise", "first", "last"] = "raise",
    on_other_grade: Literal["raise", "highest", "lowest", "median", "last"] = "raise",
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
        documents: a row per document; a list of tables is read as one. Rows with the same id and
            texts are one document, so that one table may hold documents and judgements.
        judgements: a row per judged pair, or any file of judgements (TREC, BEIR), or a list of
            these, in which tables have the same columns; by default the table of documents.
        document_columns: ``{"id": "product_id", "title": "name", "body": ["text", "bullets"]}``:
            the column of ids, and for each field its column or columns (joined by a space); by
            default those with usual names: the id, and all fields if none is given.
        judgement_columns: columns of ``query`` (id), ``document`` (id) and ``grade`` that do not
            have usual names.
        queries: a row per query, or any file of queries (TREC topics, ``id:text`` lines). By
            default query texts are read from the rows of judgements, from the column ``text`` of
            ``judgement_columns`` or one with a usual name; without a column of ids, texts are
            numbered from 1 as they first occur.
        query_columns: columns ``id`` and ``text`` of queries that do not have usual names.
        grades: integers for values that are not, for example ``{"Exact": 3, "None": 0}``.
        grade_thresholds: ascending thresholds for numbers that are not integers; the grade is the
            number of thresholds reached. With ``[2.33, 2.67]`` 2 is 0, 2.33 is 1, 3 is 2.
        markup: "strip" takes the text of documents that are HTML: tags, comments, scripts and
            styles are left out, and ``&eacute;`` is a character; urls stay as they are.
        on_other_text: for a document id that comes again with other texts: "raise", or take the
            texts of its "first" or "last" row (such rows are counted).
        on_other_grade: for a pair that is judged again with another grade (by a second rater, for
            example): "raise", or take the "highest", "lowest" or "median" grade, or that of the
            "last" row (such rows are counted).
        encoding: encoding of text files that are not UTF-8.
        keep_unjudged: keep queries without judgements (only with ``queries``).
        on_unknown: "raise" or "skip" (and count) judgements of unknown documents or queries.
        name: name of the collection; the documents' file name by default.

    Raises:
        InputError: a missing file or column, a row without id, a document id or query with two
            texts, an unknown grade, a pair with two grades, or bytes that are not in the encoding;
            file and line (or row) are named.
    """
    tables = tables_of(documents, "documents")
    in_documents, in_judgements = dict(document_columns or {}), dict(judgement_columns or {})
    given = set(in_judgements)
    if judgements is None:
        if len(tables) > 1:
            raise InputError("judgements: several tables of documents hold none; name a file")
        judgements = tables[0]
        _share_id(judgements, in_documents, in_judgements, encoding)
    rated = tables_of(judgements, "judgements")
    in_queries = dict(query_columns or {})
    left_out: dict[str, list[str]] = {}
    if queries is None:
        if in_queries:
            raise InputError(
                "query_columns names columns of a table of queries: name it (queries=...), or the "
                "column of the judgements that has their texts (judgement_columns.text=...)"
            )
        textless = next((path for path in rated if not is_table(path)), rated[0])
        _find_query_columns(textless, in_judgements, encoding)
    else:
        queries = table_of(queries, "queries")
        left_out["queries"] = _add_columns(queries, in_queries, QUERY_COLUMNS, encoding)
        if "text" in in_judgements:
            raise InputError(
                "judgement_columns.text: the texts are those of queries=...; leave out one of the "
                "two, and name the judgements' column of query ids if it has no usual name "
                "(judgement_columns.query=...)"
            )
    wanted = dict(JUDGEMENT_COLUMNS)
    if "text" in in_judgements and "query" not in in_judgements:
        del wanted["query"]  # texts are numbered
    # Other files have no columns. Without a table of queries they lack texts, and are refused.
    with_columns = rated if queries is None else [*filter(is_table, rated)] or rated
    first = with_columns[0]
    if in_judgements or not isinstance(first, Path) or not is_letor(first):
        left_out["judgements"] = _add_columns(first, in_judgements, wanted, encoding)
    found = {what: name for what, name in in_judgements.items() if what not in given}
    in_both = rated == tables
    table = read_documents(
        tables,
        in_documents,
        other_columns=list(in_judgements.values()) if in_both else (),
        on_other_text=on_other_text,
        encoding=encoding,
        markup=markup,
    )
    judged_rows = [
        (path, number, row)
        for path in rated
        for number, row in judgement_rows(
            path,
            in_judgements if is_table(path) or with_columns is rated else None,
            encoding=encoding,
        )
    ]
    n_spelled = 0
    if queries is not None:
        texts = read_queries(queries, columns=in_queries, encoding=encoding)
    else:
        texts, n_spelled = _texts_of_rows(judged_rows)
    row_of = {document: row for row, document in enumerate(table.ids)}
    judged = JudgedPairs(texts, row_of, on_unknown, on_other_grade)
    graded = _grade_rule(grades, grade_thresholds, (row["grade"] for *_, row in judged_rows))
    for path, number, row in judged_rows:
        grade = graded(place(path, number), row["grade"])
        judged.add(path, number, row["query"], row["document"], grade)
    if in_both:
        left_out.pop("judgements", None)  # named as those of documents
    facts = _facts(found, left_out, n_spelled)
    query_ids = judged.asked(", ".join(map(str, rated)), keep_unjudged=keep_unjudged)
    name = name or tables[0].name.split(".")[0]
    return judged.collection(name, table.fields, query_ids, "tables", table.facts, facts)


def _facts(
    found: Mapping[str, ColumnName], left_out: Mapping[str, Sequence[str]], n_spelled: int
) -> dict[str, str | int]:
    """What the description tells of columns and queries.

    Args:
        found: columns of judgements by what they hold, of those that were not given. left_out:
            columns of other tables than documents by what the table holds. n_spelled: number of
            queries with several spellings.
    """
    facts: dict[str, str | int] = {}
    if found:
        facts["columns of judgements, by their usual names"] = columns_in_words(found)
    for what, names in sorted(left_out.items()):
        if names:
            facts[f"columns of {what} left out"] = column_list(names)
    if n_spelled:
        facts["queries with several spellings (case, spaces); the first taken"] = n_spelled
    return facts


def _share_id(
    path: Path | Frame,
    in_documents: dict[str, Any],
    in_judgements: dict[str, ColumnName],
    encoding: str,
) -> None:
    """Use the same column of document ids for documents and judgements of a table that holds both,
    whose ``id`` may number the rows."""
    given = in_documents.get("id", in_judgements.get("document"))
    if given is None:
        found = find_columns(table_columns(path, encoding), (*DOCUMENT_NAMES, "id"))
        if found is None:
            return  # reading the documents will raise an error that lists the columns
        given = found[0]
    in_documents.setdefault("id", given)
    in_judgements.setdefault("document", given)


def _add_columns(
    path: Path | Frame,
    given: dict[str, ColumnName],
    usual: Mapping[str, Sequence[str]],
    encoding: str,
) -> list[str]:
    """Add the columns with usual names to those given; returns the columns of the table that are
    not read. Other files, and tables without such columns, stay as they are: reading them tells
    what is missing."""
    if not is_table(path) or not are_names(list(given.values())):
        return []
    names, columns = table_columns(path, encoding), dict(given)
    add_usual(columns, names, usual)
    if not set(usual) <= set(columns):
        return []
    given |= columns
    return [name for name in names if name not in columns.values()]


def _find_query_columns(path: Path | Frame, given: dict[str, ColumnName], encoding: str) -> None:
    """Add the columns of query texts, and of query ids if any, to those given."""
    names: list[str] = []
    if is_table(path) and are_names(list(given.values())):
        names = table_columns(path, encoding)
    add_usual(given, names, {"text": QUERY_TEXT_NAMES})
    add_usual(given, names, {"query": QUERY_NAMES if "text" in given else QUERY_IDS})
    if "query" in given:  # else a column called query may hold ids
        add_usual(given, names, {"text": ("query",)})
    if "text" not in given:
        raise InputError(
            f"{path}: no query texts: name a table of queries, or the column of the judgements "
            "that holds them (judgement_columns.text=...)"
            + (f"; the columns are {column_list(names)}" if names else "")
        )


def _texts_of_rows(
    judged_rows: Iterable[tuple[Path | Frame, int, dict[str, str]]],
) -> tuple[dict[str, str], int]:
    """Query texts by id, from rows of judgements, and how many of them have several spellings.

    Rows without a query id get the number of their text as id; texts that differ only in case and
    spaces are the same query, and its first spelling is taken."""
    texts: dict[str, str] = {}
    numbers: dict[str, str] = {}
    spelled: set[str] = set()
    for path, line, row in judged_rows:
        text = row["text"]
        if "query" not in row:
            row["query"] = numbers.setdefault(normalised(text), str(len(numbers) + 1))
            if text != (text := texts.get(row["query"], text)):
                spelled.add(row["query"])
        query = row["query"]
        for what, value in (("id", query), ("text", text)):
            if not value.strip():
                raise InputError(f"{place(path, line)}: the query {what} is empty")
        if texts.setdefault(query, text) != text:
            raise InputError(
                f"{place(path, line)}: query {query!r} has the text {quoted(text)} here, "
                f"{quoted(texts[query])} before"
            )
    return texts, len(spelled)


def _is_whole(written: str) -> bool:
    try:
        whole_number(written)
    except ValueError:
        return False
    return True


def _to_write(words: Sequence[str]) -> str:
    """How the command line says what grades mean; of several the first two."""
    if all(word and not {*word} & {*".="} for word in words[:2]):
        return " ".join(f"grades.{shlex.quote(word)}=..." for word in words[:2])
    named = ", ".join(f"{json.dumps(word, ensure_ascii=False)}: ..." for word in words[:2])
    return f"grades={shlex.quote(f'{{{named}}}')}"


def _refused(where: str, grade: str, problem: str) -> InputError:
    """The error for a grade; a row without any was not judged, and no number says that."""
    if not grade.strip():
        return InputError(f"{where}: the grade is empty; leave out rows without a grade")
    return InputError(f"{where}: grade {grade!r} {problem}")


def _grade_rule(
    grades: Mapping[str, Any] | None, thresholds: Sequence[float] | None, found: Iterable[str]
) -> Callable[[str, str], str]:
    """A function of (file and line, grade as written) that returns the grade as an integer;
    ``found`` are the grades of all rows, as written."""
    if grades is not None and thresholds is not None:
        raise InputError("grades and grade_thresholds both say what grades mean; give one of them")
    if thresholds is None:
        written = [grade for grade in dict.fromkeys(found) if grade]

        def by_name(where: str, value: str) -> str:
            if grades is not None and value in grades:
                return str(grades[value])
            problem = f"is not among {', '.join(grades)}" if grades else "is not an integer"
            if grades is None and _is_whole(value):
                return value
            raise _refused(
                where,
                value,
                f"{problem}; the table has {listed(written, 10)}: say what each means by the "
                f"option grades (on the command line {_to_write(written)}), or from which numbers "
                "on each begins by grade_thresholds",
            )

        return by_name
    edges = np.asarray(thresholds, dtype=np.float64)
    if not len(edges) or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise InputError(
            f"grade_thresholds must be ascending numbers, [2.33, 2.67], got {list(thresholds)}"
        )

    def by_threshold(where: str, value: str) -> str:
        try:
            number = plain_number(value)
        except ValueError:
            number = np.nan
        if not np.isfinite(number):
            raise _refused(where, value, "is not a finite number, as needed for grade_thresholds")
        return str(bisect_right(edges, number))

    return by_threshold
