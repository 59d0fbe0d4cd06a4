"""Kernels for S2Net: unit projections, logistic losses of their cosines, and gradients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr_base.compiled import kernel
from ssi_models.kernels.pair_losses import Judged, drop_judged
from ssi_models.kernels.sparse import _sum_rows


class QueryPairs(NamedTuple):
    """The B pairs of a batch's u queries, K shared negatives and k of each pair's own.

    Attributes:
        order: int64 [B], the pairs by query and grade; query i owns
            ``order[starts[i]:starts[i + 1]]``.
        places: int64 [B, 1 + k], positions among the batch's documents, of which the first K are
            the shared negatives: of the pairs' documents and of their own negatives; -1 for none.
        query: int64 [u]. grade: float32 [B]. weight: float32 [B], factor of a pair's losses.
        slot: int32 [n_documents], k where the document is negative k, else -1.
        judged: of all queries.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    places: NDArray[np.int64]
    query: NDArray[np.int64]
    grade: NDArray[np.float32]
    weight: NDArray[np.float32]
    slot: NDArray[np.int32]
    judged: Judged


class CosineLoss(NamedTuple):
    """gamma, at most 40, so that exp(2 gamma) does not overflow; weight of own negatives."""

    gamma: float
    list_share: float


class PairGradients(NamedTuple):
    """What losses of pairs write.

    Attributes:
        pull: float32 [B, 1 + k], minus the derivatives, divided by gamma, by the cosines of the
            pairs and of their own negatives, of the mean loss over each kind of a pair's
            negatives, multiplied by the share of the kind.
        losses: float64 [u], sums over all tuples. counts: int64 [u, 2], tuples with a difference
            below 1 / gamma, and tuples.
    """

    pull: NDArray[np.float32]
    losses: NDArray[np.float64]
    counts: NDArray[np.int64]

    def sums(self) -> tuple[float, int, int]:
        """The summed losses, and the two sums of the counts."""
        return float(self.losses.sum()), int(self.counts[:, 0].sum()), int(self.counts[:, 1].sum())


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _dot(x, y):
    total = np.float32(0.0)
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@kernel()
def tuple_losses(Hq, Hd, query, documents, gamma, gradients, losses, counts, start, stop):
    """Losses of pairs start..stop, each with a query, a relevant document and its negatives.

    With x = h_q . h_d+ - h_q . h_d- the loss of a tuple is log(1 + exp(-gamma x)).

    Args:
        Hq: float32 [m, k], Hd: float32 [n, k]. query: int64 [n_pairs].
        documents: int64 [n_pairs, 1 + J], the relevant document first; -1 for no negative.
        gradients: float32 [n_pairs, 1 + J], written: minus the derivative of the summed loss by
            each inner product. losses: float64 [n_pairs], written: the summed loss. counts: int64
            [n_pairs, 2], written: tuples with x <= 0, and tuples.
    """
    for p in range(start, stop):
        h = Hq[query[p]]
        own = np.float64(_dot(h, Hd[documents[p, 0]]))
        total, pull = 0.0, 0.0
        n_wrong, n_tuples = 0, 0
        for j in range(1, documents.shape[1]):
            gradients[p, j] = 0.0
            if documents[p, j] < 0:
                continue
            x = own - np.float64(_dot(h, Hd[documents[p, j]]))
            n_wrong += x <= 0.0
            n_tuples += 1
            small = np.exp(-abs(gamma * x))
            total += max(0.0, -gamma * x) + np.log1p(small)
            weight = gamma * (small if x > 0.0 else 1.0) / (1.0 + small)
            gradients[p, j] = -weight
            pull += weight
        gradients[p, 0] = pull
        losses[p] = total
        counts[p, 0] = n_wrong
        counts[p, 1] = n_tuples


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _square(x):
    total = 0.0
    for k in range(len(x)):
        total += np.float64(x[k]) * np.float64(x[k])
    return total


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _scale(x, factor):
    for k in range(len(x)):
        x[k] *= factor


@kernel()
def unit_rows(X, rows, M, H, inverse, start, stop):
    """H[b] = u / |u| of u = sum_j x_j M[j] for row x = rows[b] of the CSR matrix X, b in
    start..stop.

    inverse[b] = 1 / |u|; both are 0 if u is 0, or so short that 1 / |u| overflows float32.
    """
    indptr, indices, data = X
    for b in range(start, stop):
        _sum_rows(data, indices, indptr[rows[b]], indptr[rows[b] + 1], M, H[b])
        square = _square(H[b])
        inverse[b] = np.float32(1.0 / np.sqrt(square)) if square > 1e-70 else np.float32(0.0)
        _scale(H[b], inverse[b])


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _row_gradients(larger, smaller, share, row):
    """row[k] -= share E / (1 + E) with E = larger[k] smaller; returns (sum of E / (1 + E), sum of
    log(1 + E), number of E > 1 / e)."""
    one, inside = np.float32(1.0), np.float32(np.exp(-1.0))
    pull, loss, n_inside = 0.0, 0.0, 0
    for k in range(len(larger)):
        E = larger[k] * smaller
        gradient = E / (one + E)
        row[k] -= share * gradient
        pull += gradient
        loss += np.log1p(E)
        n_inside += inside < E
    return pull, loss, n_inside


@kernel()
def _own_gradients(cosine, place, gamma, share, pull):
    """pull[j] = -(share / n) E / (1 + E) with E = exp(gamma (cosine[j] - cosine[0])) for the n own
    negatives j; their sum is subtracted from pull[0]. Returns (n, sum of log(1 + E), number of
    E > 1 / e)."""
    n, n_inside, loss = 0, 0, 0.0
    for j in range(1, len(place)):
        n += place[j] >= 0
    for j in range(1, len(place)):
        if place[j] >= 0:
            x = gamma * (np.float64(cosine[0]) - np.float64(cosine[j]))
            gradient = np.float32(share / n / (1.0 + np.exp(x)))
            pull[j] = -gradient
            pull[0] += gradient
            loss += max(0.0, -x) + np.log1p(np.exp(-abs(x)))
            n_inside += x < 1.0
    return n, loss, n_inside


@kernel()
def batch_gradients(paired, negative, pairs, loss, out, C, first, last):
    """Logistic losses of all pairs of queries first..last of a batch against K shared negatives and
    k of their own.

    The loss of (pair b of query i, negative k) is log(1 + E), where
    E = exp(gamma negative[i, k]) exp(-gamma positive[b]): one exponential per text, not per tuple.
    A negative counts unless it is judged for the query with a grade at least that of the pair. A
    pair's own negatives, if it has any, have the total weight ``list_share``, and the shared ones
    the rest.

    Args:
        paired: float32 [B, 1 + k], cosines of the pairs, and of their queries with their own
            negatives. negative: float32 [last - first, K], cosines of queries first..last with
            shared negatives.
        pairs: :class:`QueryPairs`. loss: :class:`CosineLoss`. out: :class:`PairGradients`, written.
        C: float32 [last - first, K], written: as ``out.pull``, by the shared negatives' cosines.
    """
    order, starts, places, weight = pairs.order, pairs.starts, pairs.places, pairs.weight
    gamma, list_share = loss
    pull, losses, counts = out
    K = negative.shape[1]
    exponential, larger = np.empty(K, np.float32), np.empty(K, np.float32)
    share = np.float32(1.0 / max(1, K))
    for i in range(first, last):
        row = C[i - first]
        row[:] = 0.0
        for k in range(K):
            exponential[k] = np.exp(gamma * negative[i - first, k])
        losses[i] = 0.0
        counts[i] = 0
        present, n_tuples = np.float32(-1.0), 0
        for b in order[starts[i] : starts[i + 1]]:
            if pairs.grade[b] != present:
                present = pairs.grade[b]
                larger[:] = exponential
                n_tuples = K - drop_judged(
                    larger, pairs.slot, pairs.judged, pairs.query[i], present
                )
            pull[b] = 0.0
            n_own, own_loss, own_inside = _own_gradients(
                paired[b], places[b], gamma, list_share * weight[b], pull[b]
            )
            others = np.float32((1.0 - list_share if n_own > 0 else 1.0) * weight[b])
            smaller = np.float32(np.exp(-gamma * paired[b, 0]))
            total, loss, n_inside = _row_gradients(larger, smaller, others, row)
            pull[b, 0] += np.float32(total) * others * share
            losses[i] += weight[b] * (loss + own_loss)
            counts[i, 0] += n_inside + own_inside
            counts[i, 1] += n_tuples + n_own
        row *= share


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _add(x, factor, out):
    for k in range(len(x)):
        out[k] += factor * x[k]


@kernel()
def _through_unit_row(g, h, inverse):
    """g = (g - (g . h) h) / |u|: from the gradient by h = u / |u| to the gradient by u."""
    _add(h, -_dot(g, h), g)
    _scale(g, inverse)


@kernel()
def query_gradients(Hq, inverse, Hd, pairs, loss, size, out, G, shares, first, last):
    """Gradients of the losses of blocks first..last of ``size`` queries each, also by u_q.

    Args, in addition to those of ``batch_gradients``:
        Hq: float32 [u, k], inverse: float32 [u], Hd: float32 [n, k], see ``unit_rows``.
        G: float32 [u, k], written: minus the derivatives of the losses, scaled as ``out.pull``, by
            the queries' u.
        shares: float32 [blocks, K, k], written: the same by the negatives' h, from each block.
    """
    order, starts, places = pairs.order, pairs.starts, pairs.places
    Hn = Hd[: shares.shape[1]]
    paired = np.zeros(places.shape, np.float32)
    for block in range(first, last):
        a, b = block * size, min((block + 1) * size, len(Hq))
        for i in range(a, b):
            for e in order[starts[i] : starts[i + 1]]:
                for j in range(places.shape[1]):
                    if places[e, j] >= 0:
                        paired[e, j] = _dot(Hq[i], Hd[places[e, j]])
        cosines = np.dot(Hq[a:b], Hn.T)
        C = np.empty_like(cosines)
        batch_gradients(paired, cosines, pairs, loss, out, C, a, b)
        np.dot(C.T, Hq[a:b], shares[block])
        np.dot(C, Hn, G[a:b])
        for i in range(a, b):
            for e in order[starts[i] : starts[i + 1]]:
                for j in range(places.shape[1]):
                    if places[e, j] >= 0:
                        _add(Hd[places[e, j]], out.pull[e, j], G[i])
            _through_unit_row(G[i], Hq[i], inverse[i])


@kernel()
def document_gradients(
    Hq, Hd, inverse, order, starts, query_of, pull, shares, G, first, last
):  # fmt: skip
    """G[j] = minus the derivative of the losses, scaled as ``pull``, by u of document j, j in
    first..last; ``order`` and ``starts`` group pulls by document, ``query_of``: their queries."""
    for j in range(first, last):
        G[j] = 0.0
        if j < shares.shape[1]:
            for block in range(len(shares)):
                _add(shares[block, j], np.float32(1.0), G[j])
        for e in order[starts[j] : starts[j + 1]]:
            _add(Hq[query_of[e]], pull[e], G[j])
        _through_unit_row(G[j], Hd[j], inverse[j])
