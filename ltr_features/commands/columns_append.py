"""``columns append``: new columns for the rows of a LETOR file, or of a folder of folds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from letor.errors import InputError
from ltr_base.names import counted
from ltr_features.commands.columns import (
    SEED_OF_FAMILY,
    Families,
    FamilyOptions,
    Models,
    Params,
    Recipes,
    families_of,
    recipes_of,
)
from ltr_features.commands.options import (
    Columns,
    NonFinite,
    Progress,
    Threads,
    check_outputs,
    echo,
    tell_models,
    tell_replaced,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ltr_features.columns.base import ColumnFamily
    from ltr_features.columns.context import ColumnContext
    from ltr_features.columns.learned import LearnedColumn


def columns_append(
    file: Annotated[
        Path,
        typer.Argument(
            help="LETOR file whose lines name '#docid = ID', or .parquet; or the folder of a data "
            "set: Fold1, Fold2, ... with train.txt, vali.txt and test.txt, these three alone, or "
            "S1.txt, S2.txt, ..."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(help="The new file or folder; in LETOR text old lines stay byte for byte."),
    ],
    workspace: Annotated[
        Path | None,
        typer.Option(
            help="Workspace folder with the texts of the rows; not needed for the families scores, "
            "vectors and numbers."
        ),
    ] = None,
    family: Families = None,
    option: FamilyOptions = None,
    model: Models = None,
    param: Params = None,
    recipe: Recipes = None,
    model_file: Annotated[
        list[Path] | None,
        typer.Option(help="A model of `models fit`, trained on other queries; may be repeated."),
    ] = None,
    on_missing: Annotated[
        Literal["raise", "zero"],
        typer.Option(help="Rows whose query or document has no text: stop, or 0 in new columns."),
    ] = "raise",
    columns: Columns = None,
    non_finite: NonFinite = "raise",
    folds: Annotated[
        int | None,
        typer.Option(
            min=4,
            help="With --model, number of folds that the rows of a file are dealt into.",
            show_default="5",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of models and of new folds.")] = 0,
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Append columns to a LETOR file, or to all files of a data set, joined with their texts by
    query id and document id.

    A trained model's column (--model) differs from fold to fold, so that the output is a folder;
    the rows of a single file are dealt into new folds. Models learn from the labels of a fold's
    training rows; these rows are scored out of fold, so that no row is scored by a model that saw
    its label. If the last features are absent from all rows of one file of a data set, give
    --columns, so that new columns have the same numbers in all its files.

    Example: ltr-features columns append MQ2008 --workspace workspace --family vsm --model ssi --out
    MQ2008-ssi"""
    from ltr_features.columns.context import open_workspace

    recipes = recipes_of(model or [], param or [], recipe or [], seed)
    families = families_of(family or [], option or [], needed=not (model_file or model))
    in_folds = bool(recipes) or file.is_dir()
    if recipes and workspace is None:
        raise InputError("models learn from the texts of the rows: name their --workspace")
    if in_folds and model_file:
        raise InputError(
            "--model-file: in folds, one model would also score queries that it learned from; use "
            "--model, which trains one for each, or append a model of other queries file by file"
        )
    if seed and not recipes:
        raise InputError(f"--seed is for --model, and none is given: {SEED_OF_FAMILY}")
    if folds is not None and (file.is_dir() or not recipes):
        raise InputError(
            f"--folds is for a file and --model; {file} has its folds"
            if file.is_dir()
            else "--folds is for --model: other columns are the same in all folds"
        )
    options: dict[str, Any] = {"n_columns": columns, "non_finite": non_finite, "threads": threads}
    if in_folds:
        reading = {**options, "on_missing": on_missing, "seed": seed, "n_folds": folds or 5}
        _append_to_folds(file, out, workspace, families, recipes, reading, progress)
    else:
        context = None if workspace is None else open_workspace(workspace, threads=threads)
        _append_to_file(file, out, context, families, model_file or [], on_missing, options)


def _append_to_file(
    file: Path,
    out: Path,
    context: ColumnContext | None,
    families: list[ColumnFamily],
    model_files: Sequence[Path],
    on_missing: Literal["raise", "zero"],
    options: Mapping[str, Any],
) -> None:
    """Append columns to a file, which is read with ``options``."""
    from letor.column_names import append_named, check_format, check_names_free, read_rows
    from ltr_features.columns.fitted import load_fitted
    from ltr_features.row_columns import columns_of_rows

    check_format(out)
    replaced = check_outputs(out, inputs=[file, *model_files])
    rows = read_rows(file, **options)
    collection = None if context is None else context.collection
    families += [
        load_fitted(path, queries=rows.query_ids, collection=collection) for path in model_files
    ]
    names = (name for family in families for name in family.column_names)
    check_names_free(file, rows.column_names, names)
    new = columns_of_rows(rows, families, context, on_missing=on_missing)
    ids = append_named(file, out, new.values, new.provenance, **options)
    _tell_numbers(ids, new.provenance)
    for remark in new.join.remarks:
        echo(remark, err=True)
    tell_replaced(replaced)
    echo(f"{counted(len(rows), 'row')}: {out}")
    for remark in new.remarks:
        echo(remark, err=True)


def _append_to_folds(
    path: Path,
    out: Path,
    workspace: Path | None,
    families: Sequence[ColumnFamily],
    recipes: Sequence[LearnedColumn],
    reading: Mapping[str, Any],
    progress: bool | None,
) -> None:
    """Append columns to all files of a folder of folds, or to the rows of a file in new folds.

    Args:
        reading: parameters of :meth:`~ltr_features.fold_columns.FoldRows.read`.
    """
    from letor.files import remove_temporary, staged_folder, write_json
    from letor.fold_files import layout
    from letor.lock import locked
    from ltr_features.columns.context import open_workspace
    from ltr_features.commands.columns_files import check_target, tell_fits
    from ltr_features.feature_files import BUILT, workspace_notes
    from ltr_features.fold_columns import FoldRows
    from ltr_features.remarks import family_remarks, grouped_remarks
    from ltr_features.studies.progress import Reporter

    if path.resolve() in (out.resolve(), *out.resolve().parents):
        raise InputError(f"{out} is in {path}, whose rows stay as they are: name another folder")
    replaced = check_outputs(out, inputs=[path], kind="folder")
    replaced = [folder for folder in replaced if layout(folder)]
    context = None
    if workspace is not None:
        context = open_workspace(workspace, threads=reading["threads"])
        for recipe in recipes:
            recipe.check_for_folds(context)
    data = FoldRows.read(path, families if context is None else context, **reading)
    check_target(out, folds=len(data.folds), suffix=data.suffix)
    out.mkdir(parents=True, exist_ok=True)
    reporter, notes = Reporter(shown=progress), {}
    if recipes:
        tell_fits(data.context, recipes, data.train_parts, reporter)
    running = reporter.running([fold.name for fold in data.folds])
    # Folds belong together: none appears beside those of an earlier run, or without the others.
    with locked(out), staged_folder(out) as staged, running:
        remove_temporary(out / "models")  # what a killed process left there
        made = data.columns(
            recipes, families, models_folder=out / "models", on_progress=reporter.epoch
        )
        for fold in data.folds:
            with reporter.stage(fold.name):
                new = next(made)
                data.write(fold, new, staged)
                notes[fold.name] = {recipe.name: new.provenance[recipe.name] for recipe in recipes}
        if workspace is None:
            (out / BUILT).unlink(missing_ok=True)  # of earlier folds
        else:
            write_json(staged / BUILT, workspace_notes(workspace, out))
    first = data.rows.X.shape[1] + 1
    _tell_numbers(range(first, first + len(new.provenance)), new.provenance)
    for remark in new.join.remarks:
        echo(remark, err=True)
    if recipes:
        tell_models(out / "models")
    tell_replaced(replaced)
    echo(f"{counted(len(data.rows), 'row')} in {counted(len(data.folds), 'fold')}: {out}")
    of_families = {name: n for name, n in new.provenance.items() if name not in notes[fold.name]}
    of_texts = [] if context is None else data.context.remarks
    for remark in [*of_texts, *family_remarks(of_families), *grouped_remarks(notes)]:
        echo(remark, err=True)


def _tell_numbers(numbers: Sequence[int], names: Mapping[str, Any]) -> None:
    for number, name in zip(numbers, names, strict=True):
        echo(f"{number}: {name}")
