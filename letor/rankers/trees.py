"""What rankers of regression trees share, whichever library trains them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from letor.rankers.base import Ranker


class TreeRanker(Ranker):
    """A ranker that sums regression trees, which :mod:`letor.rankers.export` writes for engines."""

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """The trees in the form of LightGBM's ``Booster.dump_model``, as JSON-compatible values: a
        row goes left if x <= threshold, and its score is the sum of its leaves.

        Raises:
            NotFittedError: the ranker is not fitted.
        """
