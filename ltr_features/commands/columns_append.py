"""``columns append``: further columns of a LETOR file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ltr_features.commands.columns import Families, FamilyOptions, Workspace, families_of
from ltr_features.commands.options import Threads


def columns_append(
    file: Annotated[
        Path, typer.Argument(help="LETOR file whose lines name '#docid = ID', or .parquet.")
    ],
    workspace: Workspace,
    out: Annotated[
        Path, typer.Option(help="The new file; of LETOR text the old lines stay byte for byte.")
    ],
    family: Families = None,
    option: FamilyOptions = None,
    model_file: Annotated[
        list[Path] | None,
        typer.Option(help="A model of `models fit`, trained on other queries; once for each."),
    ] = None,
    on_missing: Annotated[
        Literal["raise", "zero"],
        typer.Option(help="Rows whose query or document has no text: stop, or 0 in new columns."),
    ] = "raise",
    threads: Threads = None,
) -> None:
    """Append columns to a LETOR file, joined with its texts by query id and document id.

    A model may not score queries on whose judgements it was trained; for columns of models in all
    parts of a fold see `columns build`.

    Example: ltr-features columns append train.txt --workspace workspace --family vsm --out
    new.txt"""
    import numpy as np

    from letor.column_names import append_named, check_format, read_rows
    from letor.errors import InputError
    from ltr_features.columns.context import open_workspace
    from ltr_features.columns.fitted import load_fitted
    from ltr_features.feature_table import column_notes
    from ltr_features.sources.letor_join import join_letor

    families = families_of(family or [], option or [], needed=not model_file)
    check_format(out)
    context = open_workspace(workspace, threads=threads)
    rows = read_rows(file, threads=threads)
    families += [load_fitted(path, queries=rows.query_ids) for path in model_file or []]
    notes = {c.name: column_notes(chosen, c) for chosen in families for c in chosen.columns}
    names = [name for chosen in families for name in chosen.column_names]
    if len(notes) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two of the new columns are called {twice!r}; name each once")
    join = join_letor(rows, context.collection, on_missing=on_missing)
    values = np.hstack([chosen.compute(context, join.pairs) for chosen in families])
    ids = append_named(file, out, join.spread(values), notes, threads=threads)
    for number, name in zip(ids, names, strict=True):
        typer.echo(f"{number}: {name}")
    if join.n_without_text:
        typer.echo(f"{join.n_without_text:,} of {join.n_rows:,} rows have no text: 0", err=True)
    typer.echo(f"{join.n_rows:,} rows: {out}")
    for remark in context.collection.remarks:
        typer.echo(remark, err=True)
    for chosen in families:
        for remark in chosen.remarks:
            typer.echo(f"{chosen.name}: {remark}", err=True)
