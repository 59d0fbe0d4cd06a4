"""Feature columns: ``columns list``, ``columns build``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from letor.errors import InputError
from ltr_features.commands import completion
from ltr_features.commands.options import (
    Candidates,
    Commands,
    Progress,
    Threads,
    Workspace,
    candidate_settings,
    check_outputs,
    check_text_ids,
    echo,
    on_workers,
    settings_by_owner,
    tell_replaced,
)

if TYPE_CHECKING:
    from ltr_features.columns.base import ColumnFamily
    from ltr_features.columns.learned import LearnedColumn

app = Commands(help="Feature columns: list, build and append them.", no_args_is_help=True)

#: What to do about a seed that nothing takes.
SEED_OF_FAMILY = "leave it out, or name that of a family (--option w2v-word.seed=...)"

Families = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        help="A column family; may be repeated.",
        autocompletion=completion.families,
    ),
]
FamilyOptions = Annotated[
    list[str] | None,
    typer.Option("--option", help="FAMILY.KEY=VALUE: a parameter of a family."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="A trained model as a column, for example ssi, or titles=ssi to name the column "
        "titles; may be repeated.",
        autocompletion=completion.models,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", help="MODEL.KEY=VALUE, or COLUMN.KEY=VALUE: a parameter of a model."),
]
Recipes = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe",
        help="MODEL.KEY=VALUE, or COLUMN.KEY=VALUE: how a model's column is made: field, "
        "min_document_frequency, heaviest, word_weight or terms (words, letter-trigrams, both).",
    ),
]


@app.command("list")
def columns_list(
    family: Annotated[
        list[str] | None,
        typer.Argument(
            help="Families to list; all by default.", autocompletion=completion.families
        ),
    ] = None,
) -> None:
    """List the columns of the registered families, with unit, range and definition.

    Example: ltr-features columns list letor46"""
    from ltr_features.columns.registry import family_names, get_family
    from ltr_features.studies.page.tables import aligned

    for name in family or family_names():
        try:
            chosen = get_family(name)
        except InputError as error:
            if family:
                raise
            echo(f"{error}\n", err=True)
            continue
        header = ["id", "name", "field", "unit", "range", "definition"]
        lines = [
            [str(c.letor_id or ""), c.name, c.field or "", c.unit, c.value_range, c.description]
            for c in chosen.columns
        ]
        echo(f"{name}: {chosen.description} ({chosen.reference})\n")
        echo(aligned(header, lines, left=len(header)))
        echo("")


@app.command("build")
def columns_build(
    workspace: Workspace,
    out: Annotated[
        Path,
        typer.Option(
            help="LETOR text (.txt, .gz, .bz2, .zst) or .parquet; with --model, --folds or --split "
            "a folder for Fold1/train.txt and so on, in --format."
        ),
    ],
    family: Families = None,
    option: FamilyOptions = None,
    model: Models = None,
    param: Params = None,
    recipe: Recipes = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Candidates per query, by BM25.", show_default="100"),
    ] = None,
    candidates: Candidates = None,
    folds: Annotated[
        int | None, typer.Option(help="Number of folds to write; 5 by default with --model.")
    ] = None,
    by_group: Annotated[
        bool, typer.Option(help="Keep the queries of a group in the same part of each fold.")
    ] = False,
    by_time: Annotated[
        bool,
        typer.Option(
            help="Train on earlier queries than are tested: queries are cut by time into as many "
            "parts as --folds, 4 or more; no fold tests the first three."
        ),
    ] = False,
    split: Annotated[
        Path | None,
        typer.Option(
            help="One fold of parts that you have: query id, tab, train, validation or test; a "
            "table with a column split; or a folder of judgements in files of these names. Without "
            "validation queries, a fifth of those for training validate."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and models.")] = 0,
    format: Annotated[
        Literal["text", "parquet"] | None,
        typer.Option(
            help="Format of folds: LETOR text (the default), built in memory; or parquet, which "
            "need not fit in memory: all rows once in columns.parquet, and Fold1/train.parquet and "
            "so on with the row numbers of a part and the columns of its models."
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory for the rows of a block of queries (1GiB by default), for a .parquet "
            "without folds or for --format parquet; files do not depend on it."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        on_workers(
            "Make such a .parquet or such folds, or fit the models,", "The files are the same."
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            help="Where workers put their results if they do not see --out: a folder, or a URL "
            "that fsspec reads (s3://bucket/prefix). Machines may have copies of the workspace."
        ),
    ] = None,
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Build rows of (query, document) candidates with columns and the judged labels.

    A trained model's column differs from fold to fold: test and validation rows are scored by a
    model of the fold's training queries, training rows out of fold, so that no row is scored by a
    model that saw its label.

    Example: ltr-features columns build --workspace workspace --family letor46 --model ssi --param
    ssi.rank=50 --out folds"""
    from letor.name_checks import check_distinct
    from ltr_features.blocks import MEMORY, memory_size
    from ltr_features.candidates import candidate_sources
    from ltr_features.column_workers import blocks_on
    from ltr_features.columns.context import open_workspace
    from ltr_features.columns.out_of_fold import train_parts
    from ltr_features.commands import columns_files as files
    from ltr_features.part_store import PartFolder, part_store
    from ltr_features.sources.query_files import read_query_parts
    from ltr_features.studies.progress import Reporter

    families = families_of(family or [], option or [], needed=not model)
    recipes = recipes_of(model or [], param or [], recipe or [], seed)
    chosen = _candidates(candidates or [], depth)
    candidate_sources(chosen)
    n_folds = _n_folds(folds, trained=bool(recipes), given=split is not None, by_time=by_time)
    check_distinct([c.name for f in families for c in f.columns] + [r.name for r in recipes])
    if seed and not n_folds:
        raise InputError(f"--seed is for folds and models, and there are none: {SEED_OF_FAMILY}")
    if format is not None and not n_folds:
        raise InputError("--format is for folds; the format of a single file is given by its name")
    in_blocks = format == "parquet" if n_folds else out.suffix == ".parquet"
    files.check_target(out, folds=n_folds, suffix=".parquet" if in_blocks else ".txt")
    replaced = check_outputs(out, kind="folder" if n_folds else "file")
    n_bytes = MEMORY if memory is None else memory_size(memory)
    _check_use(memory, scheduler, parts, in_blocks=in_blocks, trained=bool(recipes))
    context = open_workspace(workspace, threads=threads)
    for column in recipes:
        column.check_for_folds(context)
    if not in_blocks:
        check_text_ids(context.collection)
    rules: dict[str, Any] = {
        "n_folds": n_folds, "by_group": by_group, "by_time": by_time, "seed": seed
    }  # fmt: skip
    if split:
        rules["parts"] = read_query_parts(split, context.collection.query_ids)
    made = files.split_queries(context.collection, **rules)
    build = files.Build(context, chosen, families, recipes, made, out, Reporter(shown=progress))
    if recipes:
        parts_of = [train_parts(context.collection, made, fold) for fold in made]
        files.tell_fits(context, recipes, parts_of, build.reporter)
    fit = files.fits(build, scheduler, workspace, parts, n_bytes if in_blocks else None)
    with files.held(build, on_workers=scheduler is not None):
        if in_blocks:
            rows = files.all_rows(out, made).resolve()
            beside = PartFolder(rows.with_name(rows.name + ".blocks"))
            store = beside if parts is None else part_store(parts, rows)
            cluster = (
                None if scheduler is None else blocks_on(scheduler, workspace.resolve(), store)
            )
            files.write_blocks(build, memory=n_bytes, cluster=cluster, fit=fit)
        else:
            files.write_table(build, fit=fit)
        if made:
            files.write_settings(build, workspace, rules)
    tell_replaced(replaced)


def _n_folds(asked: int | None, *, trained: bool, given: bool, by_time: bool) -> int:
    """The number of folds to write, 0 for a single file.

    Args:
        trained: whether there are columns of models. given: whether the parts of a fold are.
    """
    from ltr_features.columns.out_of_fold import check_folds

    if given:
        if by_time or asked is not None:
            raise InputError("--split: the file has the parts: leave out --folds and --by-time")
        return 1
    if asked is None:
        return 5 if trained else 0
    check_folds(asked, out_of_fold=trained)
    return asked


def _check_use(
    memory: str | None, scheduler: str | None, parts: str | None, *, in_blocks: bool, trained: bool
) -> None:
    """Raise InputError if one of the options has no use."""
    if memory is not None and not in_blocks:
        raise InputError(
            "--memory: only a .parquet without folds and models, or folds by --format parquet, are "
            "made in blocks"
        )
    if scheduler is not None and not (in_blocks or trained):
        raise InputError(
            "--scheduler: only a .parquet without folds, and models, or folds by --format parquet, "
            "are made by workers"
        )
    if parts is not None and scheduler is None:
        raise InputError("--parts: only workers make parts: give --scheduler too")


def families_of(
    names: Sequence[str], options: Sequence[str], *, needed: bool = True
) -> list[ColumnFamily]:
    """The families named by ``--family``, with the parameters of ``--option``."""
    from ltr_features.columns.registry import get_family

    if needed and not names:
        raise InputError(
            "name at least one --family or --model; see: ltr-features columns list, models list"
        )
    by_family = settings_by_owner(options, "option", names, "--family")
    return [get_family(name, **by_family.get(name, {})) for name in names]


def _candidates(given: Sequence[str], depth: int | None) -> dict[str, dict[str, object]]:
    """Settings of candidate sources; BM25 alone if none is named."""
    if given and depth is not None:
        raise InputError(
            "--depth is for BM25 alone; with --candidates give each source its depth, "
            f"bm25.depth={depth}"
        )
    return candidate_settings(given) or {"bm25": {"depth": 100 if depth is None else depth}}


def recipes_of(
    models: Sequence[str], params: Sequence[str], recipe: Sequence[str], seed: int
) -> list[LearnedColumn]:
    """The columns named by ``--model``, with the settings of ``--param`` and ``--recipe``."""
    from ltr_base.former import present_names
    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.parameters import check_names, check_values
    from ltr_features.text.collection import FORMER_KEYS

    # NAME=MODEL, or the model's name for both.
    pairs = [(name, model or name) for name, _, model in (m.partition("=") for m in models)]
    names = [name for name, _ in pairs]
    by_model = settings_by_owner(params, "param", names, "--model")
    made_by = settings_by_owner(recipe, "recipe", names, "--model")
    keys = [f.name for f in fields(LearnedColumn) if f.name not in ("name", "model", "params")]
    recipes = []
    for name, model in pairs:
        given = present_names(made_by.get(name, {}), FORMER_KEYS)
        check_names(given, keys, f"--recipe {name}", "setting")
        check_values(LearnedColumn, given, f"--recipe {name}")
        column = LearnedColumn(name, model, by_model.get(name, {}), **given)
        recipes.append(column.filled(seed=seed))
    return recipes
