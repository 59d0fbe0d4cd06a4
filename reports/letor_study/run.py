"""Run a comparison of rankers: a stage per fold and ranker, then tables."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pandas as pd

from letor.dataset import RankingData
from letor.fold_files import read_folds
from letor.folds import Fold, has_relevant, k_fold
from letor.measures import parse_measure, per_query
from letor.tuning import GRIDS, tune
from reports.config import slug
from reports.letor_study.config import RankerConfig, SchemeConfig, StudyConfig, load_study
from reports.letor_study.tables import Results, write_tables
from reports.progress import Reporter
from reports.stages import Stages

#: What the numbers of a ranker come from; a new layout of tables trains nothing again.
_CODE = ("letor", "reports.letor_study.run")


def run_letor_study(
    path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    threads: int | None = None,
    reporter: Reporter | None = None,
    dry_run: bool = False,
) -> Path:
    """Run the experiment of a TOML file of the kind "letor".

    In each fold every ranker's parameters are chosen on the validation queries, and the ranker
    that was chosen scores the test queries once. A run that was killed goes on where it stopped.

    Args:
        path: the file. data: folder that the data set's folder is in.
        out: folder for all outputs.
        threads: accepted like every runner's; rankers train on one thread.
        reporter: where progress goes. dry_run: print the plan, run nothing.

    Returns:
        The folder with ``tables.txt``, ``results.json``, ``means.csv``, ``folds.csv``,
        ``comparisons.csv`` and ``per_query.csv``.

    Raises:
        InputError: the file, the data or the output folder cannot be used.
    """
    del threads
    config = load_study(path)
    reporter = reporter or Reporter()
    stages = Stages(out)
    stages.check(["report"])
    folder = Path(data) / config.folder
    rows, official = read_folds(folder, n_columns=config.n_columns)
    schemes = [(scheme, _folds(scheme, rows, official)) for scheme in config.schemes]
    if dry_run:
        print(plan_text(config, rows, [(scheme.name, len(folds)) for scheme, folds in schemes]))
        return Path(out) / "report"
    digest = _digest(rows)
    results = []
    total = sum(len(folds) for _, folds in schemes) * len(config.rankers)
    with reporter.running(total):
        for scheme, folds in schemes:
            for number, fold in enumerate(folds, start=1):
                parts = fold.split(rows)
                for ranker in config.rankers:
                    name = f"{slug(scheme.name)}/fold{number}/{slug(ranker.label)}"
                    results.append(
                        _ranker_stage(stages, reporter, config, name, ranker, fold, parts, digest)
                        | {"scheme": scheme.name, "fold": number, "ranker": ranker.label}
                    )
                    reporter.advance()
    stage = stages.run(
        "report",
        {
            "results": [result["key"] for result in results],
            "config": config.model_dump(mode="json"),
        },
        lambda target: _report(config, results, target),
    )
    return stage.path


def plan_text(config: StudyConfig, rows: RankingData, schemes: list[tuple[str, int]]) -> str:
    """The data, the folds, and the rankers that are tuned and tested in each."""
    lines = [config.title, f"{len(rows):,} rows, {rows.n_queries:,} queries"]
    for name, n_folds in schemes:
        lines.append(f"{name}:")
        lines += [
            f"  {ranker.label}: {ranker.ranker}, {n_folds} folds" for ranker in config.rankers
        ]
    return "\n".join(lines)


def _folds(scheme: SchemeConfig, rows: RankingData, official: list[Fold]) -> list[Fold]:
    if scheme.official:
        return official
    strata = has_relevant(rows)
    return k_fold(list(rows.query_ids), scheme.k, seed=scheme.seed, strata=strata)


def _digest(rows: RankingData) -> str:
    """Says that rows are the same."""
    digest = hashlib.sha256(json.dumps([list(rows.query_ids), list(rows.column_names)]).encode())
    for array in (rows.X, rows.y, rows.query_index):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _ranker_stage(
    stages: Stages,
    reporter: Reporter,
    config: StudyConfig,
    name: str,
    ranker: RankerConfig,
    fold: Fold,
    parts: tuple[RankingData, RankingData, RankingData],
    digest: str,
) -> dict[str, Any]:
    inputs = {
        "rows": digest,
        "fold": [list(fold.train), list(fold.validation), list(fold.test)],
        "ranker": ranker.ranker,
        "params": ranker.params,
        "grid": GRIDS[ranker.ranker] if ranker.grid is None else ranker.grid,
        "tune_measure": config.tune_measure,
        "measures": config.measures,
    }

    def make(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _train(config, ranker, parts, folder)

    with reporter.stage(name) as outcome:
        stage = stages.run(f"rankers/{name}", inputs, make, code=_CODE)
        outcome.append("reused" if stage.reused else stage.reason)
    result = json.loads((stage.path / "result.json").read_text(encoding="utf-8"))
    return {**result, "key": stage.key, "per_query": stage.path / "per_query.csv"}


def _train(
    config: StudyConfig,
    ranker: RankerConfig,
    parts: tuple[RankingData, RankingData, RankingData],
    folder: Path,
) -> None:
    train, valid, test = parts
    start = time.perf_counter()
    tuned = tune(
        ranker.ranker, train, valid, grid=ranker.grid, measure=config.tune_measure, **ranker.params
    )
    seconds = time.perf_counter() - start
    definitions = [parse_measure(text) for text in config.measures.values()]
    values = per_query(test, tuned.ranker.predict(test), definitions)
    values.columns = pd.Index(list(config.measures))
    values.to_csv(folder / "per_query.csv", float_format="%.17g")
    tuned.trials.to_csv(folder / "trials.csv", index=False)
    result = {
        "chosen": tuned.parameters,
        "validation": float(tuned.trials["value"].max()),
        "trials": len(tuned.trials),
        "seconds_per_trial": seconds / len(tuned.trials),
    }
    text = json.dumps(result, indent=1)
    (folder / "result.json").write_text(text + "\n", encoding="utf-8")


def _report(config: StudyConfig, results: list[dict[str, Any]], folder: Path) -> None:
    folder.mkdir()
    frames = []
    for result in results:
        values = pd.read_csv(result["per_query"], dtype={"qid": str})
        for column, key in enumerate(("scheme", "fold", "ranker")):
            values.insert(column, key, result[key])
        frames.append(values)
    write_tables(config, Results(results, pd.concat(frames, ignore_index=True)), folder)
