"""Parameters of topic models: in memory, in a temporary file, and in checkpoints."""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssi_models import persistence
from ssi_models.checkpoint import Checkpoint

_TENSORS = ("theta", "phi_q", "phi_d", "multiplier")
_ROWS = 16_384  # rows filled or loaded at a time


@dataclass(frozen=True)
class Iteration:
    """One line of the training history.

    Attributes:
        number: from 1.
        objective: J (Gao et al., eq. 3, without its constant), or with posterior regularisation
            the bound F = E_Q[log p] + H(Q) + log prior, at the parameters that the iteration
            began with. EM never decreases it.
        evaluations: mean number of gradients per pair in the projection; 0 without projection.
    """

    number: int
    objective: float
    evaluations: float


@dataclass(eq=False)
class State:
    """The parameters of a topic model during training.

    Attributes:
        theta: float32 [n_pairs, K], topics of each pair.
        phi_q, phi_d: float32 [V, K], P(w|z), word-major; the same array if the vocabulary is
            shared. Rows of words that the side does not have are 0.
        multiplier: float32 [n_pairs, K], the multipliers of posterior regularisation, which the
            next projection starts from; [n_pairs, 0] without regularisation.
        mapped: the memory-mapped files of theta and multiplier, if they are kept on disk.
    """

    theta: NDArray[np.float32]
    phi_q: NDArray[np.float32]
    phi_d: NDArray[np.float32]
    multiplier: NDArray[np.float32]
    mapped: tuple[mmap.mmap, ...] = ()

    @classmethod
    def of_pairs(
        cls,
        n_pairs: int,
        phi_q: NDArray[np.float32],
        phi_d: NDArray[np.float32],
        *,
        regularised: bool,
        on_disk: bool = False,
    ) -> State:
        """A state with uniform theta and multipliers of 0.

        Raises:
            OSError: no room for the temporary file.
        """
        K = phi_q.shape[1]
        shapes = [(n_pairs, K), (n_pairs, K if regularised else 0)]
        mapped = tuple(_temporary(4 * n * width) for n, width in shapes if on_disk and width)
        arrays = [np.frombuffer(file, np.float32) for file in mapped]
        arrays += [np.zeros(shape, np.float32) for shape in shapes[len(arrays) :]]
        theta, multiplier = (a.reshape(shape) for a, shape in zip(arrays, shapes, strict=True))
        state = cls(theta, phi_q, phi_d, multiplier, mapped)
        for start in range(0, n_pairs, _ROWS):
            state.theta[start : start + _ROWS] = 1 / K
            state.release()
        return state

    @property
    def phis(self) -> list[NDArray[np.float32]]:
        """phi^q and phi^d, or the single phi that they share."""
        return [self.phi_q] if self.phi_q is self.phi_d else [self.phi_q, self.phi_d]

    def zeros(self) -> list[NDArray[np.float64]]:
        """Expected counts of 0: float64 [V, K], one array per phi."""
        return [np.zeros(phi.shape) for phi in self.phis]

    def save(self, file: Checkpoint, fingerprint: str, history: list[Iteration]) -> None:
        """Write a checkpoint of a run."""
        header = {"fingerprint": fingerprint, "history": [vars(line) for line in history]}
        file.save(header, {name: getattr(self, name) for name in _TENSORS})
        self.release()

    def resume(self, file: Checkpoint, fingerprint: str) -> list[Iteration]:
        """Restore a checkpoint of the same run; returns its history, empty if there is none."""
        path = file.path
        history = resumed(path, fingerprint)
        if path is None or not history:
            return []
        for name in _TENSORS:
            target = getattr(self, name)
            for start, rows in persistence.load_rows(path, name, _ROWS):
                target[start : start + len(rows)] = rows
                self.release()
        return history

    def release(self) -> None:
        """Release the memory of mapped arrays; their contents stay in the file."""
        for file in self.mapped:
            if hasattr(mmap, "MADV_DONTNEED"):
                file.madvise(mmap.MADV_DONTNEED)


def resumed(path: Path | None, fingerprint: str) -> list[Iteration]:
    """The history in a file of the same run; empty if there is none."""
    if path is None or not path.exists():
        return []
    header = persistence.load_header(path)
    if header.get("fingerprint") != fingerprint:
        return []
    return [Iteration(**line) for line in header["history"]]


def _temporary(size: int) -> mmap.mmap:
    """A mapped file without a name, which is deleted with the array or the process."""
    with tempfile.TemporaryFile() as file:
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{size / 2**30:.1f} GiB for the topics of the pairs ({error.strerror}); set "
                "TMPDIR to a folder with more space, or raise memory_limit",
                tempfile.gettempdir(),
            ) from None
        return mmap.mmap(file.fileno(), size)
