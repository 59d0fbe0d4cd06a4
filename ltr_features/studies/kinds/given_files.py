"""What is given for queries and rows: equal texts, known ids, classes, a digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pandas as pd

from letor.column_settings import settings_of
from letor.dataset import RankingData
from letor.errors import InputError
from ltr_base.names import OTHERWISE, in_words, written_alike, written_otherwise
from ltr_features.sources.query_files import read_query_classes
from ltr_features.studies.statistics.query_classes import MOST_CLASSES, PROPERTIES, texts_among
from ltr_features.text.id_rows import examples
from ltr_features.text.query_texts import normalised

#: Columns that a report's table of the classes of each query has besides these.
_COLUMNS = ("query", "study")


def same_text(texts: Mapping[str, str], queries: Iterable[str]) -> dict[str, str] | None:
    """The first query with the same text (see :func:`~ltr_features.text.collection.normalised`), by
    query; None if all texts differ."""
    first: dict[str, str] = {}
    by_query = {query: normalised(texts.get(query, "")) for query in queries}
    found = {q: first.setdefault(text, q) if text else q for q, text in by_query.items()}
    return found if len(set(found.values())) < len(found) else None


def not_found(path: Path, option: str, known: Collection[str], wanted: Collection[str]) -> int:
    """Number of wanted ids that a file lacks.

    Raises:
        InputError: the file lacks all of them.
    """
    missing = len(set(wanted).difference(known))
    if missing and missing == len(set(wanted)):
        near = written_otherwise(next(iter(wanted)), known) or "do both use the same ids?"
        shown = f" ({examples(list(known))})" if len(known) else ""
        raise InputError(
            f"{option} {path}: none of its ids{shown} is among those compared "
            f"({examples(list(wanted))}); {near}"
        )
    return missing


def read_classes(
    path: Path, queries: Collection[str] = (), option: str = "query_classes"
) -> pd.DataFrame:
    """Read classes of queries, see :func:`~ltr_features.sources.query_files.read_query_classes`.

    Args:
        queries: those that are tested, if known. option: what names the file, for messages.

    Raises:
        InputError: as that function; a column of classes has the name of one that every report
            has; all columns have too many values, as texts do; no query has classes, or some have
            them under an id that is written otherwise.
    """
    classes = read_query_classes(path)
    if classes.empty:
        raise InputError(f"{option} {path}: no rows")
    if (texts := texts_among(classes)) == [*classes.columns]:
        raise InputError(
            f"{path}: {in_words(texts)}: more than {MOST_CLASSES} values; group them to "
            "fewer classes"
        )
    owned = dict.fromkeys(PROPERTIES, "kinds of queries by") | dict.fromkeys(_COLUMNS, "a column")
    for name in owned.keys() & classes.columns.difference(texts):
        raise InputError(
            f"{path}: reports have {owned[name]} {name} of their own; give the column another name"
        )
    not_found(path, option, classes.index, queries)
    lacking = [query for query in queries if query not in classes.index]
    if alike := written_alike(lacking, classes.index.difference([*queries])):
        query, other = next(iter(alike.items()))
        raise InputError(
            f"{option} {path}: it has {len(alike):,} of the queries under another id, {other!r} "
            f"for {query!r}: write ids alike in all files (these differ in {OTHERWISE})"
        )
    return classes


def digest_of_rows(rows: RankingData) -> str:
    """Digest of rows and of what rankers keep of them, equal for equal rows."""
    missing = None if rows.missing is None else rows.missing.to_json()
    documents = None if rows.document_ids is None else list(rows.document_ids)
    named = [list(rows.query_ids), documents, list(rows.column_names), settings_of(rows), missing]
    digest = hashlib.sha256(json.dumps(named).encode())
    for array in (rows.X, rows.y, rows.query_index):
        digest.update(array.tobytes())
    return digest.hexdigest()
