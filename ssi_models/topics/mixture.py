"""The two-level mixture of language models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-12  # the probability of a word to which every part of the mixture gives 0


@dataclass(frozen=True, eq=False)
class TermProbabilities:
    """The probability of each query term of each pair in each part of the mixture.

    Attributes:
        offsets: int64 [n_pairs + 1]; pair i owns terms ``offsets[i]:offsets[i + 1]``.
        counts: float32 [n_terms], n(w, q).
        background, unigram, model: float64 [n_terms]: P(w|C), n(w, d) / |d|, and P(w|d) of the
            topic or translation model.
    """

    offsets: NDArray[np.int64]
    counts: NDArray[np.float32]
    background: NDArray[np.float64]
    unigram: NDArray[np.float64]
    model: NDArray[np.float64]

    def mixed(self, lambda1: float, lambda2: float) -> NDArray[np.float64]:
        """P(w|d) = l1 P(w|C) + (1 - l1) (l2 P_uni(w|d) + (1 - l2) P_model(w|d)): float64 [n_terms]
        (Gao, Toutanova, Yih: "Clickthrough-based latent semantic models for web search",
        eq. 15, 16)."""
        document = lambda2 * self.unigram + (1 - lambda2) * self.model
        return lambda1 * self.background + (1 - lambda1) * document

    def log_likelihood(self, lambda1: float, lambda2: float) -> NDArray[np.float64]:
        """float64 [n_pairs]: log P(q|d) / |q| under the mixture, see :meth:`mean_log`."""
        return self.mean_log(self.mixed(lambda1, lambda2))

    def mean_log(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean log probability per query term, see :func:`log_of`; 0 for a query without words."""
        n_pairs = len(self.offsets) - 1
        owner = np.repeat(np.arange(n_pairs), np.diff(self.offsets))
        logs = self.counts * log_of(probabilities)
        sums = np.bincount(owner, logs, minlength=n_pairs)
        return sums / np.maximum(np.bincount(owner, self.counts, minlength=n_pairs), _TINY)


def log_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithms; probabilities below 1e-12 count as 1e-12."""
    return np.log(np.maximum(probabilities, _TINY))
