"""The report of a ranking study, of what its stages left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from letor.rankers.registry import load_ranker
from letor.trec import read_run
from ltr_features.columns.out_of_fold import DISTANCE
from ltr_features.remarks import told_once
from ltr_features.studies.kinds.drill_down import drill_down
from ltr_features.studies.kinds.ranking_config import ExperimentConfig, SystemConfig
from ltr_features.studies.kinds.ranking_models import (
    map_of_words,
    model_facts,
    nearest_words,
    test_models,
    training_curve,
)
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.page.report import (
    ColumnInfo,
    Curve,
    NearestWords,
    QueryRankings,
    Report,
    Study,
    SystemResult,
)
from ltr_features.studies.page.verdicts import value
from ltr_features.studies.stages import StageResult, versions
from ltr_features.studies.statistics.column_value import retrained_value, shuffled_value
from ltr_features.studies.statistics.correlation import column_correlation
from ltr_features.studies.statistics.hard_queries import hard_query_table
from ltr_features.studies.statistics.learning_curve import learning_curve
from ltr_features.studies.statistics.precision_recall import precision_recall
from ltr_features.studies.statistics.query_classes import (
    entity_source,
    query_class_table,
    query_classes,
    query_properties,
)
from ltr_features.studies.statistics.refits import fits_told, mean_values
from ltr_features.studies.statistics.significance import TestSettings
from ssi_models.base import MatchingModel


def make_report(experiment: RankingStages) -> Report:
    """The report's data."""
    config, collection, outputs = experiment.config, experiment.collection, experiment.outputs
    facts = {str(k): _fact(v) for k, v in collection.description.items()}
    facts |= _candidate_facts(experiment)
    facts |= _left_out(experiment)
    curves: list[Curve] = []
    words: list[NearestWords] = []
    studies = []
    drawn: MatchingModel | None = None
    for number, output in enumerate(outputs):
        model_notes: dict[str, str] = {}
        for model in config.models:
            fitted = test_models(experiment, output, model)
            model_notes |= model_facts(model, fitted)
            if curve := training_curve(output.split.title, model, fitted[0]):
                curves.append(curve)
            if number == 0 and model.name == config.word_map:
                drawn = fitted[0]
            if number == 0 and config.nearest_words:
                near = nearest_words(output.split.title, model, fitted[0], config.nearest_words)
                words += [near] if near is not None else []
        studies.append(_study(experiment, output, model_notes))
    return Report(
        title=config.title,
        introduction=config.introduction,
        studies=studies,
        facts=facts,
        columns=_column_table(experiment, outputs),
        curves=curves,
        nearest_words=words,
        word_map=map_of_words(experiment, drawn) if config.word_map else None,
        settings=_settings(experiment),
        versions=versions(),
        warnings=check_expected(config, studies),
    )


def _candidate_facts(experiment: RankingStages) -> dict[str, str]:
    """Where the candidates come from, and how many of the relevant documents are among them."""
    settings = experiment.config.candidate_settings
    told = (
        f"{name} ({options['depth']})" if options.get("depth") else name
        for name, options in settings.items()
    )
    facts = {"candidates (at most, per query)": ", ".join(told)}
    if len(settings) > 1:
        for name, recall in experiment.recalls.items():
            facts[f"mean recall of the candidates of {name}"] = f"{recall:.3f}"
    facts["mean recall of the candidate pool"] = f"{experiment.recall:.3f}"
    return facts


def _left_out(experiment: RankingStages) -> dict[str, str]:
    """Queries that are not tested, or tested without candidates, if any."""
    collection, judged = experiment.collection, experiment.judged
    empty = len(set(judged) - set(experiment.base.query_ids))
    facts = {}
    if len(judged) < collection.n_queries:
        facts["queries without any judgement"] = (
            f"{collection.n_queries - len(judged):,}, left out of training, testing and every mean"
        )
    if empty:
        facts["queries without candidates"] = f"{empty:,}, which count 0 in every mean"
    return facts


def _settings(experiment: RankingStages) -> dict[str, dict[str, Any]]:
    config = experiment.config
    given = config.collection
    return {
        "collection": {"source": given.source, **given.options},
        "text": config.text.model_dump(),
        **{f"columns {c.family}": c.options for c in config.columns if c.options},
        **{
            f"column {m.name}": {
                **{k: v for k, v in m.model_dump().items() if k not in ("name", "params")},
                **m.params,
            }
            for m in config.models
        },
        **{f"ranker {r.name}": {"ranker": r.ranker, **r.params} for r in config.rankers},
        "evaluation": config.evaluation.model_dump(),
        "run": {"seed": config.seed, "candidates": config.candidate_settings},
    }


def _study(experiment: RankingStages, output: SplitOutputs, notes: dict[str, str]) -> Study:
    config = experiment.config
    evaluation = config.evaluation
    fits = {name: [_values(fit) for fit in of] for name, of in output.fits.items()}
    per_query = {
        name: mean_values(fits[name]) if name in fits else _values(result)
        for name, result in output.systems.items()
    }
    sizes = [(len(f.train), len(f.validation), len(f.test)) for f in output.folds]
    test = TestSettings(
        alpha=evaluation.alpha,
        n_permutations=evaluation.n_permutations,
        n_resamples=evaluation.n_resamples,
        confidence=evaluation.confidence,
        correction=evaluation.correction,
        seed=config.seed,
    )
    what = "queries" if output.split.by == "query" else "query groups (articles)"
    kinds, kinds_note = _kinds(experiment, per_query)
    measure, (system, baseline) = evaluation.measures[0], config.pairs[0]
    headline = (per_query[system][measure], per_query[baseline][measure])
    recall_table, recall_note = precision_recall(experiment.qrels, _runs(config, output))
    return Study(
        name=output.split.title,
        description=output.split.description,
        split_rule=(
            f"{len(output.folds)} folds by {what}, seed {config.seed}, in LETOR's rotation: about "
            f"{sizes[0][0]} training, {sizes[0][1]} validation and {sizes[0][2]} test queries; "
            f"every query is a test query once. {fits_told(fits)}"
        ),
        systems=[
            _system(output, system, per_query[system.name], fits.get(system.name, []))
            for system in config.all_systems
        ],
        pairs=config.pairs,
        second=config.headline,
        measures=list(evaluation.measures),
        groups=experiment.groups,
        query_texts=dict(
            zip(experiment.collection.query_ids, experiment.collection.query_texts, strict=True)
        ),
        facts=notes,
        hard_queries=_hard(experiment, per_query, test),
        query_classes=query_class_table(
            kinds,
            {f"{system} - {baseline}": headline},
            settings=test,
            groups=experiment.groups,
        ),
        query_kinds=kinds,
        query_kinds_note=kinds_note,
        drill_down=_moves(experiment, output, per_query),
        precision_recall=recall_table,
        precision_recall_note=recall_note,
        learning_curve=_learning_curve(config, output, per_query, fits, test, experiment.groups),
        column_value=_column_value(experiment, output, per_query, fits, test),
        column_value_of=evaluation.column_value or "",
        column_correlation=column_correlation(
            [experiment.part(output.split, fold.name, "test") for fold in output.folds]
        ),
        hard_measure=evaluation.hard_measure,
        hard_baseline=evaluation.hard_baseline or "",
        hard_control=evaluation.hard_control or "no control",
        test=test,
        remarks=[
            *experiment.collection.remarks,
            *(f"Column {remark}" for remark in told_once(_provenance(experiment, output))),
        ],
    )


def _runs(config: ExperimentConfig, output: SplitOutputs) -> dict[str, list[pd.DataFrame]]:
    """The rankings of the systems that the first screen compares, of every fit."""
    names = dict.fromkeys(name for pair in config.told_pairs for name in reversed(pair))
    return {
        name: [
            read_run(fit.path / "run.txt.gz")
            for fit in output.fits.get(name, [output.systems[name]])
        ]
        for name in names
    }


def _values(result: StageResult) -> pd.DataFrame:
    """Values by query of one fit of a system."""
    path = result.path / "per_query.csv"
    return pd.read_csv(path, dtype={"qid": str}, keep_default_na=False).set_index("qid")


def _provenance(
    experiment: RankingStages, output: SplitOutputs
) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    """Of the columns in each fold."""
    parts = {fold.name: experiment.part(output.split, fold.name, "test") for fold in output.folds}
    return {name: rows.provenance for name, rows in parts.items()}


def _hard(
    experiment: RankingStages, per_query: dict[str, pd.DataFrame], test: TestSettings
) -> pd.DataFrame | None:
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


def _kinds(
    experiment: RankingStages, per_query: dict[str, pd.DataFrame]
) -> tuple[pd.DataFrame, str]:
    """The class of every query with a relevant document, and which classes are missing, and why."""
    source = entity_source(experiment.column_families())
    properties = query_properties(experiment.context, source)
    tested = next(iter(per_query.values())).index
    note = (
        ""
        if source is not None
        else "Classes by the entities that a query mentions are left out: no column family of this "
        "experiment links entities."
    )
    return query_classes(properties.loc[properties.index.intersection(tested)]), note


def _moves(
    experiment: RankingStages, output: SplitOutputs, per_query: dict[str, pd.DataFrame]
) -> list[QueryRankings]:
    config = experiment.config
    systems = {system.name: system for system in config.all_systems}
    left, right = (systems[name] for name in config.pairs[0])
    measure = config.evaluation.measures[0]
    differences = per_query[left.name][measure] - per_query[right.name][measure]
    return drill_down(experiment, output, (left, right), differences)


def _learning_curve(
    config: ExperimentConfig,
    output: SplitOutputs,
    per_query: dict[str, pd.DataFrame],
    fits: dict[str, list[pd.DataFrame]],
    test: TestSettings,
    groups: dict[str, str] | None,
) -> pd.DataFrame | None:
    if not output.smaller:
        return None
    names = {name for pair in config.told_pairs for name in pair}
    untrained = {name: per_query[name] for name in names - set(fits)}
    found = [
        (folds, {name: [_values(fit) for fit in of] for name, of in systems.items()})
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
        points, config.told_pairs, measure, test, untrained=untrained, groups=groups
    )


def _column_value(
    experiment: RankingStages,
    output: SplitOutputs,
    per_query: dict[str, pd.DataFrame],
    fits: dict[str, list[pd.DataFrame]],
    test: TestSettings,
) -> pd.DataFrame | None:
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
        experiment.qrels,
        measure,
        seed=config.seed,
    )
    mean = per_query[whole.name][measure].mean()
    shuffled = [
        {"group": g, "kind": "shuffled", "with": mean, "without": mean - v, "value": v}
        for g, v in lost.items()
    ]
    return pd.concat([table, pd.DataFrame(shuffled)], ignore_index=True)


def _system(
    output: SplitOutputs,
    system: SystemConfig,
    per_query: pd.DataFrame,
    fits: list[pd.DataFrame],
) -> SystemResult:
    importance = output.systems[system.name].path / "importance.csv"
    table = pd.read_csv(importance) if importance.exists() else None
    return SystemResult(
        name=system.name,
        label=system.label,
        description=system.description,
        per_query=per_query,
        fits=fits,
        columns=[] if table is None else table["column"].tolist(),
        importance=table,
    )


def _column_table(experiment: RankingStages, outputs: Sequence[SplitOutputs]) -> list[ColumnInfo]:
    folds = [fold for output in outputs for fold in _provenance(experiment, output).values()]
    return [
        ColumnInfo(
            name=name,
            family=told["family"],
            description=told["description"] + (f" ({told['absent']})" if "absent" in told else ""),
            reference=told["reference"],
            trained_on=told["trained on"],
            training_distance=max(
                (fold[name][DISTANCE] for fold in folds if DISTANCE in fold[name]), default=None
            ),
        )
        for name, told in folds[0].items()
    ]


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def check_expected(config: ExperimentConfig, studies: Sequence[Study]) -> list[str]:
    """A sentence for each expected number that was not met, and one if some were."""
    by_split = dict(zip((split.name for split in config.splits), studies, strict=True))
    missed = []
    for expected in config.expected:
        study = by_split[expected.split]
        found = float(study.values(expected.system, expected.measure).mean())
        what = f"{expected.measure} of {expected.system}"
        if expected.baseline is not None:
            found -= float(study.values(expected.baseline, expected.measure).mean())
            what += f" minus {expected.baseline}"
        if not abs(found - expected.value) <= expected.tolerance:
            missed.append(
                f"Not as expected: {what} ({study.name}) is {value(found)}, the experiment's file "
                f"expects {value(expected.value)} within {expected.tolerance:g}."
            )
    met = len(config.expected) - len(missed)
    if missed and met:
        missed.append(f"{met} other expected numbers were met.")
    return missed
