"""Options of sources and families that name files: resolve their paths, or identify the files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ltr_features.entities.of_dump import EXCERPT_NAME
from ltr_features.sources.wikipedia import excerpt_path
from ltr_features.studies.identity import Digests


def path_options(made: Callable[..., Any]) -> set[str]:
    """The parameters of a source or family that are paths."""
    return {
        name
        for name, parameter in inspect.signature(made).parameters.items()
        if "Path" in str(parameter.annotation)
    }


def with_paths(made: Callable[..., Any], options: Mapping[str, Any], data: Path) -> dict[str, Any]:
    """The options with paths resolved against the data folder (absolute ones stay). Values of other
    options, such as word vectors, are resolved too if they name a file in that folder."""
    return _with_files(made, options, data, str)


def with_content(
    made: Callable[..., Any], options: Mapping[str, Any], data: Path, digests: Digests
) -> dict[str, Any]:
    """The options with the identity of each file or folder in place of its path, as inputs of a
    stage, which do not depend on the spelling of paths."""
    return _with_files(made, options, data, digests.identity)


def _with_files(
    made: Callable[..., Any],
    options: Mapping[str, Any],
    data: Path,
    put: Callable[[Path], Any],
) -> dict[str, Any]:
    paths = path_options(made)

    def replaced(name: str, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [replaced(name, v) for v in value]
        if isinstance(value, Mapping):
            return {key: replaced(name, v) for key, v in value.items()}
        if name == "dump" and value == EXCERPT_NAME:
            return put(excerpt_path())
        is_path = isinstance(value, str) and (name in paths or (data / value).is_file())
        return put(data / value) if is_path else value

    return {name: replaced(name, value) for name, value in options.items()}
