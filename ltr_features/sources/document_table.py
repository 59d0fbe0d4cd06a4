"""Read documents from tables: find their columns, and take each id once."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from letor.errors import InputError
from letor.trec import plain_number
from ltr_base.names import WRITE_AS_TEXT, counted, is_rounded
from ltr_features.parameters import check_choice
from ltr_features.sources.arrow_tables import are_names, check_columns, column_list
from ltr_features.sources.files import DOCUMENT_COLUMNS
from ltr_features.sources.table_blocks import (
    ColumnName,
    Frame,
    absent_keys,
    nested_columns,
    rows,
    table_columns,
    table_format,
)
from ltr_features.sources.usual_names import add_usual, columns_in_words
from ltr_features.text.collection import FIELDS
from ltr_features.text.markup import without_markup
from ltr_features.text.records import place
from ltr_features.text.stored_texts import DocumentTexts

#: Description of a collection whose documents were stripped of HTML.
HTML, STRIPPED = "HTML in documents", "stripped"
#: Rows in which the first value of a column is looked for.
_FIRST_ROWS = 1000


class DocumentTable(NamedTuple):
    """Documents of a table.

    Attributes:
        ids: distinct ids. fields: texts by field, one for each id.
        facts: facts for the description: columns found by their usual names, columns left out, and
            numbers of rows with a repeated id.
    """

    ids: list[str]
    fields: dict[str, Sequence[str]]
    facts: dict[str, str | int]


def read_documents(
    tables: Sequence[Path | Frame],
    columns: Mapping[str, ColumnName | Sequence[ColumnName]] | None = None,
    *,
    fields: Sequence[str] | None = None,
    other_columns: Sequence[ColumnName] = (),
    option: str = "document_columns.",
    on_other_text: Literal["raise", "first", "last"] = "raise",
    encoding: str = "utf-8",
    markup: Literal["keep", "strip"] = "keep",
) -> DocumentTable:
    """Read the documents of one or several tables; see :func:`~.table.read_table` for other
    parameters and for errors.

    Args:
        tables: files or frames; each has the columns that are read.
        columns: ``document_columns`` there.
        fields: fields whose columns are found by their usual names if not given; by default all
            fields if no column of a field is given, else none.
        other_columns: columns of the table that hold something else.
        option: prefix of the option that names a column, for messages.
    """
    check_choice("on_other_text", on_other_text, ("raise", "first", "last"))
    check_choice("markup", markup, ("keep", "strip"))
    given = dict(columns or {})
    facts: dict[str, str | int] = {}
    headers = [table_columns(table, encoding) for table in tables]
    header = list(dict.fromkeys(chain(*headers)))
    looked_for = fields or (() if set(given) - {"id"} else FIELDS)
    columns = _usual_columns(tables[0], header, looked_for, given, option)
    if len(columns) > len(given):
        added = {what: name for what, name in columns.items() if what not in given}
        facts["columns of documents, by their usual names"] = columns_in_words(added)
    names = {key: [c] if isinstance(c, (str, int)) else list(c) for key, c in columns.items()}
    unknown = sorted(set(names) - {"id", *FIELDS})
    if unknown or "id" not in names or len(names) < 2 or len(names["id"]) != 1:
        problem = f"{', '.join(unknown)} unknown" if unknown else "id and a field are needed"
        raise InputError(
            f"document_columns: {problem}; use id and {', '.join(FIELDS)}, whatever the texts are "
            "(description for an abstract, say, keywords for claims); a list of columns makes one "
            "field"
        )
    identity = names.pop("id")[0]
    wanted = [identity, *(column for group in names.values() for column in group)]
    if len(tables) > 1 and are_names(wanted):
        _check_alike(tables, headers, wanted)
    there = header if are_names(wanted) else range(1, max(map(len, headers)) + 1)
    if unused := [column for column in there if column not in (*wanted, *other_columns)]:
        kept = {"id": [identity], **names} if "id" in given else names
        field = next(field for field in FIELDS if field in (fields or FIELDS))
        nested = frozenset().union(*(nested_columns(table, encoding) for table in tables))
        plain = (column for column in unused if column not in nested)
        first = next((c for c in plain if _holds_words(tables, c, encoding)), None)
        facts["columns of documents left out"] = _left_out(unused, first, kept, field, option)
    absent = [
        f"{column!r} in {share}" + (f" of {table}" if len(tables) > 1 else "")
        for table in tables
        for column, share in absent_keys(table, wanted[1:], encoding).items()
    ]
    if absent:
        facts["absent keys of documents, taken as empty"] = ", ".join(absent)
    if markup == "strip":
        facts[HTML] = STRIPPED
    ids, texts, told = _distinct(tables, identity, names, on_other_text, encoding, markup)
    return DocumentTable(ids, texts, {**facts, **told})


def _check_alike(
    tables: Sequence[Path | Frame], headers: Iterable[Sequence[str]], wanted: Sequence[ColumnName]
) -> None:
    """Raise InputError if one of several tables lacks a column; JSON lines may lack keys."""
    for table, names in zip(tables, headers, strict=True):
        if isinstance(table, Frame) or table_format(table) != ".jsonl":
            hint = (
                "; tables that are read as one have the same columns: join those that have others "
                "by their ids first (in pandas by titles.merge(texts, on=...))"
            )
            check_columns(table, names, wanted, hint)


def _distinct(
    tables: Sequence[Path | Frame],
    identity: ColumnName,
    columns: Mapping[str, Sequence[ColumnName]],
    on_other_text: str,
    encoding: str,
    markup: str,
) -> tuple[list[str], dict[str, Sequence[str]], dict[str, str | int]]:
    """Distinct ids, their texts by field, and facts: the numbers of rows with a repeated id, and of
    texts that stripping left empty.

    Args:
        identity: the column of ids. columns: the columns of each field.
    """
    wanted = [identity, *(column for group in columns.values() for column in group)]
    texts = DocumentTexts(list(columns))
    row_of: dict[str, int] = {}
    hashes: dict[str, list[int]] = {}  # of each document's texts, which may be on disk by now
    n_same = n_other = 0
    emptied: dict[str, list[str]] = {}
    options: dict[str, Any] = {"encoding": encoding, "optional": wanted[1:]}
    all_rows = ((path, row) for path in tables for row in rows(path, wanted, **options))
    for path, (number, (document, *values)) in all_rows:
        if not document:
            raise InputError(f"{place(path, number)}: the document id is empty")
        rest = iter(values)
        written = found = {
            field: " ".join(filter(None, (next(rest) for _ in group)))
            for field, group in columns.items()
        }
        if markup == "strip":
            found = written | {f: without_markup(written[f]) for f in written if f != "url"}
        hashed = [hash(text) for text in found.values()]
        known = hashes.get(document)
        if known == hashed:
            n_same += 1
            continue
        if known is not None and on_other_text == "raise":
            field = next(s for s, a, b in zip(columns, known, hashed, strict=True) if a != b)
            choice = "on_other_text=first or last (pipeline add: --on-other-text)"
            advice = f"correct it, or say which text counts: {choice}"
            raise InputError(
                f"{place(path, number)}: document {document!r} has another {field} here than "
                f"before; {WRITE_AS_TEXT if is_rounded(document) else advice}"
            )
        n_other += known is not None
        if known is None or on_other_text == "last":
            hashes[document], row_of[document] = hashed, len(texts)
            texts.add(found)
            emptied.pop(document, None)
            if lost := [f for f, text in found.items() if not text and written[f].strip()]:
                emptied[document] = lost
    if not row_of:
        raise InputError(f"{', '.join(map(str, tables))}: no documents")
    facts: dict[str, str | int] = {
        "rows of documents that were there, with the same texts": n_same,
        f"rows of documents that were there, with other texts; the {on_other_text} taken": n_other,
    }
    if emptied:
        of_field = Counter(chain.from_iterable(emptied.values()))
        where = ", ".join(f"{field} of {counted(n, 'document')}" for field, n in of_field.items())
        facts["texts of tags alone, empty now"] = f"{where}; write words like <c++> without < and >"
    fields = texts.fields(list(row_of.values()))
    return list(row_of), fields, {what: fact for what, fact in facts.items() if fact}


def _usual_columns(
    path: Path | Frame,
    names: Sequence[str],
    fields: Iterable[str],
    given: Mapping[str, Any],
    option: str,
) -> dict[str, Any]:
    """The columns of ids and of fields: those given, completed by those with usual names, each of
    them used once; ``option``, the prefix of the option that names a column, is for the message."""
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


def _holds_words(tables: Sequence[Path | Frame], column: ColumnName, encoding: str) -> bool:
    """Whether the first value of a column, if its first rows have one, is a text and no number."""
    for table in tables:
        with suppress(InputError):  # another table has the column, or it holds something else
            found = rows(table, [column], encoding=encoding, optional=[column])
            if value := next((v for _, (v,) in islice(found, _FIRST_ROWS) if v.strip()), ""):
                with suppress(ValueError):
                    plain_number(value)
                    return False
                return True
    return False


def _left_out(
    unused: Sequence[ColumnName],
    first: ColumnName | None,
    columns: Mapping[str, Sequence[ColumnName]],
    field: str,
    option: str,
) -> str:
    """The columns that are not read, and how to add one of them, ``first``, to a field;
    ``columns`` are those that are read, by key."""
    if first is None:
        return column_list(unused)
    more = {**columns, field: [*columns.get(field, ()), first]}
    values = {
        key: str(group[0]) if len(group) == 1 else json.dumps(group, ensure_ascii=False)
        for key, group in more.items()
    }
    named = " ".join(f"{option}{key}={shlex.quote(value)}" for key, value in values.items())
    return f"{column_list(unused)}; to read {first!r} too, name all columns: {named}"
