"""Studies of the kind "clicks": rankers or matching models trained on simulated clicks, raw and
debiased, for several numbers of sessions, compared with those trained on labels."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from letor.files import write_json
from letor.folds import Fold
from ltr_features.studies.config import slug
from ltr_features.studies.identity import files_within
from ltr_features.studies.kinds.clicks_config import ClicksConfig
from ltr_features.studies.kinds.clicks_learners import Learners, MatchingLearners, RankerLearners
from ltr_features.studies.kinds.clicks_report import Results, document
from ltr_features.studies.kinds.clicks_simulation import simulate_fold
from ltr_features.studies.stages import Planned
from ltr_features.studies.study import Contents, Study

#: Code that computes the numbers of a fold; changes to the layout of tables repeat no simulation.
_CODE = (
    "letor", "ssi_models", "ltr_features.clicks", "ltr_features.columns", "ltr_features.sources",
    "ltr_features.text", "ltr_features.feature_table", f"{__name__}_simulation",
    f"{__name__}_learners",
)  # fmt: skip


class ClicksStudy(Study):
    """A study that writes ``tables.txt``, ``means.csv``, ``comparisons.csv``, ``estimates.csv`` and
    ``per_query.csv`` with the page."""

    described = ClicksConfig
    config: ClicksConfig

    @cached_property
    def _learners(self) -> Learners:
        if self.config.matching is not None:
            digests = self.digests
            return MatchingLearners(self.config, self.config.matching, self.data, digests)
        return RankerLearners(self.config, self.data / str(self.config.folder))

    @cached_property
    def files(self) -> dict[str, Any]:
        if self.config.folder is None:
            return dict(files_within(dict(self._learners.settings)))
        return self.identity(self.data / self.config.folder)

    @property
    def seeds(self) -> dict[str, int]:
        return {"simulations": self.config.seed}

    def stages(self) -> list[Planned]:
        return [stage for places in self._folds.values() for stage in places.values()]

    @cached_property
    def _folds(self) -> dict[str, dict[tuple[int, int], Planned]]:
        """The stages of each learner, by numbers of the simulation and of the fold."""
        report_only = "title", "introduction", "notes", "expected", "repeats", "n_resamples"
        # Learners say by which files and models; other folds and learners change nothing.
        of_learners: Any = {"matching": {"collection", "models", "tested"}}
        left_out = of_learners | dict.fromkeys(("folder", "n_columns", *report_only), True)
        settings = self.config.model_dump(mode="json", exclude=left_out)
        settings |= self._learners.settings
        folds = self._learners.folds
        places = list(product(range(self.config.repeats), range(1, 1 + len(folds))))
        return {
            name: {
                (fit, number): self._stage(settings, name, fit, number, folds[number - 1])
                for fit, number in places
            }
            for name in self._learners.described
        }

    def _stage(
        self, settings: dict[str, Any], name: str, fit: int, number: int, fold: Fold
    ) -> Planned:
        seed = self.config.seed + fit
        inputs = settings | {
            "learner": self._learners.described[name],
            "seed": seed,
            "fold": [list(fold.train), list(fold.validation), list(fold.test)],
        }

        def make(folder: Path) -> None:
            learner = self._learners.learner(name, fold, seed)
            values, facts = simulate_fold(self.config, learner, seed)
            values.to_csv(folder / "per_query.csv", float_format="%.17g", lineterminator="\n")
            write_json(folder / "clicks.json", facts)

        sizes = ", ".join(f"{n:,}" for n in self.config.sessions)
        return Planned(
            f"simulations/{slug(name)}/{fit + 1}/fold{number}", inputs, make, f"{sizes} sessions",
            f"simulation {name}", sum(self.config.sessions),
            title=f"{name}, simulation {fit + 1}, fold {number}",
            code=(*_CODE, *self._learners.packages),
        )  # fmt: skip

    def report(self) -> Contents:
        every = [self._results(name, stages) for name, stages in self._folds.items()]
        frames = [results.frames() for results in every]
        tables = {
            name: pd.concat([tables[name] for tables in frames], ignore_index=True)
            for name in frames[0]
        }
        return Contents(document(every), tables)

    def _results(self, name: str, stages: dict[tuple[int, int], Planned]) -> Results:
        by_fit: dict[int, list[pd.DataFrame]] = {}
        facts = []
        for (fit, number), stage in stages.items():
            done = self.done(stage)
            by_fit.setdefault(fit, []).append(done.per_query())
            facts += [{"fit": fit, "fold": number} | found for found in done.json("clicks.json")]
        fits = [pd.concat(folds) for folds in by_fit.values()]
        every = self._learners
        return Results(
            self.config, fits, facts, name, every.production, every.groups, every.remarks
        )
