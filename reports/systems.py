"""Rank the candidates of every test query by one system, fold by fold, and evaluate it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.rankers.lambdamart import LambdaMART
from letor.trec import run_of, write_run
from reports.config import SystemConfig
from reports.measures import evaluate

#: Reads a part ("train", "vali", "test") of a fold, by their names.
ReadPart = Callable[[str, str], RankingData]


def write_system(
    path: Path,
    system: SystemConfig,
    folds: Sequence[str],
    read: ReadPart,
    ranker: Mapping[str, Any],
    qrels: pd.DataFrame,
    measures: Sequence[str],
    tag: str,
) -> None:
    """Write ``run.txt`` (TREC run of all test queries), ``per_query.csv`` and, for a ranker,
    ``Fold1`` ... (the rankers) and ``importance.csv`` (mean over folds) into the new folder
    ``path``.

    Each fold's ranker is trained on its training rows and stopped on its validation rows; its
    test rows are scored once.
    """
    path.mkdir()
    runs, importances = [], []
    for fold in folds:
        test = read(fold, "test")
        if system.score is not None:
            scores = test.column(system.score)
        else:
            scores, importance = _rank(path / fold, system, fold, read, test, ranker)
            importances.append(importance)
        runs.append(run_of(test, scores))
    run = pd.concat(runs, ignore_index=True)
    write_run(run, path / "run.txt", tag=tag)
    evaluate(qrels, run, measures).to_csv(path / "per_query.csv", index_label="qid")
    if importances:
        table = pd.concat(importances).groupby("column", as_index=False)["gain"].sum()
        table["gain"] /= len(importances)
        table = table.sort_values(["gain", "column"], ascending=[False, True])
        table.to_csv(path / "importance.csv", index=False)


def _rank(
    folder: Path,
    system: SystemConfig,
    fold: str,
    read: ReadPart,
    test: RankingData,
    parameters: Mapping[str, Any],
) -> tuple[NDArray[np.float32], pd.DataFrame]:
    """Scores of the fold's test rows and the importance of the ranker's columns."""
    names = [c for c in test.column_names if test.provenance[c]["family"] in system.columns]
    ranker = LambdaMART(**{**parameters, "seed": system.seed}).fit(
        read(fold, "train").select_columns(names), read(fold, "vali").select_columns(names)
    )
    ranker.save(folder)
    return ranker.predict(test.select_columns(names)), ranker.feature_importance()
