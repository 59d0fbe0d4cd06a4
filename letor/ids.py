"""Ids of queries and documents, which frames and arrays hold in many forms, as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from letor.errors import InputError
from letor.string_array import StringArray

#: The least whole number of further kinds of floats that may be a rounded one.
_WHOLE: dict[Any, int] = {np.float16: 2**11, np.float32: 2**24}
_PLAIN, _FLOATS, _LISTS = (str, int, np.integer), (float, np.floating), (list, np.ndarray)


def id_texts(ids: Iterable[Any], what: str) -> list[str]:
    """Ids as texts. Whole numbers that are floats, as pandas makes them where a merge leaves rows
    without an id, are written as integers are: 100.0 as "100".

    Raises:
        InputError: an id is missing or a list, or a float that is not whole, or so large that it
            may stand for several; the message calls the ids ``what``.
    """
    items = list(_items(ids))
    if set(map(type, items)) <= {str}:
        return items
    return [_id_text(given, row, what) for row, given in enumerate(items)]


def document_texts(ids: Any, what: str) -> Any:
    """Document ids as texts, object [n], ``""`` where there is none, see :func:`id_texts`; string
    arrays and None are returned as they are."""
    if ids is None or isinstance(ids, StringArray):
        return ids
    return np.array(
        id_texts(["" if _is_missing(i) else i for i in _items(ids)], what), dtype=object
    )


def _items(values: Any) -> Iterable[Any]:
    """The values one by one, as objects of Python or numpy."""
    kind = getattr(values, "type", None)
    if kind is not None and pa.types.is_floating(kind) and kind != pa.float64():
        values = values.to_numpy()  # Python has but one kind of float
    if hasattr(values, "to_pylist"):
        return values.to_pylist()
    of_python = hasattr(values, "tolist") and values.dtype not in (*_WHOLE,)
    return values.tolist() if of_python else values


def _is_missing(given: Any) -> bool:
    """Whether an id is None, NaN, NA or NaT."""
    if isinstance(given, _PLAIN + _LISTS):
        return False
    return given is None or given is pd.NA or given is pd.NaT or given != given


def _id_text(given: Any, row: int, what: str) -> str:
    if isinstance(given, _PLAIN):
        return str(given)
    if _is_missing(given):
        raise InputError(f"{what}: row {row} has no id")
    if isinstance(given, bytes):
        return given.decode("utf-8", "surrogateescape")
    if not isinstance(given, _FLOATS) and not isinstance(given, _LISTS):
        return str(given)
    if isinstance(given, _LISTS) or not given.is_integer():
        raise InputError(
            f"{what}: row {row} has {given}, which is no id: make integers or texts of the ids"
        )
    if abs(int(given)) >= _WHOLE.get(type(given), 2**53):
        raise InputError(
            f"{what}: row {row} has {int(given)}, a rounded number, which may stand for several "
            "ids: read or merge them as integers (Int64 of pandas) or texts"
        )
    return str(int(given))
