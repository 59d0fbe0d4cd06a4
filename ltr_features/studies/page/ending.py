"""Summary at the end of a run on the terminal: verdict, table and remarks; 80 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from ltr_base.names import clipped
from ltr_features.studies.page.report import Report, Study
from ltr_features.studies.page.tables import aligned, wrapped
from ltr_features.studies.page.verdicts import (
    HELPS,
    HURTS,
    nothing_in_reach,
    outcome_of,
    second_sentence,
    value,
    verdict_sentence,
)

WIDTH, ROWS, STUDIES, REMARKS = 80, 8, 3, 3
_MARKED = (HELPS, HURTS)
#: The file of a report that contains the summary.
ENDING = "verdict.txt"


def report_ending(report: Report) -> str:
    """Summary of a report on systems: the verdicts, and the headline's baseline and the systems
    compared with it."""
    studies = report.studies[:STUDIES]
    labels = {name: study.label_of(name) for study in studies for name in _compared(study)}
    cells = [_cells(study) for study in studies]
    rows = [[label, *(c.get(name, "") for c in cells)] for name, label in labels.items()]
    heads = [studies[0].measures[0], *(study.name for study in studies)]
    parts = [
        textwrap.fill(f"{verdict_sentence(report)} {second_sentence(report)}", WIDTH),
        _table(heads, rows),
        "▲/▼ significantly better/worse than the first line after correction.",
        *_remarks(report),
    ]
    return "\n".join(parts) + "\n"


def rows_ending(
    verdict: str,
    means: Mapping[str, Mapping[str, float]],
    measure: str,
    remarks: Sequence[str] = (),
) -> str:
    """Summary of a report on tables: the verdict, the first table's means and the remarks."""
    name, rows = next(iter(means.items()))
    table = _table([measure, clipped(name, 40)], [[label, value(x)] for label, x in rows.items()])
    said = [textwrap.fill(verdict, WIDTH)] if verdict else []
    return "\n".join([*said, table, *_first(remarks)]) + "\n"


def _compared(study: Study) -> list[str]:
    """The headline's baseline and its rivals."""
    baseline = study.pairs[0][1]
    return [baseline, *(system for system, other in study.pairs if other == baseline)]


def _cells(study: Study) -> dict[str, str]:
    """Mean of the primary measure of each compared system, and its mark."""
    measure, (baseline, *rivals) = study.measures[0], _compared(study)
    cells = {baseline: f"{value(float(study.values(baseline, measure).mean()))}  "}
    for name in rivals:
        row = study.comparison((name, baseline), measure)
        cells[name] = f"{value(row['system_mean'])} {outcome_of(row).mark:1}"
    return cells


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of at most ROWS rows: the first two (a report's headline), those with a mark, and
    then the others, in their order. First cells are cut so that lines fit."""
    most = max(20, 40 // len(heads[1:]))
    heads = [heads[0], *(clipped(head, most) for head in heads[1:])]
    widths = [max(len(row[j]) for row in [heads, *rows]) for j in range(1, len(heads))]
    room = WIDTH - sum(widths) - 2 * len(widths)
    by_need = sorted(range(len(rows)), key=lambda i: i > 1 and not any(_marked(rows[i])))
    shown = [rows[i] for i in sorted(by_need[:ROWS])]
    hidden = [rows[i] for i in by_need[ROWS:]]
    text = aligned(heads, [[clipped(row[0], room), *row[1:]] for row in shown], left=1)
    if not hidden:
        return text
    counts = zip(_MARKED, map(sum, zip(*map(_marked, hidden), strict=True)), strict=True)
    marked = "".join(f", {n} {outcome.words}" for outcome, n in counts if n)
    return f"{text}\n… and {len(hidden)} more{marked}{', in the report' * bool(marked)}"


def _marked(row: Sequence[str]) -> list[bool]:
    """Whether some cell of the row has the mark, for each mark."""
    return [any(cell.endswith(outcome.mark) for cell in row[1:]) for outcome in _MARKED]


def _remarks(report: Report) -> list[str]:
    """That nothing could have been significant, what is not as the experiment's file asks for (the
    warnings of the report), and the first remarks."""
    first = [*nothing_in_reach(report), *(("", warning) for warning in report.warnings[:1])]
    rest = [*(("", warning) for warning in report.warnings[1:]), *report.remarks]
    return _first(
        [f"{of}: {remark}" if of else remark for of, remark in [*first, *rest]],
        REMARKS + len(first),
    )


def _first(remarks: Sequence[str], most: int = REMARKS) -> list[str]:
    """The first remarks, uncut since each ends with what helps."""
    shown = [wrapped(f"! {remark}", WIDTH) for remark in remarks[:most]]
    hidden = len(remarks) - len(shown)
    return [*shown, f"! {hidden} more in the report"] if hidden > 0 else shown
