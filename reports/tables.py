"""Plain-text tables for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from reports.report import Report, Study
from reports.verdicts import (
    column_verdicts,
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
    test = study.test
    return (
        f"▲ ▼ significantly better, worse than {against}: Fisher's randomisation test, two-sided, "
        f"{test.n_permutations:,} permutations, seed {test.seed}, p < {test.alpha:g} after "
        f"correction ({test.correction_name}) over the {len(study.comparisons)} comparisons of "
        f"this table ({len(study.pairs)} pairs x {len(study.measures)} measures, "
        f"{len(study.queries):,} queries)."
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
    p-values, effect, won/tied/lost."""
    measure = measure or study.measures[0]
    t = study.comparisons
    rows = [
        [
            f"{r['system']} - {r['baseline']}",
            signed(r["difference"]),
            percent(r["relative"]),
            f"[{signed(r['low'])}, {signed(r['high'])}]",
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
        "p", "p corr.", "p (t)", "effect", "won/tied/lost",
    ]  # fmt: skip
    return aligned(header, rows, left=1)


def hard_query_text(study: Study) -> str:
    """The hard-query table; "" if the study has none."""
    if study.hard_queries is None or study.hard_queries.empty:
        return ""
    header = [
        "System", f"hard by {study.hard_measure}", "chosen by", "queries", "baseline", "gain",
        "control gain", "net gain", f"{study.test.confidence:.0%} interval", "p",
    ]  # fmt: skip
    rows = [
        [
            str(r["system"]),
            str(r["rule"]),
            str(r["chosen_by"]),
            f"{r['n_queries']:,}",
            *(
                "-" if pd.isna(r[c]) else show(r[c])
                for c, show in (
                    ("baseline_mean", value),
                    ("gain", signed),
                    ("control_gain", signed),
                    ("net_gain", signed),
                )
            ),
            "-" if pd.isna(r["low"]) else f"[{signed(r['low'])}, {signed(r['high'])}]",
            p_value(r["p"]),
        ]
        for r in study.hard_queries.to_dict("records")
    ]
    return aligned(header, rows, left=3)


def study_text(study: Study) -> str:
    """Verdict and tables of one study, for the terminal."""
    found = verdict(study)
    blocks = [
        f"{study.name}: {found.headline}",
        wrapped(found.details),
        "\n".join(wrapped(f"! {sentence}") for sentence in column_verdicts(study)),
        means_table(study),
        comparison_table(study),
        hard_query_text(study),
        wrapped(hard_query_verdict(study)),
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
