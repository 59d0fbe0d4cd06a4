"""Training runs of S2Net: in mini-batches, and by L-BFGS over all training pairs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain, count
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.projections import tuple_losses
from ssi_models.matrices import check_csr, take_rows
from ssi_models.parallel import Workers
from ssi_models.projections.cosine import transposed, unit_projections
from ssi_models.s2net.lbfgs import LBFGS
from ssi_models.s2net.mini_batch import CosineScorer, Judgements
from ssi_models.training.batches import Batch, OwnNegatives
from ssi_models.training.embedding_table import embed
from ssi_models.training.preferences import Preferences
from ssi_models.training.run import TrainingRun

FEWEST_STEPS = 8  # of a pass: of little data, large batches would leave too few of them


class TupleObjective:
    """L(A_q, A_d) = sum over (q, d+, d-) of log(1 + exp(-gamma (cos(q, d+) - cos(q, d-)))), the
    cosines being those of A_q'q and A_d'd (Gao, Toutanova, Yih, SIGIR 2011, eq. 21).

    Each relevant pair gets ``n_negatives`` random documents of the candidates, once, or, with own
    negatives, of its query's list where a draw of probability ``list_share`` says so; documents
    judged for the query at least as high as the relevant one are left out. The losses of a pair are
    multiplied by its weight, float32 [n_pairs], if there are weights.

    Attributes:
        n_tuples: number of (q, d+, d-), each counted by the weight of its pair.
    """

    def __init__(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        preferences: Preferences,
        candidates: NDArray[np.int64],
        n_negatives: int,
        gamma: float,
        seed: int,
        workers: Workers,
        excluded: NDArray[np.int64] | None = None,
        own: OwnNegatives | None = None,
        list_share: float = 0.0,
        weight: NDArray[np.float32] | None = None,
    ) -> None:
        self.weight = np.ones(len(preferences), np.float32) if weight is None else weight
        self.gamma, self.workers = float(gamma), workers
        documents = draw_negatives(
            preferences, candidates, n_negatives, seed, excluded, own, list_share
        )
        asked, self.query = np.unique(preferences.query, return_inverse=True)
        shown, places = np.unique(documents, return_inverse=True)
        self.documents = places.reshape(documents.shape)
        if len(shown) and shown[0] < 0:
            shown, self.documents = shown[1:], self.documents - 1
        self.Q, self.D = take_rows(Q, asked), take_rows(D, shown)
        self.n_tuples = float(self.weight @ (self.documents[:, 1:] >= 0).sum(axis=1))

    def loss(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]) -> tuple[float, int]:
        """(summed loss, tuples ordered wrongly or tied)."""
        losses, wrong, _ = self._losses(*(self._unit(*side)[0] for side in self._sides(A_q, A_d)))
        return losses, wrong

    def gradient(
        self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]
    ) -> tuple[float, int, NDArray[np.float32], NDArray[np.float32]]:
        """(summed loss, wrong tuples, dL/dA_q, dL/dA_d); never a word-by-word product.

        With u = A_q'q, h = u / |u| and g the gradient by h, that by u is (g - (g . h) h) / |u|
        (appendix B of the paper), 0 where u is 0.
        """
        sides = self._sides(A_q, A_d)
        (Hq, inverse_q), (Hd, inverse_d) = (self._unit(*side) for side in sides)
        loss, wrong, by_cosine = self._losses(Hq, Hd)
        C, Ct = self._by_query(by_cosine)
        gradients = []
        for (X, _), H, inverse, M, other in (
            (sides[0], Hq, inverse_q, C, Hd),
            (sides[1], Hd, inverse_d, Ct, Hq),
        ):
            G = through_unit_rows(self._times(M, other), H, inverse)
            gradients.append(-self._times(transposed(X), G))
        return loss, wrong, gradients[0], gradients[1]

    def _sides(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]):  # type: ignore[no-untyped-def]
        return (self.Q, A_q), (self.D, A_d)

    def _times(self, X: sp.csr_matrix, M: NDArray[np.float32]) -> NDArray[np.float32]:
        return embed(X, np.arange(X.shape[0]), M, self.workers)

    def _unit(
        self, X: sp.csr_matrix, A: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return unit_projections(X, np.arange(X.shape[0]), A, self.workers)

    def _losses(
        self, Hq: NDArray[np.float32], Hd: NDArray[np.float32]
    ) -> tuple[float, int, NDArray[np.float32]]:
        n = len(self.query)
        gradients = np.empty(self.documents.shape, np.float32)
        losses, counts = np.empty(n), np.empty((n, 2), np.int64)
        self.workers.split(
            lambda a, b: tuple_losses(
                Hq, Hd, self.query, self.documents, self.gamma, gradients, losses, counts, a, b
            ),
            n,
        )
        gradients *= self.weight[:, None]
        return float(losses @ self.weight), int(counts[:, 0].sum()), gradients

    def _by_query(self, gradients: NDArray[np.float32]) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        """The gradients as a matrix of queries by documents, and its transpose."""
        used = self.documents >= 0
        query = np.broadcast_to(self.query[:, None], used.shape)[used]
        shape = self.Q.shape[0], self.D.shape[0]
        C = sp.coo_matrix((gradients[used], (query, self.documents[used])), shape=shape)
        return check_csr("gradients", C.tocsr()), check_csr("gradients", C.T.tocsr())


def through_unit_rows(
    G: NDArray[np.float32], H: NDArray[np.float32], inverse: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The gradient by rows u, from the gradient G by h = u / |u|, and 1 / |u|."""
    along = np.einsum("ij,ij->i", G, H)
    return (G - along[:, None] * H) * inverse[:, None]


def draw_negatives(
    preferences: Preferences,
    candidates: NDArray[np.int64],
    n_negatives: int,
    seed: int,
    excluded: NDArray[np.int64] | None,
    own: OwnNegatives | None = None,
    list_share: float = 0.0,
) -> NDArray[np.int64]:
    """int64 [n_pairs, 1 + n_negatives]: each pair's document and its random negatives; -1 where
    the one drawn is judged at least as high, or excluded."""
    rng = np.random.default_rng([seed, 8])
    n = len(preferences)
    documents = np.empty((n, 1 + n_negatives), np.int64)
    documents[:, 0] = preferences.document
    drawn = candidates[rng.integers(len(candidates), size=(n, n_negatives))]
    # Pairs are sorted by query and document, so that their keys step.
    width = preferences.n_documents
    keys = preferences.query * width + preferences.document
    wanted = preferences.query[:, None] * width + drawn
    at = np.minimum(np.searchsorted(keys, wanted), n - 1)
    barred = (keys[at] == wanted) & (preferences.grade[at] >= preferences.grade[:, None])
    if excluded is not None:
        barred |= drawn == excluded[preferences.query][:, None]
    documents[:, 1:] = np.where(barred, -1, drawn)
    if own is not None:
        listed = own.draw(preferences.query, preferences.grade, n_negatives, rng)
        chosen = (rng.random(listed.shape) < list_share) & (own.sizes(preferences.query) > 0)[
            :, None
        ]
        documents[:, 1:] = np.where(chosen, listed, documents[:, 1:])
    return documents


class ProjectionRun(TrainingRun):
    """A run in mini-batches that can also be validated by its loss."""

    scorer: CosineScorer  # type: ignore[assignment]  # learns from cosines, not from scores
    options: Any  # S2NetOptions
    losses: tuple[float, float]  # before and after training
    _parts: tuple[int, Iterator[Batch]] | None = None  # the next epoch, and batches from there on

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        n_pairs = len(self.stream.preferences)
        most = max(1, n_pairs // FEWEST_STEPS)
        self.stream = replace(self.stream, batch_size=min(self.stream.batch_size, most))
        self._pairs_per_epoch = min(n_pairs, self.options.pairs_per_epoch or n_pairs)
        self.slot = np.full(max(self.data.Q.shape[0], self.data.D.shape[0]), -1, np.int32)

    def batches(self, number: int) -> Iterator[Batch]:
        """The batches of an epoch: of a pass over the pairs, or of the next part of the passes."""
        self.scorer.begin_epoch()
        if self._pairs_per_epoch == len(self.stream.preferences):
            yield from super().batches(number)
            return
        if self._parts is None or self._parts[0] != number:
            passes: Iterator[Batch] = chain.from_iterable(self.stream.epoch(i) for i in count())
            self._parts = number, passes
            for _ in range(number):
                deque(self._part(passes), maxlen=0)
        following = self._parts[1]
        self._parts = number + 1, following
        yield from self._part(following)

    def _part(self, passes: Iterator[Batch]) -> Iterator[Batch]:
        n = 0
        while n < self._pairs_per_epoch:
            batch = next(passes)
            n += len(batch.query)
            yield batch

    @cached_property
    def training_tuples(self) -> TupleObjective:
        """The training pairs with random documents, and documents of their lists."""
        training = self.data.training
        return self._tuples(training, self.stream.own, self.loss.list_share, training.weight)

    @cached_property
    def validation_tuples(self) -> TupleObjective:
        """The held-out pairs with random documents."""
        return self._tuples(self.data.validating)

    def mean_loss(self, tuples: TupleObjective) -> float:
        """Loss per tuple at the present parameters."""
        loss, _ = tuples.loss(self.scorer.query.result, self.scorer.document.result)
        return loss / max(1, tuples.n_tuples)

    def step(self, batch: Batch) -> tuple[float, int, int]:
        return self.scorer.step(
            batch,
            Judgements(1 / self.options.margin, self.loss.list_share, self.judged, self.slot),
        )

    @property
    def n_held_out(self) -> int:
        by_loss = self.options.validation_measure == "loss"
        return min(1, super().n_held_out) if by_loss else super().n_held_out

    def held_out_values(self) -> NDArray[np.float64]:
        if self.options.validation_measure != "loss":
            return super().held_out_values()
        n = 0 if self.validation is None else 1
        # The loss is that of the cosines alone, whatever they are mixed with.
        loss = -self.mean_loss(self.validation_tuples) if n else 0.0
        return np.full((len(self.mixtures), n), loss)

    def _tuples(
        self,
        preferences: Preferences,
        own: OwnNegatives | None = None,
        share: float = 0.0,
        weight: NDArray[np.float32] | None = None,
    ) -> TupleObjective:
        return TupleObjective(
            self.data.Q,
            self.data.D,
            preferences,
            self.data.candidates,
            self.options.negatives_per_pair,
            1 / self.options.margin,
            self.seed,
            self.workers,
            self.data.excluded,
            own,
            share,
            weight,
        )


class FullBatchRun(ProjectionRun):
    """A run whose epochs are iterations of L-BFGS over the training pairs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        tables = self.scorer.tables.values()
        x = np.concatenate([table.values.ravel() for table in tables])
        start = 0
        for table in tables:
            size = table.values.size
            table.values = x[start : start + size].reshape(table.values.shape)
            start += size
        self._optimizer = LBFGS(x, self._mean_loss_and_gradient)

    def batches(self, number: int) -> Iterator[Batch]:
        """One batch that stands for all training pairs."""
        none = np.zeros(0, np.int64)
        yield Batch(none, none, np.zeros(0, np.float32), none)

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | self._optimizer.state

    def step(self, batch: Batch) -> tuple[float, int, int]:
        mean, tuples = self._optimizer.iterate(), self.training_tuples
        return mean * tuples.n_tuples, self._wrong, int(tuples.n_tuples)

    def _mean_loss_and_gradient(self, x: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        """Of all parameters in one vector."""
        A_q, A_d = self.scorer.query.values, self.scorer.document.values
        one = self.scorer.query is self.scorer.document
        at_q, at_d = x[: A_q.size].reshape(A_q.shape), x[x.size - A_d.size :].reshape(A_d.shape)
        tuples = self.training_tuples
        loss, self._wrong, g_q, g_d = tuples.gradient(at_q, at_d)
        gradient = (g_q + g_d).ravel() if one else np.concatenate([g_q.ravel(), g_d.ravel()])
        n = max(1, tuples.n_tuples)
        return loss / n, gradient / np.float32(n)
