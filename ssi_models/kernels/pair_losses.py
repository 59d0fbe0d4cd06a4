"""Kernels for the pairwise losses of a batch and for measures of a ranking."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel

MARGIN, LOGISTIC = 0, 1
UNIFORM, WARP, NDCG, MAP = 0, 1, 2, 3


class Judged(NamedTuple):
    """The judged documents by query: query q has ``offsets[q]:offsets[q + 1]`` of the others."""

    offsets: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.float32]


class Positives(NamedTuple):
    """B relevant pairs, K shared negatives and k of each pair's own.

    Attributes:
        query: int64 [B]. grade: float32 [B].
        own: int64 [B, k], -1 where there is no own negative, or it is judged as high as the pair.
        own_pool: int64 [B], number of documents that the own negatives were drawn from.
        slot: int32 [n_documents], k where the document is shared negative k, else -1.
        pool: number of documents that the K negatives were drawn from.
        judged: of all queries.
    """

    query: NDArray[np.int64]
    grade: NDArray[np.float32]
    own: NDArray[np.int64]
    own_pool: NDArray[np.int64]
    slot: NDArray[np.int32]
    pool: int
    judged: Judged


class PairLoss(NamedTuple):
    """MARGIN or LOGISTIC; UNIFORM, WARP, NDCG or MAP; float32; weight of own negatives."""

    kind: int
    rank_weight: int
    margin: np.float32
    list_share: float


@kernel()
def pair_losses(
    positive_score, negative_score, order, pairs, loss, weight, losses, counts, start, stop
):
    """Pairwise losses of positives start..stop against K shared negatives and k of their own, with
    their gradients.

    A tuple (q, d+, d-) counts unless d- is judged for q with a grade at least that of d+. With the
    difference x = f(q, d+) - f(q, d-), the loss is max(0, margin - x) (MARGIN) or
    margin log(1 + exp(-x / margin)) (LOGISTIC). ``weight[b, k]`` is minus the derivative by x of
    the loss, weighted by rank; for the n shared tuples of a positive:

    - UNIFORM: gradient / K.
    - WARP: gradient Phi(r) / v, with v violating tuples (x < margin) of n, r = v pool / n the
      estimated rank of d+ and Phi(r) = sum_(j <= r) 1 / j (0 where x >= margin).
    - NDCG, MAP: gradient |h(r+) - h(r-)| pool / n: the change of the measure if the two documents,
      at their estimated ranks, were exchanged; h(r) = 1 / log2(1 + r), or 1 / r.

    Own tuples are weighted likewise among themselves, with ranks among ``own_pool[b]`` documents
    instead, and gradient / n for UNIFORM. If there are any, their weights are multiplied by
    ``list_share`` and those of the shared ones by 1 - list_share.

    Args:
        positive_score: float32 [B]. negative_score: float32 [B, K + k], the own ones last.
        order: int64 [B, K + k], for each row the shared negatives by descending score, then the
            own ones, counted from 0; read by NDCG and MAP only, otherwise [B, 0].
        pairs: :class:`Positives`. loss: :class:`PairLoss`.
        weight: float32 [B, K + k], written. losses: float64 [B], written: summed loss, without
            weights or shares. counts: int64 [B, 2], written: violating tuples and tuples.
    """
    own, pool = pairs.own, pairs.pool
    K = negative_score.shape[1] - own.shape[1]
    for b in range(start, stop):
        shared, listed = weight[b, :K], weight[b, K:]
        shared[:] = 1.0
        drop_judged(shared, pairs.slot, pairs.judged, pairs.query[b], pairs.grade[b])
        n_own = np.int64(0)  # a literal 0 would compile _weigh once more
        for j in range(own.shape[1]):
            listed[j] = own[b, j] >= 0
            n_own += own[b, j] >= 0
        share = loss.list_share if n_own > 0 else 0.0
        total, n_violations, n_tuples = _weigh(
            shared, negative_score[b, :K], order[b, :K], positive_score[b], loss, K, pool, pool,
            1.0 - share,
        )  # fmt: skip
        if n_own > 0:
            own_total, own_violations, _ = _weigh(
                listed, negative_score[b, K:], order[b, K:], positive_score[b], loss, n_own,
                pairs.own_pool[b], pool, share,
            )  # fmt: skip
            total += own_total
            n_violations += own_violations
            n_tuples += n_own
        losses[b] = total
        counts[b, 0] = n_violations
        counts[b, 1] = n_tuples


@kernel()
def _weigh(row, negative_score, order, positive_score, loss, n, ranked, pool, share):
    """Write the weights of one positive's tuples to row, which on entry is 1 for tuples and 0
    elsewhere; returns (loss, violating tuples, tuples).

    ``n`` is the divisor under UNIFORM; ranks are estimated among ``ranked`` documents, NDCG and
    MAP sum over ``pool`` documents; ``share`` is a factor of all weights.
    """
    margin, rank_weight = loss.margin, loss.rank_weight
    total = 0.0
    n_tuples = n_violations = n_above = np.int64(0)
    for k in range(len(row)):
        if row[k] > 0.0:
            x = positive_score - negative_score[k]
            n_tuples += 1
            n_violations += x < margin
            n_above += x <= 0.0
            row[k] = 0.0
            if loss.kind == LOGISTIC:
                ratio = np.float64(x / margin)
                total += margin * (max(0.0, -ratio) + np.log1p(np.exp(-abs(ratio))))
                row[k] = 1.0 / (1.0 + np.exp(min(ratio, 80.0)))
            elif x < margin:
                total += margin - x
                row[k] = 1.0
        else:
            row[k] = -1.0
    if rank_weight == WARP:
        for k in range(len(row)):
            if positive_score - negative_score[k] >= margin:
                row[k] = 0.0
    factor = 1.0 / max(1, n)
    if rank_weight == WARP and n_violations > 0:
        rank = max(1, int(n_violations * ranked / n_tuples))
        factor = _harmonic(rank) / n_violations
    elif rank_weight >= NDCG and n_tuples > 0:
        factor = pool / n_tuples
        scale = ranked / n_tuples
        _weigh_by_exchange(row, negative_score, order, positive_score, n_above, scale, rank_weight)
    for k in range(len(row)):
        row[k] = max(row[k], 0.0) * np.float32(factor * share)
    return total, n_violations, n_tuples


@kernel()
def drop_judged(row, slot, judged, query, grade):
    """row[k] = 0 for the negatives k that do not count against a positive of the query and grade,
    because they are judged as high; returns their number."""
    n = 0
    for p in range(judged.offsets[query], judged.offsets[query + 1]):
        k = slot[judged.document[p]]
        if k >= 0 and judged.grade[p] >= grade:
            row[k] = 0.0
            n += 1
    return n


@kernel()
def _weigh_by_exchange(row, negative_score, order, positive_score, n_above, scale, rank_weight):
    """row[k] *= |h(r+) - h(r-_k)|, with ranks in the pool; skips negatives marked -1."""
    positive_gain = _gain(1.0 + n_above * scale, rank_weight)
    before = 0
    for i in range(len(order)):
        k = order[i]
        if row[k] >= 0.0:
            rank = 1.0 + before * scale + (1.0 if positive_score > negative_score[k] else 0.0)
            row[k] *= np.float32(abs(positive_gain - _gain(rank, rank_weight)))
            before += 1


@kernel()
def _gain(rank, rank_weight):
    return 1.0 / np.log2(1.0 + rank) if rank_weight == NDCG else 1.0 / rank


@kernel()
def _harmonic(n):
    """sum_(j <= n) 1 / j; beyond 64 terms by its asymptotic expansion (error below 1e-10)."""
    if n > 64:
        return np.log(n) + 0.5772156649015329 + 0.5 / n - 1.0 / (12.0 * n * n)
    total = 0.0
    for j in range(1, n + 1):
        total += 1.0 / j
    return total


@kernel()
def ranking_measures(scores, offsets, documents, ranked, average_precision, rank_loss, tied=1.0):
    """Average precision and rank loss of each row of ``scores``.

    Rank loss is the share of (relevant, irrelevant) pairs in which the irrelevant document scores
    higher. An irrelevant document with the same score as a relevant one counts as ``tied`` of a
    document above it: 1 is the worst case, 0.5 the average over random orders. Measures are NaN
    for a query without relevant documents, and rank loss is NaN without irrelevant ones.

    Args:
        scores: float32 [m, n]. offsets, documents, ranked: see ``judged_lists``.
        average_precision, rank_loss: float64 [m], written.
    """
    for i in range(len(scores)):
        listed = documents[offsets[i] : offsets[i + 1]]
        of_list = ranked[offsets[i] : offsets[i + 1]]
        n_relevant, n_irrelevant = of_list.sum(), scores.shape[1] - len(listed)
        average_precision[i] = np.nan
        rank_loss[i] = np.nan
        if n_relevant == 0:
            continue
        values, left_out = scores[i][listed[of_list]], scores[i][listed]
        _insertion_sort(values)
        total, misplaced = 0.0, 0.0
        for r in range(n_relevant - 1, -1, -1):
            above, equal = _above(scores[i], values[r])
            not_counted = _above(left_out, values[r])
            before = above - not_counted[0] + tied * (equal - not_counted[1])
            misplaced += before
            rank = n_relevant - r
            total += rank / (rank + before)
        average_precision[i] = total / n_relevant
        if n_irrelevant > 0:
            rank_loss[i] = misplaced / (n_relevant * n_irrelevant)


def judged_lists(relevant, excluded):
    """The lists for ``ranking_measures``, from masks of the relevant and of the excluded documents,
    bool [m, n] each: (offsets int64 [m + 1], documents int64, ranked bool), where query i owns
    ``documents[offsets[i]:offsets[i + 1]]``. All other documents are irrelevant."""
    query, documents = np.nonzero(relevant | excluded)
    offsets = np.searchsorted(query, np.arange(len(relevant) + 1))
    return offsets, documents, ~excluded[query, documents]


@kernel()
def _above(scores, value):
    """How many scores are above a value, and how many are equal to it."""
    above, equal = 0, 0
    for d in range(len(scores)):
        above += scores[d] > value
        equal += scores[d] == value
    return above, equal


@kernel()
def _insertion_sort(values):
    """Sort a few values, ascending, in place; numba's own sort takes seconds to compile."""
    for i in range(1, len(values)):
        value, r = values[i], i
        while r > 0 and values[r - 1] > value:
            values[r] = values[r - 1]
            r -= 1
        values[r] = value
