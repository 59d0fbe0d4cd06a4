"""SSI with an unconstrained matrix: the margin ranking perceptron (Bai et al., section 2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import check_csr, take_columns, take_rows
from ssi_models.parallel import Workers
from ssi_models.parameters import model_class
from ssi_models.representation import Representation
from ssi_models.stored_tensors import Tensor
from ssi_models.training.data import TrainingData
from ssi_models.training.diagonal import Identity
from ssi_models.training.pair_weights import PairWeights, PairWeightScorer
from ssi_models.training.trainable import TrainableModel

MAX_WEIGHTS = 2**31  # 8 GiB of float32; AdaGrad doubles it


@model_class
class FullSSI(TrainableModel):
    """f(q, d) = q'Wd with one weight per pair of words; starts at W = I.

    Only words that occur in the training queries (rows) and in the documents (columns) have
    weights; everywhere else W stays the identity. AdaGrad keeps an accumulator per weight.

    Attributes:
        w_: float32 [R * C], W - I of the words below, by rows.
        rows_, columns_: int64, the query and document words that have weights, ascending.

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", eq. 1 and section 2.3.1.
    """

    name: ClassVar[str] = "full"
    tensors: ClassVar[Mapping[str, Tensor]] = {
        "w": Tensor(("weights",)),
        "rows": Tensor(("rows",), "int64", below="query_words", ascending=True),
        "columns": Tensor(("columns",), "int64", below="words", ascending=True),
    }
    expands_queries: ClassVar[bool] = True

    w_: NDArray[np.float32] = field(init=False)
    rows_: NDArray[np.int64] = field(init=False)
    columns_: NDArray[np.int64] = field(init=False)

    def _check_restored(self) -> None:
        if len(self.w_) != len(self.rows_) * len(self.columns_):
            raise ValueError("array w does not have one weight per row and column")

    def make_scorer(self, data: TrainingData, rate: float, workers: Workers) -> PairWeightScorer:
        rows, columns = self._words_of(data).values()
        n = len(rows) * len(columns)
        if n > MAX_WEIGHTS:
            raise ValueError(
                f"{len(rows)} query words x {len(columns)} document words need {n} weights, more "
                f"than {MAX_WEIGHTS}; keep fewer words, or use a low-rank or hashed model"
            )
        weights = PairWeights(
            np.zeros(n, np.float32), len(columns), rate, self.training.adagrad_start
        )
        return PairWeightScorer(
            data.Q,
            data.D,
            weights,
            Identity(),
            workers,
            weighted_Q=take_columns(data.Q, rows),
            weighted_D=take_columns(data.D, columns),
        )

    def _words_of(self, data: TrainingData) -> dict[str, NDArray[np.int64]]:
        asked = take_rows(data.Q, data.training.queries)  # the words of others learn nothing
        return {"rows": occurring(asked), "columns": occurring(data.D)}

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        weights = PairWeights(self.w_, len(self.columns_), 1.0, None)
        asked = np.flatnonzero(np.isin(self.columns_, words))
        with Workers(self.threads) as workers:
            expanded = weights.expand(take_columns(Q, self.rows_), asked, workers)
        return Representation(sparse=plus_columns(Q, expanded, self.columns_[asked]))


def occurring(X: sp.csr_matrix) -> NDArray[np.int64]:
    """The columns of a checked matrix that have an entry, ascending."""
    return np.unique(X.indices).astype(np.int64)


def plus_columns(
    Q: sp.csr_matrix, dense: NDArray[np.float32], columns: NDArray[np.int64]
) -> sp.csr_matrix:
    """Q plus a dense matrix over some of its columns, as a checked matrix."""
    indptr = np.arange(len(dense) + 1, dtype=np.int64) * len(columns)
    indices = np.tile(columns, len(dense))
    return check_csr("queries", Q + sp.csr_matrix((dense.ravel(), indices, indptr), shape=Q.shape))
