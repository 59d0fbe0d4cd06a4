"""The report of a clickthrough experiment: our numbers and the paper's, expectations and their
outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ltr_features.columns.context import MANY_UNKNOWN
from ltr_features.studies.kinds.clickthrough_config import (
    ClickthroughConfig,
    RowConfig,
    TableConfig,
)
from ltr_features.studies.kinds.clickthrough_tasks import (
    GROUPS,
    KNOWN,
    MADE,
    OWN,
    TAUGHT,
    WORDLESS,
)
from ltr_features.studies.kinds.sections import unmatched_advice
from ltr_features.studies.kinds.task_tables import (
    Results,
    beside_paper,
    compare_rows,
    too_few_queries,
)
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.tables import Table
from ltr_features.studies.page.verdicts import p_equals, p_value, signed
from ltr_features.studies.statistics.refits import repeats_note, spread_note, with_spread
from ltr_features.studies.statistics.significance import corrected
from ltr_features.text.source_remarks import own_text_remarks


@dataclass(frozen=True, eq=False)
class ClickthroughResults(Results):
    """Everything that a report shows; facts on fits are the ``weights`` with which each half of the
    test queries was scored, and ``evaluations``: gradients of the projection per pair, by iteration
    of EM, if there are any.

    Attributes:
        groups: groups of the test queries, for tasks that have them.
    """

    config: ClickthroughConfig
    groups: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


_SIGNS = {"held": "✓", "not contradicted": "≈"}


def document(results: ClickthroughResults) -> Document:
    """Every table with the checks of its expectations."""
    config = results.config
    sections = [
        Section(
            name=table.name,
            title=table.title,
            facts=facts_line(results, table),
            tables=[_table(results, table)],
            checks=checks(results, table),
            remarks=[
                *_work(results, table),
                *too_few_queries(
                    [_n_units(results, table)] * len(table.expectations), config.alpha
                ),
                *results.remarks(table),
            ],
            notes=table.notes,
            figures=_evaluations(results, table),
        )
        for table in config.tables
    ]
    measure = config.measures[-1]
    means = results.means(lambda row: float(row.per_query[measure].mean()))
    return Document(
        config.title, config.introduction, sections, means, measure,
        notes=config.notes, definitions=_definitions(config),
        remarks=[w for task in results.facts.items() for w in _warnings(config, *task)],
    )  # fmt: skip


def _warnings(config: ClickthroughConfig, task: str, facts: Mapping[str, float]) -> Iterator[str]:
    """Warnings, if a tenth or more of a task's test queries say little about models."""
    of = facts["test queries"]
    if (n := facts[TAUGHT]) >= MANY_UNKNOWN * of:
        yield (
            f"Task {task!r}: {n:,.0f} of {of:,.0f} test queries have the text of a training query, "
            "so that models may only repeat what they were taught; for evidence on new queries "
            "leave train out, which deals the queries of test, or take them out of train."
        )
    if (n := facts.get(KNOWN, 0)) >= MANY_UNKNOWN * of:
        yield (
            f"Task {task!r}: {n:,.0f} of {of:,.0f} test queries belong to a group that was also "
            "trained on; unless they were asked later, leave train out, which deals the queries of "
            "test and keeps groups together, or take these groups out of train."
        )
    if n := facts.get(MADE, 0):
        yield (
            f"Task {task!r}: {n:,.0f} of {of:,.0f} test queries were made from documents that are "
            "ranked for others: models that learn from texts have seen their words together, so "
            "that the gain of such models is overstated."
        )
    for text in own_text_remarks(facts.get(OWN, 0), 'sources = "same-id" of the task'):
        yield f"Task {task!r}: {text}."
    if (n := facts[WORDLESS]) >= MANY_UNKNOWN * of:
        described = config.tasks[task]
        advice = unmatched_advice(described.cjk_bigrams, described.terms)
        yield (
            f"Task {task!r}: {n:,.0f} of {of:,.0f} test queries have no word that a title or "
            f"training query has, so that no model can match them; {advice}."
        )


def _table(results: ClickthroughResults, table: TableConfig) -> Table:
    config = results.config
    return beside_paper(
        table.title,
        ["Model", *config.measures, "Weights", "Fit s"],
        [f"Paper: @{k}" for k in config.cutoffs],
        [_cells(results, table, row) for row in table.rows],
        f"Means over the test queries{spread_note(config.repeats)}",
    )


def _cells(results: ClickthroughResults, table: TableConfig, row: RowConfig) -> list[str]:
    config, found = results.config, results.rows[table.name, row.label]
    means = [
        with_spread(f"{found.per_query[measure].mean():.3f}", found.spread[measure])
        for measure in config.measures
    ]
    weights = " ".join(",".join(f"{w:g}" for w in half) for half in found.first.facts["weights"])
    paper = [f"{value:.3f}" for value in row.paper] or ["–"] * len(config.cutoffs)
    return [row.label, *means, weights, f"{found.first.seconds['seconds']:.1f}", *paper]


def _work(results: ClickthroughResults, table: TableConfig) -> list[tuple[str, str]]:
    """Work of the projection by iteration of EM, as text."""
    return [
        (
            f"{label}, function and gradient evaluations by iteration",
            " ".join(
                f"{x:.1f}" for x in results.rows[table.name, label].first.facts["evaluations"]
            ),
        )
        for label in table.evaluations
    ]


def _evaluations(results: ClickthroughResults, table: TableConfig) -> list[tuple[str, Drawing]]:
    """Chart of the work of the projection by iteration of EM (Figure 2 of the paper)."""
    found = {
        label: results.rows[table.name, label].first.facts["evaluations"]
        for label in table.evaluations
    }
    series = {label: (range(1, len(y) + 1), y) for label, y in found.items() if len(y)}
    if not series:
        return []
    y_label = "function and gradient evaluations per pair"
    caption = (
        "Evaluations of the projection's dual per pair, by iteration of EM (Figure 2 of the "
        "paper). Function and gradient are computed together."
    )
    return [(caption, curves(Curve("Projection", "iteration of EM", y_label, series)))]


def _definitions(config: ClickthroughConfig) -> dict[str, str]:
    return {
        "NDCG@k": "Gain 2^grade − 1, discount 1 / log2(rank + 1), over all documents of the "
        "collection; unjudged documents have grade 0; ties are ordered by document id, ascending.",
        "Weights": "Tuned for the last NDCG on one half of the test queries and used for the "
        "other: λ1 of the collection and λ2 of the title's own words for models of counts, the "
        "weight of the tf-idf cosine for the others; one group of numbers per half.",
        "Expected": "“A < B”: B is significantly better on the last NDCG; “A <= B”: B is not "
        "significantly worse; “A ~ B”: they do not differ significantly. Not contradicted: no "
        "difference is significant, which does not show that there is none. Fisher's "
        "randomisation test (two-sided, 10,000 permutations; groups of queries change their sign "
        f"together), level {config.alpha} after Holm's correction over the expectations of the "
        "table, measure by measure.",
        "Fit s": "Seconds to fit, including compilation and waiting; the rows of a model alone and "
        "mixed share one fit.",
    }


def _n_units(results: ClickthroughResults, table: TableConfig) -> int:
    """The number of a table's test queries, or of their groups."""
    facts = results.facts[table.task]
    return int(facts.get(GROUPS, facts["test queries"]))


def checks(results: ClickthroughResults, table: TableConfig) -> list[tuple[str, str]]:
    """Sign and sentence of each of the table's expectations, which are tested query by query, by
    group of queries if there are any, see :func:`compare_rows`. The last measure decides.

    The sentence is "A < B: held (NDCG@10 +0.0123, p = 0.012 (corrected 0.024); ...)".
    """
    if not table.expectations:
        return []
    config = results.config
    rows = {row.label: results.rows[table.name, row.label] for row in table.rows}
    pairs = [(high, low) for low, _, high in table.expectations]
    groups = results.groups.get(table.task)
    tests = compare_rows(rows, pairs, config.measures, config.alpha, groups=groups)
    tests["holm"] = tests.groupby("measure")["p"].transform(corrected)
    records, n = tests.to_dict("records"), len(config.measures)
    found = []
    for i, (low, relation, high) in enumerate(table.expectations):
        by_measure = records[i * n : (i + 1) * n]
        last = by_measure[-1]
        outcome = outcome_of(relation, last["difference"], last["holm"], config.alpha)
        parts = [
            f"{of['measure']} {signed(of['difference'])}, {p_equals(of['p'])} "
            f"(corrected {p_value(of['holm'])})"
            for of in by_measure
        ]
        effect = last["design_effect"]
        if groups is not None and not np.isnan(effect):  # there is none without differences
            parts.insert(0, f"design effect {effect:.1f}")
        text = f"{low} {relation} {high}: {outcome} ({'; '.join(reversed(parts))})"
        found.append((_SIGNS.get(outcome, "✗"), text))
    return found


def outcome_of(relation: str, difference: float, p: float, alpha: float) -> str:
    """Whether an expectation held, and if not, why."""
    significant = p < alpha
    if relation == "~":
        return "not held: they differ" if significant else "not contradicted"
    if difference < 0 and significant:
        return "not held: the opposite is significant"
    if significant:
        return "held"
    if relation == "<=":
        return "not contradicted"
    return "not held: " + ("better, not significantly" if difference > 0 else "not better")


def facts_line(results: ClickthroughResults, table: TableConfig) -> str:
    """Sentences on the sizes of a table's task, and on repeated fits."""
    sizes = "; ".join(
        f"{name}: {value:,.0f}" if value == int(value) else f"{name}: {value:.1f}"
        for name, value in results.facts[table.task].items()
    )
    return f"{sizes}. {repeats_note(results.config.repeats)}"


def csv_rows(results: ClickthroughResults) -> pd.DataFrame:
    """One flat record per row of all tables."""
    records: list[dict[str, Any]] = []
    for table in results.config.tables:
        for row, found in results.of_table(table):
            record: dict[str, Any] = {"table": table.name, "label": row.label, "model": row.model}
            record |= {m: found.per_query[m].mean() for m in results.config.measures}
            if results.config.repeats > 1:
                record |= {"fits": len(found.fits)}
                record |= {f"{m} spread": found.spread[m] for m in results.config.measures}
            record |= {"weights": str([list(w) for w in found.first.facts["weights"]])}
            paper = dict(zip(results.config.measures, row.paper, strict=False))
            records.append(record | {f"paper {m}": value for m, value in paper.items()})
    return pd.DataFrame(records)
