"""Check values from files and command lines against the parameters of a function."""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from inspect import Parameter
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from letor.errors import InputError
from ltr_base.names import nearest


class _Type(NamedTuple):
    """A type's names for one value and for several, in messages, and whether a value has it."""

    one: str
    several: str
    has: Callable[[Any], bool]


_TYPES: dict[Any, _Type] = {
    bool: _Type("true or false", "true or false", lambda v: isinstance(v, bool)),
    int: _Type(
        "a whole number",
        "whole numbers",
        lambda v: isinstance(v, Integral) and not isinstance(v, bool),
    ),
    float: _Type("a number", "numbers", lambda v: isinstance(v, Real) and not isinstance(v, bool)),
    str: _Type("text", "texts", lambda v: isinstance(v, str)),
    date: _Type("a date", "dates", lambda v: isinstance(v, date)),
    os.PathLike: _Type("a path", "paths", lambda v: isinstance(v, (str, os.PathLike))),
    NoneType: _Type("nothing", "nothing", lambda v: v is None),
}


#: What is expected, by the beginning of Pydantic's type of the error, with its terms.
_EXPECTED = {
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must have letters, digits, - and _ alone",
    "int_": "must be a whole number",
    "float_": "must be a number",
    "finite_number": "must be a finite number",
    "bool_": "must be true or false",
    "path_type": "must be the path of a file",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be above {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be below {lt}",
    "too_short": "must have {min_length} or more entries",
    "too_long": "must have {max_length} entries",
}


def check_values(function: Callable[..., Any], values: Mapping[str, Any], what: str) -> None:
    """Check values by the annotations of a function's parameters; other names are not checked.

    Args:
        function: a function or class. values: values by parameter name.
        what: name of the parameters' owner, for messages.

    Raises:
        InputError: a value of a wrong type.
    """
    parameters = inspect.signature(function).parameters
    for name, value in values.items():
        hint = _resolved(parameters[name].annotation, function) if name in parameters else Any
        if not _fits(value, hint):
            quoted = "" if isinstance(value, str) else _quoted(value, hint)
            raise InputError(f"{what}: {name} must be {_described(hint)}, got {value!r}{quoted}")


def check_choice(name: str, value: object, choices: Iterable[object]) -> None:
    """Raise InputError unless the value of the parameter ``name`` is one of ``choices``."""
    choices = list(choices)
    if value not in choices:
        raise InputError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")


def check_range(name: str, value: float, low: float, high: float = math.inf) -> None:
    """Raise InputError unless ``low <= value <= high`` and the value is finite."""
    if not (low <= value <= high and math.isfinite(value)):
        what = f"lie between {low:g} and {high:g}" if high < math.inf else f"be {low:g} or more"
        raise InputError(f"{name} must {what}, got {value}")


def check_names(
    given: Iterable[str], known: Iterable[str], what: str, kind: str = "option"
) -> None:
    """Check that all names are known.

    Args:
        what: the owner of the names, for messages. kind: the noun for a name there.

    Raises:
        InputError: an unknown name; the message suggests the nearest one.
    """
    known = list(known)
    for name in given:
        if name not in known:
            raise InputError(f"{what} has no {kind} {name!r}; {nearest(name, known)}")


def check_call(
    function: Callable[..., Any], values: Mapping[str, Any], what: str, kind: str = "option"
) -> None:
    """Check the arguments of a call: names with :func:`check_names`, and values with
    :func:`check_values`.

    Raises:
        InputError: see these; or a parameter without default is not given.
    """
    parameters = inspect.signature(function).parameters
    by_name = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    if not any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        check_names(values, parameters, what, kind)
    for name, parameter in parameters.items():
        needed = parameter.default is Parameter.empty and parameter.kind in by_name
        if needed and name not in values:
            raise InputError(f"{what} needs the {kind} {name!r}")
    check_values(function, values, what)


def plainly(error: Mapping[str, Any]) -> str:
    """What one of Pydantic's errors is about, in plain words: what a value must be, and what it
    is."""
    said = next((said for k, said in _EXPECTED.items() if error["type"].startswith(k)), None)
    if said is None:
        return str(error["msg"]).removeprefix("Value error, ")
    bounds = {
        name: f"{value:g}" if isinstance(value, float) else f"{value:,}"
        for name, value in error.get("ctx", {}).items()
        if isinstance(value, int | float)
    }
    terms = {**error.get("ctx", {}), **bounds}
    return f"{said.format(**terms)}, got {as_written(error['input'])}"


def as_written(value: object) -> str:
    """A value as TOML and command lines have it."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _resolved(annotation: Any, function: Callable[..., Any]) -> Any:
    """The type that an annotation names; Any if it cannot be resolved at run time."""
    if annotation is Parameter.empty:
        return Any
    names = {"Sequence": Sequence, "Mapping": Mapping}
    holder = type("holder", (), {"__annotations__": {"value": annotation}})
    scope = getattr(sys.modules.get(function.__module__), "__dict__", {})
    try:
        return get_type_hints(holder, scope, names)["value"]
    except NameError:  # imported for type checkers only, or in a base class's module
        return Any


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in arguments)
    if origin is Literal:
        return value in arguments
    if (origin or hint) in _TYPES:
        return _TYPES[origin or hint].has(value)
    if origin in (Sequence, Iterable, list) and not isinstance(value, Mapping):
        iterable = isinstance(value, Iterable) and not isinstance(value, str)
        checkable = isinstance(value, (list, tuple))
        return iterable and (not checkable or all(_fits(v, arguments[0]) for v in value))
    if origin in (Mapping, dict):
        return isinstance(value, Mapping) and all(_fits(v, arguments[1]) for v in value.values())
    return origin not in (Sequence, Iterable, list)


def _described(hint: Any, *, several: bool = False) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        parts = (_described(part, several=several) for part in arguments if part is not NoneType)
        return " or ".join(dict.fromkeys(parts))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin in (Sequence, Iterable, list):
        example = '["a", "b"]' if _fits("a", arguments[0]) else "[1, 2]"
        return f"a list of {_described(arguments[0], several=True)}, {example}"
    if origin in (Mapping, dict):
        values = _described(arguments[1], several=True)
        return f"a table whose values are {values}, KEY.NAME=VALUE"
    known = _TYPES.get(origin or hint)
    if known:
        return known.several if several else known.one
    return str(getattr(hint, "__name__", hint))


def _quoted(value: Any, hint: Any) -> str:
    """A hint on quoting a value that was read as a number where text is expected."""
    is_one = not isinstance(value, (list, tuple, Mapping))
    return f"; write text in quotes: '\"{value}\"'" if is_one and _fits(str(value), hint) else ""
