"""A fitted column as two files: the model, and beside it what was trained on whose judgements."""

from __future__ import annotations

import json
import os
from collections.abc import Collection as IdCollection
from dataclasses import asdict
from pathlib import Path

from letor.errors import InputError
from letor.files import atomic_path
from ltr_features.columns.model_column import ModelColumn
from ltr_features.columns.trained import FittedColumn
from ssi_models.registry import load_model


def notes_path(path: str | os.PathLike[str]) -> Path:
    """The notes beside a model file: ``ssi.safetensors`` has ``ssi.column.json``."""
    path = Path(path)
    return path.with_name(path.name.removesuffix(".safetensors") + ".column.json")


def save_fitted(
    column: FittedColumn, path: str | os.PathLike[str], train_queries: IdCollection[str]
) -> None:
    """Write the model and its notes, remarks on the fit among them.

    Args:
        train_queries: ids of the queries whose judgements the model saw; none of a model that
            learns from documents.
    """
    path = Path(path)
    labelled = column.recipe.kind.learns_from == "preferences"
    notes = {
        "recipe": {**asdict(column.recipe), "params": dict(column.recipe.params)},
        "train_queries": sorted(train_queries) if labelled else [],
    }
    if column.remarks:
        notes["remarks"] = column.remarks
    column.model.save(path)
    with atomic_path(notes_path(path)) as partial:
        partial.write_text(json.dumps(notes, ensure_ascii=False) + "\n", encoding="utf-8")


def load_fitted(path: str | os.PathLike[str], *, queries: IdCollection[str]) -> FittedColumn:
    """The column, to score rows of the given queries.

    Raises:
        InputError: no notes beside the model, or it was trained on judgements of one of the
            queries: its column would tell the ranker their labels.
    """
    path = Path(path)
    try:
        notes = json.loads(notes_path(path).read_text(encoding="utf-8"))
        recipe, seen = ModelColumn.from_json(notes["recipe"]), set(notes["train_queries"])
    except FileNotFoundError:
        raise InputError(
            f"{notes_path(path)}: no such file; it says on whose judgements the model was trained "
            "(`ltr-features models fit` writes it)"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{notes_path(path)}: not the notes of a model ({error})") from None
    shared = sorted(seen & set(queries))
    if shared:
        raise InputError(
            f"{path}: the model was trained on judgements of {len(shared)} of the {len(queries)} "
            f"queries to be scored ({', '.join(shared[:3])}, ...): its column would give their "
            "labels away. Train it on other queries, or build folds by `columns build --model`"
        )
    return FittedColumn(recipe, load_model(path))
