"""A collection and its index in one folder: what every later command starts from."""

from __future__ import annotations

import json
import os
from pathlib import Path

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.columns.registry import ColumnContext
from ltr_features.text.analyzer import Analyzer
from ltr_features.text.collection import Collection
from ltr_features.text.collection_files import load_collection, save_collection
from ltr_features.text.index import TermIndex

_MARK = "workspace.json"
_VERSION = 1


def make_workspace(
    collection: Collection,
    folder: str | os.PathLike[str],
    *,
    analyzer: Analyzer | None = None,
    index: TermIndex | None = None,
    threads: int | None = None,
) -> Path:
    """Write ``collection/`` (BEIR's layout) and ``index/`` into a new folder.

    Args:
        analyzer: how text is analysed; or ``index``, if the collection is indexed already.

    A workspace that is there already is replaced when the new one is complete; a folder that holds
    anything else is not touched.

    Raises:
        InputError: the folder holds something else, or the collection has no words.
    """
    folder = Path(folder)
    check_target(folder)
    with atomic_path(folder, kind="folder") as partial:
        (partial / "collection").mkdir(parents=True)
        save_collection(collection, partial / "collection")
        if index is None:
            index = TermIndex.build(collection, analyzer, threads=threads)
        index.save(partial / "index")
        (partial / _MARK).write_text(json.dumps({"version": _VERSION}) + "\n", encoding="utf-8")
    return folder


def check_target(folder: str | os.PathLike[str]) -> None:
    """Raise InputError if a workspace cannot be made there: before a long collection is read."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; a workspace is a folder: name another path")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _MARK).is_file():
        raise InputError(f"{folder} is not empty and is no workspace; name another folder")


def open_workspace(folder: str | os.PathLike[str], *, threads: int | None = None) -> ColumnContext:
    """The context of a workspace's own queries; the index is memory-mapped.

    Raises:
        InputError: the folder is no workspace, or one of a newer version, or damaged.
    """
    folder = Path(folder)
    try:
        version = json.loads((folder / _MARK).read_text(encoding="utf-8"))["version"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{folder} is no workspace; make one with: ltr-features index SOURCE ... --out {folder}"
        ) from None
    if version > _VERSION:
        raise InputError(f"{folder} was made by a newer version of this program; update it")
    collection = load_collection(folder / "collection")
    return ColumnContext(collection, TermIndex.open(folder / "index"), threads=threads)
