"""Tables of queries: hard queries, kinds of queries, largest changes, documents that moved."""

from __future__ import annotations

import pandas as pd

from ltr_base.names import counted, in_words
from ltr_features.studies.page.query_rankings import RankedDocument, moved
from ltr_features.studies.page.report import Study
from ltr_features.studies.page.table_parts import (
    MEANS,
    QUERIES,
    Part,
    Record,
    difference,
    interval,
    number,
    table_of,
    two,
)
from ltr_features.studies.page.tables import Cell, Column, Rows, Table
from ltr_features.studies.page.verdicts import hundredths, minus, p_value, signed, value
from ltr_features.studies.statistics.paired_tests import TIE
from ltr_features.studies.statistics.query_classes import PROPERTIES

EXTREME_QUERIES = 6
MOVED_DOCUMENTS = 6


def hard_query_table(study: Study) -> Table | None:
    """The estimates on hard queries; None if the study has none."""
    found = study.estimates_on_hard
    if not found:
        return None
    several, n_hard, alike = len(found) > 1, found[0]["n_queries"], ""
    if n_hard == len(study.queries):
        alike = f" The rule selects all {n_hard:,} queries, so these differences are those of all."
    parts: list[Part] = [
        ("System", lambda r: str(r["system"])),
        difference("gain", "Difference", "relative_gain"),
        interval(study, found, "gain"),
        number("p", "p", p_value),
        *([number("Corrected p", "p_corrected", p_value)] if several else []),
        QUERIES,
        *([number("Groups", "n_groups", "{:,}".format)] if study.groups else []),
        *MEANS,
        number("Others", "other_gain", signed),
        (Column("Correlation"), _correlations),
    ]
    corrected = f" Corrected p: {study.test.correction_name} over the rows." if several else ""
    caption = (
        f"{study.hard_measure} against {study.hard_baseline} on the queries "
        f"on which {found[0]['chosen_by']} does poorly ({found[0]['rule']}). Others: difference on "
        "the other queries. Correlation: of its values with those of baseline and system; if it is "
        "related to one of them more, part of the difference may come from the choice of queries."
        f"{corrected}{alike}"
    )
    return table_of(f"Hard queries, {study.name}", parts, found, caption)


def _correlations(row: Record) -> str:
    return ", ".join(hundredths(row[f"{of}_correlation"]) for of in ("baseline", "system"))


def other_choices_table(study: Study) -> Table | None:
    """Gains on hard queries chosen in other ways; None if the study has none."""
    found = study.hard_rows(estimate=False)
    if not found:
        return None

    def chosen(row: Record) -> Cell:
        itself = row["chosen_by"] == "baseline"
        return Cell(row["rule"], f"by {'the baseline itself' if itself else row['chosen_by']}")

    parts: list[Part] = [
        ("System", lambda r: Cell(r["system"], style="biased" * (r["chosen_by"] == "baseline"))),
        (Column("Hard queries", number=False), chosen),
        QUERIES,
        MEANS[0],
        number("Difference", "gain", signed),
        number("Control", "control_gain", signed),
        number("Net", "net_gain", signed),
        interval(study, [], "gain"),
        number("p", "p", p_value),
        number("Spread", "system_spread", value),
    ]
    spread = found[0]["control_spread"]
    control = "" if pd.isna(spread) else f" ({study.hard_control}, spread {value(spread)})"
    caption = (
        "Differences if other rules, other rankings or the compared systems themselves choose the "
        "hard queries, for comparison with papers; none is the estimate. Grey: the papers' rule, "
        "where the baseline itself chooses; any other ranker gains on such queries. Net: the "
        f"difference minus that of the control{control}. Interval and p, not corrected, are those "
        "of the net difference if there is one, else of the difference."
    )
    return table_of(f"Other choices of hard queries, {study.name}", parts, found, caption)


def class_table(study: Study) -> Table | None:
    """Differences by class of queries; properties in which all queries are alike are left out."""
    table = study.query_classes
    if table is None or table.empty:
        return None
    table = table[table["p_corrected"].notna()]
    if table.empty:
        return None
    found = table.to_dict("records")
    parts: list[Part] = [
        ("Queries with", lambda r: f"{r['property']}: {r['class']}"),
        difference("gain", "Difference"),
        interval(study, found, "gain"),
        number("p", "p", p_value),
        number("Corrected p", "p_corrected", p_value),
        QUERIES,
        *MEANS,
    ]
    return table_of(f"Kinds of queries, {study.name}", parts, found, _class_caption(study, table))


def _class_caption(study: Study, table: pd.DataFrame) -> str:
    properties = list(dict.fromkeys(table["property"]))
    given = [name for name in properties if name not in PROPERTIES]
    made = "the classes of a property have about equally many queries"
    if given:
        made = f"the classes by {in_words(given)} are given; else {made}"
    meanings = {
        "words": "Words: distinct words of the query"
        f"{' that occur in the collection' if 'overlap' in properties else ''}.",
        "overlap": "Overlap: mean share of a query's words that its relevant documents have.",
        "entities": "Entities: those that the entity columns' linker finds in the query.",
    }
    explained = "".join(f" {text}" for name, text in meanings.items() if name in properties)
    groups = " by group" if study.groups else ""
    assert study.query_kinds is not None  # there is a table of them
    if n := len(study.queries) - len(study.query_kinds):
        explained += f" In no row: {counted(n, 'query')} without a relevant document."
    return (
        f"{study.measures[0]} of {study.pairs[0][0]} against {study.pairs[0][1]} by kind of query; "
        f"{made}.{explained} p: Fisher's randomisation test{groups}. Corrected p: "
        f"{study.test.correction_name} over the rows. Whether classes differ from each other is "
        f"not tested.{noise_note(study)} {study.query_kinds_note}"
    ).strip()


def noise_note(study: Study) -> str:
    """A sentence for the caption if systems were fitted several times, else ""."""
    return " Intervals and p include training noise." if study.n_fits > 1 else ""


def learning_table(study: Study) -> Table | None:
    """The comparisons by the number of training queries; None if the study has none."""
    if study.learning_curve is None:
        return None
    found = study.learning_curve.to_dict("records")
    parts: list[Part] = [
        ("Training queries", lambda r: f"{r['queries']:,.0f}"),
        (Column("Comparison", number=False), lambda r: f"{r['system']} - {r['baseline']}"),
        difference("difference", "Difference"),
        interval(study, found, "difference"),
        number("p", "p", p_value),
        *MEANS,
    ]
    caption = (
        f"{study.measures[0]} of systems trained on part of the training queries; the last rows "
        f"use all of them. p is not corrected for the number of rows.{noise_note(study)}"
    )
    return table_of(f"Fewer training queries, {study.name}", parts, found, caption)


def extreme_queries(study: Study, sign: int) -> list[str]:
    """The queries with the headline pair's largest gains (``sign`` 1) or losses (-1)."""
    found = sign * study.per_query_difference(study.pairs[0], study.measures[0])
    largest = found.sort_values(ascending=False, kind="stable").head(EXTREME_QUERIES)
    return [str(query) for query in largest[largest > TIE].index]


def extreme_tables(study: Study) -> list[Table]:
    """The headline pair's largest gains and losses."""
    (system, baseline), measure = study.pairs[0], study.measures[0]
    a, b = (pd.Series(study.values(name, measure), study.queries) for name in study.pairs[0])
    tables = []
    for title, sign, style in (("Largest gains", 1, "gain"), ("Largest losses", -1, "loss")):
        rows: Rows = [
            [study.text_of(q), value(b[q]), value(a[q]), Cell(signed(a[q] - b[q]), style=style)]
            for q in extreme_queries(study, sign)
        ]
        caption = f"{system} against {baseline} ({measure})."
        columns = ["Query", "Baseline", "System", "Difference"]
        tables.append(Table(f"{title}, {study.name}", columns, rows, caption, "compact clamp"))
    return tables


def moves_table(study: Study, query: str) -> Table:
    """The documents of a query that moved most."""

    def ranks(doc: RankedDocument) -> Cell:
        text = f"{doc.before or '–'} → {doc.after or '–'} {'▲' if doc.up else '▼'}"
        return Cell(text, style="gain" if doc.up == (doc.relevance > 0) else "loss")

    parts: list[Part] = [
        ("Document", lambda doc: Cell(doc.title, doc.document) if doc.title else doc.document),
        ("Grade", lambda doc: "–" if doc.label is None else minus(str(doc.label))),
        ("Rank", ranks),
    ]
    if study.pushed:
        parts.append(
            (
                Column("Pushed by", number=False),
                lambda doc: ", ".join(f"{name} {two(x)}" for name, x in doc.columns) or "–",
            )
        )
    documents = moved(study.drill_down[query])[:MOVED_DOCUMENTS]
    name = f"Documents that moved: {study.text_of(query)}"
    return table_of(name, parts, documents, style="compact")
