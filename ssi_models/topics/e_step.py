"""E-steps of all shards of the pairs, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ssi_models.parallel import Workers
from ssi_models.topics.em import (
    Blocks,
    Prior,
    Scratch,
    ShardExpectation,
    expect_shard,
    shards,
)
from ssi_models.topics.state import Iteration, State


class EStep:
    """E-steps in this process.

    Args:
        pairs: all pairs. state: the parameters; theta and multipliers are changed in place.
        checkpoint: file for the state, from which a killed run resumes, and the run's fingerprint.
    """

    def __init__(
        self,
        pairs: Blocks,
        state: State,
        prior: Prior,
        workers: Workers,
        checkpoint: tuple[Path, str] | None = None,
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
