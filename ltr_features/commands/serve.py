"""A saved pipeline over HTTP: ``serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ltr_features.commands.options import Threads


def serve(
    folder: Annotated[Path, typer.Argument(help="Folder that `ScoringPipeline.save` wrote.")],
    host: Annotated[str, typer.Option(help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8080,
    threads: Threads = 1,
) -> None:
    """Answer queries with a saved pipeline over HTTP, JSON in and out.

    POST /rank takes {"query": "...", "k": 10}, or {"query": "...", "documents": ["id", ...]} to
    rank these; GET /health says whether it is up. SIGTERM and Ctrl-C end it, after the requests
    that have begun.

    Example: ltr-features serve service --port 8080"""
    from letor.errors import InputError
    from ltr_features.scoring import ScoringPipeline
    from ltr_features.serving import ScoringServer

    pipeline = ScoringPipeline.load(folder, threads=threads)
    try:
        made = ScoringServer(pipeline, host, port)
    except OSError as error:
        raise InputError(f"{host}, port {port}: {error.strerror}; name another") from None
    with made as server:
        # What is made at the first query is made now.
        pipeline.rank("", 1)
        pipeline.score("", pipeline.features.context_.collection.document_ids[:1])
        typer.echo(
            f"{server.n_documents:,} documents: http://{host}:{server.server_address[1]}/rank"
        )
        server.serve()
