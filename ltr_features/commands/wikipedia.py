"""Knowledge base: ``wikipedia``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def wikipedia(
    dump: Annotated[Path, typer.Argument(help="pages-articles dump: .xml, .xml.bz2 or .xml.gz.")],
    out: Annotated[Path, typer.Option(help="Folder of the knowledge base.")] = Path("kb"),
    processes: Annotated[
        int, typer.Option(min=1, help="Processes that parse; results do not depend on it.")
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Make it on the workers of a Dask cluster instead: its address, tcp://host:8786, "
            "or local:N for N processes. The files are the same."
        ),
    ] = None,
    withhold_query_sections: Annotated[
        bool,
        typer.Option(
            "--no-query-sections",
            help="Leave out every second section of each article, for the source "
            "wikipedia-sections, which draws queries from them.",
        ),
    ] = False,
) -> None:
    """Make the knowledge base of a Wikipedia dump: entities, abstracts, anchors, redirects, links.

    The dump is read once, as a stream; interrupted, the command leaves nothing and starts anew.
    With --scheduler, what workers have made lies in OUT.parts until all is done; interrupted, the
    same command goes on with it. Workers read an .xml or a multistream .xml.bz2 themselves;
    others this process decompresses for them, which keeps two or three of them busy.

    Example: ltr-features wikipedia pages-articles.xml.bz2 --processes 4 --out kb"""
    from ltr_features.entities.build import build_knowledge_base
    from ltr_features.sources.wikipedia import progress_bar

    with progress_bar(f"Reading {dump.name}") as show:
        facts = build_knowledge_base(
            dump,
            out,
            processes=processes,
            scheduler=scheduler,
            withhold_query_sections=withhold_query_sections,
            on_progress=show,
        )
    for name, value in facts.items():
        typer.echo(f"  {name}: {value:,}")
    typer.echo(f"Knowledge base: {out}")
