"""Click models of users who read a page from the top: their base classes, and the cascade model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr_features.clicks.base import Array, ClickModel, inside, smoothed
from ltr_features.clicks.log import ClickLog, Pages
from ltr_features.clicks.position_models import check_iterations, not_converged
from ltr_features.kernels import clicks as kernels

#: A continuation above this is at its bound: it gets no standard error and affects no other.
ALWAYS = 1 - 1e-6


@dataclass(frozen=True)
class Facts:
    """Statistics of a log that do not depend on parameters.

    Attributes:
        weight: float64 [n], how often each row's page was seen.
        clicks: float64 [pairs]. skips: float64 [pairs], rows not clicked above a last click, which
            were certainly examined.
        inner: int64, clicks with a row below them. ended: int64, those of them that are last
            clicks. passed: int64, those that are not.
        count: float64 [s], how often each page was seen. last: int64 [s], row of its last click;
            its first row if there is none.
    """

    log: ClickLog
    pages: Pages
    weight: Array
    clicks: Array
    skips: Array
    inner: NDArray[np.int64]
    ended: NDArray[np.int64]
    passed: NDArray[np.int64]
    count: Array
    last: NDArray[np.int64]

    @classmethod
    def of(cls, log: ClickLog, pages: Pages) -> Facts:
        weight = pages.row_count.astype(np.float64)
        last = pages.last_click[pages.row_page]
        above = pages.place < last
        inner = np.flatnonzero(pages.click & ~pages.is_end)
        at_last = (pages.place == last)[inner]
        skips = above & ~pages.click
        clicks, skipped = (
            np.bincount(pages.pair[rows], weight[rows], minlength=log.n_pairs).astype(np.float64)
            for rows in (pages.click, skips)
        )
        last_row = pages.offsets[:-1] + np.maximum(pages.last_click, 0)
        return cls(
            log, pages, weight, clicks, skipped, inner, inner[at_last], inner[~at_last],
            pages.count.astype(np.float64), last_row,
        )  # fmt: skip

    def by_pair(self, values: NDArray[Any], rows: Any = slice(None)) -> Array:
        """float64 [pairs]: sums of the rows' values, weighted by how often their page was seen."""
        weights = self.weight[rows] * values
        sums = np.bincount(self.pages.pair[rows], weights, minlength=self.log.n_pairs)
        return sums.astype(np.float64)


@dataclass(frozen=True)
class Beliefs:
    """Probabilities of hidden events, given the clicks.

    Attributes:
        examination: float64 [n], P(row examined). tail: float64 [s], P(no click below the last
            one), which is P(no click) for pages without a click.
    """

    examination: Array
    tail: Array


class Downwards(ClickModel):
    """Base class of models in which rows are examined from the top: after a click, users continue
    with probability ``_after_click``, after a skip with ``_after_skip``."""

    def _probabilities(
        self, log: ClickLog, known: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]]:
        pages = log.needed_pages(type(self).__name__)
        alpha = self._of_pairs(self.attractiveness_, self.evidence_, known)
        after = self._after_click(pages, slice(None), known)
        reach, conditional = self._predicted(pages, alpha, after)
        marginal = reach * alpha[pages.pair]
        yield (
            pages.position,
            pages.row_count,
            np.where(pages.click, marginal, 1 - marginal),
            np.where(pages.click, conditional, 1 - conditional),
        )

    def _predicted(self, pages: Pages, alpha: Array, after_click: Array) -> tuple[Array, Array]:
        """P(row examined), and P(row clicked | clicks above it)."""
        reach, conditional = np.empty(len(pages.pair)), np.empty(len(pages.pair))
        kernels.click_probabilities(
            pages.offsets, pages.click, alpha[pages.pair], after_click, self._after_skip(),
            reach, conditional,
        )  # fmt: skip
        return reach, conditional

    def _set_examination(self, log: ClickLog, pages: Pages) -> None:
        """Set the share of users who examine each position by the model, over the log's pages."""
        after = self._after_click(pages, slice(None))
        reach, _ = self._predicted(pages, self.attractiveness_, after)
        K = log.n_positions
        reached = np.bincount(pages.position, pages.row_count * reach, minlength=K)
        with np.errstate(invalid="ignore"):
            self.examination_ = reached / np.bincount(pages.position, pages.row_count, minlength=K)
        self.examination_error_ = np.full(K, np.nan)

    def _after_skip(self) -> float:
        """P(next row is examined | examined and not clicked)."""
        return 1.0

    @abstractmethod
    def _after_click(
        self, pages: Pages, rows: Any, known: NDArray[np.int64] | None = None
    ) -> Array:
        """float64: P(next row is examined | clicked) of some rows; ``known`` maps the pairs of
        another log's pages to pairs of this model."""


class Cascade(Downwards):
    """Users read the page from the top until they click, and then leave (section 3.4).

    P(click at r) = alpha_r prod_(i < r) (1 - alpha_i). Estimated by counting: rows up to the first
    click of their page were examined, others are left out (section 4.1). A second click on a page
    is impossible by the model; predictions use probability 1e-6 for it, and ``remarks_`` states
    how many pages have one.
    """

    name = "cascade"

    def _fit(self, log: ClickLog) -> None:
        pages = log.needed_pages("Cascade")
        # Rows from the top of each page to its first click.
        seen = np.flatnonzero(pages.place <= pages.first_click[pages.row_page])
        clicked = seen[pages.click[seen]]
        self.evidence_, clicks = (
            np.bincount(pages.pair[rows], pages.row_count[rows], log.n_pairs).astype(np.float64)
            for rows in (seen, clicked)
        )
        alpha, error = self._estimate(clicks, self.evidence_)
        self.attractiveness_, self.standard_error_ = alpha, error
        p = inside(alpha)
        likelihood = clicks @ np.log(p) + (self.evidence_ - clicks) @ np.log1p(-p)
        self.objective_ = [float(likelihood) + self._log_prior(alpha)]
        several = int(pages.count[pages.last_click > pages.first_click].sum())
        if several:
            self.remarks_.append(
                f"{several:,} of {log.n_pages:,} pages have several clicks, which the cascade "
                "model does not allow: rows below the first click are left out; use dcm or dbn"
            )
        self._set_examination(log, pages)

    def _after_click(
        self, pages: Pages, rows: Any, known: NDArray[np.int64] | None = None
    ) -> Array:
        return np.zeros(len(pages.pair[rows]))


class Continued(Downwards):
    """Models whose users may continue after a click, estimated by EM or by counting."""

    def __init__(
        self,
        prior: tuple[float, float] | None = None,
        simplified: bool = False,
        tolerance: float = 1e-6,
        max_iterations: int = 5_000,
    ) -> None:
        super().__init__(prior)
        self.simplified = simplified
        self.tolerance = tolerance
        self.max_iterations = max_iterations

    def check(self) -> None:
        super().check()
        check_iterations(self.tolerance, self.max_iterations)

    def _fit(self, log: ClickLog) -> None:
        pages = log.needed_pages(type(self).__name__)
        facts = Facts.of(log, pages)
        if self.simplified:
            self._count(facts)
            likelihood = self._log_likelihood(facts, self._believe(facts))
            self.objective_ = [likelihood + self._priors()]
        else:
            shown = log.by_pair(log.shown)
            self.attractiveness_ = smoothed(facts.clicks, shown, (1.0, 1.0))
            if self._start(facts):
                self._iterate(facts, shared=True)
            beliefs = self._iterate(facts, shared=False)
            self.evidence_ = facts.by_pair(beliefs.examination)
            self._set_errors(facts, beliefs)
        self._set_examination(log, pages)

    def _iterate(self, facts: Facts, shared: bool) -> Beliefs:
        """Run EM and return the last beliefs: until the ``shared`` parameters converge, without
        prior; or with those fixed and the prior, until the parameters of pairs converge."""
        prior = (0.0, 0.0) if shared else self.prior_
        values = self.log_likelihoods_ if shared else self.objective_
        beliefs = self._believe(facts)
        for _ in range(self.max_iterations):
            shared_change = self._improve_shared(facts, beliefs) if shared else 0.0
            pair_change = self._improve_pairs(facts, beliefs, prior)
            change = shared_change if shared else pair_change
            beliefs = self._believe(facts)
            values.append(self._log_likelihood(facts, beliefs) + self._priors() * (not shared))
            if change <= self.tolerance:
                return beliefs
        self.converged_ = False
        self.remarks_.append(not_converged(self.max_iterations, change))
        return beliefs

    def _believe(self, facts: Facts) -> Beliefs:
        """The E-step."""
        pages = facts.pages
        examination, tail = np.empty(len(pages.pair)), np.empty(len(pages))
        kernels.examined(
            pages.offsets, pages.last_click, pages.pair, self.attractiveness_,
            self._after_click(pages, facts.last), self._after_skip(), examination, tail,
        )  # fmt: skip
        return Beliefs(examination, tail)

    def _improve_pairs(self, facts: Facts, beliefs: Beliefs, prior: tuple[float, float]) -> float:
        """The M-step for attractiveness, clicks by examinations; returns the largest change."""
        alpha = smoothed(facts.clicks, facts.by_pair(beliefs.examination), prior)
        change = float(np.abs(alpha - self.attractiveness_).max())
        self.attractiveness_ = alpha
        return change

    def _log_likelihood(self, facts: Facts, beliefs: Beliefs) -> float:
        alpha = inside(self.attractiveness_)
        on = self._after_click(facts.pages, facts.passed)
        return float(
            facts.clicks @ np.log(alpha)
            + facts.skips @ np.log1p(-alpha)
            + facts.weight[facts.passed] @ np.log(inside(on))
            + facts.skips.sum() * np.log(self._after_skip())
            + facts.count @ np.log(np.maximum(beliefs.tail, 1e-300))
        )

    def _priors(self) -> float:
        return self._log_prior(self.attractiveness_)

    def _attraction_score(self, pages: Pages, beliefs: Beliefs) -> Array:
        """Derivative of a page's log-likelihood by the attractiveness of each of its rows."""
        alpha = inside(self.attractiveness_)[pages.pair]
        return np.where(pages.click, 1 / alpha, -beliefs.examination / (1 - alpha))

    def _count_attraction(self, facts: Facts) -> None:
        """Estimate attractiveness, assuming that rows are examined up to the last click, if any."""
        pages = facts.pages
        last = np.where(pages.last_click < 0, len(pages.pair), pages.last_click)
        self.evidence_ = facts.by_pair(pages.place <= last[pages.row_page])
        estimate = self._estimate(facts.clicks, self.evidence_)
        self.attractiveness_, self.standard_error_ = estimate

    @abstractmethod
    def _start(self, facts: Facts) -> bool:
        """Set the other initial parameters; returns whether to learn the shared ones."""

    @abstractmethod
    def _improve_shared(self, facts: Facts, beliefs: Beliefs) -> float:
        """The M-step for shared parameters, before that of pairs; returns the largest change."""

    @abstractmethod
    def _count(self, facts: Facts) -> None:
        """Estimate the parameters of the simplified model."""

    @abstractmethod
    def _set_errors(self, facts: Facts, beliefs: Beliefs) -> None: ...
