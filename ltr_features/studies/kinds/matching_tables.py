"""Tables of matching experiments: our numbers beside the paper's, and whether the order holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from ltr_features.studies.kinds.matching_config import MatchingConfig, TableConfig
from ltr_features.studies.kinds.task_tables import Row, compare_rows
from ltr_features.studies.page.verdicts import p_equals
from ltr_features.studies.statistics.refits import repeats_told


@dataclass(frozen=True, eq=False)
class RowFit:
    """What a stage wrote, one fit of a row: its result, the seconds of training each trial, and
    the values per query (columns ``group``, ``ap``, ``p10``)."""

    result: Mapping[str, Any]
    trial_seconds: Sequence[float]
    per_query: pd.DataFrame

    @property
    def kept(self) -> Mapping[str, Any]:
        """The trial that is reported."""
        trial: Mapping[str, Any] = self.result["trials"][self.result["kept"]]
        return trial

    @property
    def remarks(self) -> Sequence[str]:
        """What must be heard of the fit of the model that is reported."""
        remarks: Sequence[str] = self.result["remarks"]
        return remarks

    @property
    def seconds(self) -> float:
        """Of training the model that is reported."""
        return self.trial_seconds[self.result["kept"]]

    @property
    def tuning_seconds(self) -> float:
        """Of training all that were tried."""
        return sum(self.trial_seconds)


class RowResult(Row[RowFit]):
    """The fits of a row."""

    @cached_property
    def _measures(self) -> pd.DataFrame:
        return pd.DataFrame([fit.result["measures"] for fit in self.fits])

    @property
    def measures(self) -> dict[str, float]:
        """Each measure and its standard error over queries, means over the fits."""
        return dict(self._measures.mean())

    @property
    def spread(self) -> pd.Series:
        """Of each measure, its standard deviation over the fits; NaN for one fit."""
        return self._measures.std(ddof=1)


@dataclass(frozen=True, eq=False)
class Results:
    """Everything that a report shows.

    Attributes:
        rows: by table name and label, the rows with a model.
        curves: by share of the training links and N: loss after each epoch.
        facts: sizes by task.
    """

    config: MatchingConfig
    rows: Mapping[tuple[str, str], RowResult]
    curves: Mapping[tuple[float, int], list[dict[str, float]]]
    facts: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class OrderCheck:
    """One claim of an order: the MAP of ``high`` is above that of ``low``.

    Attributes:
        difference: mean over the shared test queries, NaN where they have different ones.
        p: Fisher's randomisation test, two-sided, by group of queries (of one source document);
            with several fits the larger of that and of the test over fits, see
            :func:`significance.compare`.
        n_groups: of the queries, if there are fewer than queries.
    """

    low: str
    high: str
    difference: float
    p: float
    n_groups: int | None = None

    @property
    def outcome(self) -> str:
        if self.difference > 0:
            return "holds" if self.p < 0.05 else "holds, not significantly"
        return "does not hold" if self.p < 0.05 else "a tie"


def order_checks(results: Results, table: TableConfig) -> list[OrderCheck]:
    """The table's claims, checked query by query."""
    checks = []
    for chain in table.order:
        for low, high in pairwise(chain):
            rows = {label: results.rows[table.name, label] for label in (low, high)}
            checks.append(_checked(low, high, rows))
    return checks


def _checked(low: str, high: str, rows: Mapping[str, RowResult]) -> OrderCheck:
    a, b = rows[low].first.per_query, rows[high].first.per_query
    if not a.index.equals(b.index):  # of different tasks
        difference = rows[high].per_query["ap"].mean() - rows[low].per_query["ap"].mean()
        return OrderCheck(low, high, float(difference), float("nan"))
    groups = dict(zip(b.index.astype(str), b["group"], strict=True))
    found = compare_rows(rows, [(high, low)], ["ap"], groups=groups).iloc[0]
    told = int(found["n_groups"]) if found["n_groups"] < found["n_queries"] else None
    p = float(np.fmax(found["p"], found["p_refits"]))
    return OrderCheck(low, high, float(found["difference"]), p, told)


def check_text(check: OrderCheck) -> str:
    """ "A < B: holds (+0.0123, p < 0.0001)"."""
    p = "" if np.isnan(check.p) else f", {p_equals(check.p)}"
    p += "" if check.n_groups is None else f" by {check.n_groups:,} groups of queries"
    return f"{check.low} < {check.high}: {check.outcome} ({check.difference:+.4f}{p})"


def task_line(results: Results, table: TableConfig) -> str:
    """The sizes of a table's task."""
    facts = results.facts[table.task]
    n = {name: f"{value:,.0f}" for name, value in facts.items()}
    return (
        f"{n['training_pairs']} training and {n['test_pairs']} test pairs; {n['test_queries']} "
        f"test queries over {n['database']} documents; {n['triples']} triples; dictionary "
        f"{n['document_words']} words, {n['words_per_document']} per document, "
        f"{n['words_per_query']} per query. {repeats_told(results.config.repeats)}"
    ).strip()


def csv_rows(results: Results) -> list[dict[str, Any]]:
    """One flat record per trained row of all tables."""
    records = []
    for table in results.config.tables:
        for row in table.rows:
            if row.model is None:
                continue
            found = results.rows[table.name, row.label]
            kept = found.first.kept
            paper = {f"paper_{k}": v for k, v in row.paper.model_dump().items() if v is not None}
            shown = {
                k: kept[k]
                for k in ("alpha", "beta", "n_expansion", "learning_rate", "best_epoch")
                if k in kept
            }
            fits = {"fits": len(found.fits)} | {
                f"{name}_spread": found.spread[name] for name in ("rank_loss", "map", "p10")
            }
            records.append(
                {"table": table.name, "label": row.label, "model": row.model}
                | found.measures
                | (fits if results.config.repeats > 1 else {})
                | {"weights": found.first.result["parameters"]}
                | {"validation": kept["validation"], **shown, **paper}
                | {"params": str(dict(kept["params"]))}
            )
    return records


def time_rows(results: Results) -> list[dict[str, Any]]:
    """Seconds of training of each trained row of all tables."""
    return [
        {
            "table": table,
            "label": label,
            "seconds": row.first.seconds,
            "tuning_seconds": row.first.tuning_seconds,
        }
        for (table, label), row in results.rows.items()
    ]
