"""Work on columns by the workers of a cluster: rows of blocks of queries, and fits of models."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from letor.arrow_rows import ArrowRows
from letor.digests import changed_files, folder_digest, named_files
from letor.errors import InputError
from letor.files import atomic_path, save_array
from ltr_base.names import listed
from ltr_base.source_code import code_of_others
from ltr_features.blocks import Block, BlockWork, MakeBlocks
from ltr_features.cluster import Cluster, check_folder, connected, digest, packed
from ltr_features.columns.context import ColumnContext, open_workspace
from ltr_features.columns.fitted import FittedColumn
from ltr_features.columns.fold_fits import FitAll, Parts, unfitted
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.trained import TrainedColumn
from ltr_features.part_store import PartFolder, PartStore
from ltr_features.text.collection import Pairs
from ssi_models.parallel import Executor

#: Name of the file next to the models with the candidates that they learn from.
_CANDIDATES = "candidates.npy"
#: (path, digest) of the workspace and of the files and folders that settings name, as the process
#: that submits the work sees them; workers may have copies.
_Inputs = tuple[tuple[str, str], ...]


@contextmanager
def blocks_on(address: str, workspace: Path, parts: PartStore) -> Iterator[MakeBlocks]:
    """A function that computes the rows of blocks on a cluster, for
    :func:`ltr_features.blocks.write_columns`.

    Args:
        address: see :func:`~ltr_features.cluster.connected`.
        workspace: the folder that ``ltr-features index`` made, as the workers see it.
        parts: store for the blocks' files, which are removed when the work is done.

    Raises:
        InputError: see :func:`~ltr_features.cluster.connected`.
    """
    parts.begin()
    with connected(address, workspace, parts) as cluster:
        yield lambda work, blocks: _made(cluster, workspace, parts, work, blocks)
    parts.remove()


def _made(
    cluster: Cluster, workspace: Path, parts: PartStore, work: BlockWork, blocks: Iterable[Block]
) -> Iterator[ArrowRows]:
    """The rows of the blocks, in order; files that already exist are reused."""
    seen = _seen(workspace, work)
    base = _base(seen, work)
    calls = [(seen, work, block, parts, f"{base}-{_name(block)}.arrow") for block in blocks]
    if any(parts.has(name) for *_, name in calls):
        _check_unchanged(workspace, parts)
    for name in cluster.in_order(_write_block, calls):
        with parts.reading(name) as path:
            yield ArrowRows.open(path)


def _check_unchanged(workspace: Path, parts: PartStore) -> None:
    """Raise InputError if a file of the workspace is not as it was written: blocks are named by its
    file of digests, so those of an earlier run may be of other data. Reads all files."""
    if changed := changed_files(workspace):
        raise InputError(
            f"{workspace}: changed since it was indexed ({listed(changed, 3)}), so blocks that an "
            f"earlier run left in {parts} may not fit; index the collection again"
        )


def _write_block(seen: _Inputs, work: BlockWork, block: Block, parts: PartStore, name: str) -> str:
    """Compute and write the rows of a block, unless they exist; returns the file's name."""
    if not parts.has(name):
        for family, code in zip(work.families, work.code, strict=True):
            _check_code(type(family), code)
        with parts.working() as folder:
            work.rows(_context(seen, *work.code), block).save(folder / name)
            parts.put(folder / name)
    return name


def _seen(workspace: Path, work: BlockWork | None = None) -> _Inputs:
    """The inputs as this process sees them."""
    named = set()
    for family in () if work is None else work.families:
        files = named_files({k: v for k, v in vars(family).items() if not k.startswith("_")})
        beside = (family.file_beside(Path(file)) for file in files)
        named |= files | {str(file) for file in beside if file is not None and file.is_file()}
    return tuple((path, folder_digest(path)) for path in (str(workspace), *sorted(named)))


@lru_cache(maxsize=1)
def _context(seen: _Inputs, *code: str) -> ColumnContext:
    """The workspace, opened once per worker, and again for other code of families, which keep what
    they learn in it; one thread, as there is a worker for each core."""
    for path, expected in seen:
        check_folder(path, expected)
    return open_workspace(seen[0][0], threads=1)


def _check_code(kind: type, expected: str) -> None:
    """Raise InputError on a worker that has other code of a plug-in's class than the process that
    submits the work."""
    if _loaded(kind) != expected:
        raise InputError(
            f"worker on {socket.gethostname()}: the code of {kind.__module__}.{kind.__qualname__} "
            "is not that of the process that gives it work: install one version of its package "
            "everywhere, and start the workers again"
        )


@cache
def _loaded(kind: type) -> str:
    """The digest of a class's code when this worker first used it: the files may change, what a
    process has imported does not."""
    return code_of_others(kind)


def _name(block: Block) -> str:
    """A name for a block: its range of queries, and a digest of its pairs if it has some."""
    name = f"{block.first}-{block.last}"
    if block.pairs is None:
        return name
    content = block.pairs.query.tobytes() + block.pairs.document.tobytes()
    return f"{name}-{digest(content + repr(block.origins).encode())}"


def _base(seen: _Inputs, work: BlockWork) -> str:
    """A digest of everything that the rows of all blocks depend on."""
    families = [[family.name, vars(family)] for family in work.families]
    inputs = [content for _, content in seen]
    facts = [version("ltr-features"), inputs, work.code, dict(work.candidates), families]
    # By content: the text of a large array leaves most of it out.
    return digest(json.dumps(facts, sort_keys=True, default=lambda x: digest(packed(x))).encode())


def fits_on(address: str, workspace: Path, parts: PartStore | None = None) -> FitAll:
    """A function that fits the models of columns and folds on a cluster, each worker those of a
    column in a fold, or a piece of a model that is alone: of a single part, or the same for all
    folds; for :func:`ltr_features.feature_table.learned_columns`.

    Args:
        address: see :func:`~ltr_features.cluster.connected`.
        workspace: the workspace of the columns' collection, as the workers see it.
        parts: store for the models until they are copied to the columns' folders; removed when the
            work is done. By default these folders, which must then be on shared storage. With a
            store other than a folder one worker fits the whole model, as for pieces each worker
            would have to read those of all others.

    Raises:
        InputError: by the returned function, see :func:`~ltr_features.cluster.connected`.
    """

    def fit(columns: Sequence[TrainedColumn], folds: Sequence[Parts]) -> None:
        stores = [parts or PartFolder(column.folder.resolve()) for column in columns]
        wanted: list[tuple[TrainedColumn, PartStore, Parts]] = []
        spread: list[tuple[TrainedColumn, PartFolder]] = []
        for column, store in zip(columns, stores, strict=True):
            _begin(store, column)
            alone = len(column.fold_paths(folds[0])) == 1
            in_pieces = alone and column.recipe.new_model().in_pieces
            if in_pieces and isinstance(store, PartFolder):
                spread.append((column, store))
            else:
                wanted += [(column, store, rows) for _, rows in unfitted([column], folds)]
        seen = _seen(workspace.resolve())
        with connected(address, workspace, *dict.fromkeys(stores)) as cluster:
            _fit_all(cluster, seen, wanted)
            for column, store in spread:
                pieces = store.folder / "pieces"
                column.executor = Executor(pieces, cluster.in_order)
                column.fit_fold(folds[0])
                shutil.rmtree(pieces, ignore_errors=True)
                column.executor = None
        if parts is not None:
            parts.remove()
        for column in columns:
            (column.folder / _CANDIDATES).unlink(missing_ok=True)

    return fit


def fitted_on(
    address: str, workspace: Path, column: TrainedColumn, rows: NDArray[np.int64]
) -> FittedColumn:
    """Fit a column's model on query rows: all workers of a cluster compute its pieces, or one
    worker fits a model without pieces.

    Args:
        address, workspace: see :func:`fits_on`. column: its folder must be on shared storage.

    Raises:
        InputError: see :func:`~ltr_features.cluster.connected`.
    """
    fits_on(address, workspace)([column], [[rows]])
    return column.fitted(rows)


def _begin(store: PartStore, column: TrainedColumn) -> None:
    """Put the candidates that a column's models learn from next to where the models will be."""
    store.begin()
    if column.candidates is not None:
        with store.working() as folder:
            with atomic_path(folder / _CANDIDATES) as partial:
                save_array(partial, np.stack([column.candidates.query, column.candidates.document]))
            store.put(folder / _CANDIDATES)


def _fit_all(
    cluster: Cluster, seen: _Inputs, wanted: Sequence[tuple[TrainedColumn, PartStore, Parts]]
) -> None:
    """Fit the models of columns on the workers and copy them into the columns' folders."""
    calls = [
        (
            seen,
            code_of_others(column.recipe.kind),
            column.recipe,
            store,
            column.hold_out_groups,
            list(rows),
        )
        for column, store, rows in wanted
    ]
    fitted = cluster.in_order(_fit, calls)
    for (column, store, _), names in zip(wanted, fitted, strict=True):
        for name in names:
            target = column.folder / name
            with store.reading(name) as path:
                if path != target.resolve():
                    with atomic_path(target) as partial:
                        shutil.copyfile(path, partial)


def _fit(
    seen: _Inputs, code: str, recipe: LearnedColumn, store: PartStore, by_group: bool, parts: Parts
) -> list[str]:
    """Fit the models of a column in a fold, or the one model of a single part, unless they are in
    the store; returns the files' names."""
    _check_code(recipe.kind, code)
    context, candidates = _context(seen), None
    if recipe.learns_from_lists:
        with store.reading(_CANDIDATES) as path:
            candidates = Pairs(*np.load(path))
        context.check(candidates)
    with store.working() as folder:
        column = TrainedColumn(
            context, recipe, folder, hold_out_groups=by_group, candidates=candidates
        )
        column.threads = 1  # as there is a worker for each core
        paths = column.fold_paths(parts)
        if not all(store.has(path.name) for path in paths):
            column.fit_fold(parts)
            for path in paths:
                store.put(path)
    return [path.name for path in paths]
