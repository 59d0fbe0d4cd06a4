"""``models fit``: one matching model, trained on the judgements of some queries."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from letor.errors import InputError
from ltr_base.names import counted
from ltr_features.commands import completion
from ltr_features.commands.models import improvement
from ltr_features.commands.options import (
    Progress,
    Threads,
    Workspace,
    check_groups,
    check_outputs,
    echo,
    on_workers,
    settings_of,
    tell_replaced,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.text.collection import Collection


def models_fit(
    model: Annotated[
        str, typer.Argument(help="A name of `models list`.", autocompletion=completion.models)
    ],
    workspace: Workspace,
    out: Annotated[Path, typer.Option(help="The model file (.safetensors).")],
    queries: Annotated[
        Path | None,
        typer.Option(help="Ids of the training queries, one per line; all queries by default."),
    ] = None,
    param: Annotated[list[str] | None, typer.Option(help="Model parameter, KEY=VALUE.")] = None,
    field: Annotated[
        str, typer.Option(help="The documents' field that the model reads.")
    ] = "whole",
    stream: Annotated[str | None, typer.Option(hidden=True)] = None,
    min_document_frequency: Annotated[
        int, typer.Option(min=1, help="Leave out terms in fewer documents (tf-idf models).")
    ] = 1,
    terms: Annotated[
        Literal["words", "letter-trigrams", "both"],
        typer.Option(help="The terms that texts are split into; trigrams match misspelled words."),
    ] = "words",
    heaviest: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Keep so many terms of a text, those of the largest weights (tf-idf models).",
            show_default="all",
        ),
    ] = None,
    by_group: Annotated[
        bool,
        typer.Option(
            help="Keep the queries of a group on one side where queries are held out, to stop "
            "training and to choose settings."
        ),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Column name; by default the model's.")] = None,
    scheduler: Annotated[
        str | None,
        on_workers(
            "Fit",
            "Topic models, wtm and s2net with optimizer=l-bfgs are fitted by all workers together, "
            "another model by one. The file is the same.",
        ),
    ] = None,
    threads: Threads = None,
    progress: Progress = None,
) -> None:
    """Train a model on the judgements of a workspace's queries, or of some of them.

    A file next to the model lists the queries that it was trained on: `columns append --model-file`
    refuses to score those queries with it. If the command is killed, OUT.parts has the state of
    training, from which the same command continues.

    Example: ltr-features models fit ssi --workspace workspace --param rank=50 --out
    ssi.safetensors"""
    import numpy as np

    from letor.lock import locked
    from ltr_features.candidates import choose_candidates
    from ltr_features.column_workers import fitted_on
    from ltr_features.columns.context import open_workspace
    from ltr_features.columns.fitted import save_fitted
    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.columns.trained import TrainedColumn
    from ltr_features.commands.columns_files import tell_fits
    from ltr_features.studies.progress import Reporter
    from ltr_features.text.id_rows import rows_of

    if out.suffix != ".safetensors":
        raise InputError(f"{out}: the name of a model file must end in .safetensors")
    field = _field(field, stream)
    replaced = check_outputs(out, inputs=[queries])
    recipe = LearnedColumn(
        name or model,
        model,
        settings_of(param or [], "param", model),
        field,
        min_document_frequency,
        terms=terms,
        heaviest=heaviest,
    )
    holds_out = recipe.new_model().holds_out_queries
    _check_options(recipe, queries, by_group=by_group, holds_out=holds_out)
    context = open_workspace(workspace, threads=threads)
    ids = list(context.collection.query_ids)
    if queries is not None:
        ids = _query_ids(queries, set(ids))
    rows = np.sort(rows_of(ids, context.collection.query_ids))
    if by_group:
        _check_several_groups(context.collection, rows)
    reporter = Reporter(shown=progress)
    tell_fits(context, [recipe], [[rows]], reporter, option="--{setting} ")
    parts = out.with_name(out.name + ".parts")  # kept if the command is killed, for the next one
    out.parent.mkdir(parents=True, exist_ok=True)
    with locked(out) as taken_over, reporter.running([model]), reporter.stage(model):
        if taken_over:
            echo(taken_over, err=True)
        lists = choose_candidates(context, 100).pairs if recipe.learns_from_lists else None
        trained = TrainedColumn(
            context,
            recipe,
            parts,
            hold_out_groups=by_group,
            candidates=lists,
            on_progress=reporter.epoch,
        )
        if scheduler is None:
            column = trained.fitted(rows)
        else:
            column = fitted_on(scheduler, workspace, trained, rows)
        save_fitted(column, out, ids)
        shutil.rmtree(parts)
    tell_replaced(replaced)
    learned = counted(len(ids), "training query") if recipe.looks_at_labels else "documents alone"
    echo(f"{model}, {learned}: {out}")
    for line in improvement(column.model):
        echo(line)
    told = [f"{recipe.name}: {remark}" for remark in column.remarks]
    if recipe.looks_at_labels:
        alone = holds_out and not by_group
        apart = _groups_apart(context.collection, ids) if alone else []
        told = [*context.unknown_words, *apart, *told]
    for remark in told:
        echo(remark, err=True)


def _check_options(
    recipe: LearnedColumn, queries: Path | None, *, by_group: bool, holds_out: bool
) -> None:
    """Raise InputError for options that are of no use to the model."""
    for option, given in (("--queries", queries is not None), ("--by-group", by_group)):
        if given and not recipe.looks_at_labels:
            raise InputError(f"{option}: {recipe.model} learns from documents alone; leave it out")
    if by_group and not holds_out:
        raise InputError(
            f"--by-group: {recipe.model}, with these parameters, holds out no queries; leave it out"
        )


def _check_several_groups(collection: Collection, rows: NDArray[np.int64]) -> None:
    """Raise InputError if the training queries have no groups, or have a single one."""
    import numpy as np

    check_groups(collection)
    judgements, groups = collection.judgements, collection.kept_together(by_group=True)
    judged = np.intersect1d(rows, judgements.query[judgements.grade > 0])
    if groups is not None and len(np.unique(groups[judged])) == 1:
        raise InputError(
            f"--by-group: {counted(len(judged), 'training query')} with a relevant document, all "
            "of one group, so that none can be held out from the others; leave it out"
        )


def _groups_apart(collection: Collection, ids: Sequence[str]) -> list[str]:
    """A remark on training queries of one group, some of which were held out from the others."""
    if collection.query_groups is None:
        return []
    group = dict(zip(collection.query_ids, collection.query_groups, strict=True))
    sizes = Counter(group[query] for query in ids)
    n = sum(size for size in sizes.values() if size > 1)
    if not n:
        return []
    return [
        f"{n:,} of {counted(len(ids), 'training query')} share their group with others; as single "
        "queries were held out, what was chosen by them may be true within groups alone: "
        "--by-group holds out whole groups"
    ]


def _field(field: str, stream: str | None) -> str:
    """The field, by the present or the former option."""
    from ltr_base.former import warn_of_former

    if stream is None:
        return field
    if field != "whole":
        raise InputError("--stream is now --field, and both are given; give --field")
    warn_of_former("--stream is now --field")
    return stream


def _query_ids(path: Path, known: set[str]) -> list[str]:
    """Read ids from a file, one per line; each must be known."""
    from letor.compression import text_lines

    ids = []
    for number, line in text_lines(path):
        query = line.strip()
        if query and query not in known:
            raise InputError(
                f"{path}, line {number}: the workspace has no query {query!r}; the file must hold "
                "one query id per line"
            )
        ids += [query] if query else []
    if not ids:
        raise InputError(f"{path}: no query id; without --queries all queries are trained on")
    return ids
