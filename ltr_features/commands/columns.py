"""Feature columns: ``columns list``, ``columns build``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ltr_features.commands import completion
from ltr_features.commands.options import Progress, Threads, settings, settings_by_owner

if TYPE_CHECKING:
    from letor.dataset import RankingData
    from letor.folds import Fold
    from ltr_features.blocks import Written
    from ltr_features.candidates import Candidates
    from ltr_features.columns.base import ColumnFamily
    from ltr_features.columns.context import ColumnContext
    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.feature_table import FoldTable
    from ltr_features.text.collection import Collection

app = typer.Typer(help="Feature columns: what there is, and making them.", no_args_is_help=True)

Workspace = Annotated[Path, typer.Option(help="Folder that `ltr-features index` made.")]
Families = Annotated[
    list[str] | None,
    typer.Option(
        "--family",
        help="A column family; give the option once for each.",
        autocompletion=completion.families,
    ),
]
FamilyOptions = Annotated[
    list[str] | None,
    typer.Option("--option", help="FAMILY.KEY=VALUE: a parameter of a family."),
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
    """All columns of the registered families, with unit, range and definition.

    Example: ltr-features columns list letor46"""
    from ltr_features.columns.registry import column_table, families, get_family
    from ltr_features.studies.page.tables import aligned

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


@app.command("build")
def columns_build(
    workspace: Workspace,
    out: Annotated[
        Path,
        typer.Option(
            help="LETOR text (.txt, .gz, .bz2, .zst) or .parquet; with --model or --folds a "
            "folder of Fold1/train.txt and so on."
        ),
    ],
    family: Families = None,
    option: FamilyOptions = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A trained model as a column, for example ssi; once for each.",
            autocompletion=completion.models,
        ),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="MODEL.KEY=VALUE: a parameter of a model.")
    ] = None,
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            help="MODEL.KEY=VALUE: how a model's column is made, by stream, "
            "min_document_frequency, word_weight or terms (words, letter-trigrams, both)."
        ),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="Candidates per query: BM25's best.")] = 100,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            help="Another source of candidates, with its options: judged, lsi.depth=50, "
            "run.path=engine.run, letor.files=[...]; bm25.depth=100 too only where it is named. "
            "Several are united."
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Write so many folds; with --model 5 by default.")
    ] = None,
    by_group: Annotated[
        bool, typer.Option(help="Keep queries of one group in one part of the folds.")
    ] = False,
    by_time: Annotated[
        bool,
        typer.Option(
            help="Train on earlier queries than are tested: of N --folds, 4 or more, the first "
            "three are tested by none."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and models.")] = 0,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Memory for the rows of a block of queries (1GiB by default), where a .parquet "
            "without folds is written; the file is the same for any."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Make such a .parquet, or fit the models, on the workers of a Dask cluster: its "
            "address, tcp://host:8786, or local:N for N processes. The files are the same."
        ),
    ] = None,
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Rows of (query, document) candidates with columns and the judged labels.

    A trained model's column differs from fold to fold: test and validation rows are scored by a
    model of the fold's training queries, training rows out of fold, so that no row is scored by a
    model that saw its label.

    Example: ltr-features columns build --workspace workspace --family letor46 --model ssi --param
    ssi.rank=50 --out folds"""
    from letor.column_names import write_rows
    from letor.errors import InputError
    from ltr_features.blocks import MEMORY, memory_size
    from ltr_features.candidates import candidate_sources, choose_candidates
    from ltr_features.column_workers import fits_on
    from ltr_features.columns.context import open_workspace
    from ltr_features.columns.out_of_fold import check_folds
    from ltr_features.feature_table import build_columns, learned_columns
    from ltr_features.studies.progress import Reporter

    families = families_of(family or [], option or [], needed=not model)
    recipes = _recipes(model or [], param or [], recipe or [], seed)
    chosen = _candidates(candidates or [], depth)
    candidate_sources(chosen)
    n_folds = 5 if recipes else 0
    if folds is not None:
        check_folds(folds, out_of_fold=bool(recipes))
        n_folds = folds
    _check_target(out, folds=n_folds)
    in_blocks = not n_folds and out.suffix == ".parquet"
    n_bytes = MEMORY if memory is None else memory_size(memory)
    if memory is not None and not in_blocks:
        raise InputError("--memory: only a .parquet without folds and models is made in blocks")
    if scheduler is not None and not (in_blocks or recipes):
        raise InputError(
            "--scheduler: only a .parquet without folds, and models, are made by workers"
        )
    context = open_workspace(workspace, threads=threads)
    _check_ids(context.collection, out)
    split = _split(context.collection, n_folds, by_group=by_group, by_time=by_time, seed=seed)
    if in_blocks:
        _write_blocks(
            context, chosen, families, workspace, out,
            memory=n_bytes, scheduler=scheduler, progress=progress,
        )  # fmt: skip
        return
    found = choose_candidates(context, chosen, on_empty="keep")
    reporter = Reporter(shown=progress)

    def show(family: str, done: int, total: int) -> None:
        reporter.step(family)
        reporter.part(done, total)

    provenance = {}
    with reporter.running(["columns", *(fold.name for fold in split)]):
        with reporter.stage("columns"):
            data = build_columns(
                context, found.pairs, families, origins=found.origins, on_progress=show
            )
        made = learned_columns(
            context, data, recipes, split,
            folder=out / "models", by_group=by_group, on_progress=reporter.epoch,
            fit=None if scheduler is None else fits_on(scheduler, workspace),
        )  # fmt: skip
        for name in [fold.name for fold in split]:
            with reporter.stage(name):
                fold = next(made)
                _write_fold(fold, out / name, threads=threads)
                provenance[name] = fold.provenance
    width = data.X.shape[1] + len(recipes)
    if split:
        for name in provenance:
            typer.echo(f"{name}: {width} columns")
        typer.echo(f"{len(data):,} rows in {len(split)} folds: {out}")
    else:
        write_rows(data, out, threads=threads)
        typer.echo(f"{len(data):,} rows, {width} columns: {out}")
    _tell(context.collection, found, data, families, provenance)


def _write_blocks(
    context: ColumnContext,
    candidates: Mapping[str, Mapping[str, object]],
    families: Sequence[ColumnFamily],
    workspace: Path,
    out: Path,
    *,
    memory: int,
    scheduler: str | None,
    progress: bool | None,
) -> None:
    """Write the rows as one Parquet file, block by block."""
    from contextlib import nullcontext

    from ltr_features.blocks import write_columns
    from ltr_features.column_workers import blocks_on
    from ltr_features.studies.progress import Reporter

    reporter = Reporter(shown=progress)
    folder = out.with_name(out.name + ".blocks")
    cluster = blocks_on(scheduler, workspace.resolve(), folder.resolve()) if scheduler else None
    with (
        reporter.running(["columns"]),
        reporter.stage("columns"),
        cluster or nullcontext() as made_by,
    ):
        written = write_columns(
            context, candidates, families, out,
            memory=memory, made_by=made_by, on_progress=reporter.part,
        )  # fmt: skip
    typer.echo(f"{written.n_rows:,} rows, {written.width} columns: {out}")
    _tell(context.collection, written.candidates, written, families, {})


def _check_ids(collection: Collection, out: Path) -> None:
    """Raise InputError for ids that LETOR text cannot hold, unless none is written."""
    from letor.writing import check_ids

    if out.suffix != ".parquet":
        check_ids(collection.query_ids, "query id")
        check_ids(collection.document_ids, "document id")


def _split(
    collection: Collection, n_folds: int, *, by_group: bool, by_time: bool, seed: int
) -> list[Fold]:
    """The folds of the collection's queries; none where 0 are wanted."""
    from letor import folds
    from letor.errors import InputError

    groups, times = collection.query_groups, collection.query_times
    asked = [name for name, on in (("--by-group", by_group), ("--by-time", by_time)) if on]
    if len(asked) > 1 or (asked and not n_folds):
        reason = "give one of them" if n_folds else "there are no folds: give --folds too"
        raise InputError(f"{', '.join(asked)}: {reason}")
    if not n_folds:
        return []
    if by_group and groups is None:
        raise InputError(f"--by-group: collection {collection.name!r} has no groups of queries")
    if by_time:
        if times is None:
            raise InputError(f"--by-time: collection {collection.name!r} has no times of queries")
        return folds.by_time(collection.query_ids, times, n_folds)
    together = groups if by_group else None
    return folds.k_fold(collection.query_ids, n_folds, seed=seed, groups=together)


def _tell(
    collection: Collection,
    found: Candidates | None,
    data: RankingData | Written,
    families: Sequence[ColumnFamily],
    provenance: Mapping[str, Mapping[str, Any]],
) -> None:
    """Say what must be known of rows and columns; last, where nothing scrolls it away."""
    from ltr_features.remarks import told_once

    if found is not None and len(found.sources) > 1:
        recalls = found.recalls(collection.judgements, collection.n_queries)
        told = (f"{name} {recall.mean:.3f}" for name, recall in recalls.items())
        typer.echo(f"Recall of relevant documents: {', '.join(told)}", err=True)
    without = collection.n_queries - data.n_queries
    if without or (data.missing is not None and data.missing.n_relevant):
        typer.echo(f"{without:,} queries have no candidates; {data.coverage}", err=True)
    told = (f"{family.name}: {remark}" for family in families for remark in family.remarks)
    of_candidates = [] if found is None else found.remarks
    for sentence in [*collection.remarks, *of_candidates, *told, *told_once(provenance)]:
        typer.echo(sentence, err=True)


def families_of(
    names: Sequence[str], options: Sequence[str], *, needed: bool = True
) -> list[ColumnFamily]:
    """The families of ``--family``, with those of ``--option``."""
    from letor.errors import InputError
    from ltr_features.columns.registry import get_family

    if needed and not names:
        raise InputError("name at least one --family; see: ltr-features columns list")
    by_family = settings_by_owner(options, "option", names, "--family")
    return [get_family(name, **by_family.get(name, {})) for name in names]


def _candidates(given: Sequence[str], depth: int) -> dict[str, dict[str, object]]:
    """Settings of sources of candidates; BM25 alone where none is named."""
    found = settings([c if "=" in c else f"{c}={{}}" for c in given], "candidates")
    return found or {"bm25": {"depth": depth}}


def _recipes(
    names: Sequence[str], params: Sequence[str], recipe: Sequence[str], seed: int
) -> list[LearnedColumn]:
    import inspect
    from dataclasses import fields, replace

    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.parameters import check_names, check_values

    by_model = settings_by_owner(params, "param", names, "--model")
    made_by = settings_by_owner(recipe, "recipe", names, "--model")
    keys = [f.name for f in fields(LearnedColumn) if f.name not in ("name", "model", "params")]
    recipes = []
    for name in names:
        given = made_by.get(name, {})
        check_names(given, keys, f"--recipe {name}", "setting")
        check_values(LearnedColumn, given, f"--recipe {name}")
        column = LearnedColumn(name, name, by_model.get(name, {}), **given)
        if "seed" in inspect.signature(column.kind).parameters:
            column = replace(column, params={"seed": seed, **column.params})
        recipes.append(column)
    return recipes


def _check_target(out: Path, *, folds: int) -> None:
    """Before the work: whether so many folds (0: one file) can be written there."""
    from letor.column_names import check_format
    from letor.errors import InputError

    if not folds:
        check_format(out)
        if out.is_dir():
            raise InputError(f"{out} is a folder; name a file, or give --folds")
        return
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; folds are written into a folder: name another path")
    written = {f"Fold{number}" for number in range(1, folds + 1)}
    others = sorted(path.name for path in out.glob("Fold*") if path.name not in written)
    if others:
        raise InputError(
            f"{out} has {', '.join(others)} of other folds, which would be taken for parts of "
            f"these {folds}; remove them, or name another folder"
        )


def _write_fold(fold: FoldTable, folder: Path, *, threads: int | None) -> None:
    from letor.column_names import write_rows

    for name, part in zip(("train", "vali", "test"), fold.parts(), strict=True):
        write_rows(part, folder / f"{name}.txt", threads=threads)
