"""LETOR files: ``measure``, ``validate`` and ``convert``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from letor.errors import InputError
from ltr_base.names import WRITE_AS_TEXT, counted, listed, nearest, rounded
from ltr_features.commands.options import (
    EXIT_BAD_INPUT,
    MaxColumns,
    NonFinite,
    Threads,
    check_outputs,
    echo,
    settings,
    tell_replaced,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from letor.dataset import RankingData
    from letor.folds import Fold


def measure(
    data: Annotated[
        Path,
        typer.Argument(
            help="LETOR text (.gz, .bz2, .zst too) or .parquet with the labels; or judgements "
            "(TREC, BEIR, a table)."
        ),
    ],
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Scores of the rows, one line each with the score last; or a ranking (TREC run, "
            "table)."
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help="Name or number of a column to rank by instead."),
    ] = None,
    on_error: Annotated[
        Literal["raise", "skip"],
        typer.Option(help="At a bad line: stop, or leave it out and list it on stderr."),
    ] = "raise",
    non_finite: NonFinite = "raise",
    max_columns: MaxColumns = 10_000,
    cutoff: Annotated[
        int | None, typer.Option(min=1, help="Cut-off k of the measures.", show_default="10")
    ] = None,
    official: Annotated[
        Literal["letor4", "mslr"] | None,
        typer.Option(help="Compute all measures of this official script instead."),
    ] = None,
    threads: Threads = None,
) -> None:
    """Measure one ranking under all definitions in use, side by side.

    The same ranking of MQ2008 has an NDCG@10 of 0.23, 0.50 or 0.78: definitions differ in gain,
    discount, ties, and the value of queries without relevant documents. Relevant documents and
    queries without rows count if the file NAME.columns.json next to the data, or the Parquet file
    itself, lists them.

    Example: ltr-features measure test.txt --scores scores.txt --cutoff 10"""
    from letor.column_names import is_letor, read_rows
    from letor.evaluation import measurable, side_by_side
    from letor.files import check_is_file
    from letor.lint_labels import label_remarks
    from letor.measures import conventions, official_measures
    from letor.svmlight import BadLine, check_is_text
    from ltr_features.sources.files import judged_ranking, read_judgements

    if (scores is None) == (column is None):
        raise InputError("give what to rank by: either --scores FILE or --column N")
    if official and cutoff is not None:
        raise InputError(f"--cutoff: the script of {official} has its own cut-offs; leave it out")
    definitions = official_measures(official) if official else conventions(cutoff or 10)
    if not is_letor(data):
        check_is_file(data)
        if scores is None:
            raise InputError(
                f"{data} is read as judgements: give a ranking by --scores; of a table of features "
                "`ltr-features convert` makes rows"
            )
        check_is_text(data, max_columns)
        if on_error != "raise" or non_finite != "raise":
            raise InputError(
                f"{data} is read as judgements: --on-error and --non-finite are for LETOR rows; "
                "leave them out"
            )
        rows, values, remarks = judged_ranking(scores, read_judgements(data))
    else:
        rejected: list[BadLine] = []
        rows = read_rows(
            data,
            values=scores is None,
            on_error=on_error,
            non_finite=non_finite,
            max_columns=max_columns,
            rejected=rejected,
            threads=threads,
        )
        for line in rejected:
            echo(f"left out: {data}, {line}", err=True)
        rows, values, remarks = _ranked(rows, data, scores, column)
    for remark in remarks:
        echo(f"{scores}: {remark}", err=True)
    for remark in label_remarks(rows.y):
        echo(f"{data}: {remark}", err=True)
    if not (rows.y > 0).any():
        echo(f"{data}: no row has a label above 0: there is nothing to measure", err=True)
    definitions, refused = measurable(definitions, rows.y)
    _print_measures(side_by_side(rows, values, definitions), rows.coverage)
    for why, names in refused.items():
        echo(f"not computed: {listed(list(dict.fromkeys(names)), 20)}: {why}", err=True)


def _ranked(
    rows: RankingData, data: Path, scores: Path | None, column: str | None
) -> tuple[RankingData, NDArray[np.float64], list[str]]:
    """Rows, the values to rank them by, and remarks on a ranking."""
    import numpy as np
    import pandas as pd

    from letor.judged_runs import score_remarks
    from ltr_features.sources.files import (
        is_ranking,
        judged_ranking,
        judgements_of,
        read_row_scores,
    )

    if scores is not None and is_ranking(scores):
        return judged_ranking(scores, judgements_of(rows))
    if scores is not None:
        values = read_row_scores(scores, rows)
        run = pd.DataFrame({"qid": rows.query_index, "score": values})
        return rows, values, score_remarks(run)
    names, name = rows.column_names, str(column)
    if name not in names and name.isdecimal() and 0 < int(name) <= len(names):
        name = names[int(name) - 1]
    if name not in names:
        found = counted(len(names), "column")
        raise InputError(f"{data} has {found}, and no column {name!r}; {nearest(name, names)}")
    values = rows.column(name).astype(np.float64)
    if n := int(np.isnan(values).sum()):
        raise InputError(
            f"{data}: column {name} has no value in {counted(n, 'row')}, which cannot be ranked: "
            "leave them out, or write a value for them"
        )
    return rows, values, []


def _print_measures(table: pd.DataFrame, coverage: str) -> None:
    """Print a numbered line per definition with its value, the coverage of the rows, and the
    definitions by number."""
    from ltr_features.studies.page.tables import aligned

    header = ["", "measure", "known as", "value", "queries", "without relevant"]
    lines = [
        [f"{i}", r.measure, r.known_as, f"{r.value:.4f}", f"{r.queries:,}", f"{r.empty:,}"]
        for i, r in enumerate(table.itertuples(), start=1)
    ]
    echo(aligned(header, lines, left=3) + f"\n{coverage}\n")
    for i, definition in enumerate(table["definition"], start=1):
        echo(f"{i}: {definition}")


def validate(
    file: Annotated[
        Path,
        typer.Argument(
            help="LETOR text (.gz, .bz2, .zst too) or .parquet; a folder of folds, or an output "
            "folder."
        ),
    ],
    max_columns: MaxColumns = 10_000,
    threads: Threads = None,
) -> None:
    """Check the rows of a file and advise on each finding; for a folder of folds (S1.txt, ... or
    Fold1, ...), tell what is missing and where parts or folds disagree; for the folder of an index,
    knowledge base, ranker or pipeline, list the files that were changed since they were written,
    and those elsewhere that a pipeline reads.

    Reports counts, labels, bad lines, groups out of order, rows and columns that give the labels
    away, constant columns, duplicate documents, ids that lost digits, and remarks on trained
    columns (from NAME.columns.json or Parquet). The exit code is 2 if the file has unreadable
    lines, folds cannot be read, or files were changed or are missing.

    Example: ltr-features validate train.txt.gz"""
    from letor.digests import DIGESTS, changed_files
    from letor.fold_files import layout
    from letor.lint import render
    from letor.lint import validate as check
    from letor.svmlight import check_is_text

    if file.is_dir():
        from ltr_features.feature_files import changed_given_files

        if not (file / DIGESTS).exists():
            if not layout(file):
                raise InputError(
                    f"{file} has neither folds of rows (Fold1, ...; S1.txt, ...; or train.txt, "
                    f"vali.txt and test.txt) nor {DIGESTS}, which an index, knowledge base, ranker "
                    "or pipeline has unless an early version made it: name one of these, or a file"
                )
            _check_folds(file, {"max_columns": max_columns, "threads": threads})
            return
        check_is_text(file, max_columns)
        # Given files only if all others are right: one of those describes them.
        changed = changed_files(file) or [
            *changed_given_files(file),
            *changed_given_files(file / "features"),
        ]
        echo("\n".join(changed) or f"{file}: all files are as they were written")
        if changed:
            raise typer.Exit(EXIT_BAD_INPUT)
        return
    if file.suffix == ".safetensors":
        raise InputError(f"{file} is a model, not rows: see ltr-features models info {file}")
    result = check(file, max_columns=max_columns, threads=threads)
    echo(render(result))
    if not result.is_readable:
        raise typer.Exit(EXIT_BAD_INPUT)


def _check_folds(folder: Path, options: Mapping[str, Any]) -> None:
    """Print the parts of each fold and what is wrong with them; exit with 2 if one is missing."""
    from letor.files import LOCK
    from letor.fold_files import fold_parts

    whole, homes = True, []
    for name, parts in fold_parts(folder).items():
        there = ", ".join(path.name for path in parts.values() if path is not None)
        lost = [part for part, path in parts.items() if path is None]
        missing = f"{'; ' if there else ''}{', '.join(lost)} missing" if lost else ""
        echo(f"{name}: {there}{missing}")
        whole &= not lost
        homes += [path.parent for path in parts.values() if path is not None][:1]
    if (folder / LOCK).exists():
        echo(f"{folder}: a build is going on there, or ended without finishing")
        whole = False
    if not whole:
        echo(
            f"{folder} is incomplete: each fold needs training, validation and test rows; build "
            "the folds again, or add the files"
        )
        raise typer.Exit(EXIT_BAD_INPUT)
    # Values that are not finite are for the validation of the files, which says what to do.
    if not any(path.suffix == ".parquet" for home in (folder, *homes) for path in home.iterdir()):
        options = {"non_finite": "nan", **options}
    folds = _read_folds(folder, homes, options)
    echo(f"{folder}: {counted(len(folds), 'fold')}, all parts are there")


def _read_folds(folder: Path, homes: Sequence[Path], options: Mapping[str, Any]) -> list[Fold]:
    """The folds of a folder; with a note if they can only be read one by one."""
    from letor.fold_files import layout, read_folds

    options = {"comments": False, **options}
    try:
        return read_folds(folder, **options)[1]
    except InputError as error:
        if layout(folder) != "folds":
            raise
        folds = [fold for home in homes for fold in read_folds(home, **options)[1]]
        # Rows with columns of models that were trained in each fold differ between folds.
        echo(f"note: {error}")
        return folds


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            help="LETOR text (.gz, .bz2, .zst too); a table of features (.csv, .tsv, .parquet); or "
            ".jsonl: features that Elasticsearch, OpenSearch or Solr logged."
        ),
    ],
    target: Annotated[
        Path,
        typer.Argument(help="LETOR text, .parquet, .qrels (judgements), or .run (with --scores)."),
    ],
    scores: Annotated[
        Path | None, typer.Option(help="For a .run: scores of the rows, last on each line.")
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(help="For features without labels: judgements; else all labels are 0."),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="KEY=NAME of a table's column without a usual name: query, document, label; or "
            "KEY=NUMBER if it has no header line."
        ),
    ] = None,
    non_finite: NonFinite = "raise",
    max_columns: MaxColumns = 10_000,
    threads: Threads = None,
) -> None:
    """Convert LETOR text to Parquet or back, rows to TREC files, or tables of features, logged
    features, and text of LightGBM and XGBoost to rows.

    Text without query ids takes them from the sizes of queries in the file NAME.query or NAME.group
    beside it.

    Example: ltr-features convert test.txt test.run --scores scores.txt"""
    from letor.column_names import check_format, write_rows
    from letor.document_ids import needed_ids
    from letor.trec import qrels_of, run_of, write_qrels, write_run
    from ltr_features.sources.files import read_row_scores

    letor = {"non_finite": non_finite, "max_columns": max_columns, "threads": threads}
    kind = next((s for s in (".qrels", ".run") if s in target.suffixes), None)
    if (kind == ".run") != (scores is not None):
        raise InputError("a .run, and only a .run, needs --scores: it is a ranking by scores")
    replaced = check_outputs(target, inputs=[source, scores, qrels])
    if kind is None:
        check_format(target)
    rows = _rows_of_any(source, qrels, column or [], letor)
    if kind is not None:
        needed_ids(rows, "which TREC files need", source)
    if scores is not None:
        write_run(run_of(rows, read_row_scores(scores, rows)), target)
    elif kind == ".qrels":
        write_qrels(qrels_of(rows), target)
        if rows.missing is None or rows.missing.n_relevant or rows.queries_without_rows:
            echo(f"judgements of the rows only; {rows.coverage}", err=True)
    else:
        write_rows(rows, target, threads=threads)
    tell_replaced(replaced)
    sizes = f"{counted(len(rows), 'row')}, {counted(rows.n_queries, 'query')}"
    echo(f"{sizes}: {target}")


def _rows_of_any(
    source: Path, qrels: Path | None, column: Sequence[str], letor: Mapping[str, Any]
) -> RankingData:
    """Rows of LETOR text (read with the options ``letor``), Parquet, a table or a feature log."""
    from letor.column_names import is_letor, read_rows
    from letor.query_sizes import query_sizes
    from letor.svmlight import check_is_text
    from ltr_features.sources.feature_log import is_feature_log, read_feature_log
    from ltr_features.sources.table_rows import (
        column_roles,
        is_table_of_rows,
        like_labels,
        read_table_rows,
    )
    from ltr_features.sources.usual_names import columns_in_words

    is_table = is_table_of_rows(source)
    if is_table or is_feature_log(source):
        check_is_text(source, letor["max_columns"])
    if column and not is_table:
        raise InputError(f"--column is for tables of features; {source} is none")
    if is_table:
        columns = column_roles(source, settings(column, "--column"))
        rows = read_table_rows(source, qrels, columns=columns, non_finite=letor["non_finite"])
        echo(f"{columns_in_words(columns)}; features: {listed(rows.column_names, 20)}")
        for remark in rounded(query=rows.query_ids, document=rows.document_ids):
            echo(f"note: {remark}: {WRITE_AS_TEXT}", err=True)
        labels = "label" in columns or qrels is not None
    elif is_feature_log(source):
        rows, labels = read_feature_log(source, qrels), qrels is not None
    elif qrels is not None:
        raise InputError(f"--qrels is for features without labels; {source} has labels")
    else:
        sizes = None if source.suffix == ".parquet" or is_letor(source) else query_sizes(source)
        rows, labels = read_rows(source, **letor, query_sizes=sizes), True
    if not labels:
        named = [
            f"; if {name!r} is one: --column label={name!r}"
            for name in like_labels(rows.column_names)
        ]
        echo(f"No judgements: every label is 0{''.join(named[:1])}", err=True)
    return rows
