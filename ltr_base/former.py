"""Renamed arguments, whose former names still work, with a warning, for one release."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ltr_base.user_warning import warn_user

Made = TypeVar("Made", bound=Callable[..., Any])


class FormerName(FutureWarning):
    """A name that has another one now is used."""


#: The file that is being read, for warnings.
_FILE: ContextVar[str] = ContextVar("former names", default="")


@contextmanager
def former_names_in(file: str) -> Iterator[None]:
    """Warnings of former names within the block name the file that has them."""
    before = _FILE.set(f"{file}: ")
    try:
        yield
    finally:
        _FILE.reset(before)


def warn_of_former(message: str) -> None:
    """Warn of a former name, at the line outside this software that led to its use."""
    warn_user(_FILE.get() + message, FormerName)


def present_names(given: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, Any]:
    """Replace former names of arguments by the present ones.

    Args:
        given: arguments by name. now: the present name for each former one.

    Raises:
        ValueError: an argument is given by both of its names.

    Warns:
        FormerName: a former name is used.
    """
    for name in now.keys() & given.keys():
        if now[name] in given:
            raise ValueError(f"{name} is now {now[name]}, and both are given; give {now[name]}")
        warn_of_former(f"{name} is now {now[name]}")
    return {now.get(name, name): value for name, value in given.items()}


def former_names(**now: str) -> Callable[[Made], Made]:
    """Decorator of a function or class that makes it (or its constructor) accept keyword arguments
    by their former names too, with a warning: ``@former_names(stream="field")``."""

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
