"""Experiment files: TOML, validated as a whole; helpers shared by all kinds of experiments."""

from __future__ import annotations

import inspect
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import date, time
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from letor.errors import InputError, reading
from ltr_base.former import former_names_in, present_names
from ltr_base.names import nearest, repeated
from ltr_features.parameters import as_written, plainly

#: The end of a message on a file that is not there.
DATA_ADVICE = (
    "check the name; paths in an experiment file are relative to the folder named by --data or the "
    "environment variable LTR_DATA"
)

#: The largest seed that LightGBM, XGBoost and the training of vectors take.
MAX_SEED = 2**31 - 1
#: A seed that rankers get.
RankerSeed = Annotated[int, Field(ge=0, le=MAX_SEED)]
#: A number of fits or simulations: each is planned before the first is made.
Repeats = Annotated[int, Field(ge=1, le=10_000)]


class Section(BaseModel):
    """A section of an experiment file; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    #: Present name of each former key that files may still use.
    former_keys: ClassVar[Mapping[str, str]] = {}

    @field_validator("*", mode="wrap")
    @classmethod
    def _as_written(cls, given: Any, typed: ValidatorFunctionWrapHandler) -> Any:
        """TOML tells types apart; Pydantic would take the text "2" for 2, and true for 1."""
        found = typed(given)
        for old, new in _converted(given, found):
            raise ValueError(f"write {as_written(new)}, not {as_written(old)}")
        return found

    @model_validator(mode="before")
    @classmethod
    def _present_keys(cls, given: Any) -> Any:
        return present_names(given, cls.former_keys) if isinstance(given, Mapping) else given

    def problems(self) -> Iterable[str]:
        """The mistakes that the types of the section's parts do not reveal, each with its place."""
        return ()


Config = TypeVar("Config", bound=Section)


def _converted(given: Any, found: Any) -> Iterator[tuple[Any, Any]]:
    """The values that became numbers or truth values though they were written as something else,
    and what they became."""
    if isinstance(given, list | tuple):
        for pair in zip(given, found, strict=True):
            yield from _converted(*pair)
    elif isinstance(given, Mapping):
        values = found if isinstance(found, Mapping) else vars(found)
        for key in given.keys() & values.keys():
            yield from _converted(given[key], values[key])
    elif isinstance(found, int | float) and (
        isinstance(given, str) or isinstance(given, bool) != isinstance(found, bool)
    ):
        yield given, found


def no_such(
    place: str, what: str, names: Iterable[str | None], known: Collection[str]
) -> Iterator[str]:
    """Problems for those of the names that are neither known nor None."""
    for name in names:
        if name is not None and name not in known:
            yield f"{place}: no {what} {name!r}; {nearest(name, known)}"


def read_toml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a TOML file, with dates and times as ISO 8601 strings.

    Raises:
        InputError: the file cannot be read, or is not TOML.
    """
    path = Path(path)
    with reading(path, "it cannot be read as TOML"):
        try:
            found: dict[str, Any] = _with_texts(tomllib.loads(path.read_text(encoding="utf-8")))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"it cannot be read as TOML: {error}") from error
    return found


def _with_texts(value: Any) -> Any:
    """The value with dates and times as strings, which JSON can hold."""
    if isinstance(value, dict):
        return {key: _with_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item) for item in value]
    return value.isoformat() if isinstance(value, date | time) else value


def read_config(
    path: str | os.PathLike[str],
    kind: type[Config],
    check: Callable[[Config], Iterable[str]] = lambda config: config.problems(),
) -> Config:
    """Read a TOML file as a typed configuration.

    Args:
        check: returns the mistakes in the configuration that its types do not reveal; by default
            its own :meth:`Section.problems`.

    Raises:
        InputError: as :func:`read_toml`; or the file has unknown keys, missing keys or values out
            of range: all mistakes are listed, one per line.
    """
    with reading(path, "it describes no experiment"), former_names_in(os.fspath(path)):
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
    """Mistakes that the types reveal, and the configuration without the wrong parts, which are
    removed (so that the rest can be checked too), or None if too much is missing."""
    problems: list[str] = []
    taken: list[tuple[Any, ...]] = []
    for _ in range(20):  # each turn removes the wrong parts, which may reveal further mistakes
        try:
            return problems, kind.model_validate(raw)
        except ValidationError as error:
            # A wrong part that was removed is not missing, too.
            found = [e for e in error.errors() if e["type"] != "missing" or e["loc"] not in taken]
            taken += [e["loc"] for e in found]
            # A list that is too short once its wrong items are removed is not a further mistake.
            problems += [
                _problem(e, kind) for e in found if not any(_inside(t, e["loc"]) for t in taken)
            ]
            # From the end, as removing an item of a list shifts those after it.
            removed = [_remove(raw, e) for e in reversed(found)]
            if not any(removed):
                break
    return problems, None


#: TOML syntax of the container that is expected, by Pydantic's type of the error.
_CONTAINERS = {
    "dict_type": "one table, [{0}]",
    "model_type": "one table, [{0}]",
    "dataclass_type": "one table, [{0}]",
    "list_type": "a list, {0} = [...] or [[{0}]]",
    "tuple_type": "a list, {0} = [...] or [[{0}]]",
}


def _inside(place: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(place) > len(other) and place[: len(other)] == other


def _problem(error: Mapping[str, Any], kind: type[BaseModel]) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "file"
    if error["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys_beside(error["loc"], kind)
        return f"{place}: unknown key; {nearest(str(error['loc'][-1]), known)}"
    if error["type"] == "missing":
        return f"{place}: is missing"
    if error["type"] in _CONTAINERS:
        return f"{place}: must be {_CONTAINERS[error['type']].format(place)}"
    return f"{place}: {plainly(error)}"


def _keys_beside(place: tuple[Any, ...], section: type) -> list[str]:
    """The keys allowed in the section that contains a place."""
    for part in place[:-1]:
        fields = getattr(section, "model_fields", {})
        if part in fields:  # other parts are list positions and names of sections
            section = _section_in(fields[part].annotation) or section
    return list(inspect.signature(section).parameters)


def _section_in(annotation: Any) -> type | None:
    if isinstance(annotation, type) and (
        issubclass(annotation, BaseModel) or is_dataclass(annotation)
    ):
        return annotation
    inner = map(_section_in, getattr(annotation, "__args__", ()))
    return next((found for found in inner if found is not None), None)


def _remove(raw: dict[str, Any], error: Mapping[str, Any]) -> bool:
    """Remove the value that an error is about; return False if it does not exist."""
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


def too_large_seed(place: str, seed: int, summands: str) -> Iterator[str]:
    """The mistake that a sum of seeds is larger than rankers take, if it is."""
    if seed > MAX_SEED:
        yield (
            f"{place}: the seeds of {summands} add up to {seed:,}, and rankers take {MAX_SEED:,} "
            "at most: give smaller ones"
        )


#: File systems allow names of 255 bytes, with ending, number and the mark of an unfinished file.
NAME_BYTES = 200


def slug(name: str) -> str:
    """Turn a system's name into a file name."""
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def folder_problems(what: str, names: Iterable[str]) -> Iterator[str]:
    """Problems of names whose slugs are those of folders, where each needs one of its own."""
    slugs = [slug(name) for name in names]
    if twice := repeated(name.casefold() for name in slugs):  # one folder on Windows and macOS
        yield (
            f"two {what} share the name (as a folder) {', '.join(twice)}: names must differ in "
            "more than case and special characters"
        )
    for name in slugs:
        if (size := len(name.encode())) > NAME_BYTES:
            yield f"{what}: {name[:20]}… is a name of {size} bytes; give {NAME_BYTES} at most"
