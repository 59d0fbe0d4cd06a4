"""Hash kernels: pairs of words share weights by a hash function (Bai et al., section 2.2.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import with_data
from ssi_models.mixing import choose_alpha
from ssi_models.parallel import Workers
from ssi_models.parameters import check_choice, check_least, model_class
from ssi_models.remarks import WORD_MATCHING
from ssi_models.representation import Representation
from ssi_models.ssi.full import plus_columns
from ssi_models.stored_tensors import Tensor
from ssi_models.training.data import TrainingData
from ssi_models.training.diagonal import Identity
from ssi_models.training.pair_weights import PairWeights, PairWeightScorer
from ssi_models.training.run import TrainingRun
from ssi_models.training.trainable import TrainableModel

IDENTITIES = ("none", "mixed", "added")
PRIME = 2_654_435_761  # prime, and coprime to any smaller H


@model_class
class HashKernelSSI(TrainableModel):
    """f(q, d) = sum_(s, t) w[h(s, t)] q_s d_t with h(s, t) = (s P + t) mod H.

    Weights start at 0. AdaGrad keeps an accumulator per weight.

    Args:
        n_buckets: H.
        identity: "none"; "mixed": f = alpha f_hash + (1 - alpha) q . d, alpha chosen by the rank
            loss of training triples after training (the paper's hash kernel + alpha I); "added":
            f = f_hash + q . d from the start, as in the low-rank models.
        prime: P.

    Attributes:
        w_: float32 [H]. alpha_: float32 [1], the mixing factor (1 unless mixed).

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", eq. 5; Shi, Petterson, Dror,
        Langford, Smola, Strehl, Vishwanathan: "Hash kernels", AISTATS 2009.
    """

    name: ClassVar[str] = "hash"
    tensors: ClassVar[Mapping[str, Tensor]] = {"w": Tensor(("buckets",)), "alpha": Tensor((1,))}
    expands_queries: ClassVar[bool] = True
    mixed_by: ClassVar[tuple[str, ...]] = ("alpha_",)

    n_buckets: int = 1_000_000
    identity: str = "added"
    prime: int = PRIME

    w_: NDArray[np.float32] = field(init=False)
    alpha_: NDArray[np.float32] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "n_buckets")
        if not 0 < self.prime < 2**32:
            raise ValueError(f"prime must be between 1 and 2^32, got {self.prime}")
        check_choice("identity", self.identity, IDENTITIES)

    def _check_restored(self) -> None:
        if len(self.w_) != self.n_buckets:
            raise ValueError(f"array w has {len(self.w_)} values, not {self.n_buckets}")

    @property
    def start(self) -> str:
        return WORD_MATCHING if self.identity == "added" else "nothing: every score is 0"

    @property
    def matches_words(self) -> bool:
        return self.identity == "added"

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> PairWeightScorer:
        values = np.zeros(self.n_buckets, np.float32)
        weights = PairWeights(values, self.prime, rate, self.training.adagrad_start)
        diagonal = Identity() if self.identity == "added" else None
        return PairWeightScorer(data.Q, data.D, weights, diagonal, workers)

    def _adopt(self, run: TrainingRun) -> None:
        super()._adopt(run)
        self.alpha_ = np.ones(1, np.float32)
        if self.identity == "mixed":
            choose_alpha(self, run.data, run.data.training)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        alpha = self.alpha_[0]
        weights = PairWeights(self.w_, self.prime, 1.0, None)
        with Workers(self.threads) as workers:
            expanded = alpha * weights.expand(Q, words, workers)
        share = {"none": 0.0, "mixed": 1 - alpha, "added": 1.0}[self.identity]
        diagonal = with_data(Q, Q.data * np.float32(share))
        return Representation(sparse=plus_columns(diagonal, expanded, words))
