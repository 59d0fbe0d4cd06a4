"""The dependent click model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr_features.clicks.base import Array, inside
from ltr_features.clicks.cascade_models import ALWAYS, Beliefs, Continued, Facts
from ltr_features.clicks.information import PageScores, pair_errors
from ltr_features.clicks.log import Pages


class DependentClick(Continued):
    """Users read from the top; P(continue | click at position r) = lambda_r (section 3.6).

    Estimated by expectation-maximisation over where users stopped. With ``simplified``, as in Guo
    et al. and section 4.1.2, users are assumed to have stopped at their last click, or to have read
    everything without a click: two counts instead of EM, which overrate results below a last click.

    Args:
        prior: see :class:`ClickModel`. simplified: whether to count instead of EM.
        tolerance, max_iterations: see :class:`PositionBased`.

    Attributes:
        continuation_: float64 [positions], lambda_r; the overall mean at positions without data.

    Source: Guo, Liu, Wang, "Efficient multiple-click models in web search", WSDM 2009.
    """

    name = "dcm"
    continuation_: Array

    def _after_click(
        self, pages: Pages, rows: Any, known: NDArray[np.int64] | None = None
    ) -> Array:
        return self.continuation_[np.minimum(pages.position[rows], len(self.continuation_) - 1)]

    def _start(self, facts: Facts) -> bool:
        self.continuation_ = np.full(facts.log.n_positions, 0.5)
        return True

    def _improve_shared(self, facts: Facts, beliefs: Beliefs) -> float:
        inner = facts.inner
        continuation = self._continued(facts, inner, beliefs.examination[inner + 1])
        change = float(np.abs(continuation - self.continuation_).max())
        self.continuation_ = continuation
        return change

    def _continued(self, facts: Facts, rows: NDArray[np.int64], went_on: Array) -> Array:
        """float64 [positions]: the share of clicks in these rows after which users continued."""
        position, weight, K = facts.pages.position[rows], facts.weight[rows], facts.log.n_positions
        n = np.bincount(position, weight, minlength=K)
        on = np.bincount(position, weight * went_on, minlength=K)
        mean = on.sum() / n.sum() if n.sum() > 0 else 0.5
        return np.where(n > 0, on / np.maximum(n, 1), mean)

    def _count(self, facts: Facts) -> None:
        self._count_attraction(facts)
        pages = facts.pages
        rows = np.flatnonzero(pages.click)
        went_on = pages.place[rows] < pages.last_click[pages.row_page[rows]]
        self.continuation_ = self._continued(facts, rows, went_on.astype(np.float64))

    def _set_errors(self, facts: Facts, beliefs: Beliefs) -> None:
        log, pages, inner = facts.log, facts.pages, facts.inner
        on, went_on = self.continuation_[pages.position[inner]], beliefs.examination[inner + 1]
        score = went_on / inside(on) - (1 - went_on) / (1 - inside(on))
        shared = np.zeros((len(pages), log.n_positions))
        shared[pages.row_page[inner], pages.position[inner]] = score
        free = (self.continuation_ > 1 - ALWAYS) & (self.continuation_ < ALWAYS)
        free &= (shared != 0).any(axis=0)
        scores = PageScores(
            self._attraction_score(pages, beliefs), None, np.ascontiguousarray(shared[:, free])
        )
        errors = pair_errors(log, pages, scores, self.prior_, self.attractiveness_, None)
        self.standard_error_ = errors.first
        self.remarks_ += errors.remarks
