"""SSI with a diagonal matrix: word weights learned from labels (Bai et al., section 2.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.parallel import Workers
from ssi_models.parameters import model_class
from ssi_models.representation import Representation
from ssi_models.stored_tensors import Tensor
from ssi_models.training.data import TrainingData
from ssi_models.training.diagonal import Diagonal, DiagonalScorer, weigh
from ssi_models.training.options import TrainingOptions
from ssi_models.training.trainable import TrainableModel


@model_class
class DiagonalSSI(TrainableModel):
    """f(q, d) = q'Dd = sum_j D_j q_j d_j: tf-idf weights learned again; starts at D = I.

    Attributes:
        diagonal_: float32 [V].

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", section 2.2.1, W = D; similar
        to Grangier and Bengio, "Inferring document similarity from hyperlinks", CIKM 2005.
    """

    name: ClassVar[str] = "diagonal"
    tensors: ClassVar[Mapping[str, Tensor]] = {"diagonal": Tensor(("words",))}
    always_thorough: ClassVar[bool] = True

    training: TrainingOptions = TrainingOptions(learning_rate=0.1)

    diagonal_: NDArray[np.float32] = field(init=False)

    @property
    def matches_words(self) -> bool:
        return False

    @property
    def only_same_words(self) -> bool:
        return True

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> DiagonalScorer:
        ones = np.ones(data.D.shape[1], np.float32)
        diagonal = Diagonal(ones, rate, self.training.adagrad_start)
        return DiagonalScorer(data.Q, data.D, diagonal, workers)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        return Representation(sparse=weigh(Q, self.diagonal_))
