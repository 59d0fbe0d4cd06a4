"""The report of a comparison of rankers, as page, CSV and JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from letor.measures import parse_measure
from ltr_base.names import counted
from ltr_features.remarks import alike, ranker_remarks
from ltr_features.studies.config import slug
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.kinds.letor_findings import answer, sections
from ltr_features.studies.kinds.letor_remarks import weak_rankers
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.report import Study, SystemResult
from ltr_features.studies.page.study_figures import overview
from ltr_features.studies.page.study_tables import comparison_table, marks_note
from ltr_features.studies.page.tables import Cell, Table
from ltr_features.studies.page.verdicts import tie_remark, value
from ltr_features.studies.statistics.hard_queries import DEFINITIONS as HARD_DEFINITIONS
from ltr_features.studies.statistics.paired_tests import group_error, group_labels
from ltr_features.studies.statistics.query_classes import query_classes, with_given
from ltr_features.studies.statistics.refits import Refits, fits_note, mean_values, spreads
from ltr_features.studies.statistics.significance import TestSettings

_ROW, _KEYS = ["scheme", "ranker"], ["scheme", "fold", "ranker"]


@dataclass(frozen=True, eq=False)
class Results:
    """Results of all stages, and the tables made of them.

    Attributes:
        trained: chosen parameters, validation value and seconds by scheme, fit, fold and ranker.
        per_query: a row per scheme, fit (from 0), fold, ranker and test query (``qid``), a column
            per measure.
        properties: see :func:`~ltr_features.studies.kinds.letor_findings.properties_of`.
        importance: a row per scheme, fit, fold, ranker and column, with its ``gain``.
        family: of each column, where it is known.
        groups: group of each query, if they are known. texts: of the queries, as far as known.
        classes: of queries, a column per property, if there are any.
        remarks: on columns. coverage: documents and queries without a row, if known.
    """

    config: StudyConfig
    trained: list[dict[str, Any]]
    per_query: pd.DataFrame
    properties: pd.DataFrame
    importance: pd.DataFrame
    family: Mapping[str, str]
    groups: dict[str, str] | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    classes: pd.DataFrame | None = None
    remarks: Sequence[str] = ()
    coverage: str = ""

    @cached_property
    def folds(self) -> pd.DataFrame:
        """Means of each scheme, fold and ranker in the first fit."""
        first = self.per_query[self.per_query["fit"] == 0]
        return first.groupby(_KEYS, sort=False)[list(self.config.measures)].mean().reset_index()

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means over folds (as in LETOR's tables) and fits, with ``validation``."""
        by_fold = self.per_query.groupby(["fit", *_KEYS], sort=False)[list(self.config.measures)]
        means = by_fold.mean().groupby(_ROW, sort=False).mean().reset_index()
        return means.merge(self._of_fits("validation"), on=_ROW)

    @cached_property
    def errors(self) -> pd.DataFrame:
        """Standard errors of the means over queries (or groups of queries) and fits."""
        return pd.DataFrame(
            {"scheme": scheme, "ranker": ranker} | _standard_errors(frames, self.groups)
            for scheme, fits in self._fits()
            for ranker, frames in fits.items()
        )

    @property
    def times(self) -> pd.DataFrame:
        """Seconds per trial."""
        return self._of_fits("seconds_per_trial")

    @property
    def test(self) -> TestSettings:
        """Settings of the tests."""
        return TestSettings(n_permutations=self.config.n_permutations)

    @cached_property
    def studies(self) -> list[Study]:
        """The rankers of each scheme against the baseline; none for a single ranker."""
        if not self.config.compared:
            return []
        return [self._study(scheme, fits) for scheme, fits in self._fits()]

    def _study(self, scheme: str, fits: Mapping[str, Sequence[pd.DataFrame]]) -> Study:
        config, systems = self.config, []
        used = self.importance[self.importance["scheme"] == scheme]
        gains = used.groupby(["ranker", "column"], sort=False)["gain"].mean()
        for label, frames in fits.items():
            importance = gains[label].reset_index()
            systems.append(
                SystemResult(
                    label,
                    description="",
                    per_query=mean_values(frames),
                    # A ranker that was fitted only once, despite repeats, is always the same.
                    fits=frames if len(frames) > 1 else (),
                    columns=importance["column"].tolist(),
                    importance=importance,
                )
            )
        tested = self.properties.index.intersection(systems[0].per_query.index)
        kinds, kinds_note = with_given(query_classes(self.properties.loc[tested]), self.classes)
        study = Study(
            name=scheme,
            description="",
            split_rule="",
            systems=systems,
            pairs=[(label, config.baseline) for label in config.compared],
            measures=config.compare_measures,
            groups=self.groups,
            query_texts=self.texts,
            query_kinds=kinds,
            query_kinds_note=kinds_note,
            hard_measure=config.hard_measure,
            hard_baseline=config.baseline,
            test=self.test,
        )
        if config.hard_by is None:
            return study
        return study.with_hard_queries(config.compared, [config.hard_by])

    @property
    def comparisons(self) -> pd.DataFrame:
        """Every compared ranker against the baseline, corrected within each scheme; empty for a
        single ranker."""
        return self._of_studies("comparisons")

    @property
    def checks(self) -> list[tuple[bool, str]]:
        """Whether each expected number was met, and a sentence on it."""
        table = self.means.set_index(_ROW)
        checks = []
        for e in self.config.expected:
            found = float(table.at[(e.scheme, e.ranker), e.measure])
            text = (
                f"{e.ranker}, {e.measure}, {e.scheme}: {found:.4f}, "
                f"expected {e.value:.4f} ± {e.tolerance:.4f}"
            )
            checks.append((abs(found - e.value) <= e.tolerance, text))
        return checks

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The tables by name."""
        names = ("per_query", "folds", "means", "errors", "times", "comparisons", "importance")
        found = {name: getattr(self, name) for name in names}
        further = {name: self._of_studies(name) for name in ("hard_queries", "query_classes")}
        return found | {name: table for name, table in further.items() if len(table)}

    def _of_studies(self, name: str) -> pd.DataFrame:
        """A table of all comparisons."""
        tables = [(study.name, getattr(study, name)) for study in self.studies]
        found = [
            table.assign(scheme=scheme)[["scheme", *table.columns]]
            for scheme, table in tables
            if table is not None
        ]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    def _of_fits(self, key: str) -> pd.DataFrame:
        """A number of each fit, mean over folds and fits by scheme and ranker."""
        trained = pd.DataFrame(self.trained).groupby(_ROW, sort=False)
        return trained[key].mean().reset_index()

    def _fits(self) -> Iterator[tuple[str, dict[str, list[pd.DataFrame]]]]:
        """Each scheme with the values of every fit of each ranker, by query."""
        for scheme, rows in self.per_query.groupby("scheme", sort=False):
            yield (
                str(scheme),
                {
                    str(name): [
                        fit.set_index("qid")[list(self.config.measures)]
                        for _, fit in part.groupby("fit", sort=False)
                    ]
                    for name, part in rows.groupby("ranker", sort=False)
                },
            )


def summary(results: Results) -> str:
    """All numbers as JSON."""
    config = results.config
    found = {
        "title": config.title,
        "measures": {n: parse_measure(t).definition for n, t in config.measures.items()},
        "means": results.means.to_dict(orient="records"),
        "errors": results.errors.to_dict(orient="records"),
        "folds": results.folds.to_dict(orient="records"),
        "comparisons": json.loads(results.comparisons.to_json(orient="records")),
        "chosen": [
            {k: r[k] for k in ("fit", *_KEYS, "chosen", "validation")} for r in results.trained
        ],
        "checks": [{"held": held, "text": text} for held, text in results.checks],
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


def _standard_errors(
    fits: Sequence[pd.DataFrame], groups: Mapping[str, str] | None
) -> dict[str, float]:
    """Standard error of each mean over queries and fits, by measure."""
    values = mean_values(fits)
    over_queries = group_error(values, group_labels(values.index, groups))
    refits = Refits(np.full(values.shape[1], len(fits)), spreads(fits).to_numpy())
    error, _ = refits.total_error(*over_queries)
    return dict(zip(values.columns, error.tolist(), strict=True))


def document(results: Results) -> Document:
    """Means and comparisons under each scheme of folds, then the expectations."""
    config = results.config
    further = sections(results.studies, results.family)
    chosen = f"Chosen parameters, by fold count{_first_fit(config)}"
    parts: list[Section] = []
    for scheme in config.schemes:
        compared = [study for study in results.studies if study.name == scheme.name]
        differences = (comparison_table(of, m) for of in compared for m in of.measures)
        first = Section(
            name=slug(scheme.name),
            title=scheme.name.capitalize(),
            tables=[_means_table(results, scheme.name), *differences],
            remarks=_remarks(results, scheme.name),
            notes=[marks_note(of) for of in compared],
            folded={chosen: _choices(results.trained, scheme.name)},
        )
        parts += [first, *further.get(scheme.name, [])]
    if config.expected:
        checks = [("✓" if held else "✗", text) for held, text in results.checks]
        parts.append(Section("expected", "Expectations", checks=checks))
    definitions = {n: parse_measure(text).definition for n, text in config.measures.items()}
    definitions["Documents and queries without a row"] = results.coverage
    definitions["Tests"] = results.test.description
    if config.hard_by is not None:
        definitions |= {f"Hard queries: {name}": text for name, text in HARD_DEFINITIONS.items()}
    measure = config.compare_measures[0]
    means = {
        str(scheme).capitalize(): dict(zip(rows["ranker"], rows[measure], strict=True))
        for scheme, rows in results.means.groupby("scheme", sort=False)
    }
    return Document(
        config.title, config.introduction, parts, means, measure, config.baseline,
        notes=config.notes, definitions=definitions, answer=answer(results.studies),
        compared=overview(results.studies) if results.studies else None,
        remarks=[
            *weak_rankers(results.means, config),
            *results.remarks,
            *(f"{study.name}: {remark}" for study in results.studies for remark in study.remarks),
            *ranker_remarks((str(r["ranker"]), r["remarks"]) for r in results.trained),
        ],
    )  # fmt: skip


def _first_fit(config: StudyConfig) -> str:
    """What the heading of facts about the first fit adds if there are more."""
    return ", first fit" if config.repeats > 1 else ""


def _remarks(results: Results, scheme: str) -> list[tuple[str, str]]:
    """What each ranker's first fit says of itself, and whether its equal scores leave its value
    open: label and sentence."""
    found = []
    for ranker in results.config.rankers:
        place = (scheme, ranker.label, 0)
        of_folds = [r for r in results.trained if (r["scheme"], r["ranker"], r["fit"]) == place]
        told = [(str(r["fold"]), remark) for r in of_folds for remark in r["remarks"]]
        label = f"{ranker.label}{_first_fit(results.config)}"
        found += [(f"{label}, fold {', '.join(folds)}", text) for folds, text in alike(told)]
        measure = results.config.compare_measures[0]
        worst, best = np.mean([r["ties"] for r in of_folds], axis=0).tolist()
        order = "here they keep the order of the files"
        found += [(label, tied) for tied in tie_remark(measure, worst, best, order)]
    return found


def _means_table(results: Results, scheme: str) -> Table:
    """Our means with standard errors, then the references."""
    config, errors = results.config, results.errors.set_index(_ROW)
    ours = results.means[results.means["scheme"] == scheme]
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
    n = results.folds.loc[results.folds["scheme"] == scheme, "fold"].nunique()
    tested = set(results.per_query.loc[results.per_query["scheme"] == scheme, "qid"])
    none = len(tested.difference(results.properties.index))
    fits = f" and over {config.repeats} fits" if config.repeats > 1 else ""
    over = "queries" if results.groups is None else "groups of queries"
    caption = (
        f"Mean over {counted(n, 'fold')} of the mean over the test queries ({len(tested):,} in all"
        f"{f', {none:,} without a relevant row' if none else ''}){fits} ± the standard "
        f"error over {over}{' and fits' if fits else ''}; differences below are means over the "
        "queries of all folds. Bold: largest value found here. "
        f"Validation: {config.tune_measure} of the chosen parameters on the validation queries."
        f"{'' if fits else f' {fits_note({})}'}"
    )
    return Table(f"Means, {scheme}", ["System", *config.measures, "Validation"], rows, caption)


def _with_error(mean: float, error: float) -> str:
    """A mean with its standard error, which a single query or group does not have."""
    return value(mean) if np.isnan(error) else f"{value(mean)} ± {value(error)}"
