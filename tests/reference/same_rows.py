"""Whether two data sets are the same, bit for bit."""

import numpy as np

from letor.dataset import RankingData


def assert_same(a: RankingData, b: RankingData) -> None:
    for name in ("X", "y", "query_index"):
        x, y = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        assert (x.shape, x.dtype, x.tobytes()) == (y.shape, y.dtype, y.tobytes()), name
    for name in ("query_ids", "column_names", "document_ids", "comments"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None), name
        assert x is None or list(x) == list(y), name
    assert (a.provenance, a.missing) == (b.provenance, b.missing)
