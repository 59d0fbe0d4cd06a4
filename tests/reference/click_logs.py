"""Click logs made by hand: in memory, and as files of rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from ltr_features.clicks.log import ClickLog, LogBuilder

#: Query, documents, positions and clicks of the rows; queries and documents by number.
Page = tuple[int, list[int], list[int], list[bool]]


def log_of(pages: list[Page], names: str = "{}") -> ClickLog:
    """A log of pages; query 0 is called q0, document 0 d0, within ``names``."""
    builder = LogBuilder()
    for query, documents, positions, clicks in pages:
        n = len(documents)
        builder.add_pages(
            np.full(n, query), np.array(documents), np.array(positions), np.array(clicks, bool),
            np.array([0, n]),
        )  # fmt: skip
    n_queries = 1 + max(page[0] for page in pages)
    n_documents = 1 + max(max(page[1]) for page in pages)
    return builder.finish(
        [names.format(f"q{i}") for i in range(n_queries)],
        [names.format(f"d{i}") for i in range(n_documents)],
        {},
    )


HEADER = ("session", "query", "document", "position", "clicked")

SECRET = "my secret query"


def write_log(path, rows, header=HEADER):
    """Write a log of rows in the format of the path's suffixes; return the path."""
    frame = pd.DataFrame(rows, columns=list(header))
    name = path.name
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif ".jsonl" in name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, sep="\t" if ".tsv" in name else ",", index=False)
    return path


def page(session, query, documents, clicked=(), first=1):
    """The rows of a page that shows documents from position ``first`` on."""
    return [(session, query, d, first + i, int(d in clicked)) for i, d in enumerate(documents)]


def as_counts(log):
    """{(query, document, position from 0): (shown, clicked)}."""
    return {
        (log.query_ids[log.pair_query[p]], log.document_ids[log.pair_document[p]], int(k)): (s, c)
        for p, k, s, c in zip(log.result_pair, log.result_position, log.shown.tolist(),
                              log.clicked.tolist(), strict=True)
    }  # fmt: skip


ROWS = [
    *page("s1", "  Red  SHOES ", ["a", "b", "c"], ["b"]),
    *page("s2", "red shoes", ["a", "b", "c"]),
    *page("s2", "blue", ["b", "d"], ["b", "d"]),
    *page("s3", "red shoes", ["b", "a"], ["b"]),
]

EXPECTED = {
    ("red shoes", "a", 0): (2, 0), ("red shoes", "b", 1): (2, 1), ("red shoes", "c", 2): (2, 0),
    ("blue", "b", 0): (1, 1), ("blue", "d", 1): (1, 1),
    ("red shoes", "b", 0): (1, 1), ("red shoes", "a", 1): (1, 0),
}  # fmt: skip

#: 2025-10-09T08:53:20Z and 2026-09-21T14:13:20Z.
SECONDS = (1_760_000_000, 1_790_000_000)


def counted(rows, n_documents=4):
    """A log of (query, document, position, shown, clicked)."""
    builder = LogBuilder(pages=False)
    columns = np.array(rows, np.int64).T
    builder.add_counts(*columns)
    queries = [f"q{i}" for i in range(columns[0].max() + 1)]
    return builder.finish(queries, [f"d{i}" for i in range(n_documents)], {})


def judged_rows(seed=0, n_queries=10, n_documents=15):
    """Rows of two random columns, with labels 0 to 2."""
    rng = np.random.default_rng(seed)
    n = n_queries * n_documents
    ids = np.array([f"d{i}" for i in range(n)], dtype=object)
    queries = np.repeat([f"q{i}" for i in range(n_queries)], n_documents)
    X = rng.random((n, 2), dtype=np.float32)
    return RankingData.from_rows(X, rng.integers(0, 3, n), queries, document_ids=ids)
