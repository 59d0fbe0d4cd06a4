"""Findings of a ranking study in addition to its comparisons: precision by recall, hard queries,
learning curves, value of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np
import pandas as pd

from letor.files import read_json
from letor.rankers.registry import load_ranker
from letor.trec import read_run
from ltr_base.names import counted
from ltr_features.studies.kinds.ranking_config import ExperimentConfig, SystemConfig
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.kinds.systems import TIES, system_values
from ltr_features.studies.page.verdicts import TIED, value
from ltr_features.studies.stages import StageResult
from ltr_features.studies.statistics.column_value import retrained_value, shuffled_value
from ltr_features.studies.statistics.learning_curve import learning_curve
from ltr_features.studies.statistics.paired_tests import TIE
from ltr_features.studies.statistics.precision_recall import precision_recall
from ltr_features.studies.statistics.refits import mean_values
from ltr_features.studies.statistics.significance import TestSettings


def settings_of(config: ExperimentConfig) -> TestSettings:
    """Settings of the statistical tests of an experiment."""
    names = {field.name for field in fields(TestSettings)}
    return TestSettings(**config.evaluation.model_dump(include=names), seed=config.seed)


class Findings:
    """Findings on one split.

    Attributes:
        per_query: per-query values of each system, means over its fits.
        fits: per-query values of every fit of each system that learns from judgements.
        measure: the primary one. test: settings of the statistical tests.
    """

    def __init__(self, experiment: RankingStages, output: SplitOutputs) -> None:
        self.experiment, self.output, config = experiment, output, experiment.config
        every = self._values(output.fits)
        self.per_query = {name: mean_values(fits) for name, fits in every.items()}
        self.fits = {s.name: every[s.name] for s in config.all_systems if config.fits_of(s)}
        self.measure, self.test = config.evaluation.measures[0], settings_of(config)

    def _values(
        self, systems: Mapping[str, Sequence[StageResult]]
    ) -> dict[str, list[pd.DataFrame]]:
        """Values of the test queries in every fit of each system."""
        qrels = self.experiment.test_qrels(self.output.split)
        measures = self.experiment.config.evaluation.all_measures
        return {
            name: [system_values(fit, qrels, measures) for fit in fits]
            for name, fits in systems.items()
        }

    @cached_property
    def runs(self) -> dict[str, pd.DataFrame]:
        """The rankings of the systems on the first screen, of their first fits."""
        pairs = self.experiment.config.headline_pairs
        names = dict.fromkeys(name for pair in pairs for name in reversed(pair))
        return {name: read_run(self.output.first(name) / "run.txt.gz") for name in names}

    def rankers(self) -> Iterator[tuple[str, list[str]]]:
        """Name of the system and remarks of each trained ranker, those of all fits and folds."""
        for system in self.experiment.config.all_systems:
            if system.score is None:
                for fit in self.output.fits[system.name]:
                    for remarks in read_json(fit.path / "remarks.json"):
                        yield system.name, remarks

    def ties(self) -> Iterator[str]:
        """A remark on the systems of the verdict if the order of equal scores could undo it."""
        pair = self.experiment.config.pairs[0]
        means = [self.per_query[name][self.measure].mean() for name in pair]
        least = max(TIED, abs(means[0] - means[1]))
        paths = {name: self.output.first(name) / TIES for name in pair}
        found = {name: read_json(path) for name, path in paths.items() if path.is_file()}
        bounds = [
            f"{name} between {value(ties['worst'])} and {value(ties['best'])}"
            for name, ties in found.items()
            if ties["measure"] == self.measure and ties["best"] - ties["worst"] > least
        ]
        if bounds:
            yield (
                f"Documents of different grades have equal scores, whose order moves the mean "
                f"{self.measure} by more than the difference of the verdict: {', '.join(bounds)}; "
                "here the smaller document id goes first"
            )

    def precision_by_recall(self) -> tuple[pd.DataFrame | None, str]:
        """Precision at levels of recall of the systems on the first screen, over all their fits."""
        curves = {
            name: [
                pd.read_csv(fit.path / "precision_by_recall.csv")["precision"].to_numpy()
                for fit in self.output.fits[name]
            ]
            for name in self.runs
        }
        qrels = self.experiment.test_qrels(self.output.split)
        return precision_recall(qrels, curves, self.runs)

    def unchanged(self) -> Iterator[str]:
        """A remark on measures that are the same for every query in all compared systems, such as
        the recall of all candidates."""
        config = self.experiment.config
        compared = dict.fromkeys(name for pair in config.pairs for name in pair)
        first, *others = (self.per_query[name] for name in compared)
        measures = config.evaluation.measures
        same = [m for m in measures if all((o[m] - first[m]).abs().max() <= TIE for o in others)]
        if 0 < len(same) < len(measures):
            yield (
                f"{', '.join(same)}: the same for every query in all compared systems, as where a "
                "measure looks as deep as the candidates; leave it out of the measures, as "
                f"its {counted(len(config.pairs), 'comparison')} can find nothing and count in the "
                "correction of the others"
            )

    def fewer_queries(self) -> pd.DataFrame | None:
        """The first screen's comparisons by the number of training queries; None if the experiment
        has no ``learning_curve``."""
        if not self.output.smaller:
            return None
        pairs = self.experiment.config.headline_pairs
        names = {name for pair in pairs for name in pair}
        points = [(folds, self._values(systems)) for folds, systems in self.output.smaller]
        points.append((self.output.folds, {n: f for n, f in self.fits.items() if n in names}))
        return learning_curve(
            [(float(np.mean([len(fold.train) for fold in folds])), fits) for folds, fits in points],
            pairs,
            self.measure,
            self.test,
            untrained={name: self.per_query[name] for name in names - set(self.fits)},
            groups=self.experiment.groups,
        )

    def value_of_columns(self) -> pd.DataFrame | None:
        """The value of groups of columns to a system; None if no system's columns are valued."""
        config, measure = self.experiment.config, self.measure
        valued = config.evaluation.column_value
        whole = next((s for s in config.all_systems if s.name == valued), None)
        if whole is None or not config.variants:
            return None
        alone = [variant.name for variant, _, kind in config.variants if kind == "alone"]
        groups, kinds, pairs = zip(
            *(
                (group, kind, (whole.name, v.name) if kind == "left out" else (v.name, *alone))
                for v, group, kind in config.variants
                if kind != "alone"
            ),
            strict=True,
        )
        table = retrained_value(
            self.per_query, pairs, groups, kinds, measure, self.test,
            query_groups=self.experiment.groups, fits=self.fits,
        )  # fmt: skip
        mean = self.fits[whole.name][0][measure].mean()  # rankers of the first fit are shuffled
        lost = pd.Series(self._lost_by_shuffling(whole), name="value").rename_axis("group")
        shuffled = lost.reset_index().assign(kind="shuffled", significant=False)
        shuffled = shuffled.assign(**{"with": mean, "without": mean - shuffled["value"]})
        return pd.concat([table, shuffled], ignore_index=True)

    def _lost_by_shuffling(self, system: SystemConfig) -> dict[str, float]:
        """Loss by shuffling each group of columns of a system."""
        output = self.output
        folder = output.first(system.name)
        parts = [*self.experiment.test_rows(output).values()]
        family = {c: parts[0].provenance[c]["family"] for c in parts[0].column_names}
        return shuffled_value(
            [load_ranker(folder / fold.name) for fold in output.folds],
            parts,
            {g: lambda c, g=g: g in (c, family[c]) for g in system.columns},  # type: ignore[misc]
            self.experiment.test_qrels(output.split),
            self.measure,
            seed=self.experiment.config.seed,
        )
