"""Join a LETOR file with its texts, by query id and ``#docid``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.document_ids import needed_ids
from letor.errors import InputError
from ltr_base.names import written_otherwise
from ltr_features.parameters import check_choice
from ltr_features.text.collection import Collection, Pairs
from ltr_features.text.id_rows import examples, rows_of


@dataclass(frozen=True, eq=False)
class LetorJoin:
    """Rows of a LETOR file as pairs of a collection.

    Attributes:
        pairs: the pairs of the rows that have text, in order.
        rows: int64 [len(pairs)], the numbers of these rows in the file.
        n_rows: number of rows in the file.
        n_without_text: number of rows whose query or document the collection does not have.
        lost: of the first of them, what it names, and what the collection has instead; "" if there
            is none.
        n_own: number of rows of the document that their query was made from.
        n_relevant: number of rows with a label above 0 whose query has judgements in the
            collection.
        n_agreed: number of these that are judged relevant there, too.
    """

    pairs: Pairs
    rows: NDArray[np.int64]
    n_rows: int
    lost: str = ""
    n_own: int = 0
    n_relevant: int = 0
    n_agreed: int = 0

    @property
    def remarks(self) -> Iterator[str]:
        """Remarks, without a full stop: the collection's judgements contradict the labels, so that
        ids may mean other queries there; rows without text; rows of a query's own document."""
        if 2 * self.n_agreed < self.n_relevant:
            yield (
                f"of {self.n_relevant:,} relevant rows only {self.n_agreed:,} are judged relevant "
                "in the collection: do query ids mean the same queries there? (index table numbers "
                "texts without ids as they first occur, which another order of its files changes)"
            )
        if n := self.n_without_text:
            yield (
                f"{n:,} of {self.n_rows:,} rows have no text in the workspace and get 0 in the new "
                f"columns: {self.lost}"
            )
        if n := self.n_own:
            yield (
                f"{n:,} of {self.n_rows:,} rows are of the document that their query was made "
                "from, which is not to be ranked for it: take them out, or rankers learn what a "
                "copy is"
            )

    @property
    def n_without_text(self) -> int:
        return self.n_rows - len(self.rows)

    def spread(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Expand columns of the pairs, [len(pairs), k], to all rows of the file, [n_rows, k], with
        0 in rows without text."""
        spread = np.zeros((self.n_rows, values.shape[1]), np.float32)
        spread[self.rows] = values
        return spread


def join_letor(
    data: RankingData,
    collection: Collection,
    *,
    on_missing: Literal["raise", "zero"] = "raise",
) -> LetorJoin:
    """Find each row's query and document in a collection.

    Args:
        data: rows with document ids (LETOR's comment ``#docid = GX000-00-0000000``).
        collection: the texts; it may hold more queries and documents than the rows name.
        on_missing: how to treat rows whose query or document has no text: "raise" an error, or
            "zero" for 0 in every new column (they are counted).

    Raises:
        InputError: the rows have no document ids, no row has text, or one has none with "raise".
    """
    check_choice("on_missing", on_missing, ("raise", "zero"))
    documents = needed_ids(data, "by which rows are joined with texts")
    query = rows_of(data.query_ids, collection.query_ids)[data.query_index]
    document = rows_of(documents, collection.document_ids)
    found = (query >= 0) & (document >= 0)
    if not found.any() and len(data):
        side = "query" if (query < 0).all() else "document"
        ids = data.query_ids if side == "query" else list(dict.fromkeys(documents))
        wanted = collection.query_ids if side == "query" else collection.document_ids
        near = written_otherwise(ids[0], wanted)
        raise InputError(
            f"none of the {len(data)} rows has text in collection {collection.name!r}: the rows' "
            f"{side} ids are {examples(ids)}, the collection's {examples(wanted)}"
            + (f"; for {ids[0]!r} {near}" if near else "")
        )
    lost = ""
    if not found.all():
        row = int(np.argmin(found))
        side, id_, known = (
            ("query", data.query_ids[data.query_index[row]], collection.query_ids)
            if query[row] < 0
            else ("document", documents[row], collection.document_ids)
        )
        near = written_otherwise(id_, known)
        if side == "query" and not near:
            near = "it has queries without judgements only if indexed with keep_unjudged=true"
        lost = (
            f"row {row + 1} names {side} {id_!r}, which it does not have{'; ' * bool(near)}{near}"
        )
        if on_missing == "raise":
            raise InputError(
                f"{np.count_nonzero(~found)} of {len(data)} rows have no text in collection "
                f"{collection.name!r}: {lost}; add the texts, or give such rows 0: --on-missing "
                "zero (on_missing='zero')"
            )
    rows = np.flatnonzero(found)
    pairs, sources, n_own = Pairs(query[rows], document[rows]), collection.query_sources, 0
    if sources is not None:
        n_own = int((sources[pairs.query] == pairs.document).sum())
    agreement = _agreement(pairs, data.y[rows] > 0, collection)
    return LetorJoin(pairs, rows, len(data), lost, n_own, *agreement)


def _agreement(
    pairs: Pairs, relevant: NDArray[np.bool_], collection: Collection
) -> tuple[int, int]:
    """How many relevant pairs have a query that is judged in the collection, and how many of these
    are relevant there, too."""
    judged, n = collection.judgements, collection.n_documents
    compared = relevant & np.isin(pairs.query, judged.query)
    there = (judged.query * n + judged.document)[judged.grade > 0]
    agreed = compared & np.isin(pairs.query * n + pairs.document, there)
    return int(compared.sum()), int(agreed.sum())
