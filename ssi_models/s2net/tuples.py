"""The loss of S2Net over tuples of a query and documents, and its gradient."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ltr_base.slices import slices
from ssi_models import persistence
from ssi_models.kernels.projections import tuple_losses
from ssi_models.matrices import as_tensors, check_csr, of_tensors, take_rows
from ssi_models.parallel import Executor, Workers
from ssi_models.parameters import digest_of
from ssi_models.projections.cosine import through_unit_rows, transposed, unit_projections
from ssi_models.stored_tensors import Tensor, matrix
from ssi_models.training.batches import OwnNegatives
from ssi_models.training.embedding_table import embed
from ssi_models.training.preferences import Preferences

#: Number of pairs in a shard, whose losses and gradients are added up before those of other shards
#: are added, so that sums do not depend on which process computes a shard.
SHARD = 65_536


class Gradient(NamedTuple):
    """The loss of tuples and its gradient.

    Attributes:
        loss: sum over tuples. wrong: number of tuples ordered wrongly or tied.
        by_q, by_d: float32 [V, k], dL/dA_q and dL/dA_d.
    """

    loss: float
    wrong: int
    by_q: NDArray[np.float32]
    by_d: NDArray[np.float32]


class TupleObjective:
    """L(A_q, A_d) = sum over (q, d+, d-) of log(1 + exp(-gamma (cos(q, d+) - cos(q, d-)))), the
    cosines being those of A_q'q and A_d'd (Gao, Toutanova, Yih, SIGIR 2011, eq. 21).

    Args:
        query: int64 [n_pairs], a row of Q for each pair. documents: int64 [n_pairs, 1 + negatives],
            rows of D, see :func:`draw_negatives`.
        weight: float32 [n_pairs], factors of the pairs' losses, or None for 1.

    Attributes:
        n_tuples: number of (q, d+, d-), each counted by the weight of its pair.
        executor: computes gradients in other processes, with the same results; None = this one.
    """

    def __init__(
        self,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: NDArray[np.int64],
        documents: NDArray[np.int64],
        weight: NDArray[np.float32] | None,
        gamma: float,
        workers: Workers,
    ) -> None:
        weight = np.ones(len(query), np.float32) if weight is None else weight
        self.gamma, self.workers = float(gamma), workers
        self.executor: Executor | None = None
        self.shards = [
            Tuples.of(Q, D, query[rows], documents[rows], weight[rows])
            for rows in slices(len(documents), SHARD)
        ]
        self.n_tuples = float(weight @ (documents[:, 1:] >= 0).sum(axis=1))

    def loss(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]) -> tuple[float, int]:
        """(summed loss, tuples ordered wrongly or tied)."""
        found = [shard.loss(A_q, A_d, self.gamma, self.workers) for shard in self.shards]
        return sum(loss for loss, _ in found), sum(wrong for _, wrong in found)

    def gradient(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]) -> Gradient:
        """Loss and gradient, without a matrix of words by words."""
        total = Gradient(0.0, 0, np.zeros_like(A_q), np.zeros_like(A_d))
        for found in self._gradients(A_q, A_d):
            total.by_q[...] += found.by_q
            total.by_d[...] += found.by_d
            total = total._replace(loss=total.loss + found.loss, wrong=total.wrong + found.wrong)
        return total

    def _gradients(self, A_q: NDArray[np.float32], A_d: NDArray[np.float32]) -> Iterator[Gradient]:
        """The gradient of each shard, in order."""
        if self.executor is None:
            for shard in self.shards:
                yield shard.gradient(A_q, A_d, self.gamma, self.workers)
            return
        folder = self.executor.folder / f"s2net-{self._digest}"
        at = folder / digest_of([], [A_q, A_d])[:16]
        at.mkdir(parents=True, exist_ok=True)
        for number, shard in enumerate(self.shards):
            if not _shard_file(folder, number).exists():
                shard.save(_shard_file(folder, number))
        # A matrix that serves both sides is written twice.
        persistence.save_tensors(at / _SIDES, {"gamma": self.gamma}, {"A_q": A_q, "A_d": A_d})
        calls = ((str(folder), at.name, number) for number in range(len(self.shards)))
        expected = {"by_q": Tensor(A_q.shape), "by_d": Tensor(A_d.shape)}
        for path in self.executor.in_order(_gradient, calls):
            header, found = persistence.load_checked(path, expected)
            yield Gradient(header["loss"], header["wrong"], found["by_q"], found["by_d"])
        shutil.rmtree(at)

    @cached_property
    def _digest(self) -> str:
        """Digest of the tuples."""
        arrays = [array for shard in self.shards for array in shard.tensors.values()]
        return digest_of([self.gamma], arrays)[:16]


@dataclass(frozen=True, eq=False)
class Tuples:
    """The tuples of some pairs.

    Attributes:
        Q, D: rows of the queries and of the documents.
        query: int64 [n], a row of Q for each pair.
        documents: int64 [n, 1 + negatives], rows of D: the relevant one, and the others or -1.
        weight: float32 [n].
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    query: NDArray[np.int64]
    documents: NDArray[np.int64]
    weight: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        Q: sp.csr_matrix,
        D: sp.csr_matrix,
        query: NDArray[np.int64],
        documents: NDArray[np.int64],
        weight: NDArray[np.float32],
    ) -> Tuples:
        """The tuples of some pairs, with only those rows of Q and D that occur in them."""
        asked, own_query = np.unique(query, return_inverse=True)
        shown, places = np.unique(documents, return_inverse=True)
        places = places.reshape(documents.shape)
        if len(shown) and shown[0] < 0:
            shown, places = shown[1:], places - 1
        return cls(take_rows(Q, asked), take_rows(D, shown), own_query, places, weight)

    def loss(
        self, A_q: NDArray[np.float32], A_d: NDArray[np.float32], gamma: float, workers: Workers
    ) -> tuple[float, int]:
        """(summed loss, tuples ordered wrongly or tied)."""
        Hq, Hd = (unit_projections(X, A, workers)[0] for X, A in ((self.Q, A_q), (self.D, A_d)))
        losses, wrong, _ = self._losses(Hq, Hd, gamma, workers)
        return losses, wrong

    def gradient(
        self, A_q: NDArray[np.float32], A_d: NDArray[np.float32], gamma: float, workers: Workers
    ) -> Gradient:
        """With u = A_q'q, h = u / |u| and g the gradient by h, the gradient by u is
        (g - (g . h) h) / |u| (appendix B of the paper), 0 where u is 0."""
        (Hq, inverse_q), (Hd, inverse_d) = (
            unit_projections(X, A, workers) for X, A in ((self.Q, A_q), (self.D, A_d))
        )
        loss, wrong, by_cosine = self._losses(Hq, Hd, gamma, workers)
        C, Ct = self._by_query(by_cosine)
        gradients = []
        for X, H, inverse, M, other in (
            (self.Q, Hq, inverse_q, C, Hd),
            (self.D, Hd, inverse_d, Ct, Hq),
        ):
            G = through_unit_rows(embed(M, other, workers), H, inverse)
            gradients.append(-embed(transposed(X), G, workers))
        return Gradient(loss, wrong, *gradients)

    @property
    def tensors(self) -> dict[str, NDArray[Any]]:
        """All data of the tuples, as arrays of a file."""
        return {
            **as_tensors("Q", self.Q),
            **as_tensors("D", self.D),
            "query": self.query,
            "documents": self.documents,
            "weight": self.weight,
        }

    def save(self, path: Path) -> None:
        """Write the tuples to a file, which appears only when it is complete."""
        widths = {"query_words": self.Q.shape[1], "words": self.D.shape[1]}
        persistence.save_tensors(path, widths, self.tensors)

    @classmethod
    def load(cls, path: Path) -> Tuples:
        """Read what :meth:`save` wrote."""
        header = persistence.load_header(path)
        widths = {name: persistence.count(header, name) for name in ("query_words", "words")}
        expected = {
            **matrix("Q", "queries", "query_words"),
            **matrix("D", "documents", "words"),
            "query": Tensor(("pairs",), "int64", below="queries"),
            "documents": Tensor(("pairs", "shown"), "int64", below="documents", least=-1),
            "weight": Tensor(("pairs",)),
        }
        _, found = persistence.load_checked(path, expected, **widths)
        Q = of_tensors("Q", found, widths["query_words"])
        D = of_tensors("D", found, widths["words"])
        return cls(Q, D, found["query"], found["documents"], found["weight"])

    def _losses(
        self, Hq: NDArray[np.float32], Hd: NDArray[np.float32], gamma: float, workers: Workers
    ) -> tuple[float, int, NDArray[np.float32]]:
        n = len(self.query)
        gradients = np.empty(self.documents.shape, np.float32)
        losses, counts = np.empty(n), np.empty((n, 2), np.int64)
        workers.split(
            lambda a, b: tuple_losses(
                Hq, Hd, self.query, self.documents, gamma, gradients, losses, counts, a, b
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


_SIDES = "sides.safetensors"


def _shard_file(folder: Path, number: int) -> Path:
    return folder / f"tuples-{number:06}.safetensors"


def _gradient(folder: str, at: str, number: int) -> str:
    """Write the gradient of a shard's tuples, unless its file exists; returns the file."""
    path = Path(folder) / at / f"gradient-{number:06}.safetensors"
    if not path.exists():
        expected = {"A_q": Tensor(("query_words", "rank")), "A_d": Tensor(("words", "rank"))}
        tuples = Tuples.load(_shard_file(Path(folder), number))
        widths = {"query_words": tuples.Q.shape[1], "words": tuples.D.shape[1]}
        header, sides = persistence.load_checked(path.with_name(_SIDES), expected, **widths)
        with Workers(1) as workers:
            found = tuples.gradient(sides["A_q"], sides["A_d"], header["gamma"], workers)
        persistence.save_tensors(
            path,
            {"loss": found.loss, "wrong": found.wrong},
            {"by_q": found.by_q, "by_d": found.by_d},
        )
    return str(path)


def draw_negatives(
    preferences: Preferences,
    candidates: NDArray[np.int64],
    n_negatives: int,
    seed: int,
    excluded: NDArray[np.int64] | None,
    own: OwnNegatives | None = None,
    list_share: float = 0.0,
) -> NDArray[np.int64]:
    """int64 [n_pairs, 1 + n_negatives]: each pair's document and its random negatives, drawn from
    the candidates or, with own negatives, each with probability ``list_share`` from its query's
    list; -1 where the one drawn is judged at least as high, or excluded."""
    rng = np.random.default_rng([seed, 8])
    query, grade = preferences.query, preferences.grade
    drawn = candidates[rng.integers(len(candidates), size=(len(query), n_negatives))]
    barred = preferences.as_high(query[:, None], drawn, grade[:, None])
    if excluded is not None:
        barred |= drawn == excluded[query][:, None]
    negatives = np.where(barred, -1, drawn)
    if own is not None:
        listed = own.draw(query, grade, n_negatives, rng)
        chosen = (rng.random(listed.shape) < list_share) & (own.sizes(query) > 0)[:, None]
        negatives = np.where(chosen, listed, negatives)
    return np.column_stack([preferences.document, negatives])
