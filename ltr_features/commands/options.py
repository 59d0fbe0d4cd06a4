"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Annotated, Any

import typer

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Worker threads (default: all cores); results do not depend on it."),
]

Progress = Annotated[
    bool | None,
    typer.Option(
        "--verbose/--quiet",
        help="Show progress even where output is no terminal; or nowhere.",
        show_default="on terminals only",
    ),
]


def settings(given: Sequence[str], what: str) -> dict[str, Any]:
    """``KEY=VALUE`` arguments as a dictionary; values are TOML, or else text.

    ``rank=50`` is a number, ``splits=["test"]`` a list, ``folder=data/x`` text; ``a.b=1`` sets the
    key b of the table a.

    Raises:
        InputError: an argument without ``=``, or a key twice.
    """
    from letor.errors import InputError

    found: dict[str, Any] = {}
    for argument in given:
        key, equals, text = argument.partition("=")
        if not equals or not key:
            raise InputError(f"{what} {argument!r} is not of the form KEY=VALUE")
        try:
            value: Any = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        *tables, name = key.split(".")
        place: Any = found
        for table in tables:
            place = place.setdefault(table, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or name in place:
            raise InputError(f"{what} {key!r} is given twice")
        place[name] = value
    return found
