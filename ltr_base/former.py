"""Arguments by the names that they had before, for one release."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Made = TypeVar("Made", bound=Callable[..., Any])


def present_names(
    given: Mapping[str, Any], now: Mapping[str, str], stacklevel: int = 2
) -> dict[str, Any]:
    """Arguments by their present names.

    Args:
        given: by name. now: for each former name the present one. stacklevel: of the warning, as
            of ``warnings.warn`` called where this function is.

    Raises:
        ValueError: an argument is given by both of its names.

    Warns:
        FutureWarning: a former name is among them.
    """
    for name in now.keys() & given.keys():
        if now[name] in given:
            raise ValueError(f"{name} is now {now[name]}, and both are given; give {now[name]}")
        warnings.warn(f"{name} is now {now[name]}", FutureWarning, stacklevel=stacklevel + 1)
    return {now.get(name, name): value for name, value in given.items()}


def former_names(**now: str) -> Callable[[Made], Made]:
    """A decorator: a function, or a class's constructor, takes keyword arguments by their former
    names too, and warns: ``@former_names(stream="field")``."""

    def decorate(made: Made) -> Made:
        called: Callable[..., Any] = vars(made)["__init__"] if isinstance(made, type) else made

        @functools.wraps(called)
        def call(*args: Any, **given: Any) -> Any:
            return called(*args, **present_names(given, now))

        if not isinstance(made, type):
            return call  # type: ignore[return-value]
        made.__init__ = call  # type: ignore[misc]
        return made

    return decorate
