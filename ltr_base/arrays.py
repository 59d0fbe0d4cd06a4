"""Arrays that several parts share."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

A = TypeVar("A", bound=np.ndarray)


def read_only(array: A) -> A:
    """A view through which nobody can change the array: what is handed to a plug-in stays as it is
    for all others, and one that computes in place fails where it does so."""
    view = array.view()
    view.flags.writeable = False
    return view


def keep_read_only(given: Any) -> None:
    """Replace the arrays among the attributes of a (frozen) dataclass by :func:`read_only` ones."""
    for name, value in vars(given).items():
        if isinstance(value, np.ndarray):
            object.__setattr__(given, name, read_only(value))
