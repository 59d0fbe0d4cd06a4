"""The tables of a study, and the report as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ltr_features.studies.page.report import ColumnInfo, NearestWords, QueryMoves, Report, Study
from ltr_features.studies.page.tables import Cell, Column, Columns, Rows, Table, wrapped
from ltr_features.studies.page.verdicts import (
    STYLES,
    column_verdicts,
    group_verdict,
    hard_query_verdict,
    outcome_of,
    p_value,
    percent,
    signed,
    value,
    verdict,
)
from ltr_features.studies.statistics.significance import TIE

LETTERS = "abcdefghijklmnopqrstuvwxyz"
EXTREME_QUERIES = 6


def baseline_letters(study: Study) -> dict[str, str]:
    """Letter of each baseline for the significance marks; "" where there is only one."""
    names = study.baselines
    if len(names) == 1:
        return {names[0]: ""}
    return {name: LETTERS[i] if i < len(LETTERS) else str(i + 1) for i, name in enumerate(names)}


def significance_marks(study: Study) -> dict[tuple[str, str], str]:
    """Marks of each (system, measure): ▲ significantly better, ▼ worse than the baseline, followed
    by the baseline's letter where there are several; "" where neither."""
    letters = baseline_letters(study)
    marks: dict[tuple[str, str], str] = {}
    for row in study.comparisons.to_dict("records"):
        key = (str(row["system"]), str(row["measure"]))
        sign = ("▲" if row["difference"] > 0 else "▼") if row["significant"] else ""
        marks[key] = marks.get(key, "") + (sign + letters[str(row["baseline"])] if sign else "")
    return marks


def marks_note(study: Study) -> str:
    """Footnote of the significance marks: against what, which test, family, correction."""
    letters = baseline_letters(study)
    against = f"the baseline {study.baselines[0]}"
    if len(letters) > 1:
        named = ", ".join(f"{letter} = {name}" for name, letter in letters.items())
        against = f"the baseline of that letter ({named})"
    test, groups = study.test, int(study.comparisons["n_groups"].iloc[0])
    by = "" if groups == len(study.queries) else f" by {groups:,} groups of queries"
    refits = ""
    if study.comparisons["n_fits"].max() > 1:
        refits = "and, for systems fitted several times, t-test that includes training noise, "
    return (
        f"▲ ▼ significantly better, worse than {against}: Fisher's randomisation test{by}, "
        f"two-sided, {test.n_permutations:,} permutations, seed {test.seed}, {refits}"
        f"p < {test.alpha:g} after correction ({test.correction_name}) over the "
        f"{len(study.comparisons)} comparisons of this table ({len(study.pairs)} pairs x "
        f"{len(study.measures)} measures, {len(study.queries):,} queries)."
    )


def systems_table(study: Study, anchors: Mapping[str, str] | None = None) -> Table:
    """Mean of each measure for each system, the best in bold, with significance marks."""
    marks, letters = significance_marks(study), baseline_letters(study)
    means = {
        m: {s.name: value(s.per_query[m].mean()) for s in study.systems} for m in study.measures
    }
    rows: list[list[Cell | str]] = []
    for system in study.systems:
        role = ""
        if system.name in letters:
            role = f" (baseline{' ' + letters[system.name] if letters[system.name] else ''})"
        note = " ".join(
            filter(None, (f"{system.label}." if system.label else "", system.description))
        )
        rows.append(
            [
                Cell(system.name + role, note, style="baseline" if role else ""),
                f"{len(system.columns) or '–'}",
                *(
                    Cell(
                        shown[system.name],
                        strong=shown[system.name] == max(shown.values()),
                        marks=marks.get((system.name, m), ""),
                    )
                    for m, shown in means.items()
                ),
            ]
        )
    fits = f" and {study.n_fits} fits of each trained system" if study.n_fits > 1 else ""
    return Table(
        f"Systems, {study.name}",
        [
            "System",
            "Columns",
            *(Column(m, href=(anchors or {}).get(m, "")) for m in study.measures),
        ],
        rows,
        f"Mean over {len(study.queries):,} queries{fits}; the best of each column in bold. "
        f"{marks_note(study)}",
    )


def comparison_table(study: Study, measure: str | None = None) -> Table:
    """Every declared pair on one measure (by default the primary one): difference, interval,
    p-values, effect, won, tied, lost; with refits the spread over them, with groups the design
    effect."""
    measure = measure or study.measures[0]
    t = study.comparisons
    refits, grouped = t["n_fits"].max() > 1, (t["n_groups"] < t["n_queries"]).any()
    found = t[t["measure"] == measure].to_dict("records")
    limit = _limit(found, "difference")
    rows: Rows = [
        [
            f"{r['system']} - {r['baseline']}",
            Cell(signed(r["difference"]), percent(r["relative"]), style=_style(r), strong=True),
            _interval(r, "difference", limit, _spread(r)),
            Cell(p_value(r["p_corrected"]), strong=True),
            Cell(p_value(r["p"]), f"refits {p_value(r['p_refits'])}" if refits else ""),
            p_value(r["p_t"]),
            _or_dash(r["effect"], lambda x: f"{x:.2f}".replace("-", "−")),
            f"{r['won']} / {r['tied']} / {r['lost']}",
            Cell(_or_dash(r["detectable"], value), _design(r) if grouped else ""),
        ]
        for r in found
    ]
    columns: Columns = [
        f"{measure} difference", "Mean", _interval_title(study), "p corrected", "p",
        "p (t of groups)" if study.groups else "p (t)", "Effect", "Won / tied / lost", "Detectable",
    ]  # fmt: skip
    tested = f" in {found[0]['n_groups']:,} groups, by which it is tested" if study.groups else ""
    noise = (
        " The interval includes training noise: the spread (standard deviation) of the difference "
        "over fits with other seeds and folds. Refits: p of the test that includes it; the larger "
        "of the two is corrected."
        if refits
        else ""
    )
    caption = (
        f"System minus baseline in {measure}, mean over {len(study.queries):,} queries{tested}."
        f"{noise} Blue and orange: significant after correction."
    )
    return Table(f"Differences in {measure}, {study.name}", columns, rows, caption)


def hard_query_rows(study: Study, *, estimate: bool) -> list[dict[str, Any]]:
    """The estimates on hard queries, or what other choices of queries give."""
    table = study.hard_queries
    if table is None or table.empty:
        return []
    return table[table["estimate"].astype(bool) == estimate].to_dict("records")


def hard_query_table(study: Study) -> Table | None:
    """The estimates on hard queries; None if the study has none."""
    found = [r for r in hard_query_rows(study, estimate=True) if r["n_queries"]]
    if not found:
        return None
    limit, several, grouped = _limit(found), len(found) > 1, study.groups is not None
    rows: Rows = [
        [
            str(r["system"]),
            Cell(signed(r["gain"]), percent(r["relative_gain"]), style=_sign(r), strong=True),
            _interval(r, "gain", limit),
            p_value(r["p"]),
            *([p_value(r["p_corrected"])] if several else []),
            f"{r['n_queries']:,}",
            *([f"{r['n_groups']:,}"] if grouped else []),
            value(r["baseline_mean"]),
            value(r["system_mean"]),
        ]
        for r in found
    ]
    columns: Columns = [
        "System", "Difference", _interval_title(study), "p", *(["p corrected"] if several else []),
        "Queries", *(["Groups"] if grouped else []), "Baseline", "System",
    ]  # fmt: skip
    corrected = f" Corrected p: {study.test.correction_name} over the rows." if several else ""
    caption = (
        f"{study.hard_measure} against {study.hard_baseline or study.pairs[0][1]} on the queries "
        f"that {found[0]['chosen_by']} ranks badly ({found[0]['rule']}). The compared runs have no "
        f"say in the choice.{corrected}"
    )
    return Table(f"Hard queries, {study.name}", columns, rows, caption)


def other_choices_table(study: Study) -> Table | None:
    """What other choices of hard queries give."""
    found = hard_query_rows(study, estimate=False)
    if not found:
        return None
    rows: Rows = [
        [
            Cell(str(r["system"]), style="biased" if r["chosen_by"] == "baseline" else ""),
            Cell(r["rule"], "by the baseline itself" if r["chosen_by"] == "baseline"
                 else f"by {r['chosen_by']}"),
            f"{r['n_queries']:,}",
            *(_or_dash(r[name], value if name == "baseline_mean" else signed)
              for name in ("baseline_mean", "gain", "control_gain", "net_gain")),
            _interval(r, "gain"),
            p_value(r["p"]),
            value(r["system_spread"]),
        ]
        for r in found
    ]  # fmt: skip
    columns: Columns = [
        "System", Column("Hard queries", number=False), "Queries", "Baseline", "Difference",
        "Control", "Net", _interval_title(study), "p", "Spread",
    ]  # fmt: skip
    spread = found[0]["control_spread"]
    control = "" if pd.isna(spread) else f" ({study.hard_control}, spread {value(spread)})"
    caption = (
        "The difference if other rules, other rankings or the compared runs themselves choose the "
        "queries. Shown for comparison with papers; none of these is the estimate. In grey: the "
        "papers' rule, where the baseline itself chooses; any other ranker gains on such queries. "
        f"Net: less that of the control{control} there. Interval and p, not corrected: of the net "
        "difference, or of the difference where there is none."
    )
    return Table(f"Other choices of hard queries, {study.name}", columns, rows, caption)


def class_table(study: Study) -> Table | None:
    """Differences by class of queries; properties in which all queries are alike are left out."""
    table = study.query_classes
    if table is None or table.empty:
        return None
    table = table[table.groupby("property")["class"].transform("nunique") > 1]
    if table.empty:
        return None
    several = table["comparison"].nunique() > 1
    found = table.to_dict("records")
    limit = _limit(found)
    rows: Rows = [
        [
            f"{r['property']}: {r['class']}",
            *([r["comparison"]] if several else []),
            Cell(signed(r["gain"]), style=_sign(r), strong=True),
            _interval(r, "gain", limit),
            p_value(r["p"]),
            f"{r['n_queries']:,}",
            value(r["baseline_mean"]),
            value(r["system_mean"]),
        ]
        for r in found
    ]
    columns: Columns = [
        "Queries with", *([Column("Comparison", number=False)] if several else []), "Difference",
        _interval_title(study), "p", "Queries", "Baseline", "System",
    ]  # fmt: skip
    return Table(f"Kinds of queries, {study.name}", columns, rows, _class_caption(study, table))


def _class_caption(study: Study, table: pd.DataFrame) -> str:
    properties = set(table["property"])
    meanings = {
        "words": "Words: distinct words of the query"
        f"{' that the collection has' if 'overlap' in properties else ''}.",
        "overlap": "Overlap: share of them that a relevant document has, mean over these.",
        "entities": "Entities: those that the query mentions, by the linker of the entity columns.",
    }
    told = " ".join(text for name, text in meanings.items() if name in properties)
    groups = " by group" if study.groups else ""
    return (
        f"{study.measures[0]} of {study.pairs[0][0]} against {study.pairs[0][1]} by kind of query; "
        f"each property makes classes of about equally many queries. {told} p: Fisher's "
        f"randomisation test{groups}, not corrected for the number of classes."
        f"{' Interval and p are over queries, without training noise.' if study.n_fits > 1 else ''}"
        f" {study.query_kinds_note}"
    ).strip()


def value_table(study: Study) -> Table | None:
    """What column groups are worth."""
    if study.column_value is None:
        return None
    found = study.column_value.to_dict("records")
    limit = _limit(found, "value")
    rows: Rows = [
        [
            str(r["group"]),
            r["kind"],
            Cell(signed(r["value"]), strong=True),
            _interval(r, "value", limit),
            _or_dash(r["p"], p_value),
            _or_dash(r["p_corrected"], p_value),
            value(r["with"]),
            value(r["without"]),
        ]
        for r in found
    ]
    columns: Columns = [
        "Columns", Column("How", number=False), "Value", _interval_title(study), "p",
        "p corrected", "With", "Without",
    ]  # fmt: skip
    caption = (
        f"Value of groups of columns to {study.column_value_of} in {study.measures[0]}. Left out: "
        "the system against one trained anew without the group. Added: the first group and this "
        "one against the first group alone. Shuffled: what the trained rankers lose if the "
        "group's values are shuffled within each query. Corrected p: "
        f"{study.test.correction_name} over the rows of this table."
    )
    return Table(f"Value of columns, {study.name}", columns, rows, caption)


def extreme_tables(study: Study) -> list[Table]:
    """The headline pair's largest gains and losses."""
    (system, baseline), measure = study.pairs[0], study.measures[0]
    a, b = study.values(system, measure), study.values(baseline, measure)
    tables = []
    for title, sign in (("Largest gains", 1), ("Largest losses", -1)):
        order = np.argsort(-sign * (a - b), kind="stable")[:EXTREME_QUERIES]
        rows: Rows = [
            [
                study.text_of(study.queries[i]),
                value(b[i]),
                value(a[i]),
                Cell(signed(a[i] - b[i]), style="gain" if sign > 0 else "loss"),
            ]
            for i in order
            if sign * (a[i] - b[i]) > TIE
        ]
        caption = f"{system} against {baseline} ({measure})."
        columns = ["Query", "Baseline", "System", "Difference"]
        tables.append(Table(f"{title}, {study.name}", columns, rows, caption, "compact clamp"))
    return tables


def moves_table(study: Study, one: QueryMoves) -> Table:
    """The documents of a query that moved."""
    pushed = any(move.columns for one in study.drill_down for move in one.moves)
    rows: list[list[Cell | str]] = []
    for move in one.moves:
        up = move.before is None or (move.after is not None and move.after < move.before)
        columns = ", ".join(f"{name} {_two(shift)}" for name, shift in move.columns) or "–"
        ranks = f"{move.before or '–'} → {move.after or '–'} {'▲' if up else '▼'}"
        rows.append(
            [
                Cell(move.title or move.document, move.document if move.title else ""),
                str(move.label),
                Cell(ranks, style="gain" if up == (move.label > 0) else "loss"),
                *([columns] if pushed else []),
            ]
        )
    heads: Columns = [
        "Document",
        "Grade",
        "Rank",
        *([Column("Pushed by", number=False)] if pushed else []),
    ]
    name = f"Documents that moved: {study.text_of(one.query)}"
    return Table(name, heads, rows, style="compact")


def nearest_columns_table(
    study: Study, nearest: Sequence[tuple[str, Sequence[tuple[str, float]]]]
) -> Table:
    """The columns most like others."""
    rows: Rows = [
        [name, ", ".join(f"{other} {_two(x)}" for other, x in others) or "–"]
        for name, others in nearest
    ]
    n = 0 if study.column_correlation is None else len(study.column_correlation)
    caption = f"Of all {n} columns. A column much like others can add little to them."
    columns: Columns = ["Column", Column("Largest correlations", number=False)]
    return Table(f"Most correlated columns, {study.name}", columns, rows, caption, "compact")


def words_table(words: NearestWords) -> Table:
    """Words nearest to some words under a model."""
    rows: Rows = [
        [word, ", ".join(f"{other} {similarity:.2f}" for other, similarity in near)]
        for word, near in words.rows
    ]
    columns: Columns = ["Word", Column("Nearest words, nearest first", number=False)]
    name = f"Nearest words of {words.name}"
    return Table(name, columns, rows, words.description, "compact")


def columns_table(columns: Sequence[ColumnInfo]) -> Table:
    """Every column, what it was computed or learned from, and how training rows differ."""
    trained = any(c.training_distance is not None for c in columns)
    rows: Rows = [
        [
            Cell(c.name, c.description),
            c.family,
            c.reference,
            c.trained_on,
            *([_or_dash(c.training_distance, "{:.2f}".format)] if trained else []),
        ]
        for c in columns
    ]
    heads: Columns = [
        "Column", *(Column(title, number=False) for title in ("Family", "Source", "Learned from")),
        *(["Distance"] if trained else []),
    ]  # fmt: skip
    distance = (
        " Distance: of the scores of training rows, which models that did not see their queries "
        "gave out of fold, to those of other rows (Kolmogorov–Smirnov, 0 to 1), in the fold where "
        "it is largest. Where it is large, rankers learn from a column that means something else "
        "in testing."
        if trained
        else ""
    )
    caption = f"Every column that a ranker could see, and what it was learned from.{distance}"
    return Table("Columns", heads, rows, caption, "compact")


def study_text(study: Study) -> str:
    """Verdict and tables of one study, for the terminal."""
    found, systems, hard = verdict(study), systems_table(study), hard_query_table(study)
    blocks = [
        f"{study.name}: {found.headline}",
        wrapped(found.details),
        wrapped(group_verdict(study)),
        "\n".join(wrapped(f"! {sentence}") for sentence in column_verdicts(study)),
        f"{systems.text()}\n{wrapped(marks_note(study))}",
        comparison_table(study).text(),
        wrapped(hard_query_verdict(study)),
        hard.text() if hard else "",
        "\n".join(wrapped(f"! {w}") for w in study.warnings),
    ]
    return "\n\n".join(b for b in blocks if b)


def report_text(report: Report) -> str:
    """The report's numbers as plain text; the HTML file has the same and more."""
    definitions = "\n".join(wrapped(f"{name}: {text}") for name, text in report.definitions)
    warnings = "\n".join(wrapped(f"! {w}") for w in report.warnings)
    parts = [report.title, *map(study_text, report.studies), warnings, definitions]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def latex_tables(report: Report) -> str:
    """The table of systems of each study."""
    head = "% \\usepackage{booktabs,amssymb}\n"
    return head + "\n".join(systems_table(study).latex() for study in report.studies)


def _limit(rows: Sequence[Mapping[str, Any]], middle: str = "gain") -> float:
    ends = [abs(r[name]) for r in rows for name in ("low", "high", middle)]
    return max((float(x) for x in ends if x == x), default=0.0)


def _spread(row: Mapping[str, Any]) -> str:
    return "" if pd.isna(row["spread"]) else f"spread {value(row['spread'])}"


def _design(row: Mapping[str, Any]) -> str:
    return "" if pd.isna(row["design_effect"]) else f"design effect {row['design_effect']:.1f}"


def _interval(row: Mapping[str, Any], middle: str, limit: float = 0.0, note: str = "") -> Cell:
    """An interval in words, and drawn where there is a scale."""
    if pd.isna(row["low"]):
        return Cell("–")
    ends = row["low"], row[middle], row["high"]
    span = tuple(float(x) / limit for x in ends) if limit > 0 else None
    text = f"{signed(row['low'])} to {signed(row['high'])}"
    return Cell(text, note, span=span, style=_sign(row))  # type: ignore[arg-type]


def _interval_title(study: Study) -> str:
    return f"{study.test.confidence:.0%} interval"


def _style(row: Mapping[str, Any]) -> str:
    return STYLES[outcome_of(row)]


def _sign(row: Mapping[str, Any]) -> str:
    """Colour of a row: by its corrected test where there is one, else by its interval."""
    if "significant" in row:
        return _style(row)
    return "gain" if row["low"] > 0 else "loss" if row["high"] < 0 else "unsure"


def _or_dash(x: float | None, show: Any) -> str:
    return "–" if x is None or pd.isna(x) else show(x)


def _two(x: float) -> str:
    return f"{x:+.2f}".replace("-", "−")
