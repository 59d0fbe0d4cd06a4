"""Which rankers differ on a LETOR data set, in words, and where: on hard queries, by kind of query,
query by query, and by the columns that they use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from letor.dataset import RankingData
from letor.evaluation import evaluate
from letor.measures import parse_measure, tie_bounds
from ltr_base.names import counted, listed
from ltr_features.studies.config import slug
from ltr_features.studies.kinds.letor_config import StudyConfig
from ltr_features.studies.page.hard_verdicts import hard_query_verdict
from ltr_features.studies.page.pages import Section
from ltr_features.studies.page.query_tables import (
    class_table,
    extreme_tables,
    hard_query_table,
    other_choices_table,
)
from ltr_features.studies.page.report import Study
from ltr_features.studies.page.study_figures import GAIN, StudyFigures
from ltr_features.studies.page.verdicts import signed
from ltr_features.studies.statistics.query_classes import judged_properties
from ltr_features.studies.statistics.significance import TestSettings

_NAMED = 3
"""Number of rankers that the verdict names of those that are better, or worse."""


def answer(studies: Sequence[Study]) -> str:
    """Which rankers differ significantly from the baseline, by the first tested measure; if none
    does, whether one could; what other measures add to it or find the other way round; and which
    rankers differ on hard queries."""
    sentences = []
    for study in studies:
        baseline, (measure, *others) = study.baselines[0], study.measures
        scheme, tested = study.name, study.comparisons
        certain = tested[tested["significant"].astype(bool)]
        mine = certain[certain["measure"] == measure]
        found = _significant(mine, baseline) or (
            f"nothing differs significantly from {baseline}{_whether(tested, study.test)}"
        )
        sentences.append(f"{scheme.capitalize()}, {measure}: {found}.")
        same = set(zip(mine["system"], mine["difference"] > 0, strict=True))
        for other in others:
            rows = certain[certain["measure"] == other]
            told = [x in same for x in zip(rows["system"], rows["difference"] > 0, strict=True)]
            if further := _significant(rows[~np.array(told, dtype=bool)], baseline):
                sentences.append(f"{other}: {further}.")
        sentences += _on_hard_queries(study)
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


def _whether(tested: pd.DataFrame, test: TestSettings) -> str:
    """A clause, if no comparison of a scheme could have been significant."""
    if (test.corrected(tested["smallest_p"]) < test.alpha).any():
        return ""
    alone = (tested["n_groups"] == tested["n_queries"]).all()
    differing = counted(int(tested["differing"].max()), "query" if alone else "group")
    return f", and none could, as they differ in {differing}"


def _with_differences(rows: pd.DataFrame) -> str:
    """The systems of some comparisons, each with its difference."""
    pairs = zip(rows["system"], rows["difference"], strict=True)
    return listed([f"{name} ({signed(difference)})" for name, difference in pairs], _NAMED)


def _on_hard_queries(study: Study) -> Iterator[str]:
    found = study.estimates_on_hard
    if not found:
        return
    rows = pd.DataFrame(found).rename(columns={"gain": "difference"})
    certain, baseline = rows[rows["significant"].astype(bool)], study.hard_baseline
    told = _significant(certain, baseline) or f"nothing differs significantly from {baseline}"
    partly = "; part of it may come from the choice of queries" if certain["related"].any() else ""
    n, chooser = found[0]["n_queries"], found[0]["chosen_by"]
    yield (
        f"On the {counted(n, 'query')} hard for {chooser} ({study.hard_measure}, "
        f"{found[0]['rule']}): {told}{partly}."
    )


def properties_of(rows: RankingData, texts: Mapping[str, str]) -> pd.DataFrame:
    """Of each query that has a relevant row the number of these and, if the texts of all such
    queries are known, that of its words."""
    queries = pd.Series(rows.query_ids, dtype=object).iloc[rows.query_index]
    judged = pd.DataFrame({"qid": queries.to_numpy(), "label": rows.y})
    return judged_properties(judged, texts)


def by_ties(
    config: StudyConfig, test: RankingData, scores: NDArray[np.float32]
) -> tuple[float, float]:
    """Means in the first tested measure if equal scores are in the worst and in the best order."""
    measure = parse_measure(config.measures[config.compare_measures[0]])
    worst, best = evaluate(test, scores, tie_bounds(measure)).mean()
    return float(worst), float(best)


def sections(studies: Sequence[Study], family: Mapping[str, str]) -> dict[str, list[Section]]:
    """For each study, by its name, what it adds to means and differences.

    Args:
        family: of each column, where it is known.
    """
    found = {}
    for study in studies:
        figures = StudyFigures(study, family)
        parts = (_hard(figures), _queries(figures), _columns(figures, bool(family)))
        of = f", {study.name}" if len(studies) > 1 else ""
        found[study.name] = [
            replace(part, name=f"{slug(study.name)}-{part.name}", title=f"{part.title}{of}")
            for part in parts
            if part is not None
        ]
    return found


def _hard(figures: StudyFigures) -> Section | None:
    study, drawing = figures.study, figures.hard
    if study.hard_queries is None or not study.hard_rows():
        return None
    chooser = study.system(str(study.hard_queries["chosen_by"].iloc[0]))
    used = pd.DataFrame(chooser.importance).query("gain > 0")["column"].tolist()
    headline = study.hard_queries[study.hard_queries["system"] == study.pairs[0][0]]
    others = other_choices_table(replace(study, hard_queries=headline))
    tables = (hard_query_table(study), others)
    return Section(
        "hard",
        "Hard queries",
        facts=f"{hard_query_verdict(study)} Columns that {chooser.name} uses: {listed(used, 5)}.",
        tables=[table for table in tables if table is not None],
        figures=[] if drawing is None else [(drawing.title, drawing)],
    )


def _queries(figures: StudyFigures) -> Section:
    study = figures.study
    classes, measure = class_table(study), study.measures[0]
    return Section(
        "queries",
        "Query by query",
        tables=[*([] if classes is None else [classes]), *extreme_tables(study)],
        figures=[
            (f"{system} minus {baseline} in {measure} by query, sorted.", drawing)
            for (system, baseline), drawing in figures.gains
        ],
    )


def _columns(figures: StudyFigures, families: bool) -> Section | None:
    if not figures.importance:
        return None
    return Section(
        "columns",
        "Columns that the rankers used",
        facts=GAIN,
        figures=[
            (
                f"{chart.system}: share of each column in the total gain, mean over folds and fits."
                f"{f' By family: {chart.words}.' if families else ''}",
                chart.drawing,
            )
            for chart in figures.importance
        ],
    )
