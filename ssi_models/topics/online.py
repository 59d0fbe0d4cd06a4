"""Stepwise EM over a stream of pairs (Liang, Klein: "Online EM for unsupervised models", 2009)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssi_models import persistence
from ssi_models.parallel import Workers
from ssi_models.topics.em import Block, Prior, Scratch, expect, set_mode
from ssi_models.topics.state import Iteration, State


class OnlineEM:
    """Stepwise EM: the parameters and the running expected counts per pair.

    Args:
        state: the parameters, changed in place; its theta is not used.
        fitted: whether phi comes from an earlier fit, so that the running counts start from it.
        prior: of the model. step_power: kappa of the steps (t + 2)^-kappa.
    """

    def __init__(self, state: State, *, fitted: bool, prior: Prior, step_power: float) -> None:
        self.state, self.fitted = state, fitted
        self.prior, self.step_power = prior, step_power
        self.scratch = Scratch(state)
        self.counts = state.zeros()
        self.occurrences = np.zeros(len(state.phi_d))
        self.n_pairs = 0.0  # by weight
        self.history: list[Iteration] = []

    def learn(self, block: Block, inner: int, workers: Workers) -> None:
        """Take a step towards the expected counts of a block, after ``inner`` iterations for the
        theta of its pairs under the current phi; only the last one applies the constraint."""
        n, K = block.stop - block.start, self.state.phi_d.shape[1]
        theta = np.full((n, K), 1 / K, np.float32)
        multiplier = np.zeros((n, self.state.multiplier.shape[1]), np.float32)
        for number in range(inner):
            self.scratch.clear()
            prior = self.prior if number == inner - 1 else replace(self.prior, constraint=None)
            objective, evaluations = expect(
                block, self.state, theta, multiplier, prior, self.scratch, workers
            )
        if self.fitted and not self.history:
            self._adopt_fitted(block)
        step = (len(self.history) + 2.0) ** -self.step_power
        self.n_pairs += block.size
        for phi, running, sums in zip(self.state.phis, self.counts, self.scratch.sums, strict=True):
            running *= 1 - step
            running += (step / block.size) * (sums * phi)
            counts = running * self.n_pairs
            set_mode(counts, counts.sum(axis=0), phi, self.prior, workers)
        self.history.append(
            Iteration(len(self.history) + 1, objective / block.size, evaluations / n)
        )

    @property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a checkpoint."""
        arrays: dict[str, NDArray[Any]] = {"occurrences": self.occurrences}
        for i, (phi, counts) in enumerate(zip(self.state.phis, self.counts, strict=True)):
            arrays |= {f"phi{i}": phi, f"counts{i}": counts}
        return arrays

    def save(self, path: Path, identity: str) -> None:
        """Write the running counts and the parameters of the model named ``identity``."""
        header = {
            "stream of": identity,
            "n_pairs": self.n_pairs,
            "history": [vars(line) for line in self.history],
        }
        persistence.save_tensors(path, header, self._arrays)

    def load(self, path: Path, identity: str) -> None:
        """Continue from what ``save`` wrote.

        Raises:
            ValueError: the file is of another model or vocabulary.
        """
        header, tensors = persistence.load_tensors(path)
        ours = self._arrays
        same = {name: array.shape for name, array in ours.items()} == {
            name: array.shape for name, array in tensors.items()
        }
        if header.get("stream of") != identity or not same:
            raise ValueError(
                f"{path}: the checkpoint of another stream ({header.get('stream of')}); name "
                "another file"
            )
        for name, array in ours.items():
            array[...] = tensors[name]
        self.n_pairs = header["n_pairs"]
        self.history = [Iteration(**line) for line in header["history"]]

    def _adopt_fitted(self, block: Block) -> None:
        """Start the running counts as if the fitted phi came from pairs like the block's, with
        topics equally frequent."""
        sizes = [
            block.weighted(side, side.rows[2]).sum(dtype=np.float64)
            for side in (block.queries, block.titles)
        ]
        sizes = sizes if len(self.counts) == 2 else [np.sum(sizes)]
        for phi, running, size in zip(self.state.phis, self.counts, sizes, strict=True):
            running += phi * (size / block.size / phi.shape[1])
