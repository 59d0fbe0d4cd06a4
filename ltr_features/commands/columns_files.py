"""The output of ``columns build``: a file of rows, or a folder of folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from letor.errors import InputError
from letor.files import write_json
from ltr_base.names import counted
from ltr_features.commands.options import check_groups, echo, tell_models

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from letor.dataset import RankingData
    from letor.folds import Fold
    from ltr_features.blocks import MakeBlocks, Written
    from ltr_features.candidates import Candidates
    from ltr_features.columns.base import ColumnFamily
    from ltr_features.columns.context import ColumnContext
    from ltr_features.columns.fold_fits import FitAll
    from ltr_features.columns.learned import LearnedColumn
    from ltr_features.feature_table import FoldTable
    from ltr_features.studies.progress import Reporter
    from ltr_features.text.collection import Collection


class Build(NamedTuple):
    """Everything that defines a build.

    Attributes:
        context: context of the workspace. candidates: settings of candidate sources, by name.
        families, recipes: the columns. split: the folds; empty for a single file.
        out: the file, or the folder of the folds. reporter: shows progress.
    """

    context: ColumnContext
    candidates: Mapping[str, Mapping[str, object]]
    families: Sequence[ColumnFamily]
    recipes: Sequence[LearnedColumn]
    split: Sequence[Fold]
    out: Path
    reporter: Reporter


def write_settings(build: Build, workspace: Path, split: Mapping[str, Any]) -> None:
    """Record how the folds in a folder were made, for :func:`read_settings`.

    Args:
        split: arguments of :func:`split_queries`.
    """
    from letor.files import atomic_path
    from ltr_features.feature_files import BUILT, columns_to_json, workspace_notes

    found = {
        **workspace_notes(workspace, build.out),
        "split": dict(split),
        "candidates": build.candidates,
        **columns_to_json(build.families, build.recipes),
    }
    with atomic_path(build.out / BUILT) as partial:
        write_json(partial, found)


def read_settings(folder: Path, threads: int | None) -> Build:
    """How the folds in a folder were made.

    Raises:
        InputError: the folder has no folds of ``columns build``, or their workspace is gone or was
            made again of other texts.
    """
    from letor.errors import reading
    from letor.files import read_json
    from ltr_features.feature_files import BUILT, built_of, columns_from_json
    from ltr_features.studies.progress import Reporter

    path = folder / BUILT
    if not path.exists() and any(folder.glob("Fold*")):
        raise InputError(
            f"{folder} has folds, but no {BUILT}: `columns build` has not finished, or was of an "
            "earlier version (run it again, then train the ranker), or did not make them"
        )
    with reading(path, "it says how `columns build` made folds: name their folder"):
        found = read_json(path)
        if "split" not in found:
            raise InputError(
                "it is of folds of `columns append`, whose first columns cannot be computed for "
                "new rows: name folds of `columns build`"
            )
        families, recipes = columns_from_json(found, path)
        context = built_of(folder, found, threads)
        split = split_queries(context.collection, **found["split"])
        return Build(
            context, found["candidates"], families, recipes, split, folder, Reporter(shown=False)
        )


def check_target(out: Path, *, folds: int, suffix: str) -> None:
    """Raise InputError unless so many folds (0: one file) can be written, as files of a suffix."""
    from letor.column_names import check_format

    if not folds:
        check_format(out)
        if out.is_dir():
            raise InputError(f"{out} is a folder; name a file, or give --folds")
        return
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; folds are written into a folder: name another path")
    written = {f"Fold{number}" for number in range(1, folds + 1)}
    other = {".txt": ".parquet", ".parquet": ".txt"}[suffix]
    others = [path for path in sorted(out.glob("Fold*")) if path.name not in written]
    others += sorted(out.glob(f"Fold*/train{other}"))
    if others:
        raise InputError(
            f"{out} has {others[0].relative_to(out)} of other folds, which would be taken for a "
            f"part of these {folds}; remove such folds, or name another folder"
        )


def split_queries(
    collection: Collection,
    n_folds: int,
    *,
    by_group: bool,
    by_time: bool,
    seed: int,
    parts: Mapping[str, str] | None = None,
) -> list[Fold]:
    """The folds of the collection's queries; an empty list for ``n_folds`` 0.

    Args:
        parts: the part of each query, if they are given: "train", "validation" or "test".
    """
    from letor import folds

    together = collection.kept_together(by_group=by_group)
    options = [name for name, on in (("--by-group", by_group), ("--by-time", by_time)) if on]
    if parts is not None:
        of = [parts[query] for query in collection.query_ids]
        return [folds.given_parts(collection.query_ids, of, seed=seed, groups=together)]
    if len(options) > 1 or (options and not n_folds):
        reason = "give one of them" if n_folds else "there are no folds: give --folds too"
        raise InputError(f"{', '.join(options)}: {reason}")
    if not n_folds:
        return []
    if by_group:
        check_groups(collection)
    if by_time:
        if (times := collection.query_times) is None:
            raise InputError(
                f"--by-time: collection {collection.name!r} has no times of queries; `index "
                "--times` reads them"
            )
        return folds.by_time(collection.query_ids, times, n_folds)
    try:
        return folds.k_fold(collection.query_ids, n_folds, seed=seed, groups=together)
    except InputError as error:
        raise InputError(f"--folds {n_folds}: {error}") from error


@contextmanager
def held(build: Build, *, on_workers: bool) -> Iterator[None]:
    """Keep other builds out of the folder of the folds, whose files belong together, and away from
    the blocks that workers make for a single file; the file itself appears at once, whole."""
    from letor.files import remove_temporary
    from letor.lock import locked
    from ltr_features.feature_files import BUILT
    from ltr_features.stored_folds import clear_incomplete

    if not build.split and not on_workers:
        yield
        return
    folder = build.out if build.split else build.out.parent
    folder.mkdir(parents=True, exist_ok=True)
    with locked(build.out):
        if build.split:
            for place in (build.out, build.out / "models"):
                remove_temporary(place)  # what a killed build left
        try:
            yield
        except BaseException:
            if not (build.out / BUILT).exists():  # else the earlier build is as it was
                clear_incomplete(build.out, build.split)
            raise


def tell_fits(
    context: ColumnContext,
    recipes: Sequence[LearnedColumn],
    folds: Sequence[Sequence[NDArray[np.int64]]],
    reporter: Reporter,
    *,
    option: str = "--recipe {column}.{setting}=",
) -> None:
    """Print how much the models of the columns have to learn, and advice where it is much; with
    ``--quiet`` only where it is.

    Args:
        folds: the parts of each fold's training queries. option: what gives a column's setting.
    """
    from ltr_base.parallel import thread_count
    from ltr_features.columns.fit_size import FitSize
    from ltr_features.studies.progress import duration_text

    for recipe in recipes:
        if not recipe.looks_at_labels:
            continue
        size = FitSize.of(context, recipe, folds)
        reporter.message(f"{recipe.name}: {size}")
        if not size.is_long:
            continue
        cores, told = thread_count(context.threads), "this may take long"
        if size.seconds:
            told = (
                f"this may take about {duration_text(size.seconds / cores)} on "
                f"{counted(cores, 'core')}, or a tenth or three times that"
            )
        echo(
            f"{recipe.name}: {'' if reporter.shown else f'{size}; '}{told}; "
            f"{size.advice(partial(option.format, column=recipe.name))}",
            err=True,
        )


def fits(
    build: Build, scheduler: str | None, workspace: Path, parts: str | None, memory: int | None
) -> FitAll:
    """What fits the models: the workers of a cluster, or this process in this memory."""
    from ltr_features.column_workers import fits_on
    from ltr_features.columns.fold_fits import fit_folds
    from ltr_features.part_store import part_store

    if scheduler is not None and build.recipes:
        return fits_on(
            scheduler, workspace, None if parts is None else part_store(parts, build.out)
        )
    threads, told = build.context.threads, build.reporter.part
    return partial(fit_folds, threads=threads, memory=memory, on_fit=told)


def write_table(build: Build, *, fit: FitAll) -> None:
    """Build the table in memory and write its folds, or all rows as one text file."""
    from letor.column_names import write_rows
    from ltr_features.candidates import choose_candidates
    from ltr_features.feature_table import build_columns, learned_columns

    context, candidates, families, recipes, split, out, reporter = build
    found = choose_candidates(context, candidates)

    def show(family: str, done: int, total: int) -> None:
        reporter.step(family)
        reporter.part(done, total)

    with reporter.running(["columns", *(fold.name for fold in split)]):
        with reporter.stage("columns"):
            data = build_columns(
                context, found.pairs, families, origins=found.origins, on_progress=show
            )
        made = learned_columns(
            context, data, recipes, split,
            folder=out / "models", on_progress=reporter.epoch, fit=fit,
        )  # fmt: skip
        provenance = _write_text_folds(build, made) if split else {}
    width = data.X.shape[1] + len(recipes)
    if not split:
        write_rows(data, out, threads=context.threads)
    _tell_size(len(data), width, split, out)
    _tell(build, found, data, provenance)


def _write_text_folds(build: Build, folds: Iterator[FoldTable]) -> dict[str, Mapping[str, Any]]:
    """Write the folds, which replace those of an earlier build together at the end. Returns the
    provenance of each fold's columns."""
    from letor.column_names import write_rows
    from letor.files import staged_folder
    from ltr_features.stored_folds import part_paths

    provenance: dict[str, Mapping[str, Any]] = {}
    with staged_folder(build.out) as staged:
        for name, paths in part_paths(staged, build.split, ".txt").items():
            with build.reporter.stage(name):
                fold = next(folds)
                for part, path in zip(fold.parts(), paths, strict=True):
                    write_rows(part, path, threads=build.context.threads)
                provenance[name] = fold.provenance
        _forget_settings(build)
    return provenance


def write_blocks(
    build: Build,
    *,
    memory: int,
    cluster: AbstractContextManager[MakeBlocks] | None,
    fit: FitAll,
) -> None:
    """Write the rows as one Parquet file, block by block, and the folds next to it."""
    from ltr_features.blocks import write_columns
    from ltr_features.stored_folds import write_folds

    context, candidates, families, recipes, split, out, reporter = build
    names, provenance = [fold.name for fold in split], {}
    _forget_settings(build)  # before the file of all rows is replaced
    with reporter.running(["columns", *names]):
        with reporter.stage("columns"), cluster or nullcontext() as made_by:
            written = write_columns(
                context, candidates, families, all_rows(out, split),
                memory=memory, made_by=made_by, on_progress=reporter.part,
            )  # fmt: skip
        made = write_folds(
            context, recipes, split, out,
            missing=written.missing, memory=memory,
            on_progress=reporter.epoch, fit=fit,
        )  # fmt: skip
        for name in names:
            with reporter.stage(name):
                provenance[name] = next(made).provenance
    _tell_size(written.n_rows, written.width + len(recipes), split, out)
    _tell(build, written.candidates, written, provenance)


def _forget_settings(build: Build) -> None:
    """Remove the settings of an earlier build, whose files are replaced from now on."""
    from ltr_features.feature_files import BUILT

    if build.split:
        (build.out / BUILT).unlink(missing_ok=True)


def all_rows(out: Path, split: Sequence[Fold]) -> Path:
    """Path of the Parquet file of all rows."""
    from letor.parquet_parts import ALL_ROWS

    return out / ALL_ROWS if split else out


def _tell_size(n_rows: int, width: int, folds: Sequence[Fold], out: Path) -> None:
    for fold in folds:
        parts = f"{len(fold.train):,} training, {len(fold.validation):,} validation"
        tested = counted(len(fold.test), "test query")
        echo(f"{fold.name}: {counted(width, 'column')}; {parts} and {tested}")
    rest = f" in {counted(len(folds), 'fold')}" if folds else f", {counted(width, 'column')}"
    echo(f"{counted(n_rows, 'row')}{rest}: {out}")
    tell_models(out / "models")


def _tell(
    build: Build,
    found: Candidates | None,
    data: RankingData | Written,
    provenance: Mapping[str, Mapping[str, Any]],
) -> None:
    """Print remarks on rows and columns; called last, so that they do not scroll away."""
    from letor.dataset import RankingData
    from ltr_features.candidates import recall_remarks
    from ltr_features.columns.out_of_fold import groups_separated, separated
    from ltr_features.remarks import family_remarks, grouped_remarks, nothing_to_rank
    from ltr_features.text.candidates import candidate_recall

    collection = build.context.collection
    if found is not None and len(found.sources) > 1:
        judged = collection.judgements, collection.n_queries
        recalls = found.recalls(*judged) | {"together": candidate_recall(found.pairs, *judged)}
        means = (f"{name} {recall.mean:.3f}" for name, recall in recalls.items())
        echo(f"Recall of relevant documents, mean over queries: {', '.join(means)}", err=True)
    without = collection.n_queries - data.n_queries
    if without or (data.missing is not None and data.missing.n_relevant):
        queries = f"{counted(without, 'query')} without candidates; " if without else ""
        echo(f"{queries}{data.coverage}", err=True)
    of_candidates = [] if found is None else found.left_out
    if data.missing is not None:
        n_relevant = int((collection.judgements.grade >= 1).sum())
        n_found = n_relevant - data.missing.n_relevant
        n_empty = (
            len(data.queries_without_rows) if isinstance(data, RankingData) else data.n_without_rows
        )
        n_judged = len(set(collection.judgements.query.tolist()))
        of_candidates += recall_remarks(n_found, n_relevant, n_empty, n_judged)
    if isinstance(data, RankingData):  # the labels of written rows are not in memory
        of_candidates += nothing_to_rank(data, build.split)
    of_columns = [*family_remarks(data.provenance), *grouped_remarks(provenance)]
    of_folds = [*separated(build.context, build.split), *groups_separated(collection, build.split)]
    for sentence in [*build.context.remarks, *of_folds, *of_candidates, *of_columns]:
        echo(sentence, err=True)
