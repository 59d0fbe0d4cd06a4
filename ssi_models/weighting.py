"""tf-idf weighting of term counts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import check_counts
from ssi_models.parameters import NotFittedError


class TfIdf:
    """Unit tf-idf vectors: x_j = c_j log(n / df_j), scaled to length 1.

    Words that occur in no fitted document have idf 0, and a row without weighted words stays a
    zero vector. Fitting uses document frequencies only, never labels.

    Attributes:
        idf_: float32 [V], log(n / df_j) of the fitted documents.

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", sections 2.1 and 4.1.
    """

    idf_: NDArray[np.float32]

    @classmethod
    def from_idf(cls, idf: NDArray[np.float32]) -> TfIdf:
        """Restore a fitted weighting from its ``idf_``."""
        weighting = cls()
        weighting.idf_ = np.ascontiguousarray(idf, dtype=np.float32)
        return weighting

    def fit(self, counts: sp.csr_matrix) -> TfIdf:
        """Learn ``idf_`` from term counts [n, V], a sparse matrix of any format.

        Raises:
            TypeError, ValueError: as :func:`ssi_models.matrices.check_counts`.
        """
        counts = check_counts("counts", counts)
        n, width = counts.shape
        df = np.bincount(counts.indices[counts.data > 0], minlength=width)
        idf = np.zeros(width)
        idf[df > 0] = np.log(n / df[df > 0])
        self.idf_ = idf.astype(np.float32)
        return self

    def transform(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        """Weighted unit rows (float32 CSR, same shape) of term counts, a sparse matrix of any
        format; the input is not changed.

        Raises:
            NotFittedError: the weighting is not fitted.
            TypeError, ValueError: as :func:`ssi_models.matrices.check_counts`; the latter also if
                the counts do not have as many columns as the fitted ones.
        """
        if not hasattr(self, "idf_"):
            raise NotFittedError("this TfIdf is not fitted; call fit with the documents' counts")
        counts = check_counts("counts", counts)
        if counts.shape[1] != len(self.idf_):
            raise ValueError(
                f"counts have {counts.shape[1]} columns, the weighting was fitted on "
                f"{len(self.idf_)} words; analyse the text with the same vocabulary"
            )
        weights = counts.data * self.idf_[counts.indices].astype(np.float64)
        # Each row is summed by itself, so that no other row has an influence on its rounding.
        row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        norms = np.sqrt(np.bincount(row, weights * weights, counts.shape[0]))
        norms[norms == 0] = 1.0
        data = (weights / norms[row]).astype(np.float32)
        return sp.csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)


def heaviest(X: sp.csr_matrix, n: int | None) -> sp.csr_matrix:
    """Rows scaled to length 1 (float32 CSR) of the n largest weights of each row; of equal weights
    those of lower columns. Columns ascend. X itself if n is None.

    Args:
        X: rows of weights above 0, such as those of :class:`TfIdf`. n: 1 or more.
    """
    if n is None:
        return X
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    order = np.lexsort((X.indices, -X.data, row))
    place = np.arange(len(order)) - X.indptr[row[order]]
    kept = np.sort(order[place < n])
    data, row = X.data[kept].astype(np.float64), row[kept]
    norm = np.sqrt(np.bincount(row, data**2, minlength=X.shape[0]))
    indptr = np.searchsorted(row, np.arange(X.shape[0] + 1))
    unit = (data / np.maximum(norm, 1e-12)[row]).astype(np.float32)
    return sp.csr_matrix((unit, X.indices[kept], indptr), shape=X.shape)
