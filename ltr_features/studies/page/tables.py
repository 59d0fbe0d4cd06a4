"""Plain-text tables for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from ltr_features.studies.page.report import Report, Study
from ltr_features.studies.page.verdicts import (
    column_verdicts,
    group_verdict,
    hard_query_verdict,
    p_value,
    percent,
    signed,
    value,
    verdict,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WIDTH = 100


def row_remarks(table: Any, results: Mapping[tuple[str, str], Any]) -> list[tuple[str, str]]:
    """Label and sentence: the notes on a table's rows, and what must be heard of their models'
    fits, the results being known by the names of tables and labels."""
    found = []
    for row in table.rows:
        result = results.get((table.name, row.label))
        found += [(row.label, row.note)] if row.note else []
        found += [(row.label, text) for text in (result.remarks if result else ())]
    return found


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
    if len(letters) == 1:
        against = f"the baseline {study.baselines[0]}"
    else:
        against = (
            "the baseline of that letter ("
            + ", ".join(f"{letter} = {name}" for name, letter in letters.items())
            + ")"
        )
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


def means_table(study: Study) -> str:
    """Mean of each measure for each system, with significance marks and their footnote."""
    marks = significance_marks(study)
    letters = baseline_letters(study)
    marks_width = {
        m: max((len(marks.get((s.name, m), "")) for s in study.systems), default=0)
        for m in study.measures
    }
    rows = []
    for system in study.systems:
        role = ""
        if system.name in letters:
            role = f" (baseline{' ' + letters[system.name] if letters[system.name] else ''})"
        cells = [system.name + role, str(len(system.columns)) if system.columns else "-"]
        for m in study.measures:
            mark = marks.get((system.name, m), "").ljust(marks_width[m])
            cells.append(f"{value(system.per_query[m].mean())} {mark}" if marks_width[m] else
                         value(system.per_query[m].mean()))  # fmt: skip
        rows.append(cells)
    header = ["System", "Columns"] + [
        m + " " * (marks_width[m] + 1 if marks_width[m] else 0) for m in study.measures
    ]
    return aligned(header, rows, left=1) + "\n" + wrapped(marks_note(study))


def comparison_table(study: Study, measure: str | None = None) -> str:
    """Every declared pair on one measure (by default the primary one): difference, interval,
    p-values, effect, won/tied/lost; with refits the spread over them, with groups the design
    effect."""
    measure = measure or study.measures[0]
    t = study.comparisons
    more = _extras(study)
    rows = [
        [
            f"{r['system']} - {r['baseline']}",
            signed(r["difference"]),
            percent(r["relative"]),
            f"[{signed(r['low'])}, {signed(r['high'])}]",
            *(show(r[column]) for column, _, show in more),
            p_value(r["p"]),
            p_value(r["p_corrected"]),
            p_value(r["p_t"]),
            "n/a" if pd.isna(r["effect"]) else f"{r['effect']:.2f}".replace("-", "−"),
            f"{r['won']}/{r['tied']}/{r['lost']}",
        ]
        for r in t[t["measure"] == measure].to_dict("records")
    ]
    header = [
        f"{measure} difference", "mean", "relative", f"{study.test.confidence:.0%} interval",
        *(name.lower() for _, name, _ in more), "p", "p corr.",
        "p (t of groups)" if study.groups else "p (t)", "effect", "won/tied/lost",
    ]  # fmt: skip
    return aligned(header, rows, left=1)


def _extras(study: Study) -> list[tuple[str, str, Callable[[float], str]]]:
    """Columns of ``Study.comparisons`` that only some studies have, their heading, and how they are
    shown: the spread over fits and its p, the design effect."""
    t = study.comparisons
    extras: list[tuple[str, str, Callable[[float], str]]] = []
    if t["n_fits"].max() > 1:
        extras += [("spread", "Spread", _or_dash(value)), ("p_refits", "p (refits)", p_value)]
    if (t["n_groups"] < t["n_queries"]).any():
        extras += [("design_effect", "Design effect", _or_dash("{:.1f}".format))]
    return extras


def _or_dash(show: Callable[[float], str]) -> Callable[[float], str]:
    return lambda x: "–" if pd.isna(x) else show(x)


def hard_query_text(study: Study) -> str:
    """The estimates on hard queries; "" if the study has none."""
    table = study.hard_queries
    if table is None or table.empty or not table["estimate"].any():
        return ""
    table = table[table["estimate"] & (table["n_queries"] > 0)]
    header = [
        "System", f"hard by {study.hard_measure}", "chosen by", "queries", "groups", "baseline",
        "system", "gain", f"{study.test.confidence:.0%} interval", "p", "p corr.",
    ]  # fmt: skip
    rows = [
        [
            str(r["system"]),
            str(r["rule"]),
            str(r["chosen_by"]),
            f"{r['n_queries']:,}",
            f"{r['n_groups']:,}",
            value(r["baseline_mean"]),
            value(r["system_mean"]),
            signed(r["gain"]),
            f"[{signed(r['low'])}, {signed(r['high'])}]",
            p_value(r["p"]),
            p_value(r["p_corrected"]),
        ]
        for r in table.to_dict("records")
    ]
    return aligned(header, rows, left=3)


def study_text(study: Study) -> str:
    """Verdict and tables of one study, for the terminal."""
    found = verdict(study)
    blocks = [
        f"{study.name}: {found.headline}",
        wrapped(found.details),
        wrapped(group_verdict(study)),
        "\n".join(wrapped(f"! {sentence}") for sentence in column_verdicts(study)),
        means_table(study),
        comparison_table(study),
        wrapped(hard_query_verdict(study)),
        hard_query_text(study),
        "\n".join(wrapped(f"! {w}") for w in study.warnings),
    ]
    return "\n\n".join(b for b in blocks if b)


def report_text(report: Report) -> str:
    """The report's numbers as plain text; the HTML file has the same and more."""
    definitions = "\n".join(wrapped(f"{name}: {text}") for name, text in report.definitions)
    warnings = "\n".join(wrapped(f"! {w}") for w in report.warnings)
    parts = [report.title, *map(study_text, report.studies), warnings, definitions]
    parts = [part for part in parts if part]
    return "\n\n\n".join(parts) + "\n"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """Columns padded to their widest cell, the first ``left`` to the left, others to the right;
    a rule under the header."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[j]) for row in table) for j in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if j < left else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join([lines[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]])


def wrapped(text: str) -> str:
    """The text in lines of at most 100 characters."""
    return textwrap.fill(text, WIDTH, subsequent_indent="  ") if text else ""
