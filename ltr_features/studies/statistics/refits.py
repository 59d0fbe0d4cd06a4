"""Training noise: how much mean differences vary when systems are fitted again, with other seeds
and on other folds, and what that adds to their standard errors and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.errors import InputError
from ltr_features.studies.statistics.paired_tests import check_queries


@dataclass(frozen=True, eq=False)
class Refits:
    """Variation of the mean difference of each comparison over refits.

    Attributes:
        n_fits: int64 [k], number of paired fits R.
        spread: float64 [k], standard deviation of the mean difference over them; NaN for one fit.
    """

    n_fits: NDArray[np.int64]
    spread: NDArray[np.float64]

    @property
    def error(self) -> NDArray[np.float64]:
        """float64 [k]: standard error of the mean over fits; 0 where unknown."""
        return np.nan_to_num(self.spread) / np.sqrt(self.n_fits)

    def total_error(
        self, error: NDArray[np.float64], freedom: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Standard error over queries and fits together, and its degrees of freedom by Welch and
        Satterthwaite, both float64 [k]. Tests based on it hold their level unless training noise
        dominates and fits are few: in simulations at level .05 with three fits the actual level was
        .058 if both parts were equal, .075 if training noise had four times the variance; with two
        fits .070 and .110, with five .062 in the latter case.

        Args:
            error, freedom: standard error over queries, float64 [k], and its degrees of freedom.
        """
        total = error**2 + self.error**2
        parts = error**4 / freedom + self.error**4 / np.maximum(self.n_fits - 1, 1)
        together = np.divide(total**2, parts, out=np.full(len(total), freedom), where=parts > 0)
        return np.sqrt(total), together

    def widened(
        self,
        mean: NDArray[np.float64],
        interval: NDArray[np.float64],
        error: NDArray[np.float64],
        freedom: float,
        confidence: float,
    ) -> NDArray[np.float64]:
        """float64 [k, 2]: intervals over queries, stretched about the mean by the same factor as
        the t-interval when training noise is added; unchanged where there is no training noise."""
        from scipy.stats import t

        level = (1 + confidence) / 2
        total, together = self.total_error(error, freedom)
        plain, half = t.ppf(level, freedom) * error, t.ppf(level, together) * total
        stretch = np.divide(half, plain, out=np.ones_like(half), where=plain > 0)[:, None]
        stretch = np.maximum(stretch, 1)  # with few queries t's quantile falls by more
        centre = mean[:, None]
        constant = centre + np.outer(half, [-1.0, 1.0])  # no error over queries to stretch
        wide = np.where(plain[:, None] == 0, constant, centre + (interval - centre) * stretch)
        return np.where((self.error > 0)[:, None], wide, interval)


def over_fits(
    per_query: Mapping[str, pd.DataFrame],
    fits: Mapping[str, Sequence[pd.DataFrame]],
    pairs: Sequence[tuple[str, str]],
    measures: Sequence[str],
) -> Refits:
    """Variation over fits of the mean difference of each pair in each measure, in that order.

    Args:
        per_query: values by query of each system. fits: the same of each fit of the trained
            systems; a system fitted once, or without an entry, counts as the same in every fit, so
            the variation known of the other one is in the result.

    Raises:
        InputError: fits are of no system or no list, have values of different queries, or are not
            what the system's values are the means of.
    """
    for name, frames in fits.items():
        _check_fits(name, frames, per_query, measures)
    several = {name: frames for name, frames in fits.items() if len(frames) > 1}
    columns, counts, spreads = list(measures), [], []
    for pair in pairs:
        n = min((len(several[name]) for name in pair if name in several), default=1)
        counts += [n] * len(columns)
        if n < 2:
            spreads += [float("nan")] * len(columns)
            continue
        system, baseline = (
            np.stack([f[columns].mean() for f in several.get(name, [per_query[name]] * n)[:n]])
            for name in pair
        )
        spreads += (system - baseline).std(axis=0, ddof=1).tolist()
    return Refits(np.array(counts, dtype=np.int64), np.array(spreads))


def _check_fits(
    name: str,
    frames: Sequence[pd.DataFrame],
    per_query: Mapping[str, pd.DataFrame],
    measures: Sequence[str],
) -> None:
    """Check the fits of a system, see :func:`over_fits`."""
    if name not in per_query:
        raise InputError(f"fits of an unknown system {name!r}; known are {', '.join(per_query)}")
    if isinstance(frames, pd.DataFrame):
        raise InputError(f"fits of system {name!r} must be a list with a frame for each fit")
    for frame in frames:
        check_queries(f"a fit of system {name!r}", frame.index, per_query[name].index)
    if not frames:
        return
    means = mean_values(frames)
    values = per_query[name].loc[means.index]
    if not np.allclose(means[list(measures)], values[list(measures)], equal_nan=True):
        raise InputError(f"the values of system {name!r} must be the means over its fits by query")


def mean_values(fits: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Per-query means over the fits."""
    queries = fits[0].index
    values = np.mean([fit.loc[queries].to_numpy(np.float64) for fit in fits], axis=0)
    return pd.DataFrame(values, index=queries, columns=fits[0].columns)


def spreads(fits: Sequence[pd.DataFrame]) -> pd.Series:
    """Standard deviation of each column's mean over the fits; NaN for one fit."""
    return pd.DataFrame([fit.mean() for fit in fits]).std(ddof=1)


def with_spread(mean: str, spread: float, decimals: int = 3) -> str:
    """A mean with its spread over fits in brackets: "0.412 (0.003)"; the mean alone for one fit."""
    return mean if np.isnan(spread) else f"{mean} ({spread:.{decimals}f})"


def spread_note(repeats: int) -> str:
    """The end of a caption on the brackets of :func:`with_spread`."""
    return (
        f"; in brackets, their spread over {repeats} fits (standard deviation)"
        if repeats > 1
        else ""
    )


def repeats_note(repeats: int) -> str:
    """Note on how often the models of a table were fitted, and what its values are."""
    if repeats == 1:
        return _fitted_once("Models were", "seeds")
    return (
        f"Models that learn from judgements were fitted {_times(repeats)} with different seeds, on "
        "the same training and test queries: values are per-query means over the fits, with their "
        "spread (standard deviation over the fits) in brackets. Expectations are tested over "
        "queries and over fits, and the larger p-value counts. Weights, seconds and training "
        "figures are those of the first fit."
    )


def fits_note(fits: Mapping[str, Sequence[pd.DataFrame]], *, same_folds: bool = False) -> str:
    """Note for a report on how often systems were fitted, and what their values are.

    Args:
        fits: values of each fit of the trained systems. same_folds: whether all are on the same
            folds, as in splits by time; else each fit draws its own.
    """
    by_count: dict[int, list[str]] = {}
    for name, frames in fits.items():
        by_count.setdefault(len(frames), []).append(name)
    if max(by_count, default=1) == 1:
        return _fitted_once("Every system was", "seeds" if same_folds else "seeds and folds")
    most = max(by_count, key=lambda count: len(by_count[count]))
    others = "; ".join(
        f"{', '.join(f'“{name}”' for name in names)}: {_times(count)}"
        for count, names in sorted(by_count.items())
        if count != most
    )
    folds = "the same folds" if same_folds else "different folds"
    return (
        f"Systems that learn from judgements were fitted {_times(most)}"
        f"{f' ({others})' if others else ''}, each time with {folds} and different seeds "
        "of rankers and trained columns; values are per-query means over the fits. Columns that "
        "learn only from texts are the same in all fits. The rankers, rankings and columns shown "
        "below are those of the first fit."
    )


def _fitted_once(what: str, others: str) -> str:
    return (
        f"{what} fitted once, so it is unknown how much the numbers would change with other "
        f"{others} (repeats = 3 in the experiment file shows it)."
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
