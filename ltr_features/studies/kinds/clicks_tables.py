"""Tables of an experiment with simulated clicks: the gap that debiasing closes, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ltr_features.studies.kinds.clicks_config import ClicksConfig
from ltr_features.studies.kinds.clicks_simulation import TRUE
from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import TestSettings, compare


@dataclass(frozen=True)
class Results:
    """What the stages made.

    Attributes:
        fits: of each simulation the measure of each test query (index) by ranker (column).
        told: for each simulation, fold and size what clicks say, see
            :func:`clicks_simulation.simulate_fold`.
        learner: what learned. shown_by: what ranked the results that users saw.
    """

    config: ClicksConfig
    fits: Sequence[pd.DataFrame]
    told: Sequence[Mapping[str, Any]]
    learner: str
    shown_by: str

    @cached_property
    def values(self) -> pd.DataFrame:
        """By query and ranker, means over the simulations."""
        return mean_values(list(self.fits))

    @cached_property
    def gaps(self) -> pd.DataFrame:
        """A row per number of ``sessions``: means ``raw``, ``debiased``, ``true``; ``gap`` (true -
        raw) and ``gain`` (debiased - raw), each with ``_low`` and ``_high``; ``closed`` (gain /
        gap) likewise. Intervals of 95 % by a paired bootstrap over queries."""
        rng = np.random.default_rng(0)
        n = len(self.values)
        drawn = rng.integers(n, size=(self.config.n_resamples, n))
        rows = []
        for sessions in self.config.sessions:
            raw, debiased, true = (
                self.values[name].to_numpy()
                for name in (f"raw {sessions}", f"debiased {sessions}", TRUE)
            )
            gap, gain = (
                np.append(d.mean(), d[drawn].mean(axis=1)) for d in (true - raw, debiased - raw)
            )
            row = {"sessions": sessions, "raw": raw.mean(), "debiased": debiased.mean()}
            row["true"] = true.mean()
            with np.errstate(divide="ignore", invalid="ignore"):
                found = {"gap": gap, "gain": gain, "closed": gain / gap}
            for name, draws in found.items():
                known = draws[1:][np.isfinite(draws[1:])]  # a draw without a gap closes none
                low, high = np.quantile(known, [0.025, 0.975]) if len(known) else (np.nan, np.nan)
                row |= {name: draws[0], f"{name}_low": low, f"{name}_high": high}
            rows.append(row)
        return pd.DataFrame(rows)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Debiased against raw clicks, see :func:`significance.compare`, one row per size."""
        names = list(self.values.columns)
        fits = {
            name: [fit[[name]].set_axis(["value"], axis=1) for fit in self.fits] for name in names
        }
        pairs = [(f"debiased {n}", f"raw {n}") for n in self.config.sessions]
        return compare(
            {name: mean_values(of) for name, of in fits.items()},
            pairs,
            ["value"],
            TestSettings(n_resamples=self.config.n_resamples),
            fits=fits if len(self.fits) > 1 else {},
        )

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Clicks per page of another ranking, a row per simulation, fold and size; ``within``: what
        users did lies in the interval; ``possible``: or in what clicks on unseen results add."""
        names = ["fit", "fold", "sessions", "logged", "estimate", "low", "high", "never shown",
                 "most", "asked"]  # fmt: skip
        frame = pd.DataFrame([{name: found[name] for name in names} for found in self.told])
        frame["within"] = (frame["low"] <= frame["asked"]) & (frame["asked"] <= frame["high"])
        frame["possible"] = (frame["low"] <= frame["asked"]) & (frame["asked"] <= frame["most"])
        return frame

    def mean_of(self, what: str, key: str, sessions: int) -> pd.DataFrame:
        """What clicks say of positions or labels, means over folds and simulations by ``key``."""
        found = [row for told in self.told if told["sessions"] == sessions for row in told[what]]
        return pd.DataFrame(found).groupby(key).mean()

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
