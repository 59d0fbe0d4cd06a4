"""Saved pipelines: ``pipeline add``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ltr_features.commands.options import Threads

app = typer.Typer(help="Saved pipelines: documents that come later.", no_args_is_help=True)


@app.command("add")
def pipeline_add(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    documents: Annotated[
        Path, typer.Argument(help="A table: .csv, .tsv, .jsonl (BEIR's corpus), .parquet.")
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="OURS=THEIRS: the table's column of id, body, title, ...; by default those of "
            "these names, and text for the body."
        ),
    ] = None,
    threads: Threads = 1,
) -> None:
    """Add documents to a saved pipeline, or replace those whose ids are there, without building it
    again: statistics, vectors, models and ranker stay as they are, and so do all other scores.

    It says how far the documents have gone from those that all of these were learned from.

    Example: ltr-features pipeline add service new.csv --column body=description"""
    from ltr_features.commands.options import settings
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.sources.table import read_documents
    from ltr_features.sources.table_blocks import table_of

    pipeline = ScoringPipeline.load(folder, threads=threads)
    fields = pipeline.features.context_.collection.fields
    columns = _columns_of(documents, fields, settings(column or [], "column"))
    table = read_documents(table_of(documents), columns)
    pipeline = pipeline.with_documents(table.ids, table.fields)
    pipeline.save_added(folder)
    typer.echo(f"{len(table.ids):,} documents of {documents}: {folder}")
    if (added := pipeline.features.added_) is not None:
        typer.echo(str(added.drift()))


def _columns_of(path: Path, fields: Iterable[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The table's columns by what they are: those given, and else those that are called alike."""
    from letor.errors import InputError
    from ltr_features.sources.files import DOCUMENT_IDS
    from ltr_features.sources.table_blocks import find_columns, table_columns, table_of

    names = table_columns(table_of(path))
    usual = {s: (s, "text") if s == "body" else (s,) for s in fields} | {"id": DOCUMENT_IDS}
    found = {what: find_columns(names, known) for what, known in usual.items()}
    columns = {what: name[0] for what, name in found.items() if name is not None} | dict(given)
    if "id" not in columns or len(columns) < 2:
        raise InputError(
            f"{path}: the columns are {', '.join(map(repr, names))}; say which is the id and which "
            "are texts: --column id=... --column body=..."
        )
    return columns
