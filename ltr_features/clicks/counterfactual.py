"""Estimate the clicks on another ranking from the log of the rankings that were shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from letor.errors import InputError
from letor.judged_runs import checked_frame
from ltr_base.blas import one_blas_thread
from ltr_features.clicks.base import Array
from ltr_features.clicks.log import ClickLog
from ltr_features.parameters import check_range


@dataclass(frozen=True)
class ClickEstimate:
    """Estimated clicks per page of another ranking.

    Attributes:
        value: clicks per page. low, high: its confidence interval. standard_error: of the value.
        confidence: confidence level of the interval, in (0, 1).
        logged: clicks per page in the log.
        unseen: share of the other ranking's examinations of results that the log has never shown
            for their query; their clicks are missing from the value.
        most: the value of ``high`` if all these examinations, and those that ``largest`` cuts off,
            were clicks.
        unranked: share of the log's pages whose query the other ranking lacks. They add no clicks
            to the value, which is to be compared with ``logged`` only if this is 0.
    """

    value: float
    low: float
    high: float
    standard_error: float
    confidence: float
    logged: float
    unseen: float
    most: float
    unranked: float


@one_blas_thread()
def estimate_clicks(
    log: ClickLog,
    examination: Array,
    run: Any,
    *,
    covariance: Array | None = None,
    largest: float = 100.0,
    confidence: float = 0.95,
) -> ClickEstimate:
    """Estimate the clicks per page of another ranking from clicks on the logged ones.

    A logged click on d is weighted by the examination of d's new position over the mean examination
    of d on the query's pages (0 on pages that did not show it). Clicks on documents that the other
    ranking does not show count 0. The estimate is right if clicks are position-based and every
    result of the other ranking has been shown; clicks on results that were not are bounded only by
    their examinations. Queries are as frequent as in the log. The interval is normal, over pages as
    independent draws; it includes the error of the means (delta method), and that of the
    examination if its covariance is given.

    Args:
        log: a log with pages. examination: float64 [positions], > 0 where results were shown, such
            as ``PositionBased.examination_``; the other ranking is cut to as many positions.
        run: a frame with the columns ``qid``, ``docno`` and ``score``, as from
            ``letor.trec.read_run``, or {qid: {docno: score}}; queries are named by the log's
            ids or texts, or by the ids that workspaces and judgements have of these texts. Those of
            the log that it lacks count as pages without results.
        covariance: float64 [positions, positions], covariance of the examination, such as
            ``PositionBased.examination_covariance_``.
        largest: upper bound of the weights, >= 1, because results that are shown rarely add mostly
            noise. Clicks that it cuts off are missing from the value.
        confidence: confidence level of the interval, in (0, 1).

    Source: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay, Wen, "Offline evaluation of ranking
    policies with click models", KDD 2018 (estimator of the position-based model).

    Raises:
        InputError: a log without pages, values out of range, or a run that lacks a column, has a
            pair twice or a score that is not a number, or shares no query with the log.
    """
    pages = log.needed_pages("estimate_clicks")
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be in (0, 1), got {confidence}")
    check_range("largest", largest, 1)
    shown = np.zeros(log.n_positions, dtype=bool)
    shown[log.result_position] = True
    if len(examination) < log.n_positions or not (examination[: len(shown)][shown] > 0).all():
        raise InputError("examination must be above 0 at every position that the log shows")
    page_query = log.pair_query[pages.pair[pages.offsets[:-1]]]
    n_pages = np.bincount(page_query, weights=pages.count, minlength=len(log.query_ids))
    ranked = _ranked(log, run)
    new, looks, unseen_looks = _new_positions(log, ranked, examination, n_pages)
    examined = log.by_pair(log.shown * examination[log.result_position])
    at_new = np.where(new >= 0, np.nan_to_num(examination)[np.maximum(new, 0)], 0.0)
    quotient = at_new * n_pages[log.pair_query] / examined
    weight = np.minimum(quotient, largest)
    rate = log.by_pair(log.clicked) / examined
    of_query = np.bincount(
        log.pair_query, weights=weight * rate * examined, minlength=len(n_pages)
    ) / np.maximum(n_pages, 1)
    n = log.n_pages
    value = float(n_pages @ of_query) / n
    surprise = weight[pages.pair] * (pages.click - examination[pages.position] * rate[pages.pair])
    influence = np.add.reduceat(surprise, pages.offsets[:-1]) + of_query[page_query] - value
    variance = float(pages.count @ influence**2) / n**2
    if covariance is not None:
        clicks_each = n_pages[log.pair_query] / n * rate
        slope = _slope(log, new, clicks_each, at_new / examined, len(covariance))
        variance += float(slope @ covariance @ slope)
    error = float(np.sqrt(variance))
    margin = float(norm.ppf(0.5 + confidence / 2)) * error
    cut_off = float((quotient - weight) @ examined)
    return ClickEstimate(
        value, value - margin, value + margin, error, confidence,
        logged=float(log.clicked.sum()) / n,
        unseen=unseen_looks / looks if looks > 0 else 0.0,
        most=value + margin + (unseen_looks + cut_off) / n,
        unranked=1 - float(n_pages[ranked["query"].unique()].sum()) / n,
    )  # fmt: skip


def _slope(
    log: ClickLog, new: NDArray[np.int64], clicks_each: Array, quotient: Array, n_positions: int
) -> Array:
    """float64 [n_positions]: the derivative of the value by the examination of each position. The
    value is the sum over pairs of share(query) clicks(pair) examination(new position) / (sum of
    examination over its showings).

    Args:
        new, clicks_each, quotient: for each pair, its position in the run (-1 for none), clicks per
            page of the log and examination, and examination there over that of all its showings.
    """
    placed = new >= 0
    clicks = np.bincount(new[placed], weights=clicks_each[placed], minlength=n_positions)
    slope = clicks.astype(np.float64)  # without any pairs, bincount returns integers
    shown_at = log.by_position(log.shown * (clicks_each * quotient)[log.result_pair])
    slope[: len(shown_at)] -= shown_at
    return slope


def _ranked(log: ClickLog, run: Any) -> pd.DataFrame:
    """A run's rows for queries of the log, best first: ``query`` and ``document`` (rows of the log,
    NaN for a document that it lacks) and ``position`` (from 0)."""
    run = checked_frame(run, "score", "run")
    ranked = run.assign(
        query=log.rows_of_queries(run["qid"]),
        document=run["docno"].map({d: i for i, d in enumerate(log.document_ids)}),
    )
    ranked = ranked[ranked["query"] >= 0]
    if ranked.empty:
        raise InputError(
            f"the run has no row for any of the {len(log.query_ids)} queries of the log (the first "
            f"has the id {log.made_ids[0]!r}); do both use the same query ids?"
        )
    ranked = ranked.sort_values(["query", "score"], ascending=[True, False], kind="stable")
    ranked["position"] = ranked.groupby("query").cumcount()
    return ranked


def _new_positions(
    log: ClickLog, ranked: pd.DataFrame, examination: Array, n_pages: NDArray[Any]
) -> tuple[NDArray[np.int64], float, float]:
    """int64 [pairs]: each pair's position in the run (``ranked``), -1 for none; the number of
    examinations of the run over the log's pages (``n_pages`` per query), and that of pairs which
    the log lacks."""
    ranked = ranked[ranked["position"] < len(examination)]
    query, position = ranked["query"].to_numpy(np.int64), ranked["position"].to_numpy(np.int64)
    weight = n_pages[query] * np.nan_to_num(examination)[position]
    document = ranked["document"].fillna(-1).to_numpy(np.int64)
    rows = log.rows_of_pairs(query, document)
    new = np.full(log.n_pairs, -1, np.int64)
    new[rows[rows >= 0]] = position[rows >= 0]
    return new, float(weight.sum()), float(weight[rows < 0].sum())
