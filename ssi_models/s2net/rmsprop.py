"""RMSProp by word with averaged parameters: the optimiser of S2Net's mini-batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssi_models.kernels.sparse import move_towards
from ssi_models.training.embedding_table import Table

#: Weight of the earlier batches in a word's mean square. Small: the losses fall a hundredfold in
#: training, and squares of long ago would only shorten the steps.
DECAY = 0.5
#: Steps from one sample of the average to the next, which costs a pass over all parameters.
SAMPLED = 4
#: Sample n of the average has the weight 4 / (n + 3) in it, so that the first ones are forgotten.
RECENCY = 4


class ProjectionTable(Table):
    """A table that S2Net trains, by AdaGrad or SGD, and its part of the state of a run."""

    @property
    def result(self) -> NDArray[np.float32]:
        """float32 [V, N], the parameters that are validated and kept."""
        return self.values

    def state(self) -> dict[str, NDArray[Any]]:
        """What training changes beside ``result``."""
        return {"accumulator": self.accumulator}

    def begin(self) -> None:
        """Called before an epoch's first step."""

    def next_weight(self) -> float:
        """Called once per step; the weight in ``result`` of where the step ends, if it is an
        average."""
        return 0.0

    def average_own(self, weight: float, share: int, n_shares: int) -> None:
        """Take the place where a step ended into the average, by one of the threads."""


class AveragedTable(ProjectionTable):
    """A table that is trained by RMSProp, and the average of its values.

    A step divides a word's gradient by the root of a running mean of its examples' squared
    gradients (Tieleman, Hinton: "Lecture 6.5: RMSProp", 2012; here one mean per word, over the
    batches in which it occurs). Such steps do not get shorter by themselves, so the result is not
    where the last one ended but a polynomial-decay average of such places (Shamir, Zhang:
    "Stochastic gradient descent for non-smooth optimization", ICML 2013, section 4).

    Attributes:
        average: float32 [V, N]. n_steps: int64 [1], steps done.
    """

    kept, added = DECAY, 1.0 - DECAY

    def __init__(self, values: NDArray[np.float32], learning_rate: float) -> None:
        super().__init__(values, learning_rate, 0.0)
        self.average, self.n_steps = values.copy(), np.zeros(1, np.int64)

    @property
    def result(self) -> NDArray[np.float32]:
        return self.average

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {"values": self.values, "n_steps": self.n_steps}

    def begin(self) -> None:
        if not self.n_steps[0]:
            self.values[...] = self.average  # a warm start sets the result

    def next_weight(self) -> float:
        self.n_steps += 1
        n, rest = divmod(int(self.n_steps[0]), SAMPLED)
        return 0.0 if rest else RECENCY / (n + RECENCY - 1)

    def average_own(self, weight: float, share: int, n_shares: int) -> None:
        if weight:
            move_towards(self.values, self.average, np.float32(weight), share, n_shares)
