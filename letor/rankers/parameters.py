"""Checks of rankers' constructor arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from letor.errors import InputError


def check_ranges(ranker: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Refuse attributes outside their range; a whole least value asks for a whole number.

    Raises:
        InputError: a value is of the wrong type or outside the range; the message names it.
    """
    for parameter, (least, largest) in ranges.items():
        value = getattr(ranker, parameter)
        kind = Integral if isinstance(least, int) else Real
        right_type = isinstance(value, kind)
        if not right_type or not least <= value <= largest:
            what = "a whole number" if kind is Integral else "a number"
            raise InputError(f"{parameter}={value!r}: must be {what} from {least:g} to {largest:g}")


def check_choice(ranker: Any, parameter: str, choices: Sequence[Any]) -> None:
    """Refuse an attribute that is none of the choices.

    Raises:
        InputError: it is not; the message names the choices.
    """
    value = getattr(ranker, parameter)
    if value not in choices:
        raise InputError(f"{parameter}={value!r}: choose from {', '.join(map(str, choices))}")
