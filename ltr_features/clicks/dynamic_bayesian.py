"""The dynamic Bayesian network click model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.clicks.base import Array, inside, smoothed
from ltr_features.clicks.cascade_models import ALWAYS, Beliefs, Continued, Facts
from ltr_features.clicks.information import PageScores, pair_errors
from ltr_features.clicks.log import Pages


class DynamicBayesian(Continued):
    """Users read the page from the top; a click satisfies them with probability sigma_qd, and then
    they leave; otherwise they continue with probability gamma (section 3.8).

    Estimated by expectation-maximisation (section 4.2.4) over who was satisfied and where users
    stopped. With ``simplified`` (SDBN, sections 3.8.1 and 4.1.3) gamma is 1 and users are assumed
    to be satisfied by their last click, or to have read everything without a click: counts, no EM.

    ``relevance_`` is alpha sigma, the probability of being satisfied by an examined result.

    Args:
        prior: prior of attractiveness, and also of satisfaction by clicks; see :class:`ClickModel`.
        continuation: gamma, in (0, 1]; None to learn it.
        simplified, tolerance, max_iterations: see :class:`DependentClick`.

    Attributes:
        satisfaction_: float64 [pairs], sigma. satisfaction_error_: its standard errors.
        continuation_: gamma.

    Source: Chapelle, Zhang, "A dynamic Bayesian network click model for web search ranking",
    WWW 2009.
    """

    name = "dbn"
    satisfaction_: Array
    satisfaction_error_: Array
    continuation_: float

    def __init__(
        self,
        prior: tuple[float, float] | None = None,
        continuation: float | None = None,
        simplified: bool = False,
        tolerance: float = 1e-6,
        max_iterations: int = 5_000,
    ) -> None:
        super().__init__(prior, simplified, tolerance, max_iterations)
        self.continuation = continuation

    @property
    def relevance_(self) -> Array:
        return self.attractiveness_ * self.satisfaction_

    @property
    def relevance_error_(self) -> Array:
        return self._relevance_error

    def check(self) -> None:
        super().check()
        if self.continuation is not None and not 0 < self.continuation <= 1:
            raise InputError(f"continuation must be in (0, 1], got {self.continuation}")
        if self.simplified and self.continuation not in (None, 1.0):
            raise InputError("the simplified model has continuation 1; leave it out")

    def _after_skip(self) -> float:
        return self.continuation_

    def _after_click(
        self, pages: Pages, rows: Any, known: NDArray[np.int64] | None = None
    ) -> Array:
        sigma = self.satisfaction_
        if known is not None:
            sigma = self._of_pairs(sigma, self._clicks, known)
        return self.continuation_ * (1 - sigma[pages.pair[rows]])

    def _priors(self) -> float:
        return self._log_prior(self.attractiveness_) + self._log_prior(self.satisfaction_)

    def _start(self, facts: Facts) -> bool:
        self._clicks = facts.clicks
        self.continuation_ = 0.9 if self.continuation is None else self.continuation
        self.satisfaction_ = np.full(facts.log.n_pairs, 0.5)
        return self.continuation is None

    def _satisfied(self, facts: Facts, beliefs: Beliefs) -> Array:
        """float64: P(satisfied | clicks) for last clicks with a row below them; for other clicks it
        is 0 (users continued), or unknown (the page ended)."""
        pages, ended = facts.pages, facts.ended
        tail = np.maximum(beliefs.tail[pages.row_page[ended]], 1e-300)
        return self.satisfaction_[pages.pair[ended]] / tail

    def _improve_pairs(self, facts: Facts, beliefs: Beliefs, prior: tuple[float, float]) -> float:
        change = super()._improve_pairs(facts, beliefs, prior)
        clicks = facts.by_pair(np.ones(len(facts.inner)), facts.inner)
        satisfied = facts.by_pair(self._satisfied(facts, beliefs), facts.ended)
        sigma = smoothed(satisfied, clicks, prior)
        change = max(change, float(np.abs(sigma - self.satisfaction_).max()))
        self.satisfaction_ = sigma
        return change

    def _improve_shared(self, facts: Facts, beliefs: Beliefs) -> float:
        pages, weight = facts.pages, facts.weight
        each = weight * beliefs.examination
        went_on = float(each.sum() - each[pages.offsets[:-1]].sum())
        could = float(each.sum() - each[pages.offsets[1:] - 1].sum())
        could -= float(weight[facts.ended] @ self._satisfied(facts, beliefs))
        gamma = min(went_on / could, 1.0) if could > 0 else 1.0
        change = abs(gamma - self.continuation_)
        self.continuation_ = gamma
        return change

    def _count(self, facts: Facts) -> None:
        self._count_attraction(facts)
        self._clicks, self.continuation_ = facts.clicks, 1.0
        pages = facts.pages
        last = np.flatnonzero(pages.place == pages.last_click[pages.row_page])
        sigma, sigma_error = self._estimate(facts.by_pair(np.ones(len(last)), last), facts.clicks)
        self.satisfaction_, self.satisfaction_error_ = sigma, sigma_error
        with np.errstate(invalid="ignore"):  # infinity times 0, of pairs without a click
            error = np.hypot(self.standard_error_ * sigma, sigma_error * self.attractiveness_)
        self._relevance_error = np.where(np.isinf(sigma_error), np.inf, error)

    def _set_errors(self, facts: Facts, beliefs: Beliefs) -> None:
        log, pages = facts.log, facts.pages
        satisfied = np.zeros(len(pages.pair))
        satisfied[facts.ended] = self._satisfied(facts, beliefs)
        sigma = inside(self.satisfaction_)[pages.pair]
        inner = pages.click & ~pages.is_end
        click_score = np.where(inner, (satisfied - sigma) / (sigma * (1 - sigma)), 0.0)
        shared = np.zeros((len(pages), 0))
        gamma = self.continuation_
        if self.continuation is None and gamma < ALWAYS:
            went_on = np.where(pages.is_end, 0.0, np.append(beliefs.examination[1:], 0.0))
            could = np.where(pages.is_end, 0.0, beliefs.examination - satisfied)
            each = went_on / gamma - (could - went_on) / (1 - gamma)
            shared = np.add.reduceat(each, pages.offsets[:-1])[:, None]
        scores = PageScores(self._attraction_score(pages, beliefs), click_score, shared)
        errors = pair_errors(
            log, pages, scores, self.prior_, self.attractiveness_, self.satisfaction_
        )
        self.standard_error_, self.satisfaction_error_ = errors.first, errors.second
        self._relevance_error = np.full(log.n_pairs, np.inf)
        known = np.isfinite(errors.first) & np.isfinite(errors.second)
        alpha, sigma = self.attractiveness_[known], self.satisfaction_[known]
        variance = (errors.first[known] * sigma) ** 2 + (errors.second[known] * alpha) ** 2
        variance += 2 * alpha * sigma * errors.covariance[known]
        self._relevance_error[known] = np.sqrt(np.maximum(variance, 0))
        self.remarks_ += errors.remarks
