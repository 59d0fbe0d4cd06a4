"""Saved pipelines: ``pipeline add``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
            help="OURS=THEIRS: the table's column of id, body, title, ...; by default those that "
            "are called so, or as usual: docno, name, text."
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
    from ltr_features.sources.table import read_documents, usual_columns
    from ltr_features.sources.table_blocks import table_of

    pipeline = ScoringPipeline.load(folder, threads=threads)
    fields = pipeline.features.context_.collection.fields
    given, path = settings(column or [], "column"), table_of(documents)
    table = read_documents(path, usual_columns(path, fields, given, option="--column "))
    pipeline = pipeline.with_documents(table.ids, table.fields)
    pipeline.save_added(folder)
    typer.echo(f"{len(table.ids):,} documents of {documents}: {folder}")
    if (added := pipeline.features.added_) is not None:
        typer.echo(str(added.drift()))
