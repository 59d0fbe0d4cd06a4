"""Experiment files: TOML, typed as a whole; and what all kinds do with them."""

from __future__ import annotations

import copy
import inspect
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from letor.errors import InputError, reading
from ltr_base.former import present_names
from ltr_base.names import nearest

Config = TypeVar("Config", bound=BaseModel)


class Section(BaseModel):
    """A section of an experiment file; keys that it does not know are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: Present names of the keys that files may still have.
    former_keys: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _present_keys(cls, given: Any) -> Any:
        return present_names(given, cls.former_keys) if isinstance(given, Mapping) else given


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file; dates and times are texts, as the file has them (ISO 8601).

    Raises:
        InputError: it cannot be read, or is not TOML.
    """
    path = Path(path)
    with reading(path, "it cannot be read as TOML"):
        found: dict[str, Any] = _with_texts(tomllib.loads(path.read_text(encoding="utf-8")))
    return found


def _with_texts(value: Any) -> Any:
    """The value with dates and times as texts, which JSON can hold."""
    if isinstance(value, dict):
        return {key: _with_texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one) for one in value]
    return value.isoformat() if isinstance(value, date | time) else value


def read_config(
    path: str | os.PathLike[str],
    kind: type[Config],
    check: Callable[[Config], Iterable[str]] = lambda config: (),
) -> Config:
    """A TOML file as a typed description.

    Args:
        check: what is wrong with the description, beyond types.

    Raises:
        InputError: as :func:`read_toml`; or unknown keys, missing keys, values out of range: all
            at once, a line each.
    """
    with reading(path, "it describes no experiment"):
        problems, config = _typed(read_toml(path), kind)
        if config is not None:
            problems += check(config)
    if problems or config is None:
        distinct = list(dict.fromkeys(problems))
        listed = "".join(f"\n  {problem}" for problem in distinct)
        raise InputError(
            f"{path}: {len(distinct)} mistake{'s' if len(distinct) > 1 else ''}:{listed}"
        )
    return config


def _typed(raw: dict[str, Any], kind: type[Config]) -> tuple[list[str], Config | None]:
    """What the types say is wrong, and the experiment without it (so that the rest can be checked
    too), or None if too much is missing."""
    problems: list[str] = []
    raw = copy.deepcopy(raw)
    taken: list[tuple[Any, ...]] = []
    for _ in range(20):  # each turn takes what is wrong away, which may show more
        try:
            return problems, kind.model_validate(raw)
        except ValidationError as error:
            found = error.errors()
            taken += [e["loc"] for e in found]
            # That a list is too short without what is wrong in it is no mistake of its own.
            problems += [
                _said(e, kind) for e in found if not any(_inside(t, e["loc"]) for t in taken)
            ]
            if not any(_take_away(raw, e) for e in found):
                break
    return problems, None


#: What TOML calls a container that is not there, by Pydantic's type of the error.
_CONTAINERS = {
    "dict_type": "one table, [{0}]",
    "model_type": "one table, [{0}]",
    "list_type": "a list, {0} = [...] or [[{0}]]",
    "tuple_type": "a list, {0} = [...] or [[{0}]]",
}


def _inside(place: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(place) > len(other) and place[: len(other)] == other


def _said(error: Mapping[str, Any], kind: type[BaseModel]) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "file"
    if error["type"] == "extra_forbidden":
        known = _keys_beside(error["loc"], kind)
        return f"{place}: unknown key; {nearest(str(error['loc'][-1]), known)}"
    if error["type"] in _CONTAINERS:
        return f"{place}: must be {_CONTAINERS[error['type']].format(place)}"
    return f"{place}: {error['msg'].removeprefix('Value error, ')}"


def _keys_beside(place: tuple[Any, ...], section: type[BaseModel]) -> list[str]:
    """The keys that a section of an experiment may have."""
    for part in place[:-1]:
        if part in section.model_fields:  # others are numbers in lists, and names of sections
            section = _section_in(section.model_fields[part].annotation) or section
    return list(section.model_fields)


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = map(_section_in, getattr(annotation, "__args__", ()))
    return next((found for found in inner if found is not None), None)


def _take_away(raw: dict[str, Any], error: Mapping[str, Any]) -> bool:
    """Remove what an error is about; False if that is not there."""
    place: Any = raw
    *parents, last = error["loc"] or (None,)
    for part in parents:
        try:
            place = place[part]
        except (KeyError, IndexError, TypeError):
            return False
    if isinstance(place, list) and isinstance(last, int) and last < len(place):
        del place[last]
        return True
    return isinstance(place, dict) and place.pop(last, None) is not None


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
