"""Tables of a comparison of rankers, as text, CSV and JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from letor.measures import parse_measure
from reports.letor_study.config import StudyConfig
from reports.significance import TestSettings, compare


@dataclass(frozen=True)
class Results:
    """What the stages made.

    Attributes:
        trained: for each scheme, fold and ranker: what was chosen, validation value, seconds.
        per_query: a row per scheme, fold, ranker and test query (``qid``), a column per measure.
    """

    trained: list[dict[str, Any]]
    per_query: pd.DataFrame


def write_tables(config: StudyConfig, results: Results, folder: Path) -> None:
    """Write all tables into the folder."""
    names = list(config.measures)
    keys = ["scheme", "fold", "ranker"]
    folds = results.per_query.groupby(keys, sort=False)[names].mean().reset_index()
    # LETOR's tables are means over folds of means over queries.
    means = folds.groupby(["scheme", "ranker"], sort=False)[names].mean().reset_index()
    facts = pd.DataFrame(results.trained)
    by_ranker = facts.groupby(["scheme", "ranker"], sort=False)
    means = means.merge(by_ranker["validation"].mean().reset_index(), on=["scheme", "ranker"])
    times = by_ranker["seconds_per_trial"].mean().reset_index()
    settings = TestSettings(n_permutations=config.n_permutations)
    comparisons = _comparisons(config, results.per_query, settings)
    results.per_query.to_csv(folder / "per_query.csv", index=False, float_format="%.6f")
    folds.to_csv(folder / "folds.csv", index=False)
    means.to_csv(folder / "means.csv", index=False)
    times.to_csv(folder / "times.csv", index=False)
    comparisons.to_csv(folder / "comparisons.csv", index=False)
    summary = {
        "title": config.title,
        "measures": {n: parse_measure(t).definition for n, t in config.measures.items()},
        "means": means.to_dict(orient="records"),
        "folds": folds.to_dict(orient="records"),
        "comparisons": json.loads(comparisons.to_json(orient="records")),
        "chosen": [{k: r[k] for k in (*keys, "chosen", "validation")} for r in results.trained],
    }
    text = json.dumps(summary, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    timed = means.merge(times, on=["scheme", "ranker"])
    text = _text(config, results, timed, comparisons, settings)
    (folder / "tables.txt").write_text(text + "\n", encoding="utf-8")


def _comparisons(
    config: StudyConfig, per_query: pd.DataFrame, settings: TestSettings
) -> pd.DataFrame:
    """Every ranker against the baseline, corrected within each scheme."""
    others = [r.label for r in config.rankers if r.label != config.baseline]
    if not others:
        return pd.DataFrame()
    tables = []
    for scheme, rows in per_query.groupby("scheme", sort=False):
        systems = {
            str(name): part.set_index("qid")[config.compare_measures]
            for name, part in rows.groupby("ranker", sort=False)
        }
        pairs = [(name, config.baseline) for name in others]
        table = compare(systems, pairs, config.compare_measures, settings)
        table.insert(0, "scheme", scheme)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _text(
    config: StudyConfig,
    results: Results,
    means: pd.DataFrame,
    comparisons: pd.DataFrame,
    settings: TestSettings,
) -> str:
    parts = [config.title, config.introduction]
    for scheme in config.schemes:
        table = means[means["scheme"] == scheme.name].drop(columns="scheme").set_index("ranker")
        n = results.per_query.loc[results.per_query["scheme"] == scheme.name, "fold"].nunique()
        parts.append(
            f"{scheme.name}: mean over {n} folds of the mean over the test queries; validation: "
            f"{config.tune_measure} of the chosen parameters\n" + _framed(table)
        )
        if len(comparisons):
            table = comparisons[comparisons["scheme"] == scheme.name]
            shown = ["system", "measure", "difference", "low", "high", "p", "p_corrected",
                     "effect", "won", "tied", "lost"]  # fmt: skip
            parts.append(
                f"{scheme.name}: against {config.baseline}\n"
                + _framed(table[shown].set_index("system"))
            )
        parts.append(f"{scheme.name}: parameters chosen, number of folds\n" + _choices(
            [r for r in results.trained if r["scheme"] == scheme.name]))  # fmt: skip
    parts.append(settings.description)
    parts.append(
        "\n".join(f"{n}: {parse_measure(text).definition}" for n, text in config.measures.items())
    )
    return "\n\n".join(part for part in parts if part)


def _framed(table: pd.DataFrame) -> str:
    return table.rename_axis(None).to_string(float_format=lambda value: f"{value:.4f}")


def _choices(trained: list[dict[str, Any]]) -> str:
    lines = []
    for ranker in dict.fromkeys(r["ranker"] for r in trained):
        counts = Counter(
            ", ".join(f"{p}={v}" for p, v in r["chosen"].items()) or "no grid"
            for r in trained
            if r["ranker"] == ranker
        )
        lines += [f"  {ranker}: {count} x {chosen}" for chosen, count in counts.most_common()]
    return "\n".join(lines)
