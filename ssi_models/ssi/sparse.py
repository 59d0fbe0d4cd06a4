"""SSI with a sparse matrix, by iterative projection (Bai et al., Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.matrices import check_csr
from ssi_models.parameters import check_least, model_class
from ssi_models.remarks import WORD_MATCHING, of_amount
from ssi_models.representation import Representation
from ssi_models.ssi.full import FullSSI
from ssi_models.stored_tensors import Tensor, matrix
from ssi_models.training.data import TrainingData
from ssi_models.training.loop import History, Settings, train
from ssi_models.training.pair_weights import PairWeightScorer
from ssi_models.training.run import JointRun, TrainingRun


@model_class
class SparseSSI(FullSSI):
    """f(q, d) = q'Wd with at most p weights per query word; a query of m words costs at most mp.

    Trains the unconstrained W, then repeatedly constrains the smallest weights of each row to zero
    for good and trains again, until no row has more than p. Every round starts from the best epoch
    of the previous one and has its own early stopping (``max_epochs`` and ``patience`` are per
    round).

    Args:
        n_weights: p, the largest number of weights in a row, including the diagonal one.
        keep: share of a row's weights that a round keeps, in (0, 1).

    Attributes:
        W_data_, W_indices_, W_indptr_: W as CSR [V, V]; rows of words that occur in no training
            query hold the identity.
        history_: training history of the last round.

    Reference:
        Bai et al., "Learning to rank with (a lot of) word features", section 2.3.3.
    """

    name: ClassVar[str] = "sparse"
    tensors: ClassVar[Mapping[str, Tensor]] = matrix("W", "words", "words")
    expands_queries: ClassVar[bool] = False

    n_weights: int = 100
    keep: float = 0.25
    scales: Sequence[float] = (1.0,)

    W_data_: NDArray[np.float32] = field(init=False)
    W_indices_: NDArray[np.int32] = field(init=False)
    W_indptr_: NDArray[np.int64] = field(init=False)

    def check_params(self) -> None:
        super().check_params()
        check_least(self, 1, "n_weights")
        if not 0 < self.keep < 1:
            raise ValueError(f"keep must be in (0, 1), got {self.keep}")
        if self.warm_start:
            raise ValueError("warm_start: a sparse model always starts from a dense W = I")
        if tuple(self.scales) != (1.0,):
            raise ValueError("scales: a sparse model is not mixed with the identity again")

    def _check_restored(self) -> None:
        """There is only W, whose arrays have already been checked."""

    @property
    def only_same_words(self) -> bool:
        if not hasattr(self, "n_words_"):
            return False
        W = self.matrix_.tocoo()
        return bool(np.all(W.row == W.col))

    @property
    def start(self) -> str:
        # The history is of the last round, which starts from what previous rounds learned.
        return WORD_MATCHING if self.only_same_words else "what the rounds before the last learned"

    def make_scorer(self, data: TrainingData, rate: float, workers: Any) -> PairWeightScorer:
        scorer = super().make_scorer(data, rate, workers)
        scorer.weights.active = np.ones(len(scorer.weights.values), np.bool_)
        return scorer

    def _learn(self, run: JointRun, settings: Settings) -> History:
        # A killed run resumes in the round that it was in: ``active`` is part of its state.
        history = train(run, settings)
        while (kept := self._kept_weights(run)) > self.n_weights:
            for part in run.runs:
                most = max(self.n_weights, int(kept * self.keep))
                project(*self._rows(part), self._identity(part.data), most)
            history = train(run, replace(settings, resumes=False))
        return history

    def _kept_weights(self, run: JointRun) -> int:
        """Number of weights that a row of W still has; the same in all rows of all runs."""
        return int(self._rows(run.runs[0])[1].sum(axis=1).max(initial=0))

    def _rows(self, run: TrainingRun) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """W - I and the mask of its active weights, [query words, document words] each."""
        scorer: PairWeightScorer = run.scorer  # type: ignore[assignment]
        shape = scorer.weighted_Q.shape[1], scorer.weighted_D.shape[1]
        return scorer.weights.values.reshape(shape), scorer.weights.active.reshape(shape)

    def _identity(self, data: TrainingData) -> NDArray[np.int64]:
        """For each weighted row, the position of its word among the columns, or -1."""
        rows, columns = self._words_of(data).values()
        at = np.minimum(np.searchsorted(columns, rows), len(columns) - 1)
        return np.where(columns[at] == rows, at, -1)

    def _adopt(self, run: TrainingRun) -> None:
        super()._adopt(run)
        n = run.data.D.shape[1]
        scorer: PairWeightScorer = run.scorer  # type: ignore[assignment]
        delta = self.w_.reshape(len(self.rows_), len(self.columns_))
        # Pruned weights hold -1 on the diagonal and 0 elsewhere, so that W = I + delta is 0 there.
        entries = sp.csr_matrix(delta).tocoo()
        W = sp.identity(n, np.float32, format="csr") + sp.csr_matrix(
            (entries.data, (self.rows_[entries.row], self.columns_[entries.col])), shape=(n, n)
        )
        W.eliminate_zeros()
        W = check_csr("W", W)
        self.W_data_, self.W_indices_, self.W_indptr_ = W.data, W.indices, W.indptr
        del self.w_, self.rows_, self.columns_
        scorer.weights.active = np.zeros(0, np.bool_)

    @property
    def remarks(self) -> list[str]:
        if hasattr(self, "history_") and self.history_.best_epoch == 0 and not self.only_same_words:
            return of_amount(self.n_queries_, self.n_pairs_)
        return super().remarks

    @property
    def matrix_(self) -> sp.csr_matrix:
        """W as a CSR matrix [V, V]."""
        shape = (self.n_words_, self.n_words_)
        return sp.csr_matrix((self.W_data_, self.W_indices_, self.W_indptr_), shape=shape)

    def query_representation(self, Q: sp.csr_matrix, words: NDArray[np.int64]) -> Representation:
        return Representation(sparse=check_csr("queries", Q @ self.matrix_))


def project(
    delta: NDArray[np.float32],
    active: NDArray[np.bool_],
    identity: NDArray[np.int64],
    kept: int,
) -> None:
    """Keep the ``kept`` active weights of W = delta + I with the largest |W_ij| in every row and
    set the others to zero, in place; ties go to the lower column.

    Args:
        delta: float32 [R, C]. active: bool [R, C].
        identity: int64 [R], the column of a row's diagonal weight, or -1.
    """
    for i in range(len(delta)):
        size = np.abs(delta[i])
        if identity[i] >= 0:
            size[identity[i]] = abs(delta[i, identity[i]] + 1)
        size[~active[i]] = -1
        order = np.argsort(-size, kind="stable")
        active[i, order[kept:]] = False
        delta[i, order[kept:]] = 0
        if identity[i] >= 0 and not active[i, identity[i]]:
            delta[i, identity[i]] = -1
