"""BM25, defined once for the columns and for retrieval.

    score(q, d) = sum over the distinct terms t of q of
        idf(t) * c (k1 + 1) / (c + k1 (1 - b + b |d| / avgdl)) * (k3 + 1) qtf / (k3 + qtf)
    idf(t) = ln(N / df(t))

with c = count of t in d, qtf = count of t in q, |d| = tokens of d, avgdl = their mean over all N
documents. This is the formula of Robertson et al., "Okapi at TREC-3" (1994), with the idf of
LETOR 4.0, which is never negative; bm25s and others call the combination "ATIRE".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ltr_features.parameters import check_range
from ltr_features.text.field_counts import FieldCounts


@dataclass(frozen=True)
class BM25:
    """Parameters of BM25.

    Attributes:
        k1: saturation of the term count, 0 (counts do not matter) or more.
        b: length normalisation, 0 (none) to 1 (full).
        k3: saturation of the count in the query, 0 (repetitions do not matter) or more.

    Raises:
        InputError: a parameter is out of range.
    """

    k1: float = 1.2
    b: float = 0.75
    k3: float = 0.0

    def __post_init__(self) -> None:
        check_range("k1", self.k1, 0.0)
        check_range("b", self.b, 0.0, 1.0)
        check_range("k3", self.k3, 0.0)

    def saturation(self, field: FieldCounts) -> NDArray[np.float64]:
        """float64 [n_documents]: the term added to c in the denominator, k1 (1 - b + b |d| /
        avgdl)."""
        lengths = field.lengths.astype(np.float64)
        return self.k1 * (1.0 - self.b + self.b * lengths / (field.mean_length or 1.0))

    def query_parts(self, counts: NDArray[np.int32]) -> NDArray[np.float64]:
        """float64 [nnz]: the query factor of each entry (query, term), with k3 and qtf."""
        return (self.k3 + 1.0) * counts / (self.k3 + counts)


def inverse_document_frequency(
    field: FieldCounts, words: NDArray[np.integer] | slice = slice(None)
) -> NDArray[np.float64]:
    """float64: ln(N / df) of the given columns of the vocabulary, by default of all; 0 for a word
    that never occurs in the field."""
    df = field.document_frequency[words]
    return np.log(field.n_documents / np.maximum(df, 1)) * (df > 0)
