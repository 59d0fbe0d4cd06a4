"""Feature columns: ``columns list``."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Feature columns: what there is.", no_args_is_help=True)


@app.command("list")
def columns_list(
    family: Annotated[
        list[str] | None, typer.Argument(help="Families to list; all by default.")
    ] = None,
) -> None:
    """All columns of the registered families, with unit, range and definition."""
    from ltr_features.columns.registry import column_table, families, get_family
    from reports.tables import aligned

    for name in family or families():
        chosen = get_family(name)
        header = ["id", "name", "stream", "unit", "range", "definition"]
        lines = [
            [row["letor_id"], row["name"], row["stream"], row["unit"], row["range"],
             row["description"]]
            for row in column_table(chosen)
        ]  # fmt: skip
        typer.echo(f"{name}: {chosen.description} ({chosen.reference})\n")
        typer.echo(aligned(header, lines, left=len(header)))
        typer.echo("")
