"""The vector space model: cosines of tf-idf vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.base import LearnsFrom
from ssi_models.projections.baselines import Baseline
from ssi_models.representation import Parts


@dataclass(kw_only=True, eq=False, repr=False)
class VSM(Baseline):
    """f(q, d) = q . d: the cosine of unit tf-idf vectors, W = I.

    Reference:
        Salton, Wong, Yang: "A vector space model for automatic indexing", CACM 18(11), 1975.
    """

    name: ClassVar[str] = "vsm"
    learns_from: ClassVar[LearnsFrom] = "documents"

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        return Parts(sparse=Q)

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(sparse=D)


@dataclass(kw_only=True, eq=False, repr=False)
class TfIdfCosine(VSM):
    """f(q, d) = q . d: the vector space model by the name that Bai et al. give it."""

    name: ClassVar[str] = "tfidf"
