"""A ranker that scores by its first column, upwards or downwards."""

import numpy as np

from letor.rankers.array_ranker import finite
from letor.rankers.base import Ranker


class FirstColumn(Ranker):
    """Scores by the first column, with the sign that correlates with the labels."""

    name = "first-column"

    def __init__(self, normalise="none"):
        self.normalise = normalise

    def _fit(self, train, valid):
        x = finite(train.X[:, 0])
        x = x - x.mean()
        self.sign_ = 1.0 if x @ train.y >= 0 else -1.0

    def _predict(self, data):
        return np.float32(self.sign_) * finite(data.X[:, 0])

    def _save(self, folder):
        return {"sign": self.sign_}

    def _load(self, folder, fitted):
        self.sign_ = fitted["sign"]

    def _importance(self):
        used = [1.0] + [0.0] * (self._n_inputs - 1)
        return used, used
