"""The report of a ranking study, made from the outputs of its stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from letor.folds import Fold, queries_of_trained_groups
from ltr_features.clicks.times import span_text
from ltr_features.columns.out_of_fold import DISTANCE, separated
from ltr_features.facts import flat_facts
from ltr_features.remarks import family_remarks, given_remark, grouped_remarks, ranker_remarks
from ltr_features.studies.kinds.drill_down import drill_down
from ltr_features.studies.kinds.ranking_config import ExperimentConfig, SystemConfig
from ltr_features.studies.kinds.ranking_findings import Findings, settings_of
from ltr_features.studies.kinds.ranking_models import (
    asked_words,
    map_of_documents,
    map_of_words,
    model_facts,
    nearest_words,
    test_models,
    training_curve,
)
from ltr_features.studies.kinds.ranking_stages import RankingStages, SplitOutputs
from ltr_features.studies.kinds.systems import system_values
from ltr_features.studies.page.report import ColumnInfo, Report, Study, SystemResult
from ltr_features.studies.page.verdicts import WEAK, value, verdict
from ltr_features.studies.stages import versions
from ltr_features.studies.statistics.correlation import column_correlation
from ltr_features.studies.statistics.precision_recall import coverage_remarks
from ltr_features.studies.statistics.query_classes import (
    entity_source,
    query_classes,
    query_properties,
    with_given,
)
from ltr_features.studies.statistics.refits import fits_note


def make_report(experiment: RankingStages) -> Report:
    """Make the report's data from the outputs of the stages."""
    config, collection, outputs = experiment.config, experiment.collection, experiment.outputs
    facts = flat_facts(collection.description)
    facts |= _candidate_facts(experiment)
    facts |= _left_out(experiment)
    studies, curves, words = [], [], []
    asked, absent = asked_words(experiment)
    for output in outputs:
        title = output.split.title
        notes: dict[str, str] = {}
        for model in config.models:
            fitted = test_models(experiment, output, model)
            notes |= model_facts(model, fitted)
            curves.append(training_curve(title, model, fitted[0]))
            if asked and output is outputs[0]:
                words.append(nearest_words(title, model, fitted[0], asked))
        studies.append(_study(experiment, output, notes))
    warnings = check_expected(config, studies)
    if absent:
        warnings.append(f"nearest_words: no document has {', '.join(absent)}.")
    maps = {
        ("words", config.word_map): map_of_words(experiment),
        ("documents", config.document_map): map_of_documents(experiment),
    }
    warnings += [
        f"There is no map of {of}, as {name} has no vectors for them, or gives them no weight."
        for (of, name), found in maps.items()
        if name is not None and found is None
    ]
    return Report(
        title=config.title,
        introduction=config.introduction,
        studies=studies,
        facts=facts,
        columns=_column_table(experiment, outputs),
        curves=[curve for curve in curves if curve is not None],
        nearest_words=[near for near in words if near is not None],
        maps=[found for found in maps.values() if found is not None],
        settings=_settings(experiment),
        versions=versions(),
        warnings=warnings,
    )


def _candidate_facts(experiment: RankingStages) -> dict[str, str]:
    """Facts on the sources of the candidates and their recall."""
    settings = experiment.config.candidate_settings
    sources = (
        f"{name} ({options['depth']})" if options.get("depth") else name
        for name, options in settings.items()
    )
    facts = {"candidates per query (at most)": ", ".join(sources)}
    if len(settings) > 1:
        for name, recall in experiment.candidate_facts["recall"].items():
            facts[f"mean recall of the candidates of {name}"] = f"{recall:.3f}"
    facts["mean recall of the candidate pool"] = f"{experiment.recall:.3f}"
    return facts


def _left_out(experiment: RankingStages) -> dict[str, str]:
    """Facts on queries that are not tested, or count 0 in whatever order, if any."""
    collection, judged = experiment.collection, experiment.judged
    empty = len(set(judged) - set(experiment.base.query_ids))
    relevant = collection.judgements.query[collection.judgements.grade >= 1]
    none = len(judged) - len(np.unique(relevant))
    facts = {}
    if len(judged) < collection.n_queries:
        facts["queries without any judgement"] = (
            f"{collection.n_queries - len(judged):,}, left out of training, testing and every mean"
        )
    if none:
        facts["queries without a relevant document"] = f"{none:,}, which count 0 in every mean"
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
            f"column {m.name}": {**m.model_dump(exclude={"name", "params"}), **m.params}
            for m in config.models
        },
        **{f"ranker {r.name}": {"ranker": r.ranker, **r.params} for r in config.rankers},
        "evaluation": config.evaluation.model_dump(),
        "run": {"seed": config.seed, "candidates": config.candidate_settings},
    }


def _study(experiment: RankingStages, output: SplitOutputs, notes: dict[str, str]) -> Study:
    config = experiment.config
    evaluation = config.evaluation
    found = Findings(experiment, output)
    pair = config.pairs[0]
    system, baseline = (found.per_query[name][found.measure] for name in pair)
    systems = {system.name: system for system in config.all_systems}
    kinds, kinds_note = _kinds(experiment, system.index)
    recall, recall_note = found.precision_by_recall()
    results = [
        _system(output.first(name), described, found.per_query[name], found.fits.get(name, ()))
        for name, described in systems.items()
    ]
    study = Study(
        name=output.split.title,
        description=output.split.description,
        split_rule=_split_rule(experiment, output, found.fits),
        systems=results,
        pairs=config.pairs,
        second=config.headline,
        measures=list(evaluation.measures),
        groups=experiment.groups,
        query_texts=dict(
            zip(experiment.collection.query_ids, experiment.collection.query_texts, strict=True)
        ),
        facts=notes,
        query_kinds=kinds,
        query_kinds_note=kinds_note,
        drill_down=drill_down(
            experiment,
            output,
            (systems[pair[0]], systems[pair[1]]),
            [found.runs[name] for name in pair],
            system - baseline,
        ),
        precision_recall=recall,
        precision_recall_note=recall_note,
        learning_curve=found.fewer_queries(),
        column_value=found.value_of_columns(),
        column_value_of=evaluation.column_value or "",
        column_correlation=column_correlation([*experiment.test_rows(output).values()]),
        hard_measure=evaluation.hard_measure,
        hard_baseline=evaluation.hard_baseline or "",
        hard_control=evaluation.hard_control or "no control",
        test=found.test,
        remarks=_remarks(experiment, output, found, results),
    )
    if evaluation.hard_baseline is None:
        return study
    return study.with_hard_queries(
        evaluation.hard_systems, evaluation.hard_selectors, evaluation.hard_control,
        thresholds=evaluation.hard_thresholds, quantiles=evaluation.hard_quantiles,
    )  # fmt: skip


def _remarks(
    experiment: RankingStages, output: SplitOutputs, found: Findings, results: list[SystemResult]
) -> list[str]:
    """What to know beside the verdict, see :class:`Study`."""
    config, tested = experiment.config, experiment.test_rows(output)
    # Systems and their results are in the same order.
    used = {
        result.name: {*result.columns, system.score or ""}
        for result, system in zip(results, config.all_systems, strict=True)
    }
    pair, fits = config.pairs[0], list(found.rankers())
    system, baseline = (used[name] for name in pair)
    models = {model.name for model in config.models}
    of_models = {
        fold: {name: notes for name, notes in rows.provenance.items() if name in models}
        for fold, rows in tested.items()
    }
    table = next(iter(tested.values())).provenance  # of families it is the same in all folds
    of_families = {name: notes for name, notes in table.items() if name not in models}
    return [
        *(f"Ranker of {told}" for told in ranker_remarks(f for f in fits if f[0] in pair)),
        *experiment.candidate_facts["remarks"],
        *given_remark(table, system - baseline),
        *experiment.context.remarks,
        *coverage_remarks(experiment.test_qrels(output.split), found.runs),
        *better_alone(config, found.per_query),
        *(f"Column {remark}" for remark in grouped_remarks(of_models)),
        *(f"Columns {remark}" for remark in family_remarks(of_families)),
        *(f"Ranker of {told}" for told in ranker_remarks(f for f in fits if f[0] not in pair)),
        *([] if output.split.by == "time" else separated(experiment.context, output.folds)),
        *found.unchanged(),
        *found.ties(),
    ]


def better_alone(config: ExperimentConfig, per_query: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """A remark if a column alone beats both rankers of the verdict, whose gain then counts from a
    weak baseline."""
    measure = config.evaluation.measures[0]
    means = {name: frame[measure].mean() for name, frame in per_query.items()}
    alone = [s.name for s in config.all_systems if s.score]
    best = max(alone, key=means.__getitem__, default=None)
    system, baseline = config.pairs[0]
    if best is not None and means[best] > max(means[system], means[baseline]):
        yield (
            f"{best}, a column without a ranker, has a higher mean {measure} "
            f"({value(means[best])}) than both systems of the verdict: {WEAK}"
        )


def _split_rule(
    experiment: RankingStages, output: SplitOutputs, fits: Mapping[str, Sequence[pd.DataFrame]]
) -> str:
    """Sentences on how training and test queries were separated."""
    if output.split.by == "time":
        asked = dict(zip(experiment.judged, experiment.times(output.split).tolist(), strict=True))
        rule = _time_rule(output.folds, asked, experiment.groups)
        return f"{rule} {fits_note(fits, same_folds=True)}"
    config = experiment.config
    what = "query" if output.split.by == "query" else "groups of queries"
    fold = output.folds[0]
    train, validation, test = map(len, (fold.train, fold.validation, fold.test))
    return (
        f"{len(output.folds)} folds by {what}, seed {config.seed}, rotated as in LETOR: about "
        f"{train} training, {validation} validation and {test} test queries; every query is tested "
        f"once. {fits_note(fits)}"
    )


def _time_rule(
    folds: Sequence[Fold], asked: Mapping[str, float], groups: Mapping[str, str] | None
) -> str:
    """Sentences on a split by time, given when each query was asked, and on test queries of groups
    that are trained on too."""
    sizes = "; ".join(
        f"{len(fold.train):,} training, {len(fold.validation):,} later validation and "
        f"{len(fold.test):,} still later test queries, of "
        f"{span_text(np.array([asked[query] for query in fold.test]))}"
        for fold in folds
    )
    rule = f"Rankers learn from earlier queries; later ones test; folds: {len(folds)} ({sizes})."
    if groups is None:
        return rule
    again = queries_of_trained_groups(folds, groups)
    return f"{rule} Of the test queries, {again:,} belong to a group that was also trained on."


def first_verdict(experiment: RankingStages) -> str:
    """Verdict on the first comparison by the first fit of the first split, to be shown while the
    rest is made. It says for how many tests the report corrects: what is significant now may not be
    so then."""
    config, pair = experiment.config, experiment.config.pairs[0]
    split, measures = config.splits[0], config.evaluation.measures[:1]
    qrels, systems = experiment.test_qrels(split), []
    for system in config.all_systems:
        if system.name in pair:
            fit = experiment.done(experiment.system_stage(split, system))
            systems.append(_system(fit.path, system, system_values(fit, qrels, measures)))
    study = Study(
        name=split.title,
        description=split.description,
        split_rule="",
        systems=systems,
        pairs=[pair],
        measures=measures,
        groups=experiment.groups,
        test=settings_of(config),
    )
    found = verdict(study)
    tests = len(config.pairs) * len(config.evaluation.measures)
    later = f"; the report corrects p for {tests} tests" if tests > 1 else ""
    return f"First result ({study.name}, one fit{later}): {found.headline} {found.details}"


def _kinds(experiment: RankingStages, tested: pd.Index) -> tuple[pd.DataFrame, str]:
    """The classes of every tested query with a relevant document, and a note on missing classes."""
    source = entity_source(experiment.column_families())
    properties = query_properties(experiment.context, source)
    note = (
        ""
        if source is not None
        else "There are no classes by entities, as no column family of this experiment links "
        "entities."
    )
    classes = query_classes(properties.loc[properties.index.intersection(tested)])
    kinds, further = with_given(classes, experiment.given_classes)
    return kinds, f"{note} {further}".strip()


def _system(
    folder: Path, system: SystemConfig, per_query: pd.DataFrame, fits: Sequence[pd.DataFrame] = ()
) -> SystemResult:
    """A system's result, given the folder of its first fit."""
    importance = folder / "importance.csv"
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
    tested = (rows for output in outputs for rows in experiment.test_rows(output).values())
    folds = [rows.provenance for rows in tested]
    return [
        ColumnInfo(
            name=name,
            family=info["family"],
            description=info["description"] + (f" ({info['absent']})" if "absent" in info else ""),
            reference=info["reference"],
            trained_on=info["trained on"],
            training_distance=max(
                (fold[name][DISTANCE] for fold in folds if DISTANCE in fold[name]), default=None
            ),
        )
        for name, info in folds[0].items()
    ]


def check_expected(config: ExperimentConfig, studies: Sequence[Study]) -> list[str]:
    """A sentence for each expected number that was not met, and one on the others if some were."""
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
                f"Not as expected: {what} ({study.name}) is {value(found)}; the experiment file "
                f"expects {value(expected.value)} ± {expected.tolerance:g}."
            )
    met = len(config.expected) - len(missed)
    if missed and met:
        missed.append(f"Other expectations met: {met}.")
    return missed
