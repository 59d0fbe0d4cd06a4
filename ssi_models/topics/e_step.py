"""E-steps of all shards of the pairs: in this process, or in others that see the same folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr_base.slices import slices
from ssi_models import persistence
from ssi_models.matrices import as_tensors, of_tensors, take_columns, take_rows
from ssi_models.parallel import Executor, Workers
from ssi_models.stored_tensors import Tensor, check_tensors, matrix
from ssi_models.topics.em import (
    BLOCK,
    SHARD,
    Blocks,
    PosteriorConstraint,
    Prior,
    Scratch,
    ShardExpectation,
    expect_shard,
    phis_of,
    shards,
)
from ssi_models.topics.state import Iteration, State


class EStep:
    """E-steps in this process.

    Args:
        pairs: all of them. state: the parameters; theta and multipliers are changed in place.
        checkpoint: file that keeps the state of a run that is killed, and what run it is.
    """

    def __init__(
        self,
        pairs: Blocks,
        state: State,
        prior: Prior,
        constraint: PosteriorConstraint | None,
        workers: Workers,
        checkpoint: tuple[Path, str] | None = None,
    ) -> None:
        self._blocks = pairs if state.mapped else list(pairs)
        self._given = state, prior, constraint, Scratch(state), workers
        self._state, self._checkpoint = state, checkpoint

    def resume(self) -> list[Iteration]:
        """Go on with what a run that was killed has left: its history."""
        return self._state.resume(*self._checkpoint) if self._checkpoint else []

    def shards(self, number: int) -> Iterator[ShardExpectation]:
        """Of an iteration, from 1 on; in their order."""
        for shard in shards(self._blocks):
            yield expect_shard(shard, *self._given)

    def save(self, history: list[Iteration]) -> None:
        """Keep the state after an iteration."""
        if self._checkpoint:
            self._state.save(*self._checkpoint, history)

    def finish(self, history: list[Iteration]) -> None:
        """Have theta in the state, after the last iteration."""


class SharedEStep(EStep):
    """E-steps in other processes, with the same numbers.

    The pairs of a shard, phi, and a shard's theta and sums after each iteration are files, so that
    any process may do any shard, and a run that was killed goes on.

    Args:
        executor: where. run: names the run by all that it depends on.
    """

    def __init__(
        self,
        pairs: Blocks,
        state: State,
        prior: Prior,
        constraint: PosteriorConstraint | None,
        executor: Executor,
        run: str,
    ) -> None:
        self._state, self._how, self._executor = state, (prior, constraint), executor
        self._names = ["q"] if state.phi_q is state.phi_d else ["q", "d"]
        self._folder = executor.folder / f"em-{run[:16]}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._rows = slices(len(pairs.query), SHARD * BLOCK)
        for number, rows in enumerate(self._rows):
            path = _file(self._folder, "pairs", 0, number)
            if not path.exists():
                _save_pairs(path, pairs, rows, shared=len(self._names) == 1)

    def resume(self) -> list[Iteration]:
        found = sorted(self._folder.glob("phi-*.safetensors"))
        if not found:
            self.save([])
            return []
        header, phis = _phis(found[-1], self._state.phi_q.shape[0])
        for phi, (words, saved) in zip(phis_of(self._state), phis, strict=True):
            phi[words] = saved
        return [Iteration(**persistence.numbers(line)) for line in header["history"]]

    def shards(self, number: int) -> Iterator[ShardExpectation]:
        calls = ((str(self._folder), number, i, *self._how) for i in range(len(self._rows)))
        V, K = self._state.phi_q.shape
        expected = {}
        for side in self._names:
            expected[f"words_{side}"] = Tensor(
                (f"n_{side}",), "int64", below="words", ascending=True
            )
            expected[f"sums_{side}"] = Tensor((f"n_{side}", "topics"), "float64")
        for path in self._executor.in_order(_expect, calls):
            header, found = persistence.load_checked(path, expected, words=V, topics=K)
            sums = [(found[f"words_{side}"], found[f"sums_{side}"]) for side in self._names]
            yield ShardExpectation(header["objective"], header["evaluations"], sums)

    def save(self, history: list[Iteration]) -> None:
        number = len(history)
        header = {"history": [asdict(line) for line in history]}
        tensors: dict[str, NDArray[Any]] = {}
        for side, phi in zip(self._names, phis_of(self._state), strict=True):
            words = np.flatnonzero(phi[:, 0])  # that the side knows
            tensors |= {f"words_{side}": words, f"phi_{side}": phi[words]}
        persistence.save_tensors(_file(self._folder, "phi", number + 1), header, tensors)
        _file(self._folder, "phi", number).unlink(missing_ok=True)
        for shard in range(len(self._rows)):
            _file(self._folder, "theta", number - 1, shard).unlink(missing_ok=True)
            _file(self._folder, "sums", number, shard).unlink(missing_ok=True)

    def finish(self, history: list[Iteration]) -> None:
        if not history:
            return
        state = self._state
        for number, rows in enumerate(self._rows):
            shapes = state.theta[rows].shape, state.multiplier[rows].shape
            theta = _theta(_file(self._folder, "theta", len(history), number), *shapes)
            state.theta[rows], state.multiplier[rows] = theta
            state.release()


def _file(folder: Path, kind: str, iteration: int, shard: int = 0) -> Path:
    return folder / f"{kind}-{iteration:06}-{shard:06}.safetensors"


def _expect(
    folder: str, iteration: int, shard: int, prior: Prior, constraint: PosteriorConstraint | None
) -> str:
    """The E-step of a shard, unless it is there: the file of its sums."""
    place = Path(folder)
    done = _file(place, "sums", iteration, shard)
    if done.exists():
        return str(done)
    pairs, words, n_words = _load_pairs(_file(place, "pairs", 0, shard))
    _, phis = _phis(_file(place, "phi", iteration), n_words)
    own = [_rows_of(*phi, known) for phi, known in zip(phis, words, strict=True)]
    n, regularised = len(pairs.query), constraint is not None
    state = State.of_pairs(n, own[0], own[-1], regularised=regularised)
    if iteration > 1:
        shapes = state.theta.shape, state.multiplier.shape
        before = _file(place, "theta", iteration - 1, shard)
        state.theta, state.multiplier = _theta(before, *shapes)
    with Workers(1) as workers:
        found = expect_shard(pairs, state, prior, constraint, Scratch(state), workers)
    theta = {"theta": state.theta, "multiplier": state.multiplier}
    persistence.save_tensors(_file(place, "theta", iteration, shard), {}, theta)
    tensors: dict[str, NDArray[Any]] = {}
    for side, known, (_, sums) in zip("qd", words, found.sums, strict=False):
        tensors |= {f"words_{side}": known, f"sums_{side}": sums}
    header = {"objective": found.objective, "evaluations": found.evaluations}
    persistence.save_tensors(done, header, tensors)
    return str(done)


@lru_cache(maxsize=1)
def _phis(
    path: Path, n_words: int
) -> tuple[dict[str, Any], list[tuple[NDArray[np.int64], NDArray[np.float32]]]]:
    """The header, and of phi^q and phi^d, or of the one that they share, the words that are known,
    ascending, and their rows."""
    with persistence.reading(path):
        header, tensors = persistence.load_tensors(path)
        sides = "qd" if "phi_d" in tensors else "q"
        expected = {}
        for side in sides:
            expected[f"words_{side}"] = Tensor(
                (f"n_{side}",), "int64", below="words", ascending=True
            )
            expected[f"phi_{side}"] = Tensor((f"n_{side}", "topics"))
        check_tensors(tensors, expected, words=n_words)
    return header, [(tensors[f"words_{side}"], tensors[f"phi_{side}"]) for side in sides]


def _rows_of(
    known: NDArray[np.int64], phi: NDArray[np.float32], words: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The rows of phi, which stand for the known words, of some words.

    Raises:
        ValueError: one of them is not known.
    """
    at = np.minimum(np.searchsorted(known, words), len(known) - 1)
    if not np.array_equal(known[at], words):
        raise ValueError("phi and the pairs of a shard are of different fits: remove their folder")
    return phi[at]


def _theta(
    path: Path, shape: tuple[int, ...], of_multiplier: tuple[int, ...]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Theta and multipliers of a shard."""
    expected = {"theta": Tensor(shape), "multiplier": Tensor(of_multiplier)}
    _, tensors = persistence.load_checked(path, expected)
    return tensors["theta"], tensors["multiplier"]


def _save_pairs(path: Path, pairs: Blocks, rows: slice, *, shared: bool) -> None:
    """The pairs of a shard, each with a row of its own on both sides, over the words that they
    have: those of each side, or of both where phi is shared."""
    sides = {
        "q": take_rows(pairs.Q, pairs.query[rows]),
        "d": take_rows(pairs.D, pairs.document[rows]),
    }
    words = {side: np.unique(X.indices).astype(np.int64) for side, X in sides.items()}
    if shared:
        words = dict.fromkeys(words, np.union1d(words["q"], words["d"]))
    n = sides["q"].shape[0]
    weight = np.ones(n, np.float32) if pairs.weight is None else pairs.weight[rows]
    tensors: dict[str, NDArray[Any]] = {"weight": weight}
    for side, X in sides.items():
        tensors |= as_tensors(side, take_columns(X, words[side]))
        tensors[f"words_{side}"] = words[side]
    header = {"n_words": pairs.D.shape[1], "weighted": pairs.weight is not None, "shared": shared}
    persistence.save_tensors(path, header, tensors)


def _load_pairs(path: Path) -> tuple[Blocks, list[NDArray[np.int64]], int]:
    """The pairs of a shard; the words that they are over, of each side or of both; and the number
    of all words."""
    n_words = persistence.count(persistence.load_header(path), "n_words")
    expected = {"weight": Tensor(("pairs",))}
    for side in "qd":
        expected |= matrix(side, "pairs", f"own_{side}")
        expected[f"words_{side}"] = Tensor((f"own_{side}",), "int64", below="words", ascending=True)
    header, tensors = persistence.load_checked(path, expected, words=n_words)
    words = [tensors[f"words_{side}"] for side in ("q" if header["shared"] else "qd")]
    every = np.arange(len(tensors["weight"]))
    Q, D = (of_tensors(side, tensors, len(tensors[f"words_{side}"])) for side in "qd")
    weight = tensors["weight"] if header["weighted"] else None
    return Blocks(Q, D, every, every, weight), words, n_words
