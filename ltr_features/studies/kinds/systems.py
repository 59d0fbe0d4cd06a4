"""Rank the candidates of every test query by one system, fold by fold, and evaluate the result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.errors import LetorWarning
from letor.evaluation import evaluate
from letor.files import write_json
from letor.fold_files import concatenate
from letor.folds import Fold, training_parts
from letor.measures import run_measure, tie_bounds
from letor.rankers.base import Ranker
from letor.rankers.registry import get_ranker
from letor.trec import read_run, run_of, write_run
from ltr_base.parallel import map_blocks
from ltr_base.quiet import ignored
from ltr_features.studies.kinds.ranking_config import SystemConfig
from ltr_features.studies.kinds.sections import RankerConfig
from ltr_features.studies.stages import StageResult
from ltr_features.studies.statistics.precision_recall import LEVELS, interpolated_precision

#: Reads a part of a fold, given the names of the fold and of the part ("train", "vali", "test").
ReadPart = Callable[[str, str], RankingData]

#: What equal scores leave open; systems of folders of before have none.
TIES = "ties.json"
#: Seconds on one core of a fit with the defaults, per million values of the training rows; what
#: was measured (MQ2008, and made rows with 136 and 700 columns) is a third to three times as much.
SECONDS = {
    "adarank": 0.5, "coordinate-ascent": 6.0, "lambdamart": 6.0, "listnet": 1.0, "rankboost": 1.0,
    "ranknet": 1.0, "xgboost": 12.0,
}  # fmt: skip


def write_system(
    path: Path,
    system: SystemConfig,
    folds: Sequence[Fold],
    read: ReadPart,
    ranker: RankerConfig | None,
    qrels: pd.DataFrame,
    measures: Sequence[str],
    tag: str,
    threads: int | None,
    *,
    core: Callable[[], AbstractContextManager[None]],
    on_fold: Callable[[int], None],
) -> None:
    """Write ``run.txt.gz`` (TREC run of all test queries), ``per_query.csv``,
    ``precision_by_recall.csv``, ``ties.json`` (the mean of the first measure with equal scores in
    the worst and in the best order) and, for a ranker, ``Fold1`` ... (the rankers),
    ``importance.csv`` (mean over folds) and ``remarks.json`` (a list for each fold) into the folder
    ``path``.

    Each fold's ranker is trained on its training rows and stopped on its validation rows; its
    test rows are scored once. Folds are processed in parallel, which keeps all cores busy, while
    threads within one small ranker would wait for each other.

    Args:
        core: context held while a fold is processed, in one thread.
        on_fold: called with the number of folds that are done.
    """

    def rank(fold: Fold) -> tuple[pd.DataFrame, Ranker | None]:
        with core():
            test = read(fold.name, "test")
            if ranker is None:
                return run_of(test, test.column(str(system.score))), None
            part = turned(folds, fold, system.turn)
            scores, fitted = _rank(path / fold.name, system, part, read, test, ranker)
            return run_of(test, scores), fitted

    runs, rankers = [], []
    for run, fitted in map_blocks(rank, folds, threads):
        runs.append(run)
        rankers += [] if fitted is None else [fitted]
        on_fold(len(runs))
    ranking = _in_evaluated_order(pd.concat(runs, ignore_index=True))
    write_run(ranking, path / "run.txt.gz", tag=tag)
    bounds = tie_bounds(run_measure(measures[0]))
    values = evaluate(qrels, ranking, [*measures, *bounds])
    worst, best = values.iloc[:, len(measures) :].mean().tolist()
    write_json(path / TIES, {"measure": measures[0], "worst": worst, "best": best})
    values = values.iloc[:, : len(measures)]
    values.to_csv(path / "per_query.csv", index_label="qid", lineterminator="\n")
    curve = pd.DataFrame({"recall": LEVELS, "precision": interpolated_precision(qrels, ranking)})
    curve.to_csv(path / "precision_by_recall.csv", index=False, lineterminator="\n")
    if rankers:
        write_json(path / "remarks.json", [one.remarks for one in rankers])
        importance = pd.concat([one.feature_importance() for one in rankers])
        table = importance.groupby("column", as_index=False)["gain"].sum()
        table["gain"] /= len(rankers)
        table = table.sort_values(["gain", "column"], ascending=[False, True])
        table.to_csv(path / "importance.csv", index=False, lineterminator="\n")


def system_values(made: StageResult, qrels: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Values of a system that :func:`write_system` wrote: float64, a row for each query of the
    judgements and a column for each measure. Measures that it did not write are computed from the
    run, so that a further measure trains no ranker again."""
    known = made.per_query()
    if set(measures) <= set(known.columns):
        return known[list(measures)]
    return evaluate(qrels, read_run(made.path / "run.txt.gz"), measures)


def _in_evaluated_order(run: pd.DataFrame) -> pd.DataFrame:
    """The rows in the order in which ``evaluate`` ranks them, including ties, so that the written
    run is exactly the ranking that is evaluated."""
    keyed = run.assign(query=pd.factorize(run["qid"])[0])
    by = ["query", "score", "docno"]
    return keyed.sort_values(by, ascending=[True, False, True], kind="stable")[run.columns]


def turned(folds: Sequence[Fold], fold: Fold, turn: int) -> Fold:
    """The fold with the parts that it trains and validates on rotated by ``turn`` places."""
    parts = [*training_parts(folds, fold), fold.validation]
    turn %= len(parts)
    parts = [*parts[turn:], *parts[:turn]]
    return Fold(fold.name, [q for part in parts[:-1] for q in part], parts[-1], fold.test)


def _rank(
    folder: Path,
    system: SystemConfig,
    fold: Fold,
    read: ReadPart,
    test: RankingData,
    described: RankerConfig,
) -> tuple[NDArray[np.float32], Ranker]:
    """Scores of the fold's test rows, and the ranker."""
    names = [
        c
        for c in test.column_names
        if c in system.columns or test.provenance[c]["family"] in system.columns
    ]
    train, validation = (read(fold.name, part).select_columns(names) for part in ("train", "vali"))
    if set(fold.train) != set(train.query_ids):  # the parts were rotated
        bare = [replace(part, document_ids=None, comments=None) for part in (train, validation)]
        known = concatenate(bare)
        train, validation = (known.select_queries(q) for q in (fold.train, fold.validation))
    kind = get_ranker(described.ranker)
    if not kind.same_in_files:
        train, validation = (replace(part, X=np.array(part.X)) for part in (train, validation))
    # Folds are trained side by side.
    seed = described.params.get("seed", 0) + system.seed
    options = {"num_threads": 1, **described.params, "seed": seed}
    own = {*described.params, *inspect.signature(kind).parameters}
    ranker = kind(**{name: value for name, value in options.items() if name in own})
    # Said once for all folds and fits, beside the verdict.
    with ignored(".*(learned nothing|has no effect without)", category=LetorWarning):
        ranker.fit(train, validation)
    ranker.save(folder)
    return ranker.predict(test.select_columns(names)), ranker
