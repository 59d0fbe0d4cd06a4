"""EM for topic models over pairs, block by block of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ssi_models.checkpoint import Checkpoint
from ssi_models.kernels.expectation import (
    Texts,
    add_rows,
    add_words,
    expect_pairs,
    expected_counts,
    normalise_words,
    project_pairs,
    sum_logs,
)
from ssi_models.kernels.sparse import Csr
from ssi_models.matrices import arrays, take_rows
from ssi_models.parallel import Workers
from ssi_models.topics.state import Iteration, State

BLOCK = 16_384  # pairs
#: Number of blocks in a shard, whose expected counts are added up before those of other shards are
#: added, so that sums do not depend on which process computes a shard.
SHARD = 8
_RUN = 256  # words whose counts are added up together


@dataclass(frozen=True, eq=False)
class Side:
    """The queries, or the titles, of a block of pairs, grouped by pair and by word."""

    rows: Csr
    words: NDArray[np.int32]
    starts: NDArray[np.int64]
    owner: NDArray[np.int32]
    position: NDArray[np.int32]

    @classmethod
    def of(cls, X: sp.csr_matrix, rows: NDArray[np.int64]) -> Side:
        taken = take_rows(X, rows)
        indptr, indices, _ = arrays(taken)
        entries = np.arange(len(indices), dtype=np.int32)
        by_word = sp.csr_matrix((entries, indices, indptr), shape=taken.shape).tocsc()
        words = np.flatnonzero(np.diff(by_word.indptr)).astype(np.int32)
        starts = np.append(by_word.indptr[words], len(indices)).astype(np.int64)
        owner = by_word.indices.astype(np.int32, copy=False)
        return cls(arrays(taken), words, starts, owner, by_word.data)

    def texts(self, phi: NDArray[np.float32], theta: NDArray[np.float32]) -> Texts:
        """The texts, grouped by pair, as the kernels expect them."""
        return Texts(*self.rows, phi, theta, np.empty(len(self.position), np.float32))

    def shares(self, n: int) -> NDArray[np.int64]:
        """int64 [n + 1]: bounds of n ranges of word slots with about equally many entries."""
        return np.searchsorted(self.starts, np.linspace(0, self.starts[-1], n + 1))


@dataclass(frozen=True, eq=False)
class Block:
    """The consecutive pairs ``start:stop``, and how often each of them counts, float32 [n], or None
    for once."""

    start: int
    stop: int
    queries: Side
    titles: Side
    weight: NDArray[np.float32] | None = None

    @property
    def size(self) -> float:
        """Number of pairs, each counted by its weight."""
        return self.stop - self.start if self.weight is None else float(self.weight.sum())

    def weighted(self, side: Side, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The values of a side's entries, float32 [nnz], times the weights of their pairs."""
        if self.weight is None:
            return values
        return values * np.repeat(self.weight, np.diff(side.rows[0]))


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of all pairs, built anew for each pass over them.

    Attributes:
        Q, D: counts, CSR. query, document: int64 [n_pairs], the rows of the pairs.
        weight: float32 [n_pairs], how often each pair counts, or None for once.
    """

    Q: sp.csr_matrix
    D: sp.csr_matrix
    query: NDArray[np.int64]
    document: NDArray[np.int64]
    weight: NDArray[np.float32] | None = None

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, len(self.query), BLOCK):
            stop = min(start + BLOCK, len(self.query))
            queries = Side.of(self.Q, self.query[start:stop])
            titles = Side.of(self.D, self.document[start:stop])
            weight = None if self.weight is None else self.weight[start:stop]
            yield Block(start, stop, queries, titles, weight)


@dataclass(frozen=True)
class PosteriorConstraint:
    """Posterior regularisation: query and title of a pair have equal topic fractions, up to a
    difference of ``tolerance``; at most ``limit`` evaluations of the gradient per pair."""

    tolerance: float = 1e-6
    limit: int = 200


@dataclass(frozen=True)
class Prior:
    """Dirichlet parameters of theta (alpha) and phi (beta), 1 = maximum likelihood; and the
    constraint on the posteriors, if any."""

    alpha: float
    beta: float
    constraint: PosteriorConstraint | None = None


class Scratch:
    """Work arrays of a pass, reused from pass to pass.

    Attributes:
        sums: one array per phi of the state, float64 with its shape: sum_i r_iw theta_i per word
            and topic. queries, titles: those of each side, the same array if phi is shared.
        q_theta, d_theta: float32 [BLOCK, K], the theta that each side's posteriors come from.
    """

    def __init__(self, state: State) -> None:
        self.sums = state.zeros()
        self.queries, self.titles = self.sums[0], self.sums[-1]
        self.q_theta, self.d_theta = np.empty((2, BLOCK, state.phi_q.shape[1]), np.float32)

    def clear(self) -> None:
        for total in self.sums:
            total.fill(0)


def shards(blocks: Iterable[Block]) -> Iterator[Iterable[Block]]:
    """The blocks, grouped into shards of ``SHARD`` blocks."""
    for _, shard in groupby(blocks, lambda block: block.start // (SHARD * BLOCK)):
        yield shard


def expect(
    block: Block,
    state: State,
    theta: NDArray[np.float32],
    multiplier: NDArray[np.float32],
    prior: Prior,
    scratch: Scratch,
    workers: Workers,
) -> tuple[float, int]:
    """E-step of a block: adds to the sums of words, and replaces ``theta`` [B, K] by the new one
    and ``multiplier`` by the solution.

    A pair with a weight counts that often in all sums, including the objective; its theta is that
    of a single occurrence.

    Returns:
        The block's part of the objective without the prior of phi; number of gradients computed.
    """
    n = len(theta)
    q, d = block.queries, block.titles
    value, evaluations = np.empty(n), np.zeros(n, np.int32)
    q_theta = d_theta = scratch.q_theta[:n]
    constraint = prior.constraint
    if constraint is not None:
        d_theta = scratch.d_theta[:n]
    queries, titles = q.texts(state.phi_q, q_theta), d.texts(state.phi_d, d_theta)
    given = queries, titles, theta, prior.alpha - 1
    if constraint is None:
        workers.split(lambda a, b: expect_pairs(*given, value, a, b), n)
    else:
        # The kernel sums in float32; half the tolerance leaves room for its rounding.
        how = multiplier, constraint.tolerance / 2, constraint.limit
        workers.split(lambda a, b: project_pairs(*given, *how, value, evaluations, a, b), n)
    if block.weight is not None:
        value *= block.weight
        queries.ratio[:] = block.weighted(q, queries.ratio)
        titles.ratio[:] = block.weighted(d, titles.ratio)
    # One side after the other: both may add to the same sums.
    _add_words(q, queries, scratch.queries, workers)
    _add_words(d, titles, scratch.titles, workers)
    return float(value.sum()), int(evaluations.sum())


def _add_words(side: Side, texts: Texts, sums: NDArray[np.float64], workers: Workers) -> None:
    """Add ratio times theta to the sums of a side's words."""
    cuts = side.shares(workers.n_shares)
    by_word = side.words, side.starts, side.owner, side.position
    given = *by_word, texts.ratio, texts.theta, sums
    workers.run(lambda share, _: add_words(*given, cuts[share], cuts[share + 1]))


class ShardExpectation(NamedTuple):
    """The result of a shard's E-step, apart from theta.

    Attributes:
        objective: the shard's part of the objective, without the prior of phi.
        evaluations: number of gradients computed.
        sums: for queries and titles, or for both together: (words, int64 [n], or None for all;
            sum_i r_iw theta_i of these words, float32 [n, K], 0 for all others). Added up in
            float64; as float32, like phi, they are transferred in half the time.
    """

    objective: float
    evaluations: int
    sums: Sequence[tuple[NDArray[np.int64] | None, NDArray[np.float32]]]


def expect_shard(
    blocks: Iterable[Block],
    state: State,
    prior: Prior,
    scratch: Scratch,
    workers: Workers,
) -> ShardExpectation:
    """E-step of the blocks of a shard; theta and multiplier of the state, whose rows the blocks
    refer to, are changed in place. The scratch is overwritten."""
    scratch.clear()
    objective, evaluations = 0.0, 0
    for block in blocks:
        rows = slice(block.start, block.stop)
        theta, multiplier = state.theta[rows], state.multiplier[rows]
        part, count = expect(block, state, theta, multiplier, prior, scratch, workers)
        objective += part
        evaluations += count
        state.release()
    sums = [(None, total.astype(np.float32)) for total in scratch.sums]
    return ShardExpectation(objective, evaluations, sums)


def iterate(
    shards: Iterable[ShardExpectation],
    state: State,
    prior: Prior,
    totals: Sequence[NDArray[np.float64]],
    workers: Workers,
    number: int,
) -> Iteration:
    """One iteration of EM over all pairs; phi is changed in place.

    Args:
        shards: the expectations of all shards, which are added up in the given order.
        totals: ``state.zeros()``; 0 again on return.
    """
    objective, evaluations = 0.0, 0
    for position, shard in enumerate(shards):
        if position == 0:  # now, while other processes work on the next shards
            objective = log_prior_of_words(state, prior, workers)
        objective += shard.objective
        evaluations += shard.evaluations
        for total, (words, sums) in zip(totals, shard.sums, strict=True):
            if words is None:
                total += sums
            else:
                workers.split(partial(add_rows, total, words, sums), len(words))
    for phi, total in zip(state.phis, totals, strict=True):
        maximise_words(total, phi, prior, workers)
    return Iteration(number, objective, evaluations / len(state.theta))


def maximise_words(
    sums: NDArray[np.float64], phi: NDArray[np.float32], prior: Prior, workers: Workers
) -> None:
    """M-step (Gao et al., eq. 7, 8): phi becomes the mode given the expected counts, and the sums
    become 0. Words whose phi is 0 are unknown to the side, and stay at 0."""
    n_runs = -(-len(phi) // _RUN)
    totals = np.empty((n_runs, phi.shape[1]))
    workers.split(lambda a, b: expected_counts(sums, phi, totals, _RUN, a, b), n_runs)
    set_mode(sums, totals.sum(axis=0), phi, prior, workers)


def set_mode(
    counts: NDArray[np.float64],
    totals: NDArray[np.float64],
    phi: NDArray[np.float32],
    prior: Prior,
    workers: Workers,
) -> None:
    """Set phi to the mode given expected counts, float64 [V, K], and their sums [K]; counts become
    0."""
    pseudo_count = prior.beta - 1
    factor = 1 / np.maximum(totals + pseudo_count * np.count_nonzero(phi[:, 0]), 1e-300)
    workers.split(lambda a, b: normalise_words(counts, factor, pseudo_count, phi, a, b), len(phi))


def log_prior_of_words(state: State, prior: Prior, workers: Workers) -> float:
    """log P(phi) without its constant."""
    total = 0.0
    if prior.beta > 1:
        for phi in state.phis:
            logs = np.empty(len(phi))
            workers.split(partial(sum_logs, phi, logs), len(phi))
            total += float(logs.sum())
    return (prior.beta - 1) * total


class EStep:
    """E-steps in this process.

    Args:
        pairs: all pairs. state: the parameters; theta and multipliers are changed in place.
        checkpoint: the file of the fit, from which a killed run resumes, and the run's fingerprint.
    """

    def __init__(
        self,
        pairs: Blocks,
        state: State,
        prior: Prior,
        workers: Workers,
        checkpoint: tuple[Checkpoint, str] | None = None,
    ) -> None:
        self._blocks = pairs if state.mapped else list(pairs)
        self._given = state, prior, Scratch(state), workers
        self._state, self._checkpoint = state, checkpoint

    def resume(self) -> list[Iteration]:
        """Restore the state that a killed run left; returns its history."""
        return self._state.resume(*self._checkpoint) if self._checkpoint else []

    def shards(self, number: int) -> Iterator[ShardExpectation]:
        """The expectations of all shards, in order, for an iteration (numbered from 1)."""
        for shard in shards(self._blocks):
            yield expect_shard(shard, *self._given)

    def save(self, history: list[Iteration]) -> None:
        """Save the state after an iteration."""
        if self._checkpoint:
            self._state.save(*self._checkpoint, history)

    def finish(self, history: list[Iteration]) -> None:
        """After the last iteration, make sure that the state has the final theta."""
