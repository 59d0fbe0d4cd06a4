"""SSI with a diagonal matrix: word weights learned from labels (Bai et al., section 2.2.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.parallel import Workers
from ssi_models.representation import Parts
from ssi_models.training.diagonal import Diagonal, weigh
from ssi_models.training.towers import DiagonalScorer
from ssi_models.training.trainable import RankingModel
from ssi_models.training.training_data import TrainingData


@dataclass(kw_only=True, eq=False, repr=False)
class DiagonalSSI(RankingModel):
    """f(q, d) = q'Dd = sum_j D_j q_j d_j: tf-idf weights learned again; starts at D = I.

    Attributes:
        diagonal_: float32 [V].

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", section 2.2.1, W = D; similar
        to Grangier and Bengio, "Inferring document similarity from hyperlinks", CIKM 2005.
    """

    name: ClassVar[str] = "diagonal"
    tensors: ClassVar[tuple[str, ...]] = ("diagonal",)

    diagonal_: NDArray[np.float32] = field(init=False)

    @property
    def matches_words(self) -> bool:
        return False

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> DiagonalScorer:
        ones = np.ones(data.D.shape[1], np.float32)
        lexical = Diagonal(ones, rate, self._accumulator_start)
        return DiagonalScorer(data.Q, data.D, lexical, workers)

    def query_parts(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Parts:
        return Parts(sparse=weigh(Q, self.diagonal_))

    def document_parts(self, D: sp.csr_matrix) -> Parts:
        return Parts(sparse=D)
