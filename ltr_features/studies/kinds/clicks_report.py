"""The report of an experiment with simulated clicks: the gap that debiasing closes, with intervals,
and facts on the clicks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.measures import parse_measure
from ltr_base.names import counted
from ltr_features.remarks import alike
from ltr_features.studies.kinds.clicks_config import ClicksConfig
from ltr_features.studies.kinds.clicks_simulation import PRODUCTION, TRUE
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.tables import Table
from ltr_features.studies.page.verdicts import minus, p_value, signed, value
from ltr_features.studies.statistics.paired_tests import TIE
from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import TestSettings, compare, gain_row


@dataclass(frozen=True)
class Results:
    """Results of one learner.

    Attributes:
        fits: for each simulation, the measure of each test query (index) by ranker (column).
        click_facts: facts on the clicks for each simulation, fold and size of the log, see
            :func:`clicks_simulation.simulate_fold`.
        learner: its name. shown_by: the ranker whose results users saw, in words.
        groups: group of each query, if some are tested together. remarks: on the queries.
    """

    config: ClicksConfig
    fits: Sequence[pd.DataFrame]
    click_facts: Sequence[Mapping[str, Any]]
    learner: str
    shown_by: str
    groups: Mapping[str, int] | None = None
    remarks: Sequence[str] = ()

    @cached_property
    def values(self) -> pd.DataFrame:
        """Per-query values of each ranker, means over the simulations."""
        return mean_values(list(self.fits))

    @cached_property
    def gaps(self) -> pd.DataFrame:
        """A row per number of ``sessions``: means ``raw``, ``debiased``, ``true``; ``gap`` (true -
        raw), ``gain`` (debiased - raw) and ``closed`` (gain / gap; NaN without a gap), each with
        ``_low`` and ``_high`` of an interval over queries and simulations, see
        :func:`significance.gain_row`."""
        rows = []
        for sessions in self.config.sessions:
            raw, debiased, true = (
                np.column_stack([fit[name] for fit in self.fits])
                for name in (f"raw {sessions}", f"debiased {sessions}", TRUE)
            )
            gap, gain = true - raw, debiased - raw
            row = {"sessions": sessions, "raw": raw.mean(), "debiased": debiased.mean()}
            row |= {"true": true.mean()} | self._interval("gap", gap) | self._interval("gain", gain)
            mean = gap.mean() if abs(gap.mean()) > TIE else np.nan
            closed = gain.mean() / mean
            deviations = (gain - closed * gap) / mean  # the ratio of the means, linearised
            rows.append(row | self._interval("closed", deviations, closed))
        return pd.DataFrame(rows)

    def _interval(
        self, name: str, values: NDArray[np.float64], centre: float = 0.0
    ) -> dict[str, float]:
        """The mean of values [queries, simulations], plus ``centre``, with its interval."""
        if np.isnan(values).any():
            return dict.fromkeys((name, f"{name}_low", f"{name}_high"), np.nan)
        settings = TestSettings(n_permutations=1, n_resamples=self.config.n_resamples)
        of_query = None
        if self.groups is not None:
            of_query = [self.groups[query] for query in self.values.index]
        row = gain_row(values, np.zeros(len(values)), settings, of_query)
        ends = {"": row["gain"], "_low": row["low"], "_high": row["high"]}
        return {f"{name}{end}": centre + value for end, value in ends.items()}

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Debiased against raw clicks, see :func:`significance.compare`, one row per size."""
        fits = {
            name: [fit[[name]].set_axis(["value"], axis=1) for fit in self.fits]
            for name in self.values
        }
        pairs = [(f"debiased {n}", f"raw {n}") for n in self.config.sessions]
        return compare(
            {name: mean_values(frames) for name, frames in fits.items()},
            pairs,
            ["value"],
            TestSettings(n_resamples=self.config.n_resamples),
            groups=self.groups,
            fits=fits if len(self.fits) > 1 else {},
        )

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Clicks per page of another ranking by simulation, fold and size; ``within``: whether the
        interval has the true value; ``possible``: or clicks on unseen results may explain it."""
        names = ["fit", "fold", "sessions", "logged", "estimate", "low", "high", "never shown",
                 "most", "asked"]  # fmt: skip
        frame = pd.DataFrame([{name: found[name] for name in names} for found in self.click_facts])
        frame["within"] = (frame["low"] <= frame["asked"]) & (frame["asked"] <= frame["high"])
        frame["possible"] = (frame["low"] <= frame["asked"]) & (frame["asked"] <= frame["most"])
        return frame

    def mean_of(self, what: str, key: str, sessions: int) -> pd.DataFrame:
        """Facts on positions or labels, means over folds and simulations by ``key``."""
        fits = [fit for fit in self.click_facts if fit["sessions"] == sessions]
        return pd.DataFrame([row for fit in fits for row in fit[what]]).groupby(key).mean()

    def frames(self) -> dict[str, pd.DataFrame]:
        """The tables by name, each with a column ``learner`` at its front."""
        frames = {
            "means": self.gaps,
            "comparisons": self.comparisons,
            "estimates": self.estimates,
            "per_query": self.values.reset_index(),
        }
        return {
            name: frame.assign(learner=self.learner)[["learner", *frame.columns]]
            for name, frame in frames.items()
        }


def document(every: Sequence[Results]) -> Document:
    """The gap that each learner closes, facts on the clicks, and the clicks of other rankings."""
    first, config = every[0], every[0].config
    measure = parse_measure(config.measure)
    sections = [
        Section(
            f"learner-{number}", f"{results.learner} trained on clicks",
            facts=_facts(results),
            tables=[_gaps(results)],
            checks=checks(results),
            remarks=_remarks(results),
            figures=_by_sessions(results, measure.name),
        )
        for number, results in enumerate(every, start=1)
    ]  # fmt: skip
    # Users and the results that they see are the same for all learners.
    sections += [
        Section("clicks", "Click rates", tables=[_labels(first)], figures=_positions(first)),
        Section(
            "estimates", "Clicks on another ranking", tables=[_estimates(one) for one in every]
        ),
    ]
    means = {
        f"{results.learner}, {n:,} sessions": {
            name: float(results.values[column].mean())
            for name, column in (
                ("in production", PRODUCTION), ("raw clicks", f"raw {n}"),
                ("debiased clicks", f"debiased {n}"), ("true labels", TRUE),
            )
        }
        for results in every
        # With several learners, the overview shows only the largest log.
        for n in (config.sessions[-1:] if len(every) > 1 else reversed(config.sessions))
    }  # fmt: skip
    definitions = {
        measure.name: measure.definition,
        "Gap": "The mean after training on true labels minus that after training on raw clicks. "
        "Gain: the same, debiased minus raw clicks. Closed: gain / gap. Intervals (95 %): "
        "bootstrap over test queries (groups of them, if there are any), widened by the variance "
        "over simulations if there are several; that of the closed share is linearised.",
        "p": "Debiased against raw clicks: Fisher's randomisation test over queries (groups of "
        "them, if there are any) and, with several simulations, a test over them; the larger p is "
        "corrected over the sizes (Holm).",
        "Clicks per page": "Estimated from as many other sessions with the ranker in production "
        "(position-based estimator, 95 % interval); actual: those of the simulated users.",
    }
    return Document(
        config.title, config.introduction, sections, means, measure.name, "raw clicks",
        notes=config.notes, definitions=definitions, answer=_answer(every), remarks=first.remarks,
    )  # fmt: skip


def _answer(every: Sequence[Results]) -> str:
    """A sentence on how much of the gap debiased clicks close with the most sessions."""
    parts = []
    for results in every:
        row = results.gaps.iloc[-1]
        parts.append(
            _share_closed(row, f"{results.learner}; ")
            if row["gap_low"] > 0
            else f"unknown, as the gap, {_with_interval(row, 'gap')}, may be 0 ({results.learner})"
        )
    return (
        f"Share of the gap between raw clicks and true labels that debiased clicks close with "
        f"{every[0].config.sessions[-1]:,} sessions: {', '.join(parts)}."
    )


def _facts(results: Results) -> str:
    config = results.config
    users, grouped = config.users, ""
    behaviour = ", ".join(f"{n} {x:g}" for n, x in users.behaviour.parameters.items())
    if results.groups is not None:
        n = len({results.groups[query] for query in results.values.index})
        grouped = f" in {counted(n, 'group')}, each tested as one"
    return (
        f"{len(results.values):,} test queries{grouped}; simulations: {len(results.fits)}. "
        f"In production: {results.shown_by} ({value(float(results.values[PRODUCTION].mean()))}). "
        f"Users: {users.model}, {behaviour}, {users.depth} results per page, exploration "
        f"{users.exploration:g}. Debiased by {config.model}."
    )


def _gaps(results: Results) -> Table:
    tests = results.comparisons
    rows = [
        [
            f"{row['sessions']:,}", value(row["raw"]), value(row["debiased"]), value(row["true"]),
            _with_interval(row, "gap"), _with_interval(row, "gain"),
            p_value(float(tests["p_corrected"].iloc[i])),
            _share_closed(row) if row["gap_low"] > 0 else "–",
        ]
        for i, row in enumerate(results.gaps.to_dict("records"))
    ]  # fmt: skip
    heads = ["Sessions", "Raw", "Debiased", "True labels", "Gap", "Gain", "Corrected p", "Closed"]
    caption = f"Mean {results.config.measure}. Closed: – where the gap may be 0."
    return Table("Results by number of sessions", heads, rows, caption)


def _with_interval(row: Mapping[str, float] | pd.Series, name: str) -> str:
    ends = f"{signed(row[f'{name}_low'])} to {signed(row[f'{name}_high'])}"
    return f"{signed(row[name])} ({ends})"


def checks(results: Results) -> list[tuple[str, str]]:
    """Whether each expectation holds, with the interval; none on a gap that may be 0 does."""
    gaps = results.gaps.set_index("sessions")
    found = []
    for expected in results.config.expected:
        row, closed = gaps.loc[expected.sessions], expected.closed
        claim = f"at {expected.sessions:,} sessions at least {closed:.0%} of the gap is closed"
        if row["gap_low"] <= 0:
            found.append(("✗", f"{claim}: the gap, {_with_interval(row, 'gap')}, may be 0"))
        else:
            reached = sum(row[end] >= closed for end in ("closed_low", "closed", "closed_high"))
            found.append((("✗", "≈", "(✓)", "✓")[reached], f"{claim}: {_share_closed(row)}"))
    return found


def _share_closed(row: Mapping[str, float] | pd.Series, of: str = "") -> str:
    """The closed share of the gap, ``of``, and its interval: "2% (−45% to 47%)"."""
    ends = ("closed", "closed_low", "closed_high")
    share, low, high = (minus(f"{row[name]:z.0%}") for name in ends)
    return f"{share} ({of}{low} to {high})"


def _remarks(results: Results) -> list[tuple[str, str]]:
    """The remarks on fits, each once, with the fits that it is about."""
    remarked = (
        (f"{judge}, {fits['sessions']:,} sessions", remark)
        for fits in results.click_facts
        for judge, remarks in fits["remarks"].items()
        for remark in remarks
    )
    return [
        ("; ".join(f"{fit} ({n})" for fit, n in Counter(about).items()), remark)
        for about, remark in alike(remarked)
    ]


def _by_sessions(results: Results, measure: str) -> list[tuple[str, Drawing]]:
    """Chart of the rankers' means by the logarithm of the number of sessions."""
    gaps = results.gaps
    x = [math.log10(n) for n in gaps["sessions"]]
    constant = {"true labels": TRUE, "in production": PRODUCTION}
    series = {f"{name} clicks": (x, gaps[name].tolist()) for name in ("raw", "debiased")}
    series |= {
        label: (x, [float(results.values[column].mean())] * len(x))
        for label, column in constant.items()
    }
    curve = Curve("Sessions", "sessions, as a power of ten", measure, series)
    return [(f"{measure} by number of sessions.", curves(curve))]


def _positions(results: Results) -> list[tuple[str, Drawing]]:
    n = results.config.sessions[-1]
    found = results.mean_of("positions", "position", n)
    x = [float(position) for position in found.index]
    users = results.config.users
    series = {
        "click rate": (x, found["click_rate"].tolist()),
        "examination, estimated": (x, found["examination"].tolist()),
    }
    if users.model == "pbm":
        truth = users.behaviour.examination(len(x)).tolist()
        series["examination of the users"] = (x, truth)
    caption = f"Examination by position, estimated from {n:,} sessions; mean over folds."
    return [(caption, curves(Curve("Positions", "position", "probability", series)))]


def _labels(results: Results) -> Table:
    rows = []
    for n in results.config.sessions:
        facts = [fit for fit in results.click_facts if fit["sessions"] == n]
        thin = sum(fit["thin queries"] for fit in facts) / sum(fit["queries"] for fit in facts)
        for label, row in results.mean_of("labels", "label", n).iterrows():
            cells = [f"{row['pairs']:,.0f}", value(row["click_rate"]), value(row["relevance"])]
            rows.append([f"{n:,} sessions, label {label}", *cells, f"{thin:.0%}"])
    caption = (
        "Pairs with enough evidence, their mean click rate, and their attractiveness in the click "
        "model (debiased); thin: share of queries with fewer than two such pairs. Means over folds."
    )
    return Table(
        "Clicks by true label", ["Label", "Pairs", "Click rate", "Debiased", "Thin"], rows, caption
    )


def _estimates(results: Results) -> Table:
    rows = []
    for n, found in results.estimates.groupby("sessions"):
        means = found.drop(columns=["within", "possible"]).mean()
        rows.append(
            [
                f"{n:,}", value(means["logged"]), value(means["estimate"]), value(means["asked"]),
                f"{means['never shown']:.1%}",
                *(f"{found[name].sum()} of {len(found)}" for name in ("within", "possible")),
            ]
        )  # fmt: skip
    heads = ["Sessions", "In the log", "Estimated", "Actual", "Never shown", "Within", "Possible"]
    caption = (
        f"Clicks per page of {results.learner} trained on debiased clicks. Never shown: share of "
        "examined results that the log never showed. Within: the actual value lies in the 95 % "
        "interval; possible: in the interval, extended by what clicks on such results may add."
    )
    return Table(f"Clicks per page, {results.learner}", heads, rows, caption)
