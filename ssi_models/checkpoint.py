"""Checkpoints: files with the state of a fit, from which a killed run resumes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ssi_models.persistence import save_tensors

SMALL = 1_000_000  # bytes
PAUSE = 10.0  # seconds


class Checkpoint:
    """The file of a fit.

    A small state is written each time; a large one only when ten seconds, and twenty times as long
    as the last write took, have passed since that, or since the beginning. Fits whose parameters
    are chosen by short trainings would otherwise spend a quarter of their time on writing.

    Attributes:
        path: where it is; None to write nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._written, self._took = time.perf_counter(), 0.0

    def save(self, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
        """Write the state, unless it is too early, see
        :func:`~ssi_models.persistence.save_tensors`."""
        began = time.perf_counter()
        early = began - self._written < max(PAUSE, 20 * self._took)
        large = sum(array.nbytes for array in tensors.values()) > SMALL
        if self.path is None or (large and early):
            return
        save_tensors(self.path, header, tensors)
        self._written = time.perf_counter()
        self._took = self._written - began


def checkpoint_of(checkpoint: str | os.PathLike[str] | None, part: str) -> Path | None:
    """The path of a part's own checkpoint, next to that of the whole fit."""
    if checkpoint is None:
        return None
    return Path(checkpoint).with_name(f"{Path(checkpoint).name}.{part}")


def delete_checkpoint(checkpoint: str | os.PathLike[str] | None) -> None:
    """Remove the checkpoint of a fit that is complete, if there is one."""
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)
