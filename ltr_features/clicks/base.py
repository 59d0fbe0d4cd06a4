"""The contract of every click model, and how well one predicts a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from letor.errors import InputError
from ltr_features.clicks.log import ClickLog

#: What a click counts at least that a model holds to be impossible.
LEAST_PROBABILITY = 1e-6
#: Where logarithms of parameters are taken.
_OPEN = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """How well a model foretells the clicks of a log.

    Attributes:
        log_likelihood: natural logarithm of P(clicks), summed over all rows, each given the clicks
            above it on its page.
        n_rows: rows that were summed.
        by_position: float64 [positions], perplexity at each position (NaN where no row is): 2 to
            the mean of -log2 P(the row's click or none), not given other clicks. 1 is perfect, 2 a
            coin.
        n_impossible: clicks whose probability is 0 by the model; they count 1e-6.

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
    """What makes users click, learned from a log.

    ``fit`` estimates, for every (query, document) pair, how attractive the result is: the
    probability that a user who examines it clicks it. Parameters that all pairs share (of
    positions, say) maximise the likelihood; those of pairs, given them, the likelihood times a beta
    prior. One prior for all at once would do harm: thousands of pairs that were hardly shown, each
    with its made-up examinations, outweigh the clicks on lower positions, and the model takes users
    to look there less than they do.

    Args:
        prior: clicks and skips, in examinations, that every pair is taken to have had before the
            log; both >= 0. (1, 1) keeps pairs with little evidence away from 0 and 1, (0, 0) is
            maximum likelihood.

    Attributes:
        log_: the log that was fitted.
        attractiveness_: float64 [pairs of the log], in [0, 1].
        standard_error_: float64 [pairs], of the attractiveness; infinite where the log cannot tell.
        evidence_: float64 [pairs], examinations that the log has, or is estimated to have.
        examination_: float64 [positions], share of users who examine each position, as the model
            has it; NaN where nothing was shown.
        examination_error_: float64 [positions], its standard error; NaN where the model has none.
        log_likelihoods_: after each iteration for the shared parameters; never falls. Empty where
            nothing is shared, or iterated.
        objective_: log-likelihood plus log prior after each iteration for the pairs'; never falls.
        converged_: whether the last iterations changed no parameter by more than the tolerance.
        remarks_: what must be heard of the fit, a sentence each.

    Source: Chuklin, Markov, de Rijke, "Click Models for Web Search", Morgan & Claypool, 2015;
    chapter 3 for the models, chapter 4 for their estimation.
    """

    name: ClassVar[str]
    #: Whether the model learns from counts, so that logs without pages will do.
    from_counts: ClassVar[bool] = False

    log_: ClickLog
    attractiveness_: Array
    standard_error_: Array
    evidence_: Array
    examination_: Array
    examination_error_: Array
    log_likelihoods_: list[float]
    objective_: list[float]
    converged_: bool
    remarks_: list[str]

    def __init__(self, prior: tuple[float, float] = (1.0, 1.0)) -> None:
        self.prior = prior

    def fit(self, log: ClickLog) -> Self:
        """Learn from a log.

        Raises:
            InputError: a parameter out of its range, or a log without pages where they are needed.
        """
        self._check()
        self.log_likelihoods_, self.objective_ = [], []
        self.converged_, self.remarks_ = True, []
        with threadpool_limits(limits=1, user_api="blas"):  # the same sums on any machine's cores
            self._fit(log)
        self.log_ = log
        return self

    @property
    def relevance_(self) -> Array:
        """float64 [pairs], in [0, 1]: what is judged of a pair: its attractiveness, unless the
        model also knows whether users were satisfied."""
        return self.attractiveness_

    @property
    def relevance_error_(self) -> Array:
        """float64 [pairs]: standard error of ``relevance_``."""
        return self.standard_error_

    def predict(self, log: ClickLog) -> Prediction:
        """How well the model foretells a log, which may have other queries and documents: pairs
        that it has not seen are taken to be as attractive as all clicked ones of the fitted log
        together, positions beyond as the last.

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

    def _check(self) -> None:
        """Refuse parameters out of range (InputError)."""
        prior = np.asarray(self.prior, np.float64)
        if prior.shape != (2,) or not (np.isfinite(prior).all() and (prior >= 0).all()):
            raise InputError(f"prior must be two numbers >= 0, clicks and skips, got {self.prior}")

    @abstractmethod
    def _fit(self, log: ClickLog) -> None: ...

    @abstractmethod
    def _probabilities(
        self, log: ClickLog, known: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]]:
        """Position, number of times, P(what was seen), and P(what was seen | clicks above)."""

    def _estimate(self, clicks: Array, examinations: Array) -> tuple[Array, Array]:
        """Attractiveness of pairs by clicks in examinations, and its standard error where the
        examinations are known: the mode of the beta posterior, and the curvature there."""
        value = smoothed(clicks, examinations, self.prior)
        n = examinations + sum(self.prior)
        with np.errstate(divide="ignore"):
            return value, np.where(n > 0, np.sqrt(value * (1 - value) / n), np.inf)

    def _log_prior(self, attractiveness: Array) -> float:
        a, b = self.prior
        kept = inside(attractiveness)
        return float(a * np.log(kept).sum() + b * np.log1p(-kept).sum())

    def _of_pairs(self, values: Array, weight: Array, known: NDArray[np.int64]) -> Array:
        """A parameter of another log's pairs; of unknown ones the weighted mean."""
        total = float(weight.sum())
        mean = float(values @ weight) / total if total > 0 else 0.5
        return np.where(known < 0, mean, values[np.maximum(known, 0)])


def inside(values: Any) -> Array:
    """Probabilities, kept off 0 and 1, for logarithms and quotients."""
    return np.clip(np.asarray(values, np.float64), _OPEN, 1 - _OPEN)


def smoothed(clicks: Array, examinations: Array, prior: tuple[float, float]) -> Array:
    """(clicks + prior clicks) / (examinations + prior ones), 0 where nothing was examined."""
    n = examinations + sum(prior)
    return np.minimum((clicks + prior[0]) / np.where(n > 0, n, 1.0), 1.0)
