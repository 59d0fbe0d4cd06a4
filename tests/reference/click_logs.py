"""Click logs made of pages by hand."""

from __future__ import annotations

import numpy as np

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
