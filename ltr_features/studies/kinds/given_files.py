"""Groups of queries from files, whether files are about what is compared, and digests of rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from letor.compression import text_lines
from letor.dataset import RankingData
from letor.errors import InputError
from ltr_features.studies.statistics.paired_tests import group_labels
from ltr_features.text.collection import examples


def read_query_groups(path: Path, queries: Iterable[str] = ()) -> dict[str, str]:
    """Group by query id: id, tab, group. Queries of one group (made from one article, say, or asked
    by one person) are not independent and are tested together.

    Args:
        queries: that must have a group.

    Raises:
        InputError: the file cannot be read, a line is something else, or a query has two groups or
            none.
    """
    groups: dict[str, str] = {}
    for number, line in text_lines(path):
        if not line.strip():
            continue
        query, _, group = (part.strip() for part in line.partition("\t"))
        if not query or not group:
            raise InputError(f"{path}, line {number}: expected query id, tab, group")
        if groups.setdefault(query, group) != group:
            raise InputError(
                f"{path}, line {number}: query {query!r} is of group {group!r} here, of "
                f"{groups[query]!r} before"
            )
    try:
        group_labels(queries, groups)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return groups


def not_found(path: Path, option: str, known: Collection[str], wanted: Collection[str]) -> int:
    """How many of the wanted ids a file does not know.

    Raises:
        InputError: all of them.
    """
    missing = len(set(wanted).difference(known))
    if missing and missing == len(set(wanted)):
        raise InputError(
            f"{option} {path}: none of its ids ({examples(list(known))}) is among those that are "
            f"compared ({examples(list(wanted))}); do both use the same ids?"
        )
    return missing


def digest_of_rows(rows: RankingData) -> str:
    """Says that rows are the same."""
    missing = None if rows.missing is None else rows.missing.to_json()
    named = [list(rows.query_ids), list(rows.column_names), missing]
    digest = hashlib.sha256(json.dumps(named).encode())
    for array in (rows.X, rows.y, rows.query_index):
        digest.update(array.tobytes())
    return digest.hexdigest()
