"""``columns export``: columns as the features of a search engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from letor.errors import InputError
from ltr_base.names import nearest
from ltr_features.commands import completion
from ltr_features.commands.options import check_outputs, echo, names_by_name, tell_replaced


def columns_export(
    columns: Annotated[
        list[str],
        typer.Argument(
            help="The columns to export: those of a trained ranker, a saved pipeline, a LETOR file "
            "or a family, or single columns by name.",
            autocompletion=completion.families,
        ),
    ],
    target: Annotated[str, typer.Option(help="opensearch, elasticsearch or solr.")],
    out: Annotated[Path, typer.Option(help="The file of features for the engine, .json.")],
    field: Annotated[
        list[str] | None,
        typer.Option(
            help="OURS=THEIRS: the engine's name of a text field (body=description) or of a "
            "numeric field (pagerank=rank), also of a column of yours that is a number of each "
            "document (price=list_price)."
        ),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option(help="An index on which the engine tests the features (not Solr)."),
    ] = None,
) -> None:
    """Write columns as features of a search engine's learning-to-rank plug-in, and report where its
    numbers agree with ours, where its formula differs, and which columns it cannot compute.

    The same notes are written to a .txt file next to OUT. `rank export` writes the ranker.

    Example: ltr-features columns export ranker --target opensearch --field body=text --out
    features.json"""
    from letor.files import atomic_path
    from ltr_features.featuresets import featureset

    if out.suffix != ".json":
        raise InputError(f"{out}: the name of the features' file must end in .json")
    names = [name for source in columns for name in _columns_of(source)]
    fields = names_by_name(field or [], "field")
    features = featureset(names, target, fields=fields, index=index)
    texts = {
        out: json.dumps(features.body(), indent=1, ensure_ascii=False) + "\n",
        out.with_suffix(".txt"): features.notes(),
    }
    replaced = check_outputs(*texts, inputs=map(Path, columns))
    for path, text in texts.items():
        with atomic_path(path) as partial:
            partial.write_text(text, encoding="utf-8", newline="\n")
    echo(features.notes())
    tell_replaced(replaced)
    echo(f"{target}: {out}, {out.with_suffix('.txt')}")


def _columns_of(source: str) -> list[str]:
    """The names of the columns that an argument refers to."""
    from letor.column_names import names_path, read_names, read_rows
    from letor.rankers.registry import load_ranker
    from ltr_features.columns.letor46 import LETOR46_COLUMNS
    from ltr_features.columns.registry import family_names, get_family

    path = Path(source)
    if source in family_names():
        return get_family(source).column_names
    if path.is_dir():
        folder = path / "ranker" if (path / "ranker").is_dir() else path
        return list(load_ranker(folder).feature_names_)
    if path.suffix == ".parquet" and path.is_file():
        return list(read_rows(path).column_names)
    if path.is_file():
        if not names_path(path).is_file():
            raise InputError(
                f"{path}: its columns have no names ({names_path(path).name} is missing); "
                "name the columns, or a file of `columns build`"
            )
        return [column["name"] for column in read_names(names_path(path))]
    known = [column.name for column in LETOR46_COLUMNS]
    if source not in known:
        raise InputError(
            f"{source!r} is not a file, ranker, pipeline, family, or column of letor46"
            + (f"; {hint}" if (hint := nearest(source, known)).startswith("did") else "")
        )
    return [source]
