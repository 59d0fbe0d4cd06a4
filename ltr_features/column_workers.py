"""What the workers of a cluster do for columns: rows of blocks of queries, and fits of models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from letor.arrow_rows import ArrowRows
from letor.files import atomic_path
from ltr_features.blocks import Block, BlockWork
from ltr_features.cluster import Cluster, check_folder, connected, digest, folder_digest
from ltr_features.columns.context import ColumnContext, open_workspace
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.trained import TrainedColumn
from ltr_features.feature_table import Parts
from ltr_features.text.collection import Pairs

#: The file of candidates that models learn from, beside the models.
_CANDIDATES = "candidates.npy"


@contextmanager
def blocks_on(
    address: str, workspace: Path, folder: Path
) -> Iterator[Callable[[BlockWork, Iterable[Block]], Iterator[ArrowRows]]]:
    """What makes the rows of blocks on a cluster, for :func:`ltr_features.blocks.write_columns`.

    Args:
        address: see :func:`~ltr_features.cluster.connected`.
        workspace: the folder that ``ltr-features index`` made, as the workers see it.
        folder: for the blocks' files, as the workers see it; removed when the work is done.

    Raises:
        InputError: as :func:`~ltr_features.cluster.connected`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with connected(address, workspace, folder) as cluster:
        yield lambda work, blocks: _made(cluster, workspace, folder, work, blocks)
    shutil.rmtree(folder)


def _made(
    cluster: Cluster, workspace: Path, folder: Path, work: BlockWork, blocks: Iterable[Block]
) -> Iterator[ArrowRows]:
    """The rows of the blocks, in their order; files that are there are taken."""
    seen = folder_digest(str(workspace))
    base = digest(seen.encode() + _settings(work))
    calls = (
        (str(workspace), seen, work, block, str(folder / f"{base}-{_name(block)}"))
        for block in blocks
    )
    for path in cluster.in_order(_write_block, calls):
        yield ArrowRows.open(path)


def _write_block(workspace: str, seen: str, work: BlockWork, block: Block, path: str) -> str:
    """Make the rows of a block and write them, unless they are there: the file."""
    file = Path(f"{path}.arrow")
    if not file.is_file():
        work.rows(_context(workspace, seen), block).save(file)
    return str(file)


@lru_cache(maxsize=1)
def _context(workspace: str, seen: str) -> ColumnContext:
    """The workspace, opened once by each worker, of which there is one for each core."""
    check_folder(workspace, seen)
    return open_workspace(workspace, threads=1)


def _name(block: Block) -> str:
    """A block's queries, and a digest of its pairs if it has some."""
    name = f"{block.first}-{block.last}"
    if block.pairs is None:
        return name
    content = block.pairs.query.tobytes() + block.pairs.document.tobytes()
    return f"{name}-{digest(content + repr(block.origins).encode())}"


def _settings(work: BlockWork) -> bytes:
    """All that the rows of a block depend on beside the workspace."""
    families = [[family.name, vars(family), _files(vars(family))] for family in work.families]
    told = [version("ltr-features"), dict(work.candidates), families]
    return json.dumps(told, sort_keys=True, default=repr).encode()


def _files(value: Any) -> list[tuple[str, int, int]]:
    """Size and time of the files that are named somewhere in a family's parameters."""
    if isinstance(value, Mapping):
        return [one for part in value.values() for one in _files(part)]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in _files(part)]
    if isinstance(value, (str, Path)) and Path(value).is_file():
        status = Path(value).stat()
        return [(str(value), status.st_size, status.st_mtime_ns)]
    return []


#: Fits the models of columns and folds, into the columns' folders.
FitAll: TypeAlias = Callable[[Sequence[TrainedColumn], Sequence[Parts]], None]


def fits_on(address: str, workspace: Path) -> FitAll:
    """What fits the models of columns and folds on a cluster, a fold's models of a column at a
    time, for :func:`ltr_features.feature_table.learned_columns`. The folder of the models lies on
    shared storage.

    Args:
        address: see :func:`~ltr_features.cluster.connected`.
        workspace: of the columns' collection, as the workers see it.

    Raises:
        InputError: when it is called, as :func:`~ltr_features.cluster.connected`.
    """

    def fit(columns: Sequence[TrainedColumn], folds: Sequence[Parts]) -> None:
        place = str(workspace.resolve())
        seen, calls = folder_digest(place), []
        for column in columns:
            column.folder.mkdir(parents=True, exist_ok=True)
            if column.candidates is not None:
                pairs = np.stack([column.candidates.query, column.candidates.document])
                with atomic_path(column.folder / _CANDIDATES) as partial, partial.open("wb") as out:
                    np.save(out, pairs)
            once = column.recipe.kind.learns_from == "documents"
            given = (column.recipe, str(column.folder.resolve()), column.hold_out_groups)
            for parts in folds[:1] if once else folds:
                calls.append((place, seen, *given, list(parts)))
        with connected(address, workspace, *(column.folder for column in columns)) as cluster:
            for _ in cluster.in_order(_fit, calls):
                pass

    return fit


def _fit(
    workspace: str, seen: str, recipe: LearnedColumn, folder: str, by_group: bool, parts: Parts
) -> None:
    """Fit the models of a column in a fold, unless they are in the folder."""
    candidates = None
    if recipe.learns_from_lists:
        query, document = np.load(Path(folder) / _CANDIDATES)
        candidates = Pairs(query, document)
    if "threads" in recipe.kind.default_params():  # there is a worker for each core
        recipe = replace(recipe, params={**recipe.params, "threads": 1})
    column = TrainedColumn(
        _context(workspace, seen),
        recipe,
        Path(folder),
        hold_out_groups=by_group,
        candidates=candidates,
    )
    column.fold_models(parts)
