"""Experiment files: TOML, typed as a whole."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from letor.errors import InputError

Config = TypeVar("Config", bound=BaseModel)


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    path = Path(path)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def read_config(path: str | os.PathLike[str], kind: type[Config]) -> Config:
    """A TOML file as a typed description.

    Raises:
        InputError: as :func:`read_toml`; or unknown keys, missing keys, values out of range: all
            at once.
    """
    try:
        return kind.model_validate(read_toml(path))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in e['loc']) or 'file'}: {e['msg']}"
            for e in error.errors()
        )
        raise InputError(f"{path}: {problems}") from None
