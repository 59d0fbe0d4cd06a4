"""Write a report to files: page, text, tables, LaTeX and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from ltr_features.studies.config import NAME_BYTES
from ltr_features.studies.page import html
from ltr_features.studies.page.charts.drawing import Drawing
from ltr_features.studies.page.ending import ENDING, report_ending
from ltr_features.studies.page.query_rankings import moved
from ltr_features.studies.page.report import Report, Study
from ltr_features.studies.page.study_figures import ReportFigures
from ltr_features.studies.page.study_tables import latex_tables, report_text
from ltr_features.studies.page.tables import write_csv
from ltr_features.studies.statistics.paired_tests import group_labels


def write_outputs(report: Report, path: Path) -> None:
    """Write a report into an existing folder:

    - ``report.html``; ``summary.txt``: the same numbers as text; ``verdict.txt``: what the
      terminal shows at the end of a run
    - ``comparisons.csv``; ``tables/NAME.{csv,json,parquet}``: comparisons, means, per_query,
      hard_queries, query_classes, query_kinds, precision_recall, learning_curve,
      column_value, moves, importance, column_correlation, columns (those that the report has); in
      JSON numbers have 15 decimals, the most that pandas writes, in CSV and Parquet all
    - ``tables.tex``: of each study the tables of systems, differences and hard queries, for papers
    - ``figures/*.{svg,pdf}``

    The same report gives the same files, byte for byte.
    """
    figures = ReportFigures(report)
    texts = {
        "report.html": html.render(report, figures),
        "summary.txt": report_text(report),
        ENDING: report_ending(report),
        "tables.tex": latex_tables(report),
    }
    write_files(path, texts, figures.named())
    frames = tables_of(report)
    write_csv(frames["comparisons"], path / "comparisons.csv")
    (path / "tables").mkdir()
    for name, frame in frames.items():
        write_csv(frame, path / "tables" / f"{name}.csv")
        frame.to_json(
            path / "tables" / f"{name}.json", orient="records", indent=1, double_precision=15
        )
        frame.to_parquet(path / "tables" / f"{name}.parquet", index=False)


def write_files(
    path: Path, texts: Mapping[str, str], drawings: Iterable[tuple[str, Drawing]]
) -> None:
    """Write texts by file name into an existing folder, and drawings as ``figures/*.{svg,pdf}``.
    Long names of drawings are cut. Where names are then the same but for case or characters that
    file names cannot have, later ones get a number."""
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8", newline="\n")
    (path / "figures").mkdir()
    times: Counter[str] = Counter()
    for whole, drawing in drawings:
        name = whole.encode()[:NAME_BYTES].decode(errors="ignore")
        times[name.casefold()] += 1
        number = times[name.casefold()]
        drawing.write(path / "figures" / (name if number == 1 else f"{name}--{number}"))


def tables_of(report: Report) -> dict[str, pd.DataFrame]:
    """The report's numbers by table; the column ``study`` names the study of each row."""
    parts: dict[str, list[pd.DataFrame]] = {}
    for study in report.studies:
        for name, frame in _tables_of_study(study).items():
            if frame is not None:
                parts.setdefault(name, []).append(frame.assign(study=study.name))
    frames = {name: pd.concat(found, ignore_index=True) for name, found in parts.items()}
    if report.columns:
        frames["columns"] = pd.DataFrame([vars(column) for column in report.columns])
    return frames


def _tables_of_study(study: Study) -> dict[str, pd.DataFrame | None]:
    kinds, correlation = study.query_kinds, study.column_correlation
    values = {system.name: system.per_query[list(study.measures)] for system in study.systems}
    importance = [
        system.importance.assign(system=system.name)
        for system in study.systems
        if system.importance is not None
    ]
    return {
        "comparisons": study.comparisons,
        "means": pd.DataFrame(
            {"system": s.name, "columns": len(s.columns), **values[s.name].mean()}
            for s in study.systems
        ),
        "per_query": pd.concat(_per_query(study, name, found) for name, found in values.items()),
        "hard_queries": study.hard_queries,
        "query_classes": study.query_classes,
        "query_kinds": None if kinds is None else _with_index(kinds.astype(object), "query"),
        "precision_recall": study.precision_recall,
        "learning_curve": study.learning_curve,
        "column_value": study.column_value,
        "moves": _moves(study) if study.drill_down else None,
        "importance": pd.concat(importance) if importance else None,
        "column_correlation": None if correlation is None else _with_index(correlation, "column"),
    }


def _with_index(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The frame with its index as first column."""
    return frame.rename_axis(name).reset_index()


def _per_query(study: Study, system: str, values: pd.DataFrame) -> pd.DataFrame:
    """A system's values, with its name and the groups of the queries if there are any."""
    labels = group_labels(values.index, study.groups)
    groups = {} if labels is None else {"group": labels}
    return _with_index(values, "query").assign(system=system, **groups)


def _moves(study: Study) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "query": query,
                **{k: v for k, v in vars(document).items() if k != "columns"},
                "columns": "; ".join(f"{name} {shift:+.3f}" for name, shift in document.columns),
            }
            for query, documents in study.drill_down.items()
            for document in moved(documents)
        ],
        columns=["query", "document", "title", "label", "before", "after", "columns"],
    ).astype(dict.fromkeys(("label", "before", "after"), "Int64"))
