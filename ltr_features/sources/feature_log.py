"""Read features that Elasticsearch, OpenSearch or Solr logged, as rows."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from letor.dataset import GIVEN, RankingData
from letor.errors import InputError, LetorWarning
from letor.trec import plain_number
from ltr_base.names import counted, listed
from ltr_base.user_warning import warn_user
from ltr_features.sources.input_files import suffixes
from ltr_features.sources.labelled_rows import labelled
from ltr_features.sources.score_tables import QUERY_NAMES
from ltr_features.sources.usual_names import find_columns
from ltr_features.text.records import json_lines

_SOLR = "[features]"
_ANY = (".jsonl", ".ndjson")
#: The features of a document; None for one that did not match.
_Features = dict[str, float | None]


def is_feature_log(path: Path) -> bool:
    """Whether a file is a feature log, JSON lines, by its name."""
    return any(suffix in _ANY for suffix in suffixes(path)[-2:])


def read_feature_log(
    path: str | os.PathLike[str],
    judgements: str | os.PathLike[str] | None = None,
    *,
    missing: float = 0.0,
) -> RankingData:
    """Read the features that an engine logged as rows.

    Args:
        path: JSON lines (also .gz, .bz2, .zst), each with the id of the query (``qid``,
            ``query_id`` or ``query``) and one of

            - a search response of Elasticsearch or OpenSearch (``hits.hits``), itself or as
              ``response``, whose hits have ``_id`` and the log of the learning-to-rank plugin's
              ``sltr`` query: ``fields._ltrlog``, a list of objects whose values are lists of
              ``{"name": ..., "value": ...}`` (in old versions, objects of values by name);
            - a single such hit;
            - a response of Solr (``response.docs``), itself or as ``response``, whose documents
              have ``id`` and ``[features]``, ``"name=value,..."`` (in old versions
              ``"name:value;..."``);
            - a single such document.
        judgements: labels, see :func:`~ltr_features.sources.files.judgement_rows`. A row without
            judgement has label 0, and a query without any counts in no measure. Without the file
            all labels are 0.
        missing: the value of a feature that a hit lacks: engines leave out features that do not
            match, and treat them as 0.

    Returns:
        Rows ordered by query; columns are named as the features (``<log>_<name>`` if there are
        several logs), in order of first appearance.

    Warns:
        LetorWarning: responses without hits, if there are no judgements, by which they count.

    Raises:
        InputError: no such file, a line of another form, a value that is not a finite number, or a
            pair whose features differ between lines; file and line are named.
    """
    log = _Log(Path(path))
    for number, record in json_lines(log.path):
        log.take(number, record)
    if not log.rows:
        raise InputError(f"{path}: no row; it must have logged features of (query, document) pairs")
    if judgements is None and log.without_hits:
        names = listed([repr(query) for query in log.without_hits], 3)
        warn_user(
            f"{path}: {counted(len(log.without_hits), 'query')} without hits ({names}): no row is "
            "of them, and measures do not count them; with judgements they count",
            LetorWarning,
        )
    data = log.data(missing)
    return data if judgements is None else labelled(data, judgements, log.path)


@dataclass
class _Log:
    """The logged features of each (query, document) pair, in order of appearance."""

    path: Path
    rows: dict[tuple[str, str], _Features] = field(default_factory=dict)
    queries: dict[str, None] = field(default_factory=dict)

    @property
    def without_hits(self) -> list[str]:
        """The queries without any row."""
        found = {query for query, _ in self.rows}
        return [query for query in self.queries if query not in found]

    def take(self, number: int, record: Mapping[str, Any]) -> None:
        where = f"{self.path}, line {number}"
        key = find_columns([k for k, v in record.items() if _is_id(v)], ("qid", *QUERY_NAMES))
        if key is None:
            raise InputError(
                f"{where}: no query id; write it into each line, {{'qid': 'q1', ...}}: responses "
                "do not have it"
            )
        query = str(record[key[0]])
        self.queries[query] = None
        for document, features in _documents(where, record):
            known = self.rows.setdefault((query, document), features)
            if known != features:
                raise InputError(
                    f"{where}: query {query!r} and document {document!r} have other features here "
                    "than before; keep one of them"
                )

    def data(self, missing: float) -> RankingData:
        queries = {query: i for i, query in enumerate(dict.fromkeys(q for q, _ in self.rows))}
        pairs = sorted(self.rows, key=lambda pair: queries[pair[0]])
        names = list(dict.fromkeys(name for row in self.rows.values() for name in row))
        rows = [self.rows[pair] for pair in pairs]
        values = [[missing if (v := row.get(n)) is None else v for n in names] for row in rows]
        origin = {"description": f"logged, {self.path.name}", "trained on": GIVEN}
        return RankingData(
            np.array(values, dtype=np.float32),
            np.zeros(len(pairs), dtype=np.float32),
            list(queries),
            np.array([queries[query] for query, _ in pairs], dtype=np.int64),
            names,
            np.array([document for _, document in pairs], dtype=object),
            provenance=dict.fromkeys(names, origin),
        )


def _is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _documents(where: str, record: Mapping[str, Any]) -> Iterator[tuple[str, _Features]]:
    """Id and features of each document in a line."""
    inner = record.get("response")
    if isinstance(inner, Mapping) and ("hits" in inner or "response" in inner):
        record, inner = inner, inner.get("response")
    hits = record.get("hits")
    if isinstance(hits, Mapping):
        found = hits.get("hits")
    elif isinstance(inner, Mapping):
        found = inner.get("docs")
    else:
        found = [record]
    for document in found if isinstance(found, list) else [None]:
        if isinstance(document, Mapping) and _SOLR in document and _is_id(document.get("id")):
            yield str(document["id"]), dict(_of_solr(where, document[_SOLR]))
        elif isinstance(document, Mapping) and _is_id(document.get("_id")):
            yield str(document["_id"]), dict(_of_elasticsearch(where, document))
        else:
            raise InputError(
                f"{where}: neither hits with _id and fields._ltrlog (Elasticsearch, OpenSearch) "
                f"nor documents with id and {_SOLR} (Solr); a table of features is read as .csv, "
                ".tsv or .parquet"
            )


def _of_elasticsearch(where: str, hit: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    fields = hit.get("fields")
    logs = fields.get("_ltrlog") if isinstance(fields, Mapping) else None
    if not isinstance(logs, list) or not all(isinstance(log, Mapping) for log in logs):
        raise InputError(
            f"{where}: hit {hit['_id']!r} has no fields._ltrlog; ask for it by ext.ltr_log in the "
            "search"
        )
    named = {name: entries for log in logs for name, entries in log.items()}
    for log_name, entries in named.items():
        if isinstance(entries, Mapping):
            entries = [{"name": name, "value": value} for name, value in entries.items()]
        prefix = f"{log_name}_" if len(named) > 1 else ""
        for entry in entries:
            if not isinstance(entry, Mapping) or "name" not in entry:
                raise InputError(f"{where}: _ltrlog has an entry without a name")
            name, value = prefix + str(entry["name"]), entry.get("value")
            # None: the feature did not match. It is a column even if it never did in this log.
            yield name, None if value is None else _number(where, name, value)


def _of_solr(where: str, text: object) -> Iterator[tuple[str, float]]:
    if not isinstance(text, str):
        raise InputError(f"{where}: {_SOLR} is not text; log it by fl=[features]")
    between, equals = (",", "=") if "=" in text else (";", ":")
    for part in filter(None, text.split(between)):
        name, sign, value = part.rpartition(equals)
        if not sign or not name:
            raise InputError(f"{where}: {_SOLR} has {part[:40]!r}; expected name=value")
        yield name, _number(where, name, value)


def _number(where: str, name: str, value: object) -> float:
    try:
        number = plain_number(value) if isinstance(value, str) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not abs(number) <= np.finfo(np.float32).max:
        raise InputError(f"{where}: feature {name!r} is {value!r}, not a finite number")
    return number
