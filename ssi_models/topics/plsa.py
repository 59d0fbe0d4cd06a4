"""PLSA on titles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.base import LearnsFrom
from ssi_models.topics.topic_model import TopicModel
from ssi_models.training.preferences import Preferences


@dataclass(kw_only=True, eq=False, repr=False)
class PLSA(TopicModel):
    """Topics of titles alone, by MAP estimation: P(w|d) = sum_z phi_zw theta_dz.

    Every non-empty row of D is a text of its own. Queries and preferences teach nothing, so that
    the weight of the title's own words is not chosen by them.

    Reference:
        Hofmann: "Probabilistic latent semantic indexing", SIGIR 1999; MAP as in Gao, Toutanova,
        Yih: "Clickthrough-based latent semantic models for web search", SIGIR 2011.
    """

    name: ClassVar[str] = "plsa"
    learns_from: ClassVar[LearnsFrom] = "documents"
    tensors: ClassVar[tuple[str, ...]] = ("phi_q", "background")
    shared: ClassVar[bool] = True

    lambda2: float | str = 0.95

    def _training_pairs(
        self, Q: sp.csr_matrix, D: sp.csr_matrix, preferences: Preferences | None
    ) -> tuple[sp.csr_matrix, NDArray[np.int64], NDArray[np.int64]]:
        sizes = np.asarray(D.sum(axis=1, dtype=np.float64)).ravel()
        document = np.flatnonzero(sizes > 0)
        if not len(document):
            raise ValueError("D has no word in any row: there is nothing to learn from")
        self.n_left_out_ = D.shape[0] - len(document)
        nothing = Q[:0]
        nothing.resize((1, D.shape[1]))
        return nothing, np.zeros(len(document), np.int64), document
