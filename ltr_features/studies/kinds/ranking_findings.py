"""What a ranking study finds out beside its comparisons: hard queries, systems with fewer training
queries, what columns are worth."""

from __future__ import annotations

import numpy as np
import pandas as pd

from letor.rankers.registry import load_ranker
from letor.trec import read_run
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.stages import StageResult
from ltr_features.studies.statistics.column_value import retrained_value, shuffled_value
from ltr_features.studies.statistics.hard_queries import hard_query_table
from ltr_features.studies.statistics.learning_curve import learning_curve
from ltr_features.studies.statistics.precision_recall import precision_recall
from ltr_features.studies.statistics.significance import TestSettings


def values_of(result: StageResult) -> pd.DataFrame:
    """Values by query of one fit of a system."""
    path = result.path / "per_query.csv"
    return pd.read_csv(path, dtype={"qid": str}, keep_default_na=False).set_index("qid")


def precision_by_recall(
    experiment: RankingStages, output: SplitOutputs
) -> tuple[pd.DataFrame | None, str]:
    """Of the systems that the first screen compares, over every fit."""
    pairs = experiment.config.told_pairs
    names = dict.fromkeys(name for pair in pairs for name in reversed(pair))
    runs = {
        name: [
            read_run(fit.path / "run.txt.gz")
            for fit in output.fits.get(name, [output.systems[name]])
        ]
        for name in names
    }
    return precision_recall(experiment.test_qrels(output.split), runs)


def hard_queries(
    experiment: RankingStages, per_query: dict[str, pd.DataFrame], test: TestSettings
) -> pd.DataFrame | None:
    """The gains on hard queries; None if the experiment asks for none."""
    evaluation = experiment.config.evaluation
    if evaluation.hard_baseline is None:
        return None
    values = {name: frame[evaluation.hard_measure] for name, frame in per_query.items()}
    control = evaluation.hard_control
    return hard_query_table(
        values[evaluation.hard_baseline],
        {name: values[name] for name in evaluation.hard_systems},
        selectors={name: values[name] for name in evaluation.hard_selectors},
        control=None if control is None else values[control],
        thresholds=evaluation.hard_thresholds,
        quantiles=evaluation.hard_quantiles,
        settings=test,
        groups=experiment.groups,
    )


def fewer_queries(
    experiment: RankingStages,
    output: SplitOutputs,
    per_query: dict[str, pd.DataFrame],
    fits: dict[str, list[pd.DataFrame]],
    test: TestSettings,
) -> pd.DataFrame | None:
    """The first screen's comparisons by the number of training queries; None if the experiment asks
    for none."""
    if not output.smaller:
        return None
    config = experiment.config
    names = {name for pair in config.told_pairs for name in pair}
    untrained = {name: per_query[name] for name in names - set(fits)}
    found = [
        (folds, {name: [values_of(fit) for fit in of] for name, of in systems.items()})
        for folds, systems in output.smaller
    ]
    points = [
        (
            float(np.mean([len(fold.train) for fold in folds])),
            {name: frames for name, frames in values.items() if name in names},
        )
        for folds, values in [*found, (output.folds, fits)]
    ]
    measure = config.evaluation.measures[0]
    return learning_curve(
        points, config.told_pairs, measure, test, untrained=untrained, groups=experiment.groups
    )


def value_of_columns(
    experiment: RankingStages,
    output: SplitOutputs,
    per_query: dict[str, pd.DataFrame],
    fits: dict[str, list[pd.DataFrame]],
    test: TestSettings,
) -> pd.DataFrame | None:
    """What groups of columns are worth to a system; None if the experiment asks for none."""
    config = experiment.config
    variants = config.variants
    whole = next((s for s in config.all_systems if s.name == config.evaluation.column_value), None)
    if whole is None or not variants:
        return None
    measure = config.evaluation.measures[0]
    alone = next(variant.name for variant, _, kind in variants if kind == "alone")
    valued = [
        (group, kind, (whole.name, v.name) if kind == "left out" else (v.name, alone))
        for v, group, kind in variants
        if kind != "alone"
    ]
    groups, kinds, pairs = zip(*valued, strict=True)
    table = retrained_value(
        per_query, pairs, groups, kinds, measure, test, query_groups=experiment.groups, fits=fits
    )
    folder = output.systems[whole.name].path
    parts = [experiment.part(output.split, fold.name, "test") for fold in output.folds]
    family = {c: parts[0].provenance[c]["family"] for c in parts[0].column_names}
    lost = shuffled_value(
        [load_ranker(folder / fold.name) for fold in output.folds],
        parts,
        {g: lambda c, g=g: g in (c, family[c]) for g in whole.columns},  # type: ignore[misc]
        experiment.test_qrels(output.split),
        measure,
        seed=config.seed,
    )
    mean = per_query[whole.name][measure].mean()
    shuffled = [
        {"group": g, "kind": "shuffled", "with": mean, "without": mean - v, "value": v}
        for g, v in lost.items()
    ]
    return pd.concat([table, pd.DataFrame(shuffled)], ignore_index=True)
