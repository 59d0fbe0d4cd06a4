"""Rankings, and texts, groups and titles of their queries and documents, from files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError
from letor.trec import qrels_of, read_run, run_of
from ltr_features.studies.statistics.paired_tests import group_labels

TITLE = 90
"""Characters of a title that a table shows."""


def read_ranking(path: Path, rows: RankingData | None) -> pd.DataFrame:
    """A ranking, columns ``qid``, ``docno``, ``score``: of a TREC run, or of the scores of rows.

    Raises:
        InputError: it is neither, or does not fit the rows.
    """
    if _is_run(path):
        return read_run(path)
    if rows is None:
        raise InputError(
            f"{path} is no TREC run (qid Q0 docno rank score tag); if it holds the scores of the "
            "rows of a LETOR file, give that by --data"
        )
    return run_of(_with_documents(rows), read_scores(path, rows))


def read_scores(path: Path, rows: RankingData) -> NDArray[np.float64]:
    """float64 [n]: the last field of each line that is not blank. Lines of three fields are
    RankLib's (qid, number, score); their qid must be the row's.

    Raises:
        InputError: not a number, another query than the row's, or not as many as rows.
    """
    scores: list[float] = []
    for number, fields in _fields(path):
        try:
            score = float(fields[-1])
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            raise InputError(f"{path}, line {number}: {fields[-1]!r} is not a finite number")
        at = len(scores)
        if len(fields) == 3 and at < len(rows):
            query = rows.query_ids[rows.query_index[at]]
            if fields[0] != query:
                raise InputError(
                    f"{path}, line {number}: query {fields[0]!r}, but row {at + 1} of the data is "
                    f"of query {query!r}; both must have the same order"
                )
        scores.append(score)
    if len(scores) != len(rows):
        raise InputError(f"{path} has {len(scores)} scores, the data has {len(rows)} rows")
    return np.array(scores)


def judgements_of(rows: RankingData | None) -> pd.DataFrame:
    """The rows' labels as judgements, and those of documents that are known to have no row: any
    names do, as no ranking has them.

    Raises:
        InputError: there are no rows.
    """
    if rows is None:
        raise InputError("give the judgements: --qrels FILE, or --data FILE with labels")
    judged = qrels_of(_with_documents(rows))
    if rows.missing is None:
        return judged
    judged = judged[~judged["qid"].isin(rows.missing.unjudged)]
    lost = [
        (query, f"(without a row, {label}, {number})", label)
        for query, counts in rows.missing.relevant.items()
        for label, count in {0: 1, **counts}.items()  # the query counts, whatever it lacks
        for number in range(count)
    ]
    return pd.concat([judged, pd.DataFrame(lost, columns=judged.columns)], ignore_index=True)


def _with_documents(rows: RankingData) -> RankingData:
    """Rows without document ids get their number: of equal scores the earlier row is first."""
    if rows.document_ids is not None:
        return rows
    width = len(str(len(rows)))
    numbers = np.array([f"row{i:0{width}d}" for i in range(len(rows))], dtype=object)
    return replace(rows, document_ids=numbers)


def read_query_texts(path: Path) -> dict[str, str]:
    """Text by query id: JSON lines with ``_id`` and ``text`` (.jsonl), or id, tab, text.

    Raises:
        InputError: the file cannot be read, or a line is neither.
    """
    if path.suffix in (".jsonl", ".json"):
        return {i: str(r["text"]) for i, r in _records(path, "text")}
    texts = {}
    for number, line in _lines(path):
        query, tab, text = line.partition("\t")
        if not tab:
            raise InputError(
                f"{path}, line {number}: expected id, tab, text; JSON lines need a name in .jsonl"
            )
        texts[query] = text
    return texts


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
    for number, line in _lines(path):
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


def read_titles(path: Path, wanted: Collection[str]) -> dict[str, str]:
    """Title, or the beginning of the text, of the wanted documents: JSON lines with ``_id``,
    ``title`` and ``text``, of which one of the last two may be missing.

    Raises:
        InputError: the file cannot be read, or a line is not such a record.
    """
    return {i: _shown(r) for i, r in _records(path, "title", "text") if i in wanted}


def not_found(path: Path, option: str, known: Collection[str], wanted: Collection[str]) -> int:
    """How many of the wanted ids a file does not know.

    Raises:
        InputError: all of them.
    """
    missing = len(set(wanted).difference(known))
    if missing and missing == len(set(wanted)):
        raise InputError(
            f"{option} {path}: none of its ids is among those that are compared (the first is "
            f"{next(iter(wanted))!r}); do both use the same ids?"
        )
    return missing


def _shown(record: Mapping[str, Any]) -> str:
    texts = (" ".join(str(record.get(key) or "")[:400].split()) for key in ("title", "text"))
    return next((text for text in texts if text), "")[:TITLE]


def _records(path: Path, *keys: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Id and record of each line; a record has one of the keys or more."""
    for number, line in _lines(path):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if (
            not isinstance(record, dict)
            or "_id" not in record
            or not any(k in record for k in keys)
        ):
            raise InputError(
                f"{path}, line {number}: expected a JSON object with _id and {' or '.join(keys)}"
            )
        yield str(record["_id"]), record


def _lines(path: Path, errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank."""
    try:
        with open(path, encoding="utf-8-sig", errors=errors) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None


def _is_run(path: Path) -> bool:
    if path.suffix == ".gz":
        return True
    first = next(_fields(path), None)
    return first is not None and len(first[1]) == 6


def _fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line that is not blank."""
    return ((number, line.split()) for number, line in _lines(path, errors="replace"))


def digest_of_rows(rows: RankingData) -> str:
    """Says that rows are the same."""
    missing = None if rows.missing is None else rows.missing.to_json()
    named = [list(rows.query_ids), list(rows.column_names), missing]
    digest = hashlib.sha256(json.dumps(named).encode())
    for array in (rows.X, rows.y, rows.query_index):
        digest.update(array.tobytes())
    return digest.hexdigest()
