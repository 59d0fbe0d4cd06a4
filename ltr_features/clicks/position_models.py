"""Click models by position: click rates, and the position-based model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.special import xlog1py, xlogy

from letor.errors import InputError
from ltr_base.slices import slices
from ltr_features.clicks.base import Array, ClickModel, inside, smoothed
from ltr_features.clicks.log import ClickLog

_ROWS = 1 << 16  # pairs whose errors are computed at a time
_HALVINGS = 50
_SPLITS = 2  # random splits of the showings into halves
_END = 2.0**-_HALVINGS
#: With so many clicks, a click rate at the first position that exceeds the one below so often is
#: worth a remark.
_MANY_CLICKS, _STEEP = 100, 2
#: A share of clicks on results with fewer examinations and an attractiveness of 1, by maximum
#: likelihood, that is worth a remark. In 18 simulations, the examination of lower positions was
#: 1.4 to 3.8 standard errors too high above it (but .9 once), and at most 1.8 below it.
_CERTAIN, _FEW = 0.025, 10


class _ByPosition(ClickModel):
    """Base class of models with independent clicks of probability attractiveness times examination
    of the position, for which a log's counts are sufficient."""

    from_counts = True

    def _probabilities(
        self, log: ClickLog, known: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Array, Array]]:
        attractiveness = self._of_pairs(self.attractiveness_, self.evidence_, known)
        last = len(self.examination_) - 1
        examination = np.nan_to_num(self.examination_)[np.minimum(log.result_position, last)]
        click = attractiveness[log.result_pair] * examination
        for times, p in ((log.clicked, click), (log.shown - log.clicked, 1 - click)):
            yield log.result_position, times, p, p


class ClickRate(_ByPosition):
    """Clicks per showing at any position: raw click rates, including their position bias.

    P(click on d) = rho_qd; "document-based CTR model" (section 3.2; MLE: section 4.1.1).
    """

    name = "ctr"

    def _fit(self, log: ClickLog) -> None:
        self.evidence_ = log.by_pair(log.shown)
        rate, error = self._estimate(log.by_pair(log.clicked), self.evidence_)
        self.attractiveness_, self.standard_error_ = rate, error
        self.examination_ = np.where(log.by_position(log.shown) > 0, 1.0, np.nan)
        self.examination_error_ = np.full(log.n_positions, np.nan)
        p = inside(rate[log.result_pair])
        likelihood = log.clicked @ np.log(p) + (log.shown - log.clicked) @ np.log1p(-p)
        self.objective_ = [float(likelihood) + self._log_prior(rate)]
        top = log.result_position == log.result_position.min()
        shown, clicked = (np.array([x[top].sum(), x[~top].sum()]) for x in (log.shown, log.clicked))
        first, below = clicked / np.maximum(shown, 1)
        if clicked.sum() >= _MANY_CLICKS and shown[1] and first > _STEEP * below:
            self.remarks_.append(
                f"the click rate is {100 * first:.1f} % at the first position and "
                f"{100 * below:.1f} % below it; ctr takes the whole difference for relevance, "
                "although fewer users look below: pbm tells the two apart"
            )


class PositionBased(_ByPosition):
    """A result is clicked if it is examined, by its position, and attractive, by its pair.

    P(click on d at r) = alpha_qd gamma_r (section 3.3). Only the products are identified, so the
    first position is assumed to be always examined, gamma_1 = 1, and examination is relative to it.
    gamma is estimated by expectation-maximisation over whether a result was examined, E:

        E-step   e = 1 where clicked, else gamma_r (1 - alpha_qd) / (1 - alpha_qd gamma_r)
        M-step   alpha_qd = clicks / sum of e,  gamma_r = mean of e

    It has the same maxima as the steps in section 4.3, where attraction is hidden too, but fewer
    hidden variables, and so converges in fewer iterations. Then each alpha maximises the likelihood
    times its prior, given gamma: the root of a falling function, by bisection.

    Standard errors are those of the joint estimate of all alpha and gamma, from Fisher's expected
    information at the estimate, plus that of the prior for an alpha. If no chain of pairs, each
    shown at two positions, connects a position to the first, its examination cannot be separated
    from the attractiveness of what was shown there: ``remarks_`` says so, and errors are infinite.

    Args:
        prior: see :class:`ClickModel`.
        tolerance: iterations end when no examination changes by more; > 0.
        max_iterations: maximum number of iterations, >= 1.
        jackknife: whether to correct the bias of the examination. With few clicks per result,
            maximum likelihood overestimates it, and twice as much with half the pages: so the mean
            estimate from random halves of every result's showings is subtracted from twice the
            estimate (split-panel jackknife: Dhaene, Jochmans, "Split-panel jackknife estimation of
            fixed-effect models", Review of Economic Studies, 2015). Takes five times as long.

    Attributes:
        examination_covariance_: float64 [positions, positions], of ``examination_``; 0 at the
            first position, which is not estimated, and at positions with infinite error.
    """

    name = "pbm"
    examination_covariance_: Array

    def __init__(
        self,
        prior: tuple[float, float] | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 5_000,
        jackknife: bool = False,
    ) -> None:
        super().__init__(prior)
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.jackknife = jackknife

    def check(self) -> None:
        super().check()
        check_iterations(self.tolerance, self.max_iterations)
        if not isinstance(self.jackknife, bool):
            raise InputError(f"jackknife must be true or false, got {self.jackknife!r}")

    def _fit(self, log: ClickLog) -> None:
        reference = int(log.result_position.min())
        gamma, self.log_likelihoods_ = self._examination(log, reference)
        if self.jackknife:
            gamma = self._corrected(log, gamma, reference)
        alpha = self._attraction(log, gamma)
        self.objective_ = [_log_likelihood(log, alpha, gamma) + self._log_prior(alpha)]
        self.attractiveness_ = alpha
        self.evidence_ = log.by_pair(log.shown * gamma[log.result_position])
        self._set_errors(log, alpha, gamma, reference)
        self.examination_ = np.where(log.by_position(log.shown) > 0, gamma, np.nan)
        if not (self.jackknife or np.isinf(self.examination_error_).any()):
            self.remarks_ += _remarks_on_bias(log, gamma)

    def _corrected(self, log: ClickLog, gamma: Array, reference: int) -> Array:
        """gamma with most of its bias removed."""
        rng, halves = np.random.default_rng(0), []
        for _ in range(_SPLITS):
            odd = (log.shown % 2) * rng.integers(0, 2, len(log.shown))
            shown = log.shown // 2 + odd
            clicked = rng.hypergeometric(log.clicked, log.shown - log.clicked, shown)
            for n, c in ((shown, clicked), (log.shown - shown, log.clicked - clicked)):
                half = replace(log, shown=n, clicked=c, pages=None)
                found, _ = self._examination(half, reference)
                halves.append(np.where(half.by_position(n) > 0, found, gamma))
        corrected = 2 * gamma - np.mean(halves, axis=0)
        return np.clip(corrected, gamma / 2, 1.0)

    def _examination(self, log: ClickLog, reference: int) -> tuple[Array, list[float]]:
        """gamma estimated by EM, and the log-likelihood after each iteration."""
        at_position, at_pair = log.by_position(log.shown), log.by_pair(log.clicked)
        alpha = smoothed(at_pair, log.by_pair(log.shown), (1.0, 1.0))
        rate = (log.by_position(log.clicked) + 1) / (at_position + 2)
        gamma = np.where(at_position > 0, rate / rate.max(), 0.0)
        gamma[reference] = 1.0
        skips = log.shown - log.clicked
        values: list[float] = []
        for _ in range(self.max_iterations):
            a, g = alpha[log.result_pair], gamma[log.result_position]
            e = log.clicked + skips * (g * (1 - a) / np.maximum(1 - a * g, 1e-300))
            alpha = smoothed(at_pair, log.by_pair(e), (0.0, 0.0))
            new_gamma = log.by_position(e) / np.maximum(at_position, 1)
            new_gamma[reference] = 1.0
            change = float(np.abs(new_gamma - gamma).max())
            gamma = new_gamma
            values.append(_log_likelihood(log, alpha, gamma))
            if change <= self.tolerance:
                return gamma, values
        self.converged_ = False
        self.remarks_.append(not_converged(self.max_iterations, change))
        return gamma, values

    def _attraction(self, log: ClickLog, gamma: Array) -> Array:
        """alpha given gamma: the root of a falling function, or an end of [0, 1]."""
        (a, b), clicks = self.prior_, log.by_pair(log.clicked)
        g, skips = gamma[log.result_position], log.shown - log.clicked
        low, high = np.zeros(log.n_pairs), np.ones(log.n_pairs)
        for _ in range(_HALVINGS):
            alpha = (low + high) / 2
            on = alpha[log.result_pair]
            slope = (clicks + a) / alpha - b / (1 - alpha) - log.by_pair(skips * g / (1 - on * g))
            low, high = np.where(slope > 0, alpha, low), np.where(slope > 0, high, alpha)
        alpha = (low + high) / 2
        return np.where(alpha < 2 * _END, 0.0, np.where(alpha > 1 - 2 * _END, 1.0, alpha))

    def _set_errors(self, log: ClickLog, alpha: Array, gamma: Array, reference: int) -> None:
        """Set errors by the inverse of [[D, B], [B', C]]: D of pairs, diagonal; C of positions."""
        a, g = inside(alpha)[log.result_pair], inside(gamma)[log.result_position]
        information = log.shown / (1 - inside(a * g))
        D = log.by_pair(information * g / a)
        prior = self.prior_[0] / inside(alpha) ** 2 + self.prior_[1] / inside(1 - alpha) ** 2
        C = np.diag(log.by_position(information * a / g))
        shape = (log.n_pairs, log.n_positions)
        B = coo_array((information, (log.result_pair, log.result_position)), shape=shape).tocsr()
        free = np.flatnonzero(self._identified(log, reference) & (log.by_position(log.shown) > 0))
        free = free[free != reference]
        own = (B[:, free].T @ diags_array(1 / D) @ B[:, free]).toarray()
        covariance = np.linalg.inv(C[np.ix_(free, free)] - own)
        variance, scaled = 1 / (D + prior), diags_array(1 / (D + prior)) @ B[:, free]
        for rows in slices(log.n_pairs, _ROWS):
            X = scaled[rows].toarray()
            variance[rows] += np.einsum("ij,jk,ik->i", X, covariance, X)
        self.standard_error_ = np.sqrt(variance)
        known = np.zeros(log.n_pairs, dtype=bool)
        known[log.result_pair[np.isin(log.result_position, np.append(free, reference))]] = True
        self.standard_error_[~known] = np.inf
        self.examination_covariance_ = np.full((log.n_positions,) * 2, 0.0)
        self.examination_covariance_[np.ix_(free, free)] = covariance
        self.examination_error_ = np.full(log.n_positions, np.inf)
        self.examination_error_[reference] = 0.0
        self.examination_error_[free] = np.sqrt(np.diag(covariance))
        self.examination_error_[log.by_position(log.shown) == 0] = np.nan

    def _identified(self, log: ClickLog, reference: int) -> NDArray[np.bool_]:
        """bool [positions]: whether a chain of pairs connects the position to the reference."""
        n = log.n_positions
        graph = coo_array(
            (np.ones(len(log.shown)), (log.result_position, n + log.result_pair)),
            shape=(n + log.n_pairs,) * 2,
        )
        part = connected_components(graph, directed=False)[1]
        joined = part[:n] == part[reference]
        lost = int((~joined & (log.by_position(log.shown) > 0)).sum())
        if lost:
            self.remarks_.append(
                f"examination of {lost} of {n} positions is not identified: no result was shown "
                "both there and at positions that others connect to the first; let the ranking "
                "vary, or use another model"
            )
        return np.asarray(joined)


def _remarks_on_bias(log: ClickLog, gamma: Array) -> list[str]:
    """A remark if many clicks are on results that were seldom looked at and whose likelihood rises
    up to an attractiveness of 1. Such results pull the examination up."""
    g, skips, clicks = gamma[log.result_position], log.shown - log.clicked, log.by_pair(log.clicked)
    with np.errstate(divide="ignore", invalid="ignore"):
        against = log.by_pair(np.where(skips > 0, skips * g / (1 - g), 0.0))
    certain = (clicks >= against) & (log.by_pair(log.shown * g) < _FEW)
    share = clicks[certain].sum() / max(clicks.sum(), 1)
    if clicks.sum() < _MANY_CLICKS or share < _CERTAIN:
        return []
    return [
        "many results were shown only a few times: examination of lower positions is probably "
        "overestimated, by more than its standard errors say; the model's parameter jackknife=true "
        "corrects for most of that"
    ]


def _log_likelihood(log: ClickLog, alpha: Array, gamma: Array) -> float:
    p = alpha[log.result_pair] * gamma[log.result_position]
    return float(xlogy(log.clicked, p).sum() + xlog1py(log.shown - log.clicked, -p).sum())


def check_iterations(tolerance: float, max_iterations: int) -> None:
    """Raise InputError for values with which iterations could not end."""
    if not tolerance > 0:
        raise InputError(f"tolerance must be above 0, got {tolerance}")
    if not (isinstance(max_iterations, Integral) and max_iterations >= 1):
        raise InputError(f"max_iterations must be a whole number >= 1, got {max_iterations}")


def not_converged(iterations: int, change: float) -> str:
    """The remark on a fit that did not converge."""
    return (
        f"not converged after {iterations:,} iterations: the last one changed a parameter by "
        f"{change:.1e}; raise max_iterations"
    )
