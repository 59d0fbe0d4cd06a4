"""ListNet and RankNet: linear or neural scores learned by Adam over mini-batches of queries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.checked_arrays import check_array, check_finite
from letor.dataset import RankingData
from letor.errors import InputError
from letor.kernels.networks import Queries, network_scores, train_epoch
from letor.rankers.array_ranker import ArrayRanker, BestOf
from letor.rankers.base import Ranges

_MOST_UNITS = 2**20  # accepted for a layer in a model file


@dataclass(eq=False, repr=False)
class _NetworkRanker(ArrayRanker):
    """Common base of ListNet and RankNet, which differ in the loss of a query."""

    stopping: ClassVar[tuple[str, ...]] = ("measure", "early_stopping_rounds")
    ranges: ClassVar[Ranges] = {
        "n_epochs": (1, 1_000_000),
        "learning_rate": (1e-9, 1e3),
        "batch_size": (1, 1_000_000),
        "weight_decay": (0.0, 1e3),
        "n_networks": (1, 1000),
        "early_stopping_rounds": (1, 2**31 - 1),
        "seed": (0, 2**31 - 1),
    }
    pairwise: ClassVar[bool]

    hidden: int | Sequence[int] = 0
    _: KW_ONLY
    n_epochs: int = 200
    learning_rate: float = 0.01
    batch_size: int = 16
    weight_decay: float = 0.0
    n_networks: int = 1
    measure: str = "ndcg@10"
    early_stopping_rounds: int = 30
    normalise: str = "zscore"
    seed: int = 0

    def check(self) -> None:
        super().check()
        if any(not isinstance(units, Integral) or units < 1 for units in self._layers()):
            raise InputError(
                f"hidden={self.hidden!r}: give the units of a layer, 0 for none, or a list of them"
            )

    def _layers(self) -> list[int]:
        if np.ndim(self.hidden) == 0 and self.hidden == 0:
            return []
        return np.atleast_1d(self.hidden).tolist()

    @abstractmethod
    def _targets(self, train: RankingData) -> NDArray[np.float64]:
        """float64 [n]: the targets that the loss compares scores with."""

    def _learn(self, train: RankingData, valid: RankingData | None) -> None:
        sizes = np.array([train.X.shape[1], *self._layers(), 1], dtype=np.int64)
        rows = Queries(train.X, self._targets(train), train.offsets)
        evaluator = None if valid is None else self._evaluator(valid)
        networks, curves = [], []
        for number in range(self.n_networks):
            rng = np.random.default_rng([self.seed, number])
            best = BestOf(evaluator, self.early_stopping_rounds, self._finished)
            networks.append(self._train(rows, valid, sizes, rng, best))
            curves += best.curve
        self._model = {"networks": np.stack(networks), "sizes": sizes}
        self.validation_curve_ = curves

    def _train(
        self,
        rows: Queries,
        valid: RankingData | None,
        sizes: NDArray[np.int64],
        rng: np.random.Generator,
        best: BestOf,
    ) -> NDArray[np.float64]:
        """Train one network; returns the parameters of the epoch that is best by validation."""
        parameters = _initial(sizes, rng)
        moments, step = np.zeros((2, len(parameters))), 0
        best_parameters = parameters
        for _ in range(self.n_epochs):
            step = train_epoch(
                rows, rng.permutation(len(rows.offsets) - 1), self.batch_size, self.pairwise,
                float(self.learning_rate), float(self.weight_decay), parameters, sizes, moments,
                step,
            )  # fmt: skip
            if not np.isfinite(parameters).all():
                raise InputError(
                    f"training diverged: normalise={self.normalise!r} leaves columns too large, or "
                    f"learning_rate={self.learning_rate!r} is too high"
                )
            scores = None if valid is None else network_scores(valid.X, parameters, sizes)
            if best.improves(scores):
                best_parameters = parameters.copy()
            if best.should_stop:
                break
        return best_parameters

    def _score(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        scores = np.zeros(len(X))
        for parameters in self._model["networks"]:
            scores += network_scores(X, parameters, self._model["sizes"])
        return scores / len(self._model["networks"])

    def _check_model(self, path: Path, n_columns: int) -> None:
        sizes, networks = self._model["sizes"], self._model["networks"]
        check_array(f"{path}: sizes", sizes, np.int64, (None,), least=1, most=_MOST_UNITS)
        if len(sizes) < 2 or sizes[0] != n_columns or sizes[-1] != 1:
            raise InputError(
                f"{path}: sizes is {sizes.tolist()}, must be {n_columns}, ..., 1; it is damaged"
            )
        n = int((sizes[:-1] * sizes[1:]).sum() + sizes[1:-1].sum())  # weights, and hidden biases
        check_finite(f"{path}: networks", networks, np.float64, (None, n))
        if not len(networks):
            raise InputError(f"{path}: networks is empty; it is damaged")

    def _importance_of_learned(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Gain of a column: sum of its absolute outgoing weights; splits: their number."""
        sizes = self._model["sizes"]
        first = np.abs(self._model["networks"][:, : sizes[0] * sizes[1]])
        gain = first.reshape(-1, sizes[0], sizes[1]).sum(axis=(0, 2))
        return gain, np.full(sizes[0], first.size // sizes[0], dtype=np.int64)


@dataclass(eq=False, repr=False)
class ListNet(_NetworkRanker):
    """Top-one ListNet: cross entropy between softmax(label_scale * label) and softmax(score).

    Args:
        hidden: units of the hidden layer, or a list with those of each; 0 for a linear ranker, as
            in the paper.
        label_scale: factor of the labels before the softmax; 1 in the paper, larger values put
            more weight on the best rows.
        n_epochs: maximum number of passes over the training queries.
        learning_rate: learning rate of Adam.
        batch_size: number of queries per step, with equal weights.
        weight_decay: share of the weights, times the learning rate, subtracted in each step.
        n_networks: number of networks, trained with different seeds, whose scores are averaged.
        measure: measure for early stopping, a name that ``letor.measures.parse_measure`` knows.
        early_stopping_rounds: epochs without improvement after which training stops.
        normalise: ``none``, ``minmax``, ``zscore``, ``raw+zscore`` or ``standard``.
        seed: seed of the initial weights and the order of the queries.

    Source: Cao, Qin, Liu, Tsai, Li, "Learning to rank: from pairwise approach to listwise
    approach", ICML 2007, section 5.
    """

    name: ClassVar[str] = "listnet"
    ranges: ClassVar[Ranges] = {**_NetworkRanker.ranges, "label_scale": (1e-6, 1e6)}
    pairwise: ClassVar[bool] = False

    label_scale: float = 1.0

    def _targets(self, train: RankingData) -> NDArray[np.float64]:
        starts, sizes = train.offsets[:-1], train.group_sizes
        value = self.label_scale * train.y.astype(np.float64)
        share = np.exp(value - np.repeat(np.maximum.reduceat(value, starts), sizes))
        return share / np.repeat(np.add.reduceat(share, starts), sizes)


@dataclass(eq=False, repr=False)
class RankNet(_NetworkRanker):
    """RankNet: log(1 + exp(s_j - s_i)) for each pair with label i > label j.

    The loss of a query is the mean over its pairs, so that all queries weigh alike.

    Args:
        hidden: units of the hidden layer, or a list with those of each; 0 for a linear ranker.
        n_epochs: maximum number of passes over the training queries.
        learning_rate: learning rate of Adam.
        batch_size: number of queries per step, with equal weights.
        weight_decay: share of the weights, times the learning rate, subtracted in each step.
        n_networks: number of networks, trained with different seeds, whose scores are averaged.
        measure: measure for early stopping, a name that ``letor.measures.parse_measure`` knows.
        early_stopping_rounds: epochs without improvement after which training stops.
        normalise: ``none``, ``minmax``, ``zscore``, ``raw+zscore`` or ``standard``.
        seed: seed of the initial weights and the order of the queries.

    Source: Burges, Shaked, Renshaw, Lazier, Deeds, Hamilton, Hullender, "Learning to rank using
    gradient descent", ICML 2005, section 4.
    """

    name: ClassVar[str] = "ranknet"
    pairwise: ClassVar[bool] = True

    hidden: int | Sequence[int] = 16
    _: KW_ONLY
    learning_rate: float = 0.003
    early_stopping_rounds: int = 20

    def _targets(self, train: RankingData) -> NDArray[np.float64]:
        return train.y.astype(np.float64)


def _initial(sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Weights uniform within +-sqrt(6 / (inputs + units)); 0 for linear rankers, and for biases.

    Source: Glorot, Bengio, AISTATS 2010, equation 16.
    """
    parts = []
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        bound = np.sqrt(6.0 / (n_in + n_out)) if len(sizes) > 2 else 0.0
        parts.append(rng.uniform(-bound, bound, size=n_in * n_out))
        if layer < len(sizes) - 2:
            parts.append(np.zeros(n_out))
    return np.concatenate(parts)
