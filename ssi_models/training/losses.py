"""Pairwise losses of a batch, and which tuples count more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ssi_models.kernels import pair_losses
from ssi_models.parallel import Workers
from ssi_models.training.batches import Batch

LOSSES = {"margin": pair_losses.MARGIN, "logistic": pair_losses.LOGISTIC}
EMPHASES = {
    "uniform": pair_losses.UNIFORM,
    "warp": pair_losses.WARP,
    "ndcg": pair_losses.NDCG,
    "map": pair_losses.MAP,
}
Judged = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]


@dataclass(frozen=True)
class PairwiseLoss:
    """The loss of (q, d+, d-) by x = f(q, d+) - f(q, d-), and the emphasis on each tuple.

    Attributes:
        name: "margin": max(0, margin - x) (Bai et al., eq. 8); "logistic": margin
            log(1 + exp(-x / margin)), the same without corners.
        emphasis: "uniform" (the paper); "warp": tuples of a positive that many negatives outrank
            count by the harmonic number of its rank (Weston et al., "WSABIE", IJCAI 2011); "ndcg",
            "map": by how much NDCG, or reciprocal rank (the average precision of one relevant
            document), would change if the two documents were exchanged (Burges, "From RankNet to
            LambdaRank to LambdaMART", 2010). Ranks are estimated from the batch's negatives: those
            in the whole collection from the shared ones, those in the query's list from its own.
        margin: greater than 0.
        list_share: in [0, 1], weight of a query's own negatives together, those that are shared
            having the rest. A pair without own negatives learns from the shared ones alone.
    """

    name: str
    emphasis: str
    margin: float
    list_share: float = 0.0

    def slopes(
        self,
        batch: Batch,
        scores: tuple[NDArray[np.float32], NDArray[np.float32]],
        judged: Judged,
        slot: NDArray[np.int32],
        pool: int,
        workers: Workers,
    ) -> tuple[NDArray[np.float32], float, int, int]:
        """Negative slopes by x of every tuple [B, K + k]; summed loss, violating tuples, tuples.
        Slopes and loss are multiplied by the weight of the pair, if pairs have weights.

        ``slot`` is int32 [n_documents], all -1 on entry and on return; ``pool`` the number of
        documents that the shared negatives stand for.
        """
        positive, negative = scores
        A = np.empty(negative.shape, np.float32)
        losses, counts = np.zeros(len(A)), np.zeros((len(A), 2), np.int64)
        slot[batch.negatives] = np.arange(len(batch.negatives), dtype=np.int32)
        workers.split(
            lambda start, stop: pair_losses.pair_losses(
                positive, negative, batch.query, batch.grade, batch.own, batch.own_pool, slot,
                *judged, self.list_share, np.float32(self.margin), LOSSES[self.name],
                EMPHASES[self.emphasis], pool, A, losses, counts, start, stop,
            ),
            len(A),
            cost=4 * A.size,
        )  # fmt: skip
        slot[batch.negatives] = -1
        if batch.weight is not None:
            A *= batch.weight[:, None]
            losses *= batch.weight
        return A, float(losses.sum()), int(counts[:, 0].sum()), int(counts[:, 1].sum())
