"""Tables of clickthrough experiments: our numbers beside the paper's, expectations and their
outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ltr_features.studies.kinds.clickthrough_config import ClickthroughConfig, TableConfig
from ltr_features.studies.kinds.task_tables import Row, compare_rows
from ltr_features.studies.page.verdicts import p_equals, p_value, signed
from ltr_features.studies.statistics.refits import repeats_told, spreads
from ltr_features.studies.statistics.significance import corrected


@dataclass(frozen=True, eq=False)
class RowFit:
    """What the stages of one fit of a row wrote.

    Attributes:
        per_query: index = query ids, a column per measure.
        weights: what each half was scored with.
        seconds: of fitting.
        evaluations: gradients per pair of the projection, by iteration of EM; empty without one.
        remarks: what must be heard of the fit.
    """

    per_query: pd.DataFrame
    weights: Sequence[Sequence[float]]
    seconds: float
    evaluations: Sequence[float]
    remarks: Sequence[str] = ()


class RowResult(Row[RowFit]):
    """The fits of a row."""

    @cached_property
    def spread(self) -> pd.Series:
        """Of each measure, the standard deviation of its mean over the fits; NaN for one fit."""
        return spreads([fit.per_query for fit in self.fits])

    @property
    def evaluations(self) -> Sequence[float]:
        return self.first.evaluations


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that a report shows: rows by table name and label, sizes by task, and of tasks
    that name them the groups of the test queries."""

    config: ClickthroughConfig
    rows: Mapping[tuple[str, str], RowResult]
    facts: Mapping[str, Mapping[str, float]]
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """An expectation and what became of it.

    Attributes:
        low, relation, high: see :class:`clickthrough_config.TableConfig`.
        differences, p, p_corrected: per measure: high minus low, the paired t-test (of the means
            of groups of queries where there are any; with several fits the larger of its p and of
            that over fits, see :func:`significance.compare`), and Holm's correction over the
            expectations of the table.
        design_effect: of the groups, in the last measure; None without groups.
        outcome: decided by the last measure.
    """

    low: str
    relation: str
    high: str
    differences: tuple[float, ...]
    p: tuple[float, ...]
    p_corrected: tuple[float, ...]
    outcome: str
    design_effect: float | None = None

    @property
    def held(self) -> bool:
        return self.outcome == "held"


def checks(results: Results, table: TableConfig) -> list[Check]:
    """The table's expectations, tested query by query."""
    if not table.expectations:
        return []
    config = results.config
    rows = {row.label: results.rows[table.name, row.label] for row in table.rows}
    pairs = [(high, low) for low, _, high in table.expectations]
    groups = results.groups.get(table.task)
    tests = compare_rows(rows, pairs, config.measures, config.alpha, groups=groups)
    shape = len(pairs), len(config.measures)
    difference = tests["difference"].to_numpy(np.float64).reshape(shape)
    p = np.fmax(tests["p_t"], tests["p_refits"]).to_numpy(np.float64).reshape(shape)
    effect = tests["design_effect"].to_numpy(np.float64).reshape(shape)[:, -1]
    holm = np.stack([corrected(column) for column in p.T], axis=1)
    return [
        Check(
            low, relation, high, tuple(difference[i]), tuple(p[i]), tuple(holm[i]),
            outcome_of(relation, float(difference[i, -1]), float(holm[i, -1]), config.alpha),
            None if groups is None else float(effect[i]),
        )
        for i, (low, relation, high) in enumerate(table.expectations)
    ]  # fmt: skip


def outcome_of(relation: str, difference: float, p: float, alpha: float) -> str:
    """Whether an expectation held, and if not, why."""
    significant = p < alpha
    if relation == "~":
        return "not held: they differ" if significant else "held"
    if difference < 0 and significant:
        return "not held: the opposite is significant"
    if relation == "<=":
        return "held"
    if significant:
        return "held"
    return "not held: " + ("better, not significantly" if difference > 0 else "not better")


def check_text(check: Check, measures: Sequence[str]) -> str:
    """ "A < B: held (NDCG@10 +0.0123, p = 0.012, ...)"."""
    parts = [
        f"{measure} {signed(d)}, {p_equals(p)} (corrected {p_value(holm)})"
        for measure, d, p, holm in zip(
            measures, check.differences, check.p, check.p_corrected, strict=True
        )
    ]
    claim = f"{check.low} {check.relation} {check.high}"
    if check.design_effect is not None:
        parts.insert(0, f"design effect {check.design_effect:.1f}")
    return f"{claim}: {check.outcome} ({'; '.join(reversed(parts))})"


def facts_line(results: Results, table: TableConfig) -> str:
    """The sizes of a table's task, and how often its models were fitted."""
    sizes = "; ".join(
        f"{name}: {value:,.0f}" if value == int(value) else f"{name}: {value:.1f}"
        for name, value in results.facts[table.task].items()
    )
    told = repeats_told(results.config.repeats)
    return f"{sizes}. {told}" if told else sizes


def csv_rows(results: Results) -> list[dict[str, Any]]:
    """One flat record per row of all tables."""
    records: list[dict[str, Any]] = []
    for table in results.config.tables:
        for row in table.rows:
            found = results.rows[table.name, row.label]
            record: dict[str, Any] = {"table": table.name, "label": row.label, "model": row.model}
            record |= {m: found.per_query[m].mean() for m in results.config.measures}
            if results.config.repeats > 1:
                record |= {"fits": len(found.fits)}
                record |= {f"{m} spread": found.spread[m] for m in results.config.measures}
            record |= {"weights": str([list(w) for w in found.first.weights])}
            paper = dict(zip(results.config.measures, row.paper, strict=False))
            records.append(record | {f"paper {m}": value for m, value in paper.items()})
    return records


def time_rows(results: Results) -> list[dict[str, Any]]:
    """Seconds of fitting of each row of all tables."""
    return [
        {"table": table, "label": label, "seconds": row.first.seconds}
        for (table, label), row in results.rows.items()
    ]
