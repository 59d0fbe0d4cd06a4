"""EM for topic models over pairs, block by block of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.kernels.topics import add_words, expect_pairs, project_pairs
from ssi_models.matrices import Csr, arrays, take_rows
from ssi_models.parallel import Workers

BLOCK = 4096  # pairs


@dataclass(frozen=True, eq=False)
class Side:
    """The queries, or the titles, of a block of pairs, by pair and by word."""

    rows: Csr
    words: NDArray[np.int32]
    starts: NDArray[np.int64]
    owner: NDArray[np.int32]
    position: NDArray[np.int32]

    @classmethod
    def of(cls, X: sp.csr_matrix, rows: NDArray[np.int64]) -> Side:
        taken = take_rows(X, rows)
        indptr, indices, _ = arrays(taken)
        position = np.argsort(indices, kind="stable").astype(np.int32)
        words, first = np.unique(indices[position], return_index=True)
        owner = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(indptr))[position]
        starts = np.append(first, len(indices)).astype(np.int64)
        return cls(arrays(taken), words.astype(np.int32), starts, owner, position)

    def shares(self, n: int) -> NDArray[np.int64]:
        """int64 [n + 1]: slots of words, cut into n parts of about equally many entries."""
        return np.searchsorted(self.starts, np.linspace(0, self.starts[-1], n + 1))


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive pairs."""

    start: int
    stop: int
    queries: Side
    titles: Side


def blocks_of(
    Q: sp.csr_matrix, D: sp.csr_matrix, query: NDArray[np.int64], document: NDArray[np.int64]
) -> Iterator[Block]:
    for start in range(0, len(query), BLOCK):
        stop = min(start + BLOCK, len(query))
        yield Block(start, stop, Side.of(Q, query[start:stop]), Side.of(D, document[start:stop]))


@dataclass(eq=False)
class State:
    """The parameters.

    Attributes:
        theta: float32 [n_pairs, K], topics of each pair.
        phi_q, phi_d: float32 [V, K], P(w|z), word-major; one and the same array where the
            vocabulary is shared. Rows of words that the side does not have are 0.
        multiplier: float32 [n_pairs, K], the multipliers of posterior regularisation, which the
            next projection starts from; [n_pairs, 0] without.
    """

    theta: NDArray[np.float32]
    phi_q: NDArray[np.float32]
    phi_d: NDArray[np.float32]
    multiplier: NDArray[np.float32]


@dataclass(frozen=True)
class Projection:
    """How exactly posteriors are projected: the largest difference of topic fractions that is
    accepted, and the most evaluations of the gradient per pair."""

    tolerance: float = 1e-6
    limit: int = 200


@dataclass(frozen=True)
class Prior:
    """Dirichlet parameters of theta (alpha) and phi (beta); 1 = maximum likelihood."""

    alpha: float
    beta: float


@dataclass(frozen=True)
class Iteration:
    """One line of the training history.

    Attributes:
        number: from 1.
        objective: J (Gao et al., eq. 3, without its constant), or with posterior regularisation
            the bound F = E_Q[log p] + H(Q) + log prior, at the parameters that the iteration
            began with. EM never lets it fall.
        evaluations: mean number of gradients per pair in the projection; 0 without.
    """

    number: int
    objective: float
    evaluations: float


class Sums:
    """sum_i r_iw theta_i per word and topic, float64 [V, K], of both sides (or one for both)."""

    def __init__(self, state: State) -> None:
        shape = state.phi_q.shape
        self.queries = np.zeros(shape)
        self.titles = self.queries if state.phi_q is state.phi_d else np.zeros(shape)

    def sides(self) -> list[NDArray[np.float64]]:
        return [self.queries] if self.queries is self.titles else [self.queries, self.titles]


def expect(
    block: Block,
    state: State,
    theta: NDArray[np.float32],
    multiplier: NDArray[np.float32],
    prior: Prior,
    projection: Projection | None,
    sums: Sums | None,
    workers: Workers,
) -> tuple[float, int]:
    """E-step of a block; ``theta`` [B, K] becomes the new one, and ``multiplier`` the solution.

    Returns:
        The block's part of the objective without the prior of phi; gradients computed.
    """
    n = block.stop - block.start
    q, d = block.queries, block.titles
    new_theta, value = np.empty_like(theta), np.empty(n)
    q_ratio, d_ratio = np.empty(len(q.position), np.float32), np.empty(len(d.position), np.float32)
    evaluations = np.zeros(n, np.int32)
    given = (*q.rows, *d.rows, state.phi_q, state.phi_d, theta, prior.alpha - 1)
    q_theta = d_theta = theta
    if projection is None:
        workers.split(
            lambda a, b: expect_pairs(*given, new_theta, q_ratio, d_ratio, value, a, b), n
        )
    else:
        q_theta, d_theta = np.empty_like(theta), np.empty_like(theta)
        # The kernel sums in float32; half the tolerance leaves room for its rounding.
        limits = np.float32(projection.tolerance / 2), projection.limit
        results = q_theta, d_theta, new_theta, q_ratio, d_ratio, value, evaluations
        workers.split(lambda a, b: project_pairs(*given, multiplier, *limits, *results, a, b), n)
    if sums is not None:
        sides = ((q, q_ratio, q_theta, sums.queries), (d, d_ratio, d_theta, sums.titles))
        for side, ratio, topics, total in sides:
            cuts = side.shares(workers.n_shares)

            def add(share, _n, s=side, r=ratio, t=topics, out=total, cut=cuts):  # type: ignore[no-untyped-def]
                add_words(
                    s.words, s.starts, s.owner, s.position, r, t, out, cut[share], cut[share + 1]
                )

            workers.run(add)
    objective = float(value.sum()) + (prior.alpha - 1) * _sum_of_logs(theta)
    theta[...] = new_theta
    return objective, int(evaluations.sum())


def iterate(
    blocks: list[Block],
    state: State,
    prior: Prior,
    projection: Projection | None,
    workers: Workers,
    number: int,
) -> Iteration:
    """One iteration of EM over all pairs; the state is changed in place."""
    sums = Sums(state)
    objective, evaluations = log_prior_of_words(state, prior), 0
    for block in blocks:
        rows = slice(block.start, block.stop)
        part, count = expect(
            block,
            state,
            state.theta[rows],
            state.multiplier[rows],
            prior,
            projection,
            sums,
            workers,
        )
        objective += part
        evaluations += count
    maximise_words(state, sums, prior)
    return Iteration(number, objective, evaluations / len(state.theta))


def maximise_words(state: State, sums: Sums, prior: Prior) -> None:
    """M-step of phi (Gao et al., eq. 7, 8). A word that a side does not have stays at 0."""
    phis = [state.phi_q] if state.phi_q is state.phi_d else [state.phi_q, state.phi_d]
    for phi, total in zip(phis, sums.sides(), strict=True):
        total *= phi
        normalise_words(total, phi, prior)


def normalise_words(counts: NDArray[np.float64], phi: NDArray[np.float32], prior: Prior) -> None:
    """phi = the mode given expected counts float64 [V, K], for words whose phi is not 0."""
    known = phi[:, 0] > 0
    norm = counts.sum(axis=0) + (prior.beta - 1) * np.count_nonzero(known)
    np.divide(counts + (prior.beta - 1), norm, out=phi, where=known[:, None], casting="same_kind")
    # With beta = 1 a probability may reach 0, and its word would count as unknown.
    np.maximum(phi, np.float32(1e-30), out=phi, where=known[:, None])


def log_prior_of_words(state: State, prior: Prior) -> float:
    if prior.beta == 1:
        return 0.0
    phis = [state.phi_q] if state.phi_q is state.phi_d else [state.phi_q, state.phi_d]
    return (prior.beta - 1) * sum(_sum_of_logs(phi[phi[:, 0] > 0]) for phi in phis)


def _sum_of_logs(array: NDArray[np.float32]) -> float:
    return float(np.log(np.maximum(array, np.float32(1e-37))).sum(dtype=np.float64))
