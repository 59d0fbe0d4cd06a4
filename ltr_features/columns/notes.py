"""What a saved builder says of its families and learned columns, and which ones it names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from letor.errors import InputError
from ltr_features.columns.base import ColumnFamily
from ltr_features.columns.learned import LearnedColumn
from ltr_features.columns.registry import families, get_family


def family_notes(family: ColumnFamily) -> dict[str, Any]:
    """A family's name and, where a file can tell all that it needs, its parameters: where it is
    registered and was given no objects."""
    notes: dict[str, Any] = {"name": family.name}
    if families().get(family.name) is not type(family):
        return notes
    try:
        return notes | {"params": json.loads(json.dumps(family.get_params(), default=os.fspath))}
    except TypeError:
        return notes


def family_of(
    notes: Mapping[str, Any], given: Sequence[ColumnFamily], folder: Path
) -> ColumnFamily:
    """The family of such notes: by its name, or one of those given.

    Raises:
        InputError: it must be given, and is not.
    """
    if "params" in notes:
        return get_family(notes["name"], **notes["params"])
    family = next((family for family in given if family.name == notes["name"]), None)
    if family is None:
        raise InputError(
            f"{folder}: no file can tell how family {notes['name']!r} is made; make it as it was "
            "and hand it over: load(folder, families=[...])"
        )
    return family


def column_notes(column: LearnedColumn) -> dict[str, Any]:
    """A learned column's settings; its name alone where its model is not registered."""
    return column.to_json() if isinstance(column.model, str) else {"name": column.name}


def column_of(
    notes: Mapping[str, Any], given: Sequence[LearnedColumn], folder: Path
) -> LearnedColumn:
    """The column of such notes: by its model's name, or one of those given.

    Raises:
        InputError: it must be given, and is not.
    """
    if "model" in notes:
        return LearnedColumn.from_json(notes)
    column = next((column for column in given if column.name == notes["name"]), None)
    if column is None:
        raise InputError(
            f"{folder}: the model of column {notes['name']!r} is not registered; make the column "
            "as it was and hand it over: load(folder, models=[...])"
        )
    return column
