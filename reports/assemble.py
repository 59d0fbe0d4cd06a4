"""Run an experiment, fill a report with what its stages left behind, and write it."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from letor.files import atomic_path
from reports import html
from reports.experiment import Experiment, SplitOutputs
from reports.hard_queries import hard_query_table
from reports.report import (
    ColumnInfo,
    NearestWords,
    Report,
    Study,
    SystemResult,
    TrainingCurve,
)
from reports.significance import TestSettings
from reports.stages import LIBRARIES
from reports.tables import report_text
from ssi_models.ssi.low_rank import LowRankSSI


def run_experiment(experiment: Experiment) -> Path:
    """Run all stages and return the folder of the report (``report.html``, ``summary.txt``,
    ``comparisons.csv``).

    Raises:
        InputError: an input cannot be used, or the folder cannot be written.
    """
    with experiment.reporter.running(experiment.n_steps):
        outputs = experiment.run_splits()
        keys = [system.key for output in outputs for system in output.systems.values()]
        config = experiment.config.model_dump(mode="json", exclude={"collection": {"dump"}})
        inputs = {"config": config, "systems": keys}
        report = experiment.stage(
            "report", inputs, lambda path: write_report(experiment, outputs, path)
        )
        experiment.reporter.advance()
    return report.path


def write_report(experiment: Experiment, outputs: Sequence[SplitOutputs], path: Path) -> None:
    """Write ``report.html``, ``summary.txt`` and ``comparisons.csv`` into the new folder."""
    report = make_report(experiment, outputs)
    path.mkdir()
    html.write(report, path / "report.html")
    with atomic_path(path / "summary.txt") as partial:
        partial.write_text(report_text(report), encoding="utf-8")
    tables = [study.comparisons.assign(study=study.name) for study in report.studies]
    pd.concat(tables).to_csv(path / "comparisons.csv", index=False)


def make_report(experiment: Experiment, outputs: Sequence[SplitOutputs]) -> Report:
    """The report's data."""
    config = experiment.config
    collection = experiment.collection
    facts = {str(k): _fact(v) for k, v in collection.description.items()}
    facts["candidates per query"] = f"BM25's best {config.candidate_depth}"
    facts["mean recall of the candidate pool"] = f"{experiment.recall:.3f}"
    models = [_headline_model(experiment, output) for output in outputs]
    return Report(
        title=config.title,
        introduction=config.introduction,
        studies=[_study(experiment, output) for output in outputs],
        facts=facts,
        columns=_column_table(experiment, outputs[0]),
        curves=[_curve(o.split.title, m) for o, m in zip(outputs, models, strict=True)],
        nearest_words=[_nearest(outputs[0].split.title, models[0], config.nearest_words)],
        settings={
            "collection": {
                **config.collection.model_dump(exclude={"dump"}),
                "dump": experiment.dump.name,
            },
            "text": config.text.model_dump(),
            "SSI": {k: v for k, v in models[0].get_params().items() if k != "threads"},
            "ranker (LambdaMART, LightGBM)": config.ranker,
            "evaluation": config.evaluation.model_dump(),
            "run": {"seed": config.seed, "candidates": config.candidate_depth},
        },
        versions={
            "Python": platform.python_version(),
            **{name: version(name) for name in ("ltr-features", *LIBRARIES)},
        },
    )


def _study(experiment: Experiment, output: SplitOutputs) -> Study:
    config = experiment.config
    evaluation = config.evaluation
    per_query = {
        name: pd.read_csv(
            result.path / "per_query.csv", dtype={"qid": str}, keep_default_na=False
        ).set_index("qid")
        for name, result in output.systems.items()
    }
    sizes = [(len(f.train), len(f.validation), len(f.test)) for f in output.folds]
    test = TestSettings(
        alpha=evaluation.alpha, n_permutations=evaluation.n_permutations, seed=config.seed
    )
    hard = {name: values[evaluation.hard_measure] for name, values in per_query.items()}
    what = "queries" if output.split.by == "query" else "query groups (articles)"
    return Study(
        name=output.split.title,
        description=output.split.description,
        split_rule=(
            f"{len(output.folds)} folds by {what}, seed {config.seed}, in LETOR's rotation: about "
            f"{sizes[0][0]} training, {sizes[0][1]} validation and {sizes[0][2]} test queries; "
            "every query is a test query once."
        ),
        systems=[_system(experiment, output, system, per_query) for system in config.systems],
        pairs=list(evaluation.comparisons),
        measures=list(evaluation.measures),
        query_texts=dict(
            zip(experiment.collection.query_ids, experiment.collection.query_texts, strict=True)
        ),
        facts=_model_facts(experiment, output),
        hard_queries=hard_query_table(
            hard[evaluation.hard_baseline],
            {name: hard[name] for name in evaluation.hard_systems},
            selectors={name: hard[name] for name in evaluation.hard_selectors},
            control=hard[evaluation.hard_control],
            settings=test,
        ),
        hard_measure=evaluation.hard_measure,
        hard_baseline=evaluation.hard_baseline,
        hard_control=evaluation.hard_control,
        test=test,
    )


def _system(
    experiment: Experiment, output: SplitOutputs, system: Any, per_query: dict[str, pd.DataFrame]
) -> SystemResult:
    importance = output.systems[system.name].path / "importance.csv"
    table = pd.read_csv(importance) if importance.exists() else None
    return SystemResult(
        name=system.name,
        description=system.description,
        per_query=per_query[system.name],
        columns=[] if table is None else table["column"].tolist(),
        importance=table,
    )


def _test_models(experiment: Experiment, output: SplitOutputs) -> list[Any]:
    """For each fold the model that scored its validation and test queries."""
    scores = experiment.trained_scores(output.split, output.models.path)
    return [
        scores.model(np.sort(np.concatenate(experiment.train_parts(output.folds, fold))))
        for fold in output.folds
    ]


def _headline_model(experiment: Experiment, output: SplitOutputs) -> LowRankSSI:
    return _test_models(experiment, output)[0]


def _model_facts(experiment: Experiment, output: SplitOutputs) -> dict[str, str]:
    """How far training came on the held-out training queries, so that a model that fell back on
    its identity is seen to have done so."""
    histories = [model.history_ for model in _test_models(experiment, output)]
    before = [h.epochs[0].validation for h in histories]
    after = [h.best_validation for h in histories]
    untrained = sum(h.best_epoch == 0 for h in histories)
    return {
        "SSI, MAP on held-out training queries": f"{np.mean(before):.4f} before training (tf-idf "
        f"cosine), {np.mean(after):.4f} at the epoch kept (mean of {len(histories)} folds)",
        "SSI, epochs kept": ", ".join(str(h.best_epoch) for h in histories)
        + (
            f" ({untrained} of {len(histories)} folds kept epoch 0: there training taught nothing "
            "that carries over, and SSI is the tf-idf cosine)"
            if untrained
            else ""
        ),
    }


def _column_table(experiment: Experiment, output: SplitOutputs) -> list[ColumnInfo]:
    rows = experiment.read_rows(output.letor.path / output.folds[0].name, "test.txt.zst")
    return [
        ColumnInfo(
            name=name,
            family=rows.provenance[name]["family"],
            description=rows.provenance[name]["description"]
            + (
                f" ({rows.provenance[name]['absent']})" if "absent" in rows.provenance[name] else ""
            ),
            reference=rows.provenance[name]["reference"],
            trained_on=rows.provenance[name]["trained on"],
        )
        for name in rows.column_names
    ]


def _curve(title: str, model: LowRankSSI) -> TrainingCurve:
    epochs = model.history_.epochs
    return TrainingCurve(
        name=f"SSI, {title.lower()}, first fold",
        x_label="epoch",
        y_label="MAP of held-out training queries over all documents",
        series={
            "held-out training queries": (
                [float(e.number) for e in epochs],
                [e.validation for e in epochs],
            )
        },
        best_x=float(model.history_.best_epoch),
        description="Epoch 0 is the model before training, f(q, d) = q . d. Training stops after "
        f"{model.patience} epochs without improvement; the best epoch is kept.",
    )


def _nearest(title: str, model: LowRankSSI, words: Sequence[str]) -> NearestWords:
    vocabulary = model.vocabulary_
    if vocabulary is None:
        return NearestWords("SSI", "the model has no vocabulary", [])
    known = [w for w in words if w in vocabulary]
    rows = []
    for word in known:
        row = int(vocabulary.rows([word])[0])
        near = model.nearest_words(row, 6)
        rows.append((word, [(vocabulary[t], weight) for t, weight in near if t != row][:5]))
    return NearestWords(
        name=f"SSI, {title.lower()}, first fold",
        description="document words t with the largest weight W_st = U_s . V_t for query word s "
        "(s itself, whose weight has 1 added, left out)",
        rows=rows,
    )


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
