"""Studies of the kind "ranking": columns, models and rankers on a text collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ltr_features.studies.kinds.ranking_checks import load_config
from ltr_features.studies.kinds.ranking_config import ExperimentConfig
from ltr_features.studies.kinds.ranking_report import first_verdict, make_report
from ltr_features.studies.kinds.ranking_stages import RankingStages
from ltr_features.studies.page.report import Report
from ltr_features.studies.stages import Planned


class RankingStudy(RankingStages):
    """A study of candidates with their columns, models scored out of fold, and rankers on folds."""

    described = ExperimentConfig

    @classmethod
    def read(cls, path: Path, data: Path) -> ExperimentConfig:
        return load_config(path, data)

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration, with identities of the collection's files instead of their paths."""
        return super().settings | {"collection": dict(self.collection_stage.inputs)}

    @property
    def files(self) -> dict[str, Any]:
        """Identities of the input files and of the runs that the report is based on."""
        runs = {
            output.split.name: {
                name: [self.identity(fit.path / "run.txt.gz") for fit in fits]
                for name, fits in output.fits.items()
            }
            for output in self.outputs
        }
        query_files = {name: self.identity(file) for name, file in self.query_files.items()}
        return {"files": self.input_files(), "runs": runs, **query_files}

    @property
    def seeds(self) -> dict[str, int]:
        return {"run": self.config.seed}

    def message_after(self, stage: Planned) -> str:
        """The verdict on the first comparison, shown once, when its systems have just been made.
        The folds of all splits are checked before a model is trained for the first one."""
        if stage.name == self.index_stage.name:
            self.check_texts()
            self.check_grades()
            self.given_classes  # noqa: B018  # told before columns are computed
        if stage.name == self.columns_stage.name:
            self.check_folds()
        if not stage.first_result or self.done(stage).reused:
            return ""
        return first_verdict(self)

    def report(self) -> Report:
        return make_report(self)
