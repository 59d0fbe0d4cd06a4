"""Read click logs from files: rows of shown results, or counts of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError, reading
from ltr_base.names import listed
from ltr_features.clicks.log import ClickLog, LogBuilder
from ltr_features.clicks.pages import RowReader
from ltr_features.clicks.rules import (
    FirstPosition,
    LogRules,
    log_columns,
    log_files,
    unclicked_files,
)
from ltr_features.clicks.tables import FILLED, BadRows, whole, whole_numbers
from ltr_features.sources.id_codes import Codes
from ltr_features.sources.input_files import Paths
from ltr_features.sources.table_blocks import Block, ColumnName


def read_click_rows(
    paths: Paths,
    *,
    columns: Mapping[str, ColumnName] | None = None,
    rules: LogRules | None = None,
    on_bad_row: str = "raise",
) -> ClickLog:
    """Read logs with a row per shown result (.csv, .tsv, .jsonl, each also .gz, .bz2, .zst;
    .parquet), as a stream.

    A page is a run of adjacent rows with the same session and query (without sessions: the same
    time and query). When a session goes on to another query, another page begins. If two documents
    of a run have the same position, these are several pages: one begins wherever the position falls
    back or repeats. Otherwise a page that is loaded again, with the same results, counts once,
    unless the log has times and half an hour went by. Within a page, rows with the same document
    and position count once, and any number of clicks on a row counts as one. When a session returns
    to a query, a new page begins if its rows start at the first position; otherwise rows of pages
    are mixed, and the log is refused. The order of pages does not matter, and otherwise times
    matter only for ``since`` and ``until``.

    Args:
        paths: one or several files, folders (all files below them) or patterns
            (``logs/2026-*.gz``), see ``files_of``; the files are read one after the other. A page
            that goes on from one file to the next is two pages, which are counted.
        columns: names of the columns, by key: ``query``, ``document``, ``position``, ``clicked``
            (0 or 1, false or true, or a number of clicks), ``session``, ``time`` (numbers or ISO
            8601). Columns that are not given are found in the first file by these or other usual
            names (``rank``, ``click``, ``doc_id``, ...), except ``time``, which is read only if
            named; ``"session": ""`` is for a log without sessions. A log with neither session nor
            time has no pages; each of its rows counts.
        rules: see :class:`LogRules`.
        on_bad_row: for a row that cannot be read (a damaged line, a value that is missing or that
            its column does not allow): "raise", or "skip" such rows. The description then counts
            them by reason and names the first of each.

    Raises:
        InputError: a file that cannot be read, a missing column, an empty query or document, a
            value that its column does not allow (with "skip", more than 5 % of such rows), mixed
            pages, or positions that begin neither at 0 nor at 1; file and line are named. Also a
            file with the content of another, or all of whose pages an earlier one has, by session
            and query. Messages never contain texts of queries.
    """
    files, wanted = log_files(paths), ("query", "document", "position", "clicked", "session")
    bad = BadRows(on_bad_row)
    names = log_columns(files, columns, wanted, lenient=bad.skip)
    return RowReader(files, names, rules or LogRules(), on_bad_row).read()


def read_click_counts(
    paths: Paths,
    *,
    columns: Mapping[str, ColumnName] | None = None,
    rules: LogRules | None = None,
    on_bad_row: str = "raise",
) -> ClickLog:
    """Read logs with a row per result that counts how often it was shown and clicked.

    Args:
        paths, columns, rules, on_bad_row: see :func:`read_click_rows`, with the columns ``query``,
            ``document``, ``position``, ``shown`` and ``clicked``. A result may have several rows
            (for days, for example), which are summed. Only rules on positions and queries apply.

    Raises:
        InputError: see there; more clicks than showings, or a rule on pages or time.
    """
    rules = rules or LogRules()
    for name in ("since", "until", "max_clicks", "max_pages"):
        if getattr(rules, name) is not None:
            raise InputError(f"{name}: counts have neither pages nor times; leave it out")
    bad = BadRows(on_bad_row)
    files, keys = log_files(paths), ("query", "document", "position", "shown", "clicked")
    names, facts = log_columns(files, columns, keys, lenient=bad.skip)
    query, document = Codes(rules.query_rule), Codes()
    first, builder = FirstPosition(rules), LogBuilder(pages=False)
    n_rows, n_deep, n_clicks = 0, 0, Counter[Path]()
    first.seek(files, names["position"], BadRows(on_bad_row))
    kinds = {
        "query": FILLED,
        "document": FILLED,
        "position": whole(first.first),
        "shown": whole(0),
        "clicked": whole(0),
    }
    for path in files:
        for block in bad.blocks(path, {names[key]: kind for key, kind in kinds.items()}):
            position, kept = first.places(block, names["position"])
            shown = whole_numbers(block, names["shown"], 0)
            clicked = whole_numbers(block, names["clicked"], 0)
            kept &= (shown > 0) & ~_more_clicked(block, shown, clicked, bad)
            q, d = query.of(block, names["query"]), document.of(block, names["document"])
            n_clicks[path] += int(clicked.sum())
            builder.add_counts(q[kept], d[kept], position[kept], shown[kept], clicked[kept])
            n_rows, n_deep = n_rows + len(q), n_deep + int((~kept).sum())
    description = {
        "source": "counts",
        "files": len(files),
        **facts,
        "rows": n_rows,
        "rows below the depth or never shown, left out": n_deep,
        **bad.facts,
        **unclicked_files(n_clicks),
        **first.facts,
        "queries": rules.queries_in_words,
    }
    bad.check()
    with reading(listed([str(file) for file in files], 3)):
        return builder.finish(list(query.number), list(document.number), description)


def _more_clicked(
    block: Block, shown: NDArray[np.int64], clicked: NDArray[np.int64], bad: BadRows
) -> NDArray[np.bool_]:
    """bool [n]: which rows have more clicks than showings; they are refused or counted as bad."""
    over = clicked > shown
    if over.any() and not bad.skip:
        row = int(np.argmax(over))
        raise InputError(
            f"{block.where(row)}: {clicked[row]} clicks on a result that was shown {shown[row]} "
            "times"
        )
    if over.any():
        bad.leave_out(block, over, "more clicks than showings")
    return over
