"""Stepwise EM over a stream of pairs (Liang, Klein: "Online EM for unsupervised models", 2009)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssi_models import persistence
from ssi_models.parallel import Workers
from ssi_models.topics.em import Block, Scratch, expect, phis_of, set_mode
from ssi_models.topics.state import Iteration, State

if TYPE_CHECKING:
    from ssi_models.topics.topic_model import TopicModel


class Stream:
    """State of stepwise EM: the parameters and the running expected counts per pair."""

    def __init__(self, state: State, fitted: bool) -> None:
        self.state, self.fitted = state, fitted
        self.scratch = Scratch(state)
        self.counts = [np.zeros(phi.shape) for phi in phis_of(state)]
        self.occurrences = np.zeros(len(state.phi_d))
        self.n_pairs = 0
        self.history: list[Iteration] = []

    def learn(self, block: Block, model: TopicModel, inner: int, workers: Workers) -> None:
        n, K = block.stop - block.start, model.n_topics
        theta = np.full((n, K), 1 / K, np.float32)
        multiplier = np.zeros((n, self.state.multiplier.shape[1]), np.float32)
        for number in range(inner):
            self.scratch.clear()
            projection = model._projection if number == inner - 1 else None
            objective, evaluations = expect(
                block, self.state, theta, multiplier, model._prior, projection, self.scratch,
                workers,
            )  # fmt: skip
        if self.fitted and not self.history:
            self._adopt_fitted(block)
        step = (len(self.history) + 2.0) ** -model.step_power
        self.n_pairs += n
        for phi, running, sums in zip(
            phis_of(self.state), self.counts, self.scratch.sums, strict=True
        ):
            running *= 1 - step
            running += (step / n) * (sums * phi)
            counts = running * self.n_pairs
            set_mode(counts, counts.sum(axis=0), phi, model._prior, workers)
        self.history.append(Iteration(len(self.history) + 1, objective / n, evaluations / n))

    @property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint holds."""
        arrays: dict[str, NDArray[Any]] = {"occurrences": self.occurrences}
        for i, (phi, counts) in enumerate(zip(phis_of(self.state), self.counts, strict=True)):
            arrays |= {f"phi{i}": phi, f"counts{i}": counts}
        return arrays

    def save(self, path: Path, model: TopicModel) -> None:
        """Write the running counts and parameters."""
        header = {
            "stream of": _identity(model),
            "n_pairs": self.n_pairs,
            "history": [vars(line) for line in self.history],
        }
        persistence.save_tensors(path, header, self._arrays)

    def load(self, path: Path, model: TopicModel) -> None:
        """Go on from what ``save`` wrote.

        Raises:
            ValueError: the file is of another model or vocabulary.
        """
        header, tensors = persistence.load_tensors(path)
        ours = self._arrays
        same = {name: array.shape for name, array in ours.items()} == {
            name: array.shape for name, array in tensors.items()
        }
        if header.get("stream of") != _identity(model) or not same:
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
        sizes = [side.rows[2].sum(dtype=np.float64) for side in (block.queries, block.titles)]
        sizes = sizes if len(self.counts) == 2 else [sum(sizes)]
        for phi, running, size in zip(phis_of(self.state), self.counts, sizes, strict=True):
            running += phi * (size / (block.stop - block.start) / phi.shape[1])


def _identity(model: TopicModel) -> str:
    """The model and the parameters that its stream depends on."""
    ignored = {"iterations", "fold_in_iterations", "warm_start", "memory_limit"}
    ignored.update(model.scoring_params)
    params = {k: v for k, v in model.get_params().items() if k not in ignored}
    return f"{model.name} {params}"
