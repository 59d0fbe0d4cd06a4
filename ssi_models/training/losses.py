"""Pairwise losses of a batch, and the weights of tuples in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssi_models.kernels import pair_losses
from ssi_models.kernels.pair_losses import Judged, PairLoss, Positives
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch

LOSSES = {"margin": pair_losses.MARGIN, "logistic": pair_losses.LOGISTIC}
RANK_WEIGHTS = {
    "uniform": pair_losses.UNIFORM,
    "warp": pair_losses.WARP,
    "ndcg": pair_losses.NDCG,
    "map": pair_losses.MAP,
}


@dataclass(frozen=True)
class PairwiseLoss:
    """The loss of (q, d+, d-) as a function of x = f(q, d+) - f(q, d-), and the weight of a tuple.

    Attributes:
        name: "margin": max(0, margin - x) (Bai et al., eq. 8); "logistic": margin
            log(1 + exp(-x / margin)), a smooth version of it.
        rank_weight: "uniform" (the paper); "warp": the tuples of a positive have the harmonic
            number of its rank as weight (Weston et al., "WSABIE", IJCAI 2011); "ndcg", "map": the
            weight is the change in NDCG, or in reciprocal rank (the average precision of one
            relevant document), if the two documents were exchanged (Burges, "From RankNet to
            LambdaRank to LambdaMART", 2010). Ranks are estimated from the batch's negatives: those
            in the whole collection from the shared ones, those in the query's list from its own.
        margin: greater than 0.
        list_share: in [0, 1], total weight of a query's own negatives; the shared ones have the
            rest. A pair without own negatives learns from the shared ones alone.
    """

    name: str
    rank_weight: str
    margin: float
    list_share: float = 0.0

    def gradients(
        self,
        batch: Batch,
        scores: tuple[NDArray[np.float32], NDArray[np.float32]],
        judged: Judged,
        slot: NDArray[np.int32],
        pool: int,
        workers: Workers,
    ) -> tuple[NDArray[np.float32], float, int, int]:
        """Minus the derivative by x of each tuple's loss [B, K + k]; summed loss, violating tuples,
        tuples. Derivatives and loss are multiplied by the weight of the pair, if there are weights.

        ``slot`` is int32 [n_documents], all -1 on entry and on return; ``pool`` is the number of
        documents that the shared negatives are a sample of.
        """
        positive, negative = scores
        A = np.empty(negative.shape, np.float32)
        losses, counts = np.zeros(len(A)), np.zeros((len(A), 2), np.int64)
        rank_weight, order = RANK_WEIGHTS[self.rank_weight], np.empty((len(A), 0), np.int64)
        if rank_weight >= pair_losses.NDCG:
            order = _by_score(negative, len(batch.negatives), workers)
        pairs = Positives(batch.query, batch.grade, batch.own, batch.own_pool, slot, pool, judged)
        loss = PairLoss(LOSSES[self.name], rank_weight, np.float32(self.margin), self.list_share)
        slot[batch.negatives] = np.arange(len(batch.negatives), dtype=np.int32)
        workers.split(
            lambda start, stop: pair_losses.pair_losses(
                positive, negative, order, pairs, loss, A, losses, counts, start, stop
            ),
            len(A),
            cost=4 * A.size,
        )
        slot[batch.negatives] = -1
        if batch.weight is not None:
            A *= batch.weight[:, None]
            losses *= batch.weight
        return A, float(losses.sum()), int(counts[:, 0].sum()), int(counts[:, 1].sum())


def _by_score(scores: NDArray[np.float32], n_shared: int, workers: Workers) -> NDArray[np.int64]:
    """The ``order``, int64 [B, K + k], of :func:`ssi_models.kernels.pair_losses.pair_losses`, where
    a sort would take seconds to compile."""
    order = np.empty(scores.shape, np.int64)

    def sort(start: int, stop: int) -> None:
        for part in (slice(n_shared), slice(n_shared, None)):
            order[start:stop, part] = np.argsort(-scores[start:stop, part], axis=1, kind="stable")

    workers.split(sort, len(order), cost=4 * order.size)
    return order
