"""Run a comparison of rankers: a stage per fold and ranker, then tables."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pandas as pd

from letor.dataset import RankingData
from letor.evaluation import per_query
from letor.fold_files import read_folds
from letor.folds import Fold, has_relevant, k_fold
from letor.measures import parse_measure
from letor.rankers.registry import get_ranker
from letor.tuning import GRIDS, tune
from ltr_features.studies.config import refitted, slug
from ltr_features.studies.kinds.given_texts import read_query_groups
from ltr_features.studies.kinds.letor_config import (
    RankerConfig,
    SchemeConfig,
    StudyConfig,
    load_study,
)
from ltr_features.studies.kinds.letor_page import write_page
from ltr_features.studies.kinds.letor_tables import Results, make_tables, write_tables
from ltr_features.studies.manifest import write_manifest
from ltr_features.studies.progress import Reporter
from ltr_features.studies.runner import Planned, StageRunner

#: What the numbers of a ranker come from; a new layout of tables trains nothing again.
_CODE = ("letor", "ltr_features.studies.kinds.letor")


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
        The folder with ``report.html``, ``tables.txt``, ``results.json``, ``means.csv``,
        ``errors.csv`` (standard errors), ``folds.csv``, ``comparisons.csv``, ``per_query.csv``,
        ``times.csv`` and ``manifest.json``.

    Raises:
        InputError: the file, the data or the output folder cannot be used.
    """
    del threads
    config = load_study(path)
    folder = Path(data) / config.folder
    rows, official = read_folds(folder, n_columns=config.n_columns)
    runner = StageRunner(out, reporter)
    files = runner.stages.digests.identity(folder)
    study = _Study(config, rows, official, files, runner, Path(data))
    planned = [stage for _, stage in study.stages()]
    if dry_run:
        print(f"{config.title}\n{len(rows):,} rows, {rows.n_queries:,} queries")
        print(runner.plan_text(planned))
        return Path(out) / "report"
    with runner.running(planned, "report"):
        return study.run()


@dataclass
class _Study:
    config: StudyConfig
    rows: RankingData
    official: list[Fold]
    files: dict[str, Any]
    runner: StageRunner
    data: Path

    def __post_init__(self) -> None:
        self._groups_file, self._groups = {}, None
        if self.config.groups is not None:
            path = self.data / self.config.groups
            self._groups_file = {"groups": self.runner.stages.digests.identity(path)}
            self._groups = read_query_groups(path, self.rows.all_query_ids)
        self._digest = _digest(self.rows)
        self._parts: tuple[Fold, tuple[RankingData, RankingData, RankingData]] | None = None

    def stages(self) -> Iterator[tuple[dict[str, Any], Planned]]:
        """For each scheme, fit, fold and ranker: which they are, and their stage."""
        for scheme in self.config.schemes:
            for fit in range(self.config.repeats):
                folds = _folds(scheme, self.rows, self.official, fit)
                rankers = [r for r in self.config.rankers if not fit or _varies(scheme, r)]
                for (number, fold), ranker in product(enumerate(folds, start=1), rankers):
                    place = {"scheme": scheme.name, "fold": number, "ranker": ranker.label}
                    yield place | {"fit": fit}, self._stage(scheme, number, fold, ranker, fit)

    def run(self) -> Path:
        results = []
        for place, stage in self.stages():
            done = self.runner.done(stage)
            found = {
                key: value
                for file in ("result.json", "times.json")
                for key, value in json.loads((done.path / file).read_text("utf-8")).items()
            }
            results.append(
                found | place | {"key": done.key, "per_query": done.path / "per_query.csv"}
            )
        settings = self.config.model_dump(mode="json")

        def make(folder: Path) -> None:
            folder.mkdir()
            _write_report(self.config, results, self._groups, folder)
            write_manifest(
                folder,
                title=self.config.title,
                settings=settings,
                inputs={**self.files, **self._groups_file},
                seeds={scheme.name: scheme.seed for scheme in self.config.schemes},
                timed=("tables.txt", "times.csv"),
            )

        keys = [result["key"] for result in results]
        inputs = {"results": keys, "config": settings, "files": self.files, **self._groups_file}
        return self.runner.done(Planned("report", inputs, make, "the report", "report")).path

    def _stage(
        self, scheme: SchemeConfig, number: int, fold: Fold, ranker: RankerConfig, fit: int
    ) -> Planned:
        config = self.config
        ranker = ranker.model_copy(update={"params": _params(ranker, fit)})
        grid = GRIDS[ranker.ranker] if ranker.grid is None else ranker.grid
        inputs = {
            "rows": self._digest,
            "fold": [list(fold.train), list(fold.validation), list(fold.test)],
            "ranker": ranker.ranker,
            "params": ranker.params,
            "grid": grid,
            "tune_measure": config.tune_measure,
            "measures": config.measures,
        }

        def make(folder: Path) -> None:
            folder.mkdir(parents=True, exist_ok=True)
            if self._parts is None or self._parts[0] is not fold:
                self._parts = (fold, fold.split(self.rows))
            _train(config, ranker, self._parts[1], folder)

        n_trials = prod(len(values) for name, values in grid.items() if name not in ranker.params)
        again = f".refit-{fit}" if fit else ""
        name = f"{slug(scheme.name)}{again}/fold{number}/{slug(ranker.label)}"
        return Planned(
            f"rankers/{name}", inputs, make, f"{ranker.ranker}, {n_trials} trials", ranker.label,
            n_trials, title=name, code=_CODE,
        )  # fmt: skip


def _folds(scheme: SchemeConfig, rows: RankingData, official: list[Fold], fit: int) -> list[Fold]:
    if scheme.official:
        return official
    strata = has_relevant(rows)
    return k_fold(rows.all_query_ids, scheme.k, seed=scheme.seed + fit, strata=strata)


def _params(ranker: RankerConfig, fit: int) -> dict[str, Any]:
    return refitted(get_ranker(ranker.ranker), ranker.params, fit)


def _varies(scheme: SchemeConfig, ranker: RankerConfig) -> bool:
    """Whether another fit differs from the first."""
    return not scheme.official or _params(ranker, 1) != ranker.params


def _digest(rows: RankingData) -> str:
    """Says that rows are the same."""
    missing = None if rows.missing is None else rows.missing.to_json()
    named = [list(rows.query_ids), list(rows.column_names), missing]
    digest = hashlib.sha256(json.dumps(named).encode())
    for array in (rows.X, rows.y, rows.query_index):
        digest.update(array.tobytes())
    return digest.hexdigest()


def _train(
    config: StudyConfig,
    ranker: RankerConfig,
    parts: tuple[RankingData, RankingData, RankingData],
    folder: Path,
) -> None:
    train, valid, test = parts
    start = time.perf_counter()
    tuned = tune(
        ranker.ranker, train, valid, grid=ranker.grid, measure=config.tune_measure,
        fixed=ranker.params,
    )  # fmt: skip
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
    }
    times = {"seconds_per_trial": seconds / len(tuned.trials)}
    for file, found in (("result.json", result), ("times.json", times)):
        (folder / file).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _write_report(
    config: StudyConfig,
    results: list[dict[str, Any]],
    groups: dict[str, str] | None,
    folder: Path,
) -> None:
    frames = []
    for result in results:
        values = pd.read_csv(result["per_query"], dtype={"qid": str})
        for column, key in enumerate(("scheme", "fit", "fold", "ranker")):
            values.insert(column, key, result[key])
        frames.append(values)
    found = Results(results, pd.concat(frames, ignore_index=True), groups)
    tables = make_tables(config, found)
    write_tables(config, found, tables, folder)
    write_page(config, found, tables, folder / "report.html")
