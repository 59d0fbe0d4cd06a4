"""Save a fitted feature builder as a folder: its workspace, the fitted models, and the recipes of
all columns as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from letor.digests import (
    DIGESTS,
    changed_files,
    check_content,
    check_files,
    file_digest,
    folder_digest,
    named_files,
    write_digests,
    written_digests,
)
from letor.errors import InputError, LetorWarning, naming
from letor.files import atomic_path, check_replaced, parse_json, read_json, write_json
from ltr_base.names import repeated
from ltr_base.quiet import ignored
from ltr_base.source_code import code_of_others
from ltr_base.user_warning import warn_user
from ltr_features.added_documents import FEATURES, VERSION_REMOVED, AddedDocuments
from ltr_features.candidate_kinds import Search
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.context import ColumnContext, make_workspace, open_workspace
from ltr_features.columns.fitted import FittedColumn, restored_column
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import family_class, family_names, get_family, is_registered
from ltr_features.saved_searches import SEARCHES, load_searches, save_searches
from ltr_features.text.index_files import HEADER

#: File beside folds that says of which workspace, and how, ``columns build`` or ``columns append``
#: made them.
BUILT = "build.json"
_VERSION = 2
#: The folder of what families trained on the documents' texts.
_LEARNED = "learned"
#: Key of the digest of the code of a family that another package registers.
_CODE = "code"
#: Why a column is to be given, by the option that takes it.
_NOT_NAMED = {
    "families": "family {} cannot be restored by name; install the package that registers it, or "
    "create it",
    "models": "the model of column {} is not registered; create the column",
}
N = TypeVar("N", ColumnFamily, LearnedColumn)


def workspace_notes(workspace: Path, folder: Path) -> dict[str, str]:
    """The part of :data:`BUILT` from which :func:`built_of` finds the workspace.

    Args:
        folder: of the folds.
    """
    try:
        place = os.path.relpath(workspace, folder)
    except ValueError:  # no path leads from one drive of Windows to another
        place = os.path.abspath(workspace)
    # With slashes, folds and workspace can be moved to another system together.
    return {"workspace": Path(place).as_posix(), "sha256": _content_of(workspace)}


def built_of(folder: Path, found: Mapping[str, Any], threads: int | None = None) -> ColumnContext:
    """The context of the workspace that folds were built of.

    Args:
        folder: of the folds. found: the content of its :data:`BUILT`.

    Raises:
        InputError: the workspace is gone, or was made again of other texts.
    """
    workspace = folder / found["workspace"]
    context = open_workspace(workspace, threads=threads)
    if _content_of(workspace) != found["sha256"]:
        raise InputError(
            f"{workspace} has changed since {folder} was built of it: build folds and train "
            "the ranker again"
        )
    return context


def _content_of(workspace: Path) -> str:
    """Digest of a workspace's digests or, as those of earlier versions have none, of the
    description of its index."""
    digests = workspace / DIGESTS
    return file_digest(digests if digests.is_file() else workspace / "index" / HEADER)


class SavedFeatures(NamedTuple):
    """Contents of the folder of a saved builder.

    Attributes:
        families, fitted: the columns. searches: how to find candidates, by source.
        settings: further arguments of the builder.
        context: the context of the collection. has_added: whether documents were added to it.
    """

    families: list[ColumnFamily]
    fitted: list[FittedColumn]
    searches: dict[str, Search]
    settings: dict[str, Any]
    context: ColumnContext
    has_added: bool


def given_files(folder: Path) -> list[str]:
    """Absolute paths of the files that the families of a saved builder were given; they stay where
    they are."""
    families = _families(read_json(folder / FEATURES))
    return [path for notes in families for path in sorted(named_files(notes.get("params")))]


def changed_given_files(folder: Path) -> list[str]:
    """Those of :func:`given_files`, and files of folders among them, that are missing, new or
    changed since the builder was saved, one line each; none if the folder holds no saved builder.
    """
    if not (folder / FEATURES).is_file():
        return []
    families = _families(read_json(folder / FEATURES))
    changed = [path for path, _ in _changed(families)]
    lines = [f"{path}: {'changed' if Path(path).exists() else 'missing'}" for path in changed]
    given = {path for notes in families for path in notes.get("files", {})}
    for path in sorted(given.difference(changed)):
        if Path(path).is_dir():  # of a folder, digests are compared: these may not be the files'
            lines += [f"{path}/{line}" for line in changed_files(Path(path))]
    return lines


def _families(description: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a description says of its families: in version 1 their names and parameters alone."""
    families = description["families"]
    if description["version"] == 1:
        return [{"name": name, "params": params} for name, params in families.items()]
    return families


def _changed(families: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The files that families were given and that are not what they were, with the family."""
    for notes in families:
        for path, digest in notes.get("files", {}).items():
            if folder_digest(path) != digest:
                yield path, notes["name"]


def save_features(
    folder: Path,
    context: ColumnContext,
    families: Sequence[ColumnFamily],
    fitted: Sequence[FittedColumn],
    searches: Mapping[str, Search],
    settings: Mapping[str, Any],
    added: AddedDocuments | None,
) -> None:
    """Write a fitted builder to a new folder.

    Args:
        searches: see :class:`~ltr_features.feature_builder.FeatureBuilder`.
        settings: further arguments of the builder, JSON-compatible. added: documents that were
            added to it, or None.

    Raises:
        InputError: the folder holds something else, or two families that must be given to load it
            again have the same name.
    """
    described = columns_to_json(families, [column.recipe for column in fitted])
    for notes in described["families"]:
        if files := _digests_of(notes):
            notes["files"] = files
        if "params" in notes:
            notes["params"] = _absolute(notes["params"])
    check_replaced(folder, FEATURES, "features")
    with atomic_path(folder, kind="folder") as partial:
        make_workspace(context.collection, partial / "workspace", index=context.index)
        (partial / "models").mkdir()
        for column in fitted:
            column.model.save(partial / "models" / f"{column.recipe.name}.safetensors")
        for family in families:
            with naming(f"column family {family.name!r}"):
                family.save_learned(context, partial / _LEARNED)
        description = {
            "version": _VERSION,
            **described,
            **settings,
            "fold": fitted[0].fold if fitted else None,
            "searches": save_searches(searches, partial / SEARCHES),
        }
        write_json(partial / FEATURES, description)
        if added is not None:
            added.save(partial)
        write_digests(partial)


def read_features(
    folder: Path,
    families: Sequence[ColumnFamily],
    models: Sequence[LearnedColumn],
    *,
    threads: int | None = None,
) -> SavedFeatures:
    """Read what :func:`save_features` wrote.

    Args:
        families, models: those that cannot be restored by name.

    Raises:
        InputError: a folder of a newer version, a family or model that must be given is not, or a
            file that a family reads has changed.
        OSError, KeyError, TypeError, ValueError: the folder holds no features, or is damaged.
    """
    # Before the description: what adding documents changes in it, it changes before the digests.
    written = written_digests(folder)
    with (folder / FEATURES).open("rb") as file:
        description = parse_json(file.read(), FEATURES)
        if not description.get("added") and FEATURES in written:
            file.seek(0)
            check_content(file, written[FEATURES])
    version = description["version"]
    if version > VERSION_REMOVED:
        raise InputError(f"{folder} was made by a newer version; update this program")
    description["families"] = _families(description)
    for part in ("models", SEARCHES, _LEARNED):
        check_files(folder, f"{part}/*")
    restored, recipes = columns_from_json(description, folder, families, models)
    for path, name in _changed(description["families"]):
        raise InputError(
            f"{path} is not what it was when family {name!r} was saved; restore it, or build "
            "again: pipeline build takes the file as it is now"
        )
    sources = description.get("candidates") or {}
    context = open_workspace(folder / "workspace", threads=threads)
    for family in restored:
        with naming(f"column family {family.name!r}"):
            family.load_learned(context, folder / _LEARNED)
    paths = [folder / "models" / f"{recipe.name}.safetensors" for recipe in recipes]
    return SavedFeatures(
        restored,
        [
            restored_column(recipe, path, description.get("fold"))
            for recipe, path in zip(recipes, paths, strict=True)
        ],
        load_searches(folder / SEARCHES, sources, description.get("searches", [])),
        {
            "depth": None if "bm25" in sources else description["depth"],
            "candidates": sources or None,
        },
        context,
        bool(description.get("added")),
    )


def columns_to_json(
    families: Sequence[ColumnFamily], recipes: Sequence[LearnedColumn]
) -> dict[str, Any]:
    """How columns are made, as JSON: ``families`` and ``models``.

    Raises:
        InputError: two families that cannot be restored by name have the same name.
    """
    described = [_family_notes(family) for family in families]
    if twice := repeated(notes["name"] for notes in described if "params" not in notes):
        raise InputError(
            f"two families are called {twice[0]!r} and cannot be told apart when the builder is "
            "loaded with them; give one of them a name of its own"
        )
    # Of a column whose model is not registered only the name.
    models = [r.to_json() if isinstance(r.model, str) else {"name": r.name} for r in recipes]
    return {"families": described, "models": models}


def columns_from_json(
    description: Mapping[str, Any],
    where: Path,
    families: Sequence[ColumnFamily] = (),
    models: Sequence[LearnedColumn] = (),
) -> tuple[list[ColumnFamily], list[LearnedColumn]]:
    """Restore what :func:`columns_to_json` described.

    Args:
        where: where it was read, for messages. families, models: those that cannot be restored by
            name.

    Raises:
        InputError: a family or model that must be given is not.
        KeyError, TypeError: it describes no columns.

    Warns:
        LetorWarning: the package that registers a family has changed since.
    """
    return (
        [_family(notes, families, where) for notes in description["families"]],
        [
            LearnedColumn.from_json(notes)
            if "model" in notes
            else _given(notes["name"], models, where, "models")
            for notes in description["models"]
        ],
    )


def _family(notes: Mapping[str, Any], given: Sequence[ColumnFamily], where: Path) -> ColumnFamily:
    name = notes["name"]
    if "params" not in notes or name not in family_names():
        return _given(name, given, where, "families")
    # An earlier version took options without effect.
    options = family_class(name).without_unused(notes["params"])
    # What a table has besides was told when its columns were chosen.
    with ignored(".*: left out, ", category=LetorWarning):
        family = get_family(name, **options)
    if _CODE in notes and notes[_CODE] != code_of_others(type(family)):
        warn_user(
            f"{where}: the package of column family {name!r} has changed since, so its values may "
            "not be those that rankers were trained on: build the columns and train again",
            LetorWarning,
        )
    return family


def _family_notes(family: ColumnFamily) -> dict[str, Any]:
    """A family's name, and its parameters if it can be restored from them: if it is registered and
    its parameters are JSON-compatible; with a digest of the code if that is not ours."""
    notes: dict[str, Any] = {"name": family.name}
    if not is_registered(type(family)):
        return notes
    try:
        notes["params"] = json.loads(json.dumps(family.get_params(), default=_plain))
    except TypeError:
        return notes
    if code := code_of_others(type(family)):
        notes[_CODE] = code
    return notes


def _digests_of(notes: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files that a family's parameters name, but for annotations, which grow with
    new queries."""
    params = {k: v for k, v in notes.get("params", {}).items() if k != "annotations"}
    return {path: folder_digest(path) for path in sorted(named_files(_absolute(params)))}


def _absolute(value: Any) -> Any:
    """Settings with absolute paths of the files that they name: a service may start elsewhere."""
    if isinstance(value, Mapping):
        return {key: _absolute(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_absolute(item) for item in value]
    return os.path.abspath(value) if named_files(value) else value


def _plain(value: Any) -> Any:
    """A number of numpy or a path, for JSON."""
    return value.item() if isinstance(value, np.generic) else os.fspath(value)


def _given(name: str, given: Sequence[N], where: Path, option: str) -> N:
    """The family or column of that name among those given to ``load`` by an option."""
    found = next((item for item in given if item.name == name), None)
    if found is None:
        why = _NOT_NAMED[option].format(repr(name))
        raise InputError(f"{where}: {why} as it was and pass it: load(folder, {option}=[...])")
    return found
