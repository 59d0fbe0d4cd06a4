"""What rankers of regression trees share, whichever library trains them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from letor.rankers.base import Ranker


class TreeRanker(Ranker):
    """A ranker that sums regression trees, which :mod:`letor.rankers.export` writes for engines.

    Attributes:
        of_positions: the parameter that turns on learning what positions do to clicks, and one that
            has an effect only then.
    """

    of_positions: ClassVar[tuple[str, str]]

    @property
    def remarks(self) -> list[str]:
        switch, regularisation = self.of_positions
        usual = getattr(type(self), regularisation)
        if getattr(self, switch) or getattr(self, regularisation) == usual:
            return super().remarks
        idle = f"{regularisation} has no effect without {switch}=True: set that, or leave it out"
        return [*super().remarks, idle]

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
