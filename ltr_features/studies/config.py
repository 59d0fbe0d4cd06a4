"""Experiment files: TOML, typed as a whole; and what all kinds do with them."""

from __future__ import annotations

import difflib
import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from letor.errors import InputError

Config = TypeVar("Config", bound=BaseModel)


class Section(BaseModel):
    """A section of an experiment file; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


def nearest(name: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of a message."""
    known = [str(k) for k in known]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    if any("," in k for k in known):
        known = [repr(k) for k in known]
    return f"there are {', '.join(known)}" if known else "there are none"


def refitted(made: Callable[..., Any], params: Mapping[str, Any], fit: int) -> dict[str, Any]:
    """The parameters of a model or ranker in one of several fits: the fit's number, from 0, is
    added to the seed, if there is one. Models that learn from documents alone are the same in
    every fit."""
    seed = inspect.signature(made).parameters.get("seed")
    if not fit or seed is None or getattr(made, "learns_from", "") == "documents":
        return dict(params)
    return {**params, "seed": params.get("seed", seed.default) + fit}


def slug(name: str) -> str:
    """A system's name as a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)
