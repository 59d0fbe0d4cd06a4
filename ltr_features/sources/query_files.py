"""Read groups, times, sources, classes and parts of queries, and add them to a collection."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from letor.compression import text_lines
from letor.errors import InputError
from ltr_base.names import counted, written_otherwise
from ltr_features.clicks.times import span_text, time_of
from ltr_features.sources.files import judgement_rows
from ltr_features.sources.input_files import suffixes
from ltr_features.sources.score_tables import QUERY_IDS
from ltr_features.sources.table_blocks import is_table, named_rows, rows, table_columns
from ltr_features.sources.usual_names import find_columns, is_unnamed
from ltr_features.text.collection import Collection
from ltr_features.text.id_rows import examples, rows_of
from ltr_features.text.records import place


def with_groups_and_times(
    collection: Collection, groups: Path | None, times: Path | None, needed: Sequence[str]
) -> Collection:
    """The collection with groups and times of its queries from files; None leaves its own. A query
    that a file lacks is a group of its own, or has the time NaN.

    Args:
        groups, times: see :func:`read_query_groups` and :func:`read_query_times`.
        needed: ids of the queries that must have a group and a time.

    Raises:
        InputError: as these functions.
    """
    ids = collection.query_ids
    if groups is not None:
        found = read_query_groups(groups, needed)
        collection = replace(collection, query_groups=[found.get(query, query) for query in ids])
    if times is not None:
        asked = read_query_times(times, needed)
        by_query = np.array([asked.get(query, np.nan) for query in ids])
        collection = replace(collection, query_times=by_query)
    return collection


def groups_and_times_facts(collection: Collection) -> dict[str, int | str]:
    """Facts for the description: how many groups the queries have, and from when to when they were
    asked, as far as it is known."""
    facts: dict[str, int | str] = {}
    if collection.query_groups is not None:
        facts["groups of queries"] = len(set(collection.query_groups))
    times = collection.query_times
    if times is not None and np.isfinite(times).any():
        facts["times of queries"] = span_text(times[np.isfinite(times)])
    return facts


#: Usual names of the column of query ids; ``id`` may number judgements.
_IDS = (*QUERY_IDS, "id", "query")
#: In place of a file of sources: each query was made from the document with its id.
SAME_ID = "same-id"
#: The column of the document that a query was made from; in a table, some queries may have none.
SOURCE = "source"
_OF_SEVERAL = (
    "; of a query made from several documents name one, and take the others out of its candidates"
)


def with_sources(collection: Collection, given: str | Path, folder: Path = Path()) -> Collection:
    """The collection with the documents that its queries were made from.

    Args:
        given: a file, see :func:`read_query_sources`, or :data:`SAME_ID`.
        folder: what the file's path is relative to.

    Raises:
        InputError: as :func:`read_query_groups`; a source is no document, or no query has one.
    """
    ids = collection.query_ids
    of_query = sources_of(given, ids, folder)
    sources = np.full(len(ids), -1, np.int64)
    made = [row for row, query in enumerate(ids) if query in of_query]
    sources[made] = rows_of([of_query[ids[row]] for row in made], collection.document_ids)
    unknown = [ids[row] for row in made if sources[row] < 0]
    if (sources < 0).all():
        expected = f"query ids {examples(ids)}, document ids {examples(collection.document_ids)}"
        if given != SAME_ID:
            queries, documents = list(of_query), list(dict.fromkeys(of_query.values()))
            expected += f"; the file has {examples(queries)} and {examples(documents)}"
        raise InputError(f"sources {given}: no query has a document there; {expected}")
    if unknown and given != SAME_ID:
        raise InputError(
            f"{given}: query {unknown[0]!r} has the source {of_query[unknown[0]]!r}, which is no "
            "document's id; leave out queries that were made from no document"
        )
    return replace(collection, query_sources=sources)


def sources_of(given: str | Path, ids: Iterable[str], folder: Path = Path()) -> dict[str, str]:
    """The id of the document that each query was made from, by query id; arguments as those of
    :func:`with_sources`, ``ids`` those of the queries.

    Raises:
        InputError: as :func:`read_query_groups`.
    """
    if given == SAME_ID:
        return {query: query for query in ids}
    return read_query_sources(folder / given)


def read_query_sources(path: Path) -> dict[str, str]:
    """Read the id of the document that each query was made from; return it by query id.

    Args:
        path: query id, tab, document id; or a table with a column ``source``, such as the
            ``queries.jsonl`` of a workspace. Queries without a line, or with an empty column, were
            made from no document.

    Raises:
        InputError: the file cannot be read, a line has another format, or a query has several.
    """
    return {query: source for _, query, source in _of_queries(path, SOURCE)}


def read_query_groups(path: Path, queries: Iterable[str] = ()) -> dict[str, str]:
    """Read the group of each query; return it by query id. Queries of one group (made from one
    article, say, or asked by one person) are not independent and are tested together.

    Args:
        path: query id, tab, group; or a table with a column ``group``, such as the
            ``queries.jsonl`` of a workspace. queries: ids of the queries that must have a group.

    Raises:
        InputError: the file cannot be read, a line has another format, or a query has no group or
            several.
    """
    groups = {query: group for _, query, group in _of_queries(path, "group")}
    alone = ", and a group of its own to each that belongs with no other"
    _check_all(path, "group", groups, queries, alone)
    return groups


def read_query_times(path: Path, queries: Iterable[str] = ()) -> dict[str, float]:
    """Read a file of query id, tab, time: ISO 8601 (in UTC if it names no zone), seconds,
    milliseconds, ... since 1970, or plain numbers; return the time by query id.

    Args:
        queries: ids of the queries that must have a time.

    Raises:
        InputError: as in :func:`read_query_groups`; or some times are plain numbers (20260705, or
            0 for an unknown time) and others not, nor seconds: they cannot be compared.
    """
    times: dict[str, float] = {}
    kinds: dict[bool, tuple[int, str]] = {}  # plain numbers or not: the first line with one
    for number, query, text in _of_queries(path, "time"):
        time = time_of(text)
        times[query] = time.seconds
        if not math.isfinite(time.seconds):
            raise InputError(
                f"{place(path, number)}: {text!r} is neither a number nor a time (ISO 8601)"
            )
        if time.unit != "seconds":  # which a plain number may be, too, of another year
            kinds.setdefault(time.unit == "", (number, text))
        if len(kinds) > 1:
            (plain, number_text), (other, time_text) = kinds[True], kinds[False]
            raise InputError(
                f"{place(path, plain)}: {number_text!r} is a plain number and no time between 1990 "
                f"and 2100, but {place(path, other)} has {time_text!r}, and the two cannot be "
                "compared; write all times alike, dates as 2026-07-05"
            )
    _check_all(path, "time", times, queries)
    return times


def read_query_classes(path: Path) -> pd.DataFrame:
    """Read classes of queries (their language, say, or what users want), by which a report shows
    where a system gains.

    Args:
        path: a table with a column ``qid`` (or ``query_id``, ``id``, ``query``); each other column
            is a property, and its values are the classes; one without a name, such as the index
            that pandas writes, is left out. Or query id, tab, class; the property is then called
            ``class``.

    Returns:
        Texts, "" where a query has none: a row per query, a column per property.

    Raises:
        InputError: the file cannot be read, has no property, a line has another format, or a query
            has several classes of a property.
    """
    names = table_columns(path) if is_table(path) else []
    ids = find_columns(names, _IDS)
    if ids is None:
        return pd.DataFrame({"class": _without_tabs(path)}, dtype=object)
    properties = [name for name in names if name not in ids and not is_unnamed(name)]
    if not properties:
        raise InputError(f"{path}: the only column is {ids[0]}; add a column with classes")
    classes: dict[str, list[str]] = {}
    for number, (query, *texts) in rows(path, [*ids, *properties], optional=properties):
        values = [text.strip() for text in texts]
        before = classes.setdefault(query, values)
        if not query:
            raise InputError(f"{place(path, number)}: expected a query id")
        if values != before:
            of = next(i for i, value in enumerate(values) if value != before[i])
            raise InputError(
                f"{place(path, number)}: query {query!r} has the {properties[of]} {values[of]!r} "
                f"here, but {before[of]!r} before"
            )
    return pd.DataFrame.from_dict(classes, orient="index", columns=properties, dtype=object)


def _without_tabs(path: Path) -> dict[str, str]:
    """The class of each query in a file of two columns."""
    classes = {}
    for number, query, value in _of_queries(path, "class"):
        if "\t" in value:
            raise InputError(
                f"{place(path, number)}: expected query id, tab, class; where queries have "
                "several, name these and the query ids (qid) in the first line of a .tsv or .csv"
            )
        classes[query] = value
    return classes


#: How files call the parts of the queries.
_PARTS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "vali", "val", "dev"),
    "test": ("test", "eval", "evaluation"),
}


def read_query_parts(path: Path, queries: Iterable[str]) -> dict[str, str]:
    """Read which part each query belongs to: "train", "validation" or "test".

    Args:
        path: query id, tab, part; or a table with a column ``split``, such as judgements that are
            marked; or a folder of files of judgements that are named after the parts, such as
            BEIR's ``qrels``.
        queries: ids of the queries that must have a part; others are left out.

    Raises:
        InputError: as in :func:`read_query_groups`; or another name of a part, or no files.
    """
    meant = {name: part for part, names in _PARTS.items() for name in names}
    found: dict[str, str] = {}
    for where, query, name in (_of_judgements if path.is_dir() else _of_rows)(path):
        if name.lower() not in meant:
            raise InputError(f"{where}: {name!r} is no part; use {', '.join(meant)}")
        part = meant[name.lower()]
        if found.setdefault(query, part) != part:
            raise InputError(f"{where}: query {query!r} is for {part}, before for {found[query]}")
    _check_all(path, "part", found, queries)
    return {query: found[query] for query in queries}


def _of_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """Place, query and part of each line of a file."""
    for number, query, name in _of_queries(path, "split"):
        yield place(path, number), query, name


def _of_judgements(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Place, query and the file's name without suffix of each judgement in a folder."""
    files = sorted(p for p in folder.iterdir() if ".tsv" in suffixes(p))
    if not files:
        raise InputError(f"{folder}: no judgements (*.tsv)")
    for path in files:
        for number, row in judgement_rows(path):
            yield place(path, number), row["query"], path.name.partition(".")[0]


def _check_all(
    path: Path, what: str, found: Mapping[str, object], queries: Iterable[str], advice: str = ""
) -> None:
    """Raise InputError if a query has no value."""
    without = [query for query in queries if query not in found]
    if without:
        near = written_otherwise(without[0], found)
        raise InputError(
            f"{path}: no {what} of {counted(len(without), 'query')}, e.g. {without[0]!r}; "
            f"{near or f'give each query one{advice}'}"
        )


def _of_queries(path: Path, what: str) -> Iterator[tuple[int, str, str]]:
    """Line number, query and value in a file of two columns or a table, once for each query that
    has a value; all have one, but for a table's column :data:`SOURCE`."""
    values: dict[str, str] = {}
    usual = {"id": _IDS, what: (what,)}
    optional = (what,) if what == SOURCE else ()
    table = named_rows(path, None, usual, "", optional=optional)
    rows = _two_columns(path) if table is None else ((n, row["id"], row[what]) for n, row in table)
    for number, query, value in rows:
        if query and not value and optional and table is not None:
            continue
        if not query or not value:
            expected = f"query id, tab, {what}" if table is None else f"a query id and a {what}"
            raise InputError(f"{place(path, number)}: expected {expected}")
        if query not in values:
            yield number, query, value
        if values.setdefault(query, value) != value:
            raise InputError(
                f"{place(path, number)}: query {query!r} has the {what} {value!r} here, but "
                f"{values[query]!r} before{_OF_SEVERAL if what == SOURCE else ''}"
            )


def _two_columns(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in text_lines(path):
        if line.strip():
            query, _, value = (part.strip() for part in line.partition("\t"))
            yield number, query, value
