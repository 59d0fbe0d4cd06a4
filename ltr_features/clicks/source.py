"""The source ``clicks``: a collection whose judgements come from a click log."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.names import written_alike, written_otherwise
from ltr_features.clicks.base import ClickModel
from ltr_features.clicks.judging import ClickJudgements, describe
from ltr_features.clicks.log import ClickLog
from ltr_features.clicks.models import get_click_model
from ltr_features.clicks.reading import read_click_counts, read_click_rows
from ltr_features.clicks.rules import LogRules
from ltr_features.clicks.times import time_of
from ltr_features.clicks.ubi import read_ubi
from ltr_features.parameters import check_call, check_choice
from ltr_features.sources.document_table import read_documents
from ltr_features.sources.input_files import Paths
from ltr_features.sources.table_blocks import ColumnName
from ltr_features.text.collection import Collection, Judgements
from ltr_features.text.id_rows import rows_of
from ltr_features.text.query_texts import ids_of_texts

LAYOUTS = ("rows", "counts", "ubi")


def read_log(
    log: Paths,
    *,
    layout: str = "rows",
    columns: Mapping[str, ColumnName] | None = None,
    events: Paths | None = None,
    rules: Mapping[str, Any] | None = None,
    on_unknown: str = "raise",
    on_bad_row: str = "raise",
) -> ClickLog:
    """Read a click log in any known layout.

    Args:
        log: files with rows of shown results ("rows") or counts of them ("counts"), or exports of
            ``ubi_queries`` ("ubi"): one or several, folders of them, or patterns, see
            :func:`files_of`.
        layout: one of these. columns: names of columns (rows, counts).
        events: the exports of ``ubi_events`` (ubi), likewise.
        rules: fields of ``LogRules`` by name. on_unknown: see ``read_ubi``.
        on_bad_row: see ``read_click_rows``.

    Raises:
        InputError: see ``read_click_rows``, ``read_click_counts`` and ``read_ubi``; or arguments of
            another layout.
    """
    check_choice("layout", layout, LAYOUTS)
    # TOML parses dates.
    given: dict[str, Any] = {
        k: v.isoformat() if isinstance(v, date) else v for k, v in (rules or {}).items()
    }
    check_call(LogRules, given, "rules", "rule")
    log_rules = LogRules(**given)
    if layout == "ubi" and events is None:
        raise InputError("layout 'ubi' needs the file of UBI events, too: name it (events)")
    if layout != "ubi" and events is not None:
        raise InputError("events are files of UBI events: give them with layout 'ubi' only")
    if events is not None:
        if columns is not None:
            raise InputError("layout 'ubi' has columns of its own: leave out columns")
        return read_ubi(log, events, rules=log_rules, on_unknown=on_unknown, on_bad_row=on_bad_row)
    read = read_click_rows if layout == "rows" else read_click_counts
    return read(log, columns=columns, rules=log_rules, on_bad_row=on_bad_row)


def read_clicks(
    log: Paths,
    documents: str | os.PathLike[str],
    *,
    document_columns: Mapping[str, ColumnName | Sequence[ColumnName]] | None = None,
    layout: str = "rows",
    columns: Mapping[str, ColumnName] | None = None,
    events: Paths | None = None,
    rules: Mapping[str, Any] | None = None,
    cuts: Sequence[str | float | date] = (),
    model: str = "pbm",
    model_options: Mapping[str, Any] | None = None,
    min_evidence: float = 10.0,
    n_grades: int = 5,
    scale: float | None = None,
    markup: Literal["keep", "strip"] = "keep",
    on_other_text: Literal["raise", "first", "last"] = "raise",
    on_unknown: str = "raise",
    on_bad_row: str = "raise",
    name: str | None = None,
) -> Collection:
    """Read a collection of documents from a table, with queries and judgements from a click log.

    Queries are the normalised texts of the log that have a judged document; their ids depend on the
    text alone (see ``ids_of_texts``), and are the same for every log. With ``cuts``, each period
    between them has its own queries, judged only by its own pages, so that splits "by time" train
    on earlier clicks than they test: the query q1f... of the first period is q1f...-2 in the
    second. The two belong to one group and are tested together.

    Args:
        log, layout, columns, events, rules, on_bad_row: see :func:`read_log`; ``rules`` must not
            set queries to ids.
        cuts: ascending times (ISO 8601, or numbers), see ``since`` of ``LogRules``, at which a new
            period begins; rows need a column ``time``. The log is read once for each period.
        documents, document_columns, markup, on_other_text: a table (.csv, .tsv, .jsonl, .parquet)
            with a row per document, its columns, whether to strip HTML, and which texts of an id
            count, see the source ``table``.
        model: ctr, pbm, cascade, dcm or dbn. model_options: its parameters.
        min_evidence, n_grades, scale: see ``ClickJudgements``.
        on_unknown: "raise" or "skip" (and count) clicks on documents that the table does not have;
            see also ``read_ubi``.
        name: name of the collection; the documents' file name by default.

    Raises:
        InputError: files, columns or values that cannot be used; no pair with enough evidence.
    """
    check_choice("on_unknown", on_unknown, ("raise", "skip"))
    if (rules or {}).get("queries", "text") != "text":
        raise InputError("source 'clicks': rules.queries must be 'text': queries need their texts")
    table = read_documents(
        [Path(documents)], document_columns, on_other_text=on_other_text, markup=markup
    )

    def judged_within(rules: dict[str, Any]) -> ClickJudgements:
        read = read_log(
            log, layout=layout, columns=columns, events=events, rules=rules,
            on_unknown=on_unknown, on_bad_row=on_bad_row,
        )  # fmt: skip
        fitted = fitted_model(read, model, model_options)
        return _with_relevant(ClickJudgements(fitted, min_evidence, n_grades, scale))

    numbers: dict[str, int] = {}  # by text
    places: dict[tuple[int, int], int] = {}  # rows of the queries, by period and number
    judgements: list[NDArray[np.int64]] = []
    facts = []
    for period, within in enumerate(_periods(cuts, rules), start=1):
        try:
            judged = judged_within(within)
        except InputError as error:
            raise InputError(f"period {period} of cuts: {error}" if cuts else str(error)) from None
        number = [numbers.setdefault(text, len(numbers) + 1) for text in judged.log.query_ids]
        rows, n_unknown = _judged_rows(judged, table.ids, Path(documents), on_unknown)
        row = [places.setdefault((period, number[q]), len(places)) for q in rows[0].tolist()]
        judgements.append(np.stack([np.array(row, np.int64), *rows[1:]]))
        facts.append(
            {
                **describe(judged),
                **_counted_queries(judged, rows[0]),
                "judgements of documents that are not there, left out": n_unknown,
                "log": dict(judged.log.description),
                "remarks": judged.remarks,
            }
        )
    texts = list(numbers)
    ids = ids_of_texts(texts)
    return Collection(
        name=name or Path(documents).name.split(".")[0],
        document_ids=table.ids,
        fields=table.fields,
        query_ids=[ids[n - 1] + (f"-{period}" if period > 1 else "") for period, n in places],
        query_texts=[texts[n - 1] for _, n in places],
        judgements=Judgements(*np.concatenate(judgements, axis=1)),
        query_groups=[ids[n - 1] for _, n in places] if cuts else None,
        query_times=np.array([float(period) for period, _ in places]) if cuts else None,
        description={
            "source": "clicks",
            "documents": len(table.ids),
            **table.facts,
            "click model": model,
            **({"periods": facts} if cuts else facts[0]),
        },
    )


def _with_relevant(judged: ClickJudgements) -> ClickJudgements:
    """The judgements; raises InputError if no document is relevant by them."""
    if not (judged.grade > 0).any():
        reasons = "; ".join(judged.remarks) or "get more clicks"
        raise InputError(
            f"none of {int(judged.enough.sum()):,} judged pairs is better than their average, "
            f"so that no document would be relevant: {reasons}"
        )
    return judged


def _counted_queries(judged: ClickJudgements, query: NDArray[np.int64]) -> dict[str, int]:
    """Numbers of queries for the description, given the query of each judged pair."""
    n_judged = np.unique(query, return_counts=True)[1]
    return {
        "queries": len(n_judged),
        "queries without judgement, left out": len(judged.log.query_ids) - len(n_judged),
        "queries with fewer than two judged documents": int((n_judged < 2).sum()),
    }


def _periods(
    cuts: Sequence[str | float | date], rules: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The rules of each period between the cuts."""
    given = dict(rules or {})
    edges = [given.get("since"), *cuts, given.get("until")]
    times = [time_of(str(edge)).seconds for edge in edges if edge is not None]
    # A text that is not a time gives NaN, for which no comparison holds.
    if cuts and not all(earlier < later for earlier, later in pairwise([-math.inf, *times])):
        raise InputError(
            "cuts must be ascending numbers or times (ISO 8601), within since and until, got "
            f"{', '.join(map(str, cuts))}"
        )
    ends = ({"since": since, "until": until} for since, until in pairwise(edges))
    return [given | {name: at for name, at in end.items() if at is not None} for end in ends]


def _judged_rows(
    judged: ClickJudgements, ids: Sequence[str], path: Path, on_unknown: str
) -> tuple[list[NDArray[np.int64]], int]:
    """Query, document and grade of each judged pair, as rows of the log's queries and of ``ids``;
    and the number of pairs with an unknown document."""
    log = judged.log
    rows = rows_of(log.document_ids, ids)
    pair = np.flatnonzero(judged.enough)
    known = rows[log.pair_document[pair]] >= 0
    n_unknown = int((~known).sum())
    if n_unknown and on_unknown == "raise":
        lost = [log.document_ids[row] for row in log.pair_document[pair[~known]].tolist()]
        example = next(iter(written_alike(lost, ids)), lost[0])
        advice = written_otherwise(example, ids) or (
            "add it, or skip such pairs by the option on_unknown=skip"
        )
        raise InputError(
            f"{path}: {n_unknown:,} judged pairs have a document that is not there, for example "
            f"{example!r}; {advice}"
        )
    pair = pair[known]
    if not len(pair):
        raise InputError(f"{path}: no document of the table has a judgement from the clicks")
    return [log.pair_query[pair], rows[log.pair_document[pair]], judged.grade[pair]], n_unknown


def fitted_model(log: ClickLog, name: str, options: Mapping[str, Any] | None = None) -> ClickModel:
    """Fit a click model, given by name and parameters, to a log.

    Raises:
        InputError: no such model or parameter, or a log that it cannot learn from.
    """
    return unfitted_model(name, options or {}).fit(log)


def unfitted_model(name: str, options: Mapping[str, Any]) -> ClickModel:
    """A click model by name and parameters.

    Raises:
        InputError: no such model or parameter, or a parameter out of its range.
    """
    kind = get_click_model(name)
    check_call(kind, options, f"click model {name!r}")
    model = kind(**options)
    model.check()
    return model
