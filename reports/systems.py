"""Rank the candidates of every test query by one system, fold by fold, and evaluate it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from letor.folds import Fold
from letor.rankers.lambdamart import LambdaMART
from letor.trec import write_run
from reports.config import SystemConfig
from reports.measures import evaluate

if TYPE_CHECKING:
    from reports.experiment import Experiment


def make_system(
    experiment: Experiment,
    folds: list[Fold],
    system: SystemConfig,
    letor: Path,
    qrels: pd.DataFrame,
    measures: list[str],
    path: Path,
) -> None:
    """Write ``run.txt`` (TREC run of all test queries), ``per_query.csv`` and, for a ranker,
    ``Fold1`` ... (the rankers) and ``importance.csv`` (mean over folds) into the folder ``path``.

    Each fold's ranker is trained on its training rows and stopped on its validation rows; its
    test rows are scored once.
    """
    path.mkdir()
    runs, importances = [], []
    for fold in folds:
        test = experiment.read_rows(letor / fold.name, "test.txt")
        if system.score is not None:
            scores = test.column(system.score)
        else:
            # The columns of a family are told by their provenance.
            names = [
                c for c in test.column_names if test.provenance[c]["family"] in system.columns
            ]
            parameters = {**experiment.config.ranker, "seed": system.seed}
            ranker = LambdaMART(**parameters).fit(
                experiment.read_rows(letor / fold.name, "train.txt").select_columns(names),
                experiment.read_rows(letor / fold.name, "vali.txt").select_columns(names),
            )
            ranker.save(path / fold.name)
            importances.append(ranker.feature_importance())
            scores = ranker.predict(test.select_columns(names))
        runs.append(
            pd.DataFrame(
                {
                    "qid": np.array(test.query_ids, dtype=object)[test.query_index],
                    "docno": np.array(list(test.document_ids), dtype=object),
                    "score": scores.astype(np.float64),
                }
            )
        )
    run = pd.concat(runs, ignore_index=True)
    write_run(run, path / "run.txt", tag=path.name.strip(".").split(".")[0])
    evaluate(qrels, run, measures).to_csv(path / "per_query.csv", index_label="qid")
    if importances:
        table = pd.concat(importances).groupby("column", as_index=False)["gain"].sum()
        table["gain"] /= len(importances)
        table.sort_values(["gain", "column"], ascending=[False, True]).to_csv(
            path / "importance.csv", index=False
        )
