"""Studies of the kind "clicks": rankers trained on simulated clicks, raw and debiased, beside those
trained on labels, by the number of sessions."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from letor.dataset import RankingData
from letor.fold_files import read_folds
from letor.folds import Fold
from ltr_features.studies.config import read_config
from ltr_features.studies.kinds.clicks_config import ClicksConfig
from ltr_features.studies.kinds.clicks_page import document
from ltr_features.studies.kinds.clicks_simulation import simulate_fold
from ltr_features.studies.kinds.clicks_tables import Results
from ltr_features.studies.kinds.given_files import digest_of_rows
from ltr_features.studies.runner import Planned
from ltr_features.studies.study import Contents, Study

#: What the numbers of a fold come from; a new layout of tables simulates nothing again.
_CODE = ("letor", "ltr_features.clicks", f"{__name__}_simulation")


class ClicksStudy(Study):
    """Writes ``tables.txt``, ``means.csv``, ``estimates.csv`` and ``per_query.csv`` beside the
    page."""

    config: ClicksConfig

    @classmethod
    def read(cls, path: Path, data: Path) -> ClicksConfig:
        return read_config(path, ClicksConfig)

    @cached_property
    def _data(self) -> tuple[RankingData, list[Fold]]:
        """The rows, with their numbers for document ids, and the folds."""
        folder = self.data / self.config.folder
        rows, folds = read_folds(folder, n_columns=self.config.n_columns)
        ids = np.array([f"row{row}" for row in range(len(rows))], dtype=object)
        return replace(rows, document_ids=ids), folds

    @cached_property
    def files(self) -> dict[str, Any]:
        return self.identity(self.data / self.config.folder)

    @property
    def seeds(self) -> dict[str, int]:
        return {"simulations": self.config.seed}

    def stages(self) -> list[Planned]:
        return [stage for _, stage in self._folds]

    @cached_property
    def _folds(self) -> list[tuple[dict[str, int], Planned]]:
        """For each simulation and fold: which they are, and their stage."""
        rows, folds = self._data
        told = {"title", "introduction", "notes", "expected", "repeats", "n_resamples"}
        settings = self.config.model_dump(mode="json", exclude=told)
        settings |= {"rows": digest_of_rows(rows)}
        found = []
        for fit, (number, fold) in product(range(self.config.repeats), enumerate(folds, start=1)):
            found.append(({"fit": fit, "fold": number}, self._stage(settings, fit, number, fold)))
        return found

    def _stage(self, settings: dict[str, Any], fit: int, number: int, fold: Fold) -> Planned:
        seed = self.config.seed + fit
        inputs = settings | {
            "seed": seed,
            "fold": [list(fold.train), list(fold.validation), list(fold.test)],
        }

        def make(folder: Path) -> None:
            values, told = simulate_fold(self.config, fold.split(self._data[0]), seed)
            values.to_csv(folder / "per_query.csv", float_format="%.17g")
            (folder / "clicks.json").write_text(json.dumps(told, indent=1), encoding="utf-8")

        sizes = ", ".join(f"{n:,}" for n in self.config.sessions)
        return Planned(
            f"simulations/{fit + 1}/fold{number}", inputs, make, f"{sizes} sessions", "simulation",
            sum(self.config.sessions), title=f"simulation {fit + 1}, fold {number}", code=_CODE,
        )  # fmt: skip

    def report(self) -> Contents:
        by_fit: dict[int, list[pd.DataFrame]] = {}
        told = []
        for place, stage in self._folds:
            done = self.done(stage)
            values = pd.read_csv(done.path / "per_query.csv", dtype={"qid": str})
            by_fit.setdefault(place["fit"], []).append(values.set_index("qid"))
            told += [place | found for found in done.json("clicks.json")]
        results = Results(self.config, [pd.concat(folds) for folds in by_fit.values()], told)
        return Contents(document(results), results.frames())
