"""A report as one self-contained HTML file: no network, light and dark, printable."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ltr_features.studies.page import figures, pages, verdicts
from ltr_features.studies.page.report import Report, Study, SystemResult
from ltr_features.studies.page.study_figures import (
    correlation_figure,
    family_numbers,
    gains_figure,
    has_importance,
    importance_figure,
)
from ltr_features.studies.page.tables import baseline_letters, marks_note, significance_marks
from ltr_features.studies.statistics.correlation import DEFINITION as CORRELATION
from ltr_features.studies.statistics.hard_queries import DEFINITIONS as HARD_DEFINITIONS
from ltr_features.studies.statistics.significance import TIE

EXTREME_QUERIES = 8


def write(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write the report as one HTML file; returns its path.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(path)
    pages.write(render(report), path)
    return path


def render(report: Report) -> str:
    """The report as HTML. The same report gives the same text: no time stamp, no random id."""
    environment = pages.environment()
    environment.filters |= {
        "value": verdicts.value,
        "signed": verdicts.signed,
        "percent": verdicts.percent,
        "p_value": verdicts.p_value,
        "plain": _plain,
    }
    definitions = report.definitions
    return environment.get_template("report.html.jinja").render(
        report=report,
        studies=[_study_view(report, s, f"s{i + 1}") for i, s in enumerate(report.studies)],
        definitions=definitions,
        anchors={name: f"definition-{i + 1}" for i, (name, _) in enumerate(definitions)},
        hard_definitions=HARD_DEFINITIONS,
        correlation_definition=CORRELATION,
        trained=any(c.training_distance is not None for c in report.columns),
        families=sorted({c.family for c in report.columns}),
        family_number=family_numbers(report),
        colours=figures.COLOURS,
        curves=[
            (curve, figures.curve_chart(curve, f"curve{i + 1}"))
            for i, curve in enumerate(report.curves)
        ],
        numbered=_Numbering(),
        style=Markup(pages.template_text("style.css")),
        script=Markup(pages.template_text("script.js")),
    )


class _Numbering:
    """Numbers tables and figures in order of appearance: ``numbered("Table")`` is "Table 1"."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def __call__(self, kind: str) -> str:
        self._last[kind] = self._last.get(kind, 0) + 1
        return f"{kind} {self._last[kind]}"


def _study_view(report: Report, study: Study, key: str) -> dict[str, Any]:
    """What the template shows of one study."""
    primary = study.measures[0]
    return {
        "key": key,
        "study": study,
        "verdict": verdicts.verdict(study),
        "column_verdicts": verdicts.column_verdicts(study),
        "group_verdict": verdicts.group_verdict(study),
        "hard_verdict": verdicts.hard_query_verdict(study),
        "letters": baseline_letters(study),
        "marks": significance_marks(study),
        "marks_note": marks_note(study),
        "marks_style": f" of-{min(len(study.baselines), 4)}",
        "best": {
            m: max(f"{s.per_query[m].mean():.4f}" for s in study.systems) for m in study.measures
        },
        "comparisons": {m: _comparison_rows(study, m) for m in study.measures},
        "charts": [
            (pair, gains_figure(study, pair, f"{key}-gain{i + 1}"))
            for i, pair in enumerate(study.pairs)
        ],
        "hard_baseline": study.hard_baseline or study.pairs[0][1],
        **_hard_rows(study),
        "importance": [
            (system, *importance_figure(report, system, f"{key}-columns{i + 1}"))
            for i, system in enumerate(_headline_first(study))
            if has_importance(system)
        ],
        "correlation": correlation_figure(study, f"{key}-correlation"),
        "extremes": _extremes(study, primary),
        "difference": dict(
            zip(
                study.queries,
                study.values(study.pairs[0][0], primary) - study.values(study.pairs[0][1], primary),
                strict=True,
            )
        ),
        "kinds": _kinds(study),
        "pushed": any(move.columns for one in study.drill_down for move in one.moves),
        "data": _embedded(study),
    }


def _plain(setting: Any, between: str = ", ") -> str:
    """A setting in words: lists without brackets, "none" and "yes" for Python's words."""
    if isinstance(setting, list | tuple):
        return between.join(_plain(one, " / ") for one in setting) or "none"
    if isinstance(setting, bool):
        return "yes" if setting else "no"
    return "none" if setting is None else str(setting)


def _headline_first(study: Study) -> list[SystemResult]:
    headline = study.pairs[0][0]
    return sorted(study.systems, key=lambda s: s.name != headline)


def _comparison_rows(study: Study, measure: str) -> list[dict[str, Any]]:
    table = study.comparisons[study.comparisons["measure"] == measure]
    limit = float(np.nanmax(np.abs(table[["low", "high", "difference"]].to_numpy())))
    rows = []
    for row in table.to_dict("records"):
        outcome = verdicts.outcome_of(pd.Series(row))
        style = {"helps": "gain", "hurts": "loss"}.get(outcome, "unsure")
        ends = row["low"], row["difference"], row["high"]
        chart = "" if np.isnan(ends).any() else figures.interval_chart(*ends, limit, style)
        rows.append({**row, "style": style, "chart": chart})
    return rows


def _hard_rows(study: Study) -> dict[str, list[dict[str, Any]]]:
    """The estimates on hard queries, and what other choices of queries give."""
    if study.hard_queries is None or study.hard_queries.empty:
        return {"hard": [], "other_choices": []}
    estimate = study.hard_queries["estimate"].astype(bool)
    return {
        "hard": study.hard_queries[estimate].to_dict("records"),
        "other_choices": study.hard_queries[~estimate].to_dict("records"),
    }


def _extremes(study: Study, measure: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """The headline pair's largest gains and losses."""
    system, baseline = study.pairs[0]
    a, b = study.values(system, measure), study.values(baseline, measure)
    d = a - b
    tables = []
    for title, sign in (("Largest gains", 1), ("Largest losses", -1)):
        order = np.argsort(-sign * d, kind="stable")[:EXTREME_QUERIES]
        rows = [
            {
                "query": study.queries[i],
                "text": study.query_texts.get(study.queries[i], study.queries[i]),
                "baseline": b[i],
                "system": a[i],
                "difference": d[i],
            }
            for i in order
            if sign * d[i] > TIE
        ]
        tables.append((title, rows))
    return tables


def _kinds(study: Study) -> list[tuple[str, list[tuple[str, int]]]]:
    """For each property of queries its classes and how many queries each has."""
    if study.query_kinds is None:
        return []
    found = []
    for name, column in study.query_kinds.reindex(study.queries).items():
        counts = column.value_counts(sort=False)
        found.append((str(name), [(str(label), int(n)) for label, n in counts.items()]))
    return found


def _embedded(study: Study) -> Markup:
    """Per-query values for the page's script: JSON with nothing that HTML would interpret.

    Values are whole millionths, as three little-endian bytes each, in base64: all queries of the
    first measure of the first system, then its next measure, then the next system. Kinds: for each
    property the number of each query's class as one character, "-" for none.
    """
    values = np.stack([[study.values(s.name, m) for m in study.measures] for s in study.systems])
    millionths = np.rint(values * 1e6).astype("<u4").reshape(-1, 1)
    packed = millionths.view(np.uint8)[:, :3].tobytes()
    content: Mapping[str, Any] = {
        "queries": study.queries,
        "texts": [study.query_texts.get(q, "") for q in study.queries],
        "systems": [s.name for s in study.systems],
        "measures": list(study.measures),
        "values": base64.b64encode(packed).decode("ascii"),
        "kinds": []
        if study.query_kinds is None
        else [
            "".join("-" if code < 0 else chr(ord("A") + code) for code in column.cat.codes)
            for _, column in study.query_kinds.reindex(study.queries).items()
        ],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
