"""The tables of a study, and the report as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, count
from operator import itemgetter
from string import ascii_lowercase

from ltr_base.names import counted
from ltr_features.studies.page.hard_verdicts import hard_query_verdict
from ltr_features.studies.page.query_tables import hard_query_table, noise_note
from ltr_features.studies.page.report import ColumnInfo, Report, Study, SystemResult
from ltr_features.studies.page.table_parts import Part, difference, interval, number, table_of, two
from ltr_features.studies.page.tables import LATEX_HEAD, Cell, Column, Table, wrapped
from ltr_features.studies.page.verdicts import (
    capital,
    detected,
    group_verdict,
    hundredths,
    outcome_of,
    p_value,
    value,
    verdict,
)


def baseline_letters(study: Study) -> dict[str, str]:
    """Letter of each baseline for the significance marks; "" if there is only one baseline."""
    names = study.baselines
    if len(names) == 1:
        return {names[0]: ""}
    letters = chain(ascii_lowercase, map(str, count(27)))
    return dict(zip(names, letters, strict=False))


def significance_marks(study: Study) -> dict[tuple[str, str], str]:
    """Marks of each (system, measure): ▲ if significantly better than the baseline, ▼ if worse,
    followed by the baseline's letter if there are several; "" if neither."""
    letters = baseline_letters(study)
    marks: dict[tuple[str, str], str] = {}
    for row in study.comparisons.to_dict("records"):
        key = (str(row["system"]), str(row["measure"]))
        sign = outcome_of(row).mark
        marks[key] = marks.get(key, "") + (sign + letters[str(row["baseline"])] if sign else "")
    return marks


def marks_note(study: Study) -> str:
    """Footnote of the significance marks: baselines, test, family of comparisons, correction."""
    letters = baseline_letters(study)
    against = f"the baseline {study.baselines[0]}"
    if len(letters) > 1:
        named = ", ".join(f"{letter} = {name}" for name, letter in letters.items())
        against = f"the baseline with that letter ({named})"
    table, test = study.comparisons, study.test
    groups, n = int(table["n_groups"].iloc[0]), len(study.queries)
    by = "" if groups == n else f" by {counted(groups, 'group')} of queries"
    refits = ""
    if table["n_fits"].max() > 1:
        refits = "for systems fitted several times also a t-test that includes training noise; "
    family = "one comparison ("
    if len(table) > 1:
        sizes = f"{len(study.pairs)} x {len(study.measures)} = {len(table)}"
        family = f"{sizes} comparisons (pairs x measures; "
    return (
        f"▲/▼ significantly better/worse than {against}: Fisher's randomisation test{by}, "
        f"two-sided, {test.patterns(groups)}; {refits}p < {test.alpha:g} after correction "
        f"({test.correction_name}) over {family}{counted(n, 'query')})."
    )


def systems_table(study: Study, anchors: Mapping[str, str] | None = None) -> Table:
    """Mean of each measure for each system, the best in bold, with significance marks."""
    marks, letters = significance_marks(study), baseline_letters(study)

    def named(system: SystemResult) -> Cell:
        role = ""
        if system.name in letters:
            role = f" (baseline{' ' + letters[system.name] if letters[system.name] else ''})"
        label = "" if system.label in system.name else f"{capital(system.label)}."
        note = f"{label} {system.description}".strip()
        return Cell(system.name + role, note, style="baseline" if role else "")

    def mean(measure: str) -> Part:
        shown = {s.name: value(s.per_query[measure].mean()) for s in study.systems}
        best = max(shown.values())
        return Column(measure, href=(anchors or {}).get(measure, "")), lambda system: Cell(
            shown[system.name],
            strong=shown[system.name] == best,
            marks=marks.get((system.name, measure), ""),
        )

    parts: list[Part] = [("System", named)]
    if any(system.columns for system in study.systems):
        parts.append(("Columns", lambda system: f"{len(system.columns) or '–'}"))
    parts += map(mean, study.measures)
    fits = f" and {study.n_fits} fits of each trained system" if study.n_fits > 1 else ""
    caption = (
        f"Mean over {counted(len(study.queries), 'query')}{fits}; the best of each column in bold. "
        f"{marks_note(study)}"
    )
    return table_of(f"Systems, {study.name}", parts, study.systems, caption)


def comparison_table(study: Study, measure: str | None = None) -> Table:
    """Every declared pair on one measure (by default the primary one): difference, interval,
    p-values, effect, won, tied, lost; also the spread if there are refits, and the design effect
    if there are groups."""
    measure = measure or study.measures[0]
    t = study.comparisons
    found = t[t["measure"] == measure].to_dict("records")
    refits, grouped = t["n_fits"].max() > 1, (t["n_groups"] < t["n_queries"]).any()
    parts: list[Part] = [
        (f"{measure} difference", lambda r: f"{r['system']} - {r['baseline']}"),
        difference("difference", "Mean", "relative"),
        interval(study, found, "difference", "spread {:.4f}", "spread"),
        number("Corrected p", "p_corrected", p_value),
        number("p", "p", p_value, *(["refits {}", "p_refits"] if refits else [])),
        number("p (t, groups)" if study.groups else "p (t)", "p_t", p_value),
        number("Effect", "effect", hundredths),
        ("Won / tied / lost", lambda r: f"{r['won']} / {r['tied']} / {r['lost']}"),
        number("Detectable", "detectable", detected,
                *(["design effect {:.1f}", "design_effect"] if grouped else [])),
    ]  # fmt: skip
    tested = f", tested by their {found[0]['n_groups']:,} groups" if study.groups else ""
    noise = (
        " The interval includes training noise: the spread (standard deviation) of the difference "
        "over fits with different seeds (and folds, if random). Refits: p-value of the test that "
        "includes it; the larger of the two p-values is corrected."
        if refits
        else ""
    )
    caption = (
        f"System minus baseline in {measure}, mean over "
        f"{counted(len(study.queries), 'query')}{tested}."
        f"{noise} ▲/▼ significantly better/worse (p < {study.test.alpha:g}) after correction "
        f"({study.test.correction_name} over {counted(len(t), 'test')})."
    )
    return table_of(f"Differences in {measure}, {study.name}", parts, found, caption)


def value_table(study: Study) -> Table | None:
    """The value of column groups; None if the study has none."""
    if study.column_value is None:
        return None
    found = study.column_value.to_dict("records")
    parts: list[Part] = [
        ("Columns", lambda r: str(r["group"])),
        (Column("Method", number=False), lambda r: r["kind"]),
        difference("value", "Value"),
        interval(study, found, "value"),
        number("p", "p", p_value),
        number("Corrected p", "p_corrected", p_value),
        number("With", "with", value),
        number("Without", "without", value),
    ]
    methods = {
        "left out": "Left out: the system against one retrained without the group.",
        "added": "Added: the first group and this one against the first group alone.",
        "shuffled": "Shuffled: what the trained rankers"
        f"{' of the first fit' if study.n_fits > 1 else ''} lose when the group's values are "
        "shuffled within each query; with and without are theirs.",
    }
    kinds = {row["kind"] for row in found}
    caption = (
        f"What groups of columns are worth to {study.column_value_of}, in {study.measures[0]}. "
        f"{' '.join(text for kind, text in methods.items() if kind in kinds)} Corrected p: "
        f"{study.test.correction_name} over the rows of this table.{noise_note(study)}"
    )
    return table_of(f"Value of columns, {study.name}", parts, found, caption)


def nearest_columns_table(
    study: Study, nearest: Sequence[tuple[str, Sequence[tuple[str, float]]]]
) -> Table:
    """The columns most correlated with each of some columns."""
    parts: list[Part] = [
        ("Column", itemgetter(0)),
        (
            Column("Largest correlations", number=False),
            lambda near: ", ".join(f"{other} {two(x)}" for other, x in near[1]) or "–",
        ),
    ]
    n = 0 if study.column_correlation is None else len(study.column_correlation)
    caption = f"Among all {n} columns. A column that is much like others can add little to them."
    return table_of(f"Most correlated columns, {study.name}", parts, nearest, caption, "compact")


def columns_table(columns: Sequence[ColumnInfo]) -> Table:
    """Every column, what it was learned from, and how far scores of training rows differ."""
    trained = any(c.training_distance is not None for c in columns)
    parts: list[Part] = [
        ("Column", lambda r: Cell(r["name"], r["description"])),
        (Column("Family", number=False), itemgetter("family")),
        (Column("Source", number=False), itemgetter("reference")),
        (Column("Learned from", number=False), itemgetter("trained_on")),
        *([number("Distance", "training_distance", "{:.2f}".format)] if trained else []),
    ]
    distance = (
        " Distance (Kolmogorov–Smirnov, 0 to 1): between the scores of training rows, made out of "
        "fold by models that did not see their queries, and those of the other rows, in the fold "
        "where it is largest. If it is large, rankers learn from a column that means something "
        "else at test time."
        if trained
        else ""
    )
    caption = f"Every column available to rankers, and what it was learned from.{distance}"
    return table_of("Columns", parts, [*map(vars, columns)], caption, "compact")


def study_text(study: Study) -> str:
    """Verdict and tables of one study, for the terminal."""
    found, systems, hard = verdict(study), systems_table(study), hard_query_table(study)
    blocks = [
        f"{study.name}: {found.headline}",
        wrapped(found.details),
        wrapped(group_verdict(study)),
        "\n".join(wrapped(f"! {remark}.") for remark in study.remarks),
        f"{systems.text()}\n{wrapped(marks_note(study))}",
        comparison_table(study).text(),
        wrapped(hard_query_verdict(study)),
        hard.text() if hard else "",
    ]
    return "\n\n".join(b for b in blocks if b)


def report_text(report: Report) -> str:
    """The report's numbers as plain text; the HTML page has the same and more."""
    definitions = "\n".join(wrapped(f"{name}: {text}") for name, text in report.definitions)
    warnings = "\n".join(wrapped(f"! {w}") for w in report.warnings)
    parts = [report.title, *map(study_text, report.studies), warnings, definitions]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def latex_tables(report: Report) -> str:
    """Of each study the systems, their differences in the primary measure and on hard queries."""
    tables = [
        table.latex(f"{name}-{i}")
        for i, study in enumerate(report.studies, 1)
        for name, table in (
            ("systems", systems_table(study)),
            ("differences", comparison_table(study)),
            ("hard-queries", hard_query_table(study)),
        )
        if table is not None
    ]
    return LATEX_HEAD + "\n".join(tables)
