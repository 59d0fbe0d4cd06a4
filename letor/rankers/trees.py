"""What rankers of regression trees share, whichever library trains them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.rankers.base import Ranker


class TreeRanker(Ranker):
    """A ranker that sums regression trees, which :mod:`letor.rankers.export` writes for engines.

    Attributes:
        effective_with: for each parameter that has an effect only with some value of another one,
            that parameter and the value.
    """

    effective_with: ClassVar[Mapping[str, tuple[str, str | bool]]] = {}

    @property
    def remarks(self) -> list[str]:
        idle = [
            f"{parameter} has no effect without {other}={value!r}: set that, or leave it out"
            for parameter, (other, value) in self.effective_with.items()
            if getattr(self, other) != value
            and not np.array_equal(getattr(self, parameter), getattr(type(self), parameter))
        ]
        return [*super().remarks, *idle]

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """The trees in the form of LightGBM's ``Booster.dump_model``, as JSON-compatible values: a
        row goes left if x <= threshold, and its score is the sum of its leaves.

        Raises:
            NotFittedError: the ranker is not fitted.
        """

    @abstractmethod
    def contributions(self, X: NDArray[np.float32]) -> NDArray[np.float64]:
        """Contribution of each input of the trees to the score of each row by TreeSHAP, float64
        [n, p]: those of a row add up to its score, up to a constant that all rows share.

        Args:
            X: float32 [n, p], rows as ``normaliser_`` transforms them; n is 1 or more.

        Raises:
            NotFittedError: the ranker is not fitted.

        Source: Lundberg et al., "From local explanations to global understanding with explainable
        AI for trees", Nature Machine Intelligence 2020.
        """
