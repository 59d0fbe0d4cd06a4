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
        pairs: all of them. state: the parameters; theta and multipliers are changed in place.
        checkpoint: file that keeps the state of a run that is killed, and what run it is.
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
