"""Processing of rows a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def slices(n: int, size: int) -> list[slice]:
    """Split ``0:n`` into slices of ``size`` rows (at least 1); the last one may be shorter."""
    size = max(1, size)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def group_ranges(offsets: NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Ranges of groups of rows (group i has the rows ``offsets[i]:offsets[i + 1]``) whose first row
    is in the same slice of ``size`` rows."""
    ends = np.flatnonzero(np.diff(offsets[:-1] // size)) + 1
    return pairwise([0, *ends.tolist(), len(offsets) - 1])
