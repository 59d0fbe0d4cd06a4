"""Document ids of rows, for what cannot do without them."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import InputError
from letor.string_array import StringArray

#: Characters of a comment that a message shows.
_SHOWN = 40


def needed_ids(
    data: RankingData, why: str, rows: str | os.PathLike[str] = "the rows"
) -> NDArray[np.object_] | StringArray:
    """The document ids of rows.

    Other comments of LETOR text than ``#docid = ID`` are not taken for ids: in files for RankLib
    they are, by its documentation, any text, and often begin with an id ("# 7555 rambo").

    Args:
        why: what they are needed for, "which TREC files need". rows: the rows, or their file.

    Raises:
        InputError: there are none.
    """
    if data.document_ids is not None:
        return data.document_ids
    given = (comment.lstrip(b"# \t").strip() for comment in data.comments or ())
    first = next((comment for comment in given if comment), b"").decode("utf-8", "replace")
    told = f"{rows}: no document ids, {why}; each line of LETOR text needs a comment '#docid = ID'"
    if first:
        told += (
            f" (other comments, such as '# {first[:_SHOWN]}', may be any text: where they begin "
            "with the id, write 'docid =' before it)"
        )
    raise InputError(told)
