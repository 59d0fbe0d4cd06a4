"""Layout of the arrays that LETOR/SVMlight text is parsed into."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Flags of a row.
BAD, HAS_NULL, HAS_NON_FINITE, SAME_QUERY = 1, 2, 4, 8

# Columns of ``spans``: byte positions of a row. A row's data end and its comment starts at CUT;
# where there is no comment, CUT = LINE_STOP. LINE_STOP excludes the line end.
LINE_START, QUERY_START, QUERY_STOP, CUT, LINE_STOP = 0, 1, 2, 3, 4
N_SPANS = 5


class RowArrays(NamedTuple):
    """Output arrays of the parsing kernels; a row flagged BAD is malformed or needs exact
    arithmetic, and its X and y are undefined."""

    X: NDArray[np.float32]  # [n, p]
    y: NDArray[np.float32]  # [n]
    spans: NDArray[np.int64]  # [n, 5]
    flags: NDArray[np.uint8]  # [n]
