"""Collections: ``index``, ``sample``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ltr_features.commands import completion
from ltr_features.commands.options import Threads, settings


def index(
    source: Annotated[
        str,
        typer.Argument(
            help="beir, trec, table, clicks, ir-datasets, collection, or a package's.",
            autocompletion=completion.sources,
        ),
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(help="KEY=VALUE options of the source, for example folder=data/nfcorpus."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The new workspace.")] = Path("workspace"),
    stopwords: Annotated[str, typer.Option(help="List of stop words to leave out: english.")] = "",
    stemmer: Annotated[
        str | None, typer.Option(help="Snowball stemmer, for example english.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Count and write the documents on the workers of a Dask cluster: its address, "
            "tcp://host:8786, or local:N for N processes. The workspace is the same."
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Read a collection, index it, and keep both in a workspace for the other commands.

    The options of a source are the parameters of its function; a wrong one is answered with the
    list. Values are TOML or text: splits=["test"], document_columns.id=sku.

    Example: ltr-features index beir folder=data/nfcorpus --stopwords english --out workspace"""
    from ltr_features.columns.context import check_target, make_workspace
    from ltr_features.sources.registry import read_collection
    from ltr_features.text.analyzer import Analyzer
    from ltr_features.text.document_workers import documents_on

    check_target(out)
    analyzer = Analyzer(stopwords=stopwords or (), stemmer=stemmer)
    parts = out.with_name(f"{out.name}.parts")
    with documents_on(scheduler, parts) if scheduler else nullcontext() as workers:
        collection = read_collection(source, **settings(options or [], "option"))
        make_workspace(collection, out, analyzer=analyzer, threads=threads, workers=workers)
    typer.echo(f"{collection.name}: fields {', '.join(collection.fields)}")
    for name, value in collection.description.items():
        typer.echo(f"  {name}: {value:,}" if isinstance(value, int) else f"  {name}: {value}")
    typer.echo(f"Workspace: {out}")


def sample(
    folder: Annotated[Path, typer.Argument(help="A new folder.")] = Path("sample"),
) -> None:
    """Write a small collection in every form that the commands read, to try them on.

    Articles of the Wikipedia as tables, BEIR and TREC folders, rankings, a LETOR fold and vectors;
    the tutorials use it.

    Example: ltr-features sample sample"""
    from ltr_features.sample import write_sample

    collection = write_sample(folder)
    n_documents, n_queries = len(collection.document_ids), len(collection.query_ids)
    typer.echo(f"{n_documents} documents, {n_queries} queries: see {folder / 'README.txt'}")
