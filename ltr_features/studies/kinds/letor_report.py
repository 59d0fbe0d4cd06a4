"""The report of a comparison of rankers, as page, CSV and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from letor.measures import parse_measure
from ltr_base.names import counted, listed
from ltr_features.remarks import alike
from ltr_features.studies.config import slug
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.tables import Cell, Column, Columns, Table
from ltr_features.studies.page.verdicts import (
    MARKS,
    STYLES,
    marks_meaning,
    outcome_of,
    p_value,
    signed,
    tie_remark,
    value,
)
from ltr_features.studies.statistics.paired_tests import group_error, group_labels
from ltr_features.studies.statistics.refits import Refits, fits_note, mean_values, spreads
from ltr_features.studies.statistics.significance import TestSettings, compare, corrected

_KEYS = ["scheme", "fold", "ranker"]
_NAMED = 3
"""Number of rankers that the verdict names of those that are better, or worse."""


@dataclass(frozen=True)
class Results:
    """Results of all stages.

    Attributes:
        trained: chosen parameters, validation value and seconds by scheme, fit, fold and ranker.
        per_query: a row per scheme, fit (from 0), fold, ranker and test query (``qid``), a column
            per measure.
        groups: group of each query, if the study names a file of them.
        remarks: on columns.
    """

    trained: list[dict[str, Any]]
    per_query: pd.DataFrame
    groups: dict[str, str] | None = None
    remarks: Sequence[str] = ()


@dataclass(frozen=True)
class Tables:
    """The results as tables.

    Attributes:
        folds: means of each scheme, fold and ranker in the first fit.
        means: means over folds (as in LETOR's tables) and fits, with ``validation``.
        errors: standard errors of the means over queries (or groups of queries) and fits.
        times: seconds per trial. comparisons: every ranker against the baseline.
        checks: whether each expected number was met, and a sentence on it.
        settings: of the tests.
    """

    folds: pd.DataFrame
    means: pd.DataFrame
    errors: pd.DataFrame
    times: pd.DataFrame
    comparisons: pd.DataFrame
    checks: list[tuple[bool, str]]
    settings: TestSettings

    def frames(self, results: Results) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        names = ("folds", "means", "errors", "times", "comparisons")
        return {"per_query": results.per_query, **{name: getattr(self, name) for name in names}}


def make_tables(config: StudyConfig, results: Results) -> Tables:
    """Means, standard errors, times, comparisons and checks."""
    names = list(config.measures)
    every = results.per_query.groupby(["fit", *_KEYS], sort=False)[names].mean()
    means = every.groupby(_KEYS[::2], sort=False).mean().reset_index()
    first = results.per_query[results.per_query["fit"] == 0]
    folds = first.groupby(_KEYS, sort=False)[names].mean().reset_index()
    errors = pd.DataFrame(
        {"scheme": scheme, "ranker": ranker} | _standard_errors(frames, results.groups)
        for scheme, fits in _fits(results, names)
        for ranker, frames in fits.items()
    )
    trained = pd.DataFrame(results.trained).groupby(_KEYS[::2], sort=False)
    means = means.merge(trained["validation"].mean().reset_index(), on=_KEYS[::2])
    times = trained["seconds_per_trial"].mean().reset_index()
    settings = TestSettings(n_permutations=config.n_permutations)
    comparisons = _comparisons(config, results, settings)
    return Tables(folds, means, errors, times, comparisons, _checks(config, means), settings)


def summary(config: StudyConfig, results: Results, tables: Tables) -> str:
    """All numbers as JSON."""
    found = {
        "title": config.title,
        "measures": {n: parse_measure(t).definition for n, t in config.measures.items()},
        "means": tables.means.to_dict(orient="records"),
        "errors": tables.errors.to_dict(orient="records"),
        "folds": tables.folds.to_dict(orient="records"),
        "comparisons": json.loads(tables.comparisons.to_json(orient="records")),
        "chosen": [
            {k: r[k] for k in ("fit", *_KEYS, "chosen", "validation")} for r in results.trained
        ],
        "checks": [{"held": held, "text": text} for held, text in tables.checks],
        "remarks": list(results.remarks),
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _choices(trained: list[dict[str, Any]], scheme: str) -> list[str]:
    """The chosen parameters of each ranker in the first fit, with the number of folds."""
    lines = []
    for ranker in dict.fromkeys(r["ranker"] for r in trained):
        counts = Counter(
            ", ".join(f"{p}={v}" for p, v in r["chosen"].items()) or "no grid"
            for r in trained
            if r["ranker"] == ranker and r["scheme"] == scheme and r["fit"] == 0
        )
        lines += [f"{ranker}: {count} x {chosen}" for chosen, count in counts.most_common()]
    return lines


def _checks(config: StudyConfig, means: pd.DataFrame) -> list[tuple[bool, str]]:
    table = means.set_index(["scheme", "ranker"])
    checks = []
    for e in config.expected:
        found = float(table.at[(e.scheme, e.ranker), e.measure])
        text = (
            f"{e.ranker}, {e.measure}, {e.scheme}: {found:.4f}, "
            f"expected {e.value:.4f} ± {e.tolerance:.4f}"
        )
        checks.append((abs(found - e.value) <= e.tolerance, text))
    return checks


def _fits(
    results: Results, measures: Sequence[str]
) -> Iterator[tuple[str, dict[str, list[pd.DataFrame]]]]:
    """Each scheme with the values of every fit of each ranker, by query."""
    for scheme, rows in results.per_query.groupby("scheme", sort=False):
        yield (
            str(scheme),
            {
                str(name): [
                    fit.set_index("qid")[[*measures]] for _, fit in part.groupby("fit", sort=False)
                ]
                for name, part in rows.groupby("ranker", sort=False)
            },
        )


def _standard_errors(
    fits: Sequence[pd.DataFrame], groups: Mapping[str, str] | None
) -> dict[str, float]:
    """Standard error of each mean over queries and fits, by measure."""
    values = mean_values(fits)
    over_queries = group_error(values, group_labels(values.index, groups))
    refits = Refits(np.full(values.shape[1], len(fits)), spreads(fits).to_numpy())
    error, _ = refits.total_error(*over_queries)
    return dict(zip(values.columns, error.tolist(), strict=True))


def _comparisons(config: StudyConfig, results: Results, settings: TestSettings) -> pd.DataFrame:
    """Every ranker against the baseline, corrected within each scheme."""
    others = [r.label for r in config.rankers if r.label != config.baseline]
    if not others:
        return pd.DataFrame()
    tables = []
    for scheme, fits in _fits(results, config.compare_measures):
        pairs = [(name, config.baseline) for name in others]
        table = compare(
            {name: mean_values(frames) for name, frames in fits.items()},
            pairs,
            config.compare_measures,
            settings,
            groups=results.groups,
            # A ranker that was fitted only once, despite repeats, is the same in every fit.
            fits={n: f for n, f in fits.items() if config.repeats > 1 and len(f) > 1},
        )
        table.insert(0, "scheme", scheme)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def document(config: StudyConfig, results: Results, tables: Tables) -> Document:
    """Means and comparisons under each scheme of folds, then the expectations."""
    grouped = results.groups is not None
    sections = [
        Section(
            name=slug(scheme.name),
            title=scheme.name.capitalize(),
            tables=[
                _means_table(config, tables, scheme.name, grouped=grouped),
                *_difference_tables(config, tables, scheme.name, grouped=grouped),
            ],
            remarks=_remarks(config, results.trained, scheme.name),
            folded={"Chosen parameters, by fold count": _choices(results.trained, scheme.name)},
        )
        for scheme in config.schemes
    ]
    if tables.checks:
        checks = [("✓" if held else "✗", text) for held, text in tables.checks]
        sections.append(Section("expected", "Expectations", checks=checks))
    definitions = {n: parse_measure(text).definition for n, text in config.measures.items()}
    definitions["Tests"] = tables.settings.description
    measure = config.compare_measures[0]
    means = {
        str(scheme).capitalize(): dict(zip(rows["ranker"], rows[measure], strict=True))
        for scheme, rows in tables.means.groupby("scheme", sort=False)
    }
    return Document(
        config.title, config.introduction, sections, means, measure, config.baseline,
        notes=config.notes, definitions=definitions, answer=_answer(config, tables),
        remarks=[*results.remarks, *_learned_nothing(results.trained)],
    )  # fmt: skip


def _learned_nothing(trained: list[dict[str, Any]]) -> list[str]:
    """What rankers say of their fits, with the number of fits that it is about."""
    n_fits = Counter(str(r["ranker"]) for r in trained)
    told = alike((str(r["ranker"]), remark) for r in trained for remark in r["remarks"])
    return [
        ", ".join(f"{name} ({n} of {counted(n_fits[name], 'fit')})" for name, n in found.items())
        + f": {remark}"
        for found, remark in ((Counter(owners), remark) for owners, remark in told)
    ]


def _answer(config: StudyConfig, tables: Tables) -> str:
    """Which rankers differ significantly from the baseline, by the first tested measure; if none
    does, whether one could; and what other measures add to it or find the other way round."""
    if not len(tables.comparisons):
        return ""
    measure, *others = config.compare_measures
    sentences = []
    for scheme, tested in tables.comparisons.groupby("scheme", sort=False):
        certain = tested[tested["significant"].astype(bool)]
        mine = certain[certain["measure"] == measure]
        found = _significant(mine, config.baseline) or (
            f"no ranker differs significantly from {config.baseline}{_whether(tested, tables)}"
        )
        sentences.append(f"{str(scheme).capitalize()}, {measure}: {found}.")
        same = set(zip(mine["system"], mine["difference"] > 0, strict=True))
        for other in others:
            rows = certain[certain["measure"] == other]
            told = [x in same for x in zip(rows["system"], rows["difference"] > 0, strict=True)]
            if further := _significant(rows[~np.array(told, dtype=bool)], config.baseline):
                sentences.append(f"{other}: {further}.")
    return " ".join(sentences)


def _significant(rows: pd.DataFrame, baseline: str) -> str:
    """The significant comparisons in words; "" if there are none."""
    parts = [
        f"{_with_differences(part)} significantly {word}"
        for word, part in (
            ("better", rows[rows["difference"] > 0]),
            ("worse", rows[rows["difference"] < 0]),
        )
        if len(part)
    ]
    return f"{' and '.join(parts)} than {baseline}" if parts else ""


def _whether(tested: pd.DataFrame, tables: Tables) -> str:
    """A clause, if no comparison of a scheme could have been significant."""
    test = tables.settings
    if (corrected(tested["smallest_p"].to_numpy(), test.correction) < test.alpha).any():
        return ""
    alone = (tested["n_groups"] == tested["n_queries"]).all()
    differing = counted(int(tested["differing"].max()), "query" if alone else "group")
    return f", and none could, as they differ in {differing}"


def _with_differences(rows: pd.DataFrame) -> str:
    """The systems of some comparisons, each with its difference."""
    pairs = zip(rows["system"], rows["difference"], strict=True)
    return listed([f"{name} ({signed(difference)})" for name, difference in pairs], _NAMED)


def _remarks(
    config: StudyConfig, trained: list[dict[str, Any]], scheme: str
) -> list[tuple[str, str]]:
    """What each ranker's first fit says of itself, and whether its equal scores leave its value
    open: label and sentence."""
    found = []
    for ranker in config.rankers:
        of_folds = [
            r for r in trained if (r["scheme"], r["ranker"], r["fit"]) == (scheme, ranker.label, 0)
        ]
        told = [(str(r["fold"]), remark) for r in of_folds for remark in r["remarks"]]
        found += [(f"{ranker.label}, fold {', '.join(folds)}", text) for folds, text in alike(told)]
        worst, best = np.mean([r["ties"] for r in of_folds], axis=0).tolist()
        measure, order = config.compare_measures[0], "here they keep the order of the files"
        found += [(ranker.label, tied) for tied in tie_remark(measure, worst, best, order)]
    return found


def _means_table(config: StudyConfig, tables: Tables, scheme: str, *, grouped: bool) -> Table:
    """Our means with standard errors, then the references."""
    errors = tables.errors.set_index(["scheme", "ranker"])
    ours = tables.means[tables.means["scheme"] == scheme]
    best = ours[list(config.measures)].max()
    rows: list[list[Cell | str]] = []
    for mean in ours.to_dict(orient="records"):
        error = errors.loc[(scheme, mean["ranker"])]
        values = [
            Cell(_with_error(mean[m], error[m]), strong=mean[m] == best[m]) for m in config.measures
        ]
        rows.append([mean["ranker"], *values, value(mean["validation"])])
    for reference in config.references:
        if reference.scheme == scheme:
            found = [reference.values.get(m) for m in config.measures]
            values = [Cell("–" if x is None else value(x)) for x in found]
            rows.append([Cell(f"{reference.label} (published)", style="biased"), *values, "–"])
    n = tables.folds.loc[tables.folds["scheme"] == scheme, "fold"].nunique()
    fits = f" and over {config.repeats} fits" if config.repeats > 1 else ""
    over = "groups of queries" if grouped else "queries"
    caption = (
        f"Mean over {counted(n, 'fold')} of the mean over the test queries{fits} ± the standard "
        f"error over {over}{' and fits' if fits else ''}. Bold: largest value found here. "
        f"Validation: {config.tune_measure} of the chosen parameters on the validation queries."
        f"{'' if fits else f' {fits_note({})}'}"
    )
    return Table(f"Means, {scheme}", ["Ranker", *config.measures, "Validation"], rows, caption)


def _with_error(mean: float, error: float) -> str:
    """A mean with its standard error, which a single query or group does not have."""
    return value(mean) if np.isnan(error) else f"{value(mean)} ± {value(error)}"


def _difference_tables(
    config: StudyConfig, tables: Tables, scheme: str, *, grouped: bool
) -> list[Table]:
    """The comparisons of every ranker with the baseline, if there are any."""
    if not len(tables.comparisons):
        return []
    table = tables.comparisons[tables.comparisons["scheme"] == scheme]
    rows: list[list[Cell | str]] = []
    for row in table.to_dict(orient="records"):
        refitted = row["n_fits"] > 1
        outcome = outcome_of(row)
        style, marks = STYLES[outcome], MARKS[outcome]
        spread = f"{row['n_fits']} fits: spread {value(row['spread'])}" if refitted else ""
        rows.append(
            [
                str(row["system"]),
                row["measure"],
                Cell(signed(row["difference"]), spread, style, strong=True, marks=marks),
                f"{signed(row['low'])} to {signed(row['high'])}",
                Cell(p_value(row["p"]), f"refits {p_value(row['p_refits'])}" if refitted else ""),
                p_value(row["p_corrected"]),
                f"{row['won']} / {row['tied']} / {row['lost']}",
                *([f"{row['design_effect']:.1f}"] if grouped else []),
            ]
        )
    columns: Columns = [
        "Ranker", Column("Measure", number=False), "Difference", "95% interval", "p",
        "Corrected p", "Won / tied / lost", *(["Design effect"] if grouped else []),
    ]  # fmt: skip
    family = f"this table's {counted(len(table), 'comparison')}"
    caption = (
        "Over the test queries of all folds; the means above weigh each fold alike. "
        f"{marks_meaning(config.baseline, table, tables.settings, family)}"
    )
    return [Table(f"Differences from {config.baseline}, {scheme}", columns, rows, caption)]
