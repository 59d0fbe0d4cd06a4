"""``ranker.json``, the description of a saved ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from letor.errors import InputError, reading
from letor.files import read_json

FORMAT_VERSION = 1
DESCRIPTION_FILE = "ranker.json"


def read_description(folder: Path) -> dict[str, Any]:
    """Read the ``ranker.json`` of a saved ranker and check its version.

    Raises:
        InputError: the file is absent, cannot be read, or is of a newer version.
    """
    path = folder / DESCRIPTION_FILE
    if not path.exists():
        raise InputError(f"{folder} is not a saved ranker: it has no {DESCRIPTION_FILE}")
    with reading(path, "not the description of a ranker"):
        description = read_json(path)
        version = int(description["format_version"])
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {version}, this program reads up to {FORMAT_VERSION}: "
            "update it"
        )
    return description


def plain(value: Any) -> Any:
    """Convert numpy numbers and arrays, which may be parameters, for JSON."""
    if not isinstance(value, np.generic | np.ndarray):
        raise InputError(
            f"a ranker's parameters, and what its _save returns, are stored as JSON, which has no "
            f"{type(value).__name__} ({value!r}): make numbers, texts or lists of it"
        )
    return value.tolist()


def strings(values: Any) -> list[str]:
    """Check the column names of a description."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("feature_names is not a list of names")
    return values
