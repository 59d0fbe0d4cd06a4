"""Comparisons of a bad run with a good one, and what their reports say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from folders import unwrapped

from ltr_features.studies.kinds.compare import (
    CompareConfig,
    CompareStudy,
)
from ltr_features.studies.statistics.significance import TestSettings

TEST = TestSettings(n_permutations=200, n_resamples=200)


def compare_files(runs: Sequence[Path], out: Path, **options) -> Path:
    return CompareStudy(CompareConfig(runs=tuple(runs), **options), out).run()


def compared(folder: Path, out: Path, *more: Path, **options) -> Path:
    """The report on a bad run, a good one, and others."""
    options = {"qrels": folder / "qrels.txt", "test": TEST} | options
    return compare_files([folder / "bad.run", folder / "good.run", *more], out, **options)


def command(folder: Path, *options: str) -> tuple[object, ...]:
    """The command on both runs, in the working folder."""
    runs = folder / "bad.run", folder / "good.run"
    return "compare", *runs, "--qrels", folder / "qrels.txt", "--out", "out", *options


def summary(report: Path) -> pd.DataFrame:
    return pd.read_csv(report / "comparisons.csv")


def told(report: Path) -> str:
    """The report as text, without line ends."""
    return unwrapped(report / "summary.txt")
