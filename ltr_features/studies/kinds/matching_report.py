"""The report of a matching experiment: our numbers and the paper's, and whether their order
holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import numpy as np
import pandas as pd

from ltr_features.columns.context import MANY_UNKNOWN
from ltr_features.studies.kinds.matching_config import (
    MatchingConfig,
    PaperNumbers,
    RowConfig,
    TableConfig,
)
from ltr_features.studies.kinds.sections import unmatched_advice
from ltr_features.studies.kinds.task_tables import (
    Results,
    Row,
    beside_paper,
    compare_rows,
    too_few_queries,
)
from ltr_features.studies.page.charts.curves import curves
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.charts.queries import scatter
from ltr_features.studies.page.pages import Document, Section
from ltr_features.studies.page.report import Curve
from ltr_features.studies.page.tables import Cell, Table
from ltr_features.studies.page.verdicts import p_equals, p_value, signed
from ltr_features.studies.statistics.paired_tests import group_error
from ltr_features.studies.statistics.refits import repeats_note, spread_note, with_spread
from ltr_features.studies.statistics.significance import corrected

DEFINITIONS = {
    "Rank loss": "Share of sampled triples (query, relevant document, other document) that are "
    "ordered wrongly; ties count half.",
    "±": "Standard error over queries; those made from one document count as one.",
    "MAP, P@10": "Over the fixed test queries; the document that a query was made from and its "
    "training links are not ranked; where scores tie, irrelevant documents come first.",
    "Order": "Differences in average precision, query by query, with Fisher's randomisation test "
    "(two-sided, 10,000 permutations; queries made from one document change their sign together), "
    "at level .05 after Holm's correction over the claims of the table.",
    "Train s": "Seconds to train the reported model; Tuning s: all models that were tried. "
    "Compilation is not counted.",
}
#: Sign and outcome of a claim, by whether the difference is as claimed, and whether it is
#: significant (None: not tested).
_OUTCOMES = {
    (True, True): ("✓", "holds"),
    (True, False): ("(✓)", "holds, not significantly"),
    (True, None): ("(✓)", "in this order"),
    (False, True): ("✗", "does not hold"),
    (False, False): ("≈", "not contradicted"),
    (False, None): ("≈", "in the other order"),
}


@dataclass(frozen=True, eq=False)
class MatchingResults(Results):
    """Everything that a report shows. Facts on fits are the content of ``result.json``; per-query
    values have the columns ``group``, ``ap`` and ``p10``.

    Attributes:
        curves: loss after each epoch, by share of the training links and N.
    """

    config: MatchingConfig
    curves: Mapping[tuple[float, int], list[dict[str, float]]]


def measures_of(row: Row) -> tuple[dict[str, float], pd.Series]:
    """Each measure of a row, mean over the fits, with its standard error over groups of queries;
    and its standard deviation over the fits, NaN for one fit."""
    by_fit = pd.DataFrame([fit.facts["measures"] for fit in row.fits])
    values = row.per_query
    errors, _ = group_error(values[["ap", "p10"]], values["group"].tolist())
    means = {**by_fit.mean(), "map_error": float(errors[0]), "p10_error": float(errors[1])}
    return means, by_fit.std(ddof=1)


def document(results: MatchingResults) -> Document:
    """Every table with the checks of its expected order, then the figures."""
    config = results.config
    sections = [_section(results, table) for table in config.tables]
    drawn = [*_scatters(results), *_curves(results)]
    if drawn:
        notes = config.curves.notes if config.curves else ()
        sections.append(Section("figures", "Figures", figures=drawn, notes=notes))
    return Document(
        config.title, config.introduction, sections,
        results.means(lambda row: measures_of(row)[0]["map"]), "MAP",
        notes=config.notes, definitions=DEFINITIONS,
        remarks=[w for task in results.facts.items() for w in _warnings(config, *task)],
    )  # fmt: skip


def _section(results: MatchingResults, table: TableConfig) -> Section:
    checks = order_checks(results, table)
    n_units = [check.n_groups or check.n_queries for check in checks if not np.isnan(check.p)]
    return Section(
        name=table.name,
        title=table.title,
        facts=task_line(results, table),
        tables=[_table(results, table)],
        checks=[(check.outcome[0], check.text) for check in checks],
        remarks=[*too_few_queries(n_units), *results.remarks(table)],
        notes=table.notes,
    )


def _warnings(config: MatchingConfig, task: str, facts: Mapping[str, float]) -> Iterator[str]:
    """Warnings, if a third or more of a task's test pairs are training pairs the other way round,
    or many words of its test texts are in no training text of their language; and what is not
    tested as the files have it."""
    pairs = facts["test_pairs"]
    if (n := facts["reversed_pairs"]) and 3 * n >= pairs:
        yield (
            f"Task {task!r}: {n:,} of {pairs:,} test pairs are training pairs the other way round, "
            "so that models may only repeat what they were taught; if links have no direction, set "
            'split = "linked-pairs".'
        )
    if not facts["shared_words"]:  # else such a word still matches itself
        described = config.tasks[task]
        many = [
            f"{100 * share:.0f} % of the {described.terms} of test {side} are in no training {one}"
            for side, one in (("queries", "query"), ("documents", "document"))
            if (share := facts[f"untaught_{one}_words"]) >= MANY_UNKNOWN
        ]
        if many:
            advice = unmatched_advice(described.cjk_bigrams, described.terms)
            yield (
                f"Task {task!r}: {' and '.join(many)}, so that no model can match them; add "
                f"training pairs, {advice}."
            )
    left_out = {
        "copies": "texts are the same as another one and are taken for it, as no model can tell "
        "them apart",
        "taught_pairs": f"test pairs are training pairs, too, and were left out; {pairs:,} are "
        "tested",
        "wordless_queries": f"of {facts['test_queries']:,} test queries have no word of the "
        "dictionary, so that no model can answer them",
    }
    if found := [f"{facts[name]:,} {text}" for name, text in left_out.items() if facts[name]]:
        yield f"Task {task!r}: {'; '.join(found)}"


def _table(results: MatchingResults, table: TableConfig) -> Table:
    return beside_paper(
        table.title,
        ["Algorithm", "Rank loss", "MAP", "P@10", "Weights", "Train s", "Tuning s"],
        ["Paper: loss", "Paper: MAP", "Paper: P@10"],
        [_cells(results, table, row) for row in table.rows],
        f"Means ± standard errors{spread_note(results.config.repeats)}",
    )


def _cells(results: MatchingResults, table: TableConfig, row: RowConfig) -> list[Cell | str]:
    paper = _paper(row.paper)
    if row.model is None:
        return [Cell(row.label, style="biased"), *["–"] * 6, *paper]
    found = results.rows[table.name, row.label]
    (m, spread), first = measures_of(found), found.first
    loss = f"{100 * m['rank_loss']:.2f}% ±{100 * m['rank_loss_error']:.2f}"
    return [
        row.label,
        with_spread(loss, 100 * spread["rank_loss"], 2),
        with_spread(f"{m['map']:.3f} ±{m['map_error']:.3f}", spread["map"]),
        with_spread(f"{m['p10']:.3f} ±{m['p10_error']:.3f}", spread["p10"]),
        _thousands(first.facts["parameters"]),
        f"{first.seconds['seconds']:.1f}",
        f"{first.seconds['tuning_seconds']:.0f}" if len(first.facts["trials"]) > 1 else "–",
        *paper,
    ]


def _paper(paper: PaperNumbers) -> list[str]:
    def with_error(value: float | None, error: float | None) -> str:
        if value is None:
            return "–"
        return f"{value:.3f}" + (f" ±{error:.3f}" if error is not None else "")

    loss = "–" if paper.rank_loss is None else f"{paper.rank_loss:g}%"
    return [loss, with_error(paper.map, paper.map_error), with_error(paper.p10, paper.p10_error)]


def _thousands(n: int) -> str:
    if n >= 1_000_000:
        return f"{n / 1e6:.1f}M"
    return f"{n / 1e3:.0f}k" if n >= 1000 else str(n)


def _scatters(results: MatchingResults) -> Iterator[tuple[str, Drawing]]:
    drawn = results.config.scatter
    if drawn is None:
        return
    model = results.rows[drawn.table, drawn.model].per_query["ap"]
    for label in drawn.against:
        other = results.rows[drawn.table, label].per_query["ap"]
        # Of many articles, tasks that use other shares of the links draw other test queries.
        asked = other.index.intersection(model.index, sort=False)[: drawn.n_queries]
        values = other[asked].to_numpy(), model[asked].to_numpy()
        drawing = scatter(*values, label, drawn.model, "Average precision")
        yield f"{drawing.title}. {drawing.description}", drawing


def _curves(results: MatchingResults) -> Iterator[tuple[str, Drawing]]:
    for share in sorted({share for share, _ in results.curves}):
        series = {}
        for (other, rank), points in results.curves.items():
            if other == share:
                epochs = [point["epoch"] for point in points]
                for part in ("train", "test"):
                    series[f"{part}, N = {rank}"] = (epochs, [point[part] for point in points])
        curve = Curve(f"{share:.0%} of the training links", "epoch", "rank loss", series)
        yield f"{curve.name}: rank loss of training and test links.", curves(curve)


@dataclass(frozen=True)
class OrderCheck:
    """One claim of an order: the MAP of ``high`` is above that of ``low``.

    Attributes:
        difference: of MAP, high minus low.
        p: see :func:`compare_rows`, by group of queries (of one source document); NaN if the rows
            have different test queries.
        n_queries: number of test queries. n_groups: of their groups; None if each is one.
        p_corrected: p after Holm's correction over the table's claims.
    """

    low: str
    high: str
    difference: float
    p: float
    n_queries: int = 0
    n_groups: int | None = None
    p_corrected: float = float("nan")

    @property
    def outcome(self) -> tuple[str, str]:
        """Its sign, and the outcome in words."""
        significant = None if np.isnan(self.p) else self.p_corrected < 0.05
        return _OUTCOMES[self.difference > 0, significant]

    @property
    def text(self) -> str:
        """ "A < B: holds (+0.0123, p = 0.0002, corrected 0.0006)"."""
        p = ", not tested: the rows have other test queries"
        if not np.isnan(self.p):
            p = f", {p_equals(self.p)}, corrected {p_value(self.p_corrected)}"
        p += "" if self.n_groups is None else f" by {self.n_groups:,} groups of queries"
        return f"{self.low} < {self.high}: {self.outcome[1]} ({signed(self.difference)}{p})"


def order_checks(results: MatchingResults, table: TableConfig) -> list[OrderCheck]:
    """The table's claims, checked query by query."""
    pairs = chain.from_iterable(map(pairwise, table.order))
    checks = [_checked(results, table, low, high) for low, high in pairs]
    p = np.array([check.p for check in checks])
    if (tested := ~np.isnan(p)).any():
        p[tested] = corrected(p[tested])
    return [replace(check, p_corrected=float(x)) for check, x in zip(checks, p, strict=True)]


def _checked(results: MatchingResults, table: TableConfig, low: str, high: str) -> OrderCheck:
    rows = {label: results.rows[table.name, label] for label in (low, high)}
    one, other = (table.task_of(row) for row in table.rows if row.label in rows)
    same_queries = results.config.tasks[one].asks_as(results.config.tasks[other])
    a, b = rows[low].first.per_query, rows[high].first.per_query
    if not same_queries or not a.index.equals(b.index):
        difference = rows[high].per_query["ap"].mean() - rows[low].per_query["ap"].mean()
        return OrderCheck(low, high, float(difference), float("nan"))
    groups = dict(zip(b.index.astype(str), b["group"], strict=True))
    found = compare_rows(rows, [(high, low)], ["ap"], groups=groups).iloc[0]
    n_groups = int(found["n_groups"]) if found["n_groups"] < found["n_queries"] else None
    return OrderCheck(low, high, float(found["difference"]), float(found["p"]), len(b), n_groups)


def task_line(results: MatchingResults, table: TableConfig) -> str:
    """Sentences on the sizes of a table's task, and on repeated fits."""
    facts, terms = results.facts[table.task], results.config.tasks[table.task].terms
    n = {name: f"{value:,.0f}" for name, value in facts.items()}
    return (
        f"{n['training_pairs']} training and {n['test_pairs']} test pairs; {n['test_queries']} "
        f"test queries over {n['database']} documents; {n['triples']} triples; dictionary of "
        f"{n['document_words']} {terms}, {n['words_per_document']} per document, "
        f"{n['words_per_query']} per query. {n['without_words']} documents have no word, "
        f"{n['reversed_pairs']} test pairs are training pairs the other way round. "
        f"{repeats_note(results.config.repeats)}"
    )


def csv_rows(results: MatchingResults) -> pd.DataFrame:
    """One flat record per trained row of all tables."""
    records = []
    for table in results.config.tables:
        for row, found in results.of_table(table):
            facts, (measures, spread) = found.first.facts, measures_of(found)
            kept = facts["trials"][facts["kept"]]
            paper = {f"paper_{k}": v for k, v in row.paper.model_dump().items() if v is not None}
            shown = {
                k: kept[k]
                for k in ("alpha", "beta", "n_expansion", "learning_rate", "best_epoch")
                if k in kept
            }
            fits = {"fits": len(found.fits)} | {
                f"{name}_spread": spread[name] for name in ("rank_loss", "map", "p10")
            }
            records.append(
                {"table": table.name, "label": row.label, "model": row.model}
                | measures
                | (fits if results.config.repeats > 1 else {})
                | {"weights": facts["parameters"]}
                | {"validation": kept["validation"], **shown, **paper}
                | {"params": str(dict(kept["params"]))}
            )
    return pd.DataFrame(records)
