"""The base class of click models, and the measures of how well they predict a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_base.blas import one_blas_thread
from ltr_features.clicks.log import ClickLog

#: Lower bound of the probability of a click that is impossible by a model.
LEAST_PROBABILITY = 1e-6
#: Distance from 0 and 1 that parameters keep in logarithms.
_OPEN = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """How well a model predicts the clicks of a log.

    Attributes:
        log_likelihood: natural logarithm of P(clicks), summed over all rows, each given the clicks
            above it on its page.
        n_rows: number of rows in the sum.
        by_position: float64 [positions], perplexity at each position (NaN without rows): 2 to the
            mean of -log2 P(click or no click in the row), not given other clicks. 1 is perfect, 2
            is a coin toss.
        n_impossible: number of clicks with probability 0 by the model; 1e-6 is used for them.

    Source: Chuklin, Markov, de Rijke, "Click Models for Web Search", 2015, sections 5.1 and 5.2.
    """

    log_likelihood: float
    n_rows: int
    by_position: Array
    n_impossible: int

    @property
    def perplexity(self) -> float:
        """Mean of the positions' perplexities."""
        return float(np.nanmean(self.by_position))


class ClickModel(ABC):
    """Abstract base class of click models, which learn from a log why users click.

    ``fit`` estimates the attractiveness of every (query, document) pair: the probability that a
    user who examines the result clicks it. Parameters that all pairs share (those of positions, for
    example) maximise the likelihood; given them, the parameters of pairs maximise the likelihood
    times a beta prior. A prior on all parameters at once would be harmful: the made-up examinations
    of thousands of pairs that were hardly shown would outweigh the clicks on lower positions, and
    the model would underestimate how many users look there.

    Args:
        prior: pseudo-counts of clicks and skips of every pair, in examinations; both >= 0. (0, 0)
            is maximum likelihood. None: two examinations at the click rate of the first position,
            see :func:`prior_of`, which keep pairs with little evidence near the others; (1, 1)
            would take a result that was hardly looked at for better than most.

    Attributes:
        log_: the log that was fitted. prior_: the pseudo-counts that were taken.
        attractiveness_: float64 [pairs of the log], in [0, 1].
        standard_error_: float64 [pairs], of the attractiveness; infinite if it is undetermined.
        evidence_: float64 [pairs], number of examinations, observed or estimated.
        examination_: float64 [positions], share of users who examine each position by the model;
            NaN where nothing was shown.
        examination_error_: float64 [positions], its standard error; NaN if the model has none.
        log_likelihoods_: log-likelihood after each iteration for the shared parameters; never
            falls. Empty if no parameters are shared, or nothing is iterated.
        objective_: log-likelihood plus log prior after each iteration for pairs; never falls.
        converged_: whether the last iterations changed no parameter by more than the tolerance.
        remarks_: remarks on the log and the fit for users, one sentence each.

    Source: Chuklin, Markov, de Rijke, "Click Models for Web Search", Morgan & Claypool, 2015;
    chapter 3 for the models, chapter 4 for their estimation.
    """

    name: ClassVar[str]
    #: Whether the model learns from counts, so that logs need no pages.
    from_counts: ClassVar[bool] = False

    log_: ClickLog
    prior_: tuple[float, float]
    attractiveness_: Array
    standard_error_: Array
    evidence_: Array
    examination_: Array
    examination_error_: Array
    log_likelihoods_: list[float]
    objective_: list[float]
    converged_: bool
    remarks_: list[str]

    def __init__(self, prior: tuple[float, float] | None = None) -> None:
        self.prior = prior

    def fit(self, log: ClickLog) -> Self:
        """Fit the model to a log.

        Raises:
            InputError: a parameter out of its range, or a log without pages where they are needed.
        """
        self.check()
        self.prior_ = prior_of(log) if self.prior is None else self.prior
        self.log_likelihoods_, self.objective_ = [], []
        self.converged_, self.remarks_ = True, log.remarks
        with one_blas_thread():  # sums must not depend on the cores
            self._fit(log)
        self.log_ = log
        return self

    @property
    def relevance_(self) -> Array:
        """float64 [pairs], in [0, 1]: the relevance that pairs are judged by: the attractiveness,
        unless the model also estimates whether users were satisfied."""
        return self.attractiveness_

    @property
    def relevance_error_(self) -> Array:
        """float64 [pairs]: standard error of ``relevance_``."""
        return self.standard_error_

    @one_blas_thread()
    def predict(self, log: ClickLog) -> Prediction:
        """Measure how well the model predicts a log. Unknown pairs get the mean attractiveness of
        the fitted log, weighted by evidence; positions beyond its last are treated like the last.

        Raises:
            InputError: the model is not fitted, or it needs pages and the log has none.
        """
        if not hasattr(self, "log_"):
            raise InputError(f"{type(self).__name__} is not fitted: call fit first")
        known = self.log_.rows_of(log)
        log_likelihood, n_rows, n_impossible = 0.0, 0, 0
        bits = np.zeros(log.n_positions)
        rows = np.zeros(log.n_positions)
        for position, times, marginal, conditional in self._probabilities(log, known):
            n_impossible += int(times[conditional <= 0].sum())
            given = np.log(np.maximum(conditional, LEAST_PROBABILITY))
            log_likelihood += float((times * given).sum())
            alone = -np.log2(np.maximum(marginal, LEAST_PROBABILITY))
            bits += np.bincount(position, weights=times * alone, minlength=len(bits))
            rows += np.bincount(position, weights=times, minlength=len(bits))
            n_rows += int(times.sum())
        with np.errstate(invalid="ignore"):
            by_position = 2.0 ** (bits / rows)
        return Prediction(log_likelihood, n_rows, by_position, n_impossible)

    def check(self) -> None:
        """Raise InputError for parameters out of range."""
        if self.prior is None:
            return
        prior = np.asarray(self.prior, np.float64)
        if prior.shape != (2,) or not (np.isfinite(prior).all() and (prior >= 0).all()):
            raise InputError(f"prior must be two numbers >= 0, clicks and skips, got {self.prior}")

    @abstractmethod
    def _fit(self, log: ClickLog) -> None: ...

    @abstractmethod
    def _probabilities(
        self, log: ClickLog, known: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]]:
        """Yield position, count, P(observation) and P(observation | clicks above), where the
        observation is a click or no click."""

    def _estimate(self, clicks: Array, examinations: Array) -> tuple[Array, Array]:
        """Attractiveness of pairs and its standard error, from clicks among known examinations: the
        mode of the beta posterior, and the curvature there."""
        value = smoothed(clicks, examinations, self.prior_)
        n = examinations + sum(self.prior_)
        with np.errstate(divide="ignore", invalid="ignore"):
            return value, np.where(n > 0, np.sqrt(value * (1 - value) / n), np.inf)

    def _log_prior(self, attractiveness: Array) -> float:
        a, b = self.prior_
        kept = inside(attractiveness)
        return float(a * np.log(kept).sum() + b * np.log1p(-kept).sum())

    def _of_pairs(self, values: Array, weight: Array, known: NDArray[np.int64]) -> Array:
        """A parameter for the pairs of another log; the weighted mean for unknown pairs."""
        total = float(weight.sum())
        mean = float(values @ weight) / total if total > 0 else 0.5
        return np.where(known < 0, mean, values[np.maximum(known, 0)])


def prior_of(log: ClickLog, examinations: float = 2.0) -> tuple[float, float]:
    """Pseudo-counts of clicks and skips: so many examinations, with the click rate of the log's
    first position, at which every user is taken to look."""
    first = log.result_position == log.result_position.min()
    rate = float(log.clicked[first].sum() / log.shown[first].sum())
    return examinations * rate, examinations * (1 - rate)


def inside(values: Any) -> Array:
    """Probabilities clipped away from 0 and 1, for logarithms and quotients."""
    return np.clip(np.asarray(values, np.float64), _OPEN, 1 - _OPEN)


def smoothed(clicks: Array, examinations: Array, prior: tuple[float, float]) -> Array:
    """(clicks + prior clicks) / (examinations + prior examinations); 0 without examinations."""
    n = examinations + sum(prior)
    return np.minimum((clicks + prior[0]) / np.where(n > 0, n, 1.0), 1.0)
