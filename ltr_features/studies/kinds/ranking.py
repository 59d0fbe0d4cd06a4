"""Studies of the kind "ranking": columns, models and rankers on a text collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ltr_features.studies.kinds.ranking_checks import load_config
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.kinds.ranking_report import first_verdict, make_report
from ltr_features.studies.kinds.ranking_stages import RankingStages
from ltr_features.studies.page.report import Report
from ltr_features.studies.runner import Planned


class RankingStudy(RankingStages):
    """Candidates of every query with their columns, models out of fold, rankers on folds."""

    described = ExperimentConfig

    @classmethod
    def read(cls, path: Path, data: Path) -> ExperimentConfig:
        return load_config(path, data)

    @property
    def settings(self) -> dict[str, Any]:
        """Where the files of the collection lie does not matter; what they are does."""
        return super().settings | {"collection": dict(self.collection_stage.inputs)}

    @property
    def files(self) -> dict[str, Any]:
        """What was read, and the runs that the report is of."""
        runs = {
            output.split.name: {
                name: [
                    self.identity(fit.path / "run.txt.gz")
                    for fit in output.fits.get(name, [result])
                ]
                for name, result in output.systems.items()
            }
            for output in self.outputs
        }
        of_queries = {name: self.identity(file) for name, file in self.query_files.items()}
        return {"files": self.input_files(), "runs": runs, **of_queries}

    @property
    def seeds(self) -> dict[str, int]:
        return {"run": self.config.seed}

    def said_after(self, stage: Planned) -> str:
        """The verdict on the first comparison, once, where its systems were just made."""
        if stage.name != self.first_stages[-1].name or self.done(stage).reused:
            return ""
        return first_verdict(self)

    def report(self) -> Report:
        return make_report(self)
