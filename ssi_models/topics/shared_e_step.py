"""E-steps of shards of the pairs in other processes, which share a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
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
    Block,
    Blocks,
    EStep,
    Prior,
    Scratch,
    ShardExpectation,
    expect_shard,
)
from ssi_models.topics.state import Iteration, State

#: Number of iterations after which a process saves the theta of a shard.
_SAVED = 5


class SharedEStep(EStep):
    """E-steps in other processes, with the same results.

    The pairs of each shard and, after each iteration, phi and the sums of each shard are files. The
    theta of a shard stays in the process that works on it, and is saved every ``_SAVED``
    iterations: another process that takes over starts from that file and repeats the E-steps since
    then. So any process may work on any shard, and a run that was killed can resume.

    Args:
        executor: runs the E-steps. run: identifies the run by everything that it depends on.
        iterations: number of iterations in the run; theta is also saved after the last one.
    """

    def __init__(
        self,
        pairs: Blocks,
        state: State,
        prior: Prior,
        executor: Executor,
        run: str,
        iterations: int,
    ) -> None:
        self._state, self._executor = state, executor
        self._homes: dict[int, str] = {}
        self._old: list[Path] = []
        self._names = "qd"[: len(state.phis)]
        folder = executor.folder / f"em-{run[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        self._how = _How(str(folder), prior, iterations, bool(state.mapped))
        self._rows = slices(len(pairs.query), SHARD * BLOCK)
        for number, rows in enumerate(self._rows):
            path = self._how.file("pairs", 0, number)
            if not path.exists():
                _save_pairs(path, pairs, rows, shared=len(self._names) == 1)

    def resume(self) -> list[Iteration]:
        found = sorted(Path(self._how.folder).glob("phi-*.safetensors"))
        if not found:
            self.save([])
            return []
        header, phis = _phis(found[-1], self._state.phi_q.shape[0])
        for phi, (words, saved) in zip(self._state.phis, phis, strict=True):
            phi[words] = saved
        return [Iteration(**persistence.numbers(line)) for line in header["history"]]

    def shards(self, number: int) -> Iterator[ShardExpectation]:
        calls = ((self._how, number, i) for i in range(len(self._rows)))
        V, K = self._state.phi_q.shape
        expected = _by_word("sums", self._names)
        for path in self._executor.in_order(_expect, calls, self._homes):
            header, found = persistence.load_checked(path, expected, words=V, topics=K)
            while self._old:  # now, while other processes work on the next shards
                self._old.pop().unlink(missing_ok=True)
            sums = [(found[f"words_{side}"], found[f"sums_{side}"]) for side in self._names]
            yield ShardExpectation(header["objective"], header["evaluations"], sums)

    def save(self, history: list[Iteration]) -> None:
        number = len(history)
        header = {"history": [asdict(line) for line in history]}
        tensors: dict[str, NDArray[Any]] = {}
        for side, phi in zip(self._names, self._state.phis, strict=True):
            words = np.flatnonzero(phi[:, 0])  # the words that the side knows
            tensors |= {f"words_{side}": words, f"phi_{side}": phi[words]}
        persistence.save_tensors(self._how.file("phi", number + 1), header, tensors)
        done = [("sums", number)]
        if number and self._how.saves(number):  # older files are no longer needed
            before = max(i for i in range(number) if i == 0 or self._how.saves(i))
            done += [("theta", before), *(("phi", i) for i in range(before + 1, number + 1))]
        for kind, iteration in done:
            n_files = 1 if kind == "phi" else len(self._rows)
            self._old += [self._how.file(kind, iteration, i) for i in range(n_files)]

    def finish(self, history: list[Iteration]) -> None:
        if not history:
            return
        state = self._state
        for shard, rows in enumerate(self._rows):
            path = self._how.file("theta", len(history), shard)
            if not path.exists():  # the run that was killed had more iterations
                _Shard.after(self._how, shard, len(history)).save()
            _load_theta(path, state.theta[rows], state.multiplier[rows])
            state.release()


@dataclass(frozen=True)
class _How:
    """What the E-steps of all shards of a run have in common.

    Attributes:
        folder: of the run's files. iterations: number of iterations in the run.
        on_disk: whether theta is kept in temporary files.
    """

    folder: str
    prior: Prior
    iterations: int
    on_disk: bool

    def saves(self, iteration: int) -> bool:
        """Whether the theta of all shards is saved after an iteration."""
        return iteration % _SAVED == 0 or iteration == self.iterations

    def file(self, kind: str, iteration: int, shard: int = 0) -> Path:
        return Path(self.folder) / f"{kind}-{iteration:06}-{shard:06}.safetensors"


@dataclass(eq=False)
class _Shard:
    """A shard of the pairs, and its theta after an iteration.

    Attributes:
        how: see :class:`_How`. number: number of the shard.
        blocks: its pairs. words: int64, for each side or for both, the words that the rows of phi
            in the state stand for. n_words: number of words in all shards.
    """

    how: _How
    number: int
    blocks: Iterable[Block]
    words: list[NDArray[np.int64]]
    n_words: int
    state: State
    iteration: int

    @classmethod
    def after(cls, how: _How, number: int, iteration: int) -> _Shard:
        """Rebuild a shard from its last saved theta, repeating the E-steps since then."""
        saved = iteration
        while saved and not how.file("theta", saved, number).exists():
            saved -= 1
        pairs, words, n_words = _load_pairs(how.file("pairs", 0, number))
        _, every = _phis(how.file("phi", saved + 1), n_words)
        phis = [
            np.empty((len(known), phi.shape[1]), np.float32)
            for known, (_, phi) in zip(words, every, strict=True)
        ]
        n, regularised = len(pairs.query), how.prior.constraint is not None
        state = State.of_pairs(n, phis[0], phis[-1], regularised=regularised, on_disk=how.on_disk)
        if saved:
            _load_theta(how.file("theta", saved, number), state.theta, state.multiplier)
            state.release()
        blocks = pairs if how.on_disk else list(pairs)
        shard = cls(how, number, blocks, words, n_words, state, saved)
        while shard.iteration < iteration:
            shard.expect()
        return shard

    def expect(self) -> ShardExpectation:
        """The E-step of the next iteration."""
        self.iteration += 1
        _, phis = _phis(self.how.file("phi", self.iteration), self.n_words)
        for own, words, phi in zip(self.state.phis, self.words, phis, strict=True):
            _take_words(*phi, words, own)
        with Workers(1) as workers:
            given = self.how.prior, Scratch(self.state), workers
            return expect_shard(self.blocks, self.state, *given)

    def save(self) -> None:
        """Save theta."""
        theta = {"theta": self.state.theta, "multiplier": self.state.multiplier}
        persistence.save_tensors(self.how.file("theta", self.iteration, self.number), {}, theta)


#: The shards that this process holds, by folder and number, except the one being worked on; a
#: missing one is rebuilt from its files.
_held: dict[tuple[str, int], _Shard] = {}


def _expect(how: _How, iteration: int, number: int) -> str:
    """Run the E-step of a shard, unless the file of its sums exists; returns the file."""
    done = how.file("sums", iteration, number)
    if done.exists():
        return str(done)
    shard = _held.pop((how.folder, number), None)
    for other in [key for key in _held if key[0] != how.folder]:
        _held.pop(other, None)
    if shard is None or shard.iteration != iteration - 1:
        shard = _Shard.after(how, number, iteration - 1)
    found = shard.expect()
    if how.saves(iteration):
        shard.save()
    tensors: dict[str, NDArray[Any]] = {}
    for side, known, (_, sums) in zip("qd", shard.words, found.sums, strict=False):
        tensors |= {f"words_{side}": known, f"sums_{side}": sums}
    header = {"objective": found.objective, "evaluations": found.evaluations}
    persistence.save_tensors(done, header, tensors)
    if iteration < how.iterations:
        _held[how.folder, number] = shard
    return str(done)


@lru_cache(maxsize=1)
def _phis(
    path: Path, n_words: int
) -> tuple[dict[str, Any], list[tuple[NDArray[np.int64], NDArray[np.float32]]]]:
    """The header and, for phi^q and phi^d, or for the single phi that they share, the known words,
    ascending, and their rows."""
    with persistence.reading(path):
        header, tensors = persistence.load_tensors(path)
        sides = "qd" if "phi_d" in tensors else "q"
        check_tensors(tensors, _by_word("phi", sides), words=n_words)
    return header, [(tensors[f"words_{side}"], tensors[f"phi_{side}"]) for side in sides]


def _by_word(kind: str, sides: Iterable[str]) -> dict[str, Tensor]:
    """The expected arrays of each side: the known words, ascending, and a row for each."""
    expected = {}
    for side in sides:
        expected[f"words_{side}"] = Tensor((f"n_{side}",), "int64", below="words", ascending=True)
        expected[f"{kind}_{side}"] = Tensor((f"n_{side}", "topics"))
    return expected


def _take_words(
    known: NDArray[np.int64],
    phi: NDArray[np.float32],
    words: NDArray[np.int64],
    own: NDArray[np.float32],
) -> None:
    """Write to ``own`` the rows of some words in phi, which has a row for each known word."""
    at = np.minimum(np.searchsorted(known, words), len(known) - 1)
    if not np.array_equal(known[at], words):
        raise ValueError("phi and a shard's pairs belong to different fits: remove their folder")
    np.take(phi, at, axis=0, out=own, mode="clip")


def _load_theta(path: Path, theta: NDArray[np.float32], multiplier: NDArray[np.float32]) -> None:
    """Read theta and the multipliers of a shard."""
    expected = {"theta": Tensor(theta.shape), "multiplier": Tensor(multiplier.shape)}
    _, tensors = persistence.load_checked(path, expected)
    theta[:], multiplier[:] = tensors["theta"], tensors["multiplier"]


def _save_pairs(path: Path, pairs: Blocks, rows: slice, *, shared: bool) -> None:
    """Write the pairs of a shard, each with its own row on both sides, over the words that occur:
    those of each side, or of both if phi is shared."""
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
    """The pairs of a shard; the words of their columns, for each side or for both; and the total
    number of words."""
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
