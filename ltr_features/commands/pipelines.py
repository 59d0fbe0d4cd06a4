"""Saved pipelines: ``pipeline add``, and ``serve`` for HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from letor.errors import InputError
from ltr_base.names import counted
from ltr_features.commands.options import Threads, print_facts, settings

app = typer.Typer(help="Saved pipelines: add documents to them.", no_args_is_help=True)


@app.command("add")
def pipeline_add(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    documents: Annotated[
        Path, typer.Argument(help="A table: .csv, .tsv, .jsonl (BEIR's corpus), .parquet.")
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="OURS=THEIRS: the table's column for id, body, title, ...; by default those with "
            "these names, or with usual ones: docno, name, text."
        ),
    ] = None,
    on_other_text: Annotated[
        Literal["raise", "first", "last"],
        typer.Option(
            help="Where a document id comes again with other texts: stop, or take those of its "
            "first or last row."
        ),
    ] = "raise",
    markup: Annotated[
        Literal["keep", "strip"], typer.Option(help="HTML in texts: keep it, or strip it.")
    ] = "keep",
    threads: Threads = 1,
) -> None:
    """Add documents to a saved pipeline, or replace those with the same ids, without rebuilding it:
    statistics, vectors, models and ranker stay as they are, and so do all other scores.

    The command reports which columns it read, and how far the documents have moved away from those
    of the build.

    Example: ltr-features pipeline add service new.csv --column body=description"""
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.sources.document_table import read_documents
    from ltr_features.sources.table_blocks import table_of

    pipeline = ScoringPipeline.load(folder, threads=threads)
    fields = list(pipeline.features.context_.collection.fields)
    table = read_documents(
        table_of(documents),
        settings(column or [], "column"),
        fields=fields,
        option="--column ",
        on_other_text=on_other_text,
        markup=markup,
    )
    pipeline = pipeline.with_documents(table.ids, table.fields)
    pipeline.save_added(folder)
    typer.echo(f"{counted(len(table.ids), 'document')} of {documents}: {folder}")
    print_facts(table.facts)
    if absent := [field for field in fields if field not in table.fields]:
        typer.echo(
            f"{documents} has no column for {', '.join(absent)}, empty in its documents: name one "
            f"by --column {absent[0]}=...",
            err=True,
        )
    if (added := pipeline.features.added_) is not None:
        typer.echo(str(added.drift()))


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any free port.")] = 8080,
    threads: Threads = 1,
) -> None:
    """Answer queries with a saved pipeline over HTTP, JSON in and out.

    POST /rank takes {"query": "...", "k": 10}, or {"query": "...", "documents": ["id", ...]} to
    rank these; GET /health says whether it is up. SIGTERM and Ctrl-C end it after requests in
    progress.

    Example: ltr-features serve service --port 8080"""
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.serving import ScoringServer

    pipeline = ScoringPipeline.load(folder, threads=threads)
    try:
        bound = ScoringServer(pipeline, host, port)
    except OSError as error:
        raise InputError(f"{host}, port {port}: {error.strerror}; name another") from None
    with bound as server:
        # Warm up: what is computed at the first query is computed now.
        pipeline.rank("", 1)
        pipeline.score("", pipeline.features.context_.collection.document_ids[:1])
        typer.echo(
            f"{counted(server.n_documents, 'document')}: http://{host}:{server.server_address[1]}/rank"
        )
        server.serve()
